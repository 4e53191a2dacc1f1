"""Checks of lesson 07, Beyond symmetric worlds."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import shortest_path
from scipy.sparse.linalg import eigsh

from eigencourse.exercises import exercise
from eigencourse.exercises.answers import Mistake, array, call, is_blank, pair, scalar
from eigencourse.exercises.compare import close, compare, letters, recognise, worst
from eigencourse.exercises.worlds import maze, worlds
from eigenlib.gridworld import GridWorld
from eigenlib.representation import laplacian, successor_representation


def _differences(pairs: np.ndarray, n_states: int) -> np.ndarray:
    """(rows, S): φ(s′) − φ(s) of pairs (s, s′), with one-hot φ; bumps are left out, as their row is 0."""
    pairs, unit = pairs[pairs[:, 0] != pairs[:, 1]], np.eye(n_states)
    return unit[pairs[:, 1]] - unit[pairs[:, 0]]


def _in_order(rows: np.ndarray) -> np.ndarray:
    """The rows that are not 0, sorted, so that two stacks can be compared whatever their order."""
    rows = rows[np.abs(rows).max(axis=1, initial=0) > 1e-9].round(9)
    return rows[np.lexsort(rows.T)]


@exercise
def unique_transitions(answer):
    """The matrix of unique transitions"""

    def values(path, S):
        steps = np.stack([path[:-1], path[1:]], axis=1)
        seen, (_, first) = np.unique(steps, axis=0), np.unique(np.sort(steps, axis=1), axis=0, return_index=True)
        ring = np.unique(np.stack([path, np.roll(path, -1)], axis=1), axis=0)
        bumps, apart, unit = seen[seen[:, 0] == seen[:, 1], 0], seen[seen[:, 0] != seen[:, 1]], np.eye(S)
        once, wanted = np.sort(steps[first], axis=1), _differences(seen, S)
        wrong = {
            "every time": [_differences(steps, S)],
            "one of the two": [_differences(pairs, S) for pairs in (steps[first], once, once[:, ::-1])],
            "and back": [
                _differences(pairs, S)
                for pairs in (np.concatenate([apart, apart[:, ::-1]]), np.unique(np.r_[seen, seen[:, ::-1]], axis=0))
            ],
            "backwards": [-wanted],
            "not a difference": [
                unit[pairs[:, 0]] + unit[pairs[:, 1]] if both else unit[pairs[:, 1]]
                for pairs in (seen, apart)
                for both in (True, False)
            ],
            "closed": [_differences(ring, S)],
            "bumps": [np.concatenate([wanted, unit[bumps]]), np.concatenate([wanted, -unit[bumps]])],
        }
        return _in_order(wanted), {name: [_in_order(M) for M in stacks] for name, stacks in wrong.items()}

    def reading(result, right):
        given, S = array(result), right.shape[1]
        recognise(given, {"MᵀM": right.T @ right})
        if given.ndim == 2 and given.shape[0] == S != given.shape[1]:
            raise Mistake("on its side")
        if given.ndim != 2 or given.shape[1] != S:
            raise Mistake("shape", shape=given.shape, wanted=f"(rows, {S})")
        return _in_order(given)

    rng, cases = np.random.default_rng(71), []
    for world in worlds(4, seed=71, fewest=8):
        walk = world.random_walks(int(rng.integers(world.n_states)), 1, 3 * world.n_states, rng)[0]
        cases.append((walk, world.n_states))
    compare(
        answer,
        cases,
        values,
        lambda given, right, path, S: {"steps": len(path) - 1, "wanted": len(right), "given": len(given)},
        reading=reading,
    )
    return "each transition once, on four walks: however often a step was taken, it weighs as much as one taken once."


@exercise
def trapdoor(answer):
    """What does a transition of one per cent weigh?"""
    pairs = dict(zip("MT", answer, strict=False)) if isinstance(answer, (list, tuple)) else answer
    if not isinstance(pairs, dict) or set(pairs) != {"M", "T"} or any(map(is_blank, pairs.values())):
        raise Mistake("both")
    in_M, in_T = scalar(pairs["M"]), scalar(pairs["T"])
    T = GridWorld.named("corridor").transition_matrix()
    T[-1] *= 0.99
    T[-1, 0] += 0.01
    M = _differences(np.argwhere(T > 0), len(T))
    gram, middle = M.T @ M, len(T) // 2
    of_M, of_T = gram[-1, 0] / gram[middle, middle + 1], T[-1, 0] / T[middle, middle + 1]
    if abs(in_M - of_M) > 0.01:
        recognise(in_M, {"M knows no odds": [0.01, 0.005, 0.04, 0.02, 0], "M, one row": 1})
        raise Mistake("M")
    if abs(in_T - of_T) > 0.001:
        recognise(in_T, {"T, not a share": 0.01, "T, every action": 0.0025, "T, one way": [0.02, 0.005]})
        raise Mistake("T knows odds")
    return f"{of_M:g} against {of_T:g}: to M the trapdoor is half a door, to the walk it is a crack."


def _circulations(count: int, seed: int):
    """(T, γ): walks that mostly go round a ring, so that patterns travel and turn by every angle."""
    rng = np.random.default_rng((seed, 3))
    for n in (5, 6, 8, 9)[:count]:
        T = 0.8 * np.roll(np.eye(n), 1, axis=1) + 0.2 * rng.dirichlet(np.ones(n), size=n)
        yield T, float(rng.choice([0.7, 0.9, 0.95]))


@exercise
def travel(answer):
    """What an eigenvalue does in one step"""

    def values(lam, gamma):
        mu = (1 - 1 / lam) / gamma
        size, angle = abs(mu), float(np.angle(mu))
        return np.array([size, angle]), {
            "Ψ's": [[abs(lam), np.angle(lam)]],
            "γ lost": [[gamma * size, angle]],
            "parts": [[mu.real, mu.imag]],
            "degrees": [[size, np.degrees(angle)], [size, np.degrees(angle) % 360]],
            "swapped": [[angle, size], [angle % (2 * np.pi), size]],
            "squared": [[size**2, angle]],
            "half plane": [[size, np.arctan(mu.imag / mu.real)]],
            "mirrored": [[size, -angle], [size, -angle % (2 * np.pi)]],
        }

    def means(pair):
        return pair[0] * np.exp(1j * pair[1])

    def reading(result, right):
        if np.ndim(result) == 0 and np.iscomplexobj(result) and abs(result - means(right)) < 1e-6:
            raise Mistake("μ itself")
        return array(result, (2,))

    def numbers(given, right, lam, gamma):
        shown = {"shrink": right[0], "turn": right[1], "given": f"{given[0]:.3g} and {given[1]:.3g}"}
        return {"lam": lam, "gamma": gamma} | shown

    spectra = [(np.linalg.eigvals(successor_representation(T, g)), g) for T, g in _circulations(3, seed=73)]
    cases = [(complex(lam), gamma) for values, gamma in spectra for lam in values if abs(lam.imag) > 1e-6]
    compare(
        answer,
        cases,
        values,
        numbers,
        accept=lambda given, right, *_: given[0] >= 0 and abs(means(given) - means(right)) < 1e-6,
        reading=reading,
    )
    return "one step of three walks did to every complex pattern what you said: shrink it, and turn it."


def _one_way_rooms(count: int, seed: int):
    """Pairs of worlds: four rooms with doors of random direction, and the same with every door turned round."""
    rng, plain = np.random.default_rng((seed, 4)), GridWorld.named("four_rooms")
    for _ in range(count):
        grids = plain.characters.copy(), plain.characters.copy()
        for row, col in plain.cells:
            across, upright = plain.free[row, [col - 1, col + 1]], plain.free[[row - 1, row + 1], col]
            if not across.any() or not upright.any():  # a doorway: walls on two opposite sides
                door = rng.permutation(["<", ">"] if across.any() else ["^", "v"])
                for grid, arrow in zip(grids, door, strict=True):
                    grid[row, col] = arrow
        yield tuple(GridWorld.from_text("\n".join("".join(line) for line in grid)) for grid in grids)


@cache
def _lost() -> dict[str, bool]:
    """Which of the sentences of 07.4 are true, whichever way the doors point."""
    always = dict.fromkeys("abcde", True)
    for world, turned in _one_way_rooms(3, seed=74):
        W, other = world.adjacency(), turned.adjacency()
        V = np.maximum(W, W.T)
        holds = {
            "a": np.abs(np.linalg.eigvals(laplacian(V)).imag).max() < 1e-9,
            "b": bool((V >= W).all()),
            "c": bool((W >= V).all()),
            "d": np.array_equal(V, np.maximum(other, other.T)),
            "e": np.array_equal(shortest_path(V, unweighted=True), shortest_path(W, unweighted=True)),
        }
        always = {letter: always[letter] and holds[letter] for letter in always}
    return always


@exercise
def two_way(answer):
    """What is lost if a one-way graph is made symmetric?"""
    letters(answer, _lost())
    return "real eigenvalues are bought with the doors: V cannot say which way they open, nor how long the way back is."


@exercise
def slow_directions(answer):
    """The slow directions of Ψ without Ψ"""
    first, second = (world.transition_matrix() for world in worlds(2, seed=76, fewest=12))
    # So close to 1 that Ψ is lost in rounding, its first eigenvalue being 10¹⁴ times the others; then one that is large.
    for T, gamma, k in ((first, 0.9, 7), (second, 1 - 1e-14, 6), (_large()[0], 0.95, 3)):
        dense = isinstance(T, np.ndarray)
        mu, E = (part[..., ::-1] for part in np.linalg.eigh(T)) if dense else _large()[1:]  # the largest first
        try:
            values, V = pair(call(answer, T, gamma, k))
        except Mistake as mistake:
            if mistake.name == "raised" and not dense:
                raise Mistake("dense only", error=mistake.numbers["error"]) from None
            raise
        exact, values, V = 1 / (1 - gamma * mu), array(values, (k,)), array(V)
        if V.shape == (k, T.shape[0]):
            raise Mistake("lying down", wanted=(T.shape[0], k))
        V = array(V, (T.shape[0], k))
        fits = np.abs(T @ V - V * mu[:k]).max(axis=0) < 1e-6
        known = slice(1 if gamma > 0.99 else 0, k)  # of the first value rounding leaves little
        if fits.all() and close(V.T @ V, np.eye(k)) and close(values[known], exact[:k][known]):
            continue
        if gamma > 0.99:
            raise Mistake("made Ψ")
        if fits.all():
            if not close(V.T @ V, np.eye(k)):
                raise Mistake("length")
            wrong = {"T's values": mu[:k], "not inverted": 1 - gamma * mu[:k], "torn apart": exact[:k][::-1]}
            recognise(values, wrong)
            recognise(values[1:], {"no discount": 1 / (1 - mu[1:k])})  # the first would be 1/0
            raise Mistake("values", column=int(np.argmax(np.abs(values - exact[:k]))), **worst(values, exact[:k]))
        cosines = np.abs((V / np.maximum(np.linalg.norm(V, axis=0), 1e-12)).T @ E)  # (k, S), whatever the signs
        if close(cosines.max(axis=1), np.ones(k)):
            picked = set(cosines.argmax(axis=1).tolist())  # which of T's eigenvectors these are, the smoothest being 0
            if picked == set(range(k)):
                raise Mistake("torn apart" if close(values, exact[:k]) else "backwards")
            for name, chosen in (
                ("the wrong end", range(len(mu) - k, len(mu))),
                ("by size", np.argsort(-np.abs(mu))[:k].tolist()),
                ("without the first", range(1, k + 1)),
            ):
                if picked == set(chosen):
                    raise Mistake(name)
        raise Mistake("else", column=int(np.argmin(fits)))
    return "Te = μe and λ = 1/(1−γμ), the largest first, on three mazes. With a sparse T this is all that a million tiles need."


@cache
def _large() -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """The T of a large maze, sparse, and its four leading eigenpairs, the largest first."""
    T = sparse.csr_array(maze(np.random.default_rng(75), 30, 30, 0.2).transition_matrix(sparse_result=True))
    mu, E = eigsh(T, 4, which="LA", v0=1 + np.arange(T.shape[0]) / T.shape[0])
    return T, mu[::-1], E[:, ::-1]
