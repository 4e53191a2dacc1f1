"""The inner loops of Q-learning, compiled (numba); imported when called, like `_kernels`, whose random stream they use.

What the greedy policy earns depends on Q only through *which* actions are best in each state. So each state keeps its best
actions as four bits, and the policy is evaluated anew only after an episode that changed these bits in a state which the
policy can visit. That makes an exact evaluation affordable after every episode.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eigenlib._kernels import _GOLDEN, below, scramble

_11 = np.uint64(11)


@njit(inline="always")
def best_actions(row):
    """The actions that share the largest of four values, as bits: 1, 2, 4, 8 for up, right, down, left."""
    best = max(max(row[0], row[1]), max(row[2], row[3]))
    return (row[0] == best) + 2 * (row[1] == best) + 4 * (row[2] == best) + 8 * (row[3] == best)


@njit(cache=True, nogil=True)
def greedy_outcome(best, shares, moves, start, goal, discounts, visited):
    """(expected discounted return, chance to arrive in time) of the policy uniform over the best actions, exactly.

    best: (S,) bits.  shares: (16, 4) the chance of each direction, given the bits.  moves: (S, 4).  discounts: (steps,) γᵗ.
    visited: (S,) bool, set at least where the policy can come.
    """
    n_states, steps = moves.shape[0], len(discounts)
    visited[:] = False
    s, t = start, 0
    while t < steps and s != goal:  # as long as there is a single way, walk it
        visited[s] = True
        way = -1
        for a in range(4):
            if shares[best[s], a] == 1.0:
                way = a
        if way < 0:
            break
        s = moves[s, way]
        t += 1
    if s == goal:
        return discounts[t - 1], 1.0
    if t == steps:
        return 0.0, 0.0

    # From here on chance rules. first[s]: the probability to enter the goal for the first time after exactly so many steps.
    # Unsigned indices, because numba looks at signed ones twice, for a minus sign: a third of the time of this loop.
    visited[:] = True
    ways, chance = np.empty((n_states, 4), np.uint32), np.empty((n_states, 4))
    for i in range(n_states):
        for a in range(4):
            ways[i, a], chance[i, a] = moves[i, a], shares[best[i], a]
    first, longer = np.zeros(n_states), np.empty(n_states)
    first[goal] = 1.0
    earned, arrived = 0.0, 0.0
    for when in range(t, steps):
        for i in range(n_states):
            c, w = chance[i], ways[i]
            longer[i] = c[0] * first[w[0]] + c[1] * first[w[1]] + c[2] * first[w[2]] + c[3] * first[w[3]]
        longer[goal] = 0.0
        earned += discounts[when] * longer[s]
        arrived += longer[s]
        first, longer = longer, first
    return earned, arrived


@njit(cache=True, nogil=True)
def greedy_outcomes(q, shares, moves, start, goal, discounts, outcomes):
    """outcomes: (R, 2), filled with what the greedy policy of each q, (R, S, 4), earns and how surely it arrives."""
    best, visited = np.empty(q.shape[1], np.int64), np.empty(q.shape[1], np.bool_)
    for k in range(len(q)):
        for s in range(q.shape[1]):
            best[s] = best_actions(q[k, s])
        outcomes[k, 0], outcomes[k, 1] = greedy_outcome(best, shares, moves, start, goal, discounts, visited)


@njit(cache=True, nogil=True)
def q_runs(q, outcomes, streams, moves, slip, menu, sizes, policies, duration, repeat, task, rates, discounts, shares):
    """Runs of off-policy Q-learning, one a stream, in place.

    q: (R, S, 4) zeros.  outcomes: (R, episodes, 2), filled after each episode with what the greedy policy earns and how
    surely it arrives.  menu: (S, K) the options that can start in s; the first sizes[s] − 4 of a row count.
    policies: (K, S) actions, −1 where an option ends.  duration: the most steps an option takes.  repeat: its later steps
    repeat the first, as in the 2017 code.  task: start, goal.  rates: α, γ.  discounts: (steps,) γᵗ.  shares: (16, 4).
    """
    (start, goal), (step_size, gamma) = task, rates
    best, visited = np.empty(len(moves), np.int64), np.ones(len(moves), np.bool_)
    for k in range(len(streams)):
        table, stream = q[k], streams[k]
        best[:] = 15  # all four actions tie at zero
        stale, earned, arrived = True, 0.0, 0.0
        for episode in range(outcomes.shape[1]):
            s, option, action, left = start, 0, 0, 0
            for _ in range(len(discounts)):
                if left > 0 and not repeat:
                    action = policies[option, s]
                if left == 0 or action < 0:
                    stream += _GOLDEN
                    choice = below(scramble(stream), sizes[s])
                    if choice < 4:
                        action, left = choice, 1
                    else:
                        option, left = menu[s, choice - 4], duration
                        action = policies[option, s]
                left -= 1
                direction = action
                if slip > 0.0:
                    stream += _GOLDEN
                    chance = (scramble(stream) >> _11) * 2.0**-53
                    if chance < slip / 2:
                        direction = (action + 1) % 4
                    elif chance >= 1.0 - slip / 2:
                        direction = (action + 3) % 4
                s_next = moves[s, direction]
                target = 1.0
                if s_next != goal:
                    row = table[s_next]
                    target = gamma * max(max(row[0], row[1]), max(row[2], row[3]))
                old = table[s, action]
                new = old + step_size * (target - old)
                if new != old:
                    table[s, action] = new
                    bits = best_actions(table[s])
                    if bits != best[s]:
                        best[s] = bits
                        stale |= visited[s]
                s = s_next
                if s == goal:
                    break
            if stale:
                earned, arrived = greedy_outcome(best, shares, moves, start, goal, discounts, visited)
                stale = False
            outcomes[k, episode, 0], outcomes[k, episode, 1] = earned, arrived
