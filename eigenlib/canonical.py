"""Eigenvectors that are the same on every machine (used by `extract_eigenpurposes`; notebook 02).

What a solver returns is right but not unique: the sign of a vector, the basis of the space of a repeated eigenvalue, the
phase of a complex pair. LAPACK's choice depends on the CPU. Here each gets a rule that depends on the space alone.
"""

from __future__ import annotations

import numpy as np

from eigenlib import _require

_TIE = 1e-6  # sizes that differ by a smaller share are equal: on a symmetric map rounding must not choose
# Eigenvalues are the same if they differ by no more than rounding, or by 1e-8 of the distance from the first one: vectors of
# values that lie nearer together than that are lost in rounding, and in a world of a million states all distances are small.
_ROUNDING, _SAME = 1e-12, 1e-8
_ROUND = 1e-3  # an ellipse whose squared axes differ by a smaller share is a circle
_TORN = 1e-4  # how far rounding tears a value apart that a matrix has several times but not enough vectors for


def canonical(
    values: np.ndarray, vectors: np.ndarray, count: int, sign: int, matrix: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
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
    return sorted_values[:count], fix_signs(sorted_vectors[:, :count])


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


def fix_signs(vectors: np.ndarray) -> np.ndarray:
    """(S, k) with each column's first entry of (nearly) largest size made positive.

    "Nearly": on a symmetric map the two ends of a vector tie up to rounding, and rounding must not choose.
    """
    vectors = _require.numbers(vectors, "vectors", ("S", "k"))
    size = np.abs(vectors)
    leading = np.argmax(size >= (1 - _TIE) * size.max(axis=0), axis=0)
    signs = np.sign(vectors[leading, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1, signs)


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
