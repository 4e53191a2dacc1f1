"""All refusals of the tabular functions, in one voice: what was wrong, what was expected, what to do.

Each function returns what it was given in the form that the caller needs, or raises a ValueError of one sentence.
"""

from __future__ import annotations

from math import prod
from operator import index

import numpy as np
from scipy import sparse

_LARGEST = 10**10  # numbers in one array: 80 GB
_MOST = 2**62  # larger numbers do not fit into the loops' 64 bits, and nobody would live to see them end


def require_floats(values, name: str) -> np.ndarray:
    """values as an array of floats; complex numbers, words and ragged lists are refused."""
    try:
        values = np.asarray(values)
        if values.dtype.kind in "biuf":
            return values.astype(float, copy=False)
        if values.dtype.kind == "O":
            return values.astype(float)
    except (TypeError, ValueError):
        pass
    else:
        if values.dtype.kind == "c":
            raise ValueError(f"{name} must be real, but its entries are complex numbers.")
    raise ValueError(f"{name} must be an array of numbers, got {_shown(values)}.")


def require_square(matrix, name: str):
    """matrix as floats, (S, S), dense or sparse, all finite."""
    if sparse.issparse(matrix):
        if matrix.dtype.kind == "c":
            raise ValueError(f"{name} must be real, but its entries are complex numbers.")
        matrix = sparse.csr_matrix(matrix, dtype=float)
    else:
        matrix = require_floats(matrix, name)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"{name} must be a square matrix with one row per state, got shape {matrix.shape}.")
    entries = matrix.data if sparse.issparse(matrix) else matrix
    if not np.isfinite(entries).all():
        raise ValueError(f"{name} holds entries that are not finite numbers (NaN or ∞).")
    return matrix


def require_stochastic(T):
    """T as a float matrix, or a sentence that says which row is no probability distribution."""
    T = require_square(T, "T")
    rows = np.asarray(T.sum(axis=1)).ravel()
    smallest = T.data.min(initial=0.0) if sparse.issparse(T) else T.min()
    if smallest < 0:
        raise ValueError(f"T holds probabilities, which cannot be negative; its smallest entry is {smallest:g}.")
    worst = int(np.argmax(np.abs(rows - 1)))
    if not abs(rows[worst] - 1) <= 1e-9:
        raise ValueError(
            f"Row {worst} of T sums to {rows[worst]:.6g} instead of 1: T must be row-stochastic. Divide W by its degrees, "
            "or use world.transition_matrix()."
        )
    return T


def require_discount(gamma: float) -> None:
    require_number(gamma, "γ")
    if not 0.0 <= gamma < 1.0:
        raise ValueError(f"γ must lie in [0, 1), got {gamma!r}: at γ = 1 the sum of all future visits has no limit.")


def require_number(number: float, name: str) -> float:
    """A single real number; NaN passes, and fails the caller's comparison."""
    try:
        if not isinstance(number, str | bytes) and np.ndim(number) == 0:
            return float(number)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} must be a number, got {_shown(number)}.")


def require_rate(rate: float, name: str) -> float:
    """A step size in (0, 1]."""
    if not 0.0 < require_number(rate, name) <= 1.0:
        raise ValueError(f"{name} must lie in (0, 1], got {rate!r}; the paper uses 0.1.")
    return float(rate)


def require_positive(number: int, name: str, least: int = 1) -> int:
    try:
        number = index(number)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, got {_shown(number)}.") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}.")
    if number > _MOST:
        raise ValueError(f"{name} must be at most 2⁶², got {number}.")
    return number


def require_room(what: str, *shape: int) -> None:
    """Refuse results that no memory holds, before numpy tries: systems lend memory that they do not have."""
    if prod(shape) > _LARGEST:
        raise ValueError(f"{what} do not fit into memory ({' × '.join(map(str, shape))} numbers): ask for fewer.")


def require_state(n_states: int, state: int, name: str) -> int:
    """The number of one of the world's states."""
    try:
        number = index(state)
    except TypeError:
        raise ValueError(f"{name} must be a state's number, got {_shown(state)}.") from None
    if not 0 <= number < n_states:
        raise ValueError(f"{name} must be one of the states 0 to {n_states - 1} of this world, got {number}.")
    return number


def require_seed(rng) -> int:
    """A seed from what a user may give: a whole number, a numpy Generator to draw one from, or None for 0."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    try:
        seed = 0 if rng is None else index(rng)
    except TypeError:
        raise ValueError(f"A seed is a whole number or a numpy Generator, got {_shown(rng)}.") from None
    if seed < 0:
        raise ValueError(f"A seed cannot be negative, got {seed}.")
    return seed


def require_generator(rng) -> np.random.Generator:
    """What numpy draws from: the Generator itself, or a new one from a seed, None being seed 0 as everywhere."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(require_seed(rng))


def _shown(thing) -> str:
    """What was given, short enough for a sentence."""
    text = " ".join(repr(thing).split())
    return text if len(text) <= 80 else f"{text[:77]}…"
