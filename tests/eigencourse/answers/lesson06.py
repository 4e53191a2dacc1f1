"""Right and wrong answers to the exercises of lesson 06: what a class hands in."""

import numpy as np


def rule(target, step=lambda old, target, eta: old + eta * (target - old)):
    """An update from what it aims at: target(Q, s, a, reward, s_next, ended, gamma)."""

    def update(Q, s, a, reward, s_next, ended, step_size, gamma):
        return step(Q[s, a], target(Q, s, a, reward, s_next, ended, gamma), step_size)

    return update


def q_target(Q, s, a, reward, s_next, ended, gamma):
    return reward if ended else reward + gamma * Q[s_next].max()


def q_update(Q, s, a, reward, s_next, ended, step_size, gamma):
    """With a mask instead of an if, in place, and as an array of one entry."""
    Q[s, a] = (1 - step_size) * Q[s, a] + step_size * (reward + gamma * (1 - ended) * max(Q[s_next]))
    return Q[s, a : a + 1]


def q_whole(Q, s, a, *rest):
    Q[s, a] = q_update(Q, s, a, *rest)[0]
    return Q


def then(future):
    """reward, and γ times something unless it is over: future(Q, s, a, s_next)."""
    return rule(lambda Q, s, a, r, n, ended, g: r + (not ended) * g * future(Q, s, a, n))


def along(order=lambda n: range(n), frozen=False, best=lambda row, following: row.max(), end=True, eta=None):
    """A path, step by step, with one thing changed."""

    def learn(Q, states, actions, goal, step_size, gamma):
        old = Q.copy() if frozen else Q
        for t in order(len(actions)):
            s, a, s_next = states[t], actions[t], states[t + 1]
            following = actions[t + 1] if t + 1 < len(actions) else None
            paid = s_next == goal
            target = paid + (0 if paid and end else gamma * best(old[s_next], following))
            Q[s, a] += (eta or step_size) * (target - Q[s, a])
        return Q

    return learn


def along_zip(Q, states, actions, goal, step_size, gamma):
    """With the rule of exercise 06.1, into a copy."""
    new, update = Q.copy(), rule(q_target)
    for s, a, s_next in zip(states[:-1], actions, states[1:], strict=True):
        new[s, a] = update(new, s, a, float(s_next == goal), s_next, s_next == goal, step_size, gamma)
    return new


def as_one(Q, states, actions, goal, step_size, gamma):
    n, (s, a) = len(actions), (states[0], actions[0])
    target = gamma ** (n - 1) if states[-1] == goal else gamma**n * Q[states[-1]].max()
    Q[s, a] += step_size * (target - Q[s, a])
    return Q


def in_place(Q, *path):
    along()(Q, *path)


def chain(Q, next_state, ties=True):
    P = np.zeros((len(Q), len(Q)))
    for s, row in enumerate(Q):
        best = np.flatnonzero(row == row.max()) if ties else [row.argmax()]
        for a in best:
            P[s, next_state[s, a]] += 1 / len(best)
    return P


def arrival(more=0, ties=True, know=1):
    """Probabilities moved step by step; what enters the goal stays there."""

    def chance(Q, next_state, start, goal, steps):
        P = chain(know * Q, next_state, ties)
        p, arrived = np.eye(len(Q))[start], 0.0
        for _ in range(steps + more):
            p = p @ P
            arrived += p[goal]
            p[goal] = 0
        return arrived

    return chance


def backwards(Q, next_state, start, goal, steps):
    """The chance from every state, one step more at a time."""
    f = np.zeros(len(Q))
    f[goal] = 1
    for _ in range(steps):
        f = chain(Q, next_state) @ f
        f[goal] = 1
    return f[start]


def visits(Q, next_state, start, goal, steps, total=True):
    P, p, seen = chain(Q, next_state), np.eye(len(Q))[start], []
    for _ in range(steps):
        p = p @ P
        seen.append(p[goal])
    return sum(seen) if total else seen[-1]


def simulated(Q, next_state, start, goal, steps, walks=4_000):
    rng, P = np.random.default_rng(0), chain(Q, next_state).cumsum(axis=1)
    at, arrived = np.full(walks, start), np.zeros(walks, dtype=bool)
    for _ in range(steps):
        at = (rng.random(walks)[:, None] > P[at]).sum(axis=1).clip(max=len(Q) - 1)
        arrived |= at == goal
    return arrived.mean()


RIGHT = {
    "q_update": [rule(q_target), q_update],
    "along": [along(), along_zip],
    "bugs": [{"a": 2, "b": 1, "c": 3, "d": 4}, [2, 1, 3, 4], {"A": "2", "B": "1", "C": "3", "D": "4"}],
    "arrival": [arrival(), backwards],
    "hurt": ["bd", "B, D", ["d", "b"]],
}

WRONG = {
    "q_update": [
        (rule(lambda Q, s, a, r, n, ended, g: r + g * Q[n].max()), "no end"),
        (rule(lambda Q, s, a, r, n, ended, g: 0 if ended else r + g * Q[n].max()), "paid nothing"),
        (then(lambda Q, s, a, n: Q[n, a]), "taken action"),
        (then(lambda Q, s, a, n: Q[n].mean()), "average"),
        (then(lambda Q, s, a, n: Q[s].max()), "row of s"),
        (then(lambda Q, s, a, n: Q[n].argmax()), "argmax"),
        (then(lambda Q, s, a, n: Q.max()), "whole table"),
        (then(lambda Q, s, a, n: Q[n].min()), "worst"),
        (then(lambda Q, s, a, n: -Q[n].max()), "minus"),
        (rule(lambda Q, s, a, r, n, ended, g: r + (not ended) * Q[n].max()), "no γ"),
        (rule(lambda Q, s, a, r, n, ended, g: g * (r + (not ended) * Q[n].max())), "γ on everything"),
        (rule(lambda Q, s, a, r, n, ended, g: (not ended) * g * Q[n].max()), "no reward"),
        (rule(q_target, lambda old, target, eta: eta * (target - old)), "only the change"),
        (rule(q_target, lambda old, target, eta: target), "no step size"),
        (rule(q_target, lambda old, target, eta: eta * old + (1 - eta) * target), "step size reversed"),
        (rule(q_target, lambda old, target, eta: old + eta * target), "old value"),
        (rule(q_target, lambda old, target, eta: old + eta * (old - target)), "wrong direction"),
        (q_whole, "whole table returned"),
        (rule(q_target, lambda old, target, eta: old + eta**2 * (target - old)), "else"),
        (lambda Q, *_: Q[0], "shape"),
        (lambda Q: Q, "raised"),
    ],
    "along": [
        (lambda Q, *path: np.hstack([along()(Q, *path), Q[:, :1]]), "option's column"),
        (as_one, "option as one"),
        (lambda Q, *path: Q, "nothing"),
        (along(lambda n: [0]), "first step only"),
        (along(lambda n: [n - 1]), "last step only"),
        (along(lambda n: range(n - 1)), "last step left out"),
        (along(lambda n: reversed(range(n))), "backwards"),
        (along(frozen=True), "all at once"),
        (along(best=lambda row, following: row.max() if following is None else row[following]), "taken action"),
        (along(end=False), "no end"),
        (along(eta=1), "no step size"),
        (along(best=lambda row, following: row.mean()), "else"),
        (in_place, "in place"),
        (lambda Q, *path: Q.T, "shape"),
    ],
    "bugs": [
        ([3, 1, 2, 4], "a"),
        ([2, 3, 1, 4], "b"),
        ([2, 1, 4, 3], "c"),
        ([2, 1, 3, 3], "d"),
        ([2, 1], "all four"),
        ({"a": 2, "b": 5, "c": 3, "d": 4}, "all four"),
    ],
    "arrival": [
        (arrival(ties=False), "first of the ties"),
        (arrival(know=0), "wanders"),
        (lambda *task: visits(*task, total=False), "leaves again"),
        (visits, "counts twice"),
        (arrival(more=-1), "one step short"),
        (arrival(more=1), "one step more"),
        (lambda *task: arrival()(*task) - arrival(more=-1)(*task), "not before"),
        (lambda *task: float(arrival()(*task) > 0), "can it"),
        (simulated, "simulated"),
        (lambda *task: 0.5 * arrival()(*task), "else"),
        (lambda Q, next_state, start, goal, steps: chain(Q, next_state)[start], "shape"),
    ],
    "hurt": [
        ("abd", "a"),
        ("d", "b"),
        ("bcd", "c"),
        ("b", "d"),
        ("bde", "e"),
        ("xyz", "letters"),
        (2, "letters"),
    ],
}
