"""Places in Montezuma's first room that a player would want, and places that one can stand at: a fair null (notebook 10).

"The terminal states correspond to what are considered good subgoals" (§4.2) says something only if other places that can be
reached do not. So the null draws among these: an archive of states explores the room without any network.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from eigenlib import storage
from eigenlib.atari.emulator import Emulator
from eigenlib.atari.metrics import CELL

GAME = "montezuma_revenge"
NEAR = 12.0  # pixels
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


def near(places: np.ndarray) -> list[str]:
    """The SUBGOALS that one of these places, (n, 2), is near."""
    apart = {name: np.hypot(*(np.reshape(places, (-1, 2)) - goal).T) for name, goal in SUBGOALS.items()}
    return [name for name, distances in apart.items() if distances.min(initial=np.inf) <= NEAR]


def by_chance(spots: np.ndarray, count: int, draws: int = 10_000) -> float:
    """Mean number of SUBGOALS near one of `count` places drawn among the reachable ones, spots (n, 2), without repeats."""
    goals = np.array(list(SUBGOALS.values()))
    close = np.hypot(*(spots[:, None] - goals[None]).transpose(2, 0, 1)) <= NEAR  # (n, 9)
    # a goal with h spots near it is missed by C(n − h, count) of the C(n, count) choices: no need to draw
    missed = stats.hypergeom.pmf(0, len(spots), close.sum(axis=0), min(count, len(spots)))
    return float((1 - missed).sum())


def reachable(path: Path, decisions: int = 50_000, seed: int = 0) -> np.ndarray:
    """Places of Montezuma's first room where one can stand, (n, 2), one for each cell of 8 × 8 pixels; kept at `path`.

    An archive of cells: restore one of them, act at random for 20 decisions, keep the state of each new cell. A place
    counts if the avatar is where it was after one decision of doing nothing, and alive after 20, in one of ten tries.
    """
    try:
        return storage.load(path)[0]["spots"]
    except (OSError, ValueError):
        spots = explore(Emulator(GAME), decisions, np.random.default_rng(seed))
        storage.save(path, {"spots": spots}, decisions=decisions, seed=seed)
        return spots


def explore(world: Any, decisions: int, rng: np.random.Generator) -> np.ndarray:
    """What `reachable` keeps, in any world that can save and restore."""
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
