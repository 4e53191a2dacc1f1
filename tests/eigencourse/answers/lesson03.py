"""Right and wrong answers to the exercises of lesson 03: what a class hands in."""

import numpy as np


def td(target, keep=1.0):
    """An update rule from what it aims at: target(psi_hat, s, s_next, gamma)."""

    def update(psi_hat, s, s_next, step_size, gamma):
        old = psi_hat[s]
        return old + step_size * (target(psi_hat, s, s_next, gamma) - keep * old)

    return update


def one(psi_hat, s):
    return np.eye(len(psi_hat))[s]


def td_update(psi_hat, s, s_next, step_size, gamma):
    target = gamma * psi_hat[s_next]
    target[s] += 1
    return (1 - step_size) * psi_hat[s] + step_size * target


def td_in_place(psi_hat, s, s_next, step_size, gamma):
    psi_hat[s] = td_update(psi_hat, s, s_next, step_size, gamma)


def td_loop(psi_hat, s, s_next, step_size, gamma):
    row = []
    for j in range(len(psi_hat)):
        error = (s == j) + gamma * psi_hat[s_next, j] - psi_hat[s, j]
        row.append(psi_hat[s, j] + step_size * error)
    return row


def td_whole(psi_hat, *rest):
    td_in_place(psi_hat, *rest)
    return psi_hat


def swapped(psi_hat, s, s_next, step_size, gamma):
    return td_update(psi_hat, s_next, s, step_size, gamma)


def cosine(v, e):
    return v @ e / (np.linalg.norm(v) * np.linalg.norm(e))


def by_projection(v, e):
    rest = v - (v @ e) / (e @ e) * e
    return np.sqrt(max(0, 1 - (rest @ rest) / (v @ v)))


def cosines(V, E):
    return np.linalg.svd(np.linalg.qr(V)[0].T @ np.linalg.qr(E)[0], compute_uv=False)


def by_least_squares(V, E):
    """The worst direction of V's space, from how badly E's can express it."""
    Q = np.linalg.qr(V)[0]
    rest = Q - E @ np.linalg.lstsq(E, Q, rcond=None)[0]
    return np.sqrt(max(0, 1 - np.linalg.norm(rest, 2) ** 2))


def columns(V, E):
    return np.array([abs(cosine(v, e)) for v, e in zip(V.T, E.T, strict=True)])


RIGHT = {
    "td_update": [td(lambda p, s, n, g: one(p, s) + g * p[n]), td_update, td_loop],
    "diagnosis": [{"a": 3, "b": 1, "c": 2, "d": 4}, [3, 1, 2, 4], {"A": "3", "B": "1", "C": "2", "D": "4"}],
    "floors": [[0.02, 0.1, 0.5], np.array([0.02, 0.1, 0.5])],
    "agreement": [lambda v, e: abs(cosine(v, e)), by_projection],
    "space_agreement": [lambda V, E: cosines(V, E)[-1], by_least_squares],
}

WRONG = {
    "td_update": [
        (td(lambda p, s, n, g: g * (one(p, s) + p[n])), "γ on the wrong term"),
        (lambda p, s, n, eta, g: p[s] + eta * g * (one(p, s) + p[n] - p[s]), "γ on everything"),
        (td(lambda p, s, n, g: one(p, s) + p[n]), "no γ"),
        (td(lambda p, s, n, g: g * p[n]), "no indicator"),
        (td(lambda p, s, n, g: one(p, n) + g * p[n]), "indicator at s′"),
        (td(lambda p, s, n, g: 1 + g * p[n]), "1 everywhere"),
        (td(lambda p, s, n, g: one(p, s) + g * p[n], keep=0), "old belief"),
        (lambda p, s, n, eta, g: p[s] + eta * one(p, s) + g * p[n] - p[s], "brackets"),
        (lambda p, s, n, eta, g: one(p, s) + g * p[n], "no step size"),
        (lambda p, s, n, eta, g: eta * (one(p, s) + g * p[n] - p[s]), "only the change"),
        (lambda p, s, n, eta, g: td_update(p, s, n, 1 - eta, g), "step size reversed"),
        (swapped, "s and s′ swapped"),
        (lambda p, s, n, eta, g: td_update(p.T, s, n, eta, g), "columns"),
        (td_whole, "whole matrix"),
        (td(lambda p, s, n, g: 2 * one(p, s) + g * p[n]), "moves at the truth"),
        (lambda p, s, n, eta, g: p[s] + eta**2 * (one(p, s) + g * p[n] - p[s]), "else"),
        (td_in_place, "in place"),
        (lambda psi_hat: psi_hat, "raised"),
    ],
    "diagnosis": [
        ({"a": 1, "b": 3, "c": 2, "d": 4}, "a"),
        ({"a": 3, "b": 4, "c": 2, "d": 1}, "b"),
        ({"a": 3, "b": 1, "c": 4, "d": 2}, "c"),
        ([3, 1, 2, 2], "d"),
        ({"a": 3, "b": None, "c": 2, "d": 4}, "all four"),
        ([3, 1], "all four"),
        (7, "unreadable"),
    ],
    "floors": [
        ([0.5, 0.1, 0.02], "the first ten"),
        ([0.1, 0.02, 0.5], "the paper's"),
        ([0.02, 0.5, 0.1], "in between"),
        ([1, 2, 3], "not these"),
        (0.02, "not these"),
    ],
    "agreement": [
        (lambda v, e: np.linalg.norm(v - e), "a distance"),
        (lambda v, e: np.arccos(min(1, abs(cosine(v, e)))), "a distance"),
        (lambda v, e: abs(v @ e), "length"),
        (cosine, "sign"),
        (lambda v, e: cosine(v, e) ** 2, "squared"),
        (lambda v, e: abs(np.corrcoef(v, e)[0, 1]), "centred"),
        (lambda v, e: 1 - np.arccos(min(1, abs(cosine(v, e)))) / (np.pi / 2), "else"),
        (lambda v, e: v * e, "shape"),
    ],
    "space_agreement": [
        (lambda V, E: columns(V, E).min(), "one by one"),
        (lambda V, E: columns(V, E).mean(), "one by one"),
        (lambda V, E: cosines(V, E)[0], "best"),
        (lambda V, E: cosines(V, E).mean(), "average"),
        (lambda V, E: cosines(V, E).prod(), "product"),
        (lambda V, E: np.linalg.svd(V.T @ E, compute_uv=False)[-1], "not orthonormal"),
        (lambda V, E: cosines(V, E)[-1] ** 2, "squared"),
        (lambda V, E: 0.5, "else"),
        (cosines, "shape"),
    ],
}
