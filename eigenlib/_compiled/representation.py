"""The loop of Algorithm 2: TD learning of the SR (numba)."""

from __future__ import annotations

from numba import njit

from eigenlib._compiled.stream import GOLDEN, below, outcome, scramble


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
            stream += GOLDEN
            s = below(scramble(stream), n_states)
        for _ in range(steps):
            stream += GOLDEN
            action = below(scramble(stream), n_actions)
            s_next = moves[s, action]
            if n_outcomes > 1:
                stream += GOLDEN
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
