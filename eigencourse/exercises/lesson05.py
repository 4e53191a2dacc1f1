"""Checks of lesson 05, Do these skills help an explorer?"""

from __future__ import annotations

from functools import cache

import numpy as np

from eigencourse.exercises import exercise
from eigencourse.exercises.answers import Mistake, array, is_blank, scalar
from eigencourse.exercises.compare import close, compare, letters, worst
from eigencourse.exercises.worlds import chains, four_rooms, worlds
from eigenlib.diffusion import Cost, DiffusionTime, diffusion_time
from eigenlib.eigenoptions import discover_eigenoptions, learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.representation import successor_representation


def _hitting(P: np.ndarray, goal: int, gamma: float = 1.0) -> np.ndarray:
    """(S,) expected steps of the chain P to the goal; with γ, discounted ones."""
    others = np.arange(len(P)) != goal
    h = np.zeros(len(P))
    h[others] = np.linalg.solve(np.eye(others.sum()) - gamma * P[np.ix_(others, others)], np.ones(others.sum()))
    return h


def _from(P: np.ndarray, start: int) -> np.ndarray:
    """(S,) expected steps of the chain P from one state to each, all at once (Kemeny and Snell)."""
    shares = np.linalg.solve((np.eye(len(P)) - P + 1).T, np.ones(len(P)))  # of all time, in the long run
    Z = np.linalg.inv(np.eye(len(P)) - P + shares)
    return (np.diag(Z) - Z[start]) / shares


@exercise
def far_corner(answer):
    """How long does a random walk take from corner to corner?"""
    world, given = four_rooms(), scalar(answer)
    if given <= 0:
        raise Mistake("no time")
    start, goal = (int(world.state_at[cell]) for cell in ((11, 1), (1, 11)))
    steps, distance = _hitting(world.transition_matrix(), goal)[start], 20
    if steps / 2 <= given <= 2 * steps:
        return f"within a factor of two: it is {steps:,.0f} steps, for a way of {distance}."
    if given <= 2 * distance:
        raise Mistake("shortest way")
    if abs(given - world.n_states) <= 10:
        raise Mistake("every tile once")
    if abs(given - distance**2) <= 50:
        raise Mistake("distance squared")
    raise Mistake("too few" if given < steps else "too many")


@exercise
def hitting(answer):
    """Expected steps to a goal"""

    def values(P, goal):
        exact, elsewhere = _hitting(P, goal), np.arange(len(P)) != goal
        back, rest = 1 + P[goal] @ exact, exact[elsewhere]
        return exact, {
            "way back": (np.where(elsewhere, exact, back), {"back": back}),
            "pseudo-inverse": np.linalg.pinv(np.eye(len(P)) - P) @ np.ones(len(P)),
            "from the goal": _from(P, goal),
            "transposed": _hitting(P.T, goal),
            "discounted": [_hitting(P, goal, gamma) for gamma in (0.9, 0.95, 0.99)],
            "step lost": np.where(elsewhere, exact - 1, 0),
            "one too many": [exact + 1, np.where(elsewhere, exact + 1, 0)],
            "goal's place": [np.append(0, rest), np.append(rest, 0)],
        }

    def search(h, P, goal):
        sweep, elsewhere = np.zeros(len(P)), np.arange(len(P)) != goal
        for sweeps in range(1, 20_000):
            sweep = np.where(elsewhere, 1 + P @ sweep, 0)
            if close(h, sweep, 1e-9):
                raise Mistake("stops early", sweeps=sweeps)

    def fits(h, exact, P, goal):
        return h[goal] == 0 and close(h, exact, 1e-4)

    shares = zip(chains(4, seed=52), (0.0, 0.4, 0.7, 0.99), strict=True)
    cases = [(P, int(share * len(P))) for (P, _), share in shares]
    compare(
        answer, cases, values, lambda h, exact, *_: worst(h, exact), accept=fits, search=search, singular="goal left in"
    )
    return "h = 1 + Ph away from the goal and 0 on it, for four walks, and not one step was simulated."


def _end(ahead: np.ndarray, policy: np.ndarray, goal: int, interrupt: bool, most: int) -> np.ndarray:
    """(S,) where the option leads from each state in at most so many steps; if interrupted it stops at the goal."""
    at = np.arange(len(ahead))
    for step in range(min(most, len(ahead))):
        running = (policy[at] >= 0) & ~(interrupt & (at == goal) & (step > 0))
        at = np.where(running, ahead[at, policy[at]], at)
    return at


def _chain(ahead, policy, goal, *, chance=0.2, everywhere=False, interrupt=True, most=1_000) -> np.ndarray:
    """(S, S) where the next decision is taken; the rest are ways to get it wrong. chance: the option's, where it can start."""
    eye, end = np.eye(len(ahead)), _end(ahead, policy, goal, interrupt, most)
    weight = np.where((policy >= 0) | everywhere, chance, 0.0)[:, None]
    return (1 - weight) * eye[ahead].mean(axis=1) + weight * eye[end]


def _one_short(ahead, policy, goal) -> np.ndarray:
    last = policy[ahead[np.arange(len(ahead)), policy]] < 0  # where the option's next step would be its last
    weight = np.where(policy >= 0, 0.2, 0.0)[:, None]
    eye, end = np.eye(len(ahead)), _end(ahead, np.where(last, -1, policy), goal, True, 1_000)
    return (1 - weight) * eye[ahead].mean(axis=1) + weight * eye[end]


def _overwritten(ahead, policy, goal) -> np.ndarray:
    """Each place has the weight of one choice, however many choices lead there."""
    eye, end, starts = np.eye(len(ahead)), _end(ahead, policy, goal, True, 1_000), (policy >= 0)[:, None]
    return np.maximum(eye[ahead].max(axis=1), starts * eye[end]) / (4 + starts)


_OTHER_CHAINS = {
    "runs across": lambda *inputs: _chain(*inputs, interrupt=False),
    "one step": lambda *inputs: _chain(*inputs, most=1),
    "where it ends": lambda *inputs: _chain(*inputs, everywhere=True),
    "half and half": lambda *inputs: _chain(*inputs, chance=0.5),
    "actions only": lambda *inputs: _chain(*inputs, chance=0.0),
    "option always": lambda *inputs: _chain(*inputs, chance=1.0),
    "one short": _one_short,
    "overwritten": _overwritten,
}


@exercise
def decision_chain(answer):
    """The walk over decisions"""
    rng, cases = np.random.default_rng(53), []
    for world in worlds(4, seed=53, fewest=12):
        ahead, e = world.next_state, rng.normal(size=world.n_states)
        policy = learn_eigenoption(world, np.cumsum(e) / 5, 0.95).policy
        crossed = np.bincount(ahead[np.arange(len(e)), policy][policy >= 0], minlength=len(e)) * (policy >= 0)
        cases.append((ahead, policy, int(np.argmax(crossed))))  # a tile that the option often runs across

    def values(*case):
        rows = (np.arange(len(case[0])) != case[2])[:, None]  # what happens after the arrival does not matter
        right = np.where(rows, _chain(*case), np.nan)
        wrong = {name: np.where(rows, other(*case), np.nan) for name, other in _OTHER_CHAINS.items()}
        return right, wrong | {"transposed": right.T}

    def same(given, value):
        return close(np.where(np.isnan(value), np.nan, given), value)

    def search(given, ahead, policy, goal):
        if not close(np.delete(given, goal, axis=0).sum(axis=1), np.ones(len(given) - 1)):
            raise Mistake("not divided")

    def numbers(given, right, *_):
        return {"place": np.nanargmax(np.abs(given - right)) % len(right)} | worst(
            np.where(right >= 0, given, 0), np.nan_to_num(right)
        )

    compare(answer, cases, values, numbers, same=same, search=search)
    return "five choices where the option can start and four elsewhere, and each of them runs until it stops."


@cache
def _diffusion(count: int, cost: Cost = "decisions", interrupt: bool = True) -> DiffusionTime:
    """The lesson's four rooms with the first eigenoptions of the exact SR."""
    world = four_rooms()
    exact = extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9))
    options = discover_eigenoptions(world, exact, count, gamma=0.9) if count else []
    return diffusion_time(world, options, cost, interrupt, matrix=True)


@exercise
def first_pair(answer):
    """What do two options do to the mean, and to the median?"""
    given = [answer.get("mean"), answer.get("median")] if isinstance(answer, dict) else answer
    if isinstance(given, (list, tuple)) and any(map(is_blank, given)):
        raise Mistake("two factors")
    factors = array(given, (2,))
    if (factors <= 0).any():
        raise Mistake("two factors")
    if factors[1] >= 20:
        raise Mistake("times", median=factors[1])
    if (factors == 1).any():
        raise Mistake("no change")
    none, two = _diffusion(0), _diffusion(2)
    exact = np.array([two.mean / none.mean, two.median / none.median])
    if ((factors > 1) == (exact > 1)).all():
        return (
            f"the mean becomes {exact[0]:,.0f} times what it was, the median {exact[1]:.2f} times. You said {factors[0]:,g} "
            f"and {factors[1]:,g}; the directions are what counts."
        )
    if (factors > 1).all():
        raise Mistake("both rise")
    raise Mistake("both fall" if (factors < 1).all() else "the other way round")


@exercise
def conventions(answer):
    """What breaks if the convention changes?"""
    none, two, many = _diffusion(0), _diffusion(2, "steps"), _diffusion(32)
    steps, across = _diffusion(32, "steps"), _diffusion(32, "decisions", False)
    holds = {
        "a": _no_shorter(steps, many),
        "b": two.median < none.median,
        "c": steps.mean < none.mean,
        "d": across.median < none.median,
        "e": _no_shorter(across, many),
    }
    letters(answer, holds)
    return (
        f"in steps two options lengthen even the median, to {two.median:.0f}, and 32 leave a mean of {steps.mean:.0f}; without "
        f"interruption their median is {across.median:,.0f}. Say what you count before you say what helps."
    )


def _no_shorter(these: DiffusionTime, those: DiffusionTime) -> bool:
    """Whether each pair's time is at least the other's, up to rounding."""
    assert these.matrix is not None
    assert those.matrix is not None
    return bool((these.matrix >= (1 - 1e-9) * those.matrix).all())
