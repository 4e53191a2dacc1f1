"""Worlds for checks: small random mazes, the same on every machine, a long corridor, and the four rooms themselves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy import ndimage

from eigenlib.gridworld import GridWorld


@cache
def corridor(tiles: int = 40) -> GridWorld:
    """News travels slowly here: what stops after a few sweeps, or a small change, stops too soon."""
    return GridWorld.from_text("." * tiles)


@cache
def four_rooms() -> GridWorld:
    """The lessons' own world: an answer that holds in small mazes only is no answer."""
    return GridWorld.named("four_rooms")


def maze(rng: np.random.Generator, rows: int, columns: int, walls: float) -> GridWorld:
    """Random walls, this share of all cells; of the free parts only the largest stays open."""
    part, _ = ndimage.label(rng.random((rows, columns)) >= walls)  # neighbours share an edge, as moves do; 0 is wall
    largest = part == np.bincount(part.ravel())[1:].argmax() + 1
    return GridWorld.from_text("\n".join("".join("." if cell else "X" for cell in row) for row in largest))


def worlds(count: int, seed: int = 0, fewest: int = 6) -> list[GridWorld]:
    """Mazes of up to 5 × 6 cells; from three on, the last two are the long corridor and the four rooms."""
    rng = np.random.default_rng((seed, 1))
    known = [corridor(), four_rooms()] if count > 2 else []
    found: list[GridWorld] = []
    while len(found) < count - len(known):
        world = maze(rng, int(rng.integers(3, 6)), int(rng.integers(3, 7)), 0.25)
        found += [world] if world.n_states >= fewest else []
    return found + known


def chains(count: int, seed: int = 0) -> Iterator[tuple[np.ndarray, float]]:
    """(T, γ): the walks of random policies on such worlds. T is not symmetric, so that Ψ and Ψᵀ differ."""
    rng = np.random.default_rng((seed, 2))
    for world in worlds(count, seed):
        policy = rng.dirichlet(np.ones(world.n_actions), size=world.n_states)
        if world.n_states > 30:  # where chance alone would bar the way for ages
            policy = (policy + 1) / (1 + world.n_actions)
        yield world.transition_matrix(policy), float(rng.choice([0.6, 0.75, 0.9, 0.95]))
