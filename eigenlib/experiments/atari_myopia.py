"""Where do options go that look further ahead than one decision? Two games, their shipped networks (notebook 10)."""

from __future__ import annotations

from typing import Any

from eigenlib.atari import device, metrics, options, pretrained
from eigenlib.atari.emulator import Emulator
from eigenlib.experiments._tasks import Arrays, Found

DEPTHS = {"freeway": 4, "montezuma_revenge": 4}  # how many decisions the deeper plans have
PURPOSES, STEPS = 4, 60  # eigenpurposes, each in both directions, and decisions
SETTINGS = [(game, pays, depth) for game, deep in DEPTHS.items() for pays in ("phi", "psi") for depth in (1, deep)]


def run(setting: tuple[str, Any, int]) -> Found:
    """Where options go, as in options.Trajectories and metrics.behaviour, that pay for e·φ or e·ψ and look so far ahead."""
    game, reward, depth = setting
    found = pretrained.load(game)
    vectors = options.both_signs(found.arrays["sr.vectors"][:, :PURPOSES])
    with device.threads(1):
        log = options.follow_greedily(Emulator(game), found.network, vectors, STEPS, reward=reward, depth=depth)
    kept = {name: getattr(log, name) for name in ("positions", "rooms", "lives", "actions")}
    return kept | metrics.behaviour(log), {}


def score(results: dict[tuple[str, ...], Arrays]) -> dict[str, float]:
    """How many of the options go somewhere and stay."""
    return {f"{game}, e·{pays}, {d} ahead": float(found["goes"].sum()) for (game, pays, d), found in results.items()}
