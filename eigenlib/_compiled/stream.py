"""Randomness of the compiled loops: splitmix64 (Steele, Lea & Flood, 2014), carried in and out as one 64-bit number.

So a walk depends on its seed alone, not on the thread it ran in, and can be taken up again where it stopped.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Plain integers would do in Python, but numba turns uint64 ∘ int64 into float64: every constant here is a uint64.
GOLDEN, _MIX1, _MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31, _32 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@njit(inline="always")
def scramble(stream):
    """splitmix64's output for this state of the stream; the caller steps the stream by GOLDEN before each draw."""
    z = (stream ^ (stream >> _30)) * _MIX1
    z = (z ^ (z >> _27)) * _MIX2
    return z ^ (z >> _31)


@njit(inline="always")
def below(bits, n):
    """A uniform integer in [0, n) from the upper 32 of 64 random bits (no division; bias under n / 2³²)."""
    return np.int64(((bits >> _32) * np.uint64(n)) >> _32)


@njit(inline="always")
def outcome(stream, upto, s, action):
    """The outcome that this state of the stream draws: the first k with draw < upto[k], (K − 1, S, A), else the last."""
    draw = (scramble(stream) >> _11) * 2.0**-53
    k = 0
    while k < len(upto) and draw >= upto[k, s, action]:
        k += 1
    return k
