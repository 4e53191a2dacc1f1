"""Worlds drawn with characters (the environment of §4.1 and Fig. 1; notebook 01).

A map is text. Every free cell is a state, numbered row by row from the top left; four actions, always in the order
up, right, down, left; a move into a wall leaves the agent where it is.

    X or #       a wall                 .          a free cell
    A–W, Y, Z    a free cell with a name (`world.landmarks`)
    ^ > v <      a one-way door: entered from any side, left only in the direction it points

With `slip` = p the agent moves as intended with probability 1−p and to either side of that direction with p/2 each.
Under the uniform policy every direction stays equally likely, so slipping changes what options can do but not T.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from eigenlib import _require
from eigenlib._require import require_floats, require_number, require_positive, require_seed, require_state
from eigenlib.paths import MAPS
from eigenlib.worlds import Outcome, World

ACTIONS = ("up", "right", "down", "left")
MOVES = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])  # (A, 2): rows grow downwards
ARROWS = "^>v<"  # a door's character, in action order
_LARGEST = 10**8  # cells of a map that is made; one of a million states takes some hundred megabytes
_WALLS, _NAMES = "X#", "ABCDEFGHIJKLMNOPQRSTUVWYZ"


class MapError(ValueError):
    """A map that cannot be a world; the message says where and why."""


@dataclass(frozen=True, eq=False)
class GridWorld(World):
    """S states on an (H, W) grid. Make one with `GridWorld.named(...)` or `GridWorld.from_text(...)`.

    For dynamics of your own on the same map, override `outcomes` (`worlds.py` says how; notebook 07).
    """

    text: str
    name: str = ""
    slip: float = 0.0
    n_actions: int = field(default=4, init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise MapError(f"A map is text, one line per row of cells, got {_require.shown(self.text)}.")
        _require.text(self.name, "name")
        if not 0.0 <= require_number(self.slip, "slip") <= 1.0:
            raise ValueError(f"slip is a probability between 0 and 1, not {self.slip!r}.")
        self._require_one_piece()

    @classmethod
    def named(cls, name: str, slip: float = 0.0) -> GridWorld:
        """A bundled map, by name (`map_names()` lists them), or the map in a text file, by its whole path."""
        if not isinstance(name, str | Path):
            raise MapError(f"A map's name is text, got {_require.shown(name)}; there are {', '.join(map_names())}.")
        if Path(name).is_absolute() and Path(name).is_file():
            return cls.from_text(_read(Path(name)), slip=slip, name=Path(name).stem)
        if name not in map_names():
            known = ", ".join(map_names()) or "none, because eigenlib was installed without its repository"
            raise MapError(
                f"There is no bundled map called {name!r}; there are {known}. For your own give its whole path."
            )
        return cls.from_text(_read(MAPS / f"{name}.txt"), slip=slip, name=str(name))

    @classmethod
    def from_text(cls, text: str, slip: float = 0.0, name: str = "") -> GridWorld:
        """A world from a drawing (see the module's legend). Errors name line and column, counted from 1."""
        if not isinstance(text, str):
            raise MapError(f"A map is text, one line per row of cells, got {type(text).__name__}.")
        lines = textwrap.dedent(text).splitlines()
        while lines and not lines[0].strip():
            del lines[0]
        while lines and not lines[-1].strip():
            del lines[-1]
        return cls("\n".join(lines), name=name, slip=slip)

    # --- geometry ---------------------------------------------------------------------------------------------------

    @cached_property
    def characters(self) -> np.ndarray:
        """(H, W) the map's characters, checked."""
        lines = self.text.splitlines()
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
        known = np.isin(grid, list(_WALLS + "." + ARROWS + _NAMES))
        if not known.all():
            row, col = np.argwhere(~known)[0]
            raise MapError(
                f"Unknown character {str(grid[row, col])!r} at line {row + 1}, column {col + 1}: "
                "use X or # for a wall, '.' for a free cell, ^ > v < for a one-way door, a capital letter for a name."
            )
        if np.isin(grid, list(_WALLS)).all():
            raise MapError("The map has walls only (from line 1, column 1 on): it needs at least one free cell '.'.")
        return grid

    @cached_property
    def free(self) -> np.ndarray:
        """(H, W) bool: where a state is."""
        return ~np.isin(self.characters, list(_WALLS))

    @cached_property
    def cells(self) -> np.ndarray:
        """(S, 2) row and column of each state."""
        return np.argwhere(self.free)

    @cached_property
    def state_at(self) -> np.ndarray:
        """(H, W) the state in each cell, −1 in walls."""
        index = np.full(self.free.shape, -1)
        index[self.free] = np.arange(self.free.sum())
        return index

    @property
    def n_states(self) -> int:  # type: ignore[override]
        return len(self.cells)

    @cached_property
    def landmarks(self) -> dict[str, int]:
        """The map's letters and the state each of them marks; a letter used twice is refused."""
        found: dict[str, int] = {}
        for row, col in np.argwhere(np.isin(self.characters, list(_NAMES))):
            letter = str(self.characters[row, col])
            if letter in found:
                raise MapError(f"The name {letter!r} stands twice, again at line {row + 1}, column {col + 1}.")
            found[letter] = int(self.state_at[row, col])
        return found

    def to_grid(self, values) -> np.ndarray:
        """(S,) values → (H, W) floats for drawing, NaN in walls."""
        values = require_floats(values, "What is drawn")
        if values.shape != (self.n_states,):
            raise ValueError(f"Expected one value for each of the {self.n_states} states, got shape {values.shape}.")
        grid = np.full(self.free.shape, np.nan)
        grid[self.free] = values
        return grid

    def from_grid(self, grid) -> np.ndarray:
        """(H, W) → (S,): the inverse of `to_grid`."""
        _require.numbers(grid, "grid", finite=False)
        grid = np.asarray(grid)
        if grid.shape != self.free.shape:
            raise ValueError(f"Expected a grid of shape {self.free.shape}, got {grid.shape}.")
        return grid[self.free]

    # --- dynamics ---------------------------------------------------------------------------------------------------

    @cached_property
    def next_state(self) -> np.ndarray:
        """(S, A) where each action leads when it does not slip."""
        padded = np.pad(self.state_at, 1, constant_values=-1)  # the edge of the map is a wall
        targets = padded[self.cells[:, None, 0] + MOVES[:, 0] + 1, self.cells[:, None, 1] + MOVES[:, 1] + 1]
        here = np.arange(len(self.cells))[:, None]
        characters = self.characters[self.free]
        for action, arrow in enumerate(ARROWS):
            doors = characters == arrow
            stuck = np.flatnonzero(doors & (targets[:, action] < 0))
            if stuck.size:
                row, col = self.cells[stuck[0]]
                raise MapError(
                    f"The one-way door {arrow!r} at line {row + 1}, column {col + 1} opens into a wall, so it could never "
                    "be left: turn it or open the wall."
                )
            targets[np.ix_(doors, np.arange(len(ACTIONS)) != action)] = -1
        moves = np.where(targets < 0, here, targets)
        moves.flags.writeable = False  # dynamics of one's own belong into outcomes()
        return moves

    def outcomes(self) -> list[Outcome]:
        """What an action can do: (probability, (S, A) next states), probabilities summing to 1 (see `worlds.py`)."""
        left, right = np.roll(self.next_state, 1, axis=1), np.roll(self.next_state, -1, axis=1)
        ways: list[Outcome] = [(1.0 - self.slip, self.next_state), (self.slip / 2, left), (self.slip / 2, right)]
        return ways if self.slip else ways[:1]

    def place(self, state: int) -> str:
        row, col = self.cells[require_state(self.n_states, state, "state")]
        return f"state {state} (row {row}, column {col})"

    def _require_one_piece(self) -> None:
        """Refuse maps in pieces that no way joins, in either direction; also runs every other check of the text."""
        rows = np.repeat(np.arange(self.n_states), len(ACTIONS))
        graph = sparse.csr_matrix((np.ones(rows.size), (rows, self.next_state.ravel())), shape=(self.n_states,) * 2)
        pieces, label = connected_components(graph, connection="weak")
        if pieces > 1:  # on the map; outcomes of one's own may still join them
            pieces, label = connected_components(self.transition_matrix(sparse_result=True), connection="weak")
        if pieces > 1:
            row, col = self.cells[np.argmax(label != np.bincount(label).argmax())]
            raise MapError(
                f"The map falls into {pieces} parts that no path connects; one of them is at line {row + 1}, column "
                f"{col + 1}. Open a wall between them or fill it."
            )
        _ = self.landmarks

    def __repr__(self) -> str:
        height, width = self.free.shape
        slip = f", slip {self.slip:g}" if self.slip else ""
        return f"GridWorld({self.name or 'own map'}: {self.n_states} states on {height}×{width}{slip})"


def map_names() -> list[str]:
    """The names of the bundled maps."""
    return sorted(path.stem for path in MAPS.glob("*.txt"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise MapError(
            f"{path.name} is not a text file in UTF-8 (byte {problem.start}): save it again as UTF-8."
        ) from None
    except OSError as problem:
        raise MapError(f"{path.name} cannot be read: {problem.strerror or problem}.") from None


def big_rooms(rooms: int, size: int, seed: int = 0, loops: float = 0.1, slip: float = 0.0) -> GridWorld:
    """rooms × rooms square rooms of size × size cells, joined by doorways of one cell into a random maze (notebook 07).

    A random spanning tree joins all rooms; each other pair of neighbours is joined too with chance `loops`.
    big_rooms(63, 16) has a million states.
    """
    rooms, size = require_positive(rooms, "rooms"), require_positive(size, "size")
    if not 0 <= require_number(loops, "loops") <= 1:
        raise ValueError(f"loops is a chance between 0 and 1, got {loops!r}.")
    if (rooms * (size + 1)) ** 2 > _LARGEST:
        raise ValueError(
            f"{rooms} × {rooms} rooms of {size} × {size} cells do not fit into memory: a map has at most {_LARGEST:.0e}."
        )
    rng, at = np.random.default_rng(require_seed(seed)), np.arange(rooms * rooms).reshape(rooms, rooms)
    right, below = (at[:, :-1].ravel(), at[:, 1:].ravel()), (at[:-1].ravel(), at[1:].ravel())
    pairs = np.concatenate([right, below], axis=1)
    weights = sparse.csr_matrix((1 + rng.random(pairs.shape[1]), tuple(pairs)), shape=(at.size, at.size))
    tree, more = minimum_spanning_tree(weights).nonzero(), pairs[:, rng.random(pairs.shape[1]) < loops]
    first, second = np.concatenate([tree, more], axis=1)
    wall, along = size + 1, rng.integers(1, size + 1, size=len(first))
    row, col = wall * (first // rooms), wall * (first % rooms)
    down = second - first == rooms
    grid = np.full((rooms * wall + 1, rooms * wall + 1), ord("X"), dtype=np.uint8)
    inside = np.arange(len(grid)) % wall > 0
    grid[np.ix_(inside, inside)] = ord(".")
    grid[row + np.where(down, wall, along), col + np.where(down, along, wall)] = ord(".")
    text = "\n".join(line.tobytes().decode() for line in grid)
    return GridWorld.from_text(text, slip=slip, name=f"{rooms} × {rooms} rooms of {size} × {size}")


def with_valve(world: GridWorld) -> tuple[GridWorld, int]:
    """The world with one passage made one-way, rightwards or downwards, and the state that became its door (notebook 02).

    The first doorway (walls on two opposite sides) that cuts nothing off; where there is none, the first such tile.
    """
    _require.instance(world, "world", GridWorld, "only a map has doors")
    ways = [(s, a) for s in range(world.n_states) for a in (1, 2) if s not in world.next_state[s, [a, a - 2]]]
    if not ways:
        raise MapError("No tile of this map can become a one-way door: none has free cells on two opposite sides.")
    ways.sort(key=lambda way: (world.next_state[way[0], [way[1] - 1, (way[1] + 1) % 4]] != way[0]).any())
    for s, a in (*ways, ways[0]):  # the first again: if every door cuts something off, it must do
        grid = world.characters.copy()
        grid[tuple(world.cells[s])] = ARROWS[a]
        turned = GridWorld.from_text("\n".join("".join(line) for line in grid), world.slip, f"{world.name}, one way")
        if connected_components(turned.adjacency(sparse_result=True), connection="strong")[0] == 1:
            break
    return turned, s
