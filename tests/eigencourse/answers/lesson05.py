"""Right and wrong answers to the exercises of lesson 05: what a class hands in."""

import numpy as np


def hitting(P, goal):
    others = np.arange(len(P)) != goal
    h = np.zeros(len(P))
    h[others] = np.linalg.solve(np.eye(len(P) - 1) - P[others][:, others], np.ones(len(P) - 1))
    return h


def by_fundamental_matrix(P, goal):
    """By the matrix of expected visits before the goal, as in a textbook on absorbing chains; lists, no arrays."""
    Q = np.delete(np.delete(P, goal, axis=0), goal, axis=1)
    return np.insert(np.linalg.inv(np.eye(len(Q)) - Q).sum(axis=1), goal, 0.0).tolist()


def by_sweeps(P, goal, sweeps=200_000, tolerance=1e-7):
    h, old = np.zeros(len(P)), np.ones(len(P))
    while sweeps > 0 and np.abs(h - old).max() > tolerance:
        sweeps, old = sweeps - 1, h
        h = 1 + P @ h
        h[goal] = 0
    return h


def absorbing(P, goal):
    """The goal made to stay where it is, but left in."""
    P[goal] = 0
    P[goal, goal] = 1
    return np.linalg.solve(np.eye(len(P)) - P, np.ones(len(P)))


def one_row_too_many(P, goal):
    """Only the column is gone."""
    P[:, goal] = 0
    return np.linalg.solve(np.eye(len(P)) - P, np.ones(len(P)))


def from_the_goal(P, goal):
    return [hitting(P, g)[goal] for g in range(len(P))]


def nearly_singular(P, goal):
    return np.linalg.solve((1 + 1e-14) * np.eye(len(P)) - P, np.ones(len(P)))


def follow(next_state, policy, goal, s, interrupt=True, most=10_000):
    while policy[s] >= 0 and most > 0:
        s = next_state[s, policy[s]]
        most -= 1
        if interrupt and s == goal:
            break
    return s


def chain(weight=None, everywhere=False, divide=True, **how):
    """A decision at a time, with one thing changed; weight: the option's chance, None for uniform."""

    def build(next_state, policy, goal):
        P = np.zeros((len(policy), len(policy)))
        for s in range(len(policy)):
            can_start = policy[s] >= 0 or everywhere
            chance = (0.2 if weight is None else weight) * can_start
            for s_next in next_state[s]:
                P[s, s_next] += (1 - chance) / 4
            P[s, follow(next_state, policy, goal, s, **how)] += chance
            P[s] *= 1 if divide else 4 + can_start
        return P

    return build


def by_counting(next_state, policy, goal):
    """List the places, count them; the goal keeps the walk for ever, which does not matter."""
    P = np.eye(len(policy))
    for s in range(len(policy)):
        if s != goal:
            places = [*next_state[s], *([follow(next_state, policy, goal, s)] if policy[s] >= 0 else [])]
            P[s] = np.bincount(places, minlength=len(policy)) / len(places)
    return P


def overwriting(next_state, policy, goal):
    """= for +=."""
    P = np.zeros((len(policy), len(policy)))
    for s in range(len(policy)):
        places = [*next_state[s], *([follow(next_state, policy, goal, s)] if policy[s] >= 0 else [])]
        for place in places:
            P[s, place] = 1 / len(places)
    return P


def one_short(next_state, policy, goal):
    P = chain(weight=0)(next_state, policy, goal)
    for s in np.flatnonzero(policy >= 0):
        end = s
        while end != goal and policy[next_state[end, policy[end]]] >= 0:
            end = next_state[end, policy[end]]
            if end == goal:
                break
        P[s] *= 0.8
        P[s, end] += 0.2
    return P


RIGHT = {
    "far_corner": [1_000, 1_500.0, np.array([800])],
    "hitting": [hitting, by_fundamental_matrix, by_sweeps],
    "decision_chain": [chain(), by_counting],
    "first_pair": [{"mean": 1000, "median": 0.3}, [1.5, 0.9], np.array([50, 0.5])],
    "conventions": ["ace", "A, C, E", ["a", "c", "e"]],
}

WRONG = {
    "far_corner": [
        (20, "shortest way"),
        (-5, "no time"),
        (104, "every tile once"),
        (400, "distance squared"),
        (200, "too few"),
        (10_000, "too many"),
        (np.inf, "too many"),
        ("many", "not numbers"),
    ],
    "hitting": [
        (lambda P, goal: np.linalg.solve(np.eye(len(P)) - P, np.ones(len(P))), "goal left in"),
        (absorbing, "goal left in"),
        (nearly_singular, "goal left in"),
        (lambda P, goal: np.linalg.pinv(np.eye(len(P)) - P) @ np.ones(len(P)), "pseudo-inverse"),
        (one_row_too_many, "way back"),
        (from_the_goal, "from the goal"),
        (lambda P, goal: hitting(P.T, goal), "transposed"),
        (lambda P, goal: hitting(0.9 * P, goal), "discounted"),
        (lambda P, goal: by_sweeps(P, goal, 10), "stops early"),
        (lambda P, goal: np.maximum(hitting(P, goal) - 1, 0), "step lost"),
        (lambda P, goal: hitting(P, goal) + 1, "one too many"),
        (lambda P, goal: np.insert(np.delete(hitting(P, goal), goal), 0, 0), "goal's place"),
        (lambda P, goal: np.append(np.delete(hitting(P, goal), goal), 0), "goal's place"),
        (lambda P, goal: 2 * hitting(P, goal), "else"),
        (lambda P, goal: np.delete(hitting(P, goal), goal), "shape"),
        (lambda P, goal: 1 / np.zeros(len(P)), "not finite"),
    ],
    "decision_chain": [
        (chain(interrupt=False), "runs across"),
        (chain(most=1), "one step"),
        (chain(everywhere=True), "where it ends"),
        (chain(weight=0.5), "half and half"),
        (chain(weight=0), "actions only"),
        (chain(weight=1), "option always"),
        (overwriting, "overwritten"),
        (chain(divide=False), "not divided"),
        (lambda n, policy, goal: 0.5 * chain()(n, policy, goal), "not divided"),
        (lambda n, policy, goal: chain()(n, policy, goal).T, "transposed"),
        (one_short, "one short"),
        (chain(weight=0.1), "else"),
        (lambda n, policy, goal: n, "shape"),
    ],
    "first_pair": [
        ({"mean": 0.5, "median": 0.5}, "both fall"),
        ([2, 3], "both rise"),
        ([0.5, 2], "the other way round"),
        ([1, 0.5], "no change"),
        ({"mean": 5000, "median": 182}, "times"),
        ({"mean": 2, "median": None}, "two factors"),
        ([-1, 0.5], "two factors"),
        ([0.5], "shape"),
        ({"mean": "up", "median": "down"}, "not numbers"),
    ],
    "conventions": [
        ("ce", "a"),
        ("abce", "b"),
        ("ae", "c"),
        ("acde", "d"),
        ("ac", "e"),
        ("xyz", "letters"),
        (3, "letters"),
    ],
}
