"""From a direction to a way of behaving (LearnEigenoption, Alg. 1; notebook 04).

An eigenpurpose e pays the agent e[s′] − e[s] for a step s → s′ (Eq. 1). Give it one more action, `terminate`, worth 0,
and the best it can do is

    v(s) = max(0, max_a q(s, a)),    q(s, a) = Σ_s′ p(s′ | s, a) (e[s′] − e[s] + γ v(s′)).

The option follows argmax_a q where v > 0, its initiation set, and terminates where v = 0. Ties go to the first action; on
a map their order is up, right, down, left.

*It always terminates.* Suppose the policy could stay for ever in a closed set of states that all have v > 0, and let d be
its stationary distribution there. On that set v = r + γPv with r = (P − I)e, so dᵀv = dᵀr / (1 − γ) = 0, since dᵀP = dᵀ.
But dᵀv > 0. Slips, one-way doors and ties change nothing in this.

*Solved exactly.* Value iteration from v = 0 finds in its k-th sweep the best plan of at most k steps. Where nothing slips
a plan that terminates never returns to a state, so the sweeps end of themselves, with the exact v, after at most S + 1.
With slips v grows towards its limit and we stop when a sweep changes it by no more than rounding does.

*What counts as zero.* A constant eigenvector comes out of LAPACK as a constant plus noise, and noise must not become an
option. So "v > 0" means v > θ, a billionth of max |e|, and q's tie when they differ by at most (1 − γ) θ/2. With ties that
wide, the sum above reads dᵀv ≤ θ/2 instead of 0, so options still terminate. (Rounding alone adds about 10⁻¹⁶ max |e| to
dᵀv in a sweep: it would take millions of sweeps to reach θ, and there are hundreds.)
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from eigenlib import _require
from eigenlib.eigenpurposes import Eigenpurposes
from eigenlib.options import Option, follow, random_subgoal_options
from eigenlib.worlds import World, require_world

__all__ = ["Option", "discover_eigenoptions", "follow", "learn_eigenoption", "random_subgoal_options"]
_ZERO = 1e-9  # × max |e|: far above the noise of an eigenvector (1e-13), far below any step worth taking
_BATCH = 10_000_000  # values of states, of all the directions solved together
_EPS = float(np.finfo(float).eps)
_LARGE = 50_000  # states from which on compiled sweeps save more time than numba takes to import


def learn_eigenoption(world: World, eigenpurpose: np.ndarray, gamma: float = 0.9) -> Option:
    """The option that climbs an eigenpurpose best (Alg. 1; notebook 04).

    eigenpurpose: (S,) e.  γ in [0, 1).  A constant e gives an option that terminates everywhere and starts nowhere.
    """
    require_world(world)
    try:
        purpose = np.asarray(eigenpurpose)
    except ValueError:  # rows of several lengths
        purpose = np.asarray(None)
    if purpose.dtype.kind not in "biufc":
        raise ValueError(f"An eigenpurpose holds numbers, got {_require.shown(eigenpurpose)}.")
    if purpose.shape != (world.n_states,):
        raise ValueError(
            f"An eigenpurpose has one number for each of the {world.n_states} states, got shape {purpose.shape}: pass one "
            "column of purposes.vectors, or the whole to discover_eigenoptions."
        )
    return _solve(world, purpose[:, None], gamma)[0]


def discover_eigenoptions(
    world: World, purposes: Eigenpurposes, count: int | None = None, both_signs: bool = True, gamma: float = 0.9
) -> list[Option]:
    """The first `count` options of the eigenvectors in their order, each as e and then −e (Alg. 1; notebook 04).

    count: None for all there are.  Directions that yield no option are passed over: the constant eigenvector of the exact
    SR is one, the λ = 0 eigenvector of a Laplacian without self-loops is not. So is a vector that has come before: a matrix
    that cannot be diagonalised has the same one several times. `option.origin` tells which were used.
    """
    require_world(world)
    if not isinstance(purposes, Eigenpurposes):
        raise ValueError(
            f"purposes must be what extract_eigenpurposes returned, got {_require.shown(purposes)}; for one vector "
            "use learn_eigenoption."
        )
    both_signs = _require.flag(both_signs, "both_signs")
    vectors = np.asarray(purposes.vectors)
    if not np.iscomplexobj(vectors):
        vectors = _require.numbers(vectors, "purposes.vectors")
    if vectors.ndim != 2 or vectors.shape[0] != world.n_states:
        raise ValueError(
            f"These eigenvectors do not belong to this world: expected ({world.n_states}, k), got shape {vectors.shape}."
        )
    count = None if count is None else _require.whole(count, "count", 1)
    new = np.flatnonzero(~_repeated(vectors))
    origins = [(int(column), sign) for column in new for sign in ((1, -1) if both_signs else (1,))]
    options: list[Option] = []
    tried = 0
    while tried < len(origins) and (count is None or len(options) < count):  # no more directions than needed
        wanted = len(origins) if count is None else count - len(options)
        batch = origins[tried : tried + min(wanted, max(2, _BATCH // world.n_states))]
        columns, signs = np.array(batch).T
        found = _solve(world, vectors[:, columns] * signs, gamma, batch)
        options += [option for option in found if option.initiation.any()]
        tried += len(batch)
    if count is not None and len(options) < count:
        raise ValueError(
            f"{count} options were asked for, but the {vectors.shape[1]} eigenvectors given yield only {len(options)}: "
            + ("extract more eigenvectors or " if vectors.shape[1] < world.n_states else "")
            + ("ask for fewer." if both_signs else "use both signs, or ask for fewer.")
        )
    return options


def _repeated(vectors: np.ndarray) -> np.ndarray:
    """(k,) bool: whether a column of (S, k) points along one that has come before, up to its sign."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=0), np.finfo(float).tiny)
    repeated: np.ndarray = (np.abs(np.triu(unit.conj().T @ unit, 1)) > 1 - 1e-9).any(axis=0)
    return repeated


def _solve(
    world: World, purposes: np.ndarray, gamma: float, origins: list[tuple[int, int]] | None = None
) -> list[Option]:
    """One option for each column of purposes, (S, k), all solved together."""
    gamma = _require.discount(gamma)
    if not np.isrealobj(purposes):
        raise ValueError("An eigenpurpose must be real: take the real and the imaginary part as two directions.")
    purposes = purposes.astype(float)
    if not np.isfinite(purposes).all():
        raise ValueError("The eigenpurpose holds entries that are not finite numbers (NaN or ∞).")
    size = np.abs(purposes).max(axis=0)
    # Not less than the smallest normal number: below it even one half of a number may be rounded to the number itself.
    zero = np.maximum(_ZERO * size, np.finfo(float).tiny)
    q = _action_values(world, purposes, gamma, 2 * _EPS * size)
    best = q.max(axis=0)
    initiation = best > zero
    policy = np.argmax(q >= best - (1 - gamma) * zero / 2, axis=0)
    policy[~initiation] = -1
    value = np.where(initiation, best, 0.0)
    return [
        Option(
            policy=policy[:, k].copy(),
            initiation=initiation[:, k].copy(),
            termination=~initiation[:, k],
            value=value[:, k].copy(),
            eigenpurpose=purposes[:, k].copy(),
            origin=None if origins is None else origins[k],
        )
        for k in range(purposes.shape[1])
    ]


def _action_values(world: World, purposes: np.ndarray, gamma: float, rounding: np.ndarray) -> np.ndarray:
    """(A, S, k) optimal q of k eigenpurposes, (S, k), by value iteration from zero (see the module's docstring)."""
    n_states, n_actions = world.n_states, world.n_actions
    if n_states > _LARGE:
        from eigenlib._compiled.eigenoptions import action_values  # here, not above: it imports numba

        return action_values(world, purposes, gamma, rounding)
    rows = np.arange(n_actions * n_states)
    ahead = sparse.csr_matrix((rows.size, n_states))  # row a·S + s: where action a leads from s
    for probability, states in world.dynamics:
        entries = (np.broadcast_to(probability, states.shape).T.ravel(), (rows, states.T.ravel()))
        ahead += sparse.csr_matrix(entries, shape=ahead.shape)
    shape = (n_actions, n_states, purposes.shape[1])
    reward = (ahead @ purposes).reshape(shape) - purposes
    value = np.zeros_like(purposes)
    while True:
        q: np.ndarray = reward + gamma * (ahead @ value).reshape(shape)
        better = np.maximum(q.max(axis=0), 0.0)
        if not (better - value > rounding).any():  # never negative: from zero the sweeps only raise v
            return q
        value = better
