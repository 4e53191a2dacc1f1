"""From a representation to directions worth following (ExtractEigenpurposes, Alg. 1; notebooks 02 and 04).

An eigenvector e of Ψ or L becomes a reward e[s′] − e[s] (Eq. 1). Three things need care, and all live here: which end of
the spectrum comes first (the smooth one: large in Ψ, small in L), the sign of a vector (arbitrary, so we fix it), and
repeated eigenvalues (any basis of their space is as good as any other, so we compare spaces, never single vectors).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from eigenlib.representation import require_square


class Eigenpurposes(NamedTuple):
    """values: (k,) real, most meaningful first.  vectors: (S, k), unit columns, signs fixed."""

    values: np.ndarray
    vectors: np.ndarray


def extract_eigenpurposes(
    matrix, count: int | None = None, first: Literal["largest", "smallest"] = "largest"
) -> Eigenpurposes:
    """Right eigenvectors of a representation, the smooth ones first (§3.1; notebook 02).

    matrix: (S, S), symmetric or not.  first: "largest" eigenvalues lead for the SR, "smallest" for the Laplacian.
    A symmetric matrix gives orthonormal vectors. Of an unsymmetric one a complex pair may come; it is replaced by the real
    and imaginary part of its vector, which span the same plane, both with the real part as value.
    """
    matrix = require_square(matrix, "The representation")
    if first not in ("largest", "smallest"):
        raise ValueError(f"first must be 'largest' (for the SR) or 'smallest' (for the Laplacian), not {first!r}.")
    n = matrix.shape[0]
    count = n if count is None else count
    if not 1 <= count <= n:
        raise ValueError(f"count must lie between 1 and the {n} states, got {count}.")
    dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    if np.allclose(dense, dense.T, rtol=0, atol=1e-12 * np.abs(dense).max()):
        values, vectors = np.linalg.eigh((dense + dense.T) / 2)
    else:
        values, vectors = _real_eigenpairs(*np.linalg.eig(dense))
    order = np.argsort(values if first == "smallest" else -values, kind="stable")[:count]
    return Eigenpurposes(values[order], fix_signs(vectors[:, order]))


def fix_signs(vectors: np.ndarray) -> np.ndarray:
    """(S, k) with each column's first entry of (nearly) largest size made positive.

    "Nearly": on a symmetric map the two ends of a vector tie up to rounding, and rounding must not choose.
    """
    size = np.abs(vectors)
    leading = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    signs = np.sign(vectors[leading, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1, signs)


def match_signs(vectors: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """(S, k) columns flipped where they point away from the reference's: only for drawing side by side."""
    return vectors * np.where((vectors * reference).sum(axis=0) < 0, -1, 1)


def eigenspaces(values: np.ndarray, tolerance: float = 1e-8) -> list[np.ndarray]:
    """Indices of sorted eigenvalues grouped where neighbours differ by at most `tolerance`."""
    breaks = np.flatnonzero(np.abs(np.diff(values)) > tolerance) + 1
    return np.split(np.arange(len(values)), breaks)


def alignment(vectors: np.ndarray, exact: Eigenpurposes, tolerance: float = 1e-8) -> np.ndarray:
    """How far each estimated vector lies in the exact eigenspace of the same rank: (k,) in [0, 1], 1 is perfect.

    The cosine between column i and the *space* of the exact vectors that share the i-th eigenvalue. For a simple
    eigenvalue this is |⟨v, e⟩|; for a repeated one it does not matter which basis LAPACK happened to choose. Give `exact`
    whole (count=None), so that no repeated eigenvalue is cut in two.
    """
    if vectors.ndim != 2 or vectors.shape[0] != exact.vectors.shape[0] or vectors.shape[1] > exact.vectors.shape[1]:
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
    (first, _), (second, _) = np.linalg.qr(vectors), np.linalg.qr(others)
    return np.minimum(np.linalg.svd(first.T @ second, compute_uv=False), 1.0)


def _real_eigenpairs(values: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Complex pairs replaced by the real and imaginary part of one of them."""
    if np.isrealobj(values):
        return values, vectors
    # Exactly real, not nearly: rounding turns a double eigenvalue into λ ± 1e-15 i, and dropping the imaginary part of such
    # a pair would give one direction twice and lose the other.
    real = values.imag == 0
    upper = np.flatnonzero(values.imag > 0)  # complex pairs come together: one of each is enough
    # The phase that makes vᵀv real and positive turns real and imaginary part orthogonal. The plane is what has meaning.
    plane = vectors[:, upper]
    plane = plane * np.exp(-0.5j * np.angle((plane**2).sum(axis=0)))
    columns = [vectors[:, real].real, plane.real, plane.imag]
    all_values = np.concatenate([values[real].real, values[upper].real, values[upper].real])
    all_vectors = np.concatenate(columns, axis=1)
    return all_values, all_vectors / np.linalg.norm(all_vectors, axis=0)
