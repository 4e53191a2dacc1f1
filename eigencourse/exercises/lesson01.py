"""Checks of lesson 01, The successor representation."""

from __future__ import annotations

import numpy as np

from eigencourse.exercises import exercise
from eigencourse.exercises.answers import Mistake, array, scalar
from eigencourse.exercises.compare import close, compare, recognise
from eigencourse.exercises.worlds import chains
from eigenlib.gridworld import GridWorld
from eigenlib.representation import successor_representation


def _room():
    """The lesson's world and the states A, B, C."""
    world = GridWorld.named("dayan")
    return world, *(world.landmarks[letter] for letter in "ABC")


def _steps(T: np.ndarray, start: int, end: int) -> int:
    """The fewest steps from start to end."""
    reach, steps = np.eye(len(T))[start], 0
    while not reach[end]:
        reach, steps = reach @ T, steps + 1
    return steps


@exercise
def first_light(answer):
    """When does C first light up?"""
    world, a, b, c = _room()
    T, given = world.transition_matrix(), scalar(answer)
    steps, straight = _steps(T, a, c), np.abs(world.cells[a] - world.cells[c]).sum()
    if given == steps:
        return f"the glow moves one tile a term, and the way around the wall is {steps} steps long."
    others = {"tiles, not steps": steps + 1, "tiles between": steps - 1}
    recognise(given, {"through the wall": straight, "that is B": _steps(T, a, b)} | others)
    if np.isfinite(given) and given != round(given):
        raise Mistake("not whole")
    raise Mistake("too soon" if given < steps else "too late")


@exercise
def successor(answer):
    """Ψ from T and γ"""

    def values(T, gamma):
        eye, step, exact = np.eye(len(T)), gamma * T, successor_representation(T, gamma)
        entrywise = step / (1 - step)  # the sum of all powers but the first, each number by itself
        return exact, {
            "transposed": exact.T,
            "visit now": [exact - eye, T @ exact],
            "γ on the wrong term": [gamma * exact, *map(np.linalg.inv, (gamma * eye - T, (1 - gamma) * eye - T))],
            "entry by entry": [1 + entrywise, eye + entrywise, entrywise],
            "not inverted": eye - step,
            "one over each": 1 / (eye - step),
            "a number for I": [np.linalg.inv(1 - step), 1 / (1 - step)],
            "an average": (1 - gamma) * exact,
        }

    def search(psi, T, gamma):
        missing = 1 / (1 - gamma) - psi.sum(axis=1).mean()  # γⁿ/(1−γ) after n terms
        if 0 < missing * (1 - gamma) < 1:
            terms = round(np.log(missing * (1 - gamma)) / np.log(gamma))
            if close(psi, _series(gamma * T, terms)):
                raise Mistake("stops early", terms=terms, missing=missing)
        terms = round(psi.sum(axis=1).mean())  # without γ each term adds 1 to a row
        if 1 < terms < 100_000 and close(psi, _series(T, terms)):
            raise Mistake("no γ")

    def numbers(psi, exact, T, gamma):
        return {"shape": T.shape, "gamma": gamma, "off": np.abs(psi - np.eye(len(T)) - gamma * T @ psi).max()}

    compare(answer, chains(5, seed=12), values, numbers, search=search, singular="no γ")
    return "on five random walks Ψ = I + γTΨ: every visit is now, or after one more step."


def _series(step: np.ndarray, terms: int) -> np.ndarray:
    """I + step + step² + …, so many terms, by halves: 2n terms are n, and n more that are stepⁿ times these."""
    if terms < 2:
        return terms * np.eye(len(step))
    half = _series(step, terms // 2)
    whole = half + np.linalg.matrix_power(step, terms // 2) @ half
    return whole if terms % 2 == 0 else np.eye(len(step)) + step @ whole


@exercise
def arrival_value(answer):
    """The value of wandering when a reward is paid on arrival"""

    def values(psi, r, gamma):
        value, columns = psi @ r, psi.T @ r
        return (value - r) / gamma, {
            "reward now": value,
            "one γ too many": value - r,
            "times γ": gamma * (value - r),
            "γ instead of a shift": [gamma * value, value / gamma],
            "transposed": [columns, columns - r, (columns - r) / gamma],
        }

    def numbers(v, exact, psi, r, gamma):
        T = (np.eye(len(psi)) - np.linalg.inv(psi)) / gamma
        return {"off": np.abs(v - T @ (r + gamma * v)).max()}

    rng = np.random.default_rng(13)
    cases = [(successor_representation(T, gamma), rng.normal(size=len(T)), gamma) for T, gamma in chains(4, seed=13)]
    compare(answer, cases, values, numbers)
    return "v = T(r + γv) on four random walks, and T was never needed: Ψ knows it."


@exercise
def ratio_limit(answer):
    """Where does Ψ(A,B)/Ψ(A,C) go as γ → 1?"""
    world, a, b, c = _room()
    near, far = (successor_representation(world.transition_matrix(), gamma)[a] for gamma in (0.9, 1 - 1e-9))
    given, limit = scalar(answer), far[b] / far[c]
    if abs(given - limit) <= 0.005:
        return "in the long run the walk forgets where it began, and all tiles are visited equally often."
    if given > 1e4:
        raise Mistake("the other end")
    if abs(given / (near[b] / near[c]) - 1) < 0.1:
        raise Mistake("as at 0.9")
    raise Mistake("B stays ahead" if given > limit else "C overtakes")


@exercise
def drift(answer):
    """A walk to which C is nearer than B"""
    world, a, b, c = _room()

    def nearness(chances: np.ndarray) -> tuple[float, float]:
        T = world.transition_matrix(np.tile(chances, (world.n_states, 1)))
        row = successor_representation(T, 0.9)[a]
        return row[b], row[c]

    given = array(answer, (4,))
    if (given < 0).any() or abs(given.sum() - 1) > 1e-6:
        raise Mistake("no probabilities", total=given.sum())
    to_b, to_c = nearness(given)
    if to_c > to_b:
        return f"Ψ(A,B) is now {to_b:.2g} and Ψ(A,C) {to_c:.2g}. Nearness belongs to the walk, not to the map alone."
    if close(given, np.full(4, 0.25)):
        raise Mistake("the old walk", ratio=to_b / to_c)
    for order in ("up, down, left, right", "left, right, up, down", "right, up, left, down"):
        place = [order.split(", ").index(name) for name in ("up", "right", "down", "left")]
        if np.less(*nearness(given[place])):
            raise Mistake("another order", order=order)
    if to_c == 0:
        raise Mistake("never there")
    raise Mistake("else", ratio=to_b / to_c)
