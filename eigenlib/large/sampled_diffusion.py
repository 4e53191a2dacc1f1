"""Diffusion times in worlds too large for all pairs: all starts, some goals (§4.1, Fig. 3d; notebook 07).

`diffusion.py` solves for every goal, which takes S³ work or more. Here goals are drawn at random, and three ideas make one
goal cost a few sparse solves.

*Layers.* Write the walk as a chain over nodes: s, where the agent decides, and (o, s), where it runs option o. Every move
leads to a neighbour, in the same layer or into another, so the matrix stays sparse, slips or not; B = I − P. An option
that is interrupted at g is a node (o, g) that counts as the goal; otherwise only the node g does.

*One factorisation.* Let r be one state, B_r the matrix without its row and column, y = B_r⁻¹ c the time to r, and
z_j = B_r⁻¹ 1_j the visits to node j before r. If the goal is the nodes j = 1 … m, then

    h = y − Σ_j λ_j z_j + k    (0 in r's entries of y and z)

solves every equation but those of the goal's nodes and r's. The m conditions h = 0 in the goal, and the equation of r,
determine λ and k. So a goal costs m solves: one for actions alone, one more for each interrupted option running there.

*A good r.* LU on B_r loses as many digits as the time to r has, and no more: y, z and the chances made of them are sums of
positive terms. The time to other goals may be far longer, and still be right. So r is where the walk is found most often:
with options one of their ends. `condition` is the longest time to r. (Options that end in several places far apart, as in
a maze of many rooms, may keep the walk in each of them for longer than 10¹⁴ steps: then there is no good r, and we say so.)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from tqdm import tqdm

from eigenlib import _require
from eigenlib._require import Matrix
from eigenlib.diffusion import Cost, DiffusionWarning, require_conventions
from eigenlib.large.factors import Solve, factorised
from eigenlib.options import Option, require_options
from eigenlib.worlds import World, require_world

ILL_CONDITIONED = 1e10  # from here on fewer than five digits are right
HOPELESS = 1e14  # and from here on none
_QUANTILES = 1000  # of the times to each goal, kept for the median; with fewer starts, all of them
_SPREAD = 300  # steps of the walk from everywhere, after which the most frequent state is r
_BOOTSTRAPS = 2000


class SampledDiffusionTime(NamedTuple):
    """mean, median: estimates over all ordered pairs of distinct states.  mean_interval, median_interval: 95 %, by
    bootstrap over goals; of width 0 when every state was a goal.  goals: (G,) states.  goal_means: (G,) the mean time from
    all other states to each.  condition: the condition number of what was solved."""

    mean: float
    mean_interval: tuple[float, float]
    median: float
    median_interval: tuple[float, float]
    goals: np.ndarray
    goal_means: np.ndarray
    condition: float


def sampled_diffusion_time(
    world: World,
    options: Sequence[Option] = (),
    goals: int | Sequence[int] = 30,
    cost: Cost = "decisions",
    interrupt: bool = True,
    rng: int | np.random.Generator | None = None,
    progress: bool = False,
) -> SampledDiffusionTime:
    """As `diffusion_time`, estimated from some goals, for worlds of up to millions of states (notebook 07).

    goals: how many to draw, without repetition, or the states themselves.  cost, interrupt: as in `diffusion.py`.
    With few options some goals are hard to reach and carry the mean: read the median, whose interval can be trusted. A time
    beyond 10³⁰⁸ is infinite.
    Every state must be reachable from every other: where a one-way door shuts for good, the mean is infinite anyway.
    """
    require_world(world)
    cost, interrupt = require_conventions(world, cost, interrupt)
    progress = _require.flag(progress, "progress")
    edges = world.transition_matrix(sparse_result=True)
    if connected_components(edges, directed=True, connection="strong", return_labels=False) > 1:
        raise ValueError(
            "In this world some states cannot be reached from others (a door shuts for good, or something ends), so some "
            "times are infinite: up to some thousand states diffusion_time tells which and gives the median of all pairs."
        )
    random = np.random.default_rng(_require.seed_from(rng))
    chosen = _require_goals(world, goals, random)
    P, node, price = _layers(world, edges, options, cost)
    values = np.empty((len(chosen), min(world.n_states - 1, _QUANTILES)))
    means = np.empty(len(chosen))
    with tqdm(total=len(chosen), desc="factorise", unit=" goals", disable=not progress) as bar:
        r = _frequent(P, world.n_states)
        times_to, condition = _solver(P, price, r)
        bar.set_description("solve")
        for i, g in enumerate(chosen):
            h = np.delete(times_to(np.unique(node[:, g]) if interrupt else np.array([g]))[: world.n_states], g)
            means[i] = h.mean()
            at = (np.arange(values.shape[1]) + 0.5) * len(h) / values.shape[1]
            values[i] = np.partition(h, np.unique(at.astype(int)))[at.astype(int)]
            bar.update()
    if condition > ILL_CONDITIONED:
        warnings.warn(
            f"The time to the state that is easiest to reach is up to {condition:.1e}: about as many of the sixteen digits of "
            "these times are lost as it has.",
            DiffusionWarning,
            stacklevel=2,
        )
    return _estimate(chosen, means, values, world.n_states, condition, random)


def _layers(world: World, edges: Matrix, options: Sequence[Option], cost: str) -> tuple[Matrix, np.ndarray, np.ndarray]:
    """P, (N, N) over all nodes; node, (1 + K, S) the number of each, that of s where an option has ended; price, (N,)."""
    policies, starts = require_options(world, options)
    n_states, running = world.n_states, policies >= 0
    states, (o, s) = np.arange(n_states), np.nonzero(running)
    node = np.tile(states, (len(policies) + 1, 1))
    node[o + 1, s] = n_states + np.arange(len(s))
    choices = world.n_actions + starts.sum(axis=0)
    moves = sparse.coo_matrix(sparse.diags_array(world.n_actions / choices) @ edges)
    k, begins = np.nonzero(starts)
    parts = [(moves.data, moves.row, moves.col), (1 / choices[begins], begins, node[k + 1, begins])]
    for chance, ahead in world.dynamics:
        chances = np.broadcast_to(chance, ahead.shape)[s, policies[o, s]]
        parts.append((chances, node[o + 1, s], node[o + 1, ahead[s, policies[o, s]]]))
    data, rows, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
    size = n_states + len(s)
    price = np.concatenate([np.ones(n_states), np.zeros(len(s))])
    if cost == "steps":
        price = np.concatenate([world.n_actions / choices, np.ones(len(s))])
    return sparse.csr_matrix((data, (rows, columns)), shape=(size, size)), node, price


def _frequent(P: Matrix, n_states: int) -> int:
    """The state in which the walk is most often, after a while, from anywhere."""
    mass, forwards = np.where(np.arange(P.shape[0]) < n_states, 1.0, 0.0), sparse.csr_matrix(P.T)
    for _ in range(_SPREAD if P.shape[0] > n_states else 0):
        mass = forwards @ mass
    return int(np.argmax(mass[:n_states]))


def _solver(P: Matrix, price: np.ndarray, r: int) -> tuple[Solve, float]:
    """The function that gives the times from all nodes to a goal of some nodes, and the condition number."""
    size = P.shape[0]
    others = np.delete(np.arange(size), r)
    B = sparse.csc_matrix(sparse.eye_array(size) - P)[others][:, others]
    inverse = factorised(B, f"The factors of the walk's {size} nodes do not fit into memory: use fewer options.")
    leave = P[[r]].toarray().ravel()

    def solve(costs: np.ndarray) -> np.ndarray:
        return np.insert(inverse(np.delete(costs, r)), r, 0.0)

    y, longest = solve(price), np.abs(solve(np.ones(size))).max()  # negative ones are noise, of that size
    if longest > HOPELESS:
        raise ValueError(
            f"From some states even the state that is easiest to reach is {longest:.0e} steps away (options end in several "
            "places that the walk hardly ever leaves), so no digit of these times would be right. Use other options, or, up to "
            "some thousand states, diffusion_time, which loses none."
        )
    cycle = price[r] + leave @ y  # from r until it is back in r

    def times_to(goal: np.ndarray) -> np.ndarray:
        if r in goal and len(goal) == 1:
            return y
        inner = goal[goal != r]  # r itself needs no multiplier: its own equation is the one left out
        z = np.stack([solve((np.arange(size) == j).astype(float)) for j in inner])  # (m, N)
        visits = z[:, inner].T
        escape, owed = np.linalg.solve(visits, np.stack([np.ones(len(inner)), y[inner]], axis=1)).T
        # h = y − z(owed + k·escape) + k; r's equation: k·(chance to reach the goal before r) = cycle − what is not paid
        chance = leave @ (z.T @ escape)
        with np.errstate(divide="ignore", over="ignore"):
            k = 0.0 if r in goal else np.divide(cycle - leave @ (z.T @ owed), chance)
        missed = np.maximum(1 - z.T @ escape, 0.0)  # the chance to reach r first
        missed[inner] = 0.0
        with np.errstate(invalid="ignore"):
            h: np.ndarray = y - z.T @ owed + np.where(missed > 0, k * missed, 0.0)
        h[goal] = 0.0
        return h

    return times_to, float(longest)


def _estimate(
    goals: np.ndarray, means: np.ndarray, values: np.ndarray, n_states: int, condition: float, rng: np.random.Generator
) -> SampledDiffusionTime:
    """Means and medians of the sample, and how they vary when goals are drawn from it again."""
    mean, median = float(means.mean()), float(np.median(values))
    shrink = np.sqrt(1 - len(goals) / n_states)  # of a finite world less is unknown the more of it was a goal
    pick = rng.integers(len(goals), size=(_BOOTSTRAPS if shrink else 1, len(goals)))
    order = np.argsort(values, axis=None)
    owner, sorted_values = order // values.shape[1], values.ravel()[order]
    medians = np.empty(len(pick))
    for b, drawn in enumerate(pick):
        reached = np.cumsum(np.bincount(drawn, minlength=len(goals))[owner])
        medians[b] = sorted_values[np.searchsorted(reached, reached[-1] / 2)]

    def interval(middle: float, spread: np.ndarray) -> tuple[float, float]:
        if len(goals) == 1 and shrink:
            return float("nan"), float("nan")  # a single goal says nothing about how goals differ
        low, high = np.quantile(spread, [0.025, 0.975], method="nearest") if shrink else (middle, middle)
        if not np.isfinite([low, middle, high]).all():
            return float(low), float(high)
        return float(middle - shrink * (middle - low)), float(middle + shrink * (high - middle))

    intervals = interval(mean, means[pick].mean(axis=1)), interval(median, medians)
    return SampledDiffusionTime(mean, intervals[0], median, intervals[1], np.asarray(goals), means, condition)


def _require_goals(world: World, goals: int | Sequence[int], rng: np.random.Generator) -> np.ndarray:
    if not isinstance(goals, Iterable) or isinstance(goals, str | bytes) or getattr(goals, "ndim", 1) == 0:
        count = _require.whole(goals, "goals", 1)
        if count > world.n_states:
            raise ValueError(f"{count} goals were asked for, but this world has {world.n_states} states only.")
        return rng.choice(world.n_states, size=count, replace=False)
    try:
        chosen = _require.wholes(_require.several(goals, "goals", "states"), "goals", ("G",))
    except ValueError:
        raise ValueError(
            f"goals must be a number of goals to draw or a list of states, got {_require.shown(goals)}."
        ) from None
    if chosen.min() < 0 or chosen.max() >= world.n_states or len(np.unique(chosen)) < len(chosen):
        raise ValueError(f"goals must be different states, each from 0 to {world.n_states - 1}.")
    return chosen
