"""How near one set of eigenvectors is to another, and one Ψ to another (notebooks 02, 03, 05 and 07).

Single vectors cannot be compared: their signs, and of a repeated eigenvalue the basis, are the solver's choice. Spaces can.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import subspace_angles

from eigenlib import _require
from eigenlib._require import Matrix
from eigenlib.canonical import fix_signs
from eigenlib.eigenpurposes import Eigenpurposes


def alignment(vectors: np.ndarray, exact: Eigenpurposes, tolerance: float = 1e-8) -> np.ndarray:
    """How far each estimated vector lies in the exact eigenspace of the same rank: (k,) in [0, 1], 1 is perfect.

    The cosine between column i and the *space* of the exact vectors that share the i-th eigenvalue. For a simple
    eigenvalue this is |⟨v, e⟩|; for a repeated one it does not matter which basis LAPACK happened to choose. Give `exact`
    whole (count=None), so that no repeated eigenvalue is cut in two.
    """
    vectors, exact = _require_directions(vectors), _require_purposes(exact, "exact")
    if vectors.shape[0] != exact.vectors.shape[0] or vectors.shape[1] > exact.vectors.shape[1]:
        raise ValueError(
            f"Vectors of shape {vectors.shape} cannot be compared with exact ones of shape {exact.vectors.shape}."
        )
    vectors = vectors / np.linalg.norm(vectors, axis=0)
    result = np.empty(vectors.shape[1])
    for group in eigenspaces(exact.values, tolerance):
        basis, _ = np.linalg.qr(exact.vectors[:, group])
        members = group[group < vectors.shape[1]]
        result[members] = np.linalg.norm(basis.T @ vectors[:, members], axis=0)
    return np.minimum(result, 1.0)


def principal_cosines(vectors: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Cosines of the angles between two spaces, (S, k) and (S, m) → (min(k, m),), best first: all 1 if one holds the other."""
    vectors, others = _require_directions(vectors), _require_directions(others)
    if len(vectors) != len(others):
        raise ValueError(f"Vectors of shapes {vectors.shape} and {others.shape} do not belong to one world.")
    return np.sort(np.cos(subspace_angles(vectors, others)))[::-1]


def eigenspaces(values: np.ndarray, tolerance: float = 1e-8) -> list[np.ndarray]:
    """Indices of sorted eigenvalues grouped where neighbours differ by at most `tolerance`."""
    values, tolerance = _require.numbers(values, "values", ("k",)), _require.real(tolerance, "tolerance", 0)
    breaks = np.flatnonzero(np.abs(np.diff(values)) > tolerance) + 1
    return np.split(np.arange(len(values)), breaks)


def match_signs(vectors: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """(S, k) columns flipped where they point away from the reference's: only for drawing side by side."""
    vectors = _require.numbers(vectors, "vectors", ("S", "k"))
    reference = _require.numbers(reference, "reference", vectors.shape)
    return vectors * np.where((vectors * reference).sum(axis=0) < 0, -1, 1)


def rotated(
    purposes: Eigenpurposes, rng: int | np.random.Generator | None = None, tolerance: float = 1e-8
) -> Eigenpurposes:
    """The same eigenspaces, in each that a value shares a basis drawn at random: as right as the canonical one (notebook 05).

    What differs from one such draw to the next is owed to the choice of a basis, not to the world.
    """
    purposes = _require_purposes(purposes, "purposes")
    random, vectors = _require.generator(rng), purposes.vectors.copy()
    for group in eigenspaces(purposes.values, tolerance):
        if len(group) > 1:
            vectors[:, group] = vectors[:, group] @ np.linalg.qr(random.normal(size=(len(group), len(group))))[0]
    return Eigenpurposes(purposes.values, fix_signs(vectors))


def residuals(
    matrix: Matrix, purposes: Eigenpurposes, gamma: float | None = None, tolerance: float = 1e-8
) -> np.ndarray:
    """How far each vector is from being an eigenvector, (k,): ‖Me − λe‖.

    matrix: (S, S) that the purposes were extracted from; with gamma it is T, and the purposes are those of the SR.
    Where values repeat (within tolerance; so do the two of a complex pair) it is the distance of Me from the space of all
    vectors with that value. A space that `count` cut in two therefore shows a large residual: ask for one vector more.
    """
    matrix = _require.square(matrix, "The representation")
    purposes = _require_purposes(purposes, "purposes", matrix.shape[0])
    gamma = None if gamma is None else _require.discount(gamma)
    values = purposes.values if not gamma else (1 - 1 / purposes.values) / gamma
    result = np.empty(len(values))
    for group in eigenspaces(purposes.values, tolerance):
        vectors = purposes.vectors[:, group]
        image = matrix @ vectors
        if len(group) == 1:
            image -= vectors * values[group]
        else:
            basis, _ = np.linalg.qr(vectors)
            image -= basis @ (basis.T @ image)
        result[group] = np.linalg.norm(image, axis=0)
    return result


def relative_error(estimate: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """‖Ψ̂ − Ψ‖ / ‖Ψ‖ (Frobenius) of every matrix in a stack: (..., S, S) and (S, S) → (...)."""
    estimate, exact = _require.numbers(estimate, "The estimate"), _require.square(exact, "The exact Ψ")
    if estimate.shape[-2:] != exact.shape:
        raise ValueError(
            f"Estimates of shape {estimate.shape} cannot be compared with an exact Ψ of shape {exact.shape}."
        )
    difference = estimate - exact
    error: np.ndarray = np.sqrt(np.einsum("...ij,...ij->...", difference, difference)) / np.linalg.norm(exact)
    return error


def _require_purposes(purposes: Eigenpurposes, name: str, n_states: int | str = "S") -> Eigenpurposes:
    """What an extract_… function has returned."""
    _require.instance(purposes, name, Eigenpurposes, "give what extract_eigenpurposes returned, whole")
    vectors = _require.numbers(purposes.vectors, f"{name}.vectors", (n_states, "k"))
    return Eigenpurposes(_require.numbers(purposes.values, f"{name}.values", (vectors.shape[1],)), vectors)


def _require_directions(vectors: np.ndarray) -> np.ndarray:
    """(S, k) floats, or a sentence: a vector of zeros points nowhere, so no angle to it exists."""
    vectors = _require.floats(vectors, "The vectors")
    if vectors.ndim != 2 or not vectors.size:
        raise ValueError(f"Vectors stand as columns of an (S, k) array, got shape {vectors.shape}.")
    nowhere = ~np.isfinite(vectors).all(axis=0) | ~vectors.any(axis=0)
    if nowhere.any():
        raise ValueError(
            f"Vector {np.argmax(nowhere)} is zero or holds entries that are not finite, so it has no direction."
        )
    return vectors
