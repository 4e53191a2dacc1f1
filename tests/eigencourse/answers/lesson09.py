"""Right and wrong answers to the exercises of lesson 09: what a class hands in."""

import numpy as np


def rows_and_follow(actions, ends):
    rows = np.flatnonzero(actions != 255)
    return rows, 1.0 - np.isin(ends[rows], (1, 2))


def follow_by_loop(actions, ends):
    rows, follows = [], []
    for t in range(len(actions) - 1):
        if actions[t] < 255:
            rows.append(t)
            follows.append(ends[t] in (0, 3))
    return rows, follows


def shuffled(actions, ends):
    """Any order will do."""
    rows = np.random.default_rng(0).permutation(np.flatnonzero(actions != 255))
    return list(rows), [int(ends[t] == 0 or ends[t] == 3) for t in rows]


def which(rows=lambda actions, ends: actions != 255, follow=lambda ends: ~np.isin(ends, (1, 2))):
    """An answer from a rule for rows and a rule for what follows."""

    def answer(actions, ends):
        kept = np.flatnonzero(rows(actions, ends))
        return kept, follow(ends)[kept] * 1

    return answer


def not_last(actions, ends):
    return np.arange(len(actions)) < len(actions) - 1


def standard(frames, floor):
    x = frames / 255
    return (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), floor)


def in_float32(frames, floor):
    x = frames.astype(np.float32) / np.float32(255)
    mean = x.mean(0)
    return (x - mean) / np.maximum(np.sqrt(((x - mean) ** 2).mean(0)), np.float32(floor))


def pixel_by_pixel(frames, floor):
    out = np.zeros(frames.shape)
    for place in np.ndindex(frames.shape[1:]):
        values = frames[:, *place].astype(float) / 255
        out[:, *place] = (values - values.mean()) / max(values.std(ddof=1), floor)
    return out


def by(divisor, axis=0):
    """(x − mean) over some divisor of deviation and floor."""

    def answer(frames, floor):
        x = frames / 255
        with np.errstate(all="ignore"):
            return (x - x.mean(axis=axis, keepdims=True)) / divisor(x.std(axis=axis, keepdims=True), floor)

    return answer


def in_grey_levels(frames, floor):
    return (frames - frames.mean(axis=0)) / np.maximum(frames.std(axis=0), floor)


def mended(frames, floor):
    with np.errstate(all="ignore"):
        return np.nan_to_num(by(lambda s, floor: s)(frames, floor))


def wrapped(frames, floor):
    mean = frames.mean(axis=0).astype(np.uint8)
    return (frames - mean) / 255 / np.maximum((frames / 255).std(axis=0), floor)


def masked(prediction, truth, position, screen):
    x, y = position[0] * 84 / screen[1], position[1] * 84 / screen[0]
    middles = np.arange(84) + 0.5
    inside = (np.abs(middles - y) <= 6)[:, None] & (np.abs(middles - x) <= 6)[None]
    return np.mean((prediction - truth)[inside] ** 2)


def sliced(prediction, truth, position, screen, half=6, low=lambda edge: max(edge, 0), reduce=np.mean):
    x, y = (round(p * 84 / side) for p, side in zip(position, screen[::-1], strict=True))
    box = np.s_[low(y - half) : y + half, low(x - half) : x + half]
    with np.errstate(all="ignore"):
        return float(reduce((prediction[box] - truth[box]) ** 2)) if truth[box].size else float("nan")


def cut(prediction, truth, position, screen):
    """The middle cut to a whole pixel instead of rounded."""
    x, y = (np.asarray(position) * 84 / np.array(screen)[::-1]).astype(int)
    rows, columns = (np.clip(np.arange(c - 6, c + 6), -1, 84) for c in (y, x))
    rows, columns = (some[(some >= 0) & (some < 84)] for some in (rows, columns))
    return ((prediction - truth)[np.ix_(rows, columns)] ** 2).sum() / (len(rows) * len(columns))


def thirteen(prediction, truth, position, screen):
    x, y = (round(p * 84 / side) for p, side in zip(position, screen[::-1], strict=True))
    box = np.s_[max(y - 6, 0) : y + 7, max(x - 6, 0) : x + 7]
    return np.mean((prediction[box] - truth[box]) ** 2)


def over_144(prediction, truth, position, screen):
    return sliced(prediction, truth, position, screen, reduce=np.sum) / 144


def diluted(prediction, truth, position, screen):
    box = np.zeros((84, 84))
    x, y = (round(p * 84 / side) for p, side in zip(position, screen[::-1], strict=True))
    box[max(y - 6, 0) : y + 6, max(x - 6, 0) : x + 6] = 1
    return ((prediction - truth) ** 2 * box).mean()


RIGHT = {
    "transitions": [
        rows_and_follow,
        follow_by_loop,
        shuffled,
        lambda actions, ends: (actions != 255, (np.isin(ends, (0, 3)))[actions != 255]),
    ],
    "normalise": [standard, in_float32, pixel_by_pixel, lambda frames, floor: standard(frames, floor).tolist()],
    "box_error": [masked, sliced, cut],
    "guesses": ["abe", ["e", "b", "a"], "A, B, E", {"a", "b", "e"}],
}

WRONG = {
    "transitions": [
        (lambda actions, ends: np.flatnonzero(actions != 255), "a pair"),
        (which(rows=not_last), "across games"),
        (which(rows=lambda actions, ends: ends >= 0), "past the end"),
        (which(rows=lambda actions, ends: (actions != 255) & (ends == 0)), "losses dropped"),
        (which(rows=lambda actions, ends: (actions != 255) & ~np.isin(ends, (1, 2))), "losses dropped"),
        (which(rows=lambda actions, ends: (actions != 255) & (ends != 3)), "rows"),
        (lambda actions, ends: (np.flatnonzero(actions != 255), ~np.isin(ends, (1, 2))), "one a row"),
        (which(follow=lambda ends: np.isin(ends, (1, 2))), "reversed"),
        (which(follow=lambda ends: ends == 0), "cut off"),
        (which(follow=lambda ends: ends != 2), "across a death"),
        (which(follow=lambda ends: ends != 1), "across the end"),
        (which(follow=lambda ends: np.ones(len(ends))), "across the end"),
        (which(follow=lambda ends: ~np.isin(np.roll(ends, -1), (1, 2))), "a row late"),
        (which(follow=lambda ends: ends), "else"),
        (lambda actions: actions, "raised"),
        (lambda actions, ends: ("all", "none"), "not numbers"),
    ],
    "normalise": [
        (by(lambda s, floor: s), "no floor"),
        (mended, "no floor"),
        (in_grey_levels, "not 255"),
        (lambda frames, floor: 255 * standard(frames, floor), "not 255"),
        (by(lambda s, floor: s + floor), "floor added"),
        (by(lambda s, floor: np.sqrt(np.maximum(s**2, floor))), "floor on the variance"),
        (by(lambda s, floor: np.sqrt(s**2 + floor)), "floor on the variance"),
        (by(lambda s, floor: np.maximum(s**2, floor)), "variance"),
        (by(lambda s, floor: np.where(s > 0, np.minimum(s, floor), 1)), "the smaller"),
        (by(np.minimum), "the smaller"),
        (by(np.maximum, axis=(1, 2)), "one image"),
        (by(np.maximum, axis=(0, 1, 2)), "one number"),
        (lambda frames, floor: frames / 255 / np.maximum((frames / 255).std(axis=0), floor), "mean stays"),
        (by(lambda s, floor: 1), "not divided"),
        (lambda frames, floor: -standard(frames, floor), "sign"),
        (wrapped, "overflow"),
        (by(lambda s, floor: 3 * s + 1), "else"),
        (lambda frames, floor: standard(frames, floor)[0], "shape"),
        (lambda frames: frames, "raised"),
    ],
    "box_error": [
        (lambda p, t, position, screen: sliced(p, t, position[::-1], screen[::-1]), "x and y"),
        (lambda p, t, position, screen: sliced(p.T, t.T, position, screen), "x and y"),
        (lambda p, t, position, screen: sliced(p, t, position, screen[::-1]), "height and width"),
        (lambda p, t, position, screen: sliced(p, t, position, (84, 84)), "not rescaled"),
        (lambda p, t, position, screen: ((p - t) ** 2).mean(), "whole frame"),
        (diluted, "diluted"),
        (lambda *given: sliced(*given, reduce=np.sum), "summed"),
        (lambda *given: sliced(*given, reduce=lambda squares: np.sqrt(squares).mean()), "not squared"),
        (lambda *given: np.sqrt(sliced(*given)), "root"),
        (lambda *given: sliced(*given, half=12), "too large"),
        (thirteen, "13 × 13"),
        (lambda *given: sliced(*given, low=lambda edge: edge), "edge"),
        (over_144, "edge"),
        (lambda *given: 2 * sliced(*given), "else"),
        (lambda *given: sliced(*given[:3], (210, 160)), "else"),
        (lambda p, t, position, screen: (p - t) ** 2, "shape"),
    ],
    "guesses": [
        ("be", "a"),
        ("ae", "b"),
        ("abce", "c"),
        ("abde", "d"),
        ("ab", "e"),
        ("all of them", "letters"),
        ("", "letters"),
        (5, "letters"),
    ],
}
