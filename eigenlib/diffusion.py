"""How long a walk over actions and options takes from anywhere to anywhere (§4.1, Fig. 3d; notebook 05).

*The walk.* At every decision the agent chooses uniformly among the actions and the options that can start where it
stands. An option runs until it terminates. The diffusion time is the expected time to get from s to g, over all ordered
pairs of distinct states. Papers differ in three conventions, and so must we be able to:

    cost = "decisions"   every choice costs 1, an option too (this paper)
    cost = "steps"       every primitive step costs 1, an option its duration (the 2017 code adds 1 for terminating; not we)
    interrupt = True     an option that crosses g stops there: g is reached when the agent first stands on it
    interrupt = False    options run on across g: g is reached when the agent first makes a decision there, and the option
                         that brings it there is paid in full
    mean or median       both are returned; with few options they differ by orders of magnitude

*One linear system for each goal.* Of n(s) choices in s let N(s, s′) be how many lead to s′ (where actions have several
outcomes: the sum of their probabilities), N(s, g) those that reach g, and c(s) what they cost together. Then

    n(s) h(s) = c(s) + Σ_{s′ ≠ g} N(s, s′) h(s′)      for all s ≠ g.

Interruption makes N depend on g: a choice that would end in s′ but crosses g moves from N(s, s′) to N(s, g). Without slips
an option is a path, and walking each path once finds every such move; with slips the option's own chain is solved with g
as one more end. Options only add to N, c and n, so a curve over the number of options builds them once.

*Why no ordinary solver.* (I − P)⁻¹ has no negative entry and its row sums are the expected numbers of decisions, so the
condition number of the system (maximum norm) is the longest time itself, up to a factor 2. In four rooms the first
eigenoptions make that 10⁷, those of an SR learned from one start up to 10¹³, and a solver loses as many digits. So we
eliminate states as Grassmann, Taksar & Heyman (1985) do: to take p out of the chain, pass its ways on to all that lead to p,

    N(s, s′) += N(s, p) N(p, s′) / r,    c(s) += N(s, p) c(p) / r,    r = N(p, g) + Σ_{s′ left} N(p, s′),

where r, the pivot, is summed anew instead of found as n(p) − N(p, p). Nothing is ever subtracted, so every time is right
to about twelve digits, however large (O'Cinneide, 1993). States in which no option ends go first: their ways are local,
so that part of the matrix stays a narrow band.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components, shortest_path

from eigenlib import _require
from eigenlib.eigenoptions import Option, require_options
from eigenlib.worlds import World

Cost = Literal["decisions", "steps"]
ILL_CONDITIONED = 1e12  # from here on an ordinary solver keeps less than four digits
_GOALS = 26  # in one piece of work; fixed, so that the number of threads changes nothing


class DiffusionWarning(UserWarning):
    """Times that are right but must be read with care: some are infinite, or far beyond what any walk could show."""


class DiffusionTime(NamedTuple):
    """mean, median: over all ordered pairs of distinct states.  condition: the longest finite time in decisions, which is
    the condition number of the linear systems up to a factor 2.  unreachable: pairs whose time is infinite.
    matrix: (S, S) time from row s to column g, 0 on the diagonal; None unless asked for."""

    mean: float
    median: float
    condition: float
    unreachable: int
    matrix: np.ndarray | None = None


class DiffusionCurve(NamedTuple):
    """counts: (K,) numbers of options.  The rest as in DiffusionTime, one entry for each count."""

    counts: np.ndarray
    mean: np.ndarray
    median: np.ndarray
    condition: np.ndarray
    unreachable: np.ndarray


def diffusion_time(
    world: World,
    options: Sequence[Option] = (),
    cost: Cost = "decisions",
    interrupt: bool = True,
    matrix: bool = False,
) -> DiffusionTime:
    """Expected time between two states of the uniform walk over actions and options, exact (§4.1; notebook 05).

    cost, interrupt: the conventions of the module's docstring.  matrix: also return the time of every pair.
    Where one-way doors may keep the walk from g for ever the time is ∞, and so is the mean; a DiffusionWarning says so.
    Another one comes with times above ILL_CONDITIONED: they are right, but hardly what anybody wants to average.
    """
    given, matrix = _as_arrays(world, options), _require.flag(matrix, "matrix")
    times = _hitting_times(world, given, [len(given.starts)], cost, interrupt)
    mean, median, condition, unreachable = (values[0].item() for values in _summarise(times))
    return DiffusionTime(mean, median, condition, unreachable, times[0, ..., -1].copy() if matrix else None)


def diffusion_curve(
    world: World,
    options: Sequence[Option],
    counts: Sequence[int] | None = None,
    cost: Cost = "decisions",
    interrupt: bool = True,
) -> DiffusionCurve:
    """The diffusion time with the first k options, for every k in counts (Fig. 3d; notebook 05).

    counts: increasing; None is 0, 2, 4, … up to all options.  Entry i is diffusion_time(world, options[:counts[i]], …),
    to the last digit or nearly.
    """
    given = _as_arrays(world, options)
    counts = range(0, len(given.starts) + 1, 2) if counts is None else counts
    try:
        marks = [_require.whole(count, "counts") for count in _require.several(counts, "counts", "numbers")]
    except ValueError:
        raise ValueError(f"counts must be whole numbers of options, got {_require.shown(counts)}.") from None
    if not marks or marks[0] < 0 or marks[-1] > len(given.starts) or any(b <= a for a, b in pairwise(marks)):
        raise ValueError(
            f"counts must be increasing numbers between 0 and the {len(given.starts)} options given, got {marks}: sort them, "
            "drop repeats, or discover more options."
        )
    return DiffusionCurve(np.array(marks), *_summarise(_hitting_times(world, given, marks, cost, interrupt)))


# --- the systems ----------------------------------------------------------------------------------------------------


class _Options(NamedTuple):
    """k options as arrays. Ends are numbered in the order in which options first end there: the first options', first."""

    starts: np.ndarray  # (k, S) bool
    running: np.ndarray  # (k, S) bool: where they do not terminate
    leads: list[
        tuple[float | np.ndarray, np.ndarray]
    ]  # (probability, (k, S) next state, the same where they have terminated)
    ends: np.ndarray  # (E,) states in which some option ends
    n_ends: np.ndarray  # (k + 1,) how many of them the first options have


class _System(NamedTuple):
    """What the systems of all goals have in common for one number of options."""

    ways: np.ndarray  # (S, S) the part of N that no goal changes, rows and columns sorted as `order`
    choices: np.ndarray  # (S,) n
    paid: np.ndarray  # (S,) the steps of all choices together
    order: np.ndarray  # (S,) states in which options end, by their number, then the others row by row
    band: int  # how far apart in this order the ways between the others reach
    hopeless: np.ndarray | None  # (S, S) whether the walk from s may never come to g; None if it always does


def _hitting_times(world: World, given: _Options, marks: list[int], cost: Cost, interrupt: bool) -> np.ndarray:
    """(K, S, S, M) expected times from s to g with the first marks[k] options: decisions and, if M = 2, steps."""
    cost, interrupt = require_cost(cost), _require.flag(interrupt, "interrupt")
    if world.n_states < 2:
        raise ValueError(
            "The diffusion time is a mean over pairs of distinct states, but this world has one state only."
        )
    from eigenlib._diffusion_kernels import eliminate, follow  # here, not above: they import numba
    from eigenlib._kernels import THREADS

    end, took = _paths(given)  # used only where an action has one outcome
    systems = _systems(world, given, marks, interrupt, end, took)
    shape = (world.n_states, world.n_states, 1 + (cost == "steps"))
    times = np.empty((len(marks), *shape))
    column = np.argsort(np.concatenate([given.ends, np.setdiff1d(np.arange(world.n_states), given.ends)]))

    def piece(goals: np.ndarray) -> None:
        """The times to some goals, for all marks; what interruption changes is kept apart from what goals share."""
        cut = np.zeros((len(goals), world.n_states, len(given.ends)))  # N into each end
        into, spent = np.zeros(cut.shape[:2]), np.zeros(cut.shape[:2])  # N into g, and steps
        slot = np.full(world.n_states, -1)
        slot[goals] = np.arange(len(goals))
        for k, (done, mark) in enumerate(pairwise([0, *marks])):
            if interrupt and len(given.leads) == 1:
                new = slice(done, mark)
                follow(given.leads[0][1][new], given.starts[new], end[new], took[new], slot, column, cut, into, spent)
            elif interrupt:
                for o in range(done, mark):
                    at, result = _outcome(given, o, goals)
                    cut[..., column[at]] += result[..., 2:]
                    into += result[..., 1]
                    spent += result[..., 0]
            ways, choices, paid, order, band, hopeless = systems[k]
            h = np.empty((*into.shape, shape[2]))  # costs, and then the solution
            h[..., 0] = choices
            h[..., 1:] = (paid + spent)[..., None]
            lost = np.zeros(into.shape, dtype=bool) if hopeless is None else hopeless[:, goals].T
            # The pivot of a hopeless state could be 0. It has no influence on the others, so any way out will do.
            eliminate(ways, cut, into + lost, h, order, np.argsort(order)[goals], given.n_ends[mark], band, h)
            h[lost] = np.inf
            times[k][:, goals] = h.swapaxes(0, 1)

    # Threads around loops that release the GIL, and not prange: see representation.learn_successor_representation.
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(piece, np.split(np.arange(world.n_states), range(_GOALS, world.n_states, _GOALS))))
    return times


def require_cost(cost: Cost) -> Cost:
    if not isinstance(cost, str) or cost not in ("decisions", "steps"):
        raise ValueError(
            f"cost must be 'decisions' (a choice costs 1) or 'steps' (a primitive step does), not {_require.shown(cost)}."
        )
    return cost


def _systems(world: World, given: _Options, marks: list[int], interrupt: bool, end, took) -> list[_System]:
    """The systems for each mark. Interrupted options of several outcomes are left to the goals: they have nothing in common."""
    states = np.arange(world.n_states)
    edges = world.transition_matrix(sparse_result=True)
    connected = connected_components(edges, directed=True, connection="strong", return_labels=False) == 1
    ways, paid = world.n_actions * edges.toarray(), np.full(world.n_states, float(world.n_actions))
    systems = []
    for done, mark in pairwise([0, *marks]):
        starts = given.starts[done:mark]
        if len(given.leads) == 1:
            at = np.nonzero(starts)[1] * world.n_states + end[done:mark][starts]
            ways += np.bincount(at, minlength=ways.size).reshape(ways.shape)
            paid += (took[done:mark] * starts).sum(axis=0)
        elif not interrupt:
            for o in range(done, mark):
                at, result = _outcome(given, o, np.flatnonzero(~given.running[o])[:1])  # no goal: it has ended there
                ways[:, at] += result[0, :, 2:]
                paid += result[0, :, 0]
        ends = given.ends[: given.n_ends[mark]]
        order = np.concatenate([ends, np.setdiff1d(states, ends)])
        in_order = ways[np.ix_(order, order)]
        hopeless = None if connected else _hopeless(edges, edges if interrupt else ways)
        choices = world.n_actions + given.starts[:mark].sum(axis=0)
        systems.append(
            _System(in_order, choices, paid.copy(), order, _band(in_order[len(ends) :, len(ends) :]), hopeless)
        )
    return systems


def _paths(given: _Options) -> tuple[np.ndarray, np.ndarray]:
    """(k, S) the state in which an option from s ends and its steps until then, where an action has one outcome."""
    path = given.leads[0][1]
    here = np.arange(path.size)
    ahead = (path + (here - here % path.shape[-1]).reshape(path.shape)).ravel()
    steps = given.running.ravel().astype(np.int64)
    for _ in range(path.shape[-1].bit_length()):  # paths of 1, 2, 4, … steps; none visits a state twice
        steps = steps + steps[ahead]
        ahead = ahead[ahead]
    return (ahead % path.shape[-1]).reshape(path.shape), steps.reshape(path.shape)


def _outcome(given: _Options, o: int, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
    from eigenlib._diffusion_kernels import eliminate

    eliminate(chain * running, none, leave, result, states, goals, 0, _band(chain), result)
    return at, result * given.starts[o][:, None]


def _hopeless(edges, ahead) -> np.ndarray:
    """(S, S) whether the walk from s may end up, before it reaches g, where no way leads to g.

    edges: (S, S) the ways of actions, which decide what can be reached at all.  ahead: (S, S) all ways that g cannot stop.
    """
    lost = ~np.isfinite(shortest_path(edges, unweighted=True))
    while True:
        wider = lost | (ahead @ lost > 0)
        np.fill_diagonal(wider, False)
        if (wider == lost).all():
            return lost
        lost = wider


def _summarise(times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """mean, median, condition and number of infinite pairs, each (K,), of times (K, S, S, M); warns once if it must."""
    pairs = times[:, ~np.eye(times.shape[1], dtype=bool)]  # (K, S(S−1), M)
    finite = np.isfinite(pairs[..., 0])
    condition = np.where(finite, pairs[..., 0], 0.0).max(axis=1)
    unreachable = (~finite).sum(axis=1)
    median = np.median(pairs[..., -1], axis=1)
    if unreachable.any():
        advice = "so is the median." if np.isinf(median).any() else "read the median."
        warnings.warn(
            f"For {unreachable.max()} of {pairs.shape[1]} pairs the walk may never reach the goal (one way only), so their "
            f"times and the mean are infinite: {advice}",
            DiffusionWarning,
            stacklevel=3,
        )
    if condition.max() > ILL_CONDITIONED:
        warnings.warn(
            f"The longest time is {condition.max():.1e} decisions, which is also the condition number of the system: these "
            "digits are right, because nothing was subtracted, but an ordinary solver would return noise, and few such "
            "pairs make up the mean, so read the median.",
            DiffusionWarning,
            stacklevel=3,
        )
    return pairs[..., -1].mean(axis=1), median, condition, unreachable


def _as_arrays(world: World, options) -> _Options:
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
    return _Options(starts, running, leads, np.argsort(first, kind="stable")[: n_ends[-1]], n_ends)


def _band(ways: np.ndarray) -> int:
    """How far from the diagonal the entries of a square matrix reach."""
    rows, columns = np.nonzero(ways)
    return int(np.abs(rows - columns).max(initial=0))
