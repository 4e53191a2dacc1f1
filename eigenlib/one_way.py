"""A passage made one-way: worlds in which the Laplacian and the SR part (notebooks 02 and 07)."""

from __future__ import annotations

from scipy.sparse.csgraph import connected_components

from eigenlib import _require
from eigenlib.gridworld import ARROWS, GridWorld, MapError


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
