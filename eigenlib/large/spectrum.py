"""The leading eigenvectors of matrices too large to be dense (used by `extract_eigenpurposes`; notebook 07).

*Which end.* T, and −L, have no negative entry off the diagonal. Of such a matrix M the eigenvalue with the largest real part
is real, and for every vector x > 0 it lies between the smallest and the largest ratio (Mx)[s] / x[s] (Collatz–Wielandt).
For T and x = 1 both are 1; else a few steps of inverse iteration bring them together. So we know where to look.

*Shift and invert.* Smooth vectors of a large world crowd below that end (in a maze of 10⁶ states ten of them differ from
it by less than 10⁻⁶), and no product with M tells them apart quickly. Take σ just above the end. σI − M is an M-matrix:
it factorises without pivoting, in an order that keeps the factors thin, and its inverse has 1 / (σ − μ) for μ, so what was
crowded stands far apart. Lanczos (ARPACK; Arnoldi where M is not symmetric) finds the largest of these in some 50 solves.

*Completeness.* One starting vector shows one vector of a repeated eigenvalue. So what was found is projected out, and the
largest eigenvalue of the rest tells how near to σ the nearest one is that is still missing. We stop when none of those
could come before the last one asked for. Complex eigenvalues may be far from σ and still come early, in the order of
their real parts: for them we use that they lie in the disc of M's spectrum and that |Im μ| ≤ ‖M − Mᵀ‖₁ / 2. To be sure
of that order takes hundreds of vectors, which we afford up to a few thousand states. In larger worlds with one-way doors
we are sure of all eigenvalues up to a distance from σ, and warn if there are complex ones among them.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigs, eigsh
from tqdm import tqdm

from eigenlib._require import Matrix
from eigenlib.large.factors import Solve, factorised

# Vectors beyond those asked for: they make ARPACK converge faster, and repeated eigenvalues rarely incomplete.
SPARE = 6
_APART = 0.01  # as a share of the distance from σ: what is still missing must be farther away than the last by that
_SURE = 5000  # states up to which complex eigenvalues are put in order with certainty
_PASSES, _SWEEPS = 5, 20  # of inverse iteration, where the end of the spectrum is not known


class SpectrumWarning(UserWarning):
    """Eigenvectors that are right, of which one cannot be sure that they are the first."""


def leading_eigenpairs(
    matrix: Matrix, count: int, gamma: float = 0.0, progress: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The leading eigenpairs, values (k,) and vectors (S, k), k ≥ count: all that share the last one's value come with it.

    matrix: (S, S) sparse, no negative entry off the diagonal.  gamma: 0 orders by the real part of μ, else by that of the
    SR's eigenvalue 1 / (1 − γμ).  Of a complex pair the one with Im μ > 0 comes first.
    """
    with tqdm(desc="factorise", unit=" solves", disable=not progress) as bar:
        M, symmetric = sparse.csr_matrix(matrix), is_symmetric(matrix)
        basis = _shift_and_invert(M, symmetric, count, gamma, bar)
    inside = basis.T @ (M @ basis)  # Rayleigh–Ritz: M within the space that was found
    values, vectors = np.linalg.eigh((inside + inside.T) / 2) if symmetric else np.linalg.eig(inside)
    height = rank(values, gamma)
    order = np.argsort(-height, kind="stable")
    last = height[order[count - 1]]
    order = order[height[order] >= last - _APART * (height[order[0]] - last) / 2 - 1e-12 * abs(last)]
    return values[order], basis @ vectors[:, order]


def rank(values: np.ndarray, gamma: float) -> np.ndarray:
    """What eigenvalues of T are sorted by: the real part, their own or that of the SR's eigenvalue."""
    return values.real if gamma == 0 else (1 / (1 - gamma * values)).real


def is_symmetric(M: Matrix) -> bool:
    return bool(abs(M - M.T).max() <= 1e-12 * abs(M).max())


def has_a_known_end(M: Matrix) -> bool:
    """Whether M has no negative entry off the diagonal."""
    return bool(M.data.min(initial=0.0) >= 0 or (M - sparse.diags_array(M.diagonal())).min() >= 0)


def _shift_and_invert(M: Matrix, symmetric: bool, count: int, gamma: float, bar: tqdm) -> np.ndarray:
    """(S, k) orthonormal basis of an invariant space that holds the leading eigenvectors."""
    n, rng = M.shape[0], np.random.default_rng(0)
    sigma = _shift(M, bar)
    solve = _inverse(M, sigma, bar)
    tilt = abs(M - M.T).sum(axis=0).max() / 2  # |Im μ| of every eigenvalue μ is at most this
    disc = M.diagonal().min(), sigma  # a point, and how far to the right the disc around it reaches that holds all
    basis, batch = np.empty((n, 0)), count + SPARE
    while True:
        bar.set_description("Lanczos" if symmetric else "Arnoldi")
        basis = _orthonormal(basis, _arpack(solve, basis, symmetric, batch, rng, tol=0.0)[1])
        bar.set_description("is any missing?")
        # None is nearer to σ than this. Nearer by a little than it seems: a twin of the last one asked for must not be missed.
        missing = (1 - _APART) / np.abs(_arpack(solve, basis, symmetric, 1, rng, tol=1e-3)[0][0])
        found = np.linalg.eigvals(basis.T @ (M @ basis))
        if np.sort(rank(found, gamma))[-count] >= _best_elsewhere(missing, sigma, tilt, disc, gamma):
            return basis
        if n > _SURE and not symmetric and np.sort(np.abs(sigma - found))[count - 1] <= missing:
            break
        batch = basis.shape[1]
        if n <= _SURE and 2 * (basis.shape[1] + batch) > n:
            return np.eye(n)  # no fewer than all will do
    if np.abs(found.imag).max() > 1e-12:
        warnings.warn(
            f"Some of these eigenvalues are complex. All within {missing:.1e} of {sigma:.6g} were found, but another complex "
            f"one, farther away, might still come before the last of the {count} in order of real parts.",
            SpectrumWarning,
            stacklevel=4,
        )
    return basis


def _best_elsewhere(radius: float, sigma: float, tilt: float, disc: tuple[float, float], gamma: float) -> float:
    """The largest rank that an eigenvalue could have which is at least `radius` away from σ."""
    if tilt <= 1e-12:
        return float(rank(np.array(sigma - radius), gamma))
    centre, right = disc
    size = right - centre
    y = np.concatenate([[0.0], np.geomspace(1e-3 * min(radius, tilt), min(tilt, size), 5000)])
    x = np.where(y < radius, sigma - np.sqrt(np.maximum(radius**2 - y**2, 0)), np.inf)
    x = np.minimum(x, centre + np.sqrt(size**2 - y**2))
    if gamma == 0:
        return float(x.max())
    u = np.maximum(1 - gamma * x, gamma * y)  # Re 1/(u − iw) = u / (u² + w²) is largest at u = w, and falls beyond
    return float((u / (u**2 + (gamma * y) ** 2)).max())


def _shift(M: Matrix, bar: tqdm) -> float:
    """A number above the spectrum of M by no more than the spacing of its leading eigenvalues, or nearly."""
    n, x = M.shape[0], np.ones(M.shape[0])
    margin = 1e-3 / n * abs(M).max()
    for _ in range(_PASSES):
        ratios = (M @ x) / x
        sigma = ratios.max() + margin
        if ratios.max() - ratios.min() <= margin:
            break
        solve = _inverse(M, sigma, bar)
        for _ in range(_SWEEPS):
            x = solve(x)
            x /= x.max()
    return float(sigma)


def _inverse(M: Matrix, sigma: float, bar: tqdm) -> Solve:
    """The function b ↦ (σI − M)⁻¹ b."""
    bar.set_description("factorise")
    inverse = factorised(
        sigma * sparse.eye_array(M.shape[0]) - M,
        f"The factors of a matrix of {M.shape[0]} states do not fit into memory: use a smaller world "
        "or one with more walls.",
    )

    def solve(b: np.ndarray) -> np.ndarray:
        bar.update()
        return inverse(b)

    return solve


def _arpack(
    solve: Solve, basis: np.ndarray, symmetric: bool, count: int, rng: np.random.Generator, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenpairs of the inverse where `basis` is projected out."""
    n = basis.shape[0]

    def outside(b: np.ndarray) -> np.ndarray:
        rest: np.ndarray = b - basis @ (basis.T @ b)
        return rest

    operator = LinearOperator((n, n), matvec=lambda b: outside(solve(b)), dtype=float)
    start = outside(rng.standard_normal((n,)))
    try:
        if symmetric:
            values, vectors = eigsh(operator, count, which="LA", v0=start, tol=tol, maxiter=1000)
        else:
            values, vectors = eigs(operator, count, which="LM", v0=start, tol=tol, maxiter=1000)
    except ArpackError as problem:
        raise RuntimeError(
            f"The eigenvectors did not converge ({problem}): ask for a few more or fewer of them, so that no cluster of "
            "eigenvalues is cut, or, up to some thousand states, use method='dense'."
        ) from problem
    return values, vectors


def _orthonormal(basis: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(S, k + j) the basis and the directions that real and imaginary parts of vectors add to it."""
    parts = [vectors.real, vectors.imag] if np.iscomplexobj(vectors) else [vectors]
    new = np.concatenate(parts, axis=1)
    for _ in range(2):
        new -= basis @ (basis.T @ new)
    # Nearly parallel vectors (a defective eigenvalue) are left for the next round, which sees what is orthogonal to them.
    new, R, _ = linalg.qr(new, mode="economic", pivoting=True, overwrite_a=True)
    size = np.abs(R.diagonal())
    return np.concatenate([basis, new[:, size > 1e-6 * size[0]]], axis=1)
