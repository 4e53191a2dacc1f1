"""Do eigenoptions earn? Q-learning that explores with options (§4.1, Fig. 4 and appendix; notebook 06).

Entering the goal pays 1 and ends the episode, everything else pays 0; after `steps` steps the episode ends in any case. The
*behaviour* chooses uniformly among the actions and the options that can start where it stands, and an option, once
chosen, runs until it terminates, enters the goal, or the episode ends. What is *learned* is another policy, the greedy one
over the actions alone, so options shape where the agent goes and nothing else. After every step s, a → s′, whether an
option took it or not,

    Q(s, a) ← Q(s, a) + α (r + γ max_a′ Q(s′, a′) − Q(s, a)),        Q = 0 at first, and always 0 in the goal.

*How it is judged.* After each episode the greedy policy is followed from the start for at most `steps` steps. Two numbers
are kept, both exact expectations: the discounted `returns`, γⁿ⁻¹ if the n-th step enters the goal, and `reached`, the chance
to get there in time, which is the undiscounted return. The paper does not say which one its figures show; the authors' 2017
code adds rewards up undiscounted.

*Ties go to chance.* An agent that knows nothing has Q = 0 everywhere, so the rule for ties decides its curve until it has
learned. "The first action" would send it up for ever, and make goals above the start easier than goals below. We choose
uniformly among the best actions, as the 2017 code does; to know nothing is then to walk at random. We need no simulation
for it: the chance f_n(s) of first entering the goal with step n obeys f_n(s) = Σ_s′ p(s′ | s) f_n−1(s′).

*A little value is all it takes.* Where nothing slips, Q only grows, and Q(s, a) ≤ γ max Q(s′) holds after every update. So
a greedy step from a state of value v > 0 leads to one of value at least v/γ: no state comes twice, and the way ends in the
goal. Hence `reached` jumps to 1 when the first value arrives at the start (if `steps` suffice for the way), and before
that the agent walks at random until it meets some. Getting value to the start quickly is what exploration is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from eigenlib import _require
from eigenlib.options import Option, require_options
from eigenlib.worlds import World, require_world

Place = int | tuple[int, int]  # a state's number, or its (row, column) on the map, counted from 0
Duration = int | Literal["2017"] | None


class Learned(NamedTuple):
    """returns, reached: (runs, episodes) of the greedy policy after each episode.  q: (runs, S, A) at the end."""

    returns: np.ndarray
    reached: np.ndarray
    q: np.ndarray


def q_learning(
    world: World,
    options: Sequence[Option],
    start: Place,
    goal: Place,
    episodes: int = 500,
    runs: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    steps: int = 100,
    rng: int | np.random.Generator | None = None,
    option_duration: Duration = None,
) -> Learned:
    """Off-policy Q-learning over the actions, exploring with options too (§4.1; notebook 06).

    options: any number, also none.  start, goal: states, or (row, column) pairs.  step_size: α in (0, 1].  γ in [0, 1).
    rng: an integer seed, or a Generator to draw one from; None is seed 0. Run k is the same however many runs and threads
        there are, and a shorter run is the beginning of a longer one.
    option_duration: None lets options run until they terminate. A number cuts them after so many steps. "2017" is what
        the authors' code of that year does: it overwrites the option's index with that of the action it took, so an
        option is its first action, done twice, and never more than two steps long.
    """
    first, last = require_task(world, start, goal)
    episodes, runs = _require.whole(episodes, "episodes", 1), _require.whole(runs, "runs", 1)
    _require.room("These runs", runs, max(episodes, world.n_states * world.n_actions))
    discounts = _discounts(gamma, steps)
    rates = _require.rate(step_size, "step_size (α)"), float(gamma)
    policies, starts = require_options(world, options)
    duration = _duration(option_duration, len(discounts))

    from eigenlib import _compiled  # here, not above: it imports numba
    from eigenlib._compiled.control import explorer, greedy_tables, q_runs

    streams = np.random.SeedSequence(_require.seed_from(rng)).generate_state(
        runs, np.uint64
    )  # few are the first of many
    q, outcomes = np.zeros((runs, world.n_states, world.n_actions)), np.empty((runs, episodes, 2))
    rest = *explorer(world, policies, starts), *duration, (first, last), rates, discounts, *greedy_tables(world)

    def learn(some: slice) -> None:
        q_runs(q[some], outcomes[some], streams[some], *rest)

    pieces = min(runs, 8 * _compiled.THREADS)  # more pieces than threads, so that none waits long for the last one
    ends = [runs * piece // pieces for piece in range(pieces + 1)]
    _compiled.in_threads(learn, map(slice, ends[:-1], ends[1:]))
    return Learned(outcomes[..., 0], outcomes[..., 1], q)


def optimal_return(world: World, start: Place, goal: Place, gamma: float = 0.9, steps: int = 100) -> float:
    """The most that any policy can expect within an episode: γ^(distance − 1) where nothing slips."""
    first, last = require_task(world, start, goal)
    value, dynamics = np.zeros(world.n_states), world.dynamics
    for _ in _discounts(gamma, steps):
        ahead = gamma * value
        ahead[last] = 1.0
        value = np.max(sum(chance * ahead[states] for chance, states in dynamics), axis=1)
    return float(value[first])


def require_task(world: World, start: Place, goal: Place) -> tuple[int, int]:
    require_world(world)
    first, last = _state(world, start, "start"), _state(world, goal, "goal")
    if first == last:
        raise ValueError(f"start and goal are the same state, {first}: nothing is left to learn. Move one of them.")
    return first, last


def _state(world: World, place: Place, name: str) -> int:
    """The number of the state at `place`, or a sentence that says why there is none."""
    try:
        numbers = [_require.whole(number, name) for number in np.ravel(np.asarray(place, dtype=object))]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) == 1:
        return _require.state(numbers[0], name, world.n_states)
    if len(numbers) != 2:
        raise ValueError(f"{name} must be a state's number or a (row, column) pair, got {_require.shown(place)}.")
    (row, col), (height, width) = numbers, world.free.shape
    if not (0 <= row < height and 0 <= col < width):
        raise ValueError(
            f"{name} lies outside the map: it has rows 0 to {height - 1} and columns 0 to {width - 1}, got ({row}, {col})."
        )
    if not world.free[row, col]:
        raise ValueError(f"{name} lies inside a wall, at row {row}, column {col}: choose a free cell (world.cells).")
    return int(world.state_at[row, col])


def _discounts(gamma: float, steps: int) -> np.ndarray:
    """(steps,) γᵗ."""
    gamma, steps = _require.discount(gamma), _require.whole(steps, "steps", 1)
    _require.room("So many steps", steps)
    return gamma ** np.arange(steps)


def _duration(option_duration: Duration, steps: int) -> tuple[int, bool]:
    """The most steps an option may take, and whether the later ones repeat its first."""
    if option_duration is None or (isinstance(option_duration, str) and option_duration == "2017"):
        return (2, True) if option_duration else (steps, False)
    if isinstance(option_duration, str):
        raise ValueError(f"option_duration must be None, a number of steps, or '2017', got {option_duration!r}.")
    return _require.whole(option_duration, "option_duration", 1), False
