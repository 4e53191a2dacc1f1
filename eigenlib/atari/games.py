"""What is known about single games, measured on ale-py 0.12 (tests/test_emulator.py measures it again)."""

from __future__ import annotations

import difflib
import re
from functools import cache
from typing import NamedTuple

from eigenlib import _require

GAMES = ("montezuma_revenge", "ms_pacman", "bank_heist", "freeway")  # the paper's four
LOCKED = {"ms_pacman": 264}  # emulator frames after a reset in which no action has an effect (a tune is played)
FLASHES = {"bank_heist": (100, 4)}  # a pixel (y, x) that shows nothing but the flashing floor
ROOMS = {"montezuma_revenge": 3, "bank_heist": 0}  # the RAM byte that tells rooms, or towns, apart
GONE = {"bank_heist": (8, 136)}  # this byte has this value while the avatar is nowhere (the car has blown up)


class Avatar(NamedTuple):
    """Where the middle of the avatar is on the screen: (RAM byte, sign, offset) for x and y; no byte, no movement."""

    x: tuple[int | None, int, float]
    y: tuple[int | None, int, float]


AVATARS = {
    "bank_heist": Avatar(x=(28, 1, 3.5), y=(8, 1, 40.0)),
    "freeway": Avatar(x=(None, 0, 46.5), y=(14, -1, 196.5)),
    "montezuma_revenge": Avatar(x=(42, 1, 2.5), y=(43, -1, 318.0)),
    "ms_pacman": Avatar(x=(10, 1, -8.5), y=(16, 1, 5.5)),
}


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
