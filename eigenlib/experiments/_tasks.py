"""Tasks of work that share nothing: each finished one is kept on disk, so that whatever stopped the others, they go on.

A task is a setting, a tuple that says all of it, and `run(setting)` its arrays by name and what their description should
say. Any process may do any of them; what is merged of them in the end is the same.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from tqdm.auto import tqdm

from eigenlib import storage

Arrays = dict[str, np.ndarray]
Found = tuple[Arrays, dict[str, Any]]
S = TypeVar("S", bound=Hashable)


def name_of(setting: Any) -> str:
    """Of the file that keeps a task: the setting's own name, or its entries."""
    return getattr(setting, "name", "") or re.sub(r"[^\w.]+", "-", "-".join(map(str, setting)))


def task(run: Callable[..., Found], setting: Any, folder: Path | None, again: bool = False, **ways: Any) -> Found:
    """What `folder` keeps of one task; where it is not there or not whole, or `again`, the task is done and kept."""
    if folder is None:
        return run(setting, **ways)
    path = folder / name_of(setting)
    if not again:
        with contextlib.suppress(OSError, ValueError):
            return storage.load(path)
    arrays, about = run(setting, **ways)
    storage.save(path, arrays, **about)
    return storage.load(path)


def tasks(
    run: Callable[..., Found], settings: Iterable[S], folder: Path | None, progress: bool = True, **ways: Any
) -> dict[S, Found]:
    """Every task, one after the other; nobody else works in the folder meanwhile."""
    bar = tqdm(list(settings), unit=" tasks", disable=not progress)
    with contextlib.nullcontext() if folder is None else storage.alone_in(folder):
        return {setting: task(run, setting, folder, **ways) for setting in bar}
