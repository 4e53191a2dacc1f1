"""Mazes of as many rooms as one likes (notebook 07)."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree

from eigenlib import _require
from eigenlib.gridworld import GridWorld

_LARGEST = 10**8  # cells of a map that is made; one of a million states takes some hundred megabytes


def big_rooms(rooms: int, size: int, seed: int = 0, loops: float = 0.1, slip: float = 0.0) -> GridWorld:
    """rooms × rooms square rooms of size × size cells, joined by doorways of one cell into a random maze (notebook 07).

    A random spanning tree joins all rooms; each other pair of neighbours is joined too with chance `loops`.
    big_rooms(63, 16) has a million states.
    """
    rooms, size = _require.whole(rooms, "rooms", 1), _require.whole(size, "size", 1)
    if not 0 <= _require.real(loops, "loops", finite=False) <= 1:
        raise ValueError(f"loops is a chance between 0 and 1, got {loops!r}.")
    if (rooms * (size + 1)) ** 2 > _LARGEST:
        raise ValueError(
            f"{rooms} × {rooms} rooms of {size} × {size} cells do not fit into memory: a map has at most {_LARGEST:.0e}."
        )
    rng, at = np.random.default_rng(_require.seed_from(seed)), np.arange(rooms * rooms).reshape(rooms, rooms)
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
