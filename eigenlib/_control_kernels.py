"""The inner loops of Q-learning, compiled (numba); imported when called, like `_kernels`, whose random stream they use.

What the greedy policy earns depends on Q only through *which* actions are best in each state. So the policy is evaluated
anew only after an episode that changed them in a state which the policy can visit. That makes an exact evaluation
affordable after every episode.

`actions` and `slots` are only counted: given as tuples, their lengths are known to the compiler, which then unrolls the
loops over four actions; given as arrays, any number of them will do.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eigenlib._kernels import _GOLDEN, below, outcome, scramble


@njit(inline="always")
def largest(row, actions):
    best = row[0]
    for a in range(1, len(actions)):
        best = max(best, row[a])
    return best


@njit(inline="always")
def share(row, s, chances, chance, actions, slots):
    """chance: (M,) of each successor of s, filled, when one of the actions that are best in row, (A,), is chosen uniformly."""
    best, count = largest(row, actions), 0
    for a in range(len(actions)):
        count += row[a] == best
    if len(chances) == 0:
        equal = 1.0 / count
        for a in range(len(actions)):
            chance[a] = equal if row[a] == best else 0.0
        return
    for m in range(len(slots)):
        chance[m] = 0.0
    for a in range(len(actions)):
        if row[a] == best:
            for m in range(len(slots)):
                chance[m] += chances[min(s, len(chances) - 1), a, m] / count


@njit(cache=True, nogil=True)
def greedy_outcome(q, places, chances, start, goal, discounts, visited, actions, slots):
    """(expected discounted return, chance to arrive in time) of the greedy policy of q, (S, A), exactly.

    places, chances: the successors of every state, as in `control._successors`.  discounts: (steps,) γᵗ.
    visited: (S,) bool, set at least where the policy can come.
    """
    n_states, steps = len(places), len(discounts)
    chance = np.empty(places.shape)
    visited[:] = False
    s, t = start, 0
    while t < steps and s != goal:  # as long as there is a single way, walk it
        visited[s] = True
        share(q[s], s, chances, chance[s], actions, slots)
        way = -1
        for m in range(len(slots)):
            if chance[s, m] == 1.0:
                way = m
        if way < 0:
            break
        s = np.int64(places[s, way])
        t += 1
    if s == goal:
        return discounts[t - 1], 1.0
    if t == steps:
        return 0.0, 0.0

    # From here on chance rules. first[s]: the probability to enter the goal for the first time after exactly so many steps.
    # places are unsigned, because numba looks at signed indices twice, for a minus sign: a third of the time of this loop.
    visited[:] = True
    for i in range(n_states):
        share(q[i], i, chances, chance[i], actions, slots)
    first, longer = np.zeros(n_states), np.empty(n_states)
    first[goal] = 1.0
    earned, arrived = 0.0, 0.0
    for when in range(t, steps):
        for i in range(n_states):
            c, w = chance[i], places[i]
            total = c[0] * first[w[0]]
            for m in range(1, len(slots)):
                total += c[m] * first[w[m]]
            longer[i] = total
        longer[goal] = 0.0
        earned += discounts[when] * longer[s]
        arrived += longer[s]
        first, longer = longer, first
    return earned, arrived


@njit(cache=True, nogil=True)
def greedy_outcomes(q, places, chances, start, goal, discounts, outcomes, actions, slots):
    """outcomes: (R, 2), filled with what the greedy policy of each q, (R, S, A), earns and how surely it arrives."""
    visited = np.empty(len(places), np.bool_)
    for k in range(len(q)):
        outcomes[k] = greedy_outcome(q[k], places, chances, start, goal, discounts, visited, actions, slots)


@njit(cache=True, nogil=True)
def q_runs(
    q, outcomes, streams, sampler, menu, sizes, policies, duration, repeat, task, rates, discounts, successors, unroll
):
    """Runs of off-policy Q-learning, one a stream, in place.

    q: (R, S, A) zeros.  outcomes: (R, episodes, 2), filled after each episode with what the greedy policy earns and how
    surely it arrives.  sampler: ways and upto, as in `worlds`.  menu: (S, K) the options that can start in s; the first
    sizes[s] − A of a row count.  policies: (K, S) actions, −1 where an option ends.  duration: the most steps an option
    takes.  repeat: its later steps repeat the first, as in the 2017 code.  task: start, goal.  rates: α, γ.
    discounts: (steps,) γᵗ.  successors: places and chances, as in `control`.  unroll: actions and slots, see above.
    """
    (ways, upto), (start, goal), (step_size, gamma) = sampler, task, rates
    (places, chances), (actions, slots) = successors, unroll
    moves, n_actions = ways[0], len(actions)
    visited = np.ones(len(moves), np.bool_)
    for k in range(len(streams)):
        table, stream = q[k], streams[k]
        stale, earned, arrived = True, 0.0, 0.0
        for episode in range(outcomes.shape[1]):
            s, option, action, left = start, 0, 0, 0
            for _ in range(len(discounts)):
                if left > 0 and not repeat:
                    action = policies[option, s]
                if left == 0 or action < 0:
                    stream += _GOLDEN
                    choice = below(scramble(stream), sizes[s])
                    if choice < n_actions:
                        action, left = choice, 1
                    else:
                        option, left = menu[s, choice - n_actions], duration
                        action = policies[option, s]
                left -= 1
                s_next = moves[s, action]
                if len(upto) > 0:
                    stream += _GOLDEN
                    s_next = ways[outcome(stream, upto, s, action), s, action]
                target = 1.0
                if s_next != goal:
                    target = gamma * largest(table[s_next], actions)
                old = table[s, action]
                new = old + step_size * (target - old)
                if new != old:
                    row = table[s]
                    row[action] = -np.inf
                    others = largest(row, actions)
                    row[action] = new
                    # Which actions are best changes only if this one overtakes the best of the others, or falls back.
                    if (old > others) != (new > others) or (old < others) != (new < others):
                        stale |= visited[s]
                s = s_next
                if s == goal:
                    break
            if stale:
                earned, arrived = greedy_outcome(
                    table, places, chances, start, goal, discounts, visited, actions, slots
                )
                stale = False
            outcomes[k, episode, 0], outcomes[k, episode, 1] = earned, arrived
