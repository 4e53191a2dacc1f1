"""Checks of lesson 09, Training on Atari."""

from __future__ import annotations

import numpy as np

from eigencourse.exercises import exercise
from eigencourse.exercises.answers import Mistake, array, call, pair, scalar
from eigencourse.exercises.compare import close, letters, recognise

HALF = 6  # half the side of the box around the avatar


def _games(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict[int, int]]:
    """Rows as `collect` stores them: actions, ends, and for each row with a transition whether something follows it."""
    # here, not above: lessons that need no torch load this file too
    from eigenlib.atari.dataset import CUT_OFF, EPISODE_ENDED, LIFE_LOST, NO_ACTION, ORDINARY

    actions: list[int] = []
    ends: list[int] = []
    follows: dict[int, int] = {}
    for last in rng.permutation([EPISODE_ENDED, CUT_OFF, EPISODE_ENDED, CUT_OFF, LIFE_LOST]):
        steps = int(rng.integers(4, 9))
        codes = rng.choice([ORDINARY, ORDINARY, LIFE_LOST], size=steps)
        codes[-1] = last  # one was cut off just when a life was lost: that is noted as the loss
        for code in codes:
            follows[len(actions)] = int(code in (ORDINARY, CUT_OFF))
            actions.append(int(rng.integers(18)))
            ends.append(int(code))
        actions.append(NO_ACTION)  # the frame in which the game was left: the next row is another game's first
        ends.append(ORDINARY)
    return np.array(actions, np.uint8), np.array(ends, np.uint8), follows


def _numbers(values) -> np.ndarray:
    """An answer as numbers; True and False count as 1 and 0."""
    values = np.asarray(values)
    return array(values.astype(int) if values.dtype == bool else values)


@exercise
def transitions(answer):
    """Which rows may be trained on, and where does something follow?"""
    from eigenlib.atari.dataset import EPISODE_ENDED, LIFE_LOST, ORDINARY

    rng = np.random.default_rng(91)
    for _ in range(4):
        actions, ends, follows = _games(rng)
        found = pair(call(answer, actions, ends))
        rows, given = np.asarray(found[0]), _numbers(found[1]).ravel()
        if rows.dtype == bool and rows.shape == actions.shape:  # a mask says the same
            rows = np.flatnonzero(rows)
        rows = array(rows).ravel()
        wanted = np.array(list(follows))
        if len(actions) - 1 in rows:
            raise Mistake("past the end")
        strays = rows[~np.isin(rows, wanted)]
        if len(strays) and strays[0] in range(len(actions)):
            raise Mistake("across games", row=int(strays[0]))
        if len(rows) and set(rows) in (set(wanted[ends[wanted] == 0]), set(wanted[~np.isin(ends[wanted], (1, 2))])):
            raise Mistake("losses dropped")
        if sorted(rows) != list(wanted):
            raise Mistake("rows")
        if given.shape != rows.shape:
            raise Mistake("one a row", given=len(given), wanted=len(rows))
        given = given[np.argsort(rows)]
        codes, exact = ends[wanted], np.array(list(follows.values()))
        if close(given, exact):
            continue
        wrong = {
            "reversed": 1 - exact,
            "cut off": codes == ORDINARY,
            "across a death": codes != EPISODE_ENDED,
            "across the end": [np.ones(len(codes)), codes != LIFE_LOST],
            "a row late": ~np.isin(ends[wanted + 1], (LIFE_LOST, EPISODE_ENDED)),
        }
        recognise(given, wrong)
        worst = int(np.argmax(np.abs(given - exact)))
        raise Mistake("else", code=int(codes[worst]), given=given[worst], row=int(wanted[worst]))
    return (
        "no transition leads from one game into another; a death is an end, and a camera that was switched off is not."
    )


def _pictures(rng: np.random.Generator, count: int) -> np.ndarray:
    """(count, 6, 9) uint8: pixels that never change, that flicker by one grey level, that vary a little, and a lot."""
    shape = (count, 6, 9)
    spread = np.array([0.0, 0.0, 3.0, 10.0, 30.0, 60.0])[:, None]  # in grey levels, by row of the picture
    frames = rng.integers(70, 150, size=shape[1:]) + rng.normal(size=shape) * spread
    frames[:, 1] = frames[0, 1]
    frames[rng.integers(count), 1] += 1  # once, by one: a deviation smaller than 1 even in grey levels
    frames[:, 5] = np.where(frames[:, 5] > 110, 250, 5)  # on and off
    return np.clip(frames, 0, 255).astype(np.uint8)


@exercise
def normalise(answer):
    """Frames as the network sees them"""
    rng = np.random.default_rng(92)
    for count, floor in ((40, 0.3), (25, 0.02), (60, 0.1)):  # first a high floor, with pixels on both sides of it
        frames = _pictures(rng, count)
        x = frames / 255
        mean, spread = x.mean(axis=0), x.std(axis=0)
        raw = np.asarray(call(answer, frames, floor))
        if raw.dtype.kind == "f" and raw.shape == frames.shape and not np.isfinite(raw[:, spread == 0]).all():
            alive = spread > 0
            recognise(raw[:, alive], {"the smaller": ((x - mean) / np.minimum(spread, floor))[:, alive]})
            raise Mistake("no floor")
        given = array(raw, frames.shape)
        if any(
            close(given, (x - mean) / np.maximum(x.std(axis=0, ddof=ddof), floor), 1e-4) for ddof in (0, 1)
        ):  # with N or N − 1 in the deviation
            continue
        wrong: dict[str, list[np.ndarray]] = {}

        def also(name, values, wrong=wrong):
            wrong.setdefault(name, []).append(values)

        for ddof in (0, 1):
            s = x.std(axis=0, ddof=ddof)
            scale, dead = np.maximum(s, floor), s == 0
            also("no floor", np.where(dead, 0, (x - mean) / np.where(dead, 1, s)))
            also("not 255", 255 * (x - mean) / np.maximum(255 * s, floor))
            also("not 255", 255 * (x - mean) / scale)
            also("not 255", (255 * x - mean) / scale)
            also("floor added", (x - mean) / (s + floor))
            also("floor on the variance", (x - mean) / np.sqrt(np.maximum(s**2, floor)))
            also("floor on the variance", (x - mean) / np.sqrt(s**2 + floor))
            also("variance", (x - mean) / np.maximum(s**2, floor))
            also("variance", (x - mean) / np.maximum(s**2, floor**2))
            also("the smaller", (x - mean) / np.where(dead, 1, np.minimum(s, floor)))
            also("mean stays", x / scale)
            also("sign", (mean - x) / scale)
            of_image = (x.mean(axis=(1, 2), keepdims=True), x.std(axis=(1, 2), keepdims=True, ddof=ddof))
            of_all = (x.mean(), x.std(ddof=ddof))
            for name, (m, d) in {"one image": of_image, "one number": of_all}.items():
                also(name, (x - m) / np.maximum(d, floor))
                also(name, (x - m) / scale)
                also(name, (x - mean) / np.maximum(d, floor))
        also("not divided", x - mean)
        recognise(given, wrong)
        if (given[x < mean - 0.02] >= 0).all():
            raise Mistake("overflow")
        off = np.abs(given.std(axis=0) - np.minimum(1, spread / floor)) + np.abs(given.mean(axis=0))
        worst = np.unravel_index(np.argmax(off), off.shape)
        numbers = {"mean": given.mean(axis=0)[worst], "given": given.std(axis=0)[worst]}
        raise Mistake("else", floor=floor, spread=spread[worst], **numbers)
    return (
        "each pixel has mean 0 over the frames, deviation 1 where it varies, and less where it hardly does: whatever "
        "moves is equally loud."
    )


def _box(x: float, y: float, half: int = HALF) -> np.ndarray:
    """(84, 84) bool: the square of 2·half pixels a side around column x and row y, as far as it lies in the frame."""
    from eigenlib.atari.pixels import SIDE

    inside = [np.abs(np.arange(SIDE) + 0.5 - round(centre)) < half for centre in (x, y)]
    return inside[1][:, None] & inside[0]


@exercise
def box_error(answer):
    """The error around the avatar"""
    from eigenlib.atari.pixels import SIDE

    rng = np.random.default_rng(93)
    # Away from the edge first; all where it does not matter whether the middle is rounded or cut to a whole pixel.
    places = [((58.0, 63.0), (210, 160)), ((103.0, 171.0), (210, 160)), ((71.0, 99.0), (250, 160))]
    places += [((4.0, 203.0), (210, 160)), ((149.0, 8.0), (210, 160))]
    for (px, py), (height, width) in places:
        truth, prediction = rng.normal(size=(2, SIDE, SIDE))
        squares = (prediction - truth) ** 2
        x, y = px * SIDE / width, py * SIDE / height
        box = _box(x, y)
        edge = box.sum() < (2 * HALF) ** 2
        exact = squares[box].mean()
        found = call(answer, prediction, truth, np.array([px, py]), (height, width))
        if np.ndim(found) == 0 and isinstance(found, (float, np.floating)) and np.isnan(found):
            raise Mistake("edge" if edge else "not finite")
        given = scalar(found)
        if close(given, exact):
            continue
        boxes = {
            "x and y": [_box(y, x), _box(px * SIDE / height, py * SIDE / width).T],
            "height and width": [_box(px * SIDE / height, py * SIDE / width)],
            "not rescaled": [_box(px, py), _box(py, px)],
            "too large": [_box(x, y, 2 * HALF)],
            "13 × 13": [_box(x, y) | _box(x + 1, y) | _box(x, y + 1) | _box(x + 1, y + 1)],
        }
        errors = np.abs(prediction - truth)
        wrong = {name: [squares[one].mean() for one in some if one.any()] for name, some in boxes.items()}
        wrong |= {
            "whole frame": [squares.mean()],
            "diluted": [(squares * box).mean()],
            "summed": [squares[box].sum(), squares.sum()],
            "not squared": [
                errors[box].mean(),
                (prediction - truth)[box].mean(),
                (prediction - truth)[box].mean() ** 2,
            ],
            "root": [np.sqrt(exact)],
        }
        recognise(given, wrong)
        if edge:
            raise Mistake("edge")
        shown = {"position": (px, py), "screen": (height, width), "x": x, "y": y}
        raise Mistake("else", wanted=exact, given=given, **shown)
    return "the right pixels, on screens of two sizes and at the frame's edge, and nothing else counts."


def _errors_of_guesses(step: int, side: int = 84, wide: int = 8) -> tuple[float, float]:
    """Squared errors of "background" and "copy", summed over a frame, for a bright bar that moves round by `step`."""
    frames = np.array([np.roll(np.arange(side) < wide, step * t) for t in range(side)], dtype=float)
    background = ((frames[1:] - frames.mean(axis=0)) ** 2).sum(axis=1).mean()
    return background, ((frames[1:] - frames[:-1]) ** 2).sum(axis=1).mean()


def _true_of_guesses() -> dict[str, bool]:
    """Which of the sentences of 09.4 are true, from the pixels of which they speak."""
    still, flame = np.ones(1_000), np.arange(1_000) % 2.0
    path = (np.arange(1_000) % 100 == 50).astype(float)  # a pixel that the avatar crosses once in a hundred frames
    creeping, jumping = _errors_of_guesses(1), _errors_of_guesses(20)
    loud, rare = flame.var(), path.var()
    return {
        "a": bool(still.var() == 0 and (np.diff(still) == 0).all()),
        "b": creeping[1] < creeping[0],
        "c": jumping[1] < jumping[0],
        "d": close(loud, rare, 0.1),
        "e": close((flame / flame.std()).var(), (path / path.std()).var()),
    }


@exercise
def guesses(answer):
    """Two guesses that cost nothing"""
    letters(answer, _true_of_guesses())
    return (
        "in grey levels the torch outshouts the avatar; divided by their deviations both cost the same, and then it "
        "pays to learn about the avatar too."
    )
