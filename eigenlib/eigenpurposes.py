"""From a representation to directions worth following (ExtractEigenpurposes, Alg. 1; notebooks 02 and 04).

An eigenvector e of Ψ or L becomes a reward e[s′] − e[s] (Eq. 1). Three things need care, and all live here: which end of
the spectrum comes first (the smooth one: large in Ψ, small in L), the sign of a vector (arbitrary, so we fix it), and
repeated eigenvalues. Of their space any basis is as good as any other, and which one LAPACK returns depends on the CPU. So we
choose one that depends on the space alone (`canonical_basis`), and compare spaces, never single vectors.

A world of a million states has a Ψ of eight terabytes, but nobody needs it: T e = μe means Ψ e = e / (1 − γμ), so the
eigenvectors of the sparse T are those of Ψ (notebook 02), and `sr_eigenpurposes` finds only the few that are wanted.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from eigenlib import _require
from eigenlib._require import require_floats, require_generator
from eigenlib.large.spectrum import SPARE, has_a_known_end, leading_eigenpairs
from eigenlib.representation import (
    require_discount,
    require_positive,
    require_square,
    require_stochastic,
    successor_representation,
)

Method = Literal["auto", "dense", "sparse"]
_DENSE = 500  # states up to which LAPACK is as fast as sparse solvers
_TIE = 1e-6  # sizes that differ by a smaller share are equal: on a symmetric map rounding must not choose
# Eigenvalues are the same if they differ by no more than rounding, or by 1e-8 of the distance from the first one: vectors of
# values that lie nearer together than that are lost in rounding, and in a world of a million states all distances are small.
_ROUNDING, _SAME = 1e-12, 1e-8
_ROUND = 1e-3  # an ellipse whose squared axes differ by a smaller share is a circle
_TORN = 1e-4  # how far rounding tears a value apart that a matrix has several times but not enough vectors for


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
    A symmetric matrix gives orthonormal vectors. Of an unsymmetric one a complex pair may come; it is replaced by two
    vectors of the plane that its real and imaginary part span, both with the real part as value.

    The same vectors on every machine: of a repeated eigenvalue the canonical basis, of a complex pair the axes of the ellipse
    that it runs through. A matrix that cannot be diagonalised has fewer vectors than eigenvalues: some come several times.

    method: "dense" is LAPACK; "sparse" does not make the matrix dense, unless about a third of all vectors is wanted, and takes
    T (largest) or L (smallest), not Ψ: see `sr_eigenpurposes`; "auto" is "sparse" where a sparse matrix is large and few
    vectors are asked for.  progress: show what it is doing.
    """
    matrix = require_square(matrix, "The representation")
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
            return _canonical(*np.linalg.eigh((dense + dense.T) / 2), count, sign)
        return _canonical(*np.linalg.eig(dense), count, sign, dense)
    values, vectors = leading_eigenpairs(sign * sparse.csr_matrix(matrix), count, 0.0, progress)
    return _canonical(sign * values, vectors, count, sign)


def sr_eigenpurposes(
    T, gamma: float, count: int | None = None, method: Method = "auto", progress: bool = False
) -> Eigenpurposes:
    """The leading eigenvectors of Ψ = (I − γT)⁻¹, and its eigenvalues, without Ψ (§3.2; notebook 07).

    T: (S, S) row-stochastic, dense or sparse.  Returns what extract_eigenpurposes(Ψ, count) does, from T's eigenvectors: in
    some 20 s and 1 GB for ten of a million states.  method, progress: as there.
    """
    T = require_stochastic(T)
    require_discount(gamma)
    count, progress = _require_count(count, T.shape[0]), _require.flag(progress, "progress")
    how = _choose(method, T, count, 1)
    if how == "dense":
        return extract_eigenpurposes(successor_representation(T, gamma), count)
    values, vectors = leading_eigenpairs(sparse.csr_matrix(T), count, gamma, progress)
    return _canonical(1 / (1 - gamma * values), vectors, count, 1)


def residuals(matrix, purposes: Eigenpurposes, gamma: float | None = None, tolerance: float = 1e-8) -> np.ndarray:
    """How far each vector is from being an eigenvector, (k,): ‖Me − λe‖.

    matrix: (S, S) that the purposes were extracted from; with gamma it is T, and the purposes are those of the SR.
    Where values repeat (within tolerance; so do the two of a complex pair) it is the distance of Me from the space of all
    vectors with that value. A space that `count` cut in two therefore shows a large residual: ask for one vector more.
    """
    matrix = require_square(matrix, "The representation")
    purposes = _require_purposes(purposes, "purposes", matrix.shape[0])
    gamma = None if gamma is None else require_discount(gamma)
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


def canonical_basis(basis: np.ndarray) -> np.ndarray:
    """The orthonormal basis of a space that depends on the space alone: (S, m) orthonormal columns → (S, m).

    A state's unit vector, projected on the space, is the direction in which the space stands out most there. Take the state
    where that projection is longest (of equal ones the first), make it the first vector, and go on with the rest of the space.
    """
    basis = _require.numbers(basis, "basis", ("S", "m"))
    chosen, rest = np.empty_like(basis), basis
    for k in range(basis.shape[1]):
        length = np.einsum("sm,sm->s", rest, rest)
        state = np.argmax(length >= (1 - _TIE) * length.max())
        coordinates = rest[state] / np.sqrt(length[state])
        chosen[:, k] = rest @ coordinates
        rest = rest - np.outer(chosen[:, k], coordinates)
    return chosen


def rotated(purposes: Eigenpurposes, rng: int | np.random.Generator, tolerance: float = 1e-8) -> Eigenpurposes:
    """The same eigenspaces, in each that a value shares a basis drawn at random: as right as the canonical one (notebook 05).

    What differs from one such draw to the next is owed to the choice of a basis, not to the world.
    """
    purposes = _require_purposes(purposes, "purposes")
    rng, vectors = require_generator(rng), purposes.vectors.copy()
    for group in eigenspaces(purposes.values, tolerance):
        if len(group) > 1:
            vectors[:, group] = vectors[:, group] @ np.linalg.qr(rng.normal(size=(len(group), len(group))))[0]
    return Eigenpurposes(purposes.values, fix_signs(vectors))


def fix_signs(vectors: np.ndarray) -> np.ndarray:
    """(S, k) with each column's first entry of (nearly) largest size made positive.

    "Nearly": on a symmetric map the two ends of a vector tie up to rounding, and rounding must not choose.
    """
    vectors = _require.numbers(vectors, "vectors", ("S", "k"))
    size = np.abs(vectors)
    leading = np.argmax(size >= (1 - _TIE) * size.max(axis=0), axis=0)
    signs = np.sign(vectors[leading, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1, signs)


def match_signs(vectors: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """(S, k) columns flipped where they point away from the reference's: only for drawing side by side."""
    vectors = _require.numbers(vectors, "vectors", ("S", "k"))
    reference = _require.numbers(reference, "reference", vectors.shape)
    return vectors * np.where((vectors * reference).sum(axis=0) < 0, -1, 1)


def eigenspaces(values: np.ndarray, tolerance: float = 1e-8) -> list[np.ndarray]:
    """Indices of sorted eigenvalues grouped where neighbours differ by at most `tolerance`."""
    values, tolerance = _require.numbers(values, "values", ("k",)), _require.real(tolerance, "tolerance", 0)
    breaks = np.flatnonzero(np.abs(np.diff(values)) > tolerance) + 1
    return np.split(np.arange(len(values)), breaks)


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
    (first, _), (second, _) = np.linalg.qr(vectors), np.linalg.qr(others)
    return np.minimum(np.linalg.svd(first.T @ second, compute_uv=False), 1.0)


def _require_purposes(purposes: Eigenpurposes, name: str, n_states: int | str = "S") -> Eigenpurposes:
    """What an extract_… function has returned."""
    _require.instance(purposes, name, Eigenpurposes, "give what extract_eigenpurposes returned, whole")
    vectors = _require.numbers(purposes.vectors, f"{name}.vectors", (n_states, "k"))
    return Eigenpurposes(_require.numbers(purposes.values, f"{name}.values", (vectors.shape[1],)), vectors)


def _require_directions(vectors) -> np.ndarray:
    """(S, k) floats, or a sentence: a vector of zeros points nowhere, so no angle to it exists."""
    vectors = require_floats(vectors, "The vectors")
    if vectors.ndim != 2 or not vectors.size:
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


def _canonical(values, vectors, count: int, sign: int, matrix: np.ndarray | None = None) -> Eigenpurposes:
    """The first `count` eigenpairs of those given, real, in order, one basis for each eigenspace, signs fixed.

    values: (k,), vectors: (S, k), real or complex, whole eigenspaces.  matrix: (S, S), given where it may lack vectors.
    """
    upper = values.imag >= 0  # of a complex pair one is enough
    values, vectors = values[upper], vectors[:, upper]
    far = np.abs(values - values[np.argmax(sign * values.real)])
    rounding = _ROUNDING * np.abs(values).max()
    spaces = []
    for group in _alike(values, rounding + (_SAME if matrix is None else _TORN) * far, sign):
        whole = None if matrix is None else _lacking(matrix, values[group], vectors[:, group])
        if whole is not None:
            spaces.append(whole)
            continue
        slack = rounding + _SAME * far[group]
        for same in _alike(values[group], slack, sign):
            spaces.append(_space(values[group[same]], vectors[:, group[same]], slack[same].max()))
    means = np.array([value for value, _ in spaces])
    order = np.concatenate(_alike(means, np.full(len(means), rounding), sign))
    sorted_values = np.repeat(means.real[order], [spaces[k][1].shape[1] for k in order])
    sorted_vectors = np.concatenate([spaces[k][1] for k in order], axis=1)
    return Eigenpurposes(sorted_values[:count], fix_signs(sorted_vectors[:, :count]))


def _alike(values: np.ndarray, slack: np.ndarray, sign: int) -> list[np.ndarray]:
    """Indices of values that are equal up to slack, the leading real part first, then the smaller |imaginary part|."""
    order, groups = np.argsort(-sign * values.real, kind="stable"), []
    for group in np.split(order, np.flatnonzero(np.abs(np.diff(values.real[order])) > slack[order[1:]]) + 1):
        group = group[np.argsort(np.abs(values.imag[group]), kind="stable")]
        groups += np.split(group, np.flatnonzero(np.diff(np.abs(values.imag[group])) > slack[group[1:]]) + 1)
    return groups


def _space(values: np.ndarray, vectors: np.ndarray, slack: float) -> tuple[complex, np.ndarray]:
    """An eigenvalue and the basis, (S, m), of what its vectors span, of complex ones real and imaginary parts.

    A complex pair v, v̄ comes with the phase that makes vᵀv real and positive, which turns real and imaginary part into the
    axes of the ellipse that v runs through, the long one first. All else gets the canonical basis: repeated values; circles,
    which have no axes; and double real eigenvalues, which rounding may return as a pair λ ± 1e-15 i.
    """
    parts = _real_parts(values, vectors)
    if len(values) == 1 and values[0].imag > slack:
        v = vectors[:, 0] / np.linalg.norm(vectors)
        if abs(v @ v) > _ROUND:
            v = v * np.exp(-0.5j * np.angle(v @ v))
            parts = np.stack([v.real, v.imag], axis=1)
            return values[0], parts / np.linalg.norm(parts, axis=0)
    if parts.shape[1] == 1:
        return values[0], parts / np.linalg.norm(parts)
    return values.mean(), canonical_basis(np.linalg.svd(parts, full_matrices=False)[0])


def _real_parts(values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.concatenate([vectors.real, vectors.imag[:, values.imag > 0]], axis=1)


def _lacking(matrix: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> tuple[complex, np.ndarray] | None:
    """An eigenvalue that comes m times with fewer vectors, and these, (S, m), several times; None where none is lacking.

    Rounding tears such a value apart, and the vectors of its parts come out nearly dependent. But the mean of the parts is
    right, and so is the null space of M − λI at the mean.
    """
    parts = _real_parts(values, vectors)
    if parts.shape[1] == 1 or np.linalg.svd(parts, compute_uv=False)[-1] > 1e-3:
        return None
    if values.imag.min() <= _TORN:  # a real value torn apart, not a complex pair: its other half counts too
        values = np.concatenate([values, values[values.imag > 0].conj()]).real
    mean = values.mean()
    _, sizes, rows = np.linalg.svd(matrix - mean * np.eye(len(matrix)))
    null = rows[sizes <= 1e-9 * sizes[0]].conj().T
    both = np.concatenate([null.real, null.imag], axis=1) if np.iscomplexobj(null) else null
    if not 0 < both.shape[1] < parts.shape[1]:
        return None
    _, basis = _space(np.zeros(both.shape[1]), both, 0.0)
    return mean, basis[:, np.arange(parts.shape[1]) % basis.shape[1]]
