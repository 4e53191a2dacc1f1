"""The inner loops that are compiled (numba). Functions import this module when called, never at the top of a file:
numba takes 0.6 s to import, and a reader who only wants an exact Ψ should not wait for it.

Randomness is splitmix64 (Steele, Lea & Flood, 2014), carried in and out as one 64-bit number. So a walk depends on its
seed alone, not on the thread it ran in, and can be taken up again where it stopped.
"""

from __future__ import annotations

import numpy as np
from numba import config, njit

THREADS: int = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # the cores, or what that variable says

# Plain integers would do in Python, but numba turns uint64 ∘ int64 into float64: every constant here is a uint64.
_GOLDEN, _MIX1, _MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31, _32 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@njit(inline="always")
def scramble(stream):
    """splitmix64's output for this state of the stream; the caller steps the stream by _GOLDEN before each draw."""
    z = (stream ^ (stream >> _30)) * _MIX1
    z = (z ^ (z >> _27)) * _MIX2
    return z ^ (z >> _31)


@njit(inline="always")
def below(bits, n):
    """A uniform integer in [0, n) from the upper 32 of 64 random bits (no division; bias under n / 2³²)."""
    return np.int64(((bits >> _32) * np.uint64(n)) >> _32)


@njit(inline="always")
def outcome(stream, upto, s, action):
    """The outcome that this state of the stream draws: the first k with draw < upto[k], (K − 1, S, A), else the last."""
    draw = (scramble(stream) >> _11) * 2.0**-53
    k = 0
    while k < len(upto) and draw >= upto[k, s, action]:
        k += 1
    return k


@njit(cache=True, nogil=True)
def td_episodes(psi, visits, ways, upto, start, episodes, steps, step_size, decay, gamma, stream):
    """`episodes` more episodes of Alg. 2, in place; returns the stream for the next call.

    psi: (S, S).  visits: (S,) updates of each row so far, kept only if decay ≠ 0.  ways, upto: a `worlds.Sampler`, of one
    outcome wherever no second draw is needed.  start: −1 for random.
    """
    n_outcomes, n_states, n_actions = ways.shape
    moves = ways[0]
    rate = step_size
    for _ in range(episodes):
        s = start
        if start < 0:
            stream += _GOLDEN
            s = below(scramble(stream), n_states)
        for _ in range(steps):
            stream += _GOLDEN
            action = below(scramble(stream), n_actions)
            s_next = moves[s, action]
            if n_outcomes > 1:
                stream += _GOLDEN
                s_next = ways[outcome(stream, upto, s, action), s, action]
            if decay != 0.0:
                visits[s] += 1
                rate = step_size / visits[s] ** decay
            # Eq. 2, regrouped: (1−η) ψ(s) + ηγ ψ(s′) + η 1{s}. A bump has its own loop, because the compiler uses SIMD
            # only for two rows that do not overlap.
            row, next_row, keep, pull = psi[s], psi[s_next], 1.0 - rate, rate * gamma
            if s == s_next:
                keep += pull
                for j in range(n_states):
                    row[j] *= keep
            else:
                for j in range(n_states):
                    row[j] = keep * row[j] + pull * next_row[j]
            row[s] += rate
            s = s_next
    return stream


@njit(cache=True, nogil=True)
def climb(ways, chances, purpose, gamma, rounding, q):
    """Value iteration from zero for one eigenpurpose, (S,), into q, (A, S): see eigenoptions.py.

    ways: (K, S, A) next states.  chances: (K, S, A), or (K, 1, 1) where they are the same everywhere.
    """
    n_outcomes, n_states, n_actions = ways.shape
    varying = chances.shape[1] > 1 or chances.shape[2] > 1
    value, better = np.zeros(n_states), np.zeros(n_states)
    changed = True
    while changed:
        changed = False
        for s in range(n_states):
            best = 0.0
            for a in range(n_actions):
                s_next = ways[0, s, a]
                reward, v = purpose[s_next], value[s_next]
                if n_outcomes > 1:
                    reward, v = 0.0, 0.0
                    for k in range(n_outcomes):
                        s_next = ways[k, s, a]
                        chance = chances[k, s, a] if varying else chances[k, 0, 0]
                        reward += chance * purpose[s_next]
                        v += chance * value[s_next]
                q[a, s] = reward - purpose[s] + gamma * v
                best = max(best, q[a, s])
            better[s] = best
            changed |= best - value[s] > rounding
        value, better = better, value
