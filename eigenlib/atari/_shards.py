"""How `dataset.collect` fills a folder: piece by piece, by one or several processes, killed and taken up again.

While a collection is under way its folder holds plan.json (what is being collected), the arrays as *.npy.part at their
full size, and shards/ with one small file for each finished piece: a checksum of its rows, written after the rows were.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tokenize
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from eigenlib.atari.dataset import COLUMNS, NO_ACTION, DatasetError, play
from eigenlib.atari.pixels import PixelWorld
from eigenlib.storage import replace_file

Maker = Callable[[int], PixelWorld]


def plan_for(
    world: PixelWorld, samples: int, seed: int, shard: int, episode_steps: int | None, one_room: bool
) -> dict[str, Any]:
    """Everything that decides the bytes of a dataset, as it stands in plan.json and about.json."""
    return {
        "game": world.name,
        "parameters": getattr(world, "parameters", {}),
        "n_actions": world.n_actions,
        "action_names": list(getattr(world, "action_names", [])),
        "screen": list(getattr(world, "screen_size", [])),
        "policy": "uniform random",
        "samples": samples,
        "seed": seed,
        "shard": shard,
        "episode_steps": episode_steps,
        "one_room": one_room,
        "versions": {name: version(name) for name in ("ale-py", "numpy")},
    }


def finished(path: Path, plan: dict[str, Any]) -> bool:
    """Whether the folder holds this collection, whole; a folder that holds another one is an error."""
    for name in ("about.json", "plan.json"):
        if (path / name).is_file():
            try:
                found = json.loads((path / name).read_text(encoding="utf-8"))
            except ValueError:
                found = {}
            found = found if isinstance(found, dict) else {}
            for key, wanted in json.loads(json.dumps(plan)).items():
                if found.get(key) != wanted:
                    raise DatasetError(
                        f"{path} holds another collection ({key}: {found.get(key)} instead of {wanted}): choose another "
                        "folder or delete it."
                    )
            if name == "about.json":
                _tidy(path)
                return True
    return False


def prepare(path: Path, plan: dict[str, Any]) -> None:
    """The arrays at full size, their room on the disk reserved, and then plan.json."""
    rows = plan["samples"]
    if (path / "plan.json").is_file() and _prepared(path, rows):
        return
    shutil.rmtree(path / "shards", ignore_errors=True)
    for name in COLUMNS:
        _file(path, name).unlink(missing_ok=True)
    row = sum(int(np.prod(shape)) * np.dtype(kind).itemsize for kind, shape in COLUMNS.values())
    needed, free = rows * row + 2**20, shutil.disk_usage(path).free
    if free < needed:
        raise DatasetError(
            f"{rows} samples need {needed} bytes ({needed / 1e9:.2f} GB), but {path} has only {free} bytes "
            f"({free / 1e9:.2f} GB) free: collect fewer, or into a folder on another disk."
        )
    for name, (kind, shape) in COLUMNS.items():
        file = _file(path, name)
        np.lib.format.open_memmap(file, mode="w+", dtype=kind, shape=(rows, *shape)).flush()
        if hasattr(os, "posix_fallocate"):  # a disk that fills up under a memory map would kill the process
            with open(file, "r+b") as handle:
                os.posix_fallocate(handle.fileno(), 0, file.stat().st_size)
    (path / "shards").mkdir(exist_ok=True)
    _write(path / "plan.json", plan)


def _prepared(path: Path, rows: int) -> bool:
    try:
        return all(array.shape == (rows, *COLUMNS[name][1]) for name, array in _arrays(path, "r").items())
    except (OSError, ValueError, EOFError, SyntaxError, tokenize.TokenError):
        return False


def fill(path: Path, plan: dict[str, Any], make: Maker, processes: int, progress: bool) -> None:
    """Every shard that is not there yet, or whose rows are not what its checksum says."""
    from tqdm.auto import tqdm

    count = -(-plan["samples"] // plan["shard"])
    arrays = _arrays(path, "r+")
    missing = []
    for k in range(count):
        mark = _mark(path, k)
        if not mark or mark["sha256"] != _checksum(arrays, _rows(plan, k)):
            (path / "shards" / f"{k:05}.json").unlink(missing_ok=True)
            missing.append(k)
    with tqdm(
        total=plan["samples"],
        initial=plan["samples"] - sum(len(_rows(plan, k)) for k in missing),
        unit=" frames",
        desc=f"collecting {plan['game']}",
        disable=not progress,
    ) as bar:
        if processes == 1 or len(missing) == 1:
            for k in missing:
                fill_shard(path, plan, make, k)
                bar.update(len(_rows(plan, k)))
            return
        shares = [missing[i::processes] for i in range(min(processes, len(missing)))]
        workers = [_start_worker(path, share) for share in shares]
        try:
            while missing:
                busy = [worker for worker in workers if worker.poll() is None]
                ready = [k for k in missing if _mark(path, k)]
                if ready:  # an update by nothing would still write a line into a log
                    bar.update(sum(len(_rows(plan, k)) for k in ready))
                missing = [k for k in missing if k not in ready]
                if not ready and not busy and missing:
                    raise DatasetError(
                        f"A collecting process failed; what it said is above. {path} can be taken up again."
                    )
                time.sleep(0.1)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def fill_shard(path: Path, plan: dict[str, Any], make: Maker, k: int) -> None:
    """Collect shard k, put its rows in place, then say that it is done."""
    rows = _rows(plan, k)
    world_seed, policy_seed = np.random.SeedSequence([plan["seed"], k]).generate_state(2).tolist()
    table, earned = play(
        make(world_seed), len(rows), np.random.default_rng(policy_seed), plan["episode_steps"], plan["one_room"]
    )
    arrays = _arrays(path, "r+")
    for name, array in arrays.items():
        array[rows.start : rows.stop] = table[name]
        array.flush()
    _write(path / "shards" / f"{k:05}.json", {"sha256": _checksum(arrays, rows), "reward": earned})


def work(path: str, parent: int, *shards: int) -> None:
    """What a helping process does; it stops when the one that started it is gone."""
    from eigenlib.atari.emulator import Emulator

    folder = Path(path)
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    emulator = Emulator(**plan["parameters"])
    for k in shards:
        if os.getppid() != parent:
            return
        fill_shard(folder, plan, emulator.seeded, k)


def finish(path: Path, plan: dict[str, Any]) -> None:
    """Give the arrays their names; then about.json, which says that all is there."""
    count = -(-plan["samples"] // plan["shard"])
    reward = sum(_mark(path, k)["reward"] for k in range(count))
    actions = _arrays(path, "r")["actions"]
    transitions = int(np.count_nonzero(actions != NO_ACTION))
    sums = {name: sha256(_file(path, name)) for name in COLUMNS}
    for name in COLUMNS:
        _file(path, name).replace(path / f"{name}.npy")
    about = plan | {"transitions": transitions, "mean_reward": reward / max(transitions, 1), "sha256": sums}
    _write(path / "about.json", about)
    _tidy(path)


def sha256(file: Path) -> str:
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _start_worker(path: Path, shards: list[int]) -> subprocess.Popen:
    # A fresh interpreter, not a fork of this one: torch may have threads here, and a script may lack a __main__ guard.
    code = "import sys; from eigenlib.atari._shards import work; work(sys.argv[1], *map(int, sys.argv[2:]))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    numbers = map(str, (os.getpid(), *shards))
    return subprocess.Popen([sys.executable, "-c", code, str(path), *numbers], env=environment)


def _rows(plan: dict[str, Any], k: int) -> range:
    return range(k * plan["shard"], min((k + 1) * plan["shard"], plan["samples"]))


def _file(path: Path, name: str) -> Path:
    """The array under its own name, or while it is being filled under another."""
    whole = path / f"{name}.npy"
    return whole if whole.is_file() else path / f"{name}.npy.part"


def _arrays(path: Path, mode: Any) -> dict[str, np.memmap]:
    return {name: np.lib.format.open_memmap(_file(path, name), mode=mode) for name in COLUMNS}


def _checksum(arrays: Mapping[str, np.ndarray], rows: range) -> str:
    digest = hashlib.sha256()
    for name in COLUMNS:
        digest.update(np.ascontiguousarray(arrays[name][rows.start : rows.stop]).data)
    return digest.hexdigest()


def _mark(path: Path, k: int) -> dict[str, Any]:
    """What a finished shard left behind; empty when it is not finished."""
    file = path / "shards" / f"{k:05}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _write(file: Path, content: dict[str, Any]) -> None:
    replace_file(file, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _tidy(path: Path) -> None:
    shutil.rmtree(path / "shards", ignore_errors=True)
    (path / "plan.json").unlink(missing_ok=True)
