"""Checks of lesson 08, The deep successor representation. All in NumPy: what a network computes is a table of numbers too."""

from __future__ import annotations

import numpy as np

from eigencourse.exercises import Mistake, array, call, chains, close, exercise, recognise, scalar
from eigenlib.representation import successor_representation


@exercise(
    "08.1",
    difficulty=2,
    minutes=8,
    mistakes={
        "order": "you multiplied in the wrong order: this is ΦΨ. Row s of ψ adds up the *rows* of Φ, weighted by the visits "
        "that start in s.",
        "transposed": "you summed over the wrong index of Ψ. The visits that start in s stand in row s: Ψ, not Ψᵀ.",
        "Ψ alone": "this is Ψ: visits to states. An agent without a list of states wants to know how much of each feature "
        "lies ahead.",
        "features now": "the features at t = 0 are missing. The sum begins with φ(s) itself, in full.",
        "γ on everything": "everything is discounted, the features now as well. γ⁰ = 1: φ(s) counts in full.",
        "one step": "this looks one step ahead and no further. The sum goes on.",
        "an average": "this is an average of what lies ahead, (1−γ) times the sum asked for.",
        "else": "ψ must equal Φ + γTψ, and for T of shape {shape}, {features} features and γ = {gamma} yours is off by up to "
        "{off:.2g}. What lies ahead is what is here now, plus γ times what lies ahead of the next state.",
    },
)
def successor_features(answer):
    """How much of each feature lies ahead?"""
    rng = np.random.default_rng(81)
    for k, (T, gamma) in enumerate(chains(4, seed=81)):
        S = len(T)
        Phi = rng.normal(size=(S, S if k == 0 else 3))  # first as many as states, so that ΦΨ can be told from ΨΦ
        psi_s = successor_representation(T, gamma)
        psi = array(call(answer, T, gamma, Phi))
        recognise(psi, {"Ψ alone": psi_s})
        psi = array(psi, Phi.shape)
        if close(psi, Phi + gamma * T @ psi):
            continue
        exact = psi_s @ Phi
        wrong = {
            "transposed": psi_s.T @ Phi,
            "features now": [exact - Phi, T @ exact],
            "γ on everything": gamma * exact,
            "one step": [Phi + gamma * T @ Phi, Phi + T @ Phi, gamma * T @ Phi, T @ Phi],
            "an average": (1 - gamma) * exact,
        }
        if k == 0:
            wrong |= {"order": Phi @ psi_s}
        recognise(psi, wrong)
        off = np.abs(psi - Phi - gamma * T @ psi).max()
        raise Mistake("else", shape=T.shape, features=Phi.shape[1], gamma=gamma, off=off)
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


@exercise(
    "08.2",
    difficulty=2,
    minutes=8,
    mistakes={
        "no mask": "you go on past the end. Where an episode ended nothing follows, so whatever the network believes about the "
        "frame after that must not count.",
        "reversed": "the mask is the wrong way round: you look ahead exactly where nothing follows.",
        "φ(s) masked too": "where an episode ended, the features of s vanish in yours. They were seen, so they count; only "
        "what would come after them does not.",
        "along the features": "the mask runs along the features instead of the transitions. `ended` has one entry a row: "
        "write ended[:, None], or NumPy lines it up with the columns whenever there are as many of them.",
        "γ on the wrong term": "γ is on the wrong term: φ(s) is now and counts in full, ψ(s′) is one step ahead and is "
        "discounted.",
        "no γ": "γ is missing: ψ(s′) lies one step ahead.",
        "no features": "φ(s) is missing. Without it ψ = 0 is always a perfect answer.",
        "s and s′ swapped": "ψ(s) and ψ(s′) have changed places: it is ψ(s) that is moved, towards what ψ(s′) suggests.",
        "target only": "this is the target. The error is its distance from what the network says now: subtract ψ(s).",
        "sign": "the sign is the wrong way round: target minus belief, as in lesson 03, so that a positive error means 'more'.",
        "squared": "the error itself is asked for, before it is squared.",
        "moves at the truth": "put the true ψ in and average over next states, and nothing should be left. Of yours "
        "{off:.2g} is left: say in words what is here now, what lies ahead of s′ unless it is over, and what was believed.",
        "else": "the error vanishes at the true ψ, as it should, but elsewhere it is off by up to {off:.2g}. Nothing but the "
        "target minus ψ(s) is asked for.",
    },
)
def sr_error(answer):
    """The error of a batch of transitions"""
    rng = np.random.default_rng(82)
    for batch, features in (
        (6, 6),
        (8, 5),
        (5, 7),
    ):  # first as many as features: a mask on the wrong axis goes unnoticed
        phi, psi, ahead = rng.normal(size=(3, batch, features))
        ended, gamma = np.arange(batch) % 3 == 1, float(rng.choice([0.8, 0.9, 0.95]))
        given = array(call(answer, phi, psi, ahead, ended, gamma), phi.shape)
        goes_on = 1.0 - ended[:, None]
        exact = phi + gamma * goes_on * ahead - psi
        masked = goes_on * ahead
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
        if batch == features:
            wrong |= {"along the features": phi + gamma * (1 - ended) * ahead - psi}
        recognise(given, wrong)
        left = _left_at_the_truth(answer, features, seed=features)
        if left > 1e-6:
            raise Mistake("moves at the truth", off=left)
        if not close(given, exact):
            raise Mistake("else", off=np.abs(given - exact).max())
    return (
        "now, plus γ times what lies ahead unless it is over, minus what was believed: the error of every transition."
    )


def _slope(loss, W: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """∂loss/∂W by central differences, which are exact for a square."""
    slope = np.zeros_like(W)
    for place in np.ndindex(W.shape):
        moved = np.zeros_like(W)
        moved[place] = step
        slope[place] = (loss(W + moved) - loss(W - moved)) / (2 * step)
    return slope


@exercise(
    "08.3",
    difficulty=3,
    minutes=15,
    mistakes={
        "its own tail": "your target is made with W, the weights that are being moved. It must be made with W_old, which is "
        "kept still.",
        "through the target": "your gradient flows through the target too: there is a φ(s′) in it. The target is a number to "
        "aim at; only ψ(s) = Wφ(s) depends on the weights that move.",
        "at s′": "the step is along φ(s′). ψ(s) = Wφ(s) is what moves, so its derivative brings φ(s).",
        "uphill": "you went up the hill: the loss grows. Go against the gradient.",
        "half": "the direction is right, the step is half as long: the derivative of a square brings a 2. (Any step size "
        "swallows it, and many write the loss with a ½ for that reason; here there is none.)",
        "averaged": "the direction is right, but the loss here is a sum over the features, and yours is their mean.",
        "transposed": "this change is the transpose of the right one. Entry (i, j) of W takes feature j to entry i of ψ: the "
        "error stands in front, the features behind.",
        "only the change": "this is the change. Return the new weights: the old ones plus the change.",
        "jumped": "you forgot the step size.",
        "else": "the new weights must be W − step_size · ∂L/∂W with the target held still, and yours are off by up to "
        "{off:.2g}. Call the error d, a vector, and ask how ‖d‖² changes if one entry of W does.",
    },
)
def sr_step(answer):
    """One step down the loss, the target held still"""
    rng = np.random.default_rng(83)
    for F in (3, 5):
        W, W_old, (phi, ahead) = rng.normal(size=(F, F)), rng.normal(size=(F, F)), rng.normal(size=(2, F))
        gamma, eta = float(rng.choice([0.8, 0.9])), 0.05
        target = phi + gamma * W_old @ ahead
        given = array(call(answer, W, W_old, phi, ahead, gamma, eta), W.shape)

        def loss(weights, target=target, phi=phi):
            return ((target - weights @ phi) ** 2).sum()

        exact = W - eta * _slope(loss, W)
        if close(given, exact):
            continue
        error, live = target - W @ phi, phi + gamma * W @ ahead - W @ phi
        down = 2 * eta * np.outer(error, phi)
        both = phi - gamma * ahead
        wrong = {
            "its own tail": [W + factor * eta * np.outer(live, phi) for factor in (2, 1)],
            "through the target": [
                W + factor * eta * np.outer(one, both) for factor in (2, 1) for one in (error, live)
            ],
            "at s′": [W + factor * eta * np.outer(error, ahead) for factor in (2, 1)],
            "uphill": [W - down, W - down / 2],
            "half": W + down / 2,
            "averaged": W + down / F,
            "transposed": [W + down.T, W + down.T / 2],
            "only the change": [down, down / 2, -down],
            "jumped": [W + down / eta, W + down / (2 * eta)],
        }
        recognise(given, wrong)
        raise Mistake("else", off=np.abs(given - exact).max())
    return "measured by moving every weight a little: your step goes straight down, and the target stays where it is."


@exercise(
    "08.4",
    difficulty=1,
    minutes=4,
    mistakes={
        "a pair": "two things are asked for: the loss while ψ is 0, and the ψ at which it vanishes.",
        "loss, not squared": "the loss is a *squared* length.",
        "loss, averaged": "the loss in this exercise is the squared length, a sum over the features, not their mean.",
        "loss, zero": "the loss does not vanish by itself: with ψ = 0 the network says 'nothing lies ahead', and c lies ahead.",
        "loss": "look at the loss again: put φ = c and ψ = 0 into ‖φ(s) + γψ(s′) − ψ(s)‖².",
        "ψ, no future": "ψ = c counts what is seen now and nothing that comes. Put it in: an error of γc remains.",
        "ψ, no present": "this counts what comes and not what is seen now. The sum begins with γ⁰ = 1.",
        "ψ, upside down": "you multiplied by 1−γ. The sum c + γc + γ²c + … is larger than c.",
        "ψ, zero": "ψ = 0 works only if c is 0 as well.",
        "ψ": "look at ψ again: c + γψ − ψ must be 0. For c = {c} and γ = {gamma} an error of {off:.2g} remains.",
    },
)
def blind(answer):
    """What breaks if the SR's loss is all there is?"""
    rng = np.random.default_rng(84)
    for F, gamma in ((3, 0.9), (2, 0.5), (4, 0.99)):
        c = rng.normal(size=F).round(1)
        found = call(answer, c, gamma)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise Mistake("a pair")
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


@exercise(
    "08.5",
    difficulty=2,
    minutes=10,
    mistakes={
        "left": "these are the left singular vectors: they have one entry a *frame*. A direction in feature space has one "
        "entry a feature.",
        "not centred": "you did not take the mean away. The first direction then says where the cloud of rows *is*, not how "
        "the rows differ, and the others have to make room for it.",
        "wrong mean": "you took each row's own mean away. What must go is the mean *row*: each feature's mean over all frames.",
        "smallest": "these are the directions in which ψ varies least. The largest singular values come first.",
        "backwards": "these are the right directions in the wrong order: the one with the largest singular value first. "
        "(eigh sorts the other way from svd.)",
        "not transposed": "np.linalg.svd returns Vᵀ, so its *rows* are the right singular vectors. You took columns.",
        "lying down": "one direction a *column* is asked for, shape {wanted}; yours lie in rows.",
        "length": "the directions are right, but the columns must have length 1.",
        "else": "column {column} is not what it should be. With C the rows minus their mean row, e must satisfy CᵀCe = σ²e, "
        "with the largest σ in column 0, the next one in column 1, and so on.",
    },
)
def feature_directions(answer):
    """Directions in feature space"""
    rng = np.random.default_rng(85)
    for frames, F, k in (
        (7, 7, 3),
        (30, 5, 3),
        (6, 9, 4),
    ):  # first as many frames as features, where left passes for right
        psi = rng.normal(size=(frames, F)) @ np.diag(np.linspace(3, 0.5, F)) + rng.normal(0, 4, size=F)
        C = psi - psi.mean(axis=0)
        left, sigma, right = np.linalg.svd(C)
        given = array(call(answer, psi, k))
        if given.shape == (frames, k) != (F, k):
            raise Mistake("left")
        if given.shape == (k, F):
            raise Mistake("lying down", wanted=(F, k))
        given = array(given, (F, k))
        fits = np.abs(C.T @ C @ given - given * sigma[:k] ** 2).max(axis=0) < 1e-6 * sigma[0] ** 2
        if fits.all() and close(given.T @ given, np.eye(k)):
            continue
        if fits.all():
            raise Mistake("length")
        unit = given / np.maximum(np.linalg.norm(given, axis=0), 1e-12)
        raw = np.linalg.svd(psi)
        by_rows = np.linalg.svd(psi - psi.mean(axis=1, keepdims=True))
        rank = min(frames - 1, F)
        wrong = {
            "not centred": [raw[2][:k].T],
            "wrong mean": [by_rows[2][:k].T],
            "smallest": [right[::-1][:k].T, right[-k:].T, right[rank - k : rank].T, right[rank - k : rank][::-1].T],
            "backwards": [right[:k][::-1].T],
        }
        if frames == F:
            wrong |= {"left": [left[:, :k], raw[0][:, :k]]}
        if frames >= F:
            wrong |= {"not transposed": [right[:, :k], raw[2][:, :k]]}
        # compared by their cosines, whatever the signs
        recognise(np.ones(k), {name: [np.abs((unit * V).sum(axis=0)) for V in Vs] for name, Vs in wrong.items()})
        raise Mistake("else", column=int(np.argmin(fits)))
    return "CᵀCe = σ²e with the largest σ first, also where there are fewer frames than features. Signs are arbitrary."
