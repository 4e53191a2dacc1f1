"""Seeded random mazes for tests that loop over many worlds."""

import numpy as np
from scipy import ndimage


def random_maze(rng: np.random.Generator, height: int, width: int, wall_share: float) -> str:
    """A connected map as text: random walls, of whose free parts only the largest stays open (at least one cell)."""
    free = rng.random((height, width)) >= wall_share
    if not free.any():
        free[rng.integers(height), rng.integers(width)] = True
    part, _ = ndimage.label(free)  # neighbours share an edge, as the agent's moves do; 0 is wall
    largest = np.bincount(part.ravel())[1:].argmax() + 1
    return "\n".join("".join("." if cell else "X" for cell in row) for row in part == largest)
