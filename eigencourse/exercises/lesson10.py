"""Checks of lesson 10, Eigenoptions from pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eigencourse.exercises import exercise
from eigencourse.exercises.answers import Mistake, call, scalar
from eigencourse.exercises.compare import choices, recognise

ENDS = -1  # how an end is noted here; a learner returns None, or −1 as in lesson 04


def _situations(rng: np.random.Generator) -> dict[str, tuple[float, np.ndarray]]:
    """e·φ now and after each action, by what is special about them."""
    count = int(rng.integers(4, 10))

    def ahead(lowest: float, highest: float) -> np.ndarray:
        return rng.permutation(np.linspace(lowest, highest, count))  # no two alike

    return {
        "up": (2.0, ahead(0.4, 3.3)),  # the largest change is a loss
        "up, below zero": (-3.0, ahead(-3.5, -1.2)),  # the largest change is the gain
        "top": (4.0, ahead(1.0, 3.5)),
        "top, below zero": (-1.0, ahead(-4.0, -1.5)),
        "level": (1.5, ahead(-2.0, 1.5)),
        "flat": (0.7, np.full(count, 0.7)),
    }


def _action(answer: Any, now: float, ahead: np.ndarray) -> float:
    """What the learner does here: a number, ENDS where nothing was returned, whatever was done to the arguments."""
    try:
        return scalar(call(answer, now, ahead))
    except Mistake as mistake:
        if mistake.name in ("in place", "returned nothing"):
            return ENDS
        raise


@exercise
def greedy(answer):
    """One greedy step, or the end"""
    rng = np.random.default_rng(101)
    for _ in range(4):
        cases = _situations(rng)
        did = {name: _action(answer, *case) for name, case in cases.items()}
        if set(did.values()) == {ENDS}:
            raise Mistake("returned nothing")
        for name in ("up", "up, below zero"):
            now, ahead = cases[name]
            shown = {"now": now, "ahead": ", ".join(f"{value:.2g}" for value in ahead)}
            if did[name] == ahead.argmax():
                continue
            if did[name] == ENDS:
                potential = name == "up, below zero" and did["top"] != ENDS
                raise Mistake("potential") if potential else Mistake("ends too soon", **shown)
            if did[name] == ahead.argmin():
                below = cases["up, below zero"][1]
                raise Mistake("largest change" if did["up, below zero"] == below.argmax() else "−e")
            wrong = {"the value": [ahead.max(), ahead.max() - now]}
            recognise(did[name], wrong)
            raise Mistake("not the best", given=did[name], **shown)
        goes_on = {name for name, action in did.items() if action != ENDS and not name.startswith("up")}
        if not goes_on:
            continue
        if goes_on == {"top", "top, below zero", "level", "flat"}:
            raise Mistake("never ends")
        if goes_on in ({"top", "top, below zero"}, {"top", "top, below zero", "level"}):
            raise Mistake("exactly equal")
        if goes_on <= {"level", "flat"}:
            raise Mistake("for nothing")
        now, ahead = cases[min(goes_on)]
        raise Mistake("else", now=now, ahead=", ".join(f"{value:.2g}" for value in ahead))
    return (
        "uphill while something pays, and an end where nothing does. The library also counts as nothing what rounding "
        "makes of equal numbers."
    )


# What each way of playing has: features that were trained, an SR that was learned, a choice of direction, and a climb.
_HAS = {
    "a": {"training", "choice", "climb"},
    "b": {"training", "climb"},
    "c": {"choice", "climb"},
    "d": set(),
}
_MISSING = {"1": {"SR"}, "2": {"SR", "choice"}, "3": {"training", "SR"}, "4": {"training", "SR", "choice", "climb"}}


@exercise
def compared(answer):
    """What does each control take away?"""
    everything = _MISSING["4"]
    right = {
        letter: next(n for n, missing in _MISSING.items() if everything - has == missing)
        for letter, has in _HAS.items()
    }
    choices(answer, right, "all four", swaps=("b and c", "a and c"))
    return (
        "each control does without something, so a tie would name what did not earn the credit. Now let them compete."
    )


def _walk(rng: np.random.Generator, samples: int, columns: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells of a walk (N, 2), visited unequally often, and for each row its cell's height and spread, (N,) each."""
    share = rng.dirichlet(np.full(columns * rows, 2.0))
    index = np.concatenate([np.repeat(np.arange(len(share)), 20), rng.choice(len(share), size=samples, p=share)])
    heights, spread = rng.normal(0, 1.5, size=len(share)), rng.uniform(0.2, 3.0, size=len(share)) * (share < 0.12)
    corner = rng.integers(2, 9, size=2)
    cells = np.stack([index % columns, index // columns], axis=1) + corner
    return cells, heights[index], spread[index]


def _explained(potential: np.ndarray, labels: np.ndarray) -> float:
    """1 − within / whole."""
    means = np.bincount(labels, potential) / np.maximum(np.bincount(labels), 1)
    return float(1 - ((potential - means[labels]) ** 2).mean() / potential.var())


def _wrong_shares(potential: np.ndarray, cells: np.ndarray) -> dict[str, list[float]]:
    """What classic mistakes make of R8."""
    _, labels = np.unique(cells, axis=0, return_inverse=True)
    labels = labels.ravel()
    visits = np.bincount(labels)
    means = np.bincount(labels, potential) / visits
    variances = np.bincount(labels, (potential - means[labels]) ** 2) / visits
    corrected = variances * visits / (visits - 1)
    exact, whole = _explained(potential, labels), potential.var()
    sides = [cells[:, k] - cells[:, k].min() for k in (0, 1)]
    design = np.column_stack([np.ones(len(cells)), cells])
    rest = potential - design @ np.linalg.lstsq(design, potential, rcond=None)[0]
    lines = [np.corrcoef(side, potential)[0, 1] for side in sides]
    return {
        "within": [1 - exact],
        "root": [np.sqrt(max(exact, 0)), np.sqrt(max(1 - exact, 0))],
        "unweighted": [
            means.var() / whole,
            *(1 - some.mean() / whole for some in (variances, corrected)),
            *(means.var() / (means.var() + some.mean()) for some in (variances, corrected)),
        ],
        "mean kept": [
            1 - (variances @ visits) / (potential**2).sum(),
            (means**2 @ visits) / (potential**2).sum(),
        ],
        "to the rest": [exact / (1 - exact)],
        "half a place": [_explained(potential, side) for side in sides],
        "a line": [1 - rest.var() / whole, *lines, *np.square(lines), *np.abs(lines)],
        "not a share": [whole - variances @ visits / len(potential), variances @ visits / len(potential)],
    }


@exercise
def r8(answer):
    """How far does the place decide?"""
    rng, near = np.random.default_rng(103), 0.012  # so much may be due to the corrections for small samples
    for columns, rows in ((4, 3), (5, 2), (2, 4)):
        cells, heights, spread = _walk(rng, 6_000, columns, rows)
        _, labels = np.unique(cells, axis=0, return_inverse=True)
        potential = heights + spread * rng.normal(size=len(cells)) + 1.5
        given, exact = scalar(call(answer, potential, cells)), _explained(potential, labels.ravel())
        other = scalar(call(answer, 7 - 3 * potential, cells))
        if abs(given - exact) > near:
            # A correction for small samples moves a wrong number as little as a right one.
            wrong = {
                name: min(abs(given - value) for value in values)
                for name, values in _wrong_shares(potential, cells).items()
            }
            name = min(wrong, key=wrong.__getitem__)
            if wrong[name] < near / 10 or (name in ("within", "half a place") and wrong[name] < near):
                raise Mistake(name)
        if abs(given - other) > 1e-4:
            raise Mistake("not invariant", one=given, other=other)
        pure, noise = (scalar(call(answer, one, cells)) for one in (heights, rng.normal(size=len(cells))))
        if abs(pure - 1) > near / 10:
            raise Mistake("else, place", given=pure)
        if abs(noise) > near:
            raise Mistake("else, noise", given=noise)
        if abs(given - exact) > near:
            raise Mistake("else", wanted=exact, given=given)
    return "1 for a matter of place, 0 for noise, and the same for e, 3e and −e: with this one can judge a network."


def _climb(step: Callable[[np.ndarray, int, int], int]):
    """Where an agent ends that goes one place at a time towards step(heights, place, depth)."""

    def end(heights: np.ndarray, start: int, depth: int) -> int:
        place = start
        for _ in range(4 * len(heights)):  # some of the mistakes below pace to and fro
            place += int(np.sign(step(heights, place, depth) - place))
        return place

    return end


def _highest(heights: np.ndarray, place: int, depth: int) -> int:
    """The highest place within reach: gains add up to what the end is higher, so the best plan ends there."""
    low = max(place - depth, 0)
    return low + int(heights[low : place + depth + 1].argmax())


def _far_only(heights: np.ndarray, place: int, depth: int) -> int:
    """Only the places that are exactly so far away are looked at."""
    some = [place, *(far for far in (place - depth, place + depth) if 0 <= far < len(heights))]
    return max(some, key=heights.__getitem__)


def _largest_sum(heights: np.ndarray, place: int, depth: int) -> int:
    """The next place on the way with the largest sum of heights, as if every height were paid for."""
    best, after = np.zeros(len(heights)), heights
    for _ in range(depth):
        after = heights + best
        padded = np.concatenate([[-np.inf], after, [-np.inf]])
        best = np.max([padded[:-2], padded[1:-1], padded[2:]], axis=0)
    near = [one for one in (place, place - 1, place + 1) if 0 <= one < len(heights)]
    return max(near, key=after.__getitem__)


def _leap(step: Callable[[np.ndarray, int, int], int]):
    """Where an agent ends that goes all the way at once."""

    def end(heights: np.ndarray, start: int, depth: int) -> int:
        place = start
        for _ in heights:
            place = step(heights, place, depth)
        return place

    return end


def _half_slice(heights: np.ndarray, place: int, depth: int) -> int:
    """As far as it should to the left, one place less to the right."""
    low = max(place - depth, 0)
    return low + int(heights[low : place + depth].argmax())


def _wrapped_slice(heights: np.ndarray, place: int, depth: int) -> int:
    """A negative index counts from the other end: near the left end nothing is in sight."""
    window = heights[place - depth : place + depth + 1]
    return place - depth + int(window.argmax()) if window.size else place


_SIGHTED: dict[str, list[Callable[[np.ndarray, int, int], int]]] = {
    "one step": [_climb(lambda heights, place, depth: _highest(heights, place, 1))],
    "no second plan": [_highest],
    "sees all": [lambda heights, start, depth: int(heights.argmax())],
    "the far end only": [_climb(_far_only), _leap(_far_only)],
    "heights paid": [_climb(_largest_sum)],
    "downhill": [_climb(lambda heights, place, depth: _highest(-heights, place, depth))],
    "one too far": [_climb(lambda heights, place, depth: _highest(heights, place, depth + 1))],
    "one too near": [_climb(lambda heights, place, depth: _highest(heights, place, depth - 1))],
    "one side": [
        _climb(lambda heights, place, depth: place + int(heights[place : place + depth + 1].argmax())),
        _climb(
            lambda heights, place, depth: (
                max(place - depth, 0) + int(heights[max(place - depth, 0) : place + 1].argmax())
            )
        ),
    ],
    "half a slice": [go(slice) for go in (_climb, _leap) for slice in (_half_slice, _wrapped_slice)],
    "start": [lambda heights, start, depth: start],
}


@exercise
def short_sight(answer):
    """Where does a short-sighted climber end?"""
    rng = np.random.default_rng(104)
    depths = [depth for depth in (1, 2, 2, 3, 3, 4, 4, 5) for _ in range(2)]
    # Whole numbers, all different; at last near the ends, beyond which there is nothing.
    tries = [(rng.permutation(18) - 4.0, int(rng.integers(4, 14)), depth) for depth in depths]
    tries += [(rng.permutation(18) - 4.0, start, depth) for start, depth in ((1, 2), (1, 3), (1, 4), (16, 3))]
    ends = [scalar(call(answer, *one)) for one in tries]
    wanted = [_climb(_highest)(*one) for one in tries]
    if ends == wanted:
        return (
            "a plan pays what its end is higher than its beginning, however deep the valley in between. What ends an "
            "option is a valley that is wider than its sight."
        )
    for name, ways in _SIGHTED.items():
        if any(ends == [way(*one) for one in tries] for way in ways):
            raise Mistake(name)
    if ends == [one[0][place] for one, place in zip(tries, wanted, strict=True)]:
        raise Mistake("the height")
    k = next(k for k, end in enumerate(ends) if end != wanted[k])
    heights, start, depth = tries[k]
    if ends[k] not in range(len(heights)):
        raise Mistake("not a place", given=ends[k], last=len(heights) - 1)
    shown = ", ".join(f"{height:g}" for height in heights)
    raise Mistake("else", heights=shown, depth=depth, start=start, wanted=wanted[k], given=ends[k])
