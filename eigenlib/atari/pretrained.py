"""Networks and results that come with the course: `load` reads what `pipeline.ship` has written (data/pretrained)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eigenlib import _require, storage
from eigenlib.atari import training
from eigenlib.atari.dataset import NO_ACTION, Dataset
from eigenlib.atari.device import choose_device
from eigenlib.atari.emulator import game_name
from eigenlib.atari.network import DeepSR
from eigenlib.paths import PRETRAINED


class Pretrained(NamedTuple):
    """A network, and the arrays and the description that `ship` stored beside it."""

    network: DeepSR
    arrays: dict[str, np.ndarray]
    about: dict[str, Any]


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
