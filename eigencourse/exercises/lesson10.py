"""Checks of lesson 10, Eigenoptions from pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eigencourse.exercises import Mistake, call, exercise, recognise, scalar
from eigencourse.exercises.answers import Blank

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
    """What the learner does here: a number, ENDS where nothing was returned."""
    try:
        return scalar(call(answer, now, ahead))
    except Blank:
        return ENDS
    except Mistake as mistake:
        if mistake.name == "in place":  # here nothing is an answer, whatever was done to the arguments
            return ENDS
        raise


@exercise(
    "10.1",
    difficulty=1,
    minutes=6,
    mistakes={
        "−e": "you took the action with the smallest e·φ. That is an option too, and an equally good one: the sign of "
        "a singular vector is arbitrary, so the lesson follows both. But it is the option of −e, and e was asked for.",
        "largest change": "you took the action that changes e·φ most, whichever way. Losses do not count: take the "
        "largest gain.",
        "the value": "this is what the best action leads to. Return the action's number: argmax, not max.",
        "not the best": "with e·φ = {now:g} now and {ahead} after each action, you take action {given:g}. Another one "
        "pays more.",
        "never ends": "your option never ends: where every action loses, it takes the one that loses least, and so it "
        "will pace about its summit for ever.",
        "exactly equal": "your option ends only where the best action leads to exactly the same e·φ. On a summit every "
        "action *loses*, and there it must end too: test for ≤, not for ==.",
        "for nothing": "your option goes on where the best action gains nothing. A gain of 0 is no gain; waiting "
        "counts as an action too, so such an option would wait for ever.",
        "potential": "you pay for e·φ itself. What pays is the *gain* (Eq. 1): at e·φ = −3 a step to −2 is worth 1, "
        "and at 4 a step to 3.5 is a loss.",
        "ends too soon": "your option ends although an action pays: {now:g} now, {ahead} after each action.",
        "else": "with e·φ = {now:g} now and {ahead} after each action, no action pays. The option should end: return "
        "None.",
    },
)
def greedy(answer):
    """One greedy step, or the end"""
    rng = np.random.default_rng(101)
    for _ in range(4):
        cases = _situations(rng)
        did = {name: _action(answer, *case) for name, case in cases.items()}
        if set(did.values()) == {ENDS}:
            raise Blank
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


# What each way of playing has: features that were trained, an SR of these features, a choice of direction, and a climb.
_HAS = {
    "a": {"training", "choice", "climb"},
    "b": {"training", "climb"},
    "c": {"SR", "choice", "climb"},
    "d": set(),
}
_MISSING = {"1": {"SR"}, "2": {"SR", "choice"}, "3": {"training"}, "4": {"training", "SR", "choice", "climb"}}


@exercise(
    "10.2",
    difficulty=1,
    minutes=5,
    mistakes={
        "a": "look at (a) again: PCA has the trained features and chooses among their directions by what varies most. "
        "Of all that the eigenpurposes have, what does it not use?",
        "b": "look at (b) again: the directions are arbitrary, but in the space of which features?",
        "c": "look at (c) again: the untrained network is given everything, an SR and its singular vectors too, and "
        "only one thing was kept from it.",
        "d": "look at (d) again: does random play look at any features, or follow any direction?",
        "b and c": "(b) and (c) have changed places. Random directions stand in features that *were* trained; the "
        "untrained network has a proper SR and proper singular vectors, of features that were not.",
        "a and c": "(a) and (c) have changed places. PCA does without the SR in trained features; the untrained "
        "network has an SR, and features that learned nothing.",
        "all four": "give one of the numbers 1 to 4 for each of a, b, c and d.",
    },
)
def compared(answer):
    """What does each control take away?"""
    pairs = answer if isinstance(answer, dict) else dict(zip("abcd", answer, strict=False))
    given = {str(key).lower(): str(value).removesuffix(".0") for key, value in pairs.items()}
    if set(given) != set(_HAS) or not set(given.values()) <= set(_MISSING):
        raise Mistake("all four")
    everything = set.union(*_HAS.values())
    right = {
        letter: next(n for n, missing in _MISSING.items() if everything - has == missing)
        for letter, has in _HAS.items()
    }
    for one, other in (("b", "c"), ("a", "c")):
        if given == right | {one: right[other], other: right[one]}:
            raise Mistake(f"{one} and {other}")
    for letter, number in right.items():
        if given[letter] != number:
            raise Mistake(letter)
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


@exercise(
    "10.3",
    difficulty=3,
    minutes=12,
    mistakes={
        "within": "this is the share that is left *within* the squares. What the place explains is the rest: 1 minus "
        "it.",
        "root": "this is the root of the share. R8 is a share of the variance.",
        "unweighted": "you gave every square the same weight. A square that was visited a thousand times says more "
        "than one that was visited twice: weigh each by its visits.",
        "mean kept": "you took squares of the potential itself. Variance is about the mean, and a potential that is "
        "shifted by a constant must have the same R8.",
        "to the rest": "this is explained over *unexplained*, which has no upper limit. The share is explained over "
        "all.",
        "half a place": "you grouped by column or by row alone. A square is both: rows of `cells` that are equal as "
        "pairs (np.unique with axis=0 numbers them).",
        "a line": "you fitted a straight line, or correlated with x or y. The place may decide the potential in any "
        "way; numbers of squares are names, and only the means within squares count.",
        "not a share": "this is a variance. Divide it by that of the whole potential.",
        "else, place": "for a potential that depends on the square alone, R8 must be 1, and yours is {given:.3g}.",
        "else, noise": "for noise that has nothing to do with the square, R8 must be close to 0, and yours is "
        "{given:.3g}.",
        "not invariant": "yours is {one:.3g} for a potential and {other:.3g} for the same one shifted, stretched and "
        "turned upside down. What explains the one explains the other.",
        "else": "for a mixture of place and noise R8 is {wanted:.3f}, and yours is {given:.3f}. Replace each value by "
        "the mean of its square: what is the mean squared error, as a share of the variance?",
    },
)
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


def _jumps(heights: np.ndarray, start: int, depth: int) -> int:
    """Goes all the way to a place exactly so far away, as long as one of them is higher."""
    place = start
    for _ in heights:
        place = _far_only(heights, place, depth)
    return place


_SIGHTED: dict[str, list[Callable[[np.ndarray, int, int], int]]] = {
    "one step": [_climb(lambda heights, place, depth: _highest(heights, place, 1))],
    "no second plan": [_highest],
    "sees all": [lambda heights, start, depth: int(heights.argmax())],
    "the far end only": [_climb(_far_only), _jumps],
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
    "start": [lambda heights, start, depth: start],
}


@exercise(
    "10.4",
    difficulty=2,
    minutes=10,
    mistakes={
        "one step": "yours looks one decision ahead, whatever the depth. With a longer plan it can go down first, if "
        "what comes after more than makes up for it.",
        "no second plan": "you carried out one plan and stopped. From its end another plan may pay: plan again until "
        "none does.",
        "sees all": "yours ends on the highest place of all, and it cannot see that far: a plan has only so many "
        "decisions.",
        "the far end only": "you looked only at the places that are exactly `depth` away. A plan may also wait, so "
        "every place up to there is within reach.",
        "heights paid": "you added up the heights along the way. What pays is each step's *gain*; then all that is in "
        "between cancels, and a plan is worth what its end is higher than its beginning.",
        "downhill": "yours goes down: that is the option of −e.",
        "one too far": "yours sees one place too far. With depth 1 only the two neighbours are within reach. (Up to "
        "and including place + depth is a slice that ends at place + depth + 1.)",
        "one too near": "yours sees one place too few. (Up to and including place + depth is a slice that ends at "
        "place + depth + 1.)",
        "one side": "yours looks to one side only. From a place one can go both ways.",
        "start": "yours never leaves the start.",
        "the height": "this is a height. Return the number of the place.",
        "not a place": "{given:g} is not one of the places 0 to {last}.",
        "else": "on heights {heights} with depth {depth}, the way from place {start} ends at {wanted}, yours at "
        "{given:g}. Ask at every place: what is the highest I can reach with one plan, and is it higher than here?",
    },
)
def short_sight(answer):
    """Where does a short-sighted climber end?"""
    rng = np.random.default_rng(104)
    tries, ends = [], []
    for depth in (1, 2, 2, 3, 3, 4, 4, 5):
        for _ in range(2):
            heights = rng.permutation(18).astype(float) - 4  # whole numbers, all different
            start = int(rng.integers(4, 14))
            end = scalar(call(answer, heights, start, depth))
            tries.append((heights, start, depth))
            ends.append(end)
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
