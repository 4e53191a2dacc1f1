"""Plans of a few decisions, tried out in a world that can be put back (options.follow).

For a depth of 1 the plans are the actions. For more they form a tree, stored as a list in which a plan stands after the one
that it prolongs: all sequences of `depth` actions and all their beginnings, as long as there are at most MOST of them;
where there are more, each action done again and again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eigenlib.atari.pixels import PixelWorld

MOST = 256
ZERO = 1e-5  # × |e·φ|: what float32 makes of equal numbers, and so no gain


class Plan(NamedTuple):
    """A plan: what comes before its last action (the number of another node, −1 for nothing), and that action."""

    before: int
    action: int
    first: int  # the plan's first action
    length: int
    goes_on: bool  # longer plans begin with this one


def plans(n_actions: int, depth: int) -> list[Plan]:
    """All plans to compare, short ones first; the first n_actions are the single actions, in order."""
    every = n_actions**depth <= MOST
    tree = [Plan(-1, action, action, 1, depth > 1) for action in range(n_actions)]
    level = list(range(n_actions))
    for length in range(2, depth + 1):
        begin = len(tree)
        for before in level:
            for action in range(n_actions) if every else [tree[before].action]:
                tree.append(Plan(before, action, tree[before].first, length, length < depth))
        level = list(range(begin, len(tree)))
    return tree


def look_ahead(world: PixelWorld, state: Any, tree: list[Plan]) -> list[np.ndarray]:
    """The frame to which each plan leads. Where an episode ends on the way, nothing follows: the frame stays."""
    frames: list[np.ndarray] = []
    saved: dict[int, Any] = {-1: state}
    for number, node in enumerate(tree):
        if node.before not in saved:
            frames.append(frames[node.before])
            continue
        world.restore(saved[node.before])
        world.act(node.action)
        frames.append(world.frame())
        if node.goes_on and not world.over:
            saved[number] = world.save()
    return frames


def best_plans(
    potentials: np.ndarray, now: np.ndarray, tree: list[Plan], gamma: float
) -> tuple[np.ndarray, np.ndarray]:
    """First action and discounted gain, (K,) each, of the best plan; potentials: (P, K) where plans lead, now: (K,)."""
    returns = np.empty_like(potentials)
    for number, node in enumerate(tree):
        base, earned = (potentials[node.before], returns[node.before]) if node.before >= 0 else (now, 0.0)
        returns[number] = earned + gamma ** (node.length - 1) * (potentials[number] - base)
    zero = ZERO * np.maximum(np.abs(potentials).max(axis=0), np.abs(now))
    best = returns.max(axis=0)
    plan = np.argmax(returns >= best - zero, axis=0)  # the first of those that tie
    gain = returns[plan, np.arange(len(plan))]
    return np.array([node.first for node in tree])[plan], np.where(np.abs(gain) <= zero, 0.0, gain)
