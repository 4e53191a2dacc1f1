"""Right and wrong answers to the exercises of lesson 01: what a class hands in."""

import numpy as np


def solve(T, gamma):
    return np.linalg.solve(np.eye(len(T)) - gamma * T, np.eye(len(T)))


def series(T, gamma, terms=2_000, first=0):
    total, power = np.zeros_like(T), np.linalg.matrix_power(gamma * T, first)
    for _ in range(terms):
        total += power
        power = gamma * power @ T
    return total


def forgotten(T, gamma):
    """Everything but the `return`."""
    psi = solve(T, gamma)
    psi.sum()


def entrywise(T, gamma):
    return sum(gamma**t * T**t for t in range(500))


def arrival_by_walking(psi, r, gamma):
    """T recovered from Ψ, then one step ahead."""
    T = (np.eye(len(psi)) - np.linalg.inv(psi)) / gamma
    return T @ psi @ r


RIGHT = {
    "first_light": [10, 10.0, np.int64(10)],
    "successor": [solve, series, lambda T, gamma: np.linalg.inv(np.eye(len(T)) - gamma * T).tolist()],
    "arrival_value": [lambda psi, r, gamma: (psi @ r - r) / gamma, arrival_by_walking],
    "ratio_limit": [1, 1.0, np.float64(1.001)],
    "drift": [[0.35, 0.35, 0.25, 0.05], np.array([0.4, 0.4, 0.2, 0.0]), (0.25, 0.5, 0.25, 0)],
}

WRONG = {
    "first_light": [
        (2, "through the wall"),
        (4, "that is B"),
        (11, "tiles, not steps"),
        (9, "tiles between"),
        (9.5, "not whole"),
        (6, "too soon"),
        (80, "too late"),
        ("ten", "not numbers"),
    ],
    "successor": [
        (lambda T, gamma: solve(T, gamma).T, "transposed"),
        (lambda T, gamma: series(T, gamma, first=1), "visit now"),
        (lambda T, gamma: gamma * solve(T, gamma), "γ on the wrong term"),
        (lambda T, gamma: np.linalg.inv(gamma * np.eye(len(T)) - T), "γ on the wrong term"),
        (entrywise, "entry by entry"),
        (lambda T, gamma: np.eye(len(T)) - gamma * T, "not inverted"),
        (lambda T, gamma: series(T, gamma, terms=20), "stops early"),
        (lambda T, gamma: solve(T, gamma) ** 2, "else"),
        (lambda T, gamma: solve(T, gamma)[0], "shape"),
        (lambda T, gamma: (np.eye(len(T)) - gamma * T) ** -1, "one over each"),
        (lambda T, gamma: 1 / (np.eye(len(T)) - gamma * T), "one over each"),
        (lambda T, gamma: np.linalg.inv(1 - gamma * T), "a number for I"),
        (lambda T, gamma: solve(T, 1), "no γ"),
        (lambda T, gamma: series(T, 1, terms=500), "no γ"),
        (lambda T, gamma: (1 - gamma) * solve(T, gamma), "an average"),
        (lambda T, gamma: 1 / np.zeros(T.shape), "not finite"),
        (forgotten, "returned nothing"),
        (lambda T: T, "raised"),
        (3.0, "not a function"),
    ],
    "arrival_value": [
        (lambda psi, r, gamma: psi @ r, "reward now"),
        (lambda psi, r, gamma: psi @ r - r, "one γ too many"),
        (lambda psi, r, gamma: gamma * psi @ r, "γ instead of a shift"),
        (lambda psi, r, gamma: (psi @ r - r) * gamma, "times γ"),
        (lambda psi, r, gamma: (r @ psi - r) / gamma, "transposed"),
        (lambda psi, r, gamma: psi @ r + r, "else"),
        (lambda psi, r, gamma: psi * r, "shape"),
    ],
    "ratio_limit": [
        (np.inf, "the other end"),
        (233, "as at 0.9"),
        (2, "B stays ahead"),
        (0, "C overtakes"),
        ("one", "not numbers"),
    ],
    "drift": [
        ([0.5, 0.5, 0.5, 0.1], "no probabilities"),
        ([1.2, -0.2, 0, 0], "no probabilities"),
        ([0.25] * 4, "the old walk"),
        ([0.4, 0.2, 0.0, 0.4], "another order"),
        ([0.5, 0.5, 0, 0], "never there"),
        ([0.1, 0.7, 0.1, 0.1], "else"),
        ([0.5, 0.5], "shape"),
    ],
}
