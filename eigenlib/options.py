"""What an option is, whether it may be followed, and options that go to one state (§2.1; notebooks 04 and 05)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from eigenlib import _require
from eigenlib.large.factors import factorised
from eigenlib.worlds import World, require_world

_ZERO = 1e-9  # numbers of steps that differ by a smaller share tie


@dataclass(frozen=True, eq=False)
class Option:
    """Where an option may start, what it does there, where it ends (§2.1).

    policy: (S,) action in each state, −1 where it terminates.  initiation, termination: (S,) bool, one the other's
    complement.  value: (S,) v.  eigenpurpose: (S,) e, its sign included.  origin: (column of the eigenvector, ±1).
    """

    policy: np.ndarray
    initiation: np.ndarray
    termination: np.ndarray
    value: np.ndarray | None = None
    eigenpurpose: np.ndarray | None = None
    origin: tuple[int, int] | None = None


def follow(
    world: World, option: Option, start: int, steps: int | None = None, rng: int | np.random.Generator | None = None
) -> np.ndarray:
    """(L + 1,) the states on the option's way from `start` to where it ends, or for `steps` steps (notebook 04).

    rng: a seed or a Generator, used where actions have several outcomes; None is seed 0.  A start in which the option
    terminates gives the start alone.
    """
    ((policy,), _), here = require_options(world, [option]), _require.state(start, "start", world.n_states)
    steps = None if steps is None else _require.whole(steps, "steps", 0)
    random, path, dynamics = np.random.default_rng(_require.seed_from(rng)), [here], world.dynamics
    while policy[here] >= 0 and (steps is None or len(path) <= steps):
        ways = [int(ahead[here, policy[here]]) for _, ahead in dynamics]
        chances = [_of(chance, here, policy[here]) for chance, _ in dynamics]
        here = ways[0] if len(ways) == 1 else ways[random.choice(len(ways), p=chances)]
        path.append(here)
    return np.array(path)


def require_options(world: World, options: Any) -> tuple[np.ndarray, np.ndarray]:
    """policies (K, S), −1 where an option ends, and starts (K, S), bool; or a sentence about the first one that is wrong.

    An option must belong to this world and be sure to end: from wherever it runs a way must lead to where it terminates.
    """
    require_world(world)
    if isinstance(options, Option):
        raise ValueError("options must be a list of options: put a single one in brackets.")
    if not np.iterable(options) or isinstance(options, str | bytes | Mapping):
        options = [options]
    options = list(options)  # once: a generator can be read only once
    n_states, n_actions = world.n_states, world.n_actions
    for k, option in enumerate(options):
        if not isinstance(option, Option):
            raise ValueError(
                f"options must be a list of eigenlib's options, but one of them is of type {type(option).__name__}."
            )
        shapes = [np.shape(part) for part in (option.policy, option.initiation, option.termination)]
        if shapes != [(n_states,)] * 3:
            raise ValueError(
                f"Option {k} was made for another world: its policy, initiation and termination have shapes {shapes}, but "
                f"this world has {n_states} states. Discover options in the world in which they are used."
            )
    policies, starts, ends = (
        _whole([getattr(option, part) for option in options], part, n_states, kind)
        for part, kind in (("policy", np.int64), ("initiation", bool), ("termination", bool))
    )
    for wrong, why in (
        (
            ~ends & ((policies < 0) | (policies >= n_actions)),
            "neither terminates in state {} nor names an action there",
        ),
        (starts & ends, "may start in state {}, where it terminates at once: let it do one or the other"),
    ):
        if wrong.any():
            k, s = np.argwhere(wrong)[0]
            raise ValueError(f"Option {k} {why.format(s)}.")
    policies[ends] = -1
    sure = _ends_surely(world, policies, ends)
    if not sure.all():
        k, s = np.argwhere(~sure)[0]
        raise ValueError(
            f"Option {k} never terminates once it is in {world.place(s)}: no way leads from there to where it ends."
        )
    return policies, starts


def _whole(parts: list[np.ndarray], name: str, n_states: int, kind: type) -> np.ndarray:
    """(K, S) of that kind, or a sentence if that would change a number: a policy of 1.7 is no action."""
    given = np.array(parts).reshape(-1, n_states)
    if given.dtype.kind not in "biuf" or not np.isfinite(given).all() or (given.astype(kind) != given).any():
        what = "whole numbers of actions" if kind is np.int64 else "True and False"
        raise ValueError(f"An option's {name} must hold {what}, but some entries are something else.")
    return given.astype(kind)


def _ends_surely(world: World, policies: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(K, S) whether a way leads from s to where option k ends."""
    n_states, states = world.n_states, np.arange(world.n_states)
    ways = [np.where(ends, states, ahead[states, policies]) for _, ahead in world.dynamics]  # (K, S) each
    if len(ways) == 1:
        ahead = ways[0]
        for _ in range(n_states.bit_length()):  # paths of 1, 2, 4, … steps
            ahead = np.take_along_axis(ahead, ahead, axis=1)
        return np.take_along_axis(ends, ahead, axis=1)
    sure = np.zeros((len(ends), n_states + 1), dtype=bool)
    for k, done in enumerate(ends):  # backwards along all ways, from one more state that all ends are reached from
        towards = np.concatenate([ahead[k] for ahead in ways] + [np.full(done.sum(), n_states)])
        origin = np.concatenate([states] * len(ways) + [np.flatnonzero(done)])
        graph = sparse.csr_matrix((np.ones(len(origin)), (towards, origin)), shape=(n_states + 1, n_states + 1))
        sure[k, breadth_first_order(graph, n_states, return_predecessors=False)] = True
    return sure[:, :-1]


def subgoal_option(world: World, goal: int) -> Option:
    """The option that goes to one state from everywhere by the shortest way and terminates there (notebook 05).

    Shortest is fewest expected steps, found by policy iteration; ties go to the first action. It starts
    where some policy reaches the goal surely: not where a one-way door is, or might be, in between.
    It always terminates: each step brings the expected steps to go, v, down by at least ½, a tie's tolerance included.
    """
    require_world(world)
    goal = _require.state(goal, "A subgoal", world.n_states)
    states, ways = np.arange(world.n_states), world.dynamics
    sure, safe = states >= 0, np.ones((world.n_states, world.n_actions), dtype=bool)
    while True:  # sure shrinks to the states that reach the goal by actions which never leave it
        reached, policy = states == goal, np.full(world.n_states, -1)
        while True:
            # By the surest way, not by any: one that only a slip leads along may take longer than a float can say.
            nearer = safe * np.sum([p * reached[ahead] for p, ahead in ways], axis=0)
            new = (nearer > 0).any(axis=1) & ~reached
            if not new.any():
                break
            policy[new] = np.argmax(nearer[new], axis=1)
            reached = reached | new
        if (reached == sure).all():
            break
        sure, safe = reached, np.all([reached[ahead] for _, ahead in ways], axis=0)
    start = policy >= 0
    while True:
        system = sparse.csc_matrix(sparse.eye_array(world.n_states))
        for probability, ahead in ways:
            entries = (_of(probability, states, policy) * start, (states, ahead[states, policy]))
            system -= sparse.csc_matrix(entries, shape=system.shape)
        value = factorised(system, "The ways to a subgoal do not fit into memory: use a smaller world.")(
            start.astype(float)
        )
        steps = np.where(safe, 1 + np.sum([p * value[ahead] for p, ahead in ways], axis=0), np.inf)
        best = steps.min(axis=1)
        tie = np.minimum(_ZERO * best, 0.5)
        better = start & (best < value - tie)
        if not better.any():
            break
        policy[better] = np.argmin(steps[better], axis=1)
    policy = np.where(start, np.argmax(steps <= (best + tie)[:, None], axis=1), -1)
    return Option(policy=policy, initiation=start, termination=~start)


def random_subgoal_options(world: World, count: int, rng: int | np.random.Generator | None = None) -> list[Option]:
    """`count` subgoal options at states drawn uniformly, with repetition: there may be more options than states.

    rng: a seed, or a Generator to draw from; None is seed 0.
    """
    require_world(world)
    count = _require.whole(count, "count", 1)
    made: dict[int, Option] = {}
    goals = [int(goal) for goal in _require.generator(rng).integers(world.n_states, size=count)]
    return [made[g] if g in made else made.setdefault(g, subgoal_option(world, g)) for g in goals]


def _of(chance: float | np.ndarray, states: Any, actions: Any) -> Any:
    """A probability of `World.dynamics` for some states and actions."""
    return chance[states, actions] if isinstance(chance, np.ndarray) else chance
