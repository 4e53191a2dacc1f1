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
_27, _30, _31, _32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


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


@njit(cache=True, nogil=True)
def td_episodes(psi, visits, moves, start, episodes, steps, step_size, decay, gamma, stream):
    """`episodes` more episodes of Alg. 2, in place; returns the stream for the next call.

    psi: (S, S).  visits: (S,) updates of each row so far, kept only if decay ≠ 0.  moves: (S, A).  start: −1 for random.
    A slip needs no draw of its own: it turns a uniformly chosen direction into a uniformly chosen direction.
    """
    n_states, n_actions = moves.shape
    rate = step_size
    for _ in range(episodes):
        s = start
        if start < 0:
            stream += _GOLDEN
            s = below(scramble(stream), n_states)
        for _ in range(steps):
            stream += _GOLDEN
            s_next = moves[s, below(scramble(stream), n_actions)]
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
def climb(moves, purpose, slip, gamma, rounding, q):
    """Value iteration from zero for one eigenpurpose, (S,), into q, (A, S): see eigenoptions.py.

    moves: (S, A), in the order of directions, so that a slip of action a leads where a − 1 or a + 1 does.
    """
    n_states, n_actions = moves.shape
    keep, turn = 1.0 - slip, slip / 2
    value, better = np.zeros(n_states), np.zeros(n_states)
    height, ahead = np.empty(n_actions), np.empty(n_actions)
    changed = True
    while changed:
        changed = False
        for s in range(n_states):
            for a in range(n_actions):
                s_next = moves[s, a]
                height[a], ahead[a] = purpose[s_next], value[s_next]
            best = 0.0
            for a in range(n_actions):
                reward, v = height[a], ahead[a]
                if slip > 0.0:
                    left, right = a - 1, (a + 1) % n_actions  # index −1 is the last
                    reward = keep * reward + turn * height[left] + turn * height[right]
                    v = keep * v + turn * ahead[left] + turn * ahead[right]
                q[a, s] = reward - purpose[s] + gamma * v
                best = max(best, q[a, s])
            better[s] = best
            changed |= best - value[s] > rounding
        value, better = better, value
