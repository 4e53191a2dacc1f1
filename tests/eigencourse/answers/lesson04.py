"""Right and wrong answers to the exercises of lesson 04: what a class hands in."""

import numpy as np


def purpose(e, next_state):
    return e[next_state] - e[:, None]


def purpose_loop(e, next_state):
    """With one-hot vectors, as Eq. 1 is written."""
    phi = np.eye(len(e))
    return [[e @ (phi[s_next] - phi[s]) for s_next in row] for s, row in enumerate(next_state)]


def solve(reward=purpose, discount=lambda gamma: gamma, sweeps=500, above=0.0, pick=np.argmax, end=-1):
    """Value iteration with one thing changed."""

    def option(e, next_state, gamma):
        v = np.zeros(len(e))
        for _ in range(sweeps):
            q = reward(e, next_state) + discount(gamma) * v[next_state]
            v = np.maximum(q.max(axis=1), 0)
        return np.where(q.max(axis=1) > above, pick(q, axis=1), end)

    return option


def until(tolerance):
    """Value iteration that stops when little changes."""

    def option(e, next_state, gamma):
        v, change = np.zeros(len(e)), np.inf
        while change > tolerance:
            q = purpose(e, next_state) + gamma * v[next_state]
            new = np.maximum(q.max(axis=1), 0)
            v, change = new, np.abs(new - v).max()
        return np.where(q.max(axis=1) > 0, q.argmax(axis=1), -1)

    return option


def by_policy_iteration(e, next_state, gamma):
    """Improve a policy until it is the best, the last of equally good actions, as floats."""
    n = len(e)
    policy = np.full(n, -1)
    while True:
        P, r = np.zeros((n, n)), np.zeros(n)
        for s in np.flatnonzero(policy >= 0):
            P[s, next_state[s, policy[s]]] = 1
            r[s] = e[next_state[s, policy[s]]] - e[s]
        v = np.linalg.solve(np.eye(n) - gamma * P, r)
        q = np.column_stack([np.zeros(n), e[next_state] - e[:, None] + gamma * v[next_state]])
        better = np.where(q.max(axis=1) > v + 1e-12, q.argmax(axis=1) - 1, policy)
        if np.array_equal(better, policy):
            return [float(a) for a in policy]
        policy = better


def no_way_out(e, next_state, gamma):
    """Without the fifth action, in v as in the policy."""
    v = np.zeros(len(e))
    for _ in range(2_000):
        q = purpose(e, next_state) + gamma * v[next_state]
        v = q.max(axis=1)
    return q.argmax(axis=1)


def pairs(vectors, count):
    """e, −e, e′, −e′, …"""
    return np.repeat(vectors, 2, axis=1)[:, :count] * np.resize([1, -1], count)


def down(psi):
    return np.linalg.eigh(psi)[1][:, ::-1]


def by_svd(psi, count):
    """Of any length, and −e first."""
    return -3 * pairs(np.linalg.svd(psi)[0][:, 1:], count)


def by_sorting(psi, count):
    """In a loop, by the library's convention for signs: the largest entry is positive."""
    values, vectors = np.linalg.eig(psi)
    columns = []
    for k in np.argsort(-values)[1:]:
        e = vectors[:, k] * np.sign(vectors[np.argmax(np.abs(vectors[:, k]) > np.abs(vectors[:, k]).max() - 1e-9), k])
        columns += [e, -e]
    return np.array(columns[:count]).T


def plus_first(psi, count):
    half = down(psi)[:, 1 : 1 + (count + 1) // 2]
    return np.hstack([half, -half])[:, :count]


RIGHT = {
    "purpose": [purpose, purpose_loop],
    "option": [
        solve(),
        until(1e-4),
        until(1e-8),
        by_policy_iteration,
        solve(reward=lambda e, n: e[n] - e.reshape(-1, 1), above=1e-12),
    ],
    "change": [
        {"a": 2, "b": 1, "c": 3, "d": 4, "e": 3},
        [2, 1, 3, 4, 3],
        {"A": "2", "B": "1", "C": "3", "D": "4", "E": "3"},
    ],
    "directions": [lambda psi, count: pairs(down(psi)[:, 1:], count), by_svd, by_sorting],
    "landscape": [[1, 0, 0, 2], np.array([3, 2, 1, 2, 3, 6]), (10, 9, 8, 7, 6, 5, 4, 30)],
}

WRONG = {
    "purpose": [
        (lambda e, n: e[:, None] - e[n], "sign flipped"),
        (lambda e, n: e[:, None] + e[n], "plus e(s)"),
        (lambda e, n: -e[:, None] - e[n], "minus e(s′)"),
        (lambda e, n: e[n], "e(s′) alone"),
        (lambda e, n: np.tile(e[:, None], 4), "e(s) alone"),
        (lambda e, n: np.abs(purpose(e, n)), "no direction"),
        (lambda e, n: purpose(e, n) ** 2, "no direction"),
        (lambda e, n: 0.9 * e[n] - e[:, None], "discounted"),
        (lambda e, n: np.where(n == np.arange(len(e))[:, None], -1, purpose(e, n)), "bumps"),
        (lambda e, n: 2 * purpose(e, n), "else"),
        (lambda e, n: purpose(e, n).T, "shape"),
        (lambda e, n: e[n] - e, "raised"),
    ],
    "option": [
        (solve(lambda e, n: e[:, None] - e[n]), "sign flipped"),
        (solve(discount=lambda gamma: -gamma), "minus γv"),
        (solve(lambda e, n: e[:, None] + e[n]), "plus e(s)"),
        (solve(lambda e, n: e[n]), "e(s′) alone"),
        (solve(pick=np.argmin), "worst action"),
        (solve(above=-1e-15), "the tie"),
        (solve(above=-np.inf), "never ends"),
        (no_way_out, "never ends"),
        (lambda e, n, gamma: np.full(len(e), -1), "ends at once"),
        (solve(sweeps=1), "one step ahead"),
        (solve(discount=lambda gamma: 0), "one step ahead"),
        (solve(sweeps=3), "too few sweeps"),
        (solve(sweeps=10), "too few sweeps"),
        (until(1e-3), "too few sweeps"),
        (until(1e-2), "too few sweeps"),
        (solve(discount=lambda gamma: 0.9), "another γ"),
        (solve(discount=lambda gamma: 1, above=1e-9), "no γ"),
        (solve(discount=lambda gamma: 1), "no γ"),
        (solve(end=4), "fifth action"),
        (solve(end=7), "no actions"),
        (lambda *inputs: np.where(solve()(*inputs) < 0, -1, solve()(*inputs) + 1), "counted from one"),
        (lambda *inputs: solve()(*inputs) + 1, "counted from one"),
        (solve(pick=lambda q, axis: np.argsort(q, axis=axis)[:, -2]), "else"),
        (solve(above=0.3), "else"),
        (lambda e, n, gamma: solve()(e, n, gamma)[:, None], "shape"),
    ],
    "change": [
        ({"a": 3, "b": 1, "c": 3, "d": 4, "e": 3}, "a"),
        ([2, 3, 3, 4, 3], "b"),
        ([2, 1, 1, 4, 3], "c"),
        ([2, 1, 3, 1, 3], "d"),
        ([2, 1, 3, 4, 1], "e"),
        ([2, 1, 3], "all five"),
        ({"a": 2, "b": None, "c": 3, "d": 4, "e": 3}, "all five"),
    ],
    "directions": [
        (lambda psi, count: down(psi)[:, 1 : count + 1], "one sign"),
        (lambda psi, count: np.repeat(down(psi)[:, 1:], 2, axis=1)[:, :count], "twice the same"),
        (plus_first, "all plus first"),
        (lambda psi, count: pairs(down(psi), count), "constant"),
        (lambda psi, count: down(psi)[:, :count], "constant"),
        (lambda psi, count: pairs(np.linalg.eigh(psi)[1], count), "like the Laplacian"),
        (lambda psi, count: pairs(np.linalg.eigh(psi)[1][:, 1:], count), "like the Laplacian"),
        (lambda psi, count: pairs(down(psi).T[:, 1:], count), "rows"),
        (lambda psi, count: pairs(down(psi)[:, 1:], count).T, "lying down"),
        (lambda psi, count: pairs(np.linalg.eig(psi)[1][:, 1:], count), "not sorted"),
        (lambda psi, count: psi[:, :count], "else"),
    ],
    "landscape": [
        ([1, 0], "length"),
        (list(range(40)), "length"),
        ([0, 1, 2], "no hill"),
        ([2, 0, 1], "nothing higher"),
        ([1, 0.9, 5], "leaves at once"),
        ([5, 0, 0, 0, 5.1], "never leaves"),
        ([1, 0, 0, 2, -20, 3], "on the way"),
        ("a hill", "not numbers"),
    ],
}
