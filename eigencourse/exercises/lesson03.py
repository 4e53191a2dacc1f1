"""Checks of lesson 03, Learning the SR, one step at a time."""

from __future__ import annotations

import numpy as np

from eigencourse.exercises import exercise
from eigencourse.exercises.answers import Mistake, array, call, scalar
from eigencourse.exercises.compare import choices, close, compare, recognise
from eigencourse.exercises.worlds import chains
from eigenlib.comparing import principal_cosines, relative_error
from eigenlib.gridworld import GridWorld
from eigenlib.representation import learn_successor_representation, successor_representation


@exercise
def td_update(answer):
    """One step of TD"""

    def values(belief, s, s_next, eta, gamma):
        here, there, old, ahead = np.eye(len(belief))[s], np.eye(len(belief))[s_next], belief[s], belief[s_next]
        target = here + gamma * ahead
        return old + eta * (target - old), {
            "γ on the wrong term": old + eta * (gamma * (here + ahead) - old),
            "γ on everything": old + eta * gamma * (here + ahead - old),
            "no γ": old + eta * (here + ahead - old),
            "no indicator": old + eta * (gamma * ahead - old),
            "indicator at s′": old + eta * (there + gamma * ahead - old),
            "1 everywhere": old + eta * (1 + gamma * ahead - old),
            "old belief": old + eta * target,
            "brackets": [old + eta * here + gamma * ahead - old, old + eta * target - old],
            "no step size": target,
            "only the change": eta * (target - old),
            "step size reversed": eta * old + (1 - eta) * target,
            "s and s′ swapped": ahead + eta * (there + gamma * old - ahead),
            "columns": belief[:, s] + eta * (here + gamma * belief[:, s_next] - belief[:, s]),
        }

    def row(result, right):
        given = array(result)
        if given.shape == right.shape * 2:
            raise Mistake("whole matrix", wanted=right.shape)
        return array(given, right.shape)

    def search(given, belief, s, s_next, eta, gamma):
        """What makes it TD: at the truth it stands still on average."""
        T = next(T for T, (about, *_) in zip(transitions, cases, strict=True) if about is belief)
        psi = successor_representation(T, gamma)
        moved = sum(T[s, k] * row(call(answer, psi, s, int(k), eta, gamma), psi[s]) for k in np.flatnonzero(T[s]))
        if (off := np.abs(moved - psi[s]).max()) > 1e-6:
            raise Mistake("moves at the truth", off=off)

    rng, transitions, cases = np.random.default_rng(31), [], []
    for (T, gamma), eta in zip(chains(4, seed=31), (0.2, 0.5, 1.0, 0.1), strict=True):
        s = int(np.argmax((T > 0).sum(axis=1)))  # the state with most different next ones
        s_next = int(next(state for state in np.flatnonzero(T[s]) if state != s))
        transitions.append(T)
        cases.append((rng.normal(size=T.shape), s, s_next, eta, gamma))
    compare(
        answer, cases, values, lambda given, right, *_: {"off": np.abs(given - right).max()}, reading=row, search=search
    )
    return "at the true Ψ your rule stands still on average; from anywhere else it goes a fraction η of the way."


_RULES = {  # what a step suggests, averaged over next steps, for an estimate M
    "a": lambda M, T, gamma: gamma * T @ M,
    "b": lambda M, T, gamma: np.eye(len(T)) + T @ M,
    "c": lambda M, T, gamma: gamma * (np.eye(len(T)) + T @ M),
    "d": lambda M, T, gamma: T + gamma * T @ M,
}


def _symptom(rule, T: np.ndarray, gamma: float) -> str:
    """Which of the four symptoms, as the lesson numbers them, a rule shows when it starts at zero."""
    M, psi = np.zeros_like(T), successor_representation(T, gamma)
    for _ in range(2_000):
        M = M + 0.5 * (rule(M, T, gamma) - M)
    limits = {"2": gamma * psi, "3": np.zeros_like(T), "4": T @ psi}
    return next((symptom for symptom, limit in limits.items() if close(M, limit)), "1")


@exercise
def diagnosis(answer):
    """What breaks if a term is wrong?"""
    T, gamma = next(chains(1, seed=32))
    choices(answer, {letter: _symptom(rule, T, gamma) for letter, rule in _RULES.items()}, "all four")
    return "four bugs told apart by where they come to rest. Set 'no change' and solve, and a learning rule confesses."


@exercise
def floors(answer):
    """Which step size ends with the smallest error?"""
    given, sizes = array(answer).ravel().tolist(), (0.02, 0.1, 0.5)
    if sorted(given) != list(sizes):
        raise Mistake("not these")
    world = GridWorld.named("four_rooms")
    psi = successor_representation(world.transition_matrix(), 0.9)
    runs = [
        learn_successor_representation(world, 10_000, 100, eta, 0.9, rng=3, snapshots=[10, 10_000]) for eta in sizes
    ]
    soon, late = (dict(zip(sizes, errors, strict=True)) for errors in relative_error(np.array(runs), psi).T)
    if given == sorted(sizes, key=late.__getitem__):
        shown = ", ".join(f"{late[eta]:.2f} for η = {eta:g}" for eta in given)
        return (
            f"the errors after 10,000 episodes are {shown}. A constant η averages over about 1/η visits, and no more."
        )
    if given == sorted(sizes, key=soon.__getitem__):
        raise Mistake("the first ten")
    raise Mistake("the paper's" if given[0] == 0.1 else "in between")


@exercise
def agreement(answer):
    """How well does a learned vector agree with an exact one?"""
    rng = np.random.default_rng(34)
    for S in (6, 9, 15):
        e, other = 1.7 * np.linalg.qr(rng.normal(size=(S, 2)))[0].T  # of no special length

        def score(v, e=e):
            return scalar(call(answer, v, e))

        if abs(score(e)) < 1e-6:
            raise Mistake("a distance")
        for factor, mistake in ((2.0, "length"), (-1.0, "sign")):
            if not close(score(factor * e), 1):
                raise Mistake(mistake, given=score(factor * e))
        for angle in (60, 90, 20, 135):
            turn = np.radians(angle)
            v, cosine = np.cos(turn) * e + np.sin(turn) * other, abs(np.cos(turn))
            given = score(v)
            if not close(given, cosine):
                recognise(given, {"squared": cosine**2, "centred": abs(np.corrcoef(v, e)[0, 1])})
                raise Mistake("else", angle=angle, wanted=cosine, given=given)
    return "1 for the same direction, 0 at right angles, whatever the lengths and signs."


@exercise
def space_agreement(answer):
    """How well does a learned space agree with an exact one?"""
    rng, cases = np.random.default_rng(35), []
    for S, k in ((8, 2), (12, 3), (9, 1)):
        basis, angles = np.linalg.qr(rng.normal(size=(S, 2 * k)))[0], np.radians(np.linspace(20, 65, k))
        tilted = basis[:, :k] * np.cos(angles) + basis[:, k:] * np.sin(angles)
        E, V = (space @ (np.eye(k) + 0.4 * rng.normal(size=(k, k))) for space in (basis[:, :k], tilted))  # skew
        cases += [(V, E), (E @ rng.normal(size=(k, k)), E)]

    def values(V, E):
        cosines = principal_cosines(V, E)
        unit = (V / np.linalg.norm(V, axis=0)).T @ (E / np.linalg.norm(E, axis=0))
        single = np.abs(np.diag(unit))
        return cosines[-1], {
            "one by one": [single.min(), single.mean()],
            "best": cosines[0],
            "average": cosines.mean(),
            "product": cosines.prod(),
            "not orthonormal": [np.linalg.svd(product, compute_uv=False)[-1] for product in (unit, V.T @ E)],
            "squared": cosines[-1] ** 2,
        }

    def numbers(given, right, V, E):
        return {"angle": np.degrees(np.arccos(min(right, 1))), "wanted": right, "given": given}

    compare(answer, cases, values, numbers)
    return (
        "1 where nothing is missing, however the vectors are turned in it, and otherwise the cosine of the worst angle."
    )
