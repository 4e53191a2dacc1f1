"""Do options go somewhere, and does the network see the avatar? Numbers for what the paper shows as pictures (notebook 10).

"They aim to reach a specific location and stay there", says the paper (§4.2). An *untrained* network gives many such
options too, so that alone is no evidence of learning. Two further numbers compare a potential e·φ(s) with where the avatar
is in s: `r8`, how far the place decides the potential, and `big_basin`, how far away the highest place is felt.

Places are squares of CELL × CELL pixels of the screen, and another room is another place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import torch

from eigenlib import _require
from eigenlib.atari.dataset import Dataset, require_dataset
from eigenlib.atari.network import DeepSR
from eigenlib.atari.pixels import SIDE

CELL = 8
BOX = 12  # side of the square around the avatar, in pixels of the 84 × 84 frame


def r8(potentials: np.ndarray, positions: np.ndarray, rooms: np.ndarray | None = None) -> np.ndarray:
    """R8: the share of the variance of each potential that the avatar's place explains: (N, K) → (K,).

    potentials: (N, K) or (N,), e·φ of the frames of a walk; positions: (N, 2); rows without a position do not count.
    The plain share η² = 1 − SS_within / SS is too large where places have few visits: noise gives C/N for C places. So both
    sums are divided by their degrees of freedom, N − C and N − 1 (ε², Kelley 1935), which gives 0 on average for noise that
    is independent from row to row. Nothing varies or every place was visited once: NaN.
    """
    table, places = _visited(potentials, positions, rooms)
    _, index, visits = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    samples, count = len(table), len(visits)
    means = _sums(table, index, count) / visits[:, None]
    within = ((table - means[index]) ** 2).sum(axis=0)
    whole = ((table - table.mean(axis=0)) ** 2).sum(axis=0)
    if samples <= count:
        return np.full(table.shape[1], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, 1 - (within / (samples - count)) / (whole / (samples - 1)), np.nan)


def big_basin(
    potentials: np.ndarray, positions: np.ndarray, rooms: np.ndarray | None = None, visits: int = 5
) -> np.ndarray:
    """BigBasin: the share of places from which the steepest way up leads to one and the same top, the commonest: (K,).

    A place's height is its mean potential; a step goes to the highest of its eight neighbours, among places with at least
    so many visits. One hill gives 1, noise gives small basins. The basins of e and of −e are not the same: give both.
    """
    visits = _require.whole(visits, "visits", 1)
    table, places = _visited(potentials, positions, rooms)
    cells, index, counts = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    known = counts >= visits
    if not known.any():
        return np.full(table.shape[1], np.nan)
    heights = (_sums(table, index, len(cells)) / counts[:, None])[known]
    number = {tuple(cell): i for i, cell in enumerate(cells[known].tolist())}
    around = sorted(product((-1, 0, 1), repeat=2), key=any)  # itself first: it wins ties
    ways = np.array([[number.get((r, x + dx, y + dy), i) for dx, dy in around] for (r, x, y), i in number.items()])
    shares = np.empty(table.shape[1])
    for k in range(table.shape[1]):
        up = ways[np.arange(len(ways)), heights[ways, k].argmax(axis=1)]
        while (up[up] != up).any():
            up = up[up]
        shares[k] = np.bincount(up).max() / len(up)
    return shares


def purposeful(
    positions: np.ndarray, rooms: np.ndarray | None = None, radius: float = CELL
) -> tuple[float, np.ndarray]:
    """The share of the last half of one option's steps within `radius` pixels of where it is most often, and that place.

    positions: (T+1, 2); NaN, as after the end of an episode, is nowhere. Without any position the share is 0.
    """
    positions = places(positions, ("T+1", 2))
    rooms = None if rooms is None else _require.wholes(rooms, "rooms", (len(positions),))
    radius, half = _require.real(radius, "radius", 0), len(positions) // 2
    late, where = positions[-half:], np.zeros(half) if rooms is None else rooms[-half:]
    known = np.isfinite(late).all(axis=1)
    if not known.any():
        return 0.0, np.full(3, np.nan)
    spots, counts = np.unique(np.column_stack([late, where])[known], axis=0, return_counts=True)
    mode = spots[counts.argmax()]
    near = (np.hypot(*(late - mode[:2]).T) <= radius) & (where == mode[2])
    return float(near.mean()), mode


def distinct_ends(ends: np.ndarray, radius: float = 2 * CELL) -> int:
    """How many different places ends, (n, 2) or with a room (n, 3), are: one within `radius` of an earlier is the same."""
    kept: list[np.ndarray] = []
    ends = _require.numbers(ends, "ends", empty=True)
    if ends.size and (ends.ndim != 2 or ends.shape[1] not in (2, 3)):
        raise ValueError(f"ends must have the shape (n, 2), or with a room (n, 3), got {ends.shape}.")
    radius = _require.real(radius, "radius", 0)
    for end in ends:
        if not any(np.hypot(*(end - other)[:2]) <= radius and np.array_equal(end[2:], other[2:]) for other in kept):
            kept.append(end)
    return len(kept)


def deaths(lives: np.ndarray) -> np.ndarray:
    """Lives lost on the way: (K, T+1) → (K,)."""
    return (np.diff(_require.wholes(lives, "lives", ("K", "T+1")), axis=1) < 0).sum(axis=1)


def _require_trajectories(trajectories) -> None:
    if not all(hasattr(trajectories, part) for part in ("positions", "rooms", "lives")):
        raise ValueError(f"trajectories must be what follow_greedily() gives, got {_require.shown(trajectories)}.")


def unharmed(trajectories) -> np.ndarray:
    """Whether an option loses no life in the last half of its steps, in which `purposeful` looks at it: (K,)."""
    _require_trajectories(trajectories)
    half = trajectories.lives.shape[1] // 2
    return deaths(trajectories.lives[:, -half - 1 :]) == 0


def behaviour(trajectories, staying: float = 0.8, away: float = 2 * CELL) -> dict[str, np.ndarray]:
    """What each option does: ends (K, 3) as x, y, room; stays (K,), `purposeful`'s share; deaths (K,); goes (K,), whether
    it ends more than `away` pixels from where it started and stays there for `staying` of the late steps."""
    _require_trajectories(trajectories)
    staying, away = _require.real(staying, "staying", 0, 1), _require.real(away, "away", 0)
    found = [purposeful(*track) for track in zip(trajectories.positions, trajectories.rooms, strict=True)]
    stays, ends = np.array([share for share, _ in found]), np.array([end for _, end in found]).reshape(-1, 3)
    moved = np.hypot(*(ends[:, :2] - trajectories.positions[:, 0]).T) > away
    moved |= ends[:, 2] != trajectories.rooms[:, 0]
    return {"ends": ends, "stays": stays, "goes": moved & (stays >= staying), "deaths": deaths(trajectories.lives)}


def terminations(did: Mapping[str, np.ndarray], away: float = 2 * CELL) -> dict[str, np.ndarray]:
    """Where options end by their own rule: in the first state from which no action pays (§2.2).

    did: "positions" (K, T+1, 2), "rooms", "lives" (K, T+1) and "stops" (K,) as in options.Trajectories. Returns "ends"
    (K, 3) as x, y, room, NaN where an option never ends; "goes" (K,), whether it ends more than `away` pixels from its start,
    or in another room, and before a life is lost; "positions" (K, T+1, 2), NaN after the end.
    """
    missing = {"positions", "rooms", "lives", "stops"} - set(_require.mapping(did, "did", "arrays"))
    if missing:
        raise ValueError(f"did must hold positions, rooms, lives and stops, but {min(missing)} is missing.")
    positions, away = places(did["positions"], ("K", "T+1", 2)), _require.real(away, "away", 0)
    rooms, lives = (_require.wholes(did[name], f"did[{name!r}]", positions.shape[:2]) for name in ("rooms", "lives"))
    stops = _require.wholes(did["stops"], "did['stops']", (len(positions),), -1, positions.shape[1] - 1)
    every, last = np.arange(len(stops)), np.maximum(stops, 0)
    ends = np.column_stack([positions[every, last], rooms[every, last]])
    ends[stops < 0] = np.nan
    moved = (np.hypot(*(ends[:, :2] - positions[:, 0]).T) > away) | (ends[:, 2] != rooms[:, 0])
    alive = lives[every, last] >= lives[:, 0]
    positions[np.arange(positions.shape[1]) > np.where(stops < 0, positions.shape[1], stops)[:, None]] = np.nan
    return {"ends": ends, "goes": moved & alive & (stops >= 0), "positions": positions}


@torch.inference_mode()
def prediction_errors(
    network: DeepSR,
    dataset: Any,
    rows: np.ndarray,
    screen: tuple[int, int] = (SIDE, SIDE),
    scale: np.ndarray | None = None,
) -> dict[str, dict[str, float]]:
    """How well the next frame is predicted, in the whole frame and around the avatar: {"frame": {…}, "avatar": {…}}.

    Mean squared errors of "network", "background" (the mean image that the network knows) and "copy" (nothing changes), in
    the units in which the network sees frames, as L_RE is: 1 is the variance of a pixel under normalisation "deviation".
    rows: transitions, best of a walk that was not trained on; screen: height and width to which positions refer; scale:
    (84, 84) deviations to measure in instead of the network's own. Where no position is known, "avatar" is left out.
    """
    _require.instance(network, "network", DeepSR)
    require_dataset(dataset)
    rows = _require.wholes(rows, "rows", ("N",), 0, len(dataset.frames) - 2)
    if not np.isin(rows, dataset.transitions).all():
        raise ValueError("rows must be rows from which a transition leads on (dataset.transitions): some are ends.")
    screen = _screen(screen)
    scale = None if scale is None else _require.numbers(scale, "scale", (SIDE, SIDE))
    if scale is not None and not (scale > 0).all():
        raise ValueError("scale must be above 0 in every pixel: it is divided by.")
    units = 1.0 if scale is None else network.scale / torch.as_tensor(scale).to(network.scale)
    sums, counts = np.zeros((2, 3)), np.zeros(2)
    for some, now, after, guess in predicted(network, dataset, rows):
        truth = network.normalise(after)
        guesses = (guess, torch.zeros_like(truth), network.normalise(now))
        boxes = torch.from_numpy(avatar_boxes(np.asarray(dataset.positions)[some + 1], screen)).to(truth.device)
        for k, guess in enumerate(guesses):
            squares = ((guess - truth) * units).square()
            sums[:, k] += squares.sum().item(), (squares * boxes).sum().item()
        counts += truth.numel(), boxes.sum().item()
    names = ("network", "background", "copy")
    return {
        what: dict(zip(names, (row / count).tolist(), strict=True))
        for what, row, count in zip(("frame", "avatar"), sums, counts, strict=True)
        if count > 0
    }


@torch.inference_mode()
def predicted_frames(network: DeepSR, data: Dataset, rows: np.ndarray) -> np.ndarray:
    """The next frame in grey levels that a network expects after each of these rows: (N, 84, 84) uint8."""
    _require.instance(network, "network", DeepSR)
    _require.instance(data, "data", Dataset)
    rows = _require.wholes(rows, "rows", ("N",), 0, len(data) - 1)
    if (np.asarray(data.actions)[rows] >= data.n_actions).any():
        raise ValueError("rows must be rows in which an action was taken (data.transitions): some are ends.")
    pictures = [network.to_pixels(guess).round().to(torch.uint8) for *_, guess in predicted(network, data, rows)]
    return torch.cat(pictures).cpu().numpy()


def predicted(network: DeepSR, data: Any, rows: np.ndarray) -> Iterator[tuple[np.ndarray, Any, Any, torch.Tensor]]:
    """In batches: rows, their frames, the frames after them, and what the network makes of these, as it sees frames."""
    for start in range(0, len(rows), 256):
        some = rows[start : start + 256]
        now, after = (torch.from_numpy(np.array(data.frames[r])).to(network.mean.device) for r in (some, some + 1))
        actions = torch.from_numpy(np.asarray(data.actions)[some].astype(np.int64)).to(network.mean.device)
        yield some, now, after, network.predict(network.phi(now), actions)


def avatar_boxes(positions: np.ndarray, screen: tuple[int, int]) -> np.ndarray:
    """(N, 84, 84) bool: the BOX × BOX pixels of a frame around each position, (N, 2) on the screen; none where unknown."""
    centre = places(positions, ("N", 2)) * SIDE / np.array(_screen(screen)[::-1])  # x, y
    with np.errstate(invalid="ignore"):
        away = np.arange(SIDE) + 0.5 - centre[:, :, None]  # (N, 2, 84): of columns, of rows
        inside = (away >= -BOX / 2) & (away < BOX / 2)
    return inside[:, 1, :, None] & inside[:, 0, None, :]


def _screen(screen: Any) -> tuple[int, int]:
    height, width = _require.wholes(screen, "screen", (2,), 1).tolist()
    return height, width


def places(positions: Any, shape: tuple[int | str, ...], empty: bool = False) -> np.ndarray:
    """x, y in pixels, NaN where the avatar's place is not known."""
    found = _require.numbers(positions, "positions", shape, finite=False, empty=empty)
    if np.isinf(found).any():
        raise ValueError("positions must be finite, or NaN where the avatar's place is not known.")
    return found


def _visited(potentials, positions, rooms) -> tuple[np.ndarray, np.ndarray]:
    """Potentials (n, K) in float64 and places (n, 3) as room, column, row, of the rows that have a position."""
    positions = places(positions, ("N", 2))
    flat = np.ndim(potentials) == 1 if isinstance(potentials, np.ndarray) else False
    table = _require.numbers(potentials, "potentials", (len(positions), *([] if flat else ["K"])))
    table = table[:, None] if flat else table
    rooms = None if rooms is None else _require.wholes(rooms, "rooms", (len(positions),))
    known = np.isfinite(positions).all(axis=1)
    if not known.any():
        raise ValueError("No row has a position: the places of this game's avatar are not known.")
    cells = np.floor(positions[known] / CELL).astype(int)
    return table[known], np.column_stack([np.zeros(len(cells), int) if rooms is None else rooms[known], cells])


def _sums(table: np.ndarray, index: np.ndarray, count: int) -> np.ndarray:
    """(count, K): the rows of table, (n, K), added up by index, (n,)."""
    sums = np.zeros((count, table.shape[1]))
    np.add.at(sums, index, table)
    return sums
