"""How should a network be shown frames? Three ways, and what it then predicts after more and more updates (notebook 09)."""

from __future__ import annotations

import numpy as np

from eigenlib.atari import device, metrics, pretrained, training
from eigenlib.atari.batches import FrameBatches, image_statistics
from eigenlib.atari.dataset import collect
from eigenlib.atari.learning import Learner, Objective, choose_trained
from eigenlib.atari.network import DeepSR
from eigenlib.atari.pipeline import WALK
from eigenlib.experiments._tasks import Arrays, Found
from eigenlib.paths import CACHE

GAME = "montezuma_revenge"
UPDATES = (0, 25, 50, 100, 200, 400, 800)  # at which predictions are compared
SAMPLES, HELD = 10_000, 2_000  # frames to learn from, and to compare predictions on
SETTINGS = [("raw",), ("mean",), ("deviation",)]


def run(setting: tuple[str]) -> Found:
    """Errors on unseen frames, all in the units of "deviation", and what is predicted of some of them in the end.

    "errors" (updates, 2) in the whole frame and around the avatar; "others" (2, 2) the same of the background and of a copy;
    "frames" (11, 84, 84) and "positions" (11, 2) of ten steps, "predictions" (10, 84, 84) of their next frames.
    """
    (normalisation,), here = setting, CACHE / "experiments" / "atari_normalisation" / setting[0]
    data = collect(GAME, SAMPLES, here / "data", seed=0, progress=False)
    held = collect(GAME, HELD, here / "held", seed=WALK, progress=False)
    with device.threads(1):
        floor = training.Config().floor
        network = DeepSR(data.n_actions, "small", *image_statistics(data.frames, normalisation, floor))
        choose_trained(network, "reconstruction", stop_gradient=True)
        learner = Learner(Objective(network, network, 0.0, "reconstruction"), network, network)
        batches, rng = FrameBatches(data, True, network.mean.device), np.random.default_rng(0)
        scale, errors = image_statistics(data.frames, "deviation", floor)[1], []
        for update in range(max(UPDATES) + 1):
            if update in UPDATES:
                found = metrics.prediction_errors(network, held, held.transitions, tuple(data.about["screen"]), scale)
                errors.append([found["frame"]["network"], found["avatar"]["network"]])
            learner.update(*batches(rng.choice(data.transitions, 32)))
        rows = pretrained.liveliest(held, 10)
        predictions = metrics.predicted_frames(network, held, rows[:-1])
    others = [[found[where][guess] for guess in ("background", "copy")] for where in ("frame", "avatar")]
    arrays = {"errors": np.array(errors), "predictions": predictions, "frames": np.array(held.frames[rows])}
    return arrays | {"positions": np.array(held.positions[rows]), "others": np.array(others)}, {}


def score(results: dict[tuple[str, ...], Arrays]) -> dict[str, float]:
    """The last error around the avatar, in that of the mean image, in one unit: 1 is no better than to say nothing of it."""
    nothing = results["deviation",]["others"][1, 0]
    return {name: float(found["errors"][-1, 1] / nothing) for (name,), found in results.items()}
