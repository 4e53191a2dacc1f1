"""Right and wrong answers to the exercises of lesson 02: what a class hands in."""

import numpy as np


def laplacian(W):
    d = W.sum(axis=1)
    return np.eye(len(W)) - W / np.sqrt(np.outer(d, d))


def laplacian_in_products(W):
    unroot = np.diag(W.sum(axis=1) ** -0.5)
    return unroot @ (np.diag(W.sum(axis=1)) - W) @ unroot


def by_entries(W):
    D = np.diag(W.sum(axis=1))
    return D**-0.5 @ (D - W) @ D**-0.5


def smooth(L, k):
    return np.linalg.eigh(L)[1][:, :k]


def smooth_by_eig(L, k):
    values, vectors = np.linalg.eig(L)
    return np.linalg.qr(vectors[:, np.argsort(values)][:, :k])[0]


def lazy(lam, gamma, alpha):
    of_T = (1 - 1 / lam) / gamma
    return 1 / (1 - gamma * (alpha + (1 - alpha) * of_T))


RIGHT = {
    "laplacian": [laplacian, laplacian_in_products],
    "sr_value": [
        lambda prime, gamma: 1 / (1 - gamma * (1 - prime)),
        lambda prime, gamma: np.array([(1 - gamma + gamma * one) ** -1 for one in prime]),
    ],
    "smooth": [smooth, smooth_by_eig, lambda L, k: -smooth(L, k), lambda L, k: np.linalg.svd(L)[0][:, ::-1][:, :k]],
    "valve": ["ade", ["e", "d", "a"], "A, D, E", {"a", "d", "e"}],
    "lazy": [lazy, lambda lam, gamma, alpha: 1 / (1 - gamma * alpha - (1 - alpha) * (1 - 1 / lam))],
}

WRONG = {
    "laplacian": [
        (lambda W: np.diag(W.sum(axis=1)) - W, "not normalised"),
        (lambda W: np.eye(len(W)) - W / W.sum(axis=1)[:, None], "the walk's"),
        (lambda W: np.eye(len(W)) - W / W.sum(axis=1), "the walk's"),
        (lambda W: (np.diag(W.sum(axis=1)) - W) * np.sqrt(np.outer(W.sum(axis=1), W.sum(axis=1))), "wrong power"),
        (lambda W: (np.diag(W.sum(axis=1)) - W) / np.sqrt(W.sum(axis=1)), "one side"),
        (lambda W: -laplacian(W), "upside down"),
        (lambda W: np.eye(len(W)) - laplacian(W), "no identity"),
        (lambda W: 2 * np.triu(laplacian(W), 1) + np.eye(len(W)), "not symmetric"),
        (lambda W: np.eye(len(W)) - W, "else"),
        (lambda W: np.eye(len(W)) - W / 4, "always four"),
        (by_entries, "power of zero"),
        (lambda W: np.diag(W.sum(axis=1)) ** -0.5 @ W, "power of zero"),
        (lambda W: W / 0, "not finite"),
    ],
    "sr_value": [
        (lambda prime, gamma: 1 - (1 - 1 / prime) / gamma, "wrong way"),
        (lambda prime, gamma: 1 / (1 - gamma * prime), "T's eigenvalue"),
        (lambda prime, gamma: 1 / prime, "no discount"),
        (lambda prime, gamma: 1 / (1 - gamma + prime), "γ lost"),
        (lambda prime, gamma: 1 - gamma * (1 - prime), "not inverted"),
        (lambda prime, gamma: 1 / (1 + gamma * (1 - prime)), "else"),
    ],
    "smooth": [
        (lambda L, k: np.linalg.eig(L)[1][:, :k], "not sorted"),
        (lambda L, k: np.linalg.eigh(L)[1][:, ::-1][:, :k], "like the SR"),
        (lambda L, k: np.linalg.eigh(L)[1][:, -k:], "like the SR"),
        (lambda L, k: smooth(L, k)[:, ::-1], "backwards"),
        (lambda L, k: np.linalg.eigh(L)[1][:k].T, "rows"),
        (lambda L, k: smooth(L, k).T, "lying down"),
        (lambda L, k: np.linalg.eigh(L)[1][:, 1 : k + 1], "without the first"),
        (lambda L, k: 2 * smooth(L, k), "length"),
        (lambda L, k: L[:, :k], "else"),
        (lambda L, k: np.linalg.eigh(L)[0][:k], "shape"),
    ],
    "valve": [
        ("de", "a"),
        ("abde", "b"),
        ("acde", "c"),
        ("ae", "d"),
        ("ad", "e"),
        ("all of them", "letters"),
        (3, "letters"),
        ("", "letters"),
    ],
    "lazy": [
        (lambda lam, gamma, alpha: lam, "unchanged"),
        (lambda lam, gamma, alpha: lazy(lam, gamma, 1 - alpha), "swapped"),
        (lambda lam, gamma, alpha: alpha + (1 - alpha) * lam, "mixed Ψ"),
        (lambda lam, gamma, alpha: alpha + (1 - alpha) * (1 - 1 / lam) / gamma, "stopped at T"),
        (lambda lam, gamma, alpha: 1 / (1 - gamma * (alpha + (1 - alpha) * (1 - 1 / lam))), "γ lost"),
        (lambda lam, gamma, alpha: (1 - alpha) * lam, "else"),
    ],
}
