"""What eigenoptions from pixels are compared with: other directions, a network before it learned, random play (notebook 10)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from eigenlib import _require
from eigenlib.atari.network import DeepSR
from eigenlib.atari.options import Trajectories, eigenpurposes_from_rows, empty_log, note, visit
from eigenlib.atari.pixels import PixelWorld, require_pixel_world
from eigenlib.canonical import fix_signs
from eigenlib.eigenpurposes import Eigenpurposes

# What is followed: the paper's directions, and three controls, of which the last is the same network before it learned.
KINDS = {"sr": "eigenpurposes", "pca": "PCA of φ", "random": "random directions", "untrained": "untrained network"}


def directions_of(
    kind: Literal["sr", "pca", "random"],
    phi: np.ndarray,
    psi: np.ndarray,
    count: int,
    centre: bool = False,
    seed: int = 0,
) -> Eigenpurposes:
    """Eigenpurposes, and what they must be compared with; phi, psi: (N, F) of a walk.

    "sr": the paper's, from ψ.  "pca": principal components of φ, which know nothing of what follows what.
    "random": unit vectors drawn uniformly.  A fourth control is "sr" with φ and ψ of an `untrained_copy`.
    """
    _require.choice(kind, "kind", ("sr", "pca", "random"))
    phi, psi = (_require.as_given(rows, name, ("N", "F")) for rows, name in ((phi, "phi"), (psi, "psi")))
    most = min(len(phi), phi.shape[1], len(psi), psi.shape[1])
    count, seed = _require.whole(count, "count", 1, most), _require.seed(seed)
    centre = _require.flag(centre, "centre")
    if kind == "sr":
        return eigenpurposes_from_rows(psi, count, centre)
    if kind == "pca":
        return eigenpurposes_from_rows(phi, count, centre=True)
    drawn = np.random.default_rng(seed).standard_normal((phi.shape[1], count))
    return Eigenpurposes(np.ones(count), fix_signs(drawn / np.linalg.norm(drawn, axis=0)))


def untrained_copy(network: DeepSR, seed: int = 0) -> DeepSR:
    """A network of the same sizes that sees the same normalised frames and has learned nothing."""
    _require.instance(network, "network", DeepSR)
    fresh = DeepSR(network.n_actions, network.sizes, network.mean.cpu(), network.scale.cpu(), seed=seed)
    return fresh.to(network.mean.device)


def wander(world: PixelWorld, count: int, steps: int, rng: int | np.random.Generator) -> Trajectories:
    """Random play from the state that the world is in, so many times, noted as options are: the last control."""
    require_pixel_world(world)
    count, steps = _require.whole(count, "count", 1, 10**6), _require.whole(steps, "steps", 1, 32_767)
    rng, log = _require.generator(rng), empty_log(count, steps)
    for k in range(count):
        with visit(world):
            note(world, log, np.array([k]), 0)
            for t, action in enumerate(rng.integers(world.n_actions, size=steps).tolist()):
                if world.over:
                    break
                world.act(action)
                log.actions[k, t] = action
                note(world, log, np.array([k]), t + 1)
    return log
