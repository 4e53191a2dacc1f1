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
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from eigenlib import _hitting, _require
from eigenlib._hitting import Options
from eigenlib.options import Option
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
    given, matrix = _hitting.as_arrays(world, options), _require.flag(matrix, "matrix")
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
    given = _hitting.as_arrays(world, options)
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


def _hitting_times(world: World, given: Options, marks: list[int], cost: Cost, interrupt: bool) -> np.ndarray:
    """(K, S, S, M) expected times from s to g with the first marks[k] options: decisions and, if M = 2, steps."""
    cost, interrupt = require_conventions(world, cost, interrupt)
    from eigenlib._compiled import in_threads  # here, not above: they import numba
    from eigenlib._compiled.diffusion import eliminate, follow

    end, took = _hitting.paths(given)  # used only where an action has one outcome
    systems = _hitting.systems(world, given, marks, interrupt, end, took)
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
                    at, result = _hitting.option_outcome(given, o, goals)
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

    in_threads(piece, np.split(np.arange(world.n_states), range(_GOALS, world.n_states, _GOALS)))
    return times


def require_conventions(world: World, cost: Cost, interrupt: bool) -> tuple[Cost, bool]:
    """What both kinds of diffusion time ask for: known conventions, and a world that has pairs."""
    if not isinstance(cost, str) or cost not in ("decisions", "steps"):
        raise ValueError(
            f"cost must be 'decisions' (a choice costs 1) or 'steps' (a primitive step does), not {_require.shown(cost)}."
        )
    interrupt = _require.flag(interrupt, "interrupt")
    if world.n_states < 2:
        raise ValueError(
            "The diffusion time is a mean over pairs of distinct states, but this world has one state only."
        )
    return cost, interrupt


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
