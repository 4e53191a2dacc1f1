"""The control experiment with the two-step options of the authors' 2017 code (notebook 06): see `control`."""

from __future__ import annotations

from eigenlib.experiments.control import ControlExperiment, Curves, run, score, settings, store, stored_curves

__all__ = ["SETTINGS", "run", "score", "store", "stored"]

SETTINGS = settings(ControlExperiment(option_duration="2017"))


def stored() -> Curves:
    return stored_curves("control_2017")
