"""Comparing an answer with what is right and with what mistakes lead to (see eigencourse.exercises).

An exercise that asks for a function names its cases, and for each of them the right value and the wrong ones by name:

    def values(T, gamma):
        exact = successor_representation(T, gamma)
        return exact, {"transposed": exact.T, "an average": (1 - gamma) * exact}

    compare(answer, chains(5), values, lambda given, right, T, gamma: {"off": …})

To name one more mistake: its value here, one line, and its sentence in the decorator. A mistake is named only if it explains
the answer in every case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from eigencourse.exercises.answers import Mistake, array, call, scalar


def close(left: Any, right: Any, tolerance: float = 1e-6) -> bool:
    """Equal up to rounding, and up to what a long but finite sum leaves out; NaN and ∞ only where the other has them."""
    left, right = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    if left.shape != right.shape:
        return False
    near = np.isfinite(right) & (np.abs(left - right) <= tolerance * np.maximum(1, np.abs(right)))
    return bool((near | (left == right) | (np.isnan(left) & np.isnan(right))).all())


def parallel(left: np.ndarray, right: np.ndarray, tolerance: float = 1e-6) -> bool:
    """Whether columns point along each other, one by one, whatever their lengths and signs."""
    if left.shape != right.shape:
        return False
    lengths = np.linalg.norm(left, axis=0) * np.linalg.norm(right, axis=0)
    return close(np.abs((left * right).sum(axis=0)) / np.maximum(lengths, 1e-12), np.ones(left.shape[1]), tolerance)


def recognise(answer: Any, wrong: Mapping[str, Any], same: Callable[..., bool] = close) -> None:
    """Raise the first mistake whose wrong value the answer has; a list holds several values of one mistake."""
    for name, values in wrong.items():
        if (numbers := _match(answer, values, same)) is not None:
            raise Mistake(name, **numbers)


def _match(given: Any, values: Any, same: Callable[..., bool]) -> dict[str, Any] | None:
    """The numbers that belong to the first of the values that is the same; a value may be (value, its numbers)."""
    for value in values if isinstance(values, (list, Iterator)) else [values]:
        value, numbers = value if isinstance(value, tuple) else (value, {})
        if same(given, value):
            return numbers
    return None


def read(result: Any, right: Any) -> Any:
    """A result as what is right: a number, or an array of its shape, in which NaN and ∞ may still give a mistake away."""
    return array(result, np.shape(right), finite=False) if np.ndim(right) else scalar(result)


def compare(
    answer: Any,
    cases: Iterable[tuple],
    values: Callable[..., tuple[Any, Mapping[str, Any]]],
    numbers: Callable[..., Mapping[str, Any]],
    *,
    accept: Callable[..., bool] | None = None,
    same: Callable[..., bool] = close,
    reading: Callable[[Any, Any], Any] = read,
    search: Callable[..., None] = lambda *_: None,
    singular: str = "",
) -> list[Any]:
    """What the answer gives in every case, if all of it is right; else the mistake that explains it, or "else".

    cases: the arguments of each call.  values(*case): what is right, and {mistake: value, or several} of what is not.
    numbers(given, right, *case): for the sentence "else", of the first case that fails.
    accept(given, right, *case): where more than one answer is right.  same: how values are compared.
    search(given, *case): may raise a mistake that only the answer itself can lead to.
    singular: what it means if a matrix cannot be inverted, or its inverse is noise.
    """
    asked: list[tuple[Any, Any, Mapping[str, Any], tuple]] = []
    stopped: Mistake | None = None
    for case in cases:
        right, wrong = values(*case)
        try:
            asked.append((reading(call(answer, *case), right), right, wrong, case))
        except Mistake as mistake:
            stopped = mistake
            break
    accept = accept or (lambda given, right, *_: same(given, right))
    failed = [one for one in asked if not accept(one[0], one[1], *one[3])]
    # What is wrong in an earlier case says more than a shape that does not fit in a later one.
    if stopped and not failed:
        raise Mistake(singular) if singular and "singular" in str(stopped.numbers.get("error")).lower() else stopped
    if not failed:
        return [given for given, *_ in asked]
    for name in dict.fromkeys(name for _, _, wrong, _ in asked for name in wrong):
        # In some cases a mistake cannot be told from another, and is not listed.
        found = [_match(given, wrong[name], same) for given, _, wrong, _ in asked if name in wrong]
        if None not in found:
            raise Mistake(name, **next((said for said in found if said), {}))
    given, right, _, case = failed[0]
    if not np.isfinite(given).all():
        raise Mistake("not finite")
    if singular and np.abs(given).max() > 1e9:
        raise Mistake(singular)
    search(given, *case)
    raise Mistake("else", **numbers(given, right, *case))


def worst(given: np.ndarray, right: np.ndarray) -> dict[str, float]:
    """The entry that is furthest from what it should be, for the sentence "else"."""
    place = np.unravel_index(np.argmax(np.abs(given - right)), np.shape(right))
    return {"given": np.asarray(given)[place], "wanted": np.asarray(right)[place]}


def letters(answer: Any, true: Mapping[str, bool]) -> None:
    """Which sentences hold, as letters in any form; the first that is judged wrongly is the mistake."""
    if not isinstance(answer, (str, list, tuple, set)) or not all(isinstance(one, str) for one in answer):
        raise Mistake("letters")
    given = {letter for letter in "".join(answer).lower() if letter.isalnum()}
    if not given or not given <= set(true):
        raise Mistake("letters")
    for letter, holds in true.items():
        if holds != (letter in given):
            raise Mistake(letter)


def choices(answer: Any, right: Mapping[str, str], incomplete: str, swaps: Iterable[str] = ()) -> None:
    """One of the numbers 1 to 4 for each letter. swaps: pairs ("b and c") whose exchange is a mistake of its own."""
    pairs = answer if isinstance(answer, dict) else dict(zip(right, answer, strict=False))
    given = {str(key).lower(): str(value).removesuffix(".0") for key, value in pairs.items()}
    if set(given) != set(right) or not set(given.values()) <= set("1234"):
        raise Mistake(incomplete)
    for swap in swaps:
        one, other = swap.split(" and ")
        if given == {**right, one: right[other], other: right[one]}:
            raise Mistake(swap)
    for letter, number in right.items():
        if given[letter] != number:
            raise Mistake(letter)
