"""Right and wrong answers to the exercises of lesson 10: what a class hands in."""

from itertools import product

import numpy as np


def step(now, ahead):
    gains = ahead - now
    return int(gains.argmax()) if gains.max() > 0 else None


def step_by_loop(now, ahead):
    best, paid = None, 1e-6  # what rounding leaves is no gain
    for action, value in enumerate(ahead):
        if value - now > paid:
            best, paid = action, value - now
    return best


def step_in_place(now, ahead):
    ahead -= now
    if (ahead <= 0).all():
        return None
    return np.argmax(ahead)


def minus_one(now, ahead):
    """An end as lesson 04 writes it."""
    return np.where(ahead.max() > now, ahead.argmax(), -1)


def unless(ends):
    """The best action, unless a rule says that it is over."""
    return lambda now, ahead: None if ends(now, ahead) else int(ahead.argmax())


def never(now, ahead):
    ahead.argmax()


def largest_change(now, ahead):
    return None if ahead.max() <= now else int(np.abs(ahead - now).argmax())


def grouped(cells):
    _, labels = np.unique(cells, axis=0, return_inverse=True)
    return labels.ravel()


def means_of(potential, labels):
    return np.bincount(labels, potential) / np.maximum(np.bincount(labels), 1)


def eta(potential, cells):
    labels = grouped(cells)
    return 1 - np.mean((potential - means_of(potential, labels)[labels]) ** 2) / potential.var()


def eta_between(potential, cells):
    """The variance of the means, each as often as its square was visited."""
    labels = grouped(cells)
    return means_of(potential, labels)[labels].var() / potential.var()


def corrected(potential, cells):
    """The library's, with both sums divided by their degrees of freedom."""
    labels = grouped(cells)
    places, samples = labels.max() + 1, len(potential)
    within = ((potential - means_of(potential, labels)[labels]) ** 2).sum() / (samples - places)
    return 1 - within / potential.var(ddof=1)


def eta_by_loop(potential, cells):
    groups = {}
    for value, cell in zip(potential, map(tuple, cells), strict=True):
        groups.setdefault(cell, []).append(value)
    return 1 - sum(len(some) * np.var(some) for some in groups.values()) / len(potential) / np.var(potential)


def unweighted(potential, cells, ddof=0):
    labels = grouped(cells)
    return 1 - np.mean([potential[labels == k].var(ddof=ddof) for k in range(labels.max() + 1)]) / potential.var()


def linear(potential, cells):
    design = np.column_stack([np.ones(len(cells)), cells])
    return 1 - (potential - design @ np.linalg.lstsq(design, potential, rcond=None)[0]).var() / potential.var()


def about_zero(potential, cells):
    labels = grouped(cells)
    return (means_of(potential, labels)[labels] ** 2).sum() / (potential**2).sum()


def window(heights, place, depth):
    return range(max(place - depth, 0), min(place + depth, len(heights) - 1) + 1)


def climb(heights, start, depth):
    place = start
    while True:
        top = max(window(heights, place, depth), key=heights.__getitem__)
        if top == place:
            return place
        place = top


def climb_by_plans(heights, start, depth):
    """Every plan of left, wait and right tried out, its gains added up; one step is taken, then it plans again."""
    place = start
    while True:
        best, first = 0.0, 0
        for plan in product((0, -1, 1), repeat=depth):
            here, earned = place, 0.0
            for move in plan:
                after = min(max(here + move, 0), len(heights) - 1)
                earned += heights[after] - heights[here]
                here = after
                if earned > best + 1e-9:
                    best, first = earned, plan[0]
        if best == 0:
            return place
        if first == 0:  # a plan that waits first is as good without the wait
            first = int(np.sign(max(window(heights, place, depth), key=heights.__getitem__) - place))
        place += first


def paid_by_height(heights, start, depth):
    """The heights of all places on the way added up."""
    place = start
    for _ in range(60):
        sums = {}
        for plan in product((0, -1, 1), repeat=depth):
            here, total = place, 0.0
            for k, move in enumerate(plan):
                here += move
                if not 0 <= here < len(heights):
                    break
                total += heights[here]
                if k == depth - 1:
                    sums[plan] = total
        place += max(sums, key=sums.__getitem__)[0]
    return place


def far_only(heights, start, depth):
    place = start
    while True:
        far = [one for one in (place - depth, place + depth) if 0 <= one < len(heights)]
        best = max(far, key=heights.__getitem__)
        if heights[best] <= heights[place]:
            return place
        place = best


def half_a_slice(heights, start, depth):
    """The end of the slice left out."""
    place = start
    while True:
        low = max(place - depth, 0)
        top = low + int(heights[low : place + depth].argmax())
        if top == place:
            return place
        place = top


def wrapping_slice(heights, start, depth):
    """A slice whose beginning may be negative."""
    place = start
    while True:
        window = heights[place - depth : place + depth + 1]
        top = place - depth + int(window.argmax()) if window.size else place
        if top == place:
            return place
        place = top


def to_the_right(heights, start, depth):
    place = start
    while heights[place : place + depth + 1].argmax() > 0:
        place += int(heights[place : place + depth + 1].argmax())
    return place


RIGHT = {
    "greedy": [step, step_by_loop, step_in_place, minus_one],
    "compared": [{"a": 1, "b": 2, "c": 3, "d": 4}, [1, 2, 3, 4], {"A": "1", "B": "2", "C": "3", "D": 4.0}],
    "r8": [eta, eta_between, corrected, eta_by_loop],
    "short_sight": [climb, climb_by_plans],
}

WRONG = {
    "greedy": [
        (lambda now, ahead: None if ahead.min() >= now else ahead.argmin(), "−e"),
        (lambda now, ahead: ahead.argmin(), "−e"),
        (largest_change, "largest change"),
        (lambda now, ahead: None if ahead.max() <= now else ahead.max(), "the value"),
        (lambda now, ahead: ahead.max() - now, "the value"),
        (lambda now, ahead: None if ahead.max() <= now else np.argsort(ahead)[-2], "not the best"),
        (unless(lambda now, ahead: False), "never ends"),
        (unless(lambda now, ahead: ahead.max() == now), "exactly equal"),
        (unless(lambda now, ahead: (ahead == now).all()), "exactly equal"),
        (unless(lambda now, ahead: ahead.max() < now), "for nothing"),
        (unless(lambda now, ahead: ahead.max() < now or ahead.min() == now), "for nothing"),
        (unless(lambda now, ahead: ahead.max() <= 0), "potential"),
        (unless(lambda now, ahead: (ahead < now).any()), "ends too soon"),
        (unless(lambda now, ahead: ahead.max() <= now and now < 3), "else"),
        (lambda now, ahead: ahead - now, "shape"),
        (lambda now, ahead: "left", "not numbers"),
        (lambda now: now, "raised"),
        (never, "returned nothing"),
    ],
    "compared": [
        ({"a": 2, "b": 1, "c": 3, "d": 4}, "a"),
        ({"a": 1, "b": 4, "c": 3, "d": 2}, "b"),
        ([1, 2, 4, 3], "c"),
        ([1, 2, 3, 3], "d"),
        ([1, 3, 2, 4], "b and c"),
        ([3, 2, 1, 4], "a and c"),
        ([1, 2, 3], "all four"),
        ({"a": 1, "b": 2, "c": None, "d": 4}, "all four"),
        ([1, 2, 3, 5], "all four"),
    ],
    "r8": [
        (lambda potential, cells: 1 - eta(potential, cells), "within"),
        (lambda potential, cells: 1 - corrected(potential, cells), "within"),
        (lambda potential, cells: eta(potential, cells) ** 0.5, "root"),
        (unweighted, "unweighted"),
        (lambda potential, cells: unweighted(potential, cells, ddof=1), "unweighted"),
        (lambda potential, cells: means_of(potential, grouped(cells)).var() / potential.var(), "unweighted"),
        (about_zero, "mean kept"),
        (lambda potential, cells: 1 / (1 / eta(potential, cells) - 1), "to the rest"),
        (lambda potential, cells: eta(potential, cells[:, :1]), "half a place"),
        (lambda potential, cells: corrected(potential, cells[:, 1:]), "half a place"),
        (linear, "a line"),
        (lambda potential, cells: np.corrcoef(potential, cells[:, 0])[0, 1] ** 2, "a line"),
        (lambda potential, cells: eta(potential, cells) * potential.var(), "not a share"),
        (lambda potential, cells: eta(potential, cells) / 2, "else, place"),
        (lambda potential, cells: (1 + 4 * eta(potential, cells)) / 5, "else, noise"),
        (lambda potential, cells: eta(np.maximum(potential, 0), cells), "not invariant"),
        (lambda potential, cells: eta(potential, cells) ** 3, "else"),
        (lambda potential, cells: potential, "shape"),
        (lambda potential: potential, "raised"),
    ],
    "short_sight": [
        (lambda heights, start, depth: climb(heights, start, 1), "one step"),
        (lambda heights, start, depth: max(window(heights, start, depth), key=heights.__getitem__), "no second plan"),
        (lambda heights, start, depth: heights.argmax(), "sees all"),
        (far_only, "the far end only"),
        (paid_by_height, "heights paid"),
        (lambda heights, start, depth: climb(-heights, start, depth), "downhill"),
        (lambda heights, start, depth: climb(heights, start, depth + 1), "one too far"),
        (lambda heights, start, depth: climb(heights, start, depth - 1), "one too near"),
        (to_the_right, "one side"),
        (half_a_slice, "half a slice"),
        (wrapping_slice, "half a slice"),
        (lambda heights, start, depth: start, "start"),
        (lambda heights, start, depth: heights[climb(heights, start, depth)], "the height"),
        (lambda heights, start, depth: climb(heights, start, depth) + 0.5, "not a place"),
        (lambda heights, start, depth: len(heights) // 2, "else"),
        (lambda heights, start, depth: heights, "shape"),
        (lambda heights, start: start, "raised"),
    ],
}
