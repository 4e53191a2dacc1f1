"""Where modules of the first edition stand now, so that notebooks handed out then still run and are still graded."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "eigenlib.atari.games": "eigenlib.atari.emulator",
    "eigenlib.atari.machine": "eigenlib.atari.device",
    "eigenlib.atari.runs": "eigenlib.atari.training",
    "eigenlib.atari.showing": "eigenlib.plots.atari",
    "eigenlib.atari.discovery": "eigenlib.atari.pipeline",
    "eigenlib.atari.studies": "eigenlib.experiments",
    "eigenlib.deep_plots": "eigenlib.plots.deep",
    "eigenlib.deep_rooms": "eigenlib.experiments.deep_rooms",
    "eigenlib.doctor": "eigencourse.doctor",
    "eigenlib.exercises": "eigencourse.exercises",
    "eigenlib.ledger": "eigencourse.ledger",
    "eigenlib.live": "eigenlib.plots.explorers",
    "eigenlib.notebooks": "eigencourse.lessons",
    "eigenlib.sampled_diffusion": "eigenlib.large.sampled_diffusion",
}
NAMES = {  # single names that went to another module, asked for by the module's `__getattr__`
    "eigenlib.atari.learning": {
        name: f"eigenlib.atari.batches.{name}"
        for name in ("FeatureBatches", "FrameBatches", "bootstraps", "image_statistics")
    },
    "eigenlib.atari.options": {"wander": "eigenlib.atari.baselines.wander"},
    "eigenlib.eigenpurposes": {
        name: f"eigenlib.comparing.{name}"
        for name in ("alignment", "eigenspaces", "match_signs", "principal_cosines", "residuals", "rotated")
    }
    | {"fix_signs": "eigenlib.canonical.fix_signs"},
    "eigenlib.experiments": {
        "MEASURES": "eigenlib.experiments.control.MEASURES",
        "SETTINGS": "eigenlib.experiments.control.TASKS",
        "control_experiment": "eigenlib.experiments.control.control_experiment",
        "stored_curves": "eigenlib.experiments.control.stored_curves",
        "MYOPIA": "eigenlib.experiments.atari_myopia.DEPTHS",
        "SEEDS": "eigenlib.experiments.atari_seeds.SEEDS",
        "UPDATES": "eigenlib.experiments.atari_normalisation.UPDATES",
        "predictions": "eigenlib.atari.metrics.predicted_frames",
    },
    "eigenlib.gridworld": {
        "big_rooms": "eigenlib.large.rooms.big_rooms",
        "with_valve": "eigenlib.one_way.with_valve",
    },
    "eigenlib.representation": {"relative_error": "eigenlib.comparing.relative_error"},
    "eigenlib.worlds": {"FiniteWorld": "eigenlib.finite_world.FiniteWorld"},
}


class _Forward(MetaPathFinder, Loader):
    """An import of an old name is one of the new name, with a word about it."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        old, new = module.__name__, MOVED[module.__name__]
        sys.modules[old] = importlib.import_module(new)
        warnings.warn(f"{old} is now {new}; the old name still works.", DeprecationWarning, stacklevel=2)


def name_of(module: str, name: str) -> object:
    """What `module` gave under this name in the first edition."""
    new = NAMES[module].get(name)
    if new is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warnings.warn(f"{module}.{name} is now {new}; the old name still works.", DeprecationWarning, stacklevel=3)
    where, _, known = new.rpartition(".")
    return getattr(importlib.import_module(where), known)


def names_of(module: str) -> Callable[[str], object]:
    """The `__getattr__` of a module from which names have gone."""
    return lambda name: name_of(module, name)


def install() -> None:
    """Asked last of all, so that whatever has one of these names comes first."""
    sys.meta_path.append(_Forward())
