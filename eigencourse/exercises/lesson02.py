"""Checks of lesson 02, Two matrices, one set of directions."""

from __future__ import annotations

import numpy as np

from eigencourse.exercises import exercise
from eigencourse.exercises.answers import Mistake, array
from eigencourse.exercises.compare import close, compare, letters, parallel, worst
from eigencourse.exercises.worlds import worlds
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.representation import laplacian as exact_laplacian
from eigenlib.representation import successor_representation


@exercise
def laplacian(answer):
    """The normalised Laplacian of a weight matrix"""

    def values(W):
        d, eye = W.sum(axis=1), np.eye(len(W))
        D, root, unroot = np.diag(d), np.diag(d**0.5), np.diag(d**-0.5)
        entrywise = D**-0.5  # ∞ wherever D is 0
        return exact_laplacian(W), {
            "not normalised": D - W,
            "the walk's": [eye - W / d[:, None], eye - W / d],
            "wrong power": [root @ (D - W) @ root, (D - W) / d[:, None] / d],
            "one side": [unroot @ (D - W), (D - W) @ unroot],
            "upside down": [W - D, unroot @ (W - D) @ unroot],
            "no identity": unroot @ W @ unroot,
            "always four": [eye - W / 4, 4 * eye - W],
            "power of zero": [
                *(eye - one for one in (entrywise @ W @ entrywise, entrywise * W * entrywise)),
                *(entrywise @ (D - W) @ entrywise, entrywise @ W, entrywise @ (D - W)),
            ],
        }

    def search(L, W):
        if not close(L, L.T):
            raise Mistake("not symmetric")

    def numbers(L, exact, W):
        F = np.random.default_rng(21).normal(size=(len(W), 5))
        return {"shape": W.shape, **worst(*(np.einsum("sk,st,tk->k", F, one, F) for one in (L, exact)))}

    # First without bumps: degrees differ.
    cases = [(world.adjacency(self_loops=k % 2 == 1),) for k, world in enumerate(worlds(4, seed=21))]
    compare(answer, cases, values, numbers, search=search)
    return "symmetric, and fᵀLf adds up the squared differences along the edges, whatever f is."


@exercise
def sr_value(answer):
    """From an eigenvalue of the Laplacian to that of Ψ"""

    def values(prime, gamma):
        exact = 1 / (1 - gamma * (1 - prime))
        return exact, {
            "wrong way": 1 - (1 - 1 / prime) / gamma,
            "T's eigenvalue": 1 / (1 - gamma * prime),
            "no discount": 1 / prime,
            "γ lost": [1 / (1 - gamma + prime), exact / gamma],
            "not inverted": 1 - gamma * (1 - prime),
        }

    def numbers(given, exact, prime, gamma):
        return {"gamma": gamma, "prime": prime[np.argmax(np.abs(given - exact))], **worst(given, exact)}

    # Without 0, at which many a mistake divides by zero.
    primes = [np.linalg.eigvalsh(exact_laplacian(world.adjacency(self_loops=True)))[1:] for world in worlds(3, seed=22)]
    compare(answer, zip(primes, (0.9, 0.6, 0.99), strict=True), values, numbers)
    return "these are Ψ's own eigenvalues, on three worlds. λ′ from 0 to 2 means λ from 1/(1−γ) down to 1/(1+γ)."


@exercise
def smooth(answer):
    """The k smoothest eigenvectors of the Laplacian"""

    def values(L, k):
        vectors = np.linalg.eigh(L)[1]
        return vectors[:, :k], {
            "rows": vectors[:k].T,
            "like the SR": [vectors[:, ::-1][:, :k], vectors[:, -k:]],
            "backwards": vectors[:, :k][:, ::-1],
            "without the first": vectors[:, 1 : k + 1],
            "length": vectors[:, :k],
        }

    def fits(given, _, L, k):
        """Any basis of a repeated eigenvalue will do."""
        residuals = L @ given - given * np.linalg.eigvalsh(L)[:k]
        return close(residuals, np.zeros(given.shape)) and close(given.T @ given, np.eye(k))

    def reading(result, right):
        given = array(result)
        if given.shape == right.shape[::-1] != right.shape:
            raise Mistake("lying down", wanted=right.shape)
        return array(given, right.shape)

    def search(given, L, k):
        own = (given * (L @ given)).sum(axis=0) / np.maximum((given**2).sum(axis=0), 1e-12)
        if close(L @ given, given * own) and np.linalg.matrix_rank(given) == k:
            raise Mistake("not sorted")

    def numbers(given, _, L, k):
        off = np.abs(L @ given - given * np.linalg.eigvalsh(L)[:k]).max(axis=0)
        return {"column": int(np.argmax(off > 1e-6))}

    laplacians = [exact_laplacian(world.adjacency(self_loops=False)) for world in worlds(4, seed=23, fewest=8)]
    cases = list(zip(laplacians, (3, 2, 4, 5), strict=True))
    found = compare(answer, cases, values, numbers, accept=fits, same=parallel, reading=reading, search=search)
    # A sign can only be compared where an eigenvalue has but one vector.
    library = (extract_eigenpurposes(L, k, "smallest").vectors for L, k in cases)
    if any(((given * own).sum(axis=0) < -0.999).any() for given, own in zip(found, library, strict=True)):
        return (
            "some of your vectors are the library's with the sign flipped, which is equally valid: if Le = λe then "
            "L(−e) = λ(−e). Nothing in a matrix says which way its eigenvectors point."
        )
    return "Le = λe with the k smallest λ, unit length, at right angles. Each could as well point the other way."


@exercise
def valve(answer):
    """What breaks if one door becomes a valve?"""
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
    letters(answer, stays)
    return "the algebra never asked for symmetry. What goes is real eigenvalues, and an honest W for the PVF to start from."


@exercise
def lazy(answer):
    """The eigenvalues of a lazy walk"""

    def values(lam, gamma, alpha):
        of_T = (1 - 1 / lam) / gamma
        mixed, lost = (alpha + (1 - alpha) * value for value in (of_T, gamma * of_T))
        return 1 / (1 - gamma * mixed), {
            "unchanged": lam,
            "swapped": 1 / (1 - gamma * (1 - alpha + alpha * of_T)),
            "mixed Ψ": [alpha + (1 - alpha) * lam, alpha / (1 - gamma) + (1 - alpha) * lam],
            "stopped at T": mixed,
            "γ lost": [1 / (1 - gamma * lost), 1 / (1 - mixed), 1 / (1 - lost)],
        }

    def numbers(given, exact, lam, gamma, alpha):
        shown = {"lam": lam[np.argmax(np.abs(given - exact))], "gamma": gamma, "alpha": alpha}
        return shown | worst(given, exact)

    transitions = [world.transition_matrix() for world in worlds(3, seed=25)]
    settings = list(zip(transitions, (0.9, 0.7, 0.95), (0.2, 0.7, 0.4), strict=True))
    cases = [(np.linalg.eigvalsh(successor_representation(T, gamma)), gamma, alpha) for T, gamma, alpha in settings]
    compare(answer, cases, values, numbers)
    return "the same vectors, new values, and the constant vector keeps its 1/(1−γ): standing still changes no total."
