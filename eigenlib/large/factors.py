"""The one way in which this library factorises a sparse matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from eigenlib._require import Matrix

Solve = Callable[[np.ndarray], np.ndarray]


def factorised(matrix: Matrix, too_large: str) -> Solve:
    """The function b ↦ M⁻¹ b of an M-matrix: no entry off the diagonal is positive, and M⁻¹ has no negative one.

    Such a matrix needs no pivoting, so rows and columns are eliminated in an order that keeps the factors thin.
    too_large: what to say where they do not fit into memory.
    """
    try:
        factors = splu(
            sparse.csc_matrix(matrix),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except (MemoryError, SystemError) as problem:  # SystemError is how SuperLU says that memory ran out
        raise MemoryError(too_large) from problem
    solve: Solve = factors.solve
    return solve
