"""Eigenoptions from pixels: directions in feature space, followed greedily in the emulator (§3.3, §4.2; notebook 10).

*Directions.* A random walk s₁ … s_N gives a matrix with the rows ψ(s_t); its right singular vectors e ∈ ℝᶠ, those of the
largest singular values first, are the eigenpurposes. The paper does not centre the rows, so its first vector is close to
their mean; `centre=True` takes the mean away first, which makes of it a principal component analysis of ψ.

*Following one.* An eigenpurpose pays e·φ(s′) − e·φ(s) (Eq. 1). The paper does not learn what to do but tries: from the state
where it is, the emulator takes each action in turn and is put back, and the action that paid best is then taken, "equivalent
to learning with γ = 0". Here `depth` = 1 is that. A greater depth looks for the best plan of at most so many decisions,
which may stop early, as an option may; it maximises Σ γᵗ r_{t+1}, takes the plan's first action and plans again. Plans are
all sequences of `depth` actions and all their beginnings, where there are at most MOST sequences, else each action repeated.

*Ties* go to the shortest plan, then to the first action, which is "do nothing" in every game: a greedy option whose screen
does not react waits. Nothing here is random: a world that is, such as one with sticky actions, saves its generator with
its state, so that looking ahead shows what will happen, chance included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from eigenlib import _moved, _require
from eigenlib.atari.network import DeepSR
from eigenlib.atari.pixels import PixelWorld, require_frames, require_pixel_world
from eigenlib.canonical import fix_signs
from eigenlib.eigenpurposes import Eigenpurposes

BATCH = 512  # frames in one forward pass
MOST = 256  # sequences of actions that are all compared
ZERO = 1e-5  # × |e·φ|: what float32 makes of equal numbers, and so no gain
__getattr__ = _moved.names_of(__name__)


class Trajectories(NamedTuple):
    """What K options did in T decisions from one state. After the end of an episode nothing more happens."""

    positions: np.ndarray  # (K, T+1, 2) float32, the avatar's x, y; NaN where unknown and once the episode is over
    rooms: np.ndarray  # (K, T+1) int16, −1 in games that have none
    lives: np.ndarray  # (K, T+1) int16
    potentials: np.ndarray  # (K, T+1) float32, e·φ of each state on the way, or e·ψ
    gains: np.ndarray  # (K, T) float32, what the best plan promised; 0 once the episode is over
    actions: np.ndarray  # (K, T) int16, −1 once the episode is over
    stops: np.ndarray  # (K,) int16, decisions until no plan promised anything: there it would terminate; −1: never


def features_and_rows(network: DeepSR, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """φ of each frame, and ψ(φ(s)), the rows of the paper's matrix T: uint8 (N, 84, 84) → float32 (N, F) each."""
    phi, psi = _forward(network, frames, ("phi", "psi"))
    return phi, psi


@torch.inference_mode()
def _forward(network: DeepSR, frames: np.ndarray, wanted: tuple[str, ...]) -> list[np.ndarray]:
    """φ and/or ψ of frames, (N, F) each, computed on the network's device; ψ costs nothing where it is not wanted."""
    _require_network(network)
    frames = require_frames(frames)
    out = [np.empty((len(frames), network.sizes.features), np.float32) for _ in wanted]
    for start in range(0, len(frames), BATCH):
        rows = slice(start, start + BATCH)
        phi = network.phi(torch.from_numpy(np.array(frames[rows])).to(network.mean.device))
        for array, name in zip(out, wanted, strict=True):
            array[rows] = (phi if name == "phi" else network.psi(phi)).float().cpu().numpy()
    return out


def eigenpurposes_from_rows(rows: np.ndarray, count: int, centre: bool = False) -> Eigenpurposes:
    """Right singular vectors (F, count) of rows, (N, F), and their singular values; centre: of the rows less their mean.

    By way of the Gram matrix, F × F in float64: exact enough, as only the leading ones are wanted, and small.
    """
    rows, centre = _require.as_given(rows, "rows", ("N", "F"), finite=False), _require.flag(centre, "centre")
    samples, size = rows.shape
    if not 1 <= _require.whole(count, "count") <= min(samples, size):
        raise ValueError(
            f"count must lie between 1 and {min(samples, size)} for rows of shape {rows.shape}, got {count}."
        )
    mean = rows.mean(axis=0, dtype=np.float64) if centre else np.zeros(size)
    gram = np.zeros((size, size))
    for start in range(0, samples, 4096):
        part = rows[start : start + 4096] - mean
        gram += part.T @ part
    if not np.isfinite(gram).all():
        raise ValueError("The rows hold entries that are not finite numbers (NaN or ∞): the network did not learn.")
    values, vectors = np.linalg.eigh(gram)
    leading = slice(None, -count - 1, -1)
    return Eigenpurposes(np.sqrt(np.maximum(values[leading], 0.0)), fix_signs(vectors[:, leading]))


def both_signs(vectors: np.ndarray) -> np.ndarray:
    """(F, k) → (F, 2k): e₁, −e₁, e₂, −e₂, …"""
    vectors = _require.as_given(vectors, "vectors", ("F", "k"))
    return np.stack([vectors, -vectors], axis=2).reshape(len(vectors), -1)


def follow_greedily(
    world: PixelWorld,
    network: DeepSR,
    vectors: np.ndarray,
    steps: int,
    *,
    reward: Literal["phi", "psi"] = "phi",
    depth: int = 1,
    gamma: float = 0.9,
    start: Any = None,
    progress: bool = False,
) -> Trajectories:
    """Follow K directions, (F, K), greedily for so many decisions from one state: see the module for how.

    start: a saved state of the world; None is the state that it is in. Afterwards the world is as it was before.
    reward: "psi" pays for e·ψ instead of the paper's e·φ.
    """
    require_pixel_world(world)
    _require_network(network)
    vectors = _require.numbers(vectors, "vectors", (network.sizes.features, "K")).astype(np.float32)
    if world.n_actions != network.n_actions:
        raise ValueError(
            f"{world.name} has {world.n_actions} actions, but the network was made for {network.n_actions}."
        )
    _require.choice(reward, "reward", ("phi", "psi"))
    steps, depth = _require.whole(steps, "steps", 1, 32_767), _require.whole(depth, "depth", 1, MOST)
    gamma, progress = _require.discount(gamma), _require.flag(progress, "progress")
    tree, log = plans(world.n_actions, depth), empty_log(vectors.shape[1], steps)
    everyone = np.arange(vectors.shape[1])
    with visit(world, start):
        log.potentials[:, :] = _potentials(network, [world.frame()], vectors, reward).T
        note(world, log, everyone, 0)
        groups = [] if world.over else [(world.save(), everyone)]  # a state and the options that are in it
        for t in tqdm(range(steps), disable=not progress, desc=f"following {len(everyone)} options", unit=" decisions"):
            frames = [frame for state, _ in groups for frame in _look_ahead(world, state, tree)]
            ahead = _potentials(network, frames, vectors, reward).reshape(len(groups), len(tree), len(everyone))
            after = []
            for (state, members), potentials in zip(groups, ahead, strict=True):
                potentials = potentials[:, members]  # (P, members)
                chosen, gains = _best_plans(potentials, log.potentials[members, t], tree, gamma)
                log.actions[members, t], log.gains[members, t] = chosen, gains
                log.stops[members[(gains <= 0) & (log.stops[members] < 0)]] = t
                log.potentials[members, t + 1 :] = potentials[chosen, np.arange(len(members))][:, None]
                for action in np.unique(chosen):
                    world.restore(state)
                    world.act(int(action))
                    note(world, log, members[chosen == action], t + 1)
                    if not world.over:
                        after.append((world.save(), members[chosen == action]))
            groups = after
    return log


@contextmanager
def visit(world: PixelWorld, start: Any = None) -> Iterator[None]:
    """Put a world into a saved state, or leave it where it is; afterwards it is as it was before."""
    here = world.save()
    try:
        if start is not None:
            world.restore(start)
    except (TypeError, ValueError, AttributeError, IndexError, KeyError):
        world.restore(here)
        raise ValueError(
            f"start must be a state that this world's save() has given, or None, got {_require.shown(start)}."
        ) from None
    try:
        yield
    finally:
        world.restore(here)


def plans(n_actions: int, depth: int) -> list[tuple[int, ...]]:
    """All plans to compare, as actions, short ones first; the first n_actions are the single actions, in order."""
    lengths = range(1, depth + 1)
    if n_actions**depth <= MOST:
        return [plan for length in lengths for plan in product(range(n_actions), repeat=length)]
    return [(action,) * length for length in lengths for action in range(n_actions)]


def _look_ahead(world: PixelWorld, state: Any, tree: list[tuple[int, ...]]) -> list[np.ndarray]:
    """The frame to which each plan leads. Where an episode ends on the way, nothing follows: the frame stays."""
    frames: dict[tuple[int, ...], np.ndarray] = {}
    saved: dict[tuple[int, ...], Any] = {(): state}
    for plan in tree:
        before = plan[:-1]
        if before not in saved:
            frames[plan] = frames[before]
            continue
        world.restore(saved[before])
        world.act(plan[-1])
        frames[plan] = world.frame()
        if len(plan) < len(tree[-1]) and not world.over:
            saved[plan] = world.save()
    return list(frames.values())


def _best_plans(
    potentials: np.ndarray, now: np.ndarray, tree: list[tuple[int, ...]], gamma: float
) -> tuple[np.ndarray, np.ndarray]:
    """First action and discounted gain, (K,) each, of the best plan; potentials: (P, K) where plans lead, now: (K,)."""
    number = {plan: k for k, plan in enumerate(tree)}
    returns = np.empty_like(potentials)
    for plan, k in number.items():
        before = number.get(plan[:-1])
        base, earned = (now, 0.0) if before is None else (potentials[before], returns[before])
        returns[k] = earned + gamma ** (len(plan) - 1) * (potentials[k] - base)
    zero = ZERO * np.maximum(np.abs(potentials).max(axis=0), np.abs(now))
    best = np.argmax(returns >= returns.max(axis=0) - zero, axis=0)  # the first of those that tie
    gains = returns[best, np.arange(len(best))]
    return np.array([plan[0] for plan in tree])[best], np.where(np.abs(gains) <= zero, 0.0, gains)


def _potentials(network: DeepSR, frames: list[np.ndarray], vectors: np.ndarray, reward: str) -> np.ndarray:
    """e·φ, or e·ψ, of frames along each direction: (N, K). Frames that occur more than once are looked at once."""
    if not frames:
        return np.empty((0, vectors.shape[1]), np.float32)
    different: dict[bytes, int] = {}
    which = [different.setdefault(frame.tobytes(), len(different)) for frame in frames]
    pictures = np.frombuffer(b"".join(different), np.uint8).reshape(-1, *frames[0].shape)
    return (_forward(network, pictures, (reward,))[0] @ vectors)[which]


def _require_network(network: Any) -> None:
    """A DeepSR, or what can stand for one here."""
    if not all(hasattr(network, part) for part in ("phi", "psi", "sizes", "mean")):
        raise ValueError(f"network must be a DeepSR, got {_require.shown(network)}.")


def empty_log(count: int, steps: int) -> Trajectories:
    """Nothing has happened yet."""
    return Trajectories(
        positions=np.full((count, steps + 1, 2), np.nan, np.float32),
        rooms=np.full((count, steps + 1), -1, np.int16),
        lives=np.zeros((count, steps + 1), np.int16),
        potentials=np.zeros((count, steps + 1), np.float32),
        gains=np.zeros((count, steps), np.float32),
        actions=np.full((count, steps), -1, np.int16),
        stops=np.full(count, -1, np.int16),
    )


def note(world: PixelWorld, log: Trajectories, members: np.ndarray, t: int) -> None:
    """Where these options are after t decisions."""
    where, room = world.position(), getattr(world, "room", lambda: None)()
    if where is not None and not world.over:
        log.positions[members, t] = where
    log.rooms[members, t:] = -1 if room is None else room
    log.lives[members, t:] = world.lives
