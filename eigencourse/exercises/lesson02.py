"""Checks of lesson 02, Two matrices, one set of directions."""

from __future__ import annotations

import numpy as np

from eigencourse.exercises import Mistake, array, call, close, exercise, recognise, worlds
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.representation import laplacian as exact_laplacian
from eigenlib.representation import successor_representation


@exercise(
    "02.1",
    difficulty=2,
    minutes=8,
    mistakes={
        "not normalised": "this is D − W. The normalised Laplacian has D^-½ on both sides of it.",
        "the walk's": "this is I − D⁻¹W, which belongs to the walk and is not symmetric where degrees differ. Put D^-½ on "
        "each side instead of D⁻¹ on one.",
        "wrong power": "D has the wrong power. On both sides it must be D^-½: one over the square root of the degree.",
        "one side": "D^-½ stands on one side only. Entry (s, s′) must be divided by √(d_s d_s′).",
        "upside down": "the sign is the wrong way round: D − W, so that the diagonal is positive.",
        "no identity": "this is D^-½ W D^-½. Subtract it from the identity: D^-½ D D^-½ = I.",
        "not symmetric": "yours is not symmetric, but W is, and D^-½ stands on both sides alike.",
        "else": "fᵀLf must be the sum over edges of (f(s)/√d_s − f(s′)/√d_s′)², and for a W of shape {shape} yours is "
        "{given:.3g} instead of {wanted:.3g} for some f.",
    },
)
def laplacian(answer):
    """The normalised Laplacian of a weight matrix"""
    rng = np.random.default_rng(21)
    for k, world in enumerate(worlds(4, seed=21)):
        W = world.adjacency(self_loops=k % 2 == 1)  # first without: degrees differ
        L, d = array(call(answer, W), W.shape), W.sum(axis=1)
        F = rng.normal(size=(len(W), 5))
        scaled = (F / np.sqrt(d)[:, None]).T
        edges = np.array([(W * (f[:, None] - f) ** 2).sum() / 2 for f in scaled])  # W holds each edge twice
        given = np.einsum("sk,st,tk->k", F, L, F)
        if close(L, L.T) and close(given, edges):
            continue
        D, eye, root, unroot = np.diag(d), np.eye(len(W)), np.diag(d**0.5), np.diag(d**-0.5)
        wrong = {
            "not normalised": D - W,
            "the walk's": [eye - W / d[:, None], eye - W / d],
            "wrong power": [root @ (D - W) @ root, (D - W) / d[:, None] / d],
            "one side": [unroot @ (D - W), (D - W) @ unroot],
            "upside down": [W - D, unroot @ (W - D) @ unroot],
            "no identity": unroot @ W @ unroot,
        }
        recognise(L, wrong)
        if not close(L, L.T):
            raise Mistake("not symmetric")
        worst = np.argmax(np.abs(given - edges))
        raise Mistake("else", shape=W.shape, given=given[worst], wanted=edges[worst])
    return "symmetric, and fᵀLf adds up the squared differences along the edges, whatever f is."


@exercise(
    "02.2",
    difficulty=1,
    minutes=5,
    mistakes={
        "wrong way": "this is line 12 as it stands, from Ψ's eigenvalue to the Laplacian's. Solve it for λ.",
        "T's eigenvalue": "you treated λ′ as an eigenvalue of T. The Laplacian's λ′ belongs to T's 1 − λ′.",
        "no discount": "γ is missing. The Laplacian knows no discount; Ψ does.",
        "γ lost": "one γ got lost on the way: λ′ comes with a factor γ, because T does.",
        "not inverted": "this is the eigenvalue of I − γT. Ψ is its inverse, so its eigenvalue is one over that.",
        "else": "on a world with γ = {gamma} the eigenvalue {prime:.3g} of the Laplacian belongs to {wanted:.3g} of Ψ; you get "
        "{given:.3g}. Start from line 12 and free λ one operation at a time.",
    },
)
def sr_value(answer):
    """From an eigenvalue of the Laplacian to that of Ψ"""
    for world, gamma in zip(worlds(3, seed=22), (0.9, 0.6, 0.99), strict=True):
        W = world.adjacency(self_loops=True)
        prime = np.linalg.eigvalsh(exact_laplacian(W))[1:]  # without 0, at which many a mistake divides by zero
        exact = np.linalg.eigvalsh(successor_representation(W / 4, gamma))[::-1][1:]
        given = array(call(answer, prime, gamma), prime.shape)
        if close(given, exact):
            continue
        wrong = {
            "wrong way": 1 - (1 - 1 / prime) / gamma,
            "T's eigenvalue": 1 / (1 - gamma * prime),
            "no discount": 1 / prime,
            "γ lost": [1 / (1 - gamma + prime), exact / gamma],
            "not inverted": 1 - gamma * (1 - prime),
        }
        recognise(given, wrong)
        worst = int(np.argmax(np.abs(given - exact)))
        raise Mistake("else", gamma=gamma, prime=prime[worst], wanted=exact[worst], given=given[worst])
    return "these are Ψ's own eigenvalues, on three worlds. λ′ from 0 to 2 means λ from 1/(1−γ) down to 1/(1+γ)."


@exercise(
    "02.3",
    difficulty=2,
    minutes=8,
    mistakes={
        "like the SR": "you sorted the Laplacian like the SR: these are its roughest vectors. Smooth is small in the Laplacian "
        "and large in Ψ.",
        "backwards": "these are the right vectors in the wrong order: the smoothest comes first.",
        "rows": "eigh returns the vectors as columns. You took rows, which are no eigenvectors.",
        "lying down": "you returned one vector a row. Shape {wanted} is asked for: one vector a column.",
        "without the first": "the smoothest vector of all, with eigenvalue 0, is missing.",
        "length": "the directions are right, but the columns must have length 1.",
        "else": "column {column} is not what it should be: Le = λe must hold with the smallest λ in column 0, the next one in "
        "column 1, and so on.",
    },
)
def smooth(answer):
    """The k smoothest eigenvectors of the Laplacian"""
    flipped = False
    for world, k in zip(worlds(4, seed=23, fewest=8), (3, 2, 4, 5), strict=True):
        L = exact_laplacian(world.adjacency(self_loops=False))
        values, vectors = np.linalg.eigh(L)
        given = array(call(answer, L, k))
        if given.shape == (k, len(L)):
            raise Mistake("lying down", wanted=(len(L), k))
        given = array(given, (len(L), k))
        off = np.abs(L @ given - given * values[:k]).max(axis=0)
        if close(off, np.zeros(k)) and close(given.T @ given, np.eye(k)):
            # Any basis of a repeated eigenvalue will do: a sign can only be compared where there is but one vector.
            signs = (given * extract_eigenpurposes(L, k, "smallest").vectors).sum(axis=0)
            flipped = flipped or bool((signs < -0.999).any())
            continue
        recognise(given, {"rows": vectors[:k].T})
        unit = given / np.maximum(np.linalg.norm(given, axis=0), 1e-12)
        wrong = {
            "like the SR": [vectors[:, ::-1][:, :k], vectors[:, -k:]],
            "backwards": [vectors[:, :k][:, ::-1]],
            "without the first": [vectors[:, 1 : k + 1]],
            "length": [vectors[:, :k]],
        }  # compared by their cosines, whatever the signs
        recognise(np.ones(k), {name: [np.abs((unit * V).sum(axis=0)) for V in Vs] for name, Vs in wrong.items()})
        raise Mistake("else", column=int(np.argmax(off > 1e-6)))
    if flipped:
        return (
            "some of your vectors are the library's with the sign flipped, which is equally valid: if Le = λe then "
            "L(−e) = λ(−e). Nothing in a matrix says which way its eigenvectors point."
        )
    return "Le = λe with the k smallest λ, unit length, at right angles. Each could as well point the other way."


_STAYS = {
    "a": "look at (a) again: did any of the eighteen lines use that W is symmetric, or only that its row sums are positive?",
    "b": "look at (b) again: real eigenvalues were a gift of symmetry. Does every other matrix have real ones only?",
    "c": "look at (c) again: into the valve there are moves from both sides. And out of it?",
    "d": "look at (d) again: lines 1 to 8 turn Ψe = λe into Te = …e. What do they ask of T?",
    "e": "look at (e) again: each row of T still sums to 1, so T does not change the vector of ones. What does Ψ do to it?",
}


@exercise(
    "02.4",
    difficulty=2,
    minutes=5,
    mistakes=_STAYS | {"letters": "write the letters of the sentences that stay true, such as 'ab'; there are a to e."},
)
def valve(answer):
    """What breaks if one door becomes a valve?"""
    if not isinstance(answer, (str, list, tuple, set)) or not all(isinstance(one, str) for one in answer):
        raise Mistake("letters")
    given = {letter for letter in "".join(answer).lower() if letter.isalnum()}
    if not given or not given <= set(_STAYS):
        raise Mistake("letters")
    rows, gamma = GridWorld.named("four_rooms").text.splitlines(), 0.9
    rows[3] = rows[3][:6] + ">" + rows[3][7:]
    world = GridWorld.from_text("\n".join(rows))
    W, T = world.adjacency(self_loops=True), world.transition_matrix()
    values, E = np.linalg.eig(successor_representation(T, gamma))
    of_T = (1 - 1 / values) / gamma
    stays = {
        "a": np.abs(exact_laplacian(W) @ E - (1 - of_T) * E).max() < 1e-10,
        "b": np.abs(values.imag).max() < 1e-10,
        "c": np.array_equal(W, W.T),
        "d": np.abs(T @ E - of_T * E).max() < 1e-10,
        "e": abs(np.abs(values).max() - 1 / (1 - gamma)) < 1e-8,
    }
    for letter, true in stays.items():
        if true != (letter in given):
            raise Mistake(letter)
    return "the algebra never asked for symmetry. What goes is real eigenvalues, and an honest W for the PVF to start from."


@exercise(
    "02.5",
    difficulty=3,
    minutes=15,
    mistakes={
        "unchanged": "the vectors stay, the values do not: a walker who often stays put forgets more slowly where it began.",
        "swapped": "α and 1 − α have changed places: α is the probability of staying.",
        "mixed Ψ": "you mixed the eigenvalues of Ψ. It is T that is mixed: go from λ to T's eigenvalue, mix, and come back.",
        "stopped at T": "this is the eigenvalue of T_α. One step is left: from there to Ψ_α.",
        "γ lost": "a γ got lost: T's eigenvalue is (1 − 1/λ)/γ (line 8), and Ψ's is 1/(1 − γ·that).",
        "else": "for α = {alpha} and γ = {gamma} the eigenvalue {lam:.3g} of Ψ becomes {wanted:.3g}, yours {given:.3g}. Go by "
        "way of T: line 8 first, then the mixture, then back.",
    },
)
def lazy(answer):
    """The eigenvalues of a lazy walk"""
    for world, gamma, alpha in zip(worlds(3, seed=25), (0.9, 0.7, 0.95), (0.2, 0.7, 0.4), strict=True):
        T = world.transition_matrix()
        lam = np.linalg.eigvalsh(successor_representation(T, gamma))
        exact = np.linalg.eigvalsh(successor_representation(alpha * np.eye(len(T)) + (1 - alpha) * T, gamma))
        given = array(call(answer, lam, gamma, alpha), lam.shape)
        if close(given, exact):
            continue
        of_T = (1 - 1 / lam) / gamma
        mixed, lost = (alpha + (1 - alpha) * value for value in (of_T, gamma * of_T))
        wrong = {
            "unchanged": lam,
            "swapped": 1 / (1 - gamma * (1 - alpha + alpha * of_T)),
            "mixed Ψ": [alpha + (1 - alpha) * lam, alpha / (1 - gamma) + (1 - alpha) * lam],
            "stopped at T": mixed,
            "γ lost": [1 / (1 - gamma * lost), 1 / (1 - mixed), 1 / (1 - lost)],
        }
        recognise(given, wrong)
        worst = int(np.argmax(np.abs(given - exact)))
        numbers = {"lam": lam[worst], "wanted": exact[worst], "given": given[worst]}
        raise Mistake("else", alpha=alpha, gamma=gamma, **numbers)
    return "the same vectors, new values, and the constant vector keeps its 1/(1−γ): standing still changes no total."
