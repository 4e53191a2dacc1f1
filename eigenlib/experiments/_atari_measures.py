"""Measures of `atari_evidence`: what has a network learned, and do options end where a player would want to be? (notebook 10)

Numbers for a network φ, ζ, ψ on a walk of random play that it was not trained on say what options have to go by: does it see
the avatar, foresee motion, and is ψ a successor representation? `solved_successors` is the control for all that is said
about ψ: for *any* features, random ones included, least squares finds the best linear successor features on a walk (LSTD,
Bradtke and Barto 1996).

"The terminal states correspond to what are considered good subgoals" (§4.2) says something only if other places that can be
reached do not. So the null draws among these: an archive of states explores the room without any network.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch
from scipy import ndimage, stats

from eigenlib.atari.batches import bootstraps
from eigenlib.atari.dataset import NO_ACTION, Dataset
from eigenlib.atari.metrics import CELL, predicted
from eigenlib.atari.network import DeepSR
from eigenlib.atari.pixels import SIDE

NEAR = 4.0  # pixels of the screen
FAINT = 8.0  # grey levels that a change must exceed
REGION = 16  # side of the square around where the avatar was, in pixels of the 84 × 84 frame


# --- ψ as a successor representation --------------------------------------------------------------------------------------


def solved_successors(phi: np.ndarray, walk: Dataset, gamma: float, ridge: float = 1e-6) -> np.ndarray:
    """M, (F+1, F), of ψ(s) = (φ(s), 1) M: Σ x (x − γ x′)ᵀ M = Σ x φᵀ over the walk's transitions, x = (φ, 1).

    phi: (N, F) of the walk's frames. ridge: of the trace of Σ x xᵀ, added to the diagonal. Nothing follows an end.
    """
    rows, follows = walk.transitions, bootstraps(walk.ends, life_ends=True).numpy()
    x = with_constant(phi)
    left, right, energy = np.zeros((x.shape[1],) * 2), np.zeros((x.shape[1], phi.shape[1])), 0.0
    for start in range(0, len(rows), 4096):
        some = rows[start : start + 4096]
        now = x[some].astype(np.float64)
        left += now.T @ (now - gamma * follows[some, None] * x[some + 1])
        right += now.T @ phi[some]
        energy += np.square(now).sum()
    return np.linalg.solve(left + ridge * energy * np.eye(len(left)), right)


def with_constant(phi: np.ndarray) -> np.ndarray:
    """(N, F) → (N, F+1): a constant feature added."""
    return np.column_stack([phi, np.ones(len(phi), phi.dtype)])


def td_error(phi: np.ndarray, psi: np.ndarray, walk: Dataset, gamma: float) -> float:
    """Mean |φ(s) + γ ψ(s′) − ψ(s)|² over the transitions of a walk, as a share of the variance of ψ; phi, psi: (N, F)."""
    rows, follows = walk.transitions, bootstraps(walk.ends, life_ends=True).numpy()
    errors = phi[rows] + gamma * follows[rows, None] * psi[rows + 1] - psi[rows]
    return float(np.square(errors).sum(axis=1).mean() / psi[rows].var(axis=0, dtype=np.float64).sum())


def monte_carlo_r2(phi: np.ndarray, psi: np.ndarray, walk: Dataset, gamma: float, horizon: int = 100) -> float:
    """R² of ψ(s) for the discounted sum of the φ that followed in this walk, over rows that `horizon` decisions or an end
    follow; NaN without such rows. One future is one sample: even the true ψ stays below 1 by what chance decides."""
    follows, acted = bootstraps(walk.ends, life_ends=True).numpy(), np.asarray(walk.actions) != NO_ACTION
    sums, known = np.array(phi, dtype=np.float64), np.zeros(len(phi))
    for t in range(len(phi) - 2, -1, -1):
        if acted[t]:
            sums[t] += gamma * follows[t] * sums[t + 1]
            known[t] = known[t + 1] + 1 if follows[t] else np.inf
    rows = known >= horizon
    if rows.sum() < 2:
        return float("nan")
    apart = sums[rows] - sums[rows].mean(axis=0)
    return float(1 - np.square(sums[rows] - psi[rows]).sum() / np.square(apart).sum())


def autocorrelation(potentials: np.ndarray, walk: Dataset, lag: int) -> np.ndarray:
    """Correlation of each potential, (N, K), with itself `lag` decisions later in the same episode: (K,)."""
    episode = np.cumsum(np.asarray(walk.actions) == NO_ACTION)
    episode = np.concatenate([[0], episode[:-1]])  # the row without an action is its episode's last
    rows = np.flatnonzero(episode[:-lag] == episode[lag:])
    now, later = (potentials[r] - potentials[r].mean(axis=0, dtype=np.float64) for r in (rows, rows + lag))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (now * later).sum(axis=0) / np.sqrt(np.square(now).sum(axis=0) * np.square(later).sum(axis=0))


# --- the avatar in φ ------------------------------------------------------------------------------------------------------


def avatar_r2(phi: np.ndarray, positions: np.ndarray, test_phi: np.ndarray, test_positions: np.ndarray) -> np.ndarray:
    """R² on test rows of the avatar's x and y by ridge regression on φ: (2,), NaN for a coordinate that does not vary.

    The strength is the best, of ten, for the last quarter of the rows to fit on when the others are fitted; then all are.
    """
    (x, y), (test_x, test_y) = _placed(phi, positions), _placed(test_phi, test_positions)
    mean, scale = x.mean(axis=0), x.std(axis=0)
    x, test_x = ((a - mean) / np.where(scale > 1e-9, scale, 1.0) for a in (x, test_x))
    strengths, cut = np.logspace(-4, 5, 10), len(x) * 3 // 4
    scores = np.array([_r2(y[cut:], _ridge(x[:cut], y[:cut], s, x[cut:])) for s in strengths])
    best = strengths[np.nan_to_num(scores, nan=0.0).mean(axis=1).argmax()]
    return _r2(test_y, _ridge(x, y, best, test_x))


def _placed(phi: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known = np.isfinite(positions).all(axis=1)
    return phi[known].astype(np.float64), positions[known].astype(np.float64)


def _ridge(x: np.ndarray, y: np.ndarray, strength: float, at: np.ndarray) -> np.ndarray:
    middle = y.mean(axis=0)
    return middle + at @ np.linalg.solve(x.T @ x + strength * np.eye(x.shape[1]), x.T @ (y - middle))


def _r2(truth: np.ndarray, guess: np.ndarray) -> np.ndarray:
    whole = np.square(truth - truth.mean(axis=0)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, 1 - np.square(truth - guess).sum(axis=0) / whole, np.nan)


# --- motion foreseen ------------------------------------------------------------------------------------------------------


@torch.inference_mode()
def tracking(network: DeepSR, walk: Dataset, rows: np.ndarray, screen: tuple[int, int]) -> dict[str, tuple[int, int]]:
    """Sprites whose appearance elsewhere is foreseen within NEAR, and those that moved: {"avatar": …, "others": …}.

    Appearance is how much more a pixel differs from the mean image after the step than before it, less FAINT; where it
    happens is its centroid in a region: a square around where the avatar was, or the box, 2 wider, of other changed
    pixels with gaps of at most 6. Only sprites count whose true centroid is more than NEAR from the middle of their
    region: there a smear over the region and a guess of its middle score nothing, and nor does copying.
    """
    counts = {"avatar": [0, 0], "others": [0, 0]}
    mean = (network.mean * 255).cpu().numpy()
    unit = np.array([screen[0] / SIDE, screen[1] / SIDE])  # screen pixels in one of the frame: down, across
    for some, *pictures, expectation in predicted(network, walk, rows):
        now, after, guess = (p.float().cpu().numpy() for p in (*pictures, network.to_pixels(expectation)))
        before = np.abs(now - mean)
        true, expected = (np.maximum(np.abs(x - mean) - before - FAINT, 0.0) for x in (after, guess))
        for k, row in enumerate(some):
            changed = np.abs(after[k] - now[k]) > FAINT
            for name, region in regions(changed, np.asarray(walk.positions[row]), unit):
                middle = np.array([(s.start + s.stop) / 2 for s in region])
                there = centroid(true[k], region)
                if there is None or np.hypot(*((there - middle) * unit)) <= NEAR:
                    continue
                found = centroid(expected[k], region)
                counts[name][0] += found is not None and bool(np.hypot(*((found - there) * unit)) <= NEAR)
                counts[name][1] += 1
    return {name: (hits, moved) for name, (hits, moved) in counts.items()}


def regions(changed: np.ndarray, position: np.ndarray, unit: np.ndarray) -> list[tuple[str, Any]]:
    """Where to look for moving sprites, as slices of the frame: ("avatar", …) if its place is known, ("others", …) …"""
    found: list[tuple[str, Any]] = []
    changed = changed.copy()
    if np.isfinite(position).all():
        corner = np.round(position[::-1] / unit - REGION / 2).astype(int)
        square = tuple(slice(max(c, 0), min(c + REGION, SIDE)) for c in corner)
        if all(s.stop > s.start for s in square):
            found.append(("avatar", square))
            changed[square] = False
    # a sprite that moves by less than its length changes at both ends only: the gap must not part them
    near = ndimage.binary_dilation(changed, np.ones((3, 3)), iterations=3)
    labels = ndimage.label(near, np.ones((3, 3)))[0] * changed
    for box in ndimage.find_objects(labels):
        found.append(("others", tuple(slice(max(s.start - 2, 0), min(s.stop + 2, SIDE)) for s in box)))
    return found


def centroid(mass: np.ndarray, region: Any) -> np.ndarray | None:
    """(down, across) of the mass inside a region, in pixels of the frame, whose first pixel has its middle at .5."""
    part = mass[region]
    total = float(part.sum())
    if total <= 0:
        return None
    down, across = (np.arange(s.start, s.stop) + 0.5 for s in region)
    return np.array([part.sum(axis=1) @ down, part.sum(axis=0) @ across]) / total


# --- subgoals of Montezuma's first room -----------------------------------------------------------------------------------

AT_SUBGOAL = 12.0  # pixels
SUBGOALS = {  # x, y of the avatar's middle on arrival, Kulkarni et al. (2016); written down from the screen
    "foot of the middle ladder": (80, 127),
    "rope": (112, 105),
    "left door": (21, 83),
    "right door": (137, 83),
    "top of the right ladder": (136, 127),
    "foot of the right ladder": (136, 170),
    "foot of the left ladder": (21, 170),
    "top of the left ladder": (21, 127),
    "key": (15, 105),
}


def subgoals_near(places: np.ndarray) -> list[str]:
    """The SUBGOALS that one of these places, (n, 2), is near."""
    apart = {name: np.hypot(*(np.reshape(places, (-1, 2)) - goal).T) for name, goal in SUBGOALS.items()}
    return [name for name, distances in apart.items() if distances.min(initial=np.inf) <= AT_SUBGOAL]


def by_chance(spots: np.ndarray, count: int) -> float:
    """Mean number of SUBGOALS near one of `count` places drawn among the reachable ones, spots (n, 2), without repeats."""
    goals = np.array(list(SUBGOALS.values()))
    close = np.hypot(*(spots[:, None] - goals[None]).transpose(2, 0, 1)) <= AT_SUBGOAL  # (n, 9)
    # a goal with h spots near it is missed by C(n − h, count) of the C(n, count) choices: no need to draw
    missed = stats.hypergeom.pmf(0, len(spots), close.sum(axis=0), min(count, len(spots)))
    return float((1 - missed).sum())


def reachable(world: Any, decisions: int, rng: np.random.Generator) -> np.ndarray:
    """Places of the room where a world is in which one can stand, (n, 2), one for each cell of 8 × 8 pixels.

    An archive of cells: restore one of them, act at random for 20 decisions, keep the state of each new cell. A place
    counts if the avatar is where it was after one decision of doing nothing, and alive after 20, in one of ten tries.
    """
    home, lives = world.room(), world.lives
    archive, stood = {_cell(world): world.save()}, {}
    tries: Counter[tuple[int, int]] = Counter()
    cells = list(archive)
    for _ in range(decisions // 20):
        world.restore(archive[cells[rng.integers(len(cells))]])
        for action in rng.integers(world.n_actions, size=20).tolist():
            world.act(action)
            if world.over or world.lives < lives or world.room() != home or world.position() is None:
                break
            cell = _cell(world)
            if cell not in archive:
                archive[cell] = world.save()
                cells.append(cell)
            if cell not in stood and tries[cell] < 10:
                tries[cell] += 1
                here, place = world.save(), world.position()
                if _stands(world):
                    stood[cell] = place
                world.restore(here)
    return np.array(sorted(stood.values()))


def _cell(world: Any) -> tuple[int, int]:
    x, y = world.position()
    return int(x // CELL), int(y // CELL)


def _stands(world: Any) -> bool:
    place, lives = world.position(), world.lives
    for decision in range(20):
        world.act(0)
        if world.over or world.lives < lives or (decision == 0 and world.position() != place):
            return False
    return True
