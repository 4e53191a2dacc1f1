"""Whole or not at all: files, folders, arrays, tensors, locks. Nothing else here writes what must last.

A file is written under a name of its own, synced, renamed, and its folder synced: whenever the process dies, the old file is
there or the new one, and the next writer removes what a dead one left. No name that exists is ever opened for writing, so
no planted link is followed. What is read is bounded in size and compared with a checksum before it is used.

    path.npz           path.json    arrays, never pickled, and how they were made           save, load
    path.safetensors   path.json    tensors, never pickled, and what they are               save_tensors, load_tensors

Of each pair the description is written last. It has the checksum of the other, so a pair that a kill has torn is refused.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import platform
import re
import secrets
import shutil
import stat
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
from filelock import FileLock, Timeout

from eigenlib import _require

if TYPE_CHECKING:
    import torch

LARGEST = 2**30  # bytes that arrays may take in memory: what we store has at most some megabytes
_LARGEST_TENSORS = 2**33  # bytes of tensors: a checkpoint of the paper's network has 300 million
_LARGEST_DESCRIPTION = 2**26
_AGAIN = "fetch or train it again."
_NO_LINKS = os.O_EXCL | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_LEFTOVER = re.compile(r"\.(?P<name>.+)\.(?P<pid>\d{1,9})-[0-9a-f]{16}\.(?P<kind>part|building|old)")


# --- files and folders ------------------------------------------------------------------------------------------------


def replace_file(path: Path, data: bytes) -> None:
    """Make `data` the contents of a file, at once; a full disk leaves the file as it was and no half of the new one."""
    part = _own_name(path, "part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
        with open(os.open(part, os.O_WRONLY | _NO_LINKS, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        _sync(path.parent)
    except OSError as problem:
        raise _cannot_write(path, len(data), problem) from problem
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _cannot_write(path: Path, size: int, problem: OSError) -> OSError:
    full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
    why = f"{problem.strerror}; it takes {size} bytes" if full else problem.strerror
    told = OSError(f"{path} cannot be written ({why}): make room, or choose another place.")
    told.strerror = why
    return told


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to fill that becomes `path` when the block ends well; until then, and otherwise, `path` stays as it was."""
    building, old = _own_name(path, "building"), _own_name(path, "old")
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent)
    try:
        building.mkdir()
        yield building
        with contextlib.suppress(FileNotFoundError):
            path.rename(old)
        building.rename(path)
        _sync(path.parent)
    finally:
        for leftover in (old, building):
            _settle(leftover, path)


def remove_leftovers(folder: Path) -> None:
    """Remove what writers in this folder left that were killed; of one that died while it swapped folders, keep the old."""
    for name in sorted(os.listdir(folder), reverse=True):
        match = _LEFTOVER.fullmatch(name)
        if match is not None and not psutil.pid_exists(int(match["pid"])):
            _settle(folder / name, folder / match["name"])


def _settle(leftover: Path, path: Path) -> None:
    """A folder that made way for a new one comes back if that never came; all other leftovers go."""
    with contextlib.suppress(OSError):
        if leftover.suffix == ".old" and not path.exists():
            leftover.rename(path)
        elif leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()


def _own_name(path: Path, kind: str) -> Path:
    """A name beside `path` that nobody can have put there before, and that says whose it is."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(8)}.{kind}")


def _sync(folder: Path) -> None:
    """A rename is safe from a power cut once its folder is written; where folders cannot be opened, the system sees to it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make a folder and refuse to share it with another process that writes there; leave no empty folder behind."""
    folder.mkdir(parents=True, exist_ok=True)
    name = folder / ".lock"
    lock = FileLock(name, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(f"Another process is at work in {folder}: wait for it, or choose another folder.") from None
    except OSError as problem:
        raise OSError(f"{name} cannot be locked ({problem.strerror}): remove it, or choose another folder.") from None
    try:
        remove_leftovers(folder)
        yield
    finally:
        with contextlib.suppress(OSError):
            name.unlink()  # while it is still ours: who waits for it sees that it has gone
        lock.release()
        with contextlib.suppress(OSError):
            folder.rmdir()  # only if nothing was written


def read_file(path: Path, most: int) -> bytes:
    """The contents of a file of at most so many bytes; a pipe or a device, which might never end, is refused."""
    try:
        # without O_NONBLOCK, opening a pipe waits for somebody to write into it
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise OSError(errno.EINVAL, "it is no ordinary file")
            if about.st_size > most:
                raise ValueError(
                    f"{path} has {about.st_size} bytes, more than the {most} that can be right: fetch it again."
                )
            return file.read(about.st_size)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is not there: nothing was stored or fetched under this name.") from None
    except OSError as problem:
        raise OSError(f"{path} cannot be read ({problem.strerror}).") from None


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def code_of(*modules: str) -> dict[str, str]:
    """A checksum of each module that numbers come from."""
    here = Path(__file__).parent
    return {name: sha256((here / f"{name}.py").read_bytes())[:16] for name in modules}


# --- descriptions -----------------------------------------------------------------------------------------------------


def write_description(path: Path, about: Mapping[str, Any]) -> None:
    """A JSON object that a person can read."""
    text = json.dumps(about, indent=1, ensure_ascii=False, default=lambda number: number.item()) + "\n"
    replace_file(path, text.encode())


def read_description(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None where it holds something else."""
    try:
        about = json.loads(read_file(path, _LARGEST_DESCRIPTION))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        return None
    return about if isinstance(about, dict) else None


# --- arrays -----------------------------------------------------------------------------------------------------------


def save(path: Path | str, arrays: Mapping[str, np.ndarray], **about: Any) -> None:
    """Write path.npz and path.json; `about` is what the description should say besides versions and checksum."""
    path, buffer = _require.path(path, "path"), io.BytesIO()
    for name, array in _require.mapping(arrays, "arrays", "names and arrays").items():
        if not isinstance(name, str) or not isinstance(array, np.ndarray | np.generic) or array.dtype.hasobject:
            raise ValueError(f"arrays must hold plain arrays under names, but {name!r} holds {_require.shown(array)}.")
    np.savez_compressed(buffer, allow_pickle=False, **dict(arrays))
    versions = {name: version(name) for name in ("numpy", "scipy", "numba")} | {"python": platform.python_version()}
    replace_file(_with(path, ".npz"), buffer.getvalue())
    write_description(_with(path, ".json"), about | {"versions": versions, "sha256": sha256(buffer.getvalue())})


def load(path: Path | str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and their description, after checking that they belong together."""
    path = _require.path(path, "path")
    about = read_description(_with(path, ".json"))
    if about is None:
        raise ValueError(f"{path.name}.json describes no arrays: fetch it and {path.name}.npz again.")
    data = read_file(_with(path, ".npz"), LARGEST)
    if sha256(data) != about.get("sha256"):
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
            why = " ".join(str(problem).split())
            raise ValueError(
                f"{path.name}.npz holds {name!r}, which is no plain array ({why}): fetch it again."
            ) from None
        if left < 0:
            raise ValueError(f"{path.name}.npz would take more than {LARGEST} bytes of memory: nothing of ours does.")
        with archive.open(entry) as file:
            found[name] = np.lib.format.read_array(file, allow_pickle=False)
    return found


# --- tensors ----------------------------------------------------------------------------------------------------------


def save_tensors(
    path: Path | str, tensors: Mapping[str, torch.Tensor], about: Mapping[str, Any], file: str = ""
) -> None:
    """Write path.safetensors, or the file of another name beside it, and then path.json, which names and describes it.

    With another name each time (a checkpoint's number), path.json names tensors that are whole whenever the process dies:
    the old ones until the instant of the last rename, the new ones after it.
    """
    from safetensors.torch import save

    path = _require.path(path, "path")
    data = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    replace_file(path.with_name(file) if file else _with(path, ".safetensors"), data)
    write_description(_with(path, ".json"), {**about, **({"file": file} if file else {}), "sha256": sha256(data)})


def load_tensors(path: Path | str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors, all of finite numbers, and their description, after checking that they belong together."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    path = _require.path(path, "path")
    about = tensors_description(path)
    name = about.get("file", f"{path.name}.safetensors")
    if "file" in about and not (isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_-]+\.safetensors", name)):
        raise ValueError(f"{_with(path, '.json')} does not name its tensors ('file' is {name!r}): {_AGAIN}")
    where = path.with_name(name)
    try:
        data = read_file(where, _LARGEST_TENSORS)
    except FileNotFoundError:
        raise ValueError(f"{where} is missing, though its description names it: {_AGAIN}") from None
    if sha256(data) != about.get("sha256"):
        raise ValueError(f"{where} is not the file that its description names (the checksums differ): {_AGAIN}")
    try:
        tensors = load(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ValueError(f"{where} is not a safetensors file ({error}): {_AGAIN}") from None
    for entry, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ValueError(f"{where} holds entries in {entry!r} that are not finite numbers: {_AGAIN}")
    return tensors, about


def tensors_description(path: Path) -> dict[str, Any]:
    """What path.json says of the tensors, unread."""
    where = _with(path, ".json")
    try:
        about = read_description(where)
    except FileNotFoundError:
        raise FileNotFoundError(f"{where} does not exist: nothing was trained or saved there yet.") from None
    if about is None:
        raise ValueError(f"{where} is not a description of a network (no valid JSON object): {_AGAIN}")
    return about


def _with(path: Path, suffix: str) -> Path:
    """A path with something after its name, which may have dots of its own."""
    return path.with_name(path.name + suffix)
