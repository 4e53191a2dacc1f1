"""Results on disk that can be trusted: arrays beside a description of how they were made (data/reference, .cache).

path.npz holds the arrays, never pickled; path.json the command, parameters, seeds, versions and the checksum of the arrays.
Both are written under another name first, the description last, so each is whole; a pair that a kill has torn is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


def save(path: Path | str, arrays: Mapping[str, np.ndarray], **about: Any) -> None:
    """Write path.npz and path.json; `about` is what the description should say besides versions and checksum."""
    path, buffer = Path(path), io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **dict(arrays))
    versions = {name: version(name) for name in ("numpy", "scipy", "numba")} | {"python": platform.python_version()}
    about |= {"versions": versions, "sha256": hashlib.sha256(buffer.getvalue()).hexdigest()}
    replace_file(path.with_name(path.name + ".npz"), buffer.getvalue())
    text = json.dumps(about, indent=1, ensure_ascii=False, default=lambda number: number.item()) + "\n"
    replace_file(path.with_name(path.name + ".json"), text.encode())


def load(path: Path | str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and their description, after checking that they belong together."""
    path = Path(path)
    about = json.loads(path.with_name(path.name + ".json").read_text(encoding="utf-8"))
    if not isinstance(about, dict):
        raise ValueError(f"{path.name}.json describes no arrays: fetch it and {path.name}.npz again.")
    data = path.with_name(path.name + ".npz").read_bytes()
    if hashlib.sha256(data).hexdigest() != about.get("sha256"):
        again = f", or make them anew with: {about['command']}" if "command" in about else ""
        raise ValueError(
            f"{path.name}.npz is not the file that {path.name}.json describes (the checksums differ): fetch both again{again}."
        )
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}, about


def code_of(*modules: str) -> dict[str, str]:
    """A checksum of each module that numbers come from."""
    here = Path(__file__).parent
    return {name: hashlib.sha256((here / f"{name}.py").read_bytes()).hexdigest()[:16] for name in modules}


def replace_file(path: Path, data: bytes) -> None:
    """Write a file under another name and rename it, so that it is whole whenever it is there; a full disk leaves no half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make a folder and refuse to share it with another process that writes there; leave no empty folder behind."""
    folder.mkdir(parents=True, exist_ok=True)
    name = folder / ".lock"
    lock = open(name, "w")  # noqa: SIM115
    try:
        with contextlib.suppress(ImportError):  # Windows has no fcntl, and no such guard
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock.fileno()).st_ino != os.stat(name).st_ino:
                raise OSError  # who had it has just removed it, and another may have made a new one
    except OSError:
        lock.close()
        raise ValueError(f"Another process is at work in {folder}: wait for it, or choose another folder.") from None
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            name.unlink()  # while it is still ours
        lock.close()
        with contextlib.suppress(OSError):
            folder.rmdir()  # only if nothing was written
