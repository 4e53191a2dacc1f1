"""Checks of lesson 06, And do they earn?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from eigencourse.exercises import exercise
from eigencourse.exercises.answers import Mistake, array, scalar
from eigencourse.exercises.compare import choices, close, compare, letters, worst
from eigencourse.exercises.worlds import four_rooms, worlds
from eigenlib.control import q_learning
from eigenlib.eigenoptions import discover_eigenoptions
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.representation import successor_representation

# What a step suggests instead of r + γ max Q(s′, ·), of the rows q of s and ahead of s′; the mistake has to fit all steps.
_OTHER_TARGETS = {
    "no end": lambda Q, q, ahead, a, r, ended, gamma: r + gamma * ahead.max(),
    "paid nothing": lambda Q, q, ahead, a, r, ended, gamma: 0.0 if ended else r + gamma * ahead.max(),
    "taken action": lambda Q, q, ahead, a, r, ended, gamma: r + (not ended) * gamma * ahead[a],
    "average": lambda Q, q, ahead, a, r, ended, gamma: r + (not ended) * gamma * ahead.mean(),
    "row of s": lambda Q, q, ahead, a, r, ended, gamma: r + (not ended) * gamma * q.max(),
    "argmax": lambda Q, q, ahead, a, r, ended, gamma: r + (not ended) * gamma * ahead.argmax(),
    "whole table": lambda Q, q, ahead, a, r, ended, gamma: r + (not ended) * gamma * Q.max(),
    "worst": lambda Q, q, ahead, a, r, ended, gamma: r + (not ended) * gamma * ahead.min(),
    "minus": lambda Q, q, ahead, a, r, ended, gamma: r - (not ended) * gamma * ahead.max(),
    "no γ": lambda Q, q, ahead, a, r, ended, gamma: r + (not ended) * ahead.max(),
    "γ on everything": lambda Q, q, ahead, a, r, ended, gamma: gamma * (r + (not ended) * ahead.max()),
    "no reward": lambda Q, q, ahead, a, r, ended, gamma: (not ended) * gamma * ahead.max(),
}


@exercise
def q_update(answer):
    """One step of Q-learning"""

    def values(Q, s, a, reward, s_next, ended, eta, gamma):
        old, right = Q[s, a], reward + (0 if ended else gamma * Q[s_next].max())
        targets = {name: other(Q, Q[s], Q[s_next], a, reward, ended, gamma) for name, other in _OTHER_TARGETS.items()}
        wrong = {name: old + eta * (target - old) for name, target in targets.items()}
        return old + eta * (right - old), wrong | {
            "only the change": eta * (right - old),
            "no step size": right,
            "step size reversed": eta * old + (1 - eta) * right,
            "old value": old + eta * right,
            "wrong direction": old - eta * (right - old),
        }

    def reading(result, right):
        if np.ndim(result) == 2:
            raise Mistake("whole table returned")
        return scalar(result)

    rng, cases = np.random.default_rng(61), []
    for world, gamma in zip(worlds(3, seed=61), (0.9, 0.7, 0.5), strict=True):
        for ended in (False, True):
            Q, reward = rng.normal(size=world.next_state.shape), float(rng.normal())
            # From here a step to the right leads on, to where the best action is another one.
            s = int(np.argmax(world.next_state[:, 1] != np.arange(world.n_states)))
            s_next = int(world.next_state[s, 1])
            Q[s_next, rng.choice([0, 2, 3])] = Q[s_next].max() + 1
            cases.append((Q, s, 1, reward, s_next, ended, 0.2, gamma))
    compare(answer, cases, values, lambda given, right, *_: {"given": given, "wanted": right}, reading=reading)
    return "a fraction of the way towards the reward plus the best that the table promises, and nothing after the end."


def _learn(Q, states, actions, goal, eta, gamma, *, steps=None, frozen=False, on_policy=False, end=True) -> np.ndarray:
    """The table after these steps of a path, all by default. frozen: targets from the old table.  on_policy: from the action
    that was taken next.  end: nothing comes after the goal."""
    new = Q.copy()
    table = Q if frozen else new
    for t in range(len(actions)) if steps is None else steps:
        s, a, s_next = states[t], actions[t], states[t + 1]
        best = table[s_next, actions[t + 1]] if on_policy and t + 1 < len(actions) else table[s_next].max()
        paid = s_next == goal
        new[s, a] += eta * (float(paid) + (0 if paid and end else gamma * best) - new[s, a])
    return new


def _as_one(Q, states, actions, goal, eta, gamma) -> np.ndarray:
    """The path as one long action, credited to where it began, as in learning about options."""
    new, n = Q.copy(), len(actions)
    target = gamma ** (n - 1) if states[-1] == goal else gamma**n * Q[states[-1]].max()
    new[states[0], actions[0]] += eta * (target - new[states[0], actions[0]])
    return new


_OTHER_WAYS = {
    "nothing": lambda Q, *rest: Q,
    "option as one": _as_one,
    "first step only": lambda *path: _learn(*path, steps=[0]),
    "last step only": lambda *path: _learn(*path, steps=[len(path[2]) - 1]),
    "backwards": lambda *path: _learn(*path, steps=range(len(path[2]))[::-1]),
    "all at once": lambda *path: _learn(*path, frozen=True),
    "taken action": lambda *path: _learn(*path, on_policy=True),
    "last step left out": lambda *path: _learn(*path, steps=range(len(path[2]) - 1)),
    "no end": lambda *path: _learn(*path, end=False),
    "no step size": lambda Q, states, actions, goal, eta, gamma: _learn(Q, states, actions, goal, 1.0, gamma),
}


@exercise
def along(answer):
    """What a path teaches, whoever chose its steps"""
    rng, cases = np.random.default_rng(62), []
    settings = ((0.9, True), (0.8, False), (0.7, True), (0.9, True))
    for world, (gamma, arrives) in zip(worlds(4, seed=62, fewest=16), settings, strict=True):
        states, actions = [0], rng.integers(4, size=14)
        for a in actions:
            states.append(int(world.next_state[states[-1], a]))
        newest = max(set(states), key=states.index)  # the tile seen last for the first time; not all are seen
        goal = newest if arrives else min(set(range(world.n_states)) - set(states))
        end = states.index(goal) if arrives else len(actions)
        # The goal's row is not 0, though nothing is ever learned about it: what it says must not matter.
        cases.append((rng.random(world.next_state.shape), np.array(states[: end + 1]), actions[:end], goal, 0.3, gamma))

    def values(*path):
        return _learn(*path), {name: way(*path) for name, way in _OTHER_WAYS.items()}

    def reading(result, right):
        given = array(result)
        if given.ndim == 2 and given.shape[0] == len(right) and given.shape[1] > 4:
            raise Mistake("option's column", columns=given.shape[1])
        return array(given, right.shape)

    compare(answer, cases, values, lambda given, right, *_: worst(given, right), reading=reading)
    return "every step taught the action that was taken, and no step asked whether an option had chosen it."


_BUGS = {  # the targets of all steps, (S, A), from a table with Q = 0 in the goal
    "a": lambda Q, ahead, paid, gamma: paid + (1 - paid) * Q[ahead].max(axis=2),
    "b": lambda Q, ahead, paid, gamma: paid + gamma * Q[ahead].max(axis=2),
    "c": lambda Q, ahead, paid, gamma: paid + gamma * (1 - paid) * Q[ahead].mean(axis=2),
    "d": lambda Q, ahead, paid, gamma: paid + gamma * (1 - paid) * Q.max(axis=1, keepdims=True),
}


def _symptom(rule, world: GridWorld, goal: int, gamma: float) -> str:
    """Which of the four symptoms, as the lesson numbers them, a rule shows in the end; the goal's row is never learned."""
    ahead, others = world.next_state, np.arange(world.n_states) != goal
    paid, at_rest = (ahead == goal).astype(float), {}
    for name, target in (("it", rule), ("right", _BUGS["b"])):
        Q = np.zeros(ahead.shape)
        for _ in range(300):
            Q = np.where(others[:, None], target(Q, ahead, paid, gamma), 0.0)
        at_rest[name] = Q
    Q = at_rest["it"]
    if close(Q, at_rest["right"]):
        return "1"
    if close(Q[others], np.ones_like(Q[others])):
        return "2"
    beside = paid.any(axis=1) & others
    return "4" if np.array_equal(Q.any(axis=1), beside) else "3" if (at_rest["right"] - Q >= 0).all() else ""


@exercise
def bugs(answer):
    """What breaks if a term is wrong?"""
    (world,) = worlds(1, seed=63, fewest=12)
    right = {letter: _symptom(rule, world, goal=0, gamma=0.9) for letter, rule in _BUGS.items()}
    choices(answer, right, "all four")
    return "one bug is harmless, and only because the table began at 0. Begin it at 1, and entering the goal seems worth 1 + γ."


_power = np.linalg.matrix_power


def _arrival(P: np.ndarray, start: int, goal: int, steps: int) -> float:
    """The chance that the chain P has been on the goal within so many steps."""
    P = P.copy()
    P[goal] = np.eye(len(P))[goal]
    return float(_power(P, steps)[start, goal])


def _greedy_chain(Q: np.ndarray, ahead: np.ndarray, tie: bool = True) -> np.ndarray:
    """(S, S) the greedy policy's steps; ties to chance, or to the first action."""
    best = np.equal(Q, Q.max(axis=1, keepdims=True)) if tie else np.eye(4)[Q.argmax(axis=1)]
    return (best[..., None] * np.eye(len(Q))[ahead]).sum(axis=1) / best.sum(axis=1, keepdims=True)


_OTHER_CHANCES: dict[str, Callable[..., Any]] = {
    "first of the ties": lambda P, Q, ahead, *trip: _arrival(_greedy_chain(Q, ahead, False), *trip),
    "wanders": lambda P, Q, ahead, *trip: _arrival(_greedy_chain(0 * Q, ahead), *trip),
    "leaves again": lambda P, Q, ahead, start, goal, n: _power(P, n)[start, goal],
    "counts twice": lambda P, Q, ahead, start, goal, n: sum(_power(P, k)[start, goal] for k in range(1, n + 1)),
    "one step short": lambda P, Q, ahead, start, goal, n: _arrival(P, start, goal, n - 1),
    "one step more": lambda P, Q, ahead, start, goal, n: _arrival(P, start, goal, n + 1),
    "not before": lambda P, Q, ahead, start, goal, n: _arrival(P, start, goal, n) - _arrival(P, start, goal, n - 1),
    "can it": lambda P, Q, ahead, *trip: float(_arrival(P, *trip) > 0),
}


@exercise
def arrival(answer):
    """Does the greedy policy arrive in time?"""
    rng, cases, off = np.random.default_rng(64), [], []
    for k, (world, steps) in enumerate(zip(worlds(4, seed=64), (8, 12, 5, 20), strict=True)):
        ahead = world.next_state
        Q = np.zeros(ahead.shape) if k == 0 else rng.integers(2, size=ahead.shape) / 2  # no knowledge, and many ties
        cases.append((Q, ahead, 0, 2 + k, steps))

    def values(Q, ahead, *trip):
        P = _greedy_chain(Q, ahead)
        return _arrival(P, *trip), {name: other(P, Q, ahead, *trip) for name, other in _OTHER_CHANCES.items()}

    def reading(result, right):
        off.append(abs(scalar(result) - right))
        return scalar(result)

    def search(*_):
        if max(off) < 0.05:
            raise Mistake("simulated", off=max(off))

    def numbers(given, right, *case):
        return {"steps": case[-1], "wanted": right, "given": given}

    compare(answer, cases, values, numbers, reading=reading, search=search)
    return "exact, ties and all, and who has arrived has arrived. An agent that knows nothing is a random walker."


_GOALS = {"a": (1, 11), "b": (4, 4), "c": (9, 2), "d": (9, 7), "e": (11, 11)}  # the lesson's letters on the map


@cache
def _gains() -> dict[str, float]:
    """What four options change in the area under the curve, for each goal, as the lesson's next cell computes it."""
    world = four_rooms()
    exact = extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9))
    four, start = discover_eigenoptions(world, exact, 4, gamma=0.9), (11, 1)
    area = {
        (letter, len(options)): q_learning(world, options, start, goal, 150, 12, 0.1, 0.9, 100, 0).reached.mean()
        for letter, goal in _GOALS.items()
        for options in (four, [])
    }
    return {letter: float(area[letter, 4] - area[letter, 0]) for letter in _GOALS}


@exercise
def hurt(answer):
    """Where do four options hurt?"""
    gains = _gains()
    letters(answer, {letter: gain < -0.02 for letter, gain in gains.items()})
    shown = ", ".join(f"{letter.upper()} {round(gain, 2) + 0.0:+.2f}" for letter, gain in gains.items())
    return f"the area changes by {shown.replace('-', '−')}. Options help where they end, not where they run past."
