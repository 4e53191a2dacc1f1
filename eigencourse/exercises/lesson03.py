"""Checks of lesson 03, Learning the SR, one step at a time."""

from __future__ import annotations

import numpy as np

from eigencourse.exercises import Mistake, array, call, chains, close, exercise, recognise, scalar
from eigenlib.comparing import principal_cosines, relative_error
from eigenlib.gridworld import GridWorld
from eigenlib.representation import learn_successor_representation, successor_representation


@exercise(
    "03.1",
    difficulty=2,
    minutes=8,
    mistakes={
        "γ on the wrong term": "γ is on the wrong term. The visit here is now and counts in full; only the row of s′ lies one "
        "step ahead and is discounted.",
        "γ on everything": "γ is on the wrong term: it stands before the whole bracket. Only the row of s′ is discounted, "
        "neither the visit now nor the old belief.",
        "no γ": "γ is missing. What is believed about s′ lies one step ahead, so it counts γ times.",
        "no indicator": "you forgot the indicator. Without the 1 for the visit here, a row that starts at zero stays at zero.",
        "indicator at s′": "the visit being made is to s, where the step began. The visit to s′ is already in the row of s′.",
        "old belief": "the old belief is missing from the bracket: go a fraction of the *difference* between the target and "
        "Ψ̂(s, ·). Yours only ever adds.",
        "no step size": "you jumped all the way to the target. Go a fraction step_size of the way.",
        "only the change": "this is the change. Return the new row: the old one plus the change.",
        "step size reversed": "step_size and 1 − step_size have changed places: a small step keeps most of the old belief.",
        "s and s′ swapped": "s and s′ have changed places: the row of s, which the step left, is the one that learns.",
        "columns": "you took columns. What is believed about the future *from* s stands in row s: psi_hat[s].",
        "whole matrix": "this is the whole matrix; return the new row s only, shape {wanted}.",
        "moves at the truth": "put the true Ψ into the rule and average over next steps, and nothing should move. Yours moves "
        "it by up to {off:.2g}.",
        "else": "starting from a random Ψ̂, your new row is off by up to {off:.2g}. Say in words what the step suggests, then "
        "go a fraction step_size of the way there.",
    },
)
def td_update(answer):
    """One step of TD"""
    rng, eta = np.random.default_rng(31), 0.2
    for T, gamma in chains(3, seed=31):
        S, psi, belief = len(T), successor_representation(T, gamma), rng.normal(size=T.shape)
        s = int(np.argmax((T > 0).sum(axis=1)))  # the state with most different next ones
        nexts = [int(state) for state in np.flatnonzero(T[s])]

        def row(psi_hat, s_next, step_size, s=s, gamma=gamma):
            given = array(call(answer, psi_hat, s, s_next, step_size, gamma))
            if given.shape == psi_hat.shape:
                raise Mistake("whole matrix", wanted=(len(psi_hat),))
            return array(given, (len(psi_hat),))

        s_next = next(state for state in nexts if state != s)
        one, jump = row(belief, s_next, eta), row(belief, s_next, 1.0)
        here, there, old, ahead = np.eye(S)[s], np.eye(S)[s_next], belief[s], belief[s_next]
        target = here + gamma * ahead
        wrong = {
            "γ on the wrong term": old + eta * (gamma * (here + ahead) - old),
            "γ on everything": old + eta * gamma * (here + ahead - old),
            "no γ": old + eta * (here + ahead - old),
            "no indicator": old + eta * (gamma * ahead - old),
            "indicator at s′": old + eta * (there + gamma * ahead - old),
            "old belief": old + eta * target,
            "no step size": target,
            "only the change": eta * (target - old),
            "step size reversed": eta * old + (1 - eta) * target,
            "s and s′ swapped": ahead + eta * (there + gamma * old - ahead),
            "columns": belief[:, s] + eta * (here + gamma * belief[:, s_next] - belief[:, s]),
        }
        recognise(one, wrong)
        # What makes it TD: at the truth it stands still on average; and from anywhere it goes a fraction of the way to a
        # target that depends only on what is believed about s′.
        off = np.abs(sum(T[s, state] * row(psi, state, eta) for state in nexts) - psi[s]).max()
        if off > 1e-6:
            raise Mistake("moves at the truth", off=off)
        if not close(one - old, eta * (jump - old)) or not close(jump, target):
            raise Mistake("else", off=np.abs(one - old - eta * (target - old)).max())
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


@exercise(
    "03.2",
    difficulty=2,
    minutes=8,
    mistakes={
        "a": "look at (a) again: what does the first step add to a row of zeros? And the second?",
        "b": "look at (b) again: every step adds 1, and nothing that lies ahead is worth less. What do the rows sum to?",
        "c": "look at (c) again: at rest M = γ(I + TM). Divide by γ, and compare with Ψ = I + γTΨ.",
        "d": "look at (d) again: at rest M = T + γTM, so M = TΨ. Which visit is not counted by a walk that has just left?",
        "all four": "give one of the numbers 1 to 4 for each of a, b, c and d.",
    },
)
def diagnosis(answer):
    """What breaks if a term is wrong?"""
    pairs = answer if isinstance(answer, dict) else dict(zip("abcd", answer, strict=False))
    given = {str(key).lower(): str(value).removesuffix(".0") for key, value in pairs.items()}
    if set(given) != set(_RULES) or not set(given.values()) <= set("1234"):
        raise Mistake("all four")
    T, gamma = next(chains(1, seed=32))
    for letter, rule in _RULES.items():
        if given[letter] != _symptom(rule, T, gamma):
            raise Mistake(letter)
    return "four bugs told apart by where they come to rest. Set 'no change' and solve, and a learning rule confesses."


@exercise(
    "03.3",
    difficulty=1,
    minutes=3,
    mistakes={
        "the first ten": "that is the order after ten episodes: who takes large steps is there first. But it never stops "
        "taking them, and every step is noisy.",
        "the paper's": "the paper's 0.1 is a compromise. With this much experience, is there one that trembles less?",
        "in between": "in the end the error follows the step size. Over how many recent steps does each estimate average?",
        "not these": "put the three step sizes 0.5, 0.1 and 0.02 into a list, the one with the smallest final error first.",
    },
)
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


@exercise(
    "03.4",
    difficulty=2,
    minutes=8,
    mistakes={
        "a distance": "a vector against itself scores 0, so you measure how far apart two are. Let 1 mean the same direction.",
        "length": "a vector against twice itself scores {given:.3g}. Divide by both lengths: only the direction counts.",
        "sign": "an eigenvector against itself with its sign flipped scores {given:.3g}. Flipped it is equally valid, for if "
        "Me = λe, then M(−e) = λ(−e). Take the absolute value.",
        "squared": "at 60° your score is ¼, the square of the cosine. The cosine itself is ½.",
        "else": "at an angle of {angle}° the score should be {wanted:.3g}, and yours is {given:.3g}.",
    },
)
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
            given, cosine = score(np.cos(turn) * e + np.sin(turn) * other), abs(np.cos(turn))
            if not close(given, cosine):
                recognise(given, {"squared": cosine**2})
                raise Mistake("else", angle=angle, wanted=cosine, given=given)
    return "1 for the same direction, 0 at right angles, whatever the lengths and signs."


@exercise(
    "03.5",
    difficulty=3,
    minutes=15,
    mistakes={
        "one by one": "you compared column with column. Vectors that rotate within their plane lose nothing as a space, but "
        "your score falls.",
        "best": "this is the direction that is represented best. One shared direction makes it 1, whatever else is missing.",
        "average": "an average hides a direction that has been lost. Ask for the worst one.",
        "product": "this is the product of the cosines: many small errors weigh like one large one. The smallest is asked for.",
        "not orthonormal": "columns need not be at right angles or of length 1. Take an orthonormal basis of each space first "
        "(np.linalg.qr).",
        "squared": "this is the square of the cosine asked for.",
        "else": "two spaces whose worst direction is {angle:.0f}° apart should score {wanted:.3g}; yours scores {given:.3g}.",
    },
)
def space_agreement(answer):
    """How well does a learned space agree with an exact one?"""
    rng = np.random.default_rng(35)
    for S, k in ((8, 2), (12, 3), (9, 1)):
        basis, angles = np.linalg.qr(rng.normal(size=(S, 2 * k)))[0], np.radians(np.linspace(20, 65, k))
        tilted = basis[:, :k] * np.cos(angles) + basis[:, k:] * np.sin(angles)
        E, V = (space @ (np.eye(k) + 0.4 * rng.normal(size=(k, k))) for space in (basis[:, :k], tilted))  # skew
        cosines, given = principal_cosines(V, E), scalar(call(answer, V, E))
        if close(given, cosines[-1]):
            given = scalar(call(answer, E @ rng.normal(size=(k, k)), E))
            if not close(given, 1):
                raise Mistake("else", angle=0, wanted=1, given=given)
            continue
        unit = (V / np.linalg.norm(V, axis=0)).T @ (E / np.linalg.norm(E, axis=0))
        single = np.abs(np.diag(unit))
        wrong = {
            "one by one": [single.min(), single.mean()],
            "best": cosines[0],
            "average": cosines.mean(),
            "product": cosines.prod(),
            "not orthonormal": [np.linalg.svd(product, compute_uv=False)[-1] for product in (unit, V.T @ E)],
            "squared": cosines[-1] ** 2,
        }
        recognise(given, wrong)
        raise Mistake("else", angle=np.degrees(angles[-1]), wanted=cosines[-1], given=given)
    return (
        "1 where nothing is missing, however the vectors are turned in it, and otherwise the cosine of the worst angle."
    )
