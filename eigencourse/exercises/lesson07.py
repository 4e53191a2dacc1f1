"""Checks of lesson 07, Beyond symmetric worlds."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import shortest_path

from eigencourse.exercises import Mistake, array, call, close, exercise, recognise, scalar, worlds
from eigencourse.exercises.answers import is_blank
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


@exercise(
    "07.1",
    difficulty=2,
    minutes=10,
    mistakes={
        "every time": "you wrote a row for every step. A transition gets its row the first time it is seen, and none later.",
        "one of the two": "s → s′ and s′ → s are two transitions: where the walk made both, both have a row.",
        "and back": "you added the way back of every transition. Only what was seen gets a row: the walk may never have gone "
        "back, and in some worlds it could not.",
        "backwards": "your rows are φ(s) − φ(s′). Their singular vectors are the same, but the row asked for ends in s′: +1 "
        "at s′, −1 at s.",
        "not a difference": "a row must be a *difference*, −1 where the step began and +1 where it ended, so that it adds up "
        "to 0.",
        "closed": "there is a row from the walk's last tile to its first, a step that was never made. (np.roll closes a list "
        "into a ring.)",
        "on its side": "one transition a *row* is asked for, and yours are columns.",
        "MᵀM": "this is MᵀM, of shape (S, S). M itself has one row a transition.",
        "else": "a walk over {steps} steps made {wanted} different transitions between different tiles; your matrix has "
        "{given} rows that are not 0, or rows with other numbers in them.",
    },
)
def unique_transitions(answer):
    """The matrix of unique transitions"""
    rng = np.random.default_rng(71)
    for world in worlds(4, seed=71, fewest=8):
        S = world.n_states
        path = world.random_walks(int(rng.integers(S)), 1, 3 * S, rng)[0]
        steps = np.stack([path[:-1], path[1:]], axis=1)
        seen = np.unique(steps, axis=0)
        wanted = _differences(seen, S)
        given = array(call(answer, path, S))
        recognise(given, {"MᵀM": wanted.T @ wanted})
        if given.ndim == 2 and given.shape[0] == S != given.shape[1]:
            raise Mistake("on its side")
        if given.ndim != 2 or given.shape[1] != S:
            raise Mistake("shape", shape=given.shape, wanted=f"(rows, {S})")
        given = _in_order(given)
        if close(given, _in_order(wanted)):
            continue
        _, first = np.unique(np.sort(steps, axis=1), axis=0, return_index=True)
        ring = np.unique(np.stack([path, np.roll(path, -1)], axis=1), axis=0)
        apart, unit = seen[seen[:, 0] != seen[:, 1]], np.eye(S)
        wrong = {
            "every time": [_differences(steps, S)],
            "one of the two": [
                _differences(pairs, S)
                for pairs in (steps[first], np.sort(steps[first], axis=1), np.sort(steps[first], axis=1)[:, ::-1])
            ],
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
        }
        recognise(given, {name: [_in_order(M) for M in stacks] for name, stacks in wrong.items()})
        raise Mistake("else", steps=len(steps), wanted=len(wanted), given=len(given))
    return "each transition once, on four walks: however often a step was taken, it weighs as much as one taken once."


@exercise(
    "07.2",
    difficulty=1,
    minutes=4,
    mistakes={
        "both": "two numbers are asked for, one for M and one for T, in units of what joins two neighbours in the middle.",
        "M knows no odds": "look at M again: you let the 1 % count there. A transition that can happen has its row, whether "
        "it happens at every second step or once a week.",
        "M, one row": "look at M again: two neighbours are joined by two rows, one for each direction. How many does the "
        "trapdoor have?",
        "M": "look at M again: MᵀM adds up, over the rows, the product of their entries at the two tiles. Count the rows "
        "that join two neighbours, and those that join the ends.",
        "T, not a share": "look at T again: 0.01 is the probability itself. How large is T between two neighbours?",
        "T, every action": "look at T again: the trapdoor opens *whatever* you do, so the four actions together give 1 %, "
        "not a quarter of it.",
        "T, one way": "look at T again: row s of T says where one goes *from* s, so nothing is averaged over both directions.",
        "T knows odds": "look at T again: unlike M it counts how often. Divide the two probabilities.",
    },
)
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


@exercise(
    "07.3",
    difficulty=2,
    minutes=8,
    mistakes={
        "Ψ's": "these are size and angle of λ, an eigenvalue of Ψ. One *step* is T, so go from λ to T's eigenvalue first: "
        "λ = 1/(1 − γμ).",
        "γ lost": "a γ got lost on the way from λ to μ: μ = (1 − 1/λ)/γ.",
        "parts": "these are the real and the imaginary part of μ. What fades is its size |μ|, what turns is its angle.",
        "degrees": "the angle is right, but in degrees. Radians are asked for: a full turn is 2π.",
        "swapped": "both numbers are right, in the wrong order: first the factor, then the angle.",
        "squared": "the factor is |μ|², and |μ| is asked for: the square root is missing.",
        "half plane": "arctan(imaginary/real) cannot tell μ from −μ: where the real part is negative, the angle is off by "
        "half a turn. np.angle and np.arctan2 look at both parts.",
        "mirrored": "the angle has the wrong sign: this wave would turn the other way.",
        "else": "for λ = {lam:.3g} and γ = {gamma} one step of the walk shrinks the pattern to {shrink:.3g} of its height "
        "and turns it by {turn:.3g}; yours are {given}.",
    },
)
def travel(answer):
    """What an eigenvalue does in one step"""
    for T, gamma in _circulations(3, seed=73):
        values, vectors = np.linalg.eig(successor_representation(T, gamma))
        for lam, e in zip(values, vectors.T, strict=True):
            if abs(lam.imag) < 1e-6:
                continue
            shrink, turn = array(call(answer, complex(lam), gamma), (2,))
            step = shrink * np.exp(1j * turn)  # this is what the two numbers mean
            if shrink >= 0 and np.abs(T @ e - step * e).max() < 1e-6:
                continue
            mu = (1 - 1 / lam) / gamma
            size, angle = abs(mu), float(np.angle(mu))
            wrong = {
                "Ψ's": [[abs(lam), np.angle(lam)]],
                "γ lost": [[gamma * size, angle]],
                "parts": [[mu.real, mu.imag]],
                "degrees": [[size, np.degrees(angle)], [size, np.degrees(angle) % 360]],
                "swapped": [[angle, size], [angle % (2 * np.pi), size]],
                "squared": [[size**2, angle]],
                "half plane": [[size, np.arctan(mu.imag / mu.real)]],
                "mirrored": [[size, -angle], [size, -angle % (2 * np.pi)]],
            }
            recognise([shrink, turn], wrong)
            numbers = {"shrink": size, "turn": angle, "given": f"{shrink:.3g} and {turn:.3g}"}
            raise Mistake("else", lam=lam, gamma=gamma, **numbers)
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


_SYMMETRIC = {
    "a": "look at (a) again: V is symmetric, and so is its Laplacian. What kind of eigenvalues does a symmetric matrix have?",
    "b": "look at (b) again: V has a 1 wherever W or Wᵀ has one. Can an edge get lost by that?",
    "c": "look at (c) again: through which tile can one walk in one direction only, and what does V say about it?",
    "d": "look at (d) again: a door can be *entered* from either side, whichever way it opens. What is left in V to tell a "
    "door from the same door turned round?",
    "e": "look at (e) again: take two tiles on either side of a one-way door. How far is it there, and how far back?",
}


@exercise(
    "07.4",
    difficulty=2,
    minutes=6,
    mistakes=_SYMMETRIC
    | {"letters": "write the letters of the sentences that are true, such as 'ce'; there are a to e."},
)
def two_way(answer):
    """What is lost if a one-way graph is made symmetric?"""
    if not isinstance(answer, (str, list, tuple, set)) or not all(isinstance(one, str) for one in answer):
        raise Mistake("letters")
    given = {letter for letter in "".join(answer).lower() if letter.isalnum()}
    if not given or not given <= set(_SYMMETRIC):
        raise Mistake("letters")
    always = dict.fromkeys(_SYMMETRIC, True)
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
    for letter, true in always.items():
        if true != (letter in given):
            raise Mistake(letter)
    return "real eigenvalues are bought with the doors: V cannot say which way they open, nor how long the way back is."


@exercise(
    "07.5",
    difficulty=3,
    minutes=15,
    mistakes={
        "a pair": "two things are asked for: the k eigenvalues of Ψ, and the (S, k) vectors that belong to them.",
        "the wrong end": "you took the smallest eigenvalues of T, its roughest patterns. Small is smooth in the Laplacian; "
        "in T, as in Ψ, it is large.",
        "by size": "you took the largest |μ|. A pattern with μ near −1 flips at every step: large in size, but the roughest "
        "there is, and one of Ψ's smallest. (eigsh does this unless told which='LA'.)",
        "T's values": "the vectors are right, but these are T's eigenvalues μ. What does Ψ = (I − γT)⁻¹ make of them?",
        "not inverted": "the values are those of I − γT. Ψ is its inverse.",
        "no discount": "γ is missing in the values: Ψ's are 1/(1 − γμ).",
        "backwards": "these are the right pairs in the wrong order: eigh and eigsh begin with the smallest value. The "
        "largest first is asked for.",
        "torn apart": "values and vectors do not belong together: whoever sorts the one must sort the other alike.",
        "values": "the vectors are right, but the value of column {column} should be {wanted:.3g} and is {given:.3g}.",
        "without the first": "the constant vector, with the value 1/(1−γ), is missing. (Options leave it out; here it is "
        "asked for, to show where the others stand.)",
        "lying down": "one vector a *column* is asked for, shape {wanted}; yours lie in rows.",
        "length": "the directions are right, but the columns must have length 1.",
        "else": "column {column} is not what it should be: Te = μe must hold, with the largest μ in column 0, the next one "
        "in column 1, and so on.",
    },
)
def slow_directions(answer):
    """The slow directions of Ψ without Ψ"""
    for world, k, gamma in zip(worlds(3, seed=76, fewest=12), (7, 6, 3), (0.9, 0.95, 0.8), strict=True):
        T = world.transition_matrix()
        found = call(answer, T, gamma, k)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise Mistake("a pair")
        mu, E = (part[..., ::-1] for part in np.linalg.eigh(T))  # the largest first
        exact = 1 / (1 - gamma * mu)
        values, V = array(found[0], (k,)), array(found[1])
        if V.shape == (k, len(T)):
            raise Mistake("lying down", wanted=(len(T), k))
        V = array(V, (len(T), k))
        fits = np.abs(T @ V - V * mu[:k]).max(axis=0) < 1e-6
        if fits.all():
            if not close(V.T @ V, np.eye(k)):
                raise Mistake("length")
            if close(values, exact[:k]):
                continue
            wrong = {"T's values": mu[:k], "not inverted": 1 - gamma * mu[:k], "torn apart": exact[:k][::-1]}
            recognise(values, wrong)
            recognise(values[1:], {"no discount": 1 / (1 - mu[1:k])})  # the first would be 1/0
            worst = int(np.argmax(np.abs(values - exact[:k])))
            raise Mistake("values", column=worst, wanted=exact[worst], given=values[worst])
        cosines = np.abs((V / np.maximum(np.linalg.norm(V, axis=0), 1e-12)).T @ E)  # (k, S), whatever the signs
        if close(cosines.max(axis=1), np.ones(k)):
            picked = set(cosines.argmax(axis=1).tolist())  # which of T's eigenvectors these are, the smoothest being 0
            if picked == set(range(k)):
                raise Mistake("torn apart" if close(values, exact[:k]) else "backwards")
            for name, chosen in (
                ("the wrong end", range(len(T) - k, len(T))),
                ("by size", np.argsort(-np.abs(mu))[:k].tolist()),
                ("without the first", range(1, k + 1)),
            ):
                if picked == set(chosen):
                    raise Mistake(name)
        raise Mistake("else", column=int(np.argmin(fits)))
    return "Te = μe and λ = 1/(1−γμ), the largest first, on three mazes. With a sparse T this is all that a million tiles need."
