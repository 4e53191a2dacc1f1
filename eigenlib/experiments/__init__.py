"""What takes longer than a lesson may: one file an experiment, its stored results, and how they are made again.

An experiment is a module of this package with three names:
    SETTINGS            its tasks of work: tuples that say all of it, every seed included, so that no two share anything
    run(setting, …)     one task: its arrays by name, and what their description should say besides
    score(results)      what the stored results say, as {in words: a number} or verdicts: criteria stand there, not in a lesson
and, where results are not simply all arrays of all tasks, `store(results)` and `stored()`, which write and read them in
data/reference; RESULTS says that what tasks leave there is all. `eigenlib experiment NAME` makes them anew and goes on
where it was stopped.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from eigenlib import _moved
from eigenlib.paths import CACHE, REFERENCE

__getattr__ = _moved.names_of(__name__)


class Experiment(NamedTuple):
    question: str
    takes: str  # on two cores


# The command line shows this before it knows whether numpy is there: what needs it is imported below.
EXPERIMENTS = {
    "control": Experiment("Do options of a learned SR earn? Q-learning in four settings (Fig. 4)", "minutes"),
    "control_2017": Experiment("Do they if an option lasts two steps, as in the 2017 code?", "minutes"),
    "deep_rooms": Experiment("Is a network's ψ the SR, where the SR is known?", "hours"),
    "atari_normalisation": Experiment("How should a network be shown frames?", "minutes"),
    "atari_seeds": Experiment("Is e·φ a matter of the avatar's place, and of training?", "hours"),
    "atari_myopia": Experiment("Where do options go that look further ahead?", "minutes"),
    "atari_evidence": Experiment("Do eigenoptions go somewhere in games, and is it the SR?", "days"),
}


def make(name: str, progress: bool = True, **ways: Any) -> Path:
    """Make the stored results of an experiment anew, or go on making them; returns where they are. ways: of its `run`."""
    from eigenlib import storage
    from eigenlib.experiments._tasks import tasks

    experiment, folder = module_of(name), CACHE / "experiments" / name
    results = tasks(experiment.run, experiment.SETTINGS, getattr(experiment, "RESULTS", folder), progress, **ways)
    if hasattr(experiment, "RESULTS"):
        return experiment.RESULTS
    if hasattr(experiment, "store"):
        experiment.store(results)
    else:
        arrays = {
            "|".join(map(str, (*setting, field))): array
            for setting, (found, _) in results.items()
            for field, array in found.items()
        }
        storage.save(REFERENCE / name, arrays, command=f"eigenlib experiment {name}")
    _stored.cache_clear()
    return REFERENCE / f"{name}.npz"


def stored(name: str) -> Any:
    """The stored results of an experiment; those of atari_myopia are {("freeway", "phi", "1"): {"positions": …}, …}."""
    experiment = module_of(name)
    return experiment.stored() if hasattr(experiment, "stored") else _stored(name)


@cache
def _stored(name: str) -> dict[tuple[str, ...], dict[str, Any]]:
    from eigenlib import storage

    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for key, array in storage.load(REFERENCE / name)[0].items():
        *setting, field = key.split("|")
        found.setdefault(tuple(setting), {})[field] = array
    return found


def scored(name: str) -> list[str]:
    """What the stored results of an experiment say, a line each."""
    found = module_of(name).score(stored(name))
    return [f"{value:9.3f}  {what}" for what, value in found.items()] if isinstance(found, dict) else [*map(str, found)]


def module_of(name: str) -> Any:
    """The module of an experiment, which has its name."""
    from eigenlib import _require

    return import_module(f"{__name__}.{_require.choice(name, 'name', EXPERIMENTS)}")
