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
Until then plan.json says what is being collected, and shards/ holds the finished ones, each an archive of its rows. In the
end they are put together; about.json is written last: a folder with about.json is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import tokenize
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tqdm.auto import tqdm

from eigenlib import _require, storage
from eigenlib.atari.emulator import Emulator
from eigenlib.atari.pixels import SIDE, PixelMaze, PixelWorld, require_pixel_world

NO_ACTION = 255
SHARD = 5000  # frames in a piece of a collection
_LONGEST = 100_000  # frames in a piece: a gigabyte of them at most is read at a time
Maker = Callable[[int], PixelWorld]
ORDINARY, LIFE_LOST, EPISODE_ENDED, CUT_OFF = range(4)  # codes in `ends`
COLUMNS: dict[str, tuple[type, tuple[int, ...]]] = {
    "frames": (np.uint8, (SIDE, SIDE)),
    "actions": (np.uint8, ()),
    "ends": (np.uint8, ()),
    "positions": (np.float32, (2,)),
}
_NO_ARRAY = (OSError, ValueError, EOFError, SyntaxError, tokenize.TokenError)  # what numpy says of a damaged file


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
        if not _require.instance(frames, "frames", np.ndarray).ndim or not len(frames):
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
        if taken[-1] != NO_ACTION or taken[taken != NO_ACTION].max(initial=0) >= n_actions:
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


def require_dataset(dataset: Any) -> None:
    if not all(hasattr(dataset, part) for part in ("frames", "actions", "ends", "n_actions", "transitions")):
        raise ValueError(f"dataset must be a Dataset (see open_dataset and collect), got {_require.shown(dataset)}.")


def open_dataset(path: Path | str, verify: bool = True) -> Dataset:
    """A collected dataset, memory-mapped; `verify` also compares every byte with the checksums (seconds a gigabyte)."""
    path, verify = _require.path(path, "path"), _require.flag(verify, "verify")
    again = "delete the folder and collect or fetch the dataset again."
    if not (path / "about.json").is_file():
        begun = (path / "plan.json").is_file()
        advice = "its collection was not finished; run it again and it goes on." if begun else "collect one first."
        raise DatasetError(f"There is no whole dataset in {path}: {advice}")
    try:
        about: dict[str, Any] = storage.read_description(path / "about.json") or {}
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
        except _NO_ARRAY as problem:
            raise DatasetError(f"{file.name} in {path} is cut short or is not a plain array: {again}") from problem
        longer = file.stat().st_size != arrays[name].offset + arrays[name].nbytes
        if longer or (verify and _sha256(file) != sums.get(name)):
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
    world: str | PixelMaze | Emulator | Maker,
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
    samples, shard = _require.whole(samples, "samples", 2, 10**12), _require.whole(shard, "shard", 2)
    processes, seed = _require.whole(processes, "processes", 1, 1024), _require.whole(seed, "seed", 0)
    episode_steps = None if episode_steps is None else _require.whole(episode_steps, "episode_steps", 1)
    one_room, progress = _require.flag(one_room, "one_room"), _require.flag(progress, "progress")
    if min(shard, samples) > _LONGEST:
        raise DatasetError(
            f"shard must be at most {_LONGEST}, got {shard}: a piece is kept in memory while it is filled."
        )
    path = _require.path(path, "path")
    if path.is_file():
        raise DatasetError(f"{path} is a file, so no dataset can be stored there: choose another folder.")
    if isinstance(world, str):
        make: Maker = Emulator(world, **options).seeded
    elif options:
        raise DatasetError(f"{', '.join(options)}: such options go with a game's name; set them on the world itself.")
    else:
        make, processes = world.seeded if isinstance(world, PixelMaze | Emulator) else world, 1
        if not callable(make):
            raise DatasetError(
                f"world must be a game's name, a PixelMaze, or a function that makes a world, got {_require.shown(world)}."
            )
    one = make(seed)
    plan = {  # everything that decides the bytes of a dataset
        "game": one.name,
        "parameters": getattr(one, "parameters", {}),
        "n_actions": one.n_actions,
        "action_names": list(getattr(one, "action_names", [])),
        "screen": list(getattr(one, "screen_size", [])),
        "policy": "uniform random",
        "samples": samples,
        "seed": seed,
        "shard": shard,
        "episode_steps": episode_steps,
        "one_room": one_room,
        "versions": {name: version(name) for name in ("ale-py", "numpy")},
    }
    with storage.alone_in(path):
        if not _finished(path, plan):
            needed, free = _room(plan), shutil.disk_usage(path).free
            if free < needed and not (path / "plan.json").is_file():
                raise DatasetError(
                    f"{samples} samples need {needed} bytes ({needed / 1e9:.2f} GB), but {path} has only {free} bytes "
                    f"({free / 1e9:.2f} GB) free: collect fewer, or into a folder on another disk."
                )
            _fill(path, plan, make, processes, progress)
            _finish(path, plan)
        shutil.rmtree(path / "shards", ignore_errors=True)
        (path / "plan.json").unlink(missing_ok=True)
    return open_dataset(path, verify=False)


def _finished(path: Path, plan: dict[str, Any]) -> bool:
    """Whether the folder holds this collection, whole; a folder that holds another one is an error."""
    for name in ("about.json", "plan.json"):
        if (path / name).is_file():
            found = storage.read_description(path / name) or {}
            for key, wanted in json.loads(json.dumps(plan)).items():
                if found.get(key) != wanted:
                    raise DatasetError(
                        f"{path} holds another collection ({key}: {found.get(key)} instead of {wanted}): choose another "
                        "folder or delete it."
                    )
    return (path / "about.json").is_file()


def _fill(path: Path, plan: dict[str, Any], make: Maker, processes: int, progress: bool) -> None:
    """Collect every shard that is not there yet, or not whole."""
    if (path / "shards").is_symlink():  # nobody here makes links: this one would have us write somewhere else
        (path / "shards").unlink()
    storage.write_description(path / "plan.json", plan)
    sizes = _sizes(plan)
    missing = [k for k in range(len(sizes)) if _shard(path, plan, k) is None]
    for k in missing:
        (path / "shards" / f"{k:05}.json").unlink(missing_ok=True)
    there, name = plan["samples"] - sum(sizes[k] for k in missing), f"collecting {plan['game']}"
    with tqdm(total=plan["samples"], initial=there, unit=" frames", desc=name, disable=not progress) as bar:
        if processes == 1 or len(missing) == 1:
            for k in missing:
                _collect_shard(path, plan, make, k)
                bar.update(sizes[k])
            return
        workers = [_start_worker(path, missing[i::processes]) for i in range(min(processes, len(missing)))]
        try:
            while missing:
                busy = any(worker.poll() is None for worker in workers)
                ready = [k for k in missing if (path / "shards" / f"{k:05}.json").is_file()]
                if ready:  # an update by nothing would still write a line into a log
                    bar.update(sum(sizes[k] for k in ready))
                missing = [k for k in missing if k not in ready]
                if missing and not ready and not busy:
                    raise DatasetError(
                        f"A collecting process failed; what it said is above. {path} can be taken up again."
                    )
                time.sleep(0.1)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def _sizes(plan: dict[str, Any]) -> list[int]:
    """How many rows each shard has."""
    samples, shard = plan["samples"], plan["shard"]
    return [min(shard, samples - start) for start in range(0, samples, shard)]


def _collect_shard(path: Path, plan: dict[str, Any], make: Maker, k: int) -> None:
    world_seed, policy_seed = np.random.SeedSequence([plan["seed"], k]).generate_state(2).tolist()
    rng, ways = np.random.default_rng(policy_seed), (plan["episode_steps"], plan["one_room"])
    table, reward = play(make(world_seed), _sizes(plan)[k], rng, *ways)
    storage.save(path / "shards" / f"{k:05}", table, reward=reward)


def _shard(path: Path, plan: dict[str, Any], k: int) -> tuple[dict[str, np.ndarray], float] | None:
    """The rows of shard k and the sum of their rewards; None where they are not there, not whole, or something else."""
    try:
        table, about = storage.load(path / "shards" / f"{k:05}")
        for name, (kind, shape) in COLUMNS.items():
            if table[name].dtype != kind or table[name].shape != (_sizes(plan)[k], *shape):
                return None
        return table, float(about["reward"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _start_worker(path: Path, shards: list[int]) -> subprocess.Popen:
    # A fresh interpreter, not a fork of this one: torch may have threads here, and a script may lack a __main__ guard.
    code = "import sys; from eigenlib.atari.dataset import _work; _work(sys.argv[1], *map(int, sys.argv[2:]))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    numbers = map(str, (os.getpid(), *shards))
    return subprocess.Popen([sys.executable, "-c", code, str(path), *numbers], env=environment)


def _work(path: str, parent: int, *shards: int) -> None:
    """What a helping process does; it stops when the one that started it is gone."""

    def watch() -> None:
        # Windows never changes the number, and has a launcher in between.
        while psutil.pid_exists(parent) if os.name == "nt" else os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    plan = storage.read_description(Path(path) / "plan.json") or {}
    emulator = Emulator(**plan["parameters"])
    for k in shards:
        _collect_shard(Path(path), plan, emulator.seeded, k)


def _finish(path: Path, plan: dict[str, Any]) -> None:
    """Put the shards together; then about.json, which says that all is there."""
    rewards, transitions, parts = [], 0, {name: path / f"{name}.npy.part" for name in COLUMNS}
    try:
        with ExitStack() as stack:
            files = {}
            for name, (kind, shape) in COLUMNS.items():
                parts[name].unlink(missing_ok=True)
                files[name] = stack.enter_context(open(parts[name], "xb"))  # x: not through a link
                kinds = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": (plan["samples"], *shape)}
                np.lib.format.write_array_header_1_0(files[name], kinds)
            for k in range(len(_sizes(plan))):
                found = _shard(path, plan, k)
                if found is None:
                    raise DatasetError(f"Piece {k} in {path / 'shards'} was damaged just now: collect again.")
                rewards.append(found[1])
                transitions += int(np.count_nonzero(found[0]["actions"] != NO_ACTION))
                for name, file in files.items():
                    file.write(np.ascontiguousarray(found[0][name]).data)
            for file in files.values():
                file.flush()
                os.fsync(file.fileno())
    except OSError as problem:
        for part in parts.values():
            part.unlink(missing_ok=True)
        raise DatasetError(
            f"{path} cannot take its {plan['samples']} samples ({problem.strerror}): they need {_room(plan)} bytes. Make "
            "room, then run it again, and it goes on."
        ) from problem
    sums = {name: _sha256(part) for name, part in parts.items()}
    for name, part in parts.items():
        part.replace(path / f"{name}.npy")
    about = {"transitions": transitions, "mean_reward": sum(rewards) / max(transitions, 1), "sha256": sums}
    storage.write_description(path / "about.json", plan | about)


def _room(plan: dict[str, Any]) -> int:
    """Bytes of the arrays, and some for the rest."""
    row = sum(int(np.prod(shape)) * np.dtype(kind).itemsize for kind, shape in COLUMNS.values())
    return plan["samples"] * row + 2**20


def _sha256(file: Path) -> str:
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
