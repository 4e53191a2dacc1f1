"""What `World.outcomes()` says, checked once, and the tables that follow from it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from eigenlib import _require

Outcome = tuple[float | np.ndarray, np.ndarray]
_ROUNDING = 1e-9  # by which probabilities may miss 1


class Sampler(NamedTuple):
    """ways: (K, S, A) next states.  upto: (K − 1, S, A). A draw in [0, 1) takes the first way k with draw < upto[k],
    else the last."""

    ways: np.ndarray
    upto: np.ndarray


class Dynamics:
    """What outcomes() said, checked, and what follows from it."""

    def __init__(self, said: Any, shape: tuple[int, int]) -> None:
        try:
            pairs = [(chance, states) for chance, states in said]
        except TypeError:
            raise ValueError("outcomes() must return (probability, next states) pairs.") from None
        self.shape = shape
        self.said = [(_chance(chance, shape), _next_states(states, shape)) for chance, states in pairs]
        found = [(chance, states) for chance, states in self.said if np.any(chance > 0)]
        total = np.broadcast_to(sum(chance for chance, _ in found), shape)
        worst = np.unravel_index(np.argmax(np.abs(total - 1)), shape)
        if not abs(total[worst] - 1) <= _ROUNDING:
            raise ValueError(
                f"The probabilities of outcomes() must sum to 1 for every state and action, but in state {worst[0]} those of "
                f"action {worst[1]} sum to {total[worst]:.6g}."
            )
        if any(np.ndim(chance) and not np.all(chance) for chance, _ in found):
            chances = np.stack([np.broadcast_to(chance, shape) for chance, _ in found])
            ways = np.stack([states for _, states in found])
            likeliest = np.take_along_axis(ways, chances.argmax(axis=0)[None], axis=0)[0]
            found = [(chance, np.where(chance > 0, states, likeliest)) for chance, states in found]
        self.pairs = found

    def still(self, said: Any, shape: tuple[int, int]) -> bool:
        """Whether a later answer is the same; anything odd is not, and will be checked."""
        try:
            return shape == self.shape and all(
                np.array_equal(chance, c) and (states is s or np.array_equal(states, s))
                for (chance, states), (c, s) in zip(said, self.said, strict=True)
            )
        except (TypeError, ValueError):
            return False

    @cached_property
    def sampler(self) -> Sampler:
        # The last outcome stands first. For slips that is the order right, ahead, left, in which this library has always
        # drawn them, so that what a seed gave stays what it gives.
        chances, ways = zip(*self.pairs[-1:], *self.pairs[:-1], strict=True)
        if any(np.ndim(chance) for chance in chances):
            upto = np.cumsum([np.broadcast_to(chance, self.shape) for chance in chances[:-1]], axis=0)
        else:
            upto = np.broadcast_to(np.cumsum(chances[:-1]).reshape(-1, 1, 1), (len(ways) - 1, *self.shape))
        return Sampler(ways[0][None] if len(ways) == 1 else np.stack(ways), upto)

    @cached_property
    def uniform_moves(self) -> np.ndarray | None:
        if len(self.pairs) == 1:
            return self.pairs[0][1]
        if any(np.ndim(chance) for chance, _ in self.pairs):
            return None
        moves = self.said[0][1]  # of the first pair even if it never happens: on a map they are the moves themselves
        ordered = np.sort(moves, axis=1)
        return moves if all((np.sort(states, axis=1) == ordered).all() for _, states in self.pairs) else None


def _chance(chance: Any, shape: tuple[int, int]) -> float | np.ndarray:
    """A probability of outcomes(): a float, or an (S, A) array if it varies."""
    chance = _require.floats(chance, "A probability of outcomes()")
    if chance.shape not in ((), shape):
        raise ValueError(
            f"A probability of outcomes() is a number or an array of shape {shape}, one per state and action; got shape "
            f"{chance.shape}."
        )
    if not (chance >= 0).all():
        raise ValueError("The probabilities of outcomes() must be numbers that are not negative.")
    return float(chance.flat[0]) if (chance == chance.flat[0]).all() else chance.copy()


def _next_states(states: Any, shape: tuple[int, int]) -> np.ndarray:
    states = np.asarray(states)
    if states.shape != shape or states.dtype.kind not in "iu":
        raise ValueError(
            f"The next states of outcomes() are whole numbers of shape {shape}, one per state and action; got shape "
            f"{states.shape} of type {states.dtype}."
        )
    if states.min() < 0 or states.max() >= shape[0]:
        raise ValueError(
            f"The next states of outcomes() must be states, from 0 to {shape[0] - 1}; they range from {states.min()} to "
            f"{states.max()}."
        )
    # A copy, unless nobody can change the array: the next answer of outcomes() is compared with this one.
    return np.array(states, np.int64, copy=True if states.flags.writeable else None)
