"""From a representation to directions worth following (ExtractEigenpurposes, Alg. 1; notebooks 02 and 04).

An eigenvector e of Ψ or L becomes a reward e[s′] − e[s] (Eq. 1). Three things need care, and all live here: which end of
the spectrum comes first (the smooth one: large in Ψ, small in L), the sign of a vector (arbitrary, so we fix it), and
repeated eigenvalues (any basis of their space is as good as any other, so we compare spaces, never single vectors).

A world of a million states has a Ψ of eight terabytes, but nobody needs it: T e = μe means Ψ e = e / (1 − γμ), so the
eigenvectors of the sparse T are those of Ψ (notebook 02), and `sr_eigenpurposes` finds only the few that are wanted.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from eigenlib._require import require_floats
from eigenlib.representation import (
    require_discount,
    require_positive,
    require_square,
    require_stochastic,
    successor_representation,
)
from eigenlib.spectrum import SPARE, has_a_known_end, leading_eigenpairs

Method = Literal["auto", "dense", "sparse", "lobpcg"]
_DENSE = 500  # states up to which LAPACK is as fast as sparse solvers


class Eigenpurposes(NamedTuple):
    """values: (k,) real, most meaningful first.  vectors: (S, k), unit columns, signs fixed."""

    values: np.ndarray
    vectors: np.ndarray


def extract_eigenpurposes(
    matrix,
    count: int | None = None,
    first: Literal["largest", "smallest"] = "largest",
    method: Method = "auto",
    progress: bool = False,
) -> Eigenpurposes:
    """Right eigenvectors of a representation, the smooth ones first (§3.1; notebook 02).

    matrix: (S, S), symmetric or not.  first: "largest" eigenvalues lead for the SR, "smallest" for the Laplacian.
    A symmetric matrix gives orthonormal vectors. Of an unsymmetric one a complex pair may come; it is replaced by the real
    and imaginary part of its vector, which span the same plane, both with the real part as value.

    method: "dense" is LAPACK; "sparse" does not make the matrix dense, unless about a third of all vectors is wanted, and takes
    T (largest) or L (smallest), not Ψ: see `sr_eigenpurposes`; "lobpcg" is slower and less exact (10⁻⁹) but needs less memory;
    "auto" is "sparse" where a sparse matrix is large and few vectors are asked for.  progress: show what it is doing.
    """
    matrix = require_square(matrix, "The representation")
    if first not in ("largest", "smallest"):
        raise ValueError(f"first must be 'largest' (for the SR) or 'smallest' (for the Laplacian), not {first!r}.")
    count = _require_count(count, matrix.shape[0])
    sign = 1 if first == "largest" else -1
    how = _choose(method, matrix, count, sign)
    if how == "dense":
        values, vectors = _dense_eigenpairs(matrix)
    else:
        values, vectors = leading_eigenpairs(sign * sparse.csr_matrix(matrix), count, 0.0, how, progress)
        values = sign * values
    return _sorted(*_real_eigenpairs(values, vectors), count, sign)


def sr_eigenpurposes(
    T, gamma: float, count: int | None = None, method: Method = "auto", progress: bool = False
) -> Eigenpurposes:
    """The leading eigenvectors of Ψ = (I − γT)⁻¹, and its eigenvalues, without Ψ (§3.2; notebook 07).

    T: (S, S) row-stochastic, dense or sparse.  Returns what extract_eigenpurposes(Ψ, count) does, from T's eigenvectors: in
    some 20 s and 1 GB for ten of a million states.  method, progress: as there.
    """
    T = require_stochastic(T)
    require_discount(gamma)
    count = _require_count(count, T.shape[0])
    how = _choose(method, T, count, 1)
    if how == "dense":
        return extract_eigenpurposes(successor_representation(T, gamma), count)
    values, vectors = leading_eigenpairs(sparse.csr_matrix(T), count, gamma, how, progress)
    return _sorted(*_real_eigenpairs(1 / (1 - gamma * values), vectors), count, 1)


def residuals(matrix, purposes: Eigenpurposes, gamma: float | None = None, tolerance: float = 1e-8) -> np.ndarray:
    """How far each vector is from being an eigenvector, (k,): ‖Me − λe‖.

    matrix: (S, S) that the purposes were extracted from; with gamma it is T, and the purposes are those of the SR.
    Where values repeat (within tolerance; so do the two of a complex pair) it is the distance of Me from the space of all
    vectors with that value. A space that `count` cut in two therefore shows a large residual: ask for one vector more.
    """
    matrix = require_square(matrix, "The representation")
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
    vectors = _require_directions(vectors)
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
    (first, _), (second, _) = np.linalg.qr(vectors), np.linalg.qr(others)
    return np.minimum(np.linalg.svd(first.T @ second, compute_uv=False), 1.0)


def _require_directions(vectors) -> np.ndarray:
    """(S, k) floats, or a sentence: a vector of zeros points nowhere, so no angle to it exists."""
    vectors = require_floats(vectors, "The vectors")
    if vectors.ndim != 2:
        raise ValueError(f"Vectors stand as columns of an (S, k) array, got shape {vectors.shape}.")
    nowhere = ~np.isfinite(vectors).all(axis=0) | ~vectors.any(axis=0)
    if nowhere.any():
        raise ValueError(
            f"Vector {np.argmax(nowhere)} is zero or holds entries that are not finite, so it has no direction."
        )
    return vectors


def _require_count(count: int | None, n: int) -> int:
    count = n if count is None else require_positive(count, "count")
    if count > n:
        raise ValueError(f"count must lie between 1 and the {n} states, got {count}.")
    return count


def _choose(method: str, matrix, count: int, sign: int) -> str:
    """The solver to use, or a sentence that says why there is none."""
    if method not in ("auto", "dense", "sparse", "lobpcg"):
        raise ValueError(f"method must be 'auto', 'dense', 'sparse' or 'lobpcg', not {method!r}.")
    n = matrix.shape[0]
    few = 3 * (count + SPARE) < n  # else there is no rest to leave out
    if method == "dense" or not few or (method == "auto" and (n <= _DENSE or not sparse.issparse(matrix))):
        return "dense"
    if has_a_known_end(sign * sparse.csr_matrix(matrix)):
        return "sparse" if method == "auto" else method
    if method == "auto" and n <= 10_000:
        return "dense"
    raise ValueError(
        "Sparse solvers take T with first='largest' or a Laplacian with first='smallest', whose entries off the diagonal "
        "all have one sign; this matrix is neither. For the SR give T to sr_eigenpurposes; else use method='dense'."
    )


def _dense_eigenpairs(matrix) -> tuple[np.ndarray, np.ndarray]:
    dense = matrix.toarray() if sparse.issparse(matrix) else matrix
    if np.allclose(dense, dense.T, rtol=0, atol=1e-12 * np.abs(dense).max()):
        return np.linalg.eigh((dense + dense.T) / 2)
    return np.linalg.eig(dense)


def _sorted(values: np.ndarray, vectors: np.ndarray, count: int, sign: int) -> Eigenpurposes:
    order = np.argsort(-sign * values, kind="stable")[:count]
    return Eigenpurposes(values[order], fix_signs(vectors[:, order]))


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
