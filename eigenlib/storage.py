"""Results on disk that can be trusted: arrays beside a description of how they were made (data/reference, .cache).

path.npz holds the arrays, never pickled; path.json the command, parameters, seeds, versions and the checksum of the arrays.
Both are written under another name first, the description last, so each is whole; a pair that a kill has torn is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import platform
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from eigenlib import _require

LARGEST = 2**30  # bytes that arrays may take in memory: what we store has at most some megabytes
_ABOUT = 2**24  # bytes of a description


def save(path: Path | str, arrays: Mapping[str, np.ndarray], **about: Any) -> None:
    """Write path.npz and path.json; `about` is what the description should say besides versions and checksum."""
    path, buffer = _require.path(path, "path"), io.BytesIO()
    for name, array in _require.mapping(arrays, "arrays", "names and arrays").items():
        if not isinstance(name, str) or not isinstance(array, np.ndarray | np.generic) or array.dtype.hasobject:
            raise ValueError(f"arrays must hold plain arrays under names, but {name!r} holds {_require.shown(array)}.")
    np.savez_compressed(buffer, allow_pickle=False, **dict(arrays))
    versions = {name: version(name) for name in ("numpy", "scipy", "numba")} | {"python": platform.python_version()}
    about |= {"versions": versions, "sha256": hashlib.sha256(buffer.getvalue()).hexdigest()}
    replace_file(path.with_name(path.name + ".npz"), buffer.getvalue())
    text = json.dumps(about, indent=1, ensure_ascii=False, default=lambda number: number.item()) + "\n"
    replace_file(path.with_name(path.name + ".json"), text.encode())


def load(path: Path | str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and their description, after checking that they belong together."""
    path = _require.path(path, "path")
    try:
        about = json.loads(_read(path.with_name(path.name + ".json"), _ABOUT))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise ValueError(f"{path.name}.json describes no arrays: fetch it and {path.name}.npz again.")
    data = _read(path.with_name(path.name + ".npz"), LARGEST)
    if hashlib.sha256(data).hexdigest() != about.get("sha256"):
        again = f", or make them anew with: {about['command']}" if "command" in about else ""
        raise ValueError(
            f"{path.name}.npz is not the file that {path.name}.json describes (the checksums differ): fetch both again{again}."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _arrays(archive, path), about
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        raise ValueError(
            f"{path.name}.npz is torn or is no archive of arrays: fetch it and {path.name}.json again."
        ) from None


def _read(path: Path, most: int) -> bytes:
    try:
        if path.stat().st_size > most:
            raise ValueError(
                f"{path} has {path.stat().st_size} bytes, more than the {most} that can be right: fetch it again."
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is not there: nothing was stored or fetched under this name.") from None
    except OSError as problem:
        raise OSError(f"{path} cannot be read ({problem.strerror}).") from None


def _arrays(archive: zipfile.ZipFile, path: Path) -> dict[str, np.ndarray]:
    """Every array, after a look at how large it says it is: a megabyte can unpack into terabytes."""
    found, left = {}, LARGEST
    for entry in archive.infolist():
        name = entry.filename.removesuffix(".npy")
        try:
            with archive.open(entry) as file:
                header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                shape, _, kind = header[np.lib.format.read_magic(file)](file)
                size = kind.itemsize * math.prod(shape)
                left -= size
                if kind.hasobject or size != entry.file_size - file.tell():
                    raise ValueError(f"its header tells of {size} bytes of {kind}")
        except (ValueError, KeyError, SyntaxError, tokenize.TokenError) as problem:
            said = " ".join(str(problem).split())
            raise ValueError(
                f"{path.name}.npz holds {name!r}, which is no plain array ({said}): fetch it again."
            ) from None
        if left < 0:
            raise ValueError(f"{path.name}.npz would take more than {LARGEST} bytes of memory: nothing of ours does.")
        with archive.open(entry) as file:
            found[name] = np.lib.format.read_array(file, allow_pickle=False)
    return found


def code_of(*modules: str) -> dict[str, str]:
    """A checksum of each module that numbers come from."""
    here = Path(__file__).parent
    return {name: hashlib.sha256((here / f"{name}.py").read_bytes()).hexdigest()[:16] for name in modules}


def replace_file(path: Path, data: bytes) -> None:
    """Write a file under another name and rename it, so that it is whole whenever it is there; a full disk leaves no half."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as problem:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise OSError(
            f"{path} cannot be written ({problem.strerror}): make room, or choose another place."
        ) from problem


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
