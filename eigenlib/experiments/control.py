"""The paper's control experiment at full scale (Fig. 4 and appendix; notebook 06), and the curves stored of it.

Four settings × four SRs × six numbers of options, 24 SR runs × 100 runs of Q-learning each: minutes on two cores. Every
finished combination is kept on disk, so an interrupted run goes on where it was. `data/reference/` holds the curves, and
`eigenlib reference control` makes them anew.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from eigenlib import _require, storage
from eigenlib.control import Duration, Place, optimal_return, q_learning, require_task
from eigenlib.eigenoptions import Option, discover_eigenoptions
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.paths import CACHE, REFERENCE
from eigenlib.representation import learn_successor_representation, successor_representation

Representation = int | Literal["exact"]

MEASURES = ("returns", "reached")  # the first axis of everything the experiment stores

# Start and goal, (row, column) in four rooms. The paper shows its settings only as pictures. 1 is the 2017 paper's; 2 to 4 are
# ours, chosen to differ in room and distance (20, 16, 11 and 8 steps).
SETTINGS = (
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
    tasks: tuple[tuple[Place, Place], ...] = SETTINGS
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


def control_experiment(
    experiment: ControlExperiment | None = None, folder: Path | str | None = None, progress: bool = True
) -> Curves:
    """Run the experiment, the paper's if none is given (Fig. 4 and appendix; notebook 06).

    folder: where each finished combination of task, representation and count is kept, so that a run which was
        interrupted, by whatever means, goes on where it was. None keeps nothing.
    With no options the representation does not matter: that combination is computed once and used for all of them.
    """
    from tqdm.auto import tqdm

    experiment = ControlExperiment() if experiment is None else experiment
    world = _require_experiment(experiment)
    progress, folder = _require.flag(progress, "progress"), None if folder is None else _require.path(folder, "folder")
    sr_runs = range(experiment.sr_runs)
    shape = tuple(map(len, (experiment.tasks, experiment.representations, experiment.counts)))
    samples = np.empty((2, *shape, len(sr_runs), experiment.episodes))
    cells = [cell for cell in product(*map(range, shape)) if experiment.counts[cell[2]] or cell[1] == 0]
    cells.sort(key=lambda cell: cell[1])  # one representation after the other: its options are discovered once
    discovered: tuple[Representation | None, list[list[Option]]] = None, []
    code = storage.code_of(*_MODULES)
    with tqdm(total=len(cells) * len(sr_runs), unit=" SR runs", disable=not progress, smoothing=0.05) as bar:
        for task, i, c in cells:
            representation, count = experiment.representations[i], experiment.counts[c]
            store = None if folder is None else _Cell(Path(folder), experiment, task, representation, count, code)
            found = store.load() if store else None
            if found is None:
                if count and discovered[0] != representation:
                    discovered = representation, _option_sets(experiment, world, representation, sr_runs)
                found = np.empty((2, len(sr_runs), experiment.episodes))
                for r in sr_runs:
                    options = discovered[1][r][:count] if count else []
                    found[:, r] = _curve(experiment, world, task, representation, options, r)
                    bar.update()
                if store:
                    store.save(found)
            else:
                bar.update(len(sr_runs))
            samples[:, task, i if count else slice(None), c] = found if count else found[:, None]
    mean, n = samples.mean(axis=-2), len(sr_runs)
    error = samples.std(axis=-2, ddof=1) / np.sqrt(n) if n > 1 else np.full_like(mean, np.nan)
    optimal = [optimal_return(world, *task, experiment.gamma, experiment.steps) for task in experiment.tasks]
    half = stdtrit(max(n - 1, 1), 0.975) * error
    return Curves(
        experiment, mean.astype(np.float32), half.astype(np.float32), samples.mean(axis=-1), np.array(optimal)
    )


def _require_experiment(experiment: ControlExperiment) -> GridWorld:
    """The world of an experiment that can be run, or a sentence about the first entry that cannot be."""
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
    return world


def save_reference(curves: Curves, path: Path | str) -> None:
    """Write path.npz and, beside it, path.json: command, parameters, seeds, versions, code and checksum."""
    path = _require.path(path, "path")
    name, duration = path.name, _require.instance(curves, "curves", Curves).experiment.option_duration
    command = f"eigenlib reference {name}"
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
    shapes = {
        "mean": (*axes, experiment.episodes),
        "half": (*axes, experiment.episodes),
        "area": (*axes, experiment.sr_runs),
    }
    for array, shape in (shapes | {"optimal": axes[1:2]}).items():
        if arrays[array].shape != shape:
            raise ValueError(
                f"{array} in {Path(path).name} has shape {arrays[array].shape} instead of {shape}: fetch it again."
            )
    return Curves(experiment, **{name: arrays[name] for name in _ARRAYS})


def check_reference(path: Path | str, cells: int = 12) -> float:
    """Compute a part of a stored experiment again; returns by how much it differs at most, 0 if code and data agree.

    cells: how many combinations, spread over all of them; of each, one SR run with all its runs of Q-learning.
    """
    cells, curves = _require.whole(cells, "cells", 1, 10**6), load_reference(path)
    experiment, shape = curves.experiment, curves.area.shape[1:]
    world, worst = GridWorld.named(experiment.world, experiment.slip), 0.0
    every = np.prod(shape[:3])
    for number in np.unique(np.linspace(0, every - 1, cells).astype(int)):
        task, i, c = (int(at) for at in np.unravel_index(number, shape[:3]))
        representation, count, r = experiment.representations[i], experiment.counts[c], int(number) % shape[3]
        sets = _option_sets(experiment, world, representation, [r]) if count else [[]]
        again = _curve(experiment, world, task, representation, sets[0][:count], r).mean(axis=-1)
        worst = max(worst, float(np.abs(again - curves.area[:, task, i, c, r]).max()))
    return worst


def stored_curves(name: str = "control", regenerate: bool = False, progress: bool = True) -> Curves:
    """The curves in data/reference; `regenerate` computes them anew first (minutes; it can be interrupted) and stores them."""
    regenerate, progress = _require.flag(regenerate, "regenerate"), _require.flag(progress, "progress")
    if not isinstance(name, str) or name not in STORED:
        raise ValueError(f"There is no stored experiment {name!r}; there are {', '.join(STORED)}.")
    if regenerate:
        experiment = ControlExperiment(option_duration=STORED[name])
        save_reference(control_experiment(experiment, CACHE / "control", progress), REFERENCE / name)
    return load_reference(REFERENCE / name)


def _option_sets(experiment: ControlExperiment, world: GridWorld, representation, sr_runs) -> list[list[Option]]:
    """For each SR run as many options as any count needs; the exact SR has the same in all."""
    most, gamma = max(experiment.counts), experiment.gamma
    if representation == "exact":
        psi = successor_representation(world.transition_matrix(), gamma)
        return [discover_eigenoptions(world, extract_eigenpurposes(psi), most, gamma=gamma)] * len(sr_runs)
    seeds = [_seed(experiment.seed, r) for r in sr_runs]
    learned = learn_successor_representation(
        world, representation, experiment.steps, experiment.step_size, gamma, seeds=seeds
    )
    return [discover_eigenoptions(world, extract_eigenpurposes(psi), most, gamma=gamma) for psi in learned]


def _curve(experiment: ControlExperiment, world: GridWorld, task: int, representation, options, r: int) -> np.ndarray:
    """(2, episodes) the measures, averaged over one SR run's runs of Q-learning."""
    start, goal = require_task(world, *experiment.tasks[task])
    kind = 0 if representation == "exact" or not options else representation
    # From what a run is, not from its place in the grid: a smaller experiment is a part of the larger one.
    seed = _seed(experiment.seed, start, goal, kind, len(options), r)
    learned = q_learning(
        world,
        options,
        start,
        goal,
        experiment.episodes,
        experiment.runs,
        experiment.step_size,
        experiment.gamma,
        experiment.steps,
        seed,
        experiment.option_duration,
    )
    return np.stack([learned.returns.mean(axis=0), learned.reached.mean(axis=0)])


class _Cell:
    """One combination's (2, sr_runs, episodes), named by all that it depends on, the code included."""

    def __init__(self, folder: Path, experiment: ControlExperiment, task: int, representation, count: int, code):
        self.parameters = asdict(experiment) | {"tasks": experiment.tasks[task], "counts": count, "code": code}
        self.parameters["representations"] = representation if count else None
        digest = hashlib.sha256(
            json.dumps(self.parameters, sort_keys=True, default=lambda number: number.item()).encode()
        ).hexdigest()[:12]
        self.path = folder / f"setting{task + 1}-sr{representation if count else ''}-{count}-{digest}"

    def load(self) -> np.ndarray | None:
        """The array, or None if it is not there or not whole."""
        try:
            return storage.load(self.path)[0]["found"]
        except (OSError, ValueError, KeyError):
            return None

    def save(self, found: np.ndarray) -> None:
        storage.save(self.path, {"found": found}, parameters=self.parameters)


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _seed(*parts: int) -> int:
    """One number from several, well mixed; of 63 bits, which every integer type holds."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)
