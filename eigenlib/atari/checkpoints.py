"""Weights on disk that survive a kill and that nobody can hide a program in (safetensors and JSON, never pickle).

A folder holds two files, `run.json` and the tensors that it names:

    checkpoint-000000500.safetensors     written first, under another name, then renamed
    run.json                             written second in the same way: names the tensors and their checksum

Whenever the process dies, run.json names tensors that are whole: the old ones until the instant of the second rename, the
new ones after it. Only then are the old ones removed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as bytes_of_tensors

from eigenlib.storage import replace_file

DESCRIPTION = "run.json"


def write(folder: Path | str, name: str, tensors: Mapping[str, torch.Tensor], about: Mapping[str, Any]) -> None:
    """Make `name`.safetensors and `about` the contents of this folder, in such an order that no moment is torn."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = _encode(tensors)
    replace_file(folder / f"{name}.safetensors", data)
    described = dict(about) | {"file": f"{name}.safetensors", "sha256": sha256(data)}
    replace_file(folder / DESCRIPTION, (json.dumps(described, indent=1, ensure_ascii=False) + "\n").encode())
    for old in (*folder.glob("checkpoint-*.safetensors"), *folder.glob("*.part")):
        if old.name != described["file"]:
            old.unlink(missing_ok=True)


def read(folder: Path | str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors and the description of a folder, or one sentence about what is wrong with them."""
    folder = Path(folder)
    about = read_description(folder / DESCRIPTION)
    name = about.get("file")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]+\.safetensors", name):
        raise ValueError(f"{folder / DESCRIPTION} does not name its tensors ('file' is {name!r}): {_REMEDY}")
    return read_tensors(folder / name, about.get("sha256")), about


def read_description(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist: nothing was trained or saved there yet.") from None
    except OSError as problem:
        raise ValueError(f"{path} cannot be read ({problem.strerror}): {_REMEDY}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError(f"{path} is not a description of a network (no valid JSON): {_REMEDY}") from None
    if not isinstance(about, dict):
        raise ValueError(f"{path} is not a description of a network (no JSON object): {_REMEDY}")
    return about


def read_tensors(path: Path, checksum: Any) -> dict[str, torch.Tensor]:
    """Tensors whose checksum is the one described and whose entries are finite."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{path} is missing, though its description names it: {_REMEDY}") from None
    if sha256(data) != checksum:
        raise ValueError(f"{path} is not the file that its description names (the checksums differ): {_REMEDY}")
    try:
        tensors = tensors_from_bytes(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ValueError(f"{path} is not a safetensors file ({error}): {_REMEDY}") from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ValueError(f"{path} holds entries in {name!r} that are not finite numbers: {_REMEDY}")
    return tensors


def export(path: Path | str, tensors: Mapping[str, torch.Tensor], about: Mapping[str, Any]) -> None:
    """path.safetensors and path.json, for weights that are handed on."""
    path, data = Path(path), _encode(tensors)
    replace_file(path.with_name(path.name + ".safetensors"), data)
    described = dict(about) | {"sha256": sha256(data)}
    text = json.dumps(described, indent=1, ensure_ascii=False) + "\n"
    replace_file(path.with_name(path.name + ".json"), text.encode())


_REMEDY = "fetch or train it again."


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _encode(tensors: Mapping[str, torch.Tensor]) -> bytes:
    return bytes_of_tensors({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
