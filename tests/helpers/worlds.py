"""A hypothesis strategy of random connected worlds, slips and one-way doors included; failures shrink to small maps."""

import numpy as np
from hypothesis import strategies as st
from scipy import ndimage

from eigenlib.gridworld import ARROWS, MOVES, GridWorld


@st.composite
def worlds(draw, slips: bool = True, doors: bool = True, largest: int = 7) -> GridWorld:
    """Random walls of which only the largest free part stays open, then up to four doors that do not touch."""
    height, width = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    cells = height * width
    walls = draw(st.integers(0, 2**cells - 1)) & draw(
        st.integers(0, 2**cells - 1)
    )  # both: about a quarter of the cells
    free = np.array([not walls >> cell & 1 for cell in range(cells)]).reshape(height, width)
    if not free.any():
        free[0, 0] = True
    part, _ = ndimage.label(free)  # 0 is wall
    grid = np.where(part == np.bincount(part.ravel())[1:].argmax() + 1, ".", "X")
    for cell, action in draw(st.lists(st.tuples(st.integers(0, cells - 1), st.integers(0, 3)), max_size=4 * doors)):
        place_door(grid, divmod(cell, width), action)
    slip = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])) if slips else 0.0
    return GridWorld.from_text("\n".join("".join(row) for row in grid), slip=slip)


def place_door(grid: np.ndarray, cell: tuple[int, int], action: int) -> None:
    """Put a door where it opens into a free cell and touches no other door, so that the world stays in one piece."""
    around = np.array(cell) + MOVES
    inside = ((around >= 0) & (around < grid.shape)).all(axis=1)
    neighbours = [str(grid[tuple(at)]) if ok else "X" for at, ok in zip(around, inside, strict=True)]
    if grid[cell] == "." and neighbours[action] == "." and not set(neighbours) & set(ARROWS):
        grid[cell] = ARROWS[action]
