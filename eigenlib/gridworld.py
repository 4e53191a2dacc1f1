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

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from eigenlib import _map_text, _moved, _require
from eigenlib._map_text import ARROWS, NAMES, WALLS, MapError, map_names
from eigenlib.worlds import Outcome, World

__all__ = ["ACTIONS", "ARROWS", "MOVES", "GridWorld", "MapError", "map_names"]
__getattr__ = _moved.names_of(__name__)
ACTIONS = ("up", "right", "down", "left")
MOVES = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])  # (A, 2): rows grow downwards


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
        if not 0.0 <= _require.real(self.slip, "slip", finite=False) <= 1.0:
            raise ValueError(f"slip is a probability between 0 and 1, not {self.slip!r}.")
        self._require_one_piece()

    @classmethod
    def named(cls, name: str, slip: float = 0.0) -> GridWorld:
        """A bundled map, by name (`map_names()` lists them), or the map in a text file, by its whole path."""
        text, found = _map_text.find(name)
        return cls.from_text(text, slip=slip, name=found)

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
        return _map_text.characters(self.text)

    @cached_property
    def free(self) -> np.ndarray:
        """(H, W) bool: where a state is."""
        return ~np.isin(self.characters, list(WALLS))

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
        for row, col in np.argwhere(np.isin(self.characters, list(NAMES))):
            letter = str(self.characters[row, col])
            if letter in found:
                raise MapError(f"The name {letter!r} stands twice, again at line {row + 1}, column {col + 1}.")
            found[letter] = int(self.state_at[row, col])
        return found

    def to_grid(self, values: np.ndarray) -> np.ndarray:
        """(S,) values → (H, W) floats for drawing, NaN in walls."""
        values = _require.floats(values, "What is drawn")
        if values.shape != (self.n_states,):
            raise ValueError(f"Expected one value for each of the {self.n_states} states, got shape {values.shape}.")
        grid = np.full(self.free.shape, np.nan)
        grid[self.free] = values
        return grid

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
        row, col = self.cells[_require.state(state, "state", self.n_states)]
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
