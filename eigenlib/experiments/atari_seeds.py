"""Is a potential e·φ a matter of the avatar's place, and of training? Four games, three seeds (notebooks 09 and 10)."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from eigenlib.atari import baselines, device, metrics, options, pipeline, training
from eigenlib.atari.dataset import collect
from eigenlib.atari.emulator import GAMES
from eigenlib.experiments._tasks import Arrays, Found
from eigenlib.paths import CACHE

SEEDS = range(3)
SAMPLES, ROWS = 10_000, 5_000  # frames to learn from, and of the walk behind T
KINDS: dict[str, tuple[bool, Any]] = {  # whether the network has learned, and which directions are taken of it
    "sr": (True, "sr"),
    "pca": (True, "pca"),
    "random": (True, "random"),
    "untrained": (False, "sr"),
    "untrained_pca": (False, "pca"),
}
SETTINGS = list(product(GAMES, SEEDS))


def run(setting: tuple[str, int]) -> Found:
    """ "KIND.r8" (20,) and "KIND.big_basin" (40,) of 20 directions of each kind, and "errors" (2, 3) of prediction: frame and
    avatar × network, background, copy."""
    (game, seed), out = setting, CACHE / "experiments" / "atari_seeds" / "{}-{}".format(*setting)
    job = pipeline.prepare(game, "quick", seed=seed, out=out, samples=SAMPLES, rows=ROWS, purposes=20)
    data = pipeline.collect_data(job, progress=False)
    walk = collect(game, job.amounts.rows, out / "walk", seed=seed + pipeline.WALK, progress=False)
    with device.threads(1):
        network = training.train(data, job.amounts.config, out / "network", progress=False, threads=1).network
        errors = metrics.prediction_errors(network, walk, walk.transitions[:2000], job.world().screen_size)
        fresh = baselines.untrained_copy(network, seed)
        seen = {learned: options.features_and_rows(n, walk.frames) for learned, n in ((True, network), (False, fresh))}
        arrays = {"errors": np.array([list(errors[where].values()) for where in ("frame", "avatar")])}
        for kind, (learned, which) in KINDS.items():
            vectors = baselines.directions_of(which, *seen[learned], job.amounts.purposes, seed=seed).vectors
            shares = pipeline.place_shares(seen[learned][0] @ vectors, np.asarray(walk.positions))
            arrays |= {f"{kind}.{name}": array for name, array in shares.items()}
    return arrays, {}


def score(results: dict[tuple[str, ...], Arrays]) -> dict[str, float]:
    """R8 of each kind of direction in each game, means over directions and seeds."""
    return {
        f"{game}, {kind}": float(np.mean([found[f"{kind}.r8"] for (name, _), found in results.items() if name == game]))
        for game, kind in product(GAMES, KINDS)
    }
