"""Random worlds for checks: small, connected, the same on every machine. A right answer is right on all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import ndimage

from eigenlib.gridworld import GridWorld


def worlds(count: int, seed: int = 0, fewest: int = 6) -> list[GridWorld]:
    """Grids of up to 5 × 6 cells with random walls; of their free parts only the largest stays open."""
    rng = np.random.default_rng((seed, 1))
    found: list[GridWorld] = []
    while len(found) < count:
        free = rng.random((rng.integers(3, 6), rng.integers(3, 7))) >= 0.25
        part, _ = ndimage.label(free)  # neighbours share an edge, as the agent's moves do; 0 is wall
        largest = part == np.bincount(part.ravel())[1:].argmax() + 1
        if largest.sum() >= fewest:
            text = "\n".join("".join("." if cell else "X" for cell in row) for row in largest)
            found.append(GridWorld.from_text(text))
    return found


def chains(count: int, seed: int = 0) -> Iterator[tuple[np.ndarray, float]]:
    """(T, γ): the walks of random policies on such worlds. T is not symmetric, so that Ψ and Ψᵀ differ."""
    rng = np.random.default_rng((seed, 2))
    for world in worlds(count, seed):
        policy = rng.dirichlet(np.ones(world.n_actions), size=world.n_states)
        yield world.transition_matrix(policy), float(rng.choice([0.6, 0.75, 0.9, 0.95]))
