"""Checks of lesson 08, The deep successor representation. All in NumPy: what a network computes is a table of numbers too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eigencourse.exercises import exercise
from eigencourse.exercises.answers import Mistake, array, call, pair, scalar
from eigencourse.exercises.compare import close, compare, parallel, recognise
from eigencourse.exercises.worlds import chains
from eigenlib.representation import successor_representation


@exercise
def successor_features(answer):
    """How much of each feature lies ahead?"""
    rng = np.random.default_rng(81)
    # First as many features as states, so that ΦΨ can be told from ΨΦ.
    cases = [(T, g, rng.normal(size=(len(T), len(T) if k == 0 else 3))) for k, (T, g) in enumerate(chains(4, seed=81))]

    def values(T, gamma, Phi):
        psi = successor_representation(T, gamma)
        exact = psi @ Phi
        wrong = {
            "transposed": psi.T @ Phi,
            "features now": [exact - Phi, T @ exact],
            "γ on everything": gamma * exact,
            "one step": [Phi + gamma * T @ Phi, Phi + T @ Phi, gamma * T @ Phi, T @ Phi],
            "an average": (1 - gamma) * exact,
        }
        return exact, wrong | ({"order": Phi @ psi, "Ψ alone": psi} if len(T) == Phi.shape[1] else {})

    def search(psi, T, gamma, Phi):
        """Without γ each further term adds one look at every feature."""
        total = np.zeros_like(Phi)
        for _ in range(3_000):
            total = Phi + T @ total
            if close(psi, total):
                raise Mistake("no γ")

    def numbers(psi, exact, T, gamma, Phi):
        off = np.abs(psi - Phi - gamma * T @ psi).max()
        return {"shape": T.shape, "features": Phi.shape[1], "gamma": gamma, "off": off}

    compare(answer, cases, values, numbers, search=search, singular="no γ")
    return "ψ = Φ + γTψ on four random walks, whatever the features: the right answer is known before any network is trained."


def _left_at_the_truth(answer, features: int, seed: int) -> float:
    """The largest average error on all transitions of a random walk that ends in state 0, where ψ is exact."""
    ((T, gamma),) = chains(1, seed=seed)
    Phi = np.random.default_rng(seed).normal(size=(len(T), features))
    goes_on = np.arange(len(T)) > 0
    psi = np.linalg.solve(np.eye(len(T)) - gamma * T * goes_on, Phi)
    s, s_next = np.argwhere(T > 0).T
    errors = array(call(answer, Phi[s], psi[s], psi[s_next], s_next == 0, gamma), (len(s), features))
    mean = np.zeros_like(Phi)
    np.add.at(mean, s, T[s, s_next][:, None] * errors)
    return float(np.abs(mean).max())


@exercise
def sr_error(answer):
    """The error of a batch of transitions"""

    def values(phi, psi, ahead, ended, gamma):
        goes_on = 1.0 - ended[:, None]
        masked = goes_on * ahead
        exact = phi + gamma * masked - psi
        wrong = {
            "no mask": phi + gamma * ahead - psi,
            "reversed": phi + gamma * ended[:, None] * ahead - psi,
            "φ(s) masked too": [goes_on * (phi + gamma * ahead) - psi, goes_on * (phi + gamma * ahead - psi)],
            "γ on the wrong term": [
                gamma * phi + masked - psi,
                gamma * (phi + masked) - psi,
                gamma * (phi + masked - psi),
            ],
            "no γ": phi + masked - psi,
            "no features": gamma * masked - psi,
            "s and s′ swapped": [phi + gamma * goes_on * psi - ahead, phi + gamma * goes_on * psi - psi],
            "target only": phi + gamma * masked,
            "sign": -exact,
            "squared": exact**2,
        }
        return exact, wrong | ({"along the features": phi + gamma * (1 - ended) * ahead - psi} if square(phi) else {})

    def square(phi):
        return phi.shape[0] == phi.shape[1]

    def search(given, phi, *_):
        left = _left_at_the_truth(answer, phi.shape[1], seed=phi.shape[1])
        if left > 1e-6:
            raise Mistake("moves at the truth", off=left)

    rng, cases = np.random.default_rng(82), []
    for batch, features in (
        (6, 6),
        (8, 5),
        (5, 7),
    ):  # first as many as features: a mask on the wrong axis goes unnoticed
        ended, gamma = np.arange(batch) % 3 == 1, float(rng.choice([0.8, 0.9, 0.95]))
        cases.append((*rng.normal(size=(3, batch, features)), ended, gamma))
    compare(answer, cases, values, lambda given, exact, *_: {"off": np.abs(given - exact).max()}, search=search)
    return (
        "now, plus γ times what lies ahead unless it is over, minus what was believed: the error of every transition."
    )


def _slope(loss: Callable[[np.ndarray], float], W: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """∂loss/∂W by central differences, which are exact for a square."""
    units = step * np.eye(W.size).reshape(-1, *W.shape)
    return np.array([loss(W + unit) - loss(W - unit) for unit in units]).reshape(W.shape) / (2 * step)


@exercise
def sr_step(answer):
    """One step down the loss, the target held still"""

    def values(W, W_old, phi, ahead, gamma, eta):
        target = phi + gamma * W_old @ ahead
        error, live = target - W @ phi, phi + gamma * W @ ahead - W @ phi
        down, both = 2 * eta * np.outer(error, phi), phi - gamma * ahead
        return W - eta * _slope(lambda weights: ((target - weights @ phi) ** 2).sum(), W), {
            "its own tail": [W + factor * eta * np.outer(live, phi) for factor in (2, 1)],
            "through the target": [W + k * eta * np.outer(one, both) for k in (2, 1) for one in (error, live)],
            "at s′": [W + factor * eta * np.outer(error, ahead) for factor in (2, 1)],
            "uphill": [W - down, W - down / 2],
            "half": W + down / 2,
            "averaged": W + down / len(W),
            "transposed": [W + down.T, W + down.T / 2],
            "only the change": [down, down / 2, -down],
            "jumped": [W + down / eta, W + down / (2 * eta)],
        }

    rng, cases = np.random.default_rng(83), []
    for F in (3, 5):
        weights, features = rng.normal(size=(2, F, F)), rng.normal(size=(2, F))
        cases.append((*weights, *features, float(rng.choice([0.8, 0.9])), 0.05))
    compare(answer, cases, values, lambda given, exact, *_: {"off": np.abs(given - exact).max()})
    return "measured by moving every weight a little: your step goes straight down, and the target stays where it is."


@exercise
def blind(answer):
    """What breaks if the SR's loss is all there is?"""
    rng = np.random.default_rng(84)
    for F, gamma in ((3, 0.9), (2, 0.5), (4, 0.99)):
        c = rng.normal(size=F).round(1)
        found = pair(call(answer, c, gamma))
        loss, psi = scalar(found[0]), array(found[1], c.shape)
        if not close(loss, c @ c):
            recognise(loss, {"loss, not squared": np.linalg.norm(c), "loss, averaged": c @ c / F, "loss, zero": 0})
            raise Mistake("loss")
        if not close(c + gamma * psi - psi, np.zeros(F)):
            wrong = {
                "ψ, no future": c,
                "ψ, no present": gamma * c / (1 - gamma),
                "ψ, upside down": (1 - gamma) * c,
                "ψ, zero": np.zeros(F),
            }
            recognise(psi, wrong)
            shown = f"({', '.join(f'{one:g}' for one in c)})"
            raise Mistake("ψ", c=shown, gamma=gamma, off=np.abs(c + gamma * psi - psi).max())
    return "and the cheapest c of all is 0: no loss at the start, nothing to learn, nothing to see."


@exercise
def feature_directions(answer):
    """Directions in feature space"""

    def values(psi, k):
        (frames, F), C = psi.shape, psi - psi.mean(axis=0)
        (left, _, right), raw = np.linalg.svd(C), np.linalg.svd(psi)
        rank = min(frames - 1, F)
        wrong: dict[str, Any] = {
            "not centred": raw[2][:k].T,
            "wrong mean": np.linalg.svd(psi - psi.mean(axis=1, keepdims=True))[2][:k].T,
            "backwards": right[:k][::-1].T,
            "length": right[:k].T,
        }
        if frames == F:
            wrong |= {"left": [left[:, :k], raw[0][:, :k]]}
        if frames >= F:  # else there are directions in which nothing varies, and any of them is the smallest
            last = [right[::-1][:k].T, right[-k:].T, right[rank - k : rank].T, right[rank - k : rank][::-1].T]
            wrong |= {"smallest": last, "not transposed": [right[:, :k], raw[2][:, :k]]}
        return right[:k].T, wrong

    def reading(result, right):
        given = array(result)
        if given.shape == right.shape[::-1]:
            raise Mistake("lying down", wanted=right.shape)
        if given.ndim == 2 and given.shape[0] != len(right) and given.shape in {(len(psi), k) for psi, k in cases}:
            raise Mistake("left")
        return array(given, right.shape)

    def fits(given, right, *_):
        return parallel(given, right) and close(given.T @ given, np.eye(given.shape[1]))

    def numbers(given, right, *_):
        return {"column": next(k for k in range(right.shape[1]) if not parallel(given[:, [k]], right[:, [k]]))}

    rng, cases = np.random.default_rng(85), []
    for frames, F, k in (
        (7, 7, 3),
        (30, 5, 3),
        (6, 9, 4),
    ):  # first as many frames as features, where left passes for right
        spread = rng.normal(size=(frames, F)) @ np.diag(np.linspace(3, 0.5, F))
        cases.append((spread + rng.normal(0, 4, size=F), k))
    compare(answer, cases, values, numbers, accept=fits, same=parallel, reading=reading)
    return "CᵀCe = σ²e with the largest σ first, also where there are fewer frames than features. Signs are arbitrary."
