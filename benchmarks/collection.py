"""What preprocessing costs: `python benchmarks/collection.py`. The bar: 80 % of the bare emulator's speed on one core.

Bare is `ale.act` alone; collecting is everything that fills a dataset's rows: acting, 84×84 frames, positions, lives, rooms.
Both play the same piece of the same game, from a reset on, many times in turns. Processor seconds count, and the fastest
round of each: a busy machine slows many rounds, but hardly all of them.
"""

from __future__ import annotations

import time

import numpy as np
from ale_py import ALEInterface, LoggerMode, roms

from eigenlib.atari.dataset import play
from eigenlib.atari.emulator import AVATARS, LOCKED, Emulator

DECISIONS, SKIP, ROUNDS, BAR = 150, 5, 25, 0.80


def bare_emulator(game: str) -> ALEInterface:
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("frame_skip", SKIP)
    ale.loadROM(str(roms.get_rom_path(game)))
    return ale


def bare_seconds(ale: ALEInterface, game: str) -> float:
    choices, actions = ale.getMinimalActionSet(), np.random.default_rng(0)
    wishes = actions.integers(len(choices), size=DECISIONS).tolist()  # what `play` draws
    begin = time.process_time()
    ale.reset_game()
    for _ in range(LOCKED.get(game, 0) // SKIP):  # Ms. Pac-Man's tune, for which the other one waits too
        ale.act(choices[0])
    for wish in wishes[:-1]:  # the last of 150 rows starts no transition
        ale.act(choices[wish])
    return time.process_time() - begin


def collecting_seconds(emulator: Emulator) -> float:
    begin = time.process_time()
    play(emulator, DECISIONS, np.random.default_rng(0), one_room=False)
    return time.process_time() - begin


def main() -> None:
    print(f"decisions a second on one core, {SKIP} emulator frames each (bar: {BAR:.0%} of the bare emulator)")
    for game in sorted(AVATARS):
        ale, emulator, bare, ours = bare_emulator(game), Emulator(game, frame_skip=SKIP), [], []
        collecting_seconds(emulator)  # compile
        for _ in range(ROUNDS):
            bare.append(bare_seconds(ale, game))
            ours.append(collecting_seconds(emulator))
        ratio, speeds = min(bare) / min(ours), [DECISIONS / min(taken) for taken in (bare, ours)]
        verdict = "met" if ratio >= BAR else "NOT met"
        print(f"{game:20} bare {speeds[0]:6.0f}   collecting {speeds[1]:6.0f}   {ratio:4.0%}   {verdict}")


if __name__ == "__main__":
    main()
