"""All refusals in one voice: what a parameter must be and what was given, in one sentence.

Every function takes what a user gave and the parameter's name, and returns it in the form that the code behind wants, or
raises a ValueError. A bool is no number here, a float no whole number, a word no truth: Python would take `interrupt="no"` for
yes, `episodes=True` for one, and an answer that nobody asked for is worse than none.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from scipy import sparse

ROOM = 10**10  # numbers in one array: 80 GB
LARGEST = 2**62  # larger numbers do not fit into the loops' 64 bits, and nobody would live to see them end
Thing = TypeVar("Thing")
Shape = Sequence[int | str] | None
Matrix: TypeAlias = Any  # a square array, dense or of scipy.sparse, which has no types to name


def shown(value: Any) -> str:
    """A value as a sentence can hold it."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    plain = isinstance(value, str | bytes | bool | int | float | complex) or value is None
    if plain or (isinstance(value, list | tuple | dict | set) and len(repr(value)) <= 60):
        text = repr(value)
    else:
        kind = type(value).__name__
        return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
    return " ".join(text.split()) if len(text) <= 80 else f"{' '.join(text[:77].split())}…"


def discount(gamma: Any, name: str = "γ") -> float:
    if not 0.0 <= (found := real(gamma, name, finite=False)) < 1.0:
        raise ValueError(
            f"{name} must lie in [0, 1), got {gamma!r}: at γ = 1 the sum of all future visits has no limit."
        )
    return found


def rate(number: Any, name: str) -> float:
    """A step size in (0, 1]."""
    if not 0.0 < (found := real(number, name, finite=False)) <= 1.0:
        raise ValueError(f"{name} must lie in (0, 1], got {number!r}; the paper uses 0.1.")
    return found


def seed(number: Any, name: str = "seed") -> int:
    """A whole number from 0 on, however large."""
    if isinstance(number, np.random.Generator):
        raise ValueError(f"{name} must be a whole number here, not a Generator.")
    return whole(number, name, 0, math.inf)


def generator(rng: Any) -> np.random.Generator:
    """The one rule for `rng`: a Generator is drawn from, a seed makes a new one, None is seed 0."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(seed_from(rng))


def seed_from(rng: Any) -> int:
    """The same rule for loops that draw by themselves: they start from the seed, or from one that the Generator draws."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    try:
        found = 0 if rng is None else whole(rng, "rng", most=math.inf)
    except ValueError:
        raise ValueError(f"A seed is a whole number or a numpy Generator, got {shown(rng)}.") from None
    if found < 0:
        raise ValueError(f"A seed cannot be negative, got {found}.")
    return found


def state(number: Any, name: str, n_states: int) -> int:
    """The number of one of a world's states."""
    try:
        found = whole(number, name, most=math.inf)
    except ValueError:
        raise ValueError(f"{name} must be a state's number, got {shown(number)}.") from None
    if not 0 <= found < n_states:
        raise ValueError(f"{name} must be one of the states 0 to {n_states - 1} of this world, got {found}.")
    return found


def room(what: str, *shape: int) -> None:
    """Refuse results that no memory holds, before numpy tries: systems lend memory that they do not have."""
    if math.prod(shape) > ROOM:
        raise ValueError(f"{what} do not fit into memory ({' × '.join(map(str, shape))} numbers): ask for fewer.")


def whole(number: Any, name: str, least: int | None = None, most: float = LARGEST) -> int:
    try:
        found = None if isinstance(number, bool | np.bool_) else index(number)
    except TypeError:
        found = None
    if found is None:
        raise ValueError(f"{name} must be a whole number, got {shown(number)}.")
    if least is not None and found < least:
        raise ValueError(f"{name} must be at least {least}, got {found}.")
    if found > most:
        raise ValueError(f"{name} must be at most {'2⁶²' if most == LARGEST else most}, got {shown(found)}.")
    return found


def real(
    number: Any, name: str, low: float = -math.inf, high: float = math.inf, ends: str = "[]", finite: bool = True
) -> float:
    """A number; `ends` says whether low and high are allowed, too: "[]", "(]", "[)" or "()"."""
    single = not isinstance(number, bool | np.bool_) and getattr(number, "ndim", 0) == 0
    try:
        found = float(number) if single and hasattr(number, "__float__") else None
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        raise ValueError(f"{name} must be a number, got {shown(number)}.")
    if finite and not math.isfinite(found):
        raise ValueError(f"{name} must be a finite number, got {found}.")
    above = found >= low if ends[0] == "[" else found > low
    if finite and not (above and (found <= high if ends[1] == "]" else found < high)):
        if math.isinf(high):
            raise ValueError(f"{name} must be {'at least' if ends[0] == '[' else 'above'} {low:g}, got {found:g}.")
        raise ValueError(f"{name} must lie in {ends[0]}{low:g}, {high:g}{ends[1]}, got {found:g}.")
    return found


def flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {shown(value)}.")
    return bool(value)


def choice(value: Any, name: str, allowed: Iterable[str]) -> str:
    allowed = tuple(allowed)
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {shown(value)}.")
    return value


def text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {shown(value)}.")
    return value


def path(value: Any, name: str) -> Path:
    """A path that a file can have: text or a Path, not empty."""
    if not isinstance(value, str | os.PathLike) or not str(value) or "\0" in str(value):
        raise ValueError(f"{name} must be the path of a file or folder, got {shown(value)}.")
    return Path(value)


def instance(value: Any, name: str, kind: type[Thing], advice: str = "") -> Thing:
    """Something of a class; advice: how to make one."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise ValueError(f"{name} must be {article} {kind.__name__}, got {shown(value)}{advice and f': {advice}'}.")
    return value


def several(values: Any, name: str, what: str) -> list[Any]:
    """A list of all that an iterable holds, so that a generator is not used up by looking at it twice."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list of {what}, got {shown(values)}.")
    if isinstance(values, np.ndarray) and values.ndim == 0:
        raise ValueError(f"{name} must be a list of {what}, got a single one: put it in brackets.")
    return list(values)


def mapping(values: Any, name: str, what: str) -> Mapping[Any, Any]:
    if not isinstance(values, Mapping):
        raise ValueError(f"{name} must be a dictionary of {what}, got {shown(values)}.")
    return values


def numbers(values: Any, name: str, shape: Shape = None, finite: bool = True, empty: bool = False) -> np.ndarray:
    """Real numbers as float64. shape: the size of each axis, or a letter where any size will do; None for any shape."""
    return as_given(values, name, shape, finite, empty).astype(float)


def as_given(values: Any, name: str, shape: Shape = None, finite: bool = True, empty: bool = False) -> np.ndarray:
    """The same, of the kind that they are and without a copy: for arrays that fill a good part of the memory."""
    array = _array(values, name, "numbers", "buif", shape, empty)
    if finite and not np.isfinite(array).all():
        raise ValueError(f"{name} holds entries that are not finite numbers (NaN or ∞).")
    return array


def floats(values: Any, name: str) -> np.ndarray:
    """Numbers of any shape, for callers who say themselves which shapes and sizes they take."""
    return numbers(values, name, finite=False, empty=True)


def wholes(
    values: Any, name: str, shape: Shape = None, least: int | None = None, most: int = LARGEST, empty: bool = False
) -> np.ndarray:
    """Whole numbers as int64."""
    array = _array(values, name, "whole numbers", "iu", shape, empty)
    if array.size and (array.max() > most or (least is not None and array.min() < least)):
        wrong = array[(array > most) | (array < (-LARGEST if least is None else least))][0]
        raise ValueError(f"{name} must lie between {least} and {most}, but one of them is {wrong}.")
    return array.astype(np.int64)


def truths(values: Any, name: str, shape: Shape = None) -> np.ndarray:
    """An array of True and False."""
    return _array(values, name, "True or False", "b", shape, empty=False)


def square(matrix: Any, name: str) -> Matrix:
    """matrix as floats, (S, S), dense or sparse, all finite."""
    if sparse.issparse(matrix):
        if matrix.dtype.kind == "c":
            raise ValueError(f"{name} must be real, but its entries are complex numbers.")
        matrix = sparse.csr_matrix(matrix, dtype=float)
    else:
        matrix = floats(matrix, name)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"{name} must be a square matrix with one row per state, got shape {matrix.shape}.")
    if not np.isfinite(matrix.data if sparse.issparse(matrix) else matrix).all():
        raise ValueError(f"{name} holds entries that are not finite numbers (NaN or ∞).")
    return matrix


def smallest(matrix: Matrix) -> float:
    """The smallest entry; of a sparse matrix at most 0."""
    return float(matrix.data.min(initial=0.0) if sparse.issparse(matrix) else matrix.min())


def stochastic(T: Any) -> Matrix:
    """T as a float matrix, or a sentence that says which row is no probability distribution."""
    T = square(T, "T")
    rows = np.asarray(T.sum(axis=1)).ravel()
    if smallest(T) < 0:
        raise ValueError(f"T holds probabilities, which cannot be negative; its smallest entry is {smallest(T):g}.")
    worst = int(np.argmax(np.abs(rows - 1)))
    if not abs(rows[worst] - 1) <= 1e-9:
        raise ValueError(
            f"Row {worst} of T sums to {rows[worst]:.6g} instead of 1: T must be row-stochastic. Divide W by its degrees, "
            "or use world.transition_matrix()."
        )
    return T


def _array(values: Any, name: str, what: str, kinds: str, shape: Shape, empty: bool) -> np.ndarray:
    try:
        array = np.asarray(values)
    # Rows of several lengths; a tensor that has a gradient.
    except (ValueError, TypeError, OverflowError, RuntimeError):
        array = np.asarray(None)
    if empty and not array.size and array.dtype.kind == "f":
        array = array.astype({"b": bool}.get(kinds, float if "f" in kinds else int))  # numpy gives an empty list floats
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must be real, but its entries are complex numbers.")
    drawn = None if shape is None else f" of shape ({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
    if array.dtype.kind not in kinds:
        given = f"an array of {array.dtype}" if isinstance(values, np.ndarray) else shown(values)
        raise ValueError(f"{name} must be an array of {what}{drawn or ''}, got {given}.")
    fits = shape is None or (
        array.ndim == len(shape)
        and all(isinstance(want, str) or want == size for want, size in zip(shape, array.shape, strict=True))
    )
    if not fits or (not empty and not array.size):
        expected = drawn or " with at least one entry"
        raise ValueError(f"{name} must be an array of {what}{expected}, got shape {array.shape}.")
    return array
