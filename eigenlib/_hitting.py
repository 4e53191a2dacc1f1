"""The linear systems behind `diffusion`: what options do, as arrays, and what the systems of all goals share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components, shortest_path

from eigenlib._require import Matrix
from eigenlib.options import Option, require_options
from eigenlib.worlds import Outcome, World


class Options(NamedTuple):
    """k options as arrays. Ends are numbered in the order in which options first end there: the first options', first."""

    starts: np.ndarray  # (k, S) bool
    running: np.ndarray  # (k, S) bool: where they do not terminate
    leads: list[Outcome]  # (probability, (k, S) next state, the same where they have terminated)
    ends: np.ndarray  # (E,) states in which some option ends
    n_ends: np.ndarray  # (k + 1,) how many of them the first options have


class System(NamedTuple):
    """What the systems of all goals have in common for one number of options."""

    ways: np.ndarray  # (S, S) the part of N that no goal changes, rows and columns sorted as `order`
    choices: np.ndarray  # (S,) n
    paid: np.ndarray  # (S,) the steps of all choices together
    order: np.ndarray  # (S,) states in which options end, by their number, then the others row by row
    band: int  # how far apart in this order the ways between the others reach
    hopeless: np.ndarray | None  # (S, S) whether the walk from s may never come to g; None if it always does


def as_arrays(world: World, options: Sequence[Option]) -> Options:
    """The options as arrays, checked."""
    policies, starts = require_options(world, options)
    running, states = policies >= 0, np.arange(world.n_states)
    leads = [
        (p[states, policies] if isinstance(p, np.ndarray) else p, np.where(running, ahead[states, policies], states))
        for p, ahead in world.dynamics
    ]
    # Indices into the flattened arrays: many times faster than take_along_axis on arrays of this size.
    shift = world.n_states * np.arange(len(policies))[:, None]
    flat = [ahead + shift for _, ahead in leads]
    ends_here = np.zeros((len(policies) + 1, world.n_states), dtype=bool)
    for ahead in flat:
        ends_here.ravel()[ahead[running]] = True
    ends_here[:-1] &= ~running
    ends_here[-1] = True  # so that argmax is k where no option ends
    first = np.argmax(ends_here, axis=0)
    n_ends = np.searchsorted(np.sort(first), np.arange(len(policies) + 1))
    return Options(starts, running, leads, np.argsort(first, kind="stable")[: n_ends[-1]], n_ends)


def systems(
    world: World, given: Options, marks: list[int], interrupt: bool, end: np.ndarray, took: np.ndarray
) -> list[System]:
    """The systems for each mark. Interrupted options of several outcomes are left to the goals: they have nothing in common."""
    states = np.arange(world.n_states)
    edges = world.transition_matrix(sparse_result=True)
    connected = connected_components(edges, directed=True, connection="strong", return_labels=False) == 1
    ways, paid = world.n_actions * edges.toarray(), np.full(world.n_states, float(world.n_actions))
    found = []
    for done, mark in pairwise([0, *marks]):
        starts = given.starts[done:mark]
        if len(given.leads) == 1:
            at = np.nonzero(starts)[1] * world.n_states + end[done:mark][starts]
            ways += np.bincount(at, minlength=ways.size).reshape(ways.shape)
            paid += (took[done:mark] * starts).sum(axis=0)
        elif not interrupt:
            for o in range(done, mark):
                at, result = option_outcome(
                    given, o, np.flatnonzero(~given.running[o])[:1]
                )  # no goal: it has ended there
                ways[:, at] += result[0, :, 2:]
                paid += result[0, :, 0]
        ends = given.ends[: given.n_ends[mark]]
        order = np.concatenate([ends, np.setdiff1d(states, ends)])
        in_order = ways[np.ix_(order, order)]
        hopeless = None if connected else _hopeless(edges, edges if interrupt else ways)
        choices = world.n_actions + given.starts[:mark].sum(axis=0)
        found.append(System(in_order, choices, paid.copy(), order, _band(in_order[len(ends) :, len(ends) :]), hopeless))
    return found


def paths(given: Options) -> tuple[np.ndarray, np.ndarray]:
    """(k, S) the state in which an option from s ends and its steps until then, where an action has one outcome."""
    path = given.leads[0][1]
    here = np.arange(path.size)
    ahead = (path + (here - here % path.shape[-1]).reshape(path.shape)).ravel()
    steps = given.running.ravel().astype(np.int64)
    for _ in range(path.shape[-1].bit_length()):  # paths of 1, 2, 4, … steps; none visits a state twice
        steps = steps + steps[ahead]
        ahead = ahead[ahead]
    return (ahead % path.shape[-1]).reshape(path.shape), steps.reshape(path.shape)


def option_outcome(given: Options, o: int, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where option o leads when actions have several outcomes: its ends, (E,), and (G, S, 2 + E) from s, stopping at each
    of the goals: expected steps, the chance to stop at the goal, the chance of each end. 0 where it does not start."""
    running, n_states = given.running[o], given.running.shape[1]
    states = np.arange(n_states)
    chain = np.zeros((n_states, n_states))
    for probability, ahead in given.leads:
        chain[states, ahead[o]] += (probability[o] if isinstance(probability, np.ndarray) else probability) * running
    at = np.flatnonzero(chain.any(axis=0) & ~running)
    result = np.empty((len(goals), n_states, 2 + len(at)))
    result[..., 0] = running
    result[..., 1] = (chain * running)[:, goals].T
    result[..., 2:] = chain[:, at]
    leave = np.tile(chain[:, at].sum(axis=1) + ~running, (len(goals), 1))
    none = np.empty((*leave.shape, 0))
    from eigenlib._compiled.diffusion import eliminate

    eliminate(chain * running, none, leave, result, states, goals, 0, _band(chain), result)
    return at, result * given.starts[o][:, None]


def _hopeless(edges: Matrix, ahead: Matrix) -> np.ndarray:
    """(S, S) whether the walk from s may end up, before it reaches g, where no way leads to g.

    edges: (S, S) the ways of actions, which decide what can be reached at all.  ahead: (S, S) all ways that g cannot stop.
    """
    lost: np.ndarray = ~np.isfinite(shortest_path(edges, unweighted=True))
    while True:
        wider = lost | (ahead @ lost > 0)
        np.fill_diagonal(wider, False)
        if (wider == lost).all():
            return lost
        lost = wider


def _band(ways: np.ndarray) -> int:
    """How far from the diagonal the entries of a square matrix reach."""
    rows, columns = np.nonzero(ways)
    return int(np.abs(rows - columns).max(initial=0))
