"""Frames of random play on disk (§4.2; notebook 09): `collect` writes them, `open_dataset` reads them back.

A dataset is a folder. Row t of its arrays holds frame t and the action taken there; the next frame is row t + 1, so every
frame is stored once. The last frame of an episode has no action (NO_ACTION): no transition starts in that row.

    frames.npy     (R, 84, 84) uint8
    actions.npy    (R,) uint8, NO_ACTION = 255
    ends.npy       (R,) uint8: in the transition from this row 0 nothing ended, 1 a life was lost, 2 the episode ended,
                   3 the episode was only cut off, by a limit or the end of a shard: bootstrap as usual
    positions.npy  (R, 2) float32, the avatar's x, y on the game's own screen; NaN where unknown
    about.json     how they were made, and a checksum of each

Rows are filled in shards of fixed size. A shard depends on nothing but the parameters, the seed and its number: so any
number of processes gives the same files, and a collection that was killed goes on with the shards it had not finished.
Everything is written under another name first and about.json last: a folder with about.json is whole.
"""

from __future__ import annotations

import json
import tokenize
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from eigenlib import _require
from eigenlib.atari.emulator import Emulator
from eigenlib.atari.pixels import SIDE, PixelMaze, PixelWorld, require_pixel_world
from eigenlib.storage import alone_in

NO_ACTION = 255
SHARD = 5000  # frames in a piece of a collection
ORDINARY, LIFE_LOST, EPISODE_ENDED, CUT_OFF = range(4)  # codes in `ends`
COLUMNS: dict[str, tuple[type, tuple[int, ...]]] = {
    "frames": (np.uint8, (SIDE, SIDE)),
    "actions": (np.uint8, ()),
    "ends": (np.uint8, ()),
    "positions": (np.float32, (2,)),
}


class DatasetError(ValueError):
    """A dataset that cannot be read or written; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """R frames of random play; the module says what a row means."""

    frames: np.ndarray  # (R, 84, 84) uint8, memory-mapped when opened from disk
    actions: np.ndarray  # (R,) uint8
    ends: np.ndarray  # (R,) uint8
    positions: np.ndarray  # (R, 2) float32, in pixels of the world's own screen (about["screen"]: height, width)
    n_actions: int
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_arrays(cls, frames, actions, ends, n_actions: int, positions=None, about=None) -> Dataset:
        """A dataset in memory, after checking that the arrays belong together."""
        n_actions = _require.whole(n_actions, "n_actions", 1, NO_ACTION)
        about = {} if about is None else dict(_require.mapping(about, "about", "words on how it was made"))
        for array, name in ((frames, "frames"), (actions, "actions"), (ends, "ends")):
            _require.instance(array, name, np.ndarray)
        if not frames.ndim or not len(frames):
            raise DatasetError("frames must hold at least one frame.")
        if positions is None:
            positions = np.full((len(frames), 2), np.nan, np.float32)
        arrays = {"frames": frames, "actions": actions, "ends": ends, "positions": positions}
        for name, (kind, shape) in COLUMNS.items():
            array = _require.instance(arrays[name], name, np.ndarray)
            if array.dtype != kind or array.shape != (len(frames), *shape):
                raise DatasetError(
                    f"{name} should be {np.dtype(kind)} of shape {(len(frames), *shape)}, but is {array.dtype} of shape "
                    f"{array.shape}."
                )
        taken = np.asarray(actions)
        if not len(taken) or taken[-1] != NO_ACTION or taken[taken != NO_ACTION].max(initial=0) >= n_actions:
            raise DatasetError(
                f"actions should be below {n_actions}, or {NO_ACTION} where an episode ends, as it must in the last row."
            )
        if np.max(ends) > CUT_OFF:
            raise DatasetError(f"ends should be at most {CUT_OFF}, but one of them is {np.max(ends)}.")
        return cls(**arrays, n_actions=n_actions, about=about)

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def transitions(self) -> np.ndarray:
        """(N,) int64 rows t from which a transition leads to row t + 1."""
        return np.flatnonzero(np.asarray(self.actions) != NO_ACTION)


def open_dataset(path: Path | str, verify: bool = True) -> Dataset:
    """A collected dataset, memory-mapped; `verify` also compares every byte with the checksums (seconds a gigabyte)."""
    from eigenlib.atari._shards import sha256

    path, verify = _require.path(path, "path"), _require.flag(verify, "verify")
    again = "delete the folder and collect or fetch the dataset again."
    if not (path / "about.json").is_file():
        begun = (path / "plan.json").is_file()
        advice = "its collection was not finished; run it again and it goes on." if begun else "collect one first."
        raise DatasetError(f"There is no whole dataset in {path}: {advice}")
    try:
        about = json.loads((path / "about.json").read_text(encoding="utf-8"))
        sums, n_actions = dict(about["sha256"]), int(about["n_actions"])
    except (ValueError, KeyError, TypeError) as problem:
        raise DatasetError(f"about.json in {path} does not describe a dataset: {again}") from problem
    arrays = {}
    for name in COLUMNS:
        file = path / f"{name}.npy"
        if not file.is_file():
            raise DatasetError(f"{file.name} is missing in {path}: {again}")
        try:
            arrays[name] = np.lib.format.open_memmap(file, mode="r")  # refuses objects: nothing is ever unpickled
        except (ValueError, EOFError, OSError, SyntaxError, tokenize.TokenError) as problem:
            raise DatasetError(f"{file.name} in {path} is cut short or is not a plain array: {again}") from problem
        if verify and sha256(file) != sums.get(name):
            raise DatasetError(f"{file.name} in {path} is not the file that about.json describes: {again}")
    return Dataset.from_arrays(**arrays, n_actions=n_actions, about=about)


def play(
    world: PixelWorld,
    rows: int,
    rng: int | np.random.Generator,
    episode_steps: int | None = None,
    one_room: bool = True,
) -> tuple[dict[str, np.ndarray], float]:
    """`rows` rows of uniformly random play from a reset on, as arrays by name, and the sum of their rewards."""
    require_pixel_world(world)
    rows, rng = _require.whole(rows, "rows", 2, 10**9), _require.generator(rng)
    episode_steps = None if episode_steps is None else _require.whole(episode_steps, "episode_steps", 1)
    one_room = _require.flag(one_room, "one_room")
    table: dict[str, np.ndarray] = {name: np.zeros((rows, *shape), kind) for name, (kind, shape) in COLUMNS.items()}
    frames, actions, ends, positions = table.values()
    actions[:], positions[:] = NO_ACTION, np.nan
    choices = rng.integers(world.n_actions, size=rows).tolist()
    room = getattr(world, "room", _nowhere) if one_room else _nowhere
    earned, start, limit = 0.0, -1, episode_steps or rows
    for t in range(rows):
        if start < 0:
            world.reset()
            start, home = t, room()
        frames[t] = world.frame()
        if where := world.position():
            positions[t] = where
        if t > start and (world.over or t - start == limit or t == rows - 1):
            ended = world.over and not getattr(world, "cut_off", False)
            ends[t - 1] = EPISODE_ENDED if ended else ends[t - 1] or CUT_OFF
            start = -1
        elif t < rows - 1:
            lives = world.lives
            reward = world.act(choices[t])
            if room() == home or world.over:
                actions[t], ends[t] = choices[t], LIFE_LOST if world.lives < lives else ORDINARY
                earned += reward
            else:  # out of the room: this row becomes the episode's last
                if t > start:
                    ends[t - 1] = ends[t - 1] or CUT_OFF
                start = -1
    return table, earned


def _nowhere() -> None:
    """The room of a world that has no rooms."""


def collect(
    world: str | PixelMaze | Emulator | Callable[[int], PixelWorld],
    samples: int,
    path: Path | str,
    *,
    processes: int = 1,
    seed: int = 0,
    shard: int = SHARD,
    episode_steps: int | None = None,
    one_room: bool = True,
    progress: bool = True,
    **options: Any,
) -> Dataset:
    """Store `samples` frames of uniformly random play in the folder `path`; goes on where an earlier call was stopped.

    world: a game's name, with `options` for the Emulator (frame_skip, sticky, mode, …); or a PixelMaze; or a function
    seed → PixelWorld. Only a game's name can use several `processes`; they change the time, never the files.
    shard: frames in a piece; each begins with a reset and depends on `seed` and its number alone.
    episode_steps: cut episodes off after so many decisions.
    one_room: also cut them off before the first decision that leaves the first room (Montezuma's Revenge) or town (Bank
    Heist, where towns differ in colours and walls). The frame beyond is not stored.
    Of `samples` frames nearly as many transitions come: no transition starts at the end of an episode or of a shard.
    """
    from eigenlib.atari import _shards

    samples, shard = _require.whole(samples, "samples", 2, 10**12), _require.whole(shard, "shard", 2)
    processes, seed = _require.whole(processes, "processes", 1, 1024), _require.whole(seed, "seed", 0)
    episode_steps = None if episode_steps is None else _require.whole(episode_steps, "episode_steps", 1)
    one_room, progress = _require.flag(one_room, "one_room"), _require.flag(progress, "progress")
    path = _require.path(path, "path")
    if path.is_file():
        raise DatasetError(f"{path} is a file, so no dataset can be stored there: choose another folder.")
    if isinstance(world, str):
        emulator = Emulator(world, **options)
        make: Callable[[int], PixelWorld] = emulator.seeded
    elif options:
        raise DatasetError(f"{', '.join(options)}: such options go with a game's name; set them on the world itself.")
    else:
        make, processes = world.seeded if isinstance(world, PixelMaze | Emulator) else world, 1
        if not callable(make):
            raise DatasetError(
                f"world must be a game's name, a PixelMaze, or a function that makes a world, got {_require.shown(world)}."
            )
    plan = _shards.plan_for(make(seed), samples, seed, shard, episode_steps, one_room)
    with alone_in(path):
        if not _shards.finished(path, plan):
            _shards.prepare(path, plan)
            _shards.fill(path, plan, make, processes, progress)
            _shards.finish(path, plan)
    return open_dataset(path, verify=False)
