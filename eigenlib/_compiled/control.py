"""The inner loops of Q-learning, compiled (numba).

What the greedy policy earns depends on Q only through *which* actions are best in each state. So the policy is evaluated
anew only after an episode that changed them in a state which the policy can visit. That makes an exact evaluation
affordable after every episode.

`actions` and `slots` are only counted: given as tuples, their lengths are known to the compiler, which then unrolls the
loops over four actions; given as arrays, any number of them will do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from eigenlib._compiled.stream import GOLDEN, below, outcome, scramble
from eigenlib.worlds import World


def explorer(world: World, policies: np.ndarray, starts: np.ndarray) -> tuple[Any, ...]:
    """What the behaviour needs, of options (K, S) as `require_options` returns them.

    sampler: ways and upto, as in `worlds`.  menu (S, K): the options that can start in s come first.  sizes (S,): actions
    and options to choose from in s.  policies (K, S): actions, −1 where the option ends.
    """
    menu = np.argsort(~starts.T, axis=1, kind="stable")
    # Small types, so that the tables fit the nearest cache; wider ones only where numbers would not fit into them.
    numbers = np.int16 if len(policies) <= np.iinfo(np.int16).max else np.int64
    actions = np.int8 if world.n_actions <= np.iinfo(np.int8).max else np.int64
    sampler = tuple(np.ascontiguousarray(table) for table in world.sampler)
    return sampler, menu.astype(numbers), world.n_actions + starts.sum(axis=0), policies.astype(actions)


def greedy_tables(world: World) -> tuple[Any, ...]:
    """What the greedy policy's evaluation needs: the successors of every state, and `actions` and `slots` to count."""
    successors = _successors(world)
    usual = world.n_actions == successors[0].shape[1] == 4
    counted = (world.n_actions, successors[0].shape[1])
    return successors, tuple((0,) * 4 if usual else np.empty(number, np.int8) for number in counted)


def _successors(world: World) -> tuple[np.ndarray, np.ndarray]:
    """places (S, M): the states to which the actions of s may lead; chances (S, A, M): how likely each action leads there.

    Where every action has one outcome, places are those of the A actions, and chances is empty, (0, A, A). Where actions
    slip into what others do, one row, (1, A, A), serves all states.
    """
    n_states, n_actions, moves, dynamics = world.n_states, world.n_actions, world.uniform_moves, world.dynamics
    if len(dynamics) == 1:
        return dynamics[0][1].astype(np.uint32), np.empty((0, n_actions, n_actions))
    if moves is not None:
        column = {moves[:, a].tobytes(): a for a in range(n_actions)}
        like = [[column.get(ahead[:, a].tobytes(), -1) for a in range(n_actions)] for _, ahead in dynamics]
        if np.min(like) >= 0:
            shares = [chance * np.eye(n_actions)[at] for (chance, _), at in zip(dynamics, like, strict=True)]
            return moves.astype(np.uint32), np.sum(shares, axis=0)[None]
    states = np.arange(n_states)[:, None]
    pairs = np.stack([states * n_states + ahead for _, ahead in dynamics])  # (K, S, A)
    which, slot = np.unique(pairs, return_inverse=True)  # every (s, s′) once, those of a state side by side
    slot = slot.reshape(pairs.shape) - np.searchsorted(which, states * n_states)
    places = np.tile(states, slot.max() + 1).astype(np.uint32)
    chances = np.zeros((n_states, n_actions, places.shape[1]))
    for (chance, ahead), at in zip(dynamics, slot, strict=True):
        np.put_along_axis(places, at, ahead.astype(np.uint32), axis=1)
        chances[states, np.arange(n_actions), at] += chance
    return places, chances


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

    places, chances: the successors of every state, as in `_successors`.  discounts: (steps,) γᵗ.
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
def q_runs(
    q, outcomes, streams, sampler, menu, sizes, policies, duration, repeat, task, rates, discounts, successors, unroll
):
    """Runs of off-policy Q-learning, one a stream, in place.

    q: (R, S, A) zeros.  outcomes: (R, episodes, 2), filled after each episode with what the greedy policy earns and how
    surely it arrives.  sampler: ways and upto, as in `worlds`.  menu: (S, K) the options that can start in s; the first
    sizes[s] − A of a row count.  policies: (K, S) actions, −1 where an option ends.  duration: the most steps an option
    takes.  repeat: its later steps repeat the first, as in the 2017 code.  task: start, goal.  rates: α, γ.
    discounts: (steps,) γᵗ.  successors: places and chances, as in `_successors`.  unroll: actions and slots, see above.
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
                    stream += GOLDEN
                    choice = below(scramble(stream), sizes[s])
                    if choice < n_actions:
                        action, left = choice, 1
                    else:
                        option, left = menu[s, choice - n_actions], duration
                        action = policies[option, s]
                left -= 1
                s_next = moves[s, action]
                if len(upto) > 0:
                    stream += GOLDEN
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
