"""Results on disk that can be trusted: arrays beside a description of how they were made (data/reference, .cache).

path.npz holds the arrays, never pickled; path.json the command, parameters, seeds, versions and the checksum of the arrays.
Both are written under another name first, the description last, so what has the right name is whole.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
from collections.abc import Mapping
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
    _write(path.with_name(path.name + ".npz"), buffer.getvalue())
    text = json.dumps(about, indent=1, ensure_ascii=False, default=int) + "\n"
    _write(path.with_name(path.name + ".json"), text.encode())


def load(path: Path | str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and their description, after checking that they belong together."""
    path = Path(path)
    about = json.loads(path.with_name(path.name + ".json").read_text(encoding="utf-8"))
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


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)
