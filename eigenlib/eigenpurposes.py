"""From a representation to directions worth following (ExtractEigenpurposes, Alg. 1; notebooks 02 and 04).

An eigenvector e of Ψ or L becomes a reward e[s′] − e[s] (Eq. 1). Three things need care, and all live here: which end of
the spectrum comes first (the smooth one: large in Ψ, small in L), the sign of a vector (arbitrary, so we fix it), and
repeated eigenvalues. Of their space any basis is as good as any other, and which one LAPACK returns depends on the CPU. So we
choose one that depends on the space alone (`canonical.py`), and compare spaces, never single vectors.

A world of a million states has a Ψ of eight terabytes, but nobody needs it: T e = μe means Ψ e = e / (1 − γμ), so the
eigenvectors of the sparse T are those of Ψ (notebook 02), and `sr_eigenpurposes` finds only the few that are wanted.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from eigenlib import _moved, _require
from eigenlib._require import Matrix
from eigenlib.canonical import canonical
from eigenlib.large.spectrum import SPARE, has_a_known_end, leading_eigenpairs
from eigenlib.representation import successor_representation

__getattr__ = _moved.names_of(__name__)
Method = Literal["auto", "dense", "sparse"]
_DENSE = 500  # states up to which LAPACK is as fast as sparse solvers


class Eigenpurposes(NamedTuple):
    """values: (k,) real, most meaningful first.  vectors: (S, k), unit columns, signs fixed."""

    values: np.ndarray
    vectors: np.ndarray


def extract_eigenpurposes(
    matrix: Matrix,
    count: int | None = None,
    first: Literal["largest", "smallest"] = "largest",
    method: Method = "auto",
    progress: bool = False,
) -> Eigenpurposes:
    """Right eigenvectors of a representation, the smooth ones first (§3.1; notebook 02).

    matrix: (S, S), symmetric or not.  first: "largest" eigenvalues lead for the SR, "smallest" for the Laplacian.
    A symmetric matrix gives orthonormal vectors. Of an unsymmetric one a complex pair may come; it is replaced by two
    vectors of the plane that its real and imaginary part span, both with the real part as value.

    The same vectors on every machine: of a repeated eigenvalue the canonical basis, of a complex pair the axes of the ellipse
    that it runs through. A matrix that cannot be diagonalised has fewer vectors than eigenvalues: some come several times.

    method: "dense" is LAPACK; "sparse" does not make the matrix dense, unless about a third of all vectors is wanted, and takes
    T (largest) or L (smallest), not Ψ: see `sr_eigenpurposes`; "auto" is "sparse" where a sparse matrix is large and few
    vectors are asked for.  progress: show what it is doing.
    """
    matrix = _require.square(matrix, "The representation")
    if not isinstance(first, str) or first not in ("largest", "smallest"):
        raise ValueError(
            f"first must be 'largest' (for the SR) or 'smallest' (for the Laplacian), not {_require.shown(first)}."
        )
    progress = _require.flag(progress, "progress")
    count = _require_count(count, matrix.shape[0])
    sign = 1 if first == "largest" else -1
    how = _choose(method, matrix, count, sign)
    if how == "dense":
        dense = matrix.toarray() if sparse.issparse(matrix) else matrix
        if np.allclose(dense, dense.T, rtol=0, atol=1e-12 * np.abs(dense).max()):
            return Eigenpurposes(*canonical(*np.linalg.eigh((dense + dense.T) / 2), count, sign))
        return Eigenpurposes(*canonical(*np.linalg.eig(dense), count, sign, dense))
    values, vectors = leading_eigenpairs(sign * sparse.csr_matrix(matrix), count, 0.0, progress)
    return Eigenpurposes(*canonical(sign * values, vectors, count, sign))


def sr_eigenpurposes(
    T: Matrix, gamma: float, count: int | None = None, method: Method = "auto", progress: bool = False
) -> Eigenpurposes:
    """The leading eigenvectors of Ψ = (I − γT)⁻¹, and its eigenvalues, without Ψ (§3.2; notebook 07).

    T: (S, S) row-stochastic, dense or sparse.  Returns what extract_eigenpurposes(Ψ, count) does, from T's eigenvectors: in
    some 20 s and 1 GB for ten of a million states.  method, progress: as there.
    """
    T, gamma = _require.stochastic(T), _require.discount(gamma)
    count, progress = _require_count(count, T.shape[0]), _require.flag(progress, "progress")
    how = _choose(method, T, count, 1)
    if how == "dense":
        return extract_eigenpurposes(successor_representation(T, gamma), count)
    values, vectors = leading_eigenpairs(sparse.csr_matrix(T), count, gamma, progress)
    return Eigenpurposes(*canonical(1 / (1 - gamma * values), vectors, count, 1))


def _require_count(count: int | None, n: int) -> int:
    count = n if count is None else _require.whole(count, "count", 1)
    if count > n:
        raise ValueError(f"count must lie between 1 and the {n} states, got {count}.")
    return count


def _choose(method: str, matrix: Matrix, count: int, sign: int) -> str:
    """The solver to use, or a sentence that says why there is none."""
    if not isinstance(method, str) or method not in ("auto", "dense", "sparse"):
        raise ValueError(f"method must be 'auto', 'dense' or 'sparse', not {_require.shown(method)}.")
    n = matrix.shape[0]
    few = 3 * (count + SPARE) < n  # else there is no rest to leave out
    if method == "dense" or not few or (method == "auto" and (n <= _DENSE or not sparse.issparse(matrix))):
        return "dense"
    if has_a_known_end(sign * sparse.csr_matrix(matrix)):
        return "sparse"
    if method == "auto" and n <= 10_000:
        return "dense"
    raise ValueError(
        "Sparse solvers take T with first='largest' or a Laplacian with first='smallest', whose entries off the diagonal "
        "all have one sign; this matrix is neither. For the SR give T to sr_eigenpurposes; else use method='dense'."
    )
