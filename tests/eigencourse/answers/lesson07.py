"""Right and wrong answers to the exercises of lesson 07: what a class hands in."""

import cmath
from itertools import pairwise

import numpy as np
from scipy.sparse.linalg import eigsh


def rows(pairs, n_states):
    unit = np.eye(n_states)
    return np.array([unit[s_next] - unit[s] for s, s_next in pairs])


def steps(path):
    return [(int(s), int(s_next)) for s, s_next in pairwise(path)]


def unique_by_set(path, n_states):
    return rows({(s, s_next) for s, s_next in steps(path) if s != s_next}, n_states)


def unique_in_order(path, n_states):
    """As they are met, bumps included."""
    return rows(dict.fromkeys(steps(path)), n_states).tolist()


def one_direction(path, n_states):
    return rows({tuple(sorted(pair)) for pair in steps(path)}, n_states)


def first_direction(path, n_states):
    kept = []
    for s, s_next in steps(path):
        if (s, s_next) not in kept and (s_next, s) not in kept:
            kept.append((s, s_next))
    return rows(kept, n_states)


def and_back(path, n_states):
    there = set(steps(path))
    return rows(there | {(s_next, s) for s, s_next in there}, n_states)


def sums(path, n_states):
    unit = np.eye(n_states)
    return np.array([unit[s] + unit[s_next] for s, s_next in set(steps(path))])


def closed(path, n_states):
    return rows(set(zip(path.tolist(), np.roll(path, -1).tolist(), strict=True)), n_states)


def with_bumps(path, n_states):
    """One entry written over the other."""
    M = np.zeros((len(set(steps(path))), n_states))
    for row, (s, s_next) in zip(M, set(steps(path)), strict=True):
        row[s], row[s_next] = -1, 1
    return M


def gram(path, n_states):
    M = unique_by_set(path, n_states)
    return M.T @ M


def of_T(lam, gamma):
    return (1 - 1 / lam) / gamma


def travel(lam, gamma):
    return abs(of_T(lam, gamma)), np.angle(of_T(lam, gamma))


def by_parts(lam, gamma):
    """A full turn counted from 0 to 2π."""
    mu = of_T(lam, gamma)
    return [np.hypot(mu.real, mu.imag), np.arctan2(mu.imag, mu.real) % (2 * np.pi)]


def half_plane(lam, gamma):
    mu = of_T(lam, gamma)
    return abs(mu), np.arctan(mu.imag / mu.real)


def slow(T, gamma, k, which="LA"):
    mu, E = eigsh(T, k, which=which)
    return 1 / (1 - gamma * mu[::-1]), E[:, ::-1]


def full(T):
    return T if isinstance(T, np.ndarray) else T.toarray()


def slow_dense(T, gamma, k, first=0):
    mu, E = (part[..., ::-1] for part in np.linalg.eigh(full(T)))
    return 1 / (1 - gamma * mu[first : first + k]), E[:, first : first + k]


def by_psi(T, gamma, k):
    values, V = np.linalg.eigh(np.linalg.inv(np.eye(T.shape[0]) - gamma * full(T)))
    return values[::-1][:k], V[:, ::-1][:, :k]


def by_one_minus(T, gamma, k):
    """The smallest eigenvalues of I − γT, which is no trouble at all."""
    values, V = np.linalg.eigh(np.eye(T.shape[0]) - gamma * full(T))
    return 1 / values[:k], V[:, :k]


def values_only(change):
    """The right vectors with other values: change(μ, γ)."""

    def answer(T, gamma, k):
        mu, E = eigsh(T, k, which="LA")
        return change(mu[::-1], gamma), E[:, ::-1]

    return answer


RIGHT = {
    "unique_transitions": [unique_by_set, unique_in_order],
    "trapdoor": [{"M": 0.5, "T": 0.04}, {"M": 1 / 2, "T": 0.01 / 0.25}, (0.5, np.float64(0.04))],
    "travel": [travel, by_parts, lambda lam, gamma: np.array(cmath.polar(of_T(lam, gamma)))],
    "two_way": ["abd", ["d", "b", "a"], "A, B, D", {"a", "b", "d"}],
    "slow_directions": [slow, slow_dense, by_one_minus],
}

WRONG = {
    "unique_transitions": [
        (lambda path, n_states: rows(steps(path), n_states), "every time"),
        (one_direction, "one of the two"),
        (first_direction, "one of the two"),
        (and_back, "and back"),
        (lambda path, n_states: -unique_by_set(path, n_states), "backwards"),
        (sums, "not a difference"),
        (lambda path, n_states: np.eye(n_states)[[b for _, b in sorted(set(steps(path)))]], "not a difference"),
        (closed, "closed"),
        (lambda path, n_states: unique_by_set(path, n_states).T, "on its side"),
        (gram, "MᵀM"),
        (with_bumps, "bumps"),
        (lambda path, n_states: unique_by_set(path, n_states)[:-1], "else"),
        (lambda path, n_states: 2 * unique_by_set(path, n_states), "else"),
        (lambda path, n_states: unique_by_set(path, n_states)[0], "shape"),
        (lambda path, n_states: unique_by_set(path, 99), "shape"),
    ],
    "trapdoor": [
        ({"M": 0.01, "T": 0.04}, "M knows no odds"),
        ({"M": 1, "T": 0.04}, "M, one row"),
        ({"M": 2, "T": 0.04}, "M"),
        ({"M": 0.5, "T": 0.01}, "T, not a share"),
        ({"M": 0.5, "T": 0.0025}, "T, every action"),
        ({"M": 0.5, "T": 0.02}, "T, one way"),
        ({"M": 0.5, "T": 0.5}, "T knows odds"),
        ({"M": 0.5, "T": None}, "both"),
        ([0.5], "both"),
        ({"M": "half", "T": 0.04}, "not numbers"),
    ],
    "travel": [
        (lambda lam, gamma: (abs(lam), np.angle(lam)), "Ψ's"),
        (lambda lam, gamma: travel(lam, 1), "γ lost"),
        (lambda lam, gamma: (of_T(lam, gamma).real, of_T(lam, gamma).imag), "parts"),
        (lambda lam, gamma: (abs(of_T(lam, gamma)), np.angle(of_T(lam, gamma), deg=True)), "degrees"),
        (lambda lam, gamma: travel(lam, gamma)[::-1], "swapped"),
        (lambda lam, gamma: (abs(of_T(lam, gamma)) ** 2, np.angle(of_T(lam, gamma))), "squared"),
        (half_plane, "half plane"),
        (lambda lam, gamma: travel(lam.conjugate(), gamma), "mirrored"),
        (lambda lam, gamma: (1.0, np.angle(of_T(lam, gamma))), "else"),
        (of_T, "μ itself"),
        (lambda lam, gamma: 2 * of_T(lam, gamma), "complex"),
        (lambda lam, gamma: abs(of_T(lam, gamma)), "shape"),
    ],
    "two_way": [
        ("bd", "a"),
        ("ad", "b"),
        ("abcd", "c"),
        ("ab", "d"),
        ("abde", "e"),
        ("none", "letters"),
        ("", "letters"),
        (2, "letters"),
    ],
    "slow_directions": [
        (lambda T, gamma, k: slow(T, gamma, k)[1], "a pair"),
        (lambda T, gamma, k: slow(T, gamma, k, "SA"), "the wrong end"),
        (lambda T, gamma, k: slow(T, gamma, k, "LM"), "by size"),
        (values_only(lambda mu, gamma: mu), "T's values"),
        (values_only(lambda mu, gamma: 1 - gamma * mu), "not inverted"),
        (values_only(lambda mu, gamma: 1 / (1 - mu + 1e-12)), "no discount"),
        (values_only(lambda mu, gamma: 1 / (1 - gamma * mu[::-1])), "torn apart"),
        (lambda T, gamma, k: (slow(T, gamma, k)[0], slow(T, gamma, k)[1][:, ::-1]), "torn apart"),
        (lambda T, gamma, k: (slow(T, gamma, k)[0][::-1], slow(T, gamma, k)[1][:, ::-1]), "backwards"),
        (lambda T, gamma, k: slow_dense(T, gamma, k, first=1), "without the first"),
        (values_only(lambda mu, gamma: 1 / (1 - gamma**2 * mu)), "values"),
        (lambda T, gamma, k: (slow(T, gamma, k)[0], slow(T, gamma, k)[1].T), "lying down"),
        (lambda T, gamma, k: (slow(T, gamma, k)[0], 2 * slow(T, gamma, k)[1]), "length"),
        (lambda T, gamma, k: (slow(T, gamma, k)[0], T[:, :k]), "else"),
        (by_psi, "made Ψ"),
        (lambda T, gamma, k: slow_dense(np.asarray(T), gamma, k), "dense only"),
        (lambda T, gamma, k: slow(T, gamma, k - 1), "shape"),
    ],
}
