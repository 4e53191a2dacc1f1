"""Representations of how a random walk spreads (LearnRepresentation, Alg. 2 of the paper; notebooks 01–03).

Two matrices describe the same diffusion. The normalised Laplacian looks at the graph, L = D^-½ (D − W) D^-½; the
successor representation looks along trajectories, Ψ = Σ γᵗTᵗ = (I − γT)⁻¹. Where T = D⁻¹W they share eigenvectors up to
D^½, and an eigenvalue λ of L belongs to the eigenvalue 1 / (1 − γ(1 − λ)) of Ψ: a smooth direction is small in L and
large in Ψ.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy import sparse

from eigenlib import _moved, _require
from eigenlib._require import Matrix
from eigenlib.worlds import World, require_world

__getattr__ = _moved.names_of(__name__)


def laplacian(W: Matrix) -> Matrix:
    """Normalised Laplacian D^-½ (D − W) D^-½ (§2.2; notebook 02).

    W: (S, S) non-negative weights, dense or sparse, self-loops allowed.  Returns (S, S), sparse if W is.
    """
    W = _require.square(W, "W")
    if (smallest := _require.smallest(W)) < 0:
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


def successor_representation(T: Matrix, gamma: float) -> np.ndarray:
    """Expected discounted visits Ψ[s, s′] under the chain T, exact (§2.3; notebook 01).

    T: (S, S) row-stochastic, dense or sparse.  γ in [0, 1).  Returns (S, S).
    """
    T, gamma = _require.stochastic(T), _require.discount(gamma)
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
    episodes, steps = _require.whole(episodes, "episodes", 1), _require.whole(steps, "steps", 1)
    rates = (
        _require.rate(step_size, "step_size (η)"),
        _require.real(decay, "decay", finite=False),
        _require.discount(gamma),
    )
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"decay must lie in [0, 1], got {decay!r}: 0 keeps the step size constant, 1 makes it 1/n.")
    first = _start_state(world, start)
    marks = [episodes] if snapshots is None else _require_snapshots(snapshots, episodes)
    streams = [_stream(seed) for seed in _require_seeds(rng, seeds)]

    from eigenlib._compiled import in_threads, representation  # here, not above: they import numba

    # Where the uniform walk chooses among equally likely moves, as on every map of ours, no outcome need be drawn.
    ways, upto = world.sampler if world.uniform_moves is None else (world.uniform_moves[None], world.sampler.upto[:0])
    ways, upto = np.ascontiguousarray(ways), np.ascontiguousarray(upto)
    _require.room("These matrices", len(streams), len(marks), world.n_states, world.n_states)
    learned = np.empty((len(streams), len(marks), world.n_states, world.n_states))

    def run(k: int) -> None:
        psi, visits, stream = np.zeros(learned.shape[2:]), np.zeros(world.n_states, dtype=np.int64), streams[k]
        for i, (done, mark) in enumerate(pairwise([0, *marks])):
            left = representation.td_episodes(psi, visits, ways, upto, first, mark - done, steps, *rates, stream)
            # numba hands integers back as Python's own: without np.uint64 the next call would compile for a signed one.
            stream = np.uint64(left)
            learned[k, i] = psi

    in_threads(run, range(len(streams)))
    learned = learned if snapshots is not None else learned[:, 0]
    return learned if seeds is not None else learned[0]


def _start_state(world: World, start: int | str | None) -> int:
    """The state in which every episode starts, −1 for a new random one each time."""
    if start is None or (isinstance(start, str) and start in ("random", "fixed")):
        return 0 if start == "fixed" else -1
    if isinstance(start, str):
        raise ValueError(f"start must be 'random', 'fixed' (state 0) or a state's number, got {start!r}.")
    return _require.state(start, "start", world.n_states)


def _require_snapshots(snapshots: Sequence[int], episodes: int) -> list[int]:
    several = snapshots if np.iterable(snapshots) else [snapshots]
    marks = [_require.whole(mark, "Each snapshot", 1) for mark in several]
    if not marks or marks[-1] > episodes or any(b <= a for a, b in pairwise(marks)):
        raise ValueError(
            f"snapshots must be increasing episode counts between 1 and episodes = {episodes}, got {marks}: sort them, "
            "drop repeats, or learn for longer."
        )
    return marks


def _require_seeds(rng: int | np.random.Generator | None, seeds: Sequence[int] | None) -> list[int]:
    """One seed for each run."""
    if seeds is None:
        return [_require.seed_from(rng)]
    several = list(seeds) if np.iterable(seeds) and not isinstance(seeds, str | bytes) else []
    found = [_require.seed(seed, "seeds") for seed in several]
    if rng is not None or not found:
        raise ValueError("Give either rng, for one run, or seeds, at least one integer, one for each run.")
    return found


def _stream(seed: int) -> np.uint64:
    """The 64-bit state a run's random numbers start from."""
    return np.uint64(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
