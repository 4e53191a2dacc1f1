"""Representations of how a random walk spreads (LearnRepresentation, Alg. 2 of the paper; notebooks 01–03).

Two matrices describe the same diffusion. The normalised Laplacian looks at the graph, L = D^-½ (D − W) D^-½; the
successor representation looks along trajectories, Ψ = Σ γᵗTᵗ = (I − γT)⁻¹. Where T = D⁻¹W they share eigenvectors up to
D^½, and an eigenvalue λ of L belongs to the eigenvalue 1 / (1 − γ(1 − λ)) of Ψ: a smooth direction is small in L and
large in Ψ.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy import sparse

from eigenlib import _require
from eigenlib._require import (
    require_discount,
    require_number,
    require_positive,
    require_rate,
    require_room,
    require_seed,
    require_square,
    require_state,
    require_stochastic,
)
from eigenlib.worlds import World, require_world


def laplacian(W):
    """Normalised Laplacian D^-½ (D − W) D^-½ (§2.2; notebook 02).

    W: (S, S) non-negative weights, dense or sparse, self-loops allowed.  Returns (S, S), sparse if W is.
    """
    W = require_square(W, "W")
    smallest = W.data.min(initial=0.0) if sparse.issparse(W) else W.min()
    if smallest < 0:
        raise ValueError(f"W holds weights of edges, which cannot be negative; its smallest entry is {smallest:g}.")
    degree = np.asarray(W.sum(axis=1)).ravel()
    isolated = np.flatnonzero(degree == 0)
    if isolated.size:
        raise ValueError(
            f"State {isolated[0]} has no edge at all (degree 0; {isolated.size} such in all), so D^-½ does not exist: "
            "connect it, leave it out, or count self-loops."
        )
    scale = sparse.diags_array(degree**-0.5)
    if sparse.issparse(W):
        return sparse.csr_matrix(sparse.eye_array(W.shape[0]) - scale @ W @ scale)
    return np.eye(len(W)) - scale @ W @ scale


def successor_representation(T, gamma: float) -> np.ndarray:
    """Expected discounted visits Ψ[s, s′] under the chain T, exact (§2.3; notebook 01).

    T: (S, S) row-stochastic, dense or sparse.  γ in [0, 1).  Returns (S, S).
    """
    T = require_stochastic(T)
    require_discount(gamma)
    dense = T.toarray() if sparse.issparse(T) else T
    return np.linalg.solve(np.eye(len(dense)) - gamma * dense, np.eye(len(dense)))


def learn_successor_representation(
    world: World,
    episodes: int,
    steps: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    start: int | Literal["random", "fixed"] | None = None,
    rng: int | np.random.Generator | None = None,
    *,
    seeds: Sequence[int] | None = None,
    snapshots: Sequence[int] | None = None,
    decay: float = 0.0,
) -> np.ndarray:
    """Ψ̂ of the uniform random policy, learned from samples by TD (Alg. 2, Eq. 2; notebook 03).

        Ψ̂[s, j] ← Ψ̂[s, j] + η (1{s = j} + γ Ψ̂[s′, j] − Ψ̂[s, j])   for all j, after every step s → s′

    Ψ̂ starts at zero, so the row of a state that was never left stays zero. The defaults are the paper's (§4.1).

    start: where episodes begin. "random": anywhere, drawn anew; "fixed": state 0, on a map the top left free cell; or a state.
        The paper does not say; None is "random", our choice. It matters: a fixed start leaves far rooms unvisited long.
    rng: an integer seed, or a Generator to draw one from; None is seed 0.
    seeds: many runs at once, on all cores; run k is the single run with rng=seeds[k], however many threads there are.
    snapshots: increasing episode counts; learning stops at the last one.
    decay: η = step_size / n(s)^decay at the n-th update of row s. Ψ̂ converges for decay in (½, 1]; the paper has 0.
    Returns (S, S); with snapshots (K, S, S); with seeds a leading axis of runs before that.
    """
    require_world(world)
    episodes, steps = require_positive(episodes, "episodes"), require_positive(steps, "steps")
    rates = require_rate(step_size, "step_size (η)"), require_number(decay, "decay"), require_number(gamma, "γ")
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"decay must lie in [0, 1], got {decay!r}: 0 keeps the step size constant, 1 makes it 1/n.")
    require_discount(gamma)
    first = _start_state(world, start)
    marks = [episodes] if snapshots is None else _require_snapshots(snapshots, episodes)
    several = (
        None if seeds is None else list(seeds) if np.iterable(seeds) and not isinstance(seeds, str | bytes) else []
    )
    streams = [_stream(rng)] if several is None else [_stream(_require.seed(seed, "seeds")) for seed in several]
    if several is not None and (rng is not None or not streams):
        raise ValueError("Give either rng, for one run, or seeds, at least one integer, one for each run.")

    from eigenlib import _kernels  # here, not above: it imports numba

    # Where the uniform walk chooses among equally likely moves, as on every map of ours, no outcome need be drawn.
    ways, upto = world.sampler if world.uniform_moves is None else (world.uniform_moves[None], world.sampler.upto[:0])
    ways, upto = np.ascontiguousarray(ways), np.ascontiguousarray(upto)
    require_room("These matrices", len(streams), len(marks), world.n_states, world.n_states)
    learned = np.empty((len(streams), len(marks), world.n_states, world.n_states))

    def run(k: int) -> None:
        psi, visits, stream = np.zeros(learned.shape[2:]), np.zeros(world.n_states, dtype=np.int64), streams[k]
        for i, (done, mark) in enumerate(pairwise([0, *marks])):
            # numba hands integers back as Python's own: without np.uint64 the next call would compile for a signed one.
            stream = np.uint64(_kernels.td_episodes(psi, visits, ways, upto, first, mark - done, steps, *rates, stream))
            learned[k, i] = psi

    # Threads around a kernel that releases the GIL, not prange: once a process has used prange (OpenMP), a forked child
    # that uses it again is killed, and multiprocessing forks by default on Linux.
    with ThreadPoolExecutor(min(len(streams), _kernels.THREADS)) as threads:
        list(threads.map(run, range(len(streams))))
    learned = learned if snapshots is not None else learned[:, 0]
    return learned if seeds is not None else learned[0]


def relative_error(estimate: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """‖Ψ̂ − Ψ‖ / ‖Ψ‖ (Frobenius) of every matrix in a stack: (..., S, S) and (S, S) → (...)."""
    estimate, exact = _require.numbers(estimate, "The estimate"), require_square(exact, "The exact Ψ")
    if estimate.shape[-2:] != exact.shape:
        raise ValueError(
            f"Estimates of shape {estimate.shape} cannot be compared with an exact Ψ of shape {exact.shape}."
        )
    difference = estimate - exact
    return np.sqrt(np.einsum("...ij,...ij->...", difference, difference)) / np.linalg.norm(exact)


def _start_state(world: World, start) -> int:
    """The state in which every episode starts, −1 for a new random one each time."""
    if start is None or (isinstance(start, str) and start in ("random", "fixed")):
        return 0 if start == "fixed" else -1
    if isinstance(start, str):
        raise ValueError(f"start must be 'random', 'fixed' (state 0) or a state's number, got {start!r}.")
    return require_state(world.n_states, start, "start")


def _require_snapshots(snapshots, episodes: int) -> list[int]:
    several = snapshots if np.iterable(snapshots) else [snapshots]
    marks = [require_positive(mark, "Each snapshot") for mark in several]
    if not marks or marks[-1] > episodes or any(b <= a for a, b in pairwise(marks)):
        raise ValueError(
            f"snapshots must be increasing episode counts between 1 and episodes = {episodes}, got {marks}: sort them, "
            "drop repeats, or learn for longer."
        )
    return marks


def _stream(rng) -> np.uint64:
    """The 64-bit state a run's random numbers start from."""
    return np.random.SeedSequence(require_seed(rng)).generate_state(1, np.uint64)[0]
