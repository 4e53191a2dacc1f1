"""Atari games as pixel worlds: one adapter over ale_py (§4.2; notebooks 09 and 10).

A decision lasts `frame_skip` emulator frames. What the learner sees, `frame()`, is 84×84 greys: the brighter of the last
two emulator frames of a decision (sprites flicker), averaged over areas. What the emulator does not do by itself:

- `restoreState` leaves the old screen standing until the next act, so a saved state carries its own pictures.
- ALE's sticky actions keep the last action outside the saved state: a restored game would repeat what was done after
  saving. So the repeating is done here, with a generator that is saved too. The rule is ALE's (Machado et al., 2018):
  before each emulator frame the last action stays with probability `sticky`.
- Ms. Pac-Man plays a tune and ignores its first 264 frames: `reset` waits until decisions count.
- In Bank Heist each stick of dynamite flashes the floor of the town light grey, then darker, for some 16 frames: more than
  half of the frames of random play. `steady` paints a flashing floor black in `frame()`; `screen()` shows it as it is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from eigenlib import _require
from eigenlib.atari.pixels import SIDE

GAMES = ("montezuma_revenge", "ms_pacman", "bank_heist", "freeway")  # the paper's four


class Avatar(NamedTuple):
    """Where the middle of the avatar is on the screen: (RAM byte, sign, offset) for x and y; no byte, no movement."""

    x: tuple[int | None, int, float]
    y: tuple[int | None, int, float]


# What is known about single games, measured on ale-py 0.12; the tests measure it again.
AVATARS = {
    "bank_heist": Avatar(x=(28, 1, 3.5), y=(8, 1, 40.0)),
    "freeway": Avatar(x=(None, 0, 46.5), y=(14, -1, 196.5)),
    "montezuma_revenge": Avatar(x=(42, 1, 2.5), y=(43, -1, 318.0)),
    "ms_pacman": Avatar(x=(10, 1, -8.5), y=(16, 1, 5.5)),
}
LOCKED = {"ms_pacman": 264}  # emulator frames after a reset in which no action has an effect (a tune is played)
FLASHES = {"bank_heist": (100, 4)}  # a pixel (y, x) that shows nothing but the flashing floor
ROOMS = {"montezuma_revenge": 3, "bank_heist": 0}  # the RAM byte that tells rooms, or towns, apart
GONE = {"bank_heist": (8, 136)}  # this byte has this value while the avatar is nowhere (the car has blown up)


class Snapshot(NamedTuple):
    """A saved state: the emulator's own part, and what the emulator forgets."""

    game: Any
    frame: np.ndarray  # (84, 84)
    screen: np.ndarray  # (H, W, 3)
    held: Any  # the action that a sticky frame would repeat
    chance: Mapping[str, Any]  # the generator behind sticky frames


class Emulator:
    """A game by its name, as a PixelWorld. Same options, seed and actions: same game.

    sticky: a probability, 0 for none, usually 0.25.  actions: "minimal" for those the game uses, "full" for all 18.
    """

    def __init__(
        self,
        game: str,
        seed: int = 0,
        frame_skip: int = 5,
        sticky: float = 0.0,
        mode: int | None = None,
        difficulty: int | None = None,
        actions: str = "minimal",
        steady: bool = True,
    ) -> None:
        from ale_py import ALEInterface, LoggerMode, roms

        self.name, seed = game_name(game), _require.seed(seed)
        self.frame_skip = _require.whole(frame_skip, "frame_skip", 1, 1000)
        self.sticky, self.steady = _require.real(sticky, "sticky", 0, 1, "[)"), _require.flag(steady, "steady")
        _require.choice(actions, "actions", ("minimal", "full"))
        self._options: dict[str, Any] = {"mode": mode, "difficulty": difficulty, "actions": actions}
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.ale = ALEInterface()
        self.ale.setInt("random_seed", seed % 2**31)
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.setInt("frame_skip", 1)
        self.ale.loadROM(str(roms.get_rom_path(self.name)))
        self._choose("mode", mode, self.ale.getAvailableModes(), self.ale.setMode)
        self._choose("difficulty", difficulty, self.ale.getAvailableDifficulties(), self.ale.setDifficulty)
        self._choices = self.ale.getLegalActionSet() if actions == "full" else self.ale.getMinimalActionSet()
        self.n_actions = len(self._choices)
        self.rng = np.random.default_rng(seed)
        self.screen_size: tuple[int, int] = self.ale.getScreenDims()  # height, width: position() is in these pixels
        self._colours = np.empty(self.screen_size, np.uint8)
        self._table = np.full(256, -1, np.int16)  # the grey of each colour, learned when it is first seen
        self._table[0] = 0
        self._seen = np.ones((2, *self.screen_size), np.uint8)  # colours of the last two emulator frames; 1 is none
        self._greys = np.zeros((2, *self.screen_size), np.uint8)  # the same in grey
        self._changed = np.ones(self.screen_size[0], bool)  # rows that _picture does not show yet
        self._picture = np.zeros((SIDE, SIDE), np.uint8)
        self._frame: np.ndarray | None = None  # made when asked for
        self._screen: np.ndarray | None = None
        self.reset()

    def _choose(self, what: str, wanted: int | None, offered, choose) -> None:
        if wanted is not None:
            if _require.whole(wanted, what, 0) not in offered:
                raise ValueError(f"{self.name} has no {what} {wanted!r}: give one of {', '.join(map(str, offered))}.")
            choose(wanted)

    def seeded(self, seed: int) -> Emulator:
        """The same game with the same options and another seed."""
        return Emulator(seed=seed, **self.parameters)

    @property
    def parameters(self) -> dict[str, Any]:
        """What decides, with a seed and actions, what happens: a dataset records it."""
        ours = {"frame_skip": self.frame_skip, "sticky": self.sticky, "steady": self.steady}
        return {"game": self.name} | ours | self._options

    @property
    def action_names(self) -> list[str]:
        return [choice.name for choice in self._choices]

    # --- acting -----------------------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        return self.ale.game_over()

    @property
    def lives(self) -> int:
        return self.ale.lives()

    def reset(self) -> None:
        """A new game, at the first decision that counts."""
        from ale_py import Action

        self.ale.reset_game()
        self._held = Action.NOOP
        for _ in range(LOCKED.get(self.name, 1) - 1):
            self.ale.act(self._held)
        self._look(1)
        if self.name in LOCKED:
            self.ale.act(self._held)
        self._look(0)

    def act(self, action: int) -> float:
        """One decision of `frame_skip` emulator frames; returns the sum of their rewards."""
        if not 0 <= _require.whole(action, "action", 0) < self.n_actions:
            raise ValueError(f"{self.name} has the actions 0 to {self.n_actions - 1}, not {action!r}.")
        if self.over:
            raise RuntimeError(f"This game of {self.name} is over: call reset() before acting again.")
        choice, reward = self._choices[action], 0
        for left in range(self.frame_skip - 1, -1, -1):
            if not self.sticky or self.rng.random() >= self.sticky:
                self._held = choice
            reward += self.ale.act(self._held)
            if left < 2:
                self._look(left)
        if self.frame_skip == 1:
            self._look(1)  # a picture shows nothing from before its decision
        return float(reward)

    # --- looking ----------------------------------------------------------------------------------------------------

    def frame(self) -> np.ndarray:
        """(84, 84) uint8: what the learner sees."""
        if self._frame is None:
            from eigenlib._compiled.emulator import shrink

            (first, second), (height, width) = self._greys, self.screen_size
            shrink(first, second, *windows(height), *windows(width), self._changed, self._picture)
            self._frame = self._picture.copy()
            self._frame.flags.writeable = False
        return self._frame

    def screen(self) -> np.ndarray:
        """(H, W, 3) uint8: the last emulator frame in colour, 210×160 in most games."""
        if self._screen is None:
            self._screen = self.ale.getScreenRGB()
            self._screen.flags.writeable = False
        return self._screen

    def ram(self) -> np.ndarray:
        """(128,) uint8."""
        return self.ale.getRAM()

    def position(self) -> tuple[float, float] | None:
        """The avatar's middle (x, y) in pixels of `screen()`; None while it is nowhere, or in games not fitted."""
        if self.name not in AVATARS:
            return None
        ram = self.ale.getRAM()
        if self.name in GONE and ram[GONE[self.name][0]] == GONE[self.name][1]:
            return None
        x, y = (
            offset + (sign * int(ram[byte]) if byte is not None else 0) for byte, sign, offset in AVATARS[self.name]
        )
        return x % self.screen_size[1], y  # who leaves a maze by the tunnel on one side comes in on the other

    def room(self) -> int | None:
        """Which room of Montezuma's Revenge, or the how-manieth town of Bank Heist; None in other games."""
        byte = ROOMS.get(self.name)
        return None if byte is None else int(self.ale.getRAM()[byte])

    def _look(self, slot: int) -> None:
        """Take the emulator's present frame as one of the last two."""
        from eigenlib._compiled.emulator import translate

        self._frame = self._screen = None
        self.ale.getScreen(self._colours)
        flash = self._colours[FLASHES[self.name]] if self.steady and self.name in FLASHES else np.uint8(0)
        arrays = self._seen[slot], self._table, self._greys[slot], self._changed
        while not translate(self._colours, flash, *arrays):
            self._table[self.ale.getScreen()] = self.ale.getScreenGrayscale()

    # --- going back -------------------------------------------------------------------------------------------------

    def save(self) -> Snapshot:
        """Everything that looking and acting depend on; good for any Emulator with the same options."""
        game = self.ale.cloneState(include_rng=True)
        return Snapshot(game, self.frame(), self.screen(), self._held, self.rng.bit_generator.state)

    def restore(self, state: Snapshot) -> None:
        """Back to a saved state, pictures included."""
        _require.instance(state, "state", Snapshot, "save one with save()")
        self.ale.restoreState(state.game)
        self._frame, self._screen, self._held = state.frame, state.screen, state.held
        self.rng.bit_generator.state = state.chance


@cache
def windows(length: int) -> tuple[np.ndarray, np.ndarray]:
    """How `length` pixels become 84: (84,) the first pixel under each, (K, 84) how much of it and of the next ones.

    Weights are whole numbers (a whole pixel counts 84 / gcd), so that the sums of a mean are exact.
    """
    common = int(np.gcd(length, SIDE))
    span, unit = length // common, SIDE // common  # an output pixel is span/unit pixels wide
    left = np.arange(SIDE) * span
    first = left // unit
    pixels = first + np.arange(1 - -span // unit)[:, None]  # a span can touch one pixel more than it is wide
    overlap = np.minimum((pixels + 1) * unit, left + span) - np.maximum(pixels * unit, left)
    return first.astype(np.uint32), np.maximum(overlap, 0).astype(np.float32)


def game_name(text: str) -> str:
    """ale_py's name of a game: "Ms. Pac-Man", "MsPacman" or "ms_pacman" → "ms_pacman". Errors name the nearest games."""
    games, key = _games(), _key(_require.text(text, "The name of a game"))
    if key not in games:
        near = [games[other] for other in difflib.get_close_matches(key, games, n=3, cutoff=0.4)]
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(games.values()))}."
        raise ValueError(f"ale-py has no one-player game called {text!r}: {hint}")
    return games[key]


def _key(text: str) -> str:
    return re.sub(r"['’]s\b|[^a-z0-9]", "", text.lower())


@cache
def _games() -> dict[str, str]:
    """{simplified name: ale_py's name}. A ROM that ALE has no rules for would end the whole process: it is left out."""
    from ale_py import ALEInterface, LoggerMode, roms

    ALEInterface.setLoggerMode(LoggerMode.Error)
    paths = {rom: roms.get_rom_path(rom) for rom in roms.get_all_rom_ids()}
    return {_key(rom): rom for rom, path in paths.items() if path and ALEInterface.isSupportedROM(path)}
