"""Worlds that are only seen: what the deep SR may ask of one, and mazes drawn as pixels (§3.3; notebook 08).

A maze whose frames are drawn is the one pixel world in which the right answer is known: its states can be counted, so
ψ, the eigenpurposes and the options learned from frames can be compared with the exact ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from eigenlib import _require
from eigenlib.gridworld import ACTIONS, MOVES, GridWorld
from eigenlib.worlds import World, require_world

SIDE = 84  # frames are SIDE × SIDE, as in the paper and in DQN

FLOOR, WALL, AGENT, BEYOND, DOOR = 24, 104, 235, 0, 48  # greys of a drawn maze


@runtime_checkable
class PixelWorld(Protocol):
    """What collecting, training and options need of a world, be it a game or a drawn maze.

    A world may also have `cut_off` (an episode that is over was only stopped by a limit; nothing in the world ended) and
    `room()` (where it consists of several).
    """

    name: str

    @property
    def n_actions(self) -> int: ...

    @property
    def over(self) -> bool:
        """The episode has ended: reset before acting again."""

    @property
    def lives(self) -> int:
        """Lives left; 0 in worlds without any."""

    def reset(self) -> None: ...

    def act(self, action: int) -> float:
        """One decision; returns the reward."""

    def frame(self) -> np.ndarray:
        """(84, 84) uint8 grey, an array that later acts do not change."""

    def save(self) -> Any:
        """Everything that `frame` and all later `act`s depend on."""

    def restore(self, state: Any) -> None:
        """Back to a saved state: `frame` shows at once what it showed then."""

    def position(self) -> tuple[float, float] | None:
        """The avatar's (x, y) on the screen, None where unknown."""


def require_pixel_world(world: Any) -> None:
    if not isinstance(world, PixelWorld):
        raise ValueError(
            f"world must be an Emulator, a PixelMaze or alike (see PixelWorld), got {_require.shown(world)}."
        )


def require_frames(frames: Any) -> np.ndarray:
    """(N, 84, 84) bytes; a memory map is not read."""
    if isinstance(frames, np.ndarray) and frames.dtype == np.uint8 and frames.shape[1:] == (SIDE, SIDE) and len(frames):
        return frames
    return _require.wholes(frames, "frames", ("N", SIDE, SIDE), 0, 255).astype(np.uint8)


class PixelMaze:
    """A GridWorld drawn as 84×84 frames. Episodes start in a random state and are cut off after `steps` decisions.

    seed: a whole number or a Generator to draw from; None is 0.
    """

    lives = 0
    screen_size = (SIDE, SIDE)

    def __init__(self, world: GridWorld, seed: int | np.random.Generator | None = 0, steps: int = 100) -> None:
        require_world(world)
        self.frames = draw(world)  # (S, 84, 84)
        self.frames.flags.writeable = False  # frame() hands out views
        self.world, self.steps = world, _require.whole(steps, "steps", 1)
        self.name, self.n_actions = world.name or "own map", world.n_actions
        self.action_names = ACTIONS if self.n_actions == len(ACTIONS) else tuple(map(str, range(self.n_actions)))
        self.ways, self.upto = world.sampler
        self.rng = _require.generator(seed)
        self.reset()

    def seeded(self, seed: int) -> PixelMaze:
        """The same maze with another seed."""
        return PixelMaze(self.world, seed, self.steps)

    @property
    def parameters(self) -> dict[str, Any]:
        """What decides, with a seed and actions, what happens: a dataset records it."""
        moves = np.ascontiguousarray(self.world.next_state, dtype="<i8").tobytes()
        marks = hashlib.sha256(moves + self.frames.tobytes()).hexdigest()[:16]
        about = {"game": self.name, "moves_and_frames": marks, "slip": self.world.slip, "steps": self.steps}
        own = hashlib.sha256(self.ways.astype("<i8").tobytes() + self.upto.astype("<f8").tobytes()).hexdigest()[:16]
        return about if self._as_drawn() else about | {"outcomes": own}

    def _as_drawn(self) -> bool:
        """Whether map and slip say all about what actions do."""
        drawn, said = GridWorld.outcomes(self.world), self.world.outcomes()
        return len(drawn) == len(said) and all(
            np.array_equal(p, q) and np.array_equal(a, b) for (p, a), (q, b) in zip(drawn, said, strict=True)
        )

    @property
    def over(self) -> bool:
        return self.decisions >= self.steps

    @property
    def cut_off(self) -> bool:
        """Nothing ends in a maze: only our patience does."""
        return self.over

    def reset(self) -> None:
        self.state, self.decisions = int(self.rng.integers(self.world.n_states)), 0

    def act(self, action: int) -> float:
        """One step, to where the world's outcomes lead; no maze here has rewards."""
        if not 0 <= _require.whole(action, "action") < self.n_actions:
            raise ValueError(f"{self.name} has the actions 0 to {self.n_actions - 1}, not {action!r}.")
        if self.over:
            raise RuntimeError(f"This episode of {self.name} is over: call reset() before acting again.")
        way = int((self.rng.random() >= self.upto[:, self.state, action]).sum()) if len(self.upto) else 0
        self.state = int(self.ways[way, self.state, action])
        self.decisions += 1
        return 0.0

    def frame(self) -> np.ndarray:
        return self.frames[self.state]

    def position(self) -> tuple[float, float]:
        """The middle (x, y) of the agent's square, in pixels of the frame."""
        cell, top, left = _layout(self.world)
        row, column = self.world.cells[self.state]
        return left + (column + 0.5) * cell - 0.5, top + (row + 0.5) * cell - 0.5

    def save(self) -> tuple[int, int, Mapping[str, Any]]:
        return self.state, self.decisions, self.rng.bit_generator.state

    def restore(self, state: tuple[int, int, Mapping[str, Any]]) -> None:
        try:
            place, decisions, chance = state
            self.rng.bit_generator.state = chance
        except (TypeError, ValueError, KeyError, AttributeError):
            raise ValueError(f"state must be what save() has given, got {_require.shown(state)}.") from None
        self.state = _require.whole(place, "state", 0, self.world.n_states - 1)
        self.decisions = _require.whole(decisions, "state", 0)


def draw(world: GridWorld) -> np.ndarray:
    """(S, 84, 84) uint8: the world with the agent in each of its states."""
    if isinstance(world, World):
        _ = world.free  # where there is no map, this says so
    _require.instance(world, "world", GridWorld, "only a map can be drawn")
    cell, top, left = _layout(world)
    height, width = world.free.shape
    picture = np.full((SIDE, SIDE), BEYOND, np.uint8)
    floor = np.where(world.free, FLOOR, WALL).astype(np.uint8)
    picture[top : top + height * cell, left : left + width * cell] = np.kron(floor, np.ones((cell, cell), np.uint8))
    corners = world.cells * cell + (top, left)  # (S, 2) upper left pixel of each cell
    for state in np.flatnonzero(_one_way(world)).tolist():
        y, x = corners[state].tolist()
        picture[y : y + cell, x : x + cell] = DOOR
        for action, (down, right) in enumerate(MOVES.tolist()):  # the floor goes on where the door may be left
            if world.next_state[state, action] != state:
                lip = -(-cell // 3)
                y0, x0 = y + (down > 0) * (cell - lip), x + (right > 0) * (cell - lip)
                picture[y0 : y0 + (lip if down else cell), x0 : x0 + (lip if right else cell)] = FLOOR
    frames = np.repeat(picture[None], world.n_states, axis=0)
    inset = cell // 8
    for state, (y, x) in enumerate(corners.tolist()):
        frames[state, y + inset : y + cell - inset, x + inset : x + cell - inset] = AGENT
    return frames


def _layout(world: GridWorld) -> tuple[int, int, int]:
    """Pixels of a cell's side, and of the margins above and to the left of the maze."""
    height, width = world.free.shape
    if max(height, width) > SIDE:
        raise ValueError(
            f"A maze of {height}×{width} cells does not fit into {SIDE}×{SIDE} pixels: give a smaller one."
        )
    cell = SIDE // max(height, width)
    return cell, (SIDE - height * cell) // 2, (SIDE - width * cell) // 2


def _one_way(world: GridWorld) -> np.ndarray:
    """(S,) bool: states that can be entered from a side on which they cannot be left."""
    before = np.arange(world.n_states)[:, None]
    after = world.next_state
    back = world.next_state[after, (np.arange(len(MOVES)) + 2) % len(MOVES)]  # where the opposite move leads
    doors = np.zeros(world.n_states, bool)
    doors[after[(after != before) & (back != before)]] = True
    return doors
