"""The paper's control experiment at full scale (Fig. 4 and appendix; notebook 06), and the curves stored of it.

Four tasks × four SRs × six numbers of options, 24 SR runs × 100 runs of Q-learning each: minutes on two cores.
`data/reference/` holds the curves, and `eigenlib experiment control` makes them anew.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import stdtrit

from eigenlib import _require, storage
from eigenlib.control import Duration, Place, optimal_return, q_learning, require_task
from eigenlib.eigenoptions import Option, discover_eigenoptions
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.experiments._tasks import Found, tasks
from eigenlib.gridworld import GridWorld
from eigenlib.paths import CACHE, REFERENCE
from eigenlib.representation import learn_successor_representation, successor_representation

Representation = int | Literal["exact"]

MEASURES = ("returns", "reached")  # the first axis of everything the experiment stores

# Start and goal, (row, column) in four rooms. The paper shows its settings only as pictures. 1 is the 2017 paper's; 2 to 4 are
# ours, chosen to differ in room and distance (20, 16, 11 and 8 steps).
TASKS = (
    ((11, 1), (1, 11)),  # corner to corner, through two doors
    ((1, 1), (9, 9)),  # through two doors to the middle of a room
    ((11, 11), (8, 3)),  # through one door to the middle of a room
    ((1, 1), (5, 5)),  # across one room
)

# The stored experiments by name: the paper's, and the same with the two-step options of the authors' 2017 code.
STORED: dict[str, Duration] = {"control": None, "control_2017": "2017"}
_ARRAYS = ("mean", "half", "area", "optimal")
_MODULES = (
    *("gridworld", "representation", "eigenpurposes", "canonical", "eigenoptions", "options", "control"),
    *("_compiled/stream", "_compiled/representation", "_compiled/control"),
)
_SEEDS = "SeedSequence((seed, r)) for SR run r; (seed, start, goal, its episodes or 0, count, r) for its Q-learning"


@dataclass(frozen=True)
class ControlExperiment:
    """Tasks × representations × numbers of options, each with sr_runs × runs runs of Q-learning; the paper's by default.

    tasks: (start, goal) pairs.  representations: the SR after so many episodes (Alg. 2, random starts), or "exact"; a
    learned one has the γ, α and steps of this experiment, which are the paper's for both.  counts: options added, both
    signs of the eigenvectors in their order. The exact SR's constant first vector yields none and is passed over; a learned
    SR's first vector is not quite constant, yields two, and is counted.
    """

    world: str = "four_rooms"
    slip: float = 0.0
    tasks: tuple[tuple[Place, Place], ...] = TASKS
    representations: tuple[Representation, ...] = (100, 500, 1000, "exact")
    counts: tuple[int, ...] = (0, 4, 8, 32, 64, 128)
    sr_runs: int = 24
    runs: int = 100
    episodes: int = 500
    step_size: float = 0.1
    gamma: float = 0.9
    steps: int = 100
    option_duration: Duration = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Curves:
    """What is kept of an experiment. Axes: the two MEASURES, tasks, representations, counts, and then

    mean, half: (…, episodes) over all runs, and half the width of its 95 % interval over SR runs (Student's t).
    area: (…, sr_runs) each SR run's mean over episodes and its runs of Q-learning.  optimal: (tasks,) the best return.
    """

    experiment: ControlExperiment
    mean: np.ndarray
    half: np.ndarray
    area: np.ndarray
    optimal: np.ndarray


class Setting(NamedTuple):
    """One combination of an experiment: the number of its task, the SR (None with no options: it does not matter), a count."""

    experiment: ControlExperiment
    task: int
    representation: Representation | None
    options: int

    @property
    def parameters(self) -> dict[str, Any]:
        """All that its curves depend on, the code included."""
        one = {"tasks": self.experiment.tasks[self.task], "representations": self.representation}
        return asdict(self.experiment) | one | {"counts": self.options, "code": storage.code_of(*_MODULES)}

    @property
    def name(self) -> str:
        text = json.dumps(self.parameters, sort_keys=True, default=lambda number: number.item())
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"setting{self.task + 1}-sr{self.representation or ''}-{self.options}-{digest}"


def settings(experiment: ControlExperiment) -> list[Setting]:
    """Every combination, one representation after the other, so that its options are discovered once."""
    every = product([None, *experiment.representations], range(len(experiment.tasks)), experiment.counts)
    # with no options the representation does not matter
    return [Setting(experiment, task, sr, count) for sr, task, count in every if (sr is None) == (count == 0)]


SETTINGS = settings(ControlExperiment())


def run(setting: Setting) -> Found:
    """The array "found" (2, sr_runs, episodes): the MEASURES, averaged over each SR run's runs of Q-learning."""
    every = tuple(range(setting.experiment.sr_runs))
    sets = _option_sets(setting.experiment, setting.representation, every)
    found = [_curve(setting, options[: setting.options], r) for r, options in zip(every, sets, strict=True)]
    return {"found": np.stack(found, axis=1)}, {"parameters": setting.parameters}


def control_experiment(
    experiment: ControlExperiment | None = None, folder: Path | str | None = None, progress: bool = True
) -> Curves:
    """Run the experiment, the paper's if none is given (Fig. 4 and appendix; notebook 06).

    folder: where each finished setting is kept, so that a run which was interrupted, by whatever means, goes on where it
        was. None keeps nothing.
    """
    experiment = ControlExperiment() if experiment is None else experiment
    _require_experiment(experiment)
    progress, folder = _require.flag(progress, "progress"), None if folder is None else _require.path(folder, "folder")
    return merged(tasks(run, settings(experiment), folder, progress))


def merged(results: dict[Setting, Found]) -> Curves:
    """The curves of one experiment from what was found in each of its settings."""
    experiment = next(iter(results)).experiment
    shape = tuple(map(len, (experiment.tasks, experiment.representations, experiment.counts)))
    samples = np.empty((2, *shape, experiment.sr_runs, experiment.episodes))
    for setting, (arrays, _) in results.items():
        every = [setting.representation in (None, known) for known in experiment.representations]
        samples[:, setting.task, every, experiment.counts.index(setting.options)] = arrays["found"][:, None]
    mean, n = samples.mean(axis=-2), experiment.sr_runs
    error = samples.std(axis=-2, ddof=1) / np.sqrt(n) if n > 1 else np.full_like(mean, np.nan)
    world = GridWorld.named(experiment.world, experiment.slip)
    optimal = [optimal_return(world, *task, experiment.gamma, experiment.steps) for task in experiment.tasks]
    half = stdtrit(max(n - 1, 1), 0.975) * error
    return Curves(
        experiment, mean.astype(np.float32), half.astype(np.float32), samples.mean(axis=-1), np.array(optimal)
    )


def score(curves: Curves) -> dict[str, float]:
    """By how much more often the goal is reached with options than without, over tasks, episodes and all runs."""
    reached = curves.area[MEASURES.index("reached")].mean(axis=(0, -1))  # (representations, counts)
    known, counts = curves.experiment.representations, curves.experiment.counts
    return {
        f"{count} options of the SR {'' if sr == 'exact' else 'after '}{sr}": float(reached[i, c] - reached[i, 0])
        for (i, sr), (c, count) in product(enumerate(known), enumerate(counts))
        if count
    }


def _require_experiment(experiment: ControlExperiment) -> None:
    """An experiment that can be run, or a sentence about the first entry that cannot be."""
    _require.instance(experiment, "experiment", ControlExperiment)
    world = GridWorld.named(experiment.world, experiment.slip)
    for name in ("sr_runs", "runs", "episodes", "steps"):
        _require.whole(getattr(experiment, name), name, 1, 10**9)
    _require.discount(experiment.gamma)
    _require.real(experiment.step_size, "step_size", 0, 1, "(]")
    _require.whole(experiment.seed, "seed", 0)
    parts = (experiment.tasks, experiment.representations, experiment.counts)
    whole = all(isinstance(part, tuple) and part for part in parts)
    counts = [_require.whole(count, "counts") for count in experiment.counts] if whole else []
    if not counts or len(set(counts)) < len(counts) or min(counts) < 0:
        raise ValueError("An experiment needs a task, a representation and a count; counts differ and are at least 0.")
    for known in experiment.representations:
        if not isinstance(known, str) or known != "exact":
            try:
                _require.whole(known, "A representation", 1)
            except ValueError:
                raise ValueError(f"A representation is 'exact' or a number of episodes, not {known!r}.") from None
    for task in experiment.tasks:
        if not isinstance(task, tuple) or len(task) != 2:
            raise ValueError(f"A task is a pair of start and goal, not {_require.shown(task)}.")
        require_task(world, *task)
    if experiment.option_duration is not None and not isinstance(experiment.option_duration, str):
        _require.whole(experiment.option_duration, "option_duration", 1)
    elif experiment.option_duration is not None:
        _require.choice(experiment.option_duration, "option_duration", ("2017",))


def store(results: dict[Setting, Found]) -> None:
    """Where `stored_curves` finds them."""
    duration = next(iter(results)).experiment.option_duration
    save_reference(merged(results), REFERENCE / next(name for name, known in STORED.items() if known == duration))


def save_reference(curves: Curves, path: Path | str) -> None:
    """Write path.npz and, beside it, path.json: command, parameters, seeds, versions, code and checksum."""
    path = _require.path(path, "path")
    duration = _require.instance(curves, "curves", Curves).experiment.option_duration
    command = f"eigenlib experiment {path.name}"
    if curves.experiment != ControlExperiment(option_duration=duration):
        command = "save_reference(control_experiment(ControlExperiment(…these parameters…)), path)"
    arrays = {name: getattr(curves, name) for name in _ARRAYS}
    axes = {"mean, half": "measure, task, representation, count, episode", "area": "…, SR run", "optimal": "task"}
    about = {"measures": MEASURES, "axes": axes, "seeds": _SEEDS, "code": storage.code_of(*_MODULES)}
    storage.save(path, arrays, command=command, parameters=asdict(curves.experiment), **about)


def load_reference(path: Path | str) -> Curves:
    """What `save_reference` wrote, after checking that the file is whole."""
    arrays, about = storage.load(path)
    parameters, known = about.get("parameters"), {entry.name for entry in fields(ControlExperiment)}
    if not isinstance(parameters, dict) or set(parameters) - known or set(_ARRAYS) - set(arrays):
        raise ValueError(f"{Path(path).name}.npz holds no control experiment: fetch it again, or make it anew.")
    experiment = ControlExperiment(**{name: _tuples(value) for name, value in parameters.items()})
    _require_experiment(experiment)
    axes = (2, len(experiment.tasks), len(experiment.representations), len(experiment.counts))
    curve, area = (*axes, experiment.episodes), (*axes, experiment.sr_runs)
    for array, shape in {"mean": curve, "half": curve, "area": area, "optimal": axes[1:2]}.items():
        if arrays[array].shape != shape:
            raise ValueError(
                f"{array} in {Path(path).name} has shape {arrays[array].shape} instead of {shape}: fetch it again."
            )
    return Curves(experiment, **{name: arrays[name] for name in _ARRAYS})


def stored_curves(name: str = "control", regenerate: bool = False, progress: bool = True) -> Curves:
    """The curves in data/reference; `regenerate` computes them anew first (minutes; it can be interrupted) and stores them."""
    regenerate, progress = _require.flag(regenerate, "regenerate"), _require.flag(progress, "progress")
    if not isinstance(name, str) or name not in STORED:
        raise ValueError(f"There is no stored experiment {name!r}; there are {', '.join(STORED)}.")
    if regenerate:
        wanted = settings(ControlExperiment(option_duration=STORED[name]))
        store(tasks(run, wanted, CACHE / "experiments" / name, progress))
    return load_reference(REFERENCE / name)


def stored() -> Curves:
    return stored_curves("control")


@lru_cache(maxsize=1)
def _option_sets(
    e: ControlExperiment, representation: Representation | None, sr_runs: tuple[int, ...]
) -> list[list[Option]]:
    """For each SR run as many options as any count needs; the exact SR has the same in all."""
    world, most = GridWorld.named(e.world, e.slip), max(e.counts)
    if representation is None:
        return [[]] * len(sr_runs)
    if representation == "exact":
        psi = successor_representation(world.transition_matrix(), e.gamma)
        return [discover_eigenoptions(world, extract_eigenpurposes(psi), most, gamma=e.gamma)] * len(sr_runs)
    seeds = [_seed(e.seed, r) for r in sr_runs]
    learned = learn_successor_representation(world, representation, e.steps, e.step_size, e.gamma, seeds=seeds)
    return [discover_eigenoptions(world, extract_eigenpurposes(psi), most, gamma=e.gamma) for psi in learned]


def _curve(setting: Setting, options: list[Option], r: int) -> np.ndarray:
    """(2, episodes) the measures, averaged over one SR run's runs of Q-learning."""
    e, known = setting.experiment, setting.representation
    world = GridWorld.named(e.world, e.slip)
    start, goal = require_task(world, *e.tasks[setting.task])
    # From what a run is, not from its place in the grid: a smaller experiment is a part of the larger one.
    kind = 0 if known == "exact" or not options else int(known or 0)
    seed = _seed(e.seed, start, goal, kind, len(options), r)
    ways = (e.episodes, e.runs, e.step_size, e.gamma, e.steps, seed, e.option_duration)
    learned = q_learning(world, options, start, goal, *ways)
    return np.stack([learned.returns.mean(axis=0), learned.reached.mean(axis=0)])


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _seed(*parts: int) -> int:
    """One number from several, well mixed; of 63 bits, which every integer type holds."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)
