"""Maps as text: the bundled ones, one from a file, and what is refused, with its line and column."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eigenlib import _require
from eigenlib.paths import MAPS

ARROWS = "^>v<"  # one-way doors, in action order
WALLS, NAMES = "X#", "ABCDEFGHIJKLMNOPQRSTUVWYZ"


class MapError(ValueError):
    """A map that cannot be a world; the message says where and why."""


def map_names() -> list[str]:
    """The names of the bundled maps."""
    return sorted(path.stem for path in MAPS.glob("*.txt"))


def find(name: str | Path) -> tuple[str, str]:
    """The text and the name of a bundled map, or of one in a file."""
    if not isinstance(name, str | Path):
        raise MapError(f"A map's name is text, got {_require.shown(name)}; there are {', '.join(map_names())}.")
    if Path(name).is_absolute() and Path(name).is_file():
        return _read(Path(name)), Path(name).stem
    if name not in map_names():
        raise MapError(
            f"There is no bundled map called {name!r}; there are {', '.join(map_names())}. For your own give its whole path."
        )
    return _read(MAPS / f"{name}.txt"), str(name)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise MapError(
            f"{path.name} is not a text file in UTF-8 (byte {problem.start}): save it again as UTF-8."
        ) from None
    except OSError as problem:
        raise MapError(f"{path.name} cannot be read: {problem.strerror or problem}.") from None


def characters(text: str) -> np.ndarray:
    """(H, W) the map's characters, checked."""
    lines = text.splitlines()
    if not any(line.strip() for line in lines):
        raise MapError("The map is empty: give at least one line with one free cell '.'.")
    width = len(lines[0])
    for number, line in enumerate(lines, start=1):
        if len(line) != width:
            raise MapError(
                f"Line {number} of the map has {len(line)} characters but line 1 has {width}: the map ends unevenly "
                f"at line {number}, column {min(len(line), width) + 1}. Make all lines equally long."
            )
    grid = np.array(lines).view("<U1").reshape(len(lines), width)
    known = np.isin(grid, list(WALLS + "." + ARROWS + NAMES))
    if not known.all():
        row, col = np.argwhere(~known)[0]
        raise MapError(
            f"Unknown character {str(grid[row, col])!r} at line {row + 1}, column {col + 1}: "
            "use X or # for a wall, '.' for a free cell, ^ > v < for a one-way door, a capital letter for a name."
        )
    if np.isin(grid, list(WALLS)).all():
        raise MapError("The map has walls only (from line 1, column 1 on): it needs at least one free cell '.'.")
    return grid
