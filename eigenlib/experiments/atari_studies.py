"""Studies behind lessons 09 and 10 that take longer than a lesson may; what they found is stored (data/reference).

    atari_normalisation   one game, three ways to show frames to the network: what it predicts after more and more updates
    atari_seeds           four games, three seeds: is a potential e·φ a matter of the avatar's place, and of training?
    atari_myopia          two games, their shipped networks: options that look further ahead than one decision

`eigenlib reference NAME` makes one anew and, as each finished part is kept in the cache, goes on where it was stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import torch

from eigenlib import _require, storage
from eigenlib.atari import device, metrics, options, pipeline, pretrained, training
from eigenlib.atari.dataset import Dataset, collect
from eigenlib.atari.discovery import WALK
from eigenlib.atari.emulator import GAMES, Emulator
from eigenlib.atari.learning import FrameBatches, Learner, Objective, choose_trained, image_statistics
from eigenlib.atari.network import DeepSR
from eigenlib.paths import CACHE, REFERENCE

NORMALISATIONS = ("raw", "mean", "deviation")
UPDATES = (0, 25, 50, 100, 200, 400, 800)  # at which predictions are compared
SEEDS = range(3)
SAMPLES, HELD, ROWS = 10_000, 2_000, 5_000  # frames to learn from, to compare predictions on, of the walk behind T
KINDS = ("sr", "pca", "random", "untrained", "untrained_pca")
MYOPIA = {"freeway": 4, "montezuma_revenge": 4}  # how many decisions the deeper plans have
PURPOSES, STEPS = 4, 60  # eigenpurposes, each in both directions, and decisions, of the study of depth

Arrays = dict[str, np.ndarray]


# --- normalisation ------------------------------------------------------------------------------------------------------


def _learning_curve(normalisation: str) -> Arrays:
    """Errors on unseen frames, all in the units of "deviation", and what is predicted of some of them in the end."""
    game, here = GAMES[0], CACHE / "studies" / "normalisation"
    data = collect(game, SAMPLES, here / "data", seed=0, progress=False)
    held = collect(game, HELD, here / "held", seed=WALK, progress=False)
    floor = training.Config().floor
    network = DeepSR(data.n_actions, "small", *image_statistics(data.frames, normalisation, floor))
    choose_trained(network, "reconstruction", stop_gradient=True)
    learner = Learner(Objective(network, network, 0.0, "reconstruction"), network, network)
    batches, rng = FrameBatches(data, True, network.mean.device), np.random.default_rng(0)
    scale = image_statistics(data.frames, "deviation", floor)[1]
    errors = []
    for update in range(max(UPDATES) + 1):
        if update in UPDATES:
            found = metrics.prediction_errors(network, held, held.transitions, tuple(data.about["screen"]), scale)
            errors.append([found["frame"]["network"], found["avatar"]["network"]])
        learner.update(*batches(rng.choice(data.transitions, 32)))
    rows = pretrained.liveliest(held, 10)
    arrays = {"errors": np.array(errors), "predictions": predictions(network, held, rows[:-1])}
    arrays |= {"frames": np.array(held.frames[rows]), "positions": np.array(held.positions[rows])}
    others = [[found[where][guess] for guess in ("background", "copy")] for where in ("frame", "avatar")]
    return arrays | {"others": np.array(others)}


def predictions(network: DeepSR, data: Dataset, rows: np.ndarray) -> np.ndarray:
    """The next frame in grey levels that a network expects after each of these rows: (N, 84, 84) uint8."""
    _require.instance(network, "network", DeepSR)
    _require.instance(data, "data", Dataset)
    rows = _require.wholes(rows, "rows", ("N",), 0, len(data) - 1)
    if (np.asarray(data.actions)[rows] >= data.n_actions).any():
        raise ValueError("rows must be rows in which an action was taken (data.transitions): some are ends.")
    place = network.mean.device
    frames = torch.from_numpy(np.array(data.frames[rows])).to(place)
    actions = torch.from_numpy(np.asarray(data.actions)[rows].astype(np.int64)).to(place)
    with torch.inference_mode():
        guess = network.predict(network.phi(frames), actions)
        return network.to_pixels(guess).round().to(torch.uint8).cpu().numpy()


# --- seeds --------------------------------------------------------------------------------------------------------------


def _trained_and_not(game: str, seed: int) -> Arrays:
    """R8 and BigBasin of 20 directions of each kind, and errors of prediction: frame and avatar × network, background, copy."""
    out = CACHE / "studies" / f"{game}-{seed}"
    job = pipeline.prepare(game, "quick", seed=seed, out=out, samples=SAMPLES, rows=ROWS, purposes=20)
    data = pipeline.collect(job, progress=False)
    run = training.train(data, job.amounts.config, out / "network", progress=False, threads=1)
    walk = collect(game, job.amounts.rows, out / "walk", seed=seed + WALK, progress=False)
    errors = metrics.prediction_errors(run.network, walk, walk.transitions[:2000], job.world().screen_size)
    arrays = {"errors": np.array([list(errors[where].values()) for where in ("frame", "avatar")])}
    positions = np.asarray(walk.positions)
    seen = [options.features_and_rows(n, walk.frames) for n in (run.network, options.untrained(run.network, seed))]
    for kind in KINDS:
        fresh, _, which = kind.rpartition("_") if kind != "untrained" else (kind, "", "sr")
        phi, psi = seen[bool(fresh)]
        potentials = phi @ options.directions(which, phi, psi, job.amounts.purposes, seed=seed).vectors  # type: ignore[arg-type]
        arrays[f"{kind}.r8"] = metrics.r8(potentials, positions)
        arrays[f"{kind}.big_basin"] = metrics.big_basin(options.both_signs(potentials), positions)
    return arrays


# --- myopia -------------------------------------------------------------------------------------------------------------


def _looking_ahead(game: str, reward: Any, depth: int) -> Arrays:
    """Where options go that pay for e·φ or e·ψ and look so many decisions ahead."""
    found = pretrained.load(game)
    vectors = options.both_signs(found.arrays["sr.vectors"][:, :PURPOSES])
    log = options.follow(Emulator(game), found.network, vectors, STEPS, reward=reward, depth=depth)
    kept = {name: getattr(log, name) for name in ("positions", "rooms", "lives", "actions")}
    return kept | metrics.behaviour(log)


# --- all ----------------------------------------------------------------------------------------------------------------

# name → the parts it is made of, and what makes one
STUDIES: dict[str, tuple[list[tuple], Callable[..., Arrays]]] = {
    "atari_normalisation": ([(name,) for name in NORMALISATIONS], _learning_curve),
    "atari_seeds": (list(product(GAMES, SEEDS)), _trained_and_not),
    "atari_myopia": (
        [(g, r, d) for g, depth in MYOPIA.items() for r in ("phi", "psi") for d in (1, depth)],
        _looking_ahead,
    ),
}


def make_reference(name: str) -> None:
    """Make a study anew and store it."""
    parts, make = STUDIES[_require.choice(name, "name", STUDIES)]
    arrays: Arrays = {}
    for part in parts:
        key = "|".join(map(str, part))
        path = CACHE / "studies" / name / key.replace("|", "-")
        try:
            found, _ = storage.load(path)
        except (OSError, ValueError):
            with device.threads(1):
                found = make(*part)
            storage.save(path, found)
        arrays |= {f"{key}|{field}": array for field, array in found.items()}
    storage.save(REFERENCE / name, arrays, command=f"eigenlib reference {name}")


def stored(name: str) -> dict[tuple[str, ...], Arrays]:
    """What a study found, by part: {("freeway", "phi", "1"): {"positions": …}, …}."""
    return _stored(_require.choice(name, "name", STUDIES))


@cache
def _stored(name: str) -> dict[tuple[str, ...], Arrays]:
    arrays, _ = storage.load(REFERENCE / name)
    found: dict[tuple[str, ...], Arrays] = {}
    for key, array in arrays.items():
        *part, field = key.split("|")
        found.setdefault(tuple(part), {})[field] = array
    return found
