"""Networks and results small enough to come with the course: `ship` writes them, `load` reads them (data/pretrained).

GAME.safetensors, GAME.json                     the network in float16, and how it was trained
GAME-lesson.npz, GAME-lesson.json               everything else that lessons show: see `ship`
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eigenlib import _require, storage
from eigenlib.atari import training
from eigenlib.atari.dataset import NO_ACTION, Dataset, open_dataset
from eigenlib.atari.device import choose_device
from eigenlib.atari.discovery import KINDS, discovery_path, read_discovery
from eigenlib.atari.emulator import game_name
from eigenlib.atari.network import DeepSR
from eigenlib.paths import PRETRAINED

if TYPE_CHECKING:
    from eigenlib.atari.pipeline import Job

TRANSITIONS = 64
LIMIT = 12_000_000  # bytes of weights


class Pretrained(NamedTuple):
    """A network, and the arrays and the description that `ship` stored beside it."""

    network: DeepSR
    arrays: dict[str, np.ndarray]
    about: dict[str, Any]


def ship(job: Job, destination: Path | str = PRETRAINED) -> Path:
    """Store what lessons need of a finished job; returns the path of the weights without suffix.

    Arrays: "history.…" (losses), "frames" (65, 84, 84), "actions" (64,) and "positions" (65, 2) of transitions from the walk,
    which the network has not seen, "screen" (H, W, 3) at the start, and for each kind of direction KIND of `discover`
    "KIND.…": all it found but the vectors of controls and potentials along the way.
    """
    run, found = job.trained(), read_discovery(discovery_path(job))
    if found.about["made_from"]["network"] != run.about["sha256"]:
        raise ValueError(
            f"What was discovered in {job.out} belongs to another network: run {job.command('discover')} again."
        )
    walk = open_dataset(job.out / "walk")
    rows = liveliest(walk, TRANSITIONS)
    arrays = {f"history.{name}": column for name, column in run.history.items()}
    arrays |= {"frames": np.array(walk.frames[rows]), "actions": np.array(walk.actions[rows][:-1])}
    arrays |= {"positions": np.array(walk.positions[rows]), "screen": job.world().screen()}
    for kind in KINDS:
        left_out = {"potentials", "gains"} | ({"vectors"} if kind != "sr" else set())
        arrays |= {f"{kind}.{name}": array for name, array in found.kinds[kind].items() if name not in left_out}
    size = sum(tensor.nbytes for tensor in training.exported(run.network).values())
    if size > LIMIT:
        raise ValueError(
            f"These weights take {size / 1e6:.1f} MB, more than the {LIMIT / 1e6:.0f} MB that may be shipped."
        )
    told = {name: found.about[name] for name in ("game", "seed", "summary", "prediction_errors", "libraries")}
    done = job.amounts._replace(
        config=run.config, samples=len(open_dataset(job.out / "data", verify=False)), rows=len(walk)
    )
    done = done._replace(**{name: found.about["made_from"][name] for name in ("purposes", "steps")})
    command = f"eigenlib atari run {job.game} {replace(job, amounts=done).arguments}"
    path = Path(destination) / job.game
    training.export_weights(run, path)
    storage.save(path.with_name(f"{job.game}-lesson"), arrays, command=command, **told, config=run.about["config"])
    return path


def load(game: str, folder: Path | str = PRETRAINED, device: str = "cpu") -> Pretrained:
    """What was shipped for a game, its checksums checked."""
    name, folder = game_name(game), _require.path(folder, "folder")
    choose_device(device)
    path = folder / name
    if not path.with_name(f"{name}.json").is_file():
        there = sorted(file.stem for file in folder.glob("*.safetensors"))
        raise FileNotFoundError(
            f"No trained network of {name} comes with the course; there are {', '.join(there) or 'none'}. "
            f"Train one with: eigenlib atari run {name}."
        )
    network = training.load_network(path, device)
    arrays, about = storage.load(path.with_name(f"{name}-lesson"))
    return Pretrained(network, arrays, about)


def liveliest(walk: Dataset, count: int) -> np.ndarray:
    """(count + 1,) consecutive rows of one episode, without a death, in which the avatar goes the longest way."""
    _require.instance(walk, "walk", Dataset)
    count = _require.whole(count, "count", 1, max(len(walk) - 1, 1))
    steps = np.hypot(*np.diff(np.asarray(walk.positions, dtype=float), axis=0).T)
    steps = np.nan_to_num(steps, nan=0.0)
    whole = (np.asarray(walk.actions)[:-1] != NO_ACTION) & (np.asarray(walk.ends)[:-1] == 0)
    runs = np.convolve(whole, np.ones(count), "valid") > count - 0.5
    if not runs.any():
        raise ValueError(f"The walk has no {count} transitions in a row without a death: make it longer (--rows).")
    ways = np.where(runs, np.convolve(steps, np.ones(count), "valid"), -1.0)
    return int(ways.argmax()) + np.arange(count + 1)
