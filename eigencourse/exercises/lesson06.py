"""Checks of lesson 06, And do they earn?"""

from __future__ import annotations

from functools import cache

import numpy as np

from eigencourse.exercises import Mistake, array, call, close, exercise, scalar, worlds
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
_OTHER_STEPS = {  # what is made of a right target
    "only the change": lambda old, target, eta: eta * (target - old),
    "no step size": lambda old, target, eta: target,
    "step size reversed": lambda old, target, eta: eta * old + (1 - eta) * target,
    "old value": lambda old, target, eta: old + eta * target,
    "wrong direction": lambda old, target, eta: old - eta * (target - old),
}


@exercise(
    "06.1",
    difficulty=2,
    minutes=8,
    mistakes={
        "no end": "where the episode has ended you still add γ max Q(s′, ·). Nothing comes after the end, whatever the table "
        "says about that tile: the target is the reward alone.",
        "paid nothing": "where the episode has ended your target is 0. The future is over, but the last reward was paid.",
        "taken action": "you look up in s′ the action that was taken in s. What was done has no say here: the greedy policy "
        "would take the best action in s′, so max.",
        "average": "you average over the actions in s′. That is the value of the random *behaviour*. What is learned about is "
        "the greedy policy: max. This is what off-policy means.",
        "row of s": "you took the best value in s, where the step began. The future begins in s′.",
        "argmax": "argmax says *which* action is best, a number from 0 to 3. What it is worth is asked for: max.",
        "whole table": "you took the largest value of the whole table. From s′ only the row of s′ can be had.",
        "worst": "you took the worst action in s′: min for max.",
        "minus": "the sign before γ is flipped: what can be had from s′ on adds to the reward.",
        "no γ": "γ is missing: what can be had from s′ on lies one step ahead, so it counts γ times.",
        "γ on everything": "γ stands before the reward too. The reward is paid now; only what comes after it is discounted.",
        "no reward": "the reward is missing. It is the only thing that tells the agent anything about the world.",
        "only the change": "this is the change. Return the new value: the old one plus the change.",
        "no step size": "you jumped all the way to the target. Go a fraction step_size of the way.",
        "step size reversed": "step_size and 1 − step_size have changed places: a small step keeps most of the old value.",
        "old value": "the old value is missing from the bracket: go a fraction of the *difference*. Yours only ever adds.",
        "wrong direction": "a sign is flipped: you walk away from the target. The change is target minus old value.",
        "whole table returned": "this is the whole table; return the new value of Q(s, a) only.",
        "else": "for one step the new value should be {wanted:.3g}, and yours is {given:.3g}. Say in words what the step "
        "suggests, then go a fraction step_size of the way there.",
    },
)
def q_update(answer):
    """One step of Q-learning"""
    rng, eta, cases = np.random.default_rng(61), 0.2, []
    for world, gamma in zip(worlds(3, seed=61), (0.9, 0.7, 0.5), strict=True):
        for ended in (False, True):
            Q, reward = rng.normal(size=world.next_state.shape), float(rng.normal())
            s = int(
                np.argmax(world.next_state[:, 1] != np.arange(world.n_states))
            )  # from here a step to the right leads on
            s_next = int(world.next_state[s, 1])
            Q[s_next, rng.choice([0, 2, 3])] = Q[s_next].max() + 1  # so that the best action there is another one
            given = call(answer, Q, s, 1, reward, s_next, ended, eta, gamma)
            if np.shape(given) == Q.shape:
                raise Mistake("whole table returned")
            right = reward + (0 if ended else gamma * Q[s_next].max())
            others = {
                name: target(Q, Q[s], Q[s_next], 1, reward, ended, gamma) for name, target in _OTHER_TARGETS.items()
            }
            cases.append((scalar(given), Q[s, 1], right, others))
    if all(close(given, old + eta * (right - old)) for given, old, right, _ in cases):
        return (
            "a fraction of the way towards the reward plus the best that the table promises, and nothing after the end."
        )
    for name in _OTHER_TARGETS:
        if all(close(given, old + eta * (others[name] - old)) for given, old, _, others in cases):
            raise Mistake(name)
    for name, step in _OTHER_STEPS.items():
        if all(close(given, step(old, right, eta)) for given, old, right, _ in cases):
            raise Mistake(name)
    given, wanted = next((g, w) for g, o, r, _ in cases if not close(g, w := o + eta * (r - o)))
    raise Mistake("else", given=given, wanted=wanted)


def _learn(Q, states, actions, goal, eta, gamma, *, steps=None, frozen=False, on_policy=False) -> np.ndarray:
    """The table after these steps of a path, all by default. frozen: targets from the old table.  on_policy: from the action
    that was taken next."""
    new = Q.copy()
    table = Q if frozen else new
    for t in range(len(actions)) if steps is None else steps:
        s, a, s_next = states[t], actions[t], states[t + 1]
        best = table[s_next, actions[t + 1]] if on_policy and t + 1 < len(actions) else table[s_next].max()
        new[s, a] += eta * ((1.0 if s_next == goal else gamma * best) - new[s, a])
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
}


@exercise(
    "06.2",
    difficulty=2,
    minutes=10,
    mistakes={
        "option's column": "your table has {columns} columns. It is about the four actions only: options have no value here, "
        "they are for exploration. What an option teaches goes to the actions it took.",
        "option as one": "you credited the whole way to its first action, as if the option were one long action. The table is "
        "about single steps: each of them teaches something about the action taken there.",
        "nothing": "you learned nothing. Options have no entry of their own, but every action they take has one.",
        "first step only": "you learned from the first step only. Options run for many, and each one is a step like any other.",
        "last step only": "you learned from the last step only. Each of the steps before it counts as well.",
        "last step left out": "the last step is missing, and here that is the one that may enter the goal.",
        "backwards": "you went through the path from its end. Value then travels all the way at once, which is clever and "
        "is done, but the agent of this lesson learns while it walks: first step first.",
        "all at once": "you computed all targets from the old table. Where the path comes to a tile again, it should already "
        "know what it learned there before.",
        "taken action": "your target uses the action that was taken next. That learns about the behaviour, options included. "
        "The greedy policy is asked about: max, whatever was done next.",
        "else": "after the path one entry should be {wanted:.3g}, and yours is {given:.3g}. Take the steps one after the "
        "other, each with the rule, and write each result into the table before the next.",
    },
)
def along(answer):
    """What a path teaches, whoever chose its steps"""
    rng, eta, cases = np.random.default_rng(62), 0.3, []
    for world, gamma, arrives in zip(worlds(3, seed=62, fewest=16), (0.9, 0.8, 0.7), (True, False, True), strict=True):
        states, actions = [0], rng.integers(4, size=14)
        for a in actions:
            states.append(int(world.next_state[states[-1], a]))
        newest = max(
            set(states), key=states.index
        )  # the tile seen last for the first time; after 14 steps not all are seen
        goal = newest if arrives else min(set(range(world.n_states)) - set(states))
        end = states.index(goal) if arrives else len(actions)
        Q = rng.random(world.next_state.shape)
        Q[goal] = 0
        path = (Q, np.array(states[: end + 1]), actions[:end], goal, eta, gamma)
        given = array(call(answer, *path))
        if given.ndim == 2 and given.shape[0] == len(Q) and given.shape[1] > 4:
            raise Mistake("option's column", columns=given.shape[1])
        cases.append((array(given, Q.shape), path))
    if all(close(given, _learn(*path)) for given, path in cases):
        return "every step taught the action that was taken, and no step asked whether an option had chosen it."
    for name, way in _OTHER_WAYS.items():
        if all(close(given, way(*path)) for given, path in cases):
            raise Mistake(name)
    given, wanted = next((given, _learn(*path)) for given, path in cases if not close(given, _learn(*path)))
    worst = np.unravel_index(np.argmax(np.abs(given - wanted)), given.shape)
    raise Mistake("else", given=given[worst], wanted=wanted[worst])


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


@exercise(
    "06.3",
    difficulty=2,
    minutes=8,
    mistakes={
        "a": "look at (a) again: the tile next to the goal learns that it is worth 1. What does its neighbour learn, and the "
        "tile after that? How would a greedy agent choose then?",
        "b": "look at (b) again: what stands in the row of the goal? It starts at 0, and an episode never goes on from there.",
        "c": "look at (c) again: whose value is it if in s′ all actions count alike? Is that more or less than the best?",
        "d": "look at (d) again: a tile two steps away looks at its own row, which is 0, and gets no reward. What can "
        "it learn?",
        "all four": "give one of the numbers 1 to 4 for each of a, b, c and d.",
    },
)
def bugs(answer):
    """What breaks if a term is wrong?"""
    pairs = answer if isinstance(answer, dict) else dict(zip("abcd", answer, strict=False))
    given = {str(key).lower(): str(value).removesuffix(".0") for key, value in pairs.items()}
    if set(given) != set(_BUGS) or not set(given.values()) <= set("1234"):
        raise Mistake("all four")
    (world,) = worlds(1, seed=63, fewest=12)
    for letter, rule in _BUGS.items():
        if given[letter] != _symptom(rule, world, goal=0, gamma=0.9):
            raise Mistake(letter)
    return "one bug is harmless, and only because the table began at 0. Begin it at 1, and entering the goal seems worth 1 + γ."


def _arrival(P: np.ndarray, start: int, goal: int, steps: int) -> float:
    """The chance that the chain P has been on the goal within so many steps."""
    P = P.copy()
    P[goal] = np.eye(len(P))[goal]
    return float(np.linalg.matrix_power(P, steps)[start, goal])


def _greedy_chain(Q: np.ndarray, ahead: np.ndarray, tie: bool = True) -> np.ndarray:
    """(S, S) the greedy policy's steps; ties to chance, or to the first action."""
    best = np.equal(Q, Q.max(axis=1, keepdims=True)) if tie else np.eye(4)[Q.argmax(axis=1)]
    return (best[..., None] * np.eye(len(Q))[ahead]).sum(axis=1) / best.sum(axis=1, keepdims=True)


_OTHER_CHANCES = {
    "first of the ties": lambda P, Q, ahead, start, goal, n: _arrival(_greedy_chain(Q, ahead, False), start, goal, n),
    "wanders": lambda P, Q, ahead, start, goal, n: _arrival(_greedy_chain(0 * Q, ahead), start, goal, n),
    "leaves again": lambda P, Q, ahead, start, goal, n: np.linalg.matrix_power(P, n)[start, goal],
    "counts twice": lambda P, Q, ahead, start, goal, n: sum(
        np.linalg.matrix_power(P, k)[start, goal] for k in range(1, n + 1)
    ),
    "one step short": lambda P, Q, ahead, start, goal, n: _arrival(P, start, goal, n - 1),
    "one step more": lambda P, Q, ahead, start, goal, n: _arrival(P, start, goal, n + 1),
    "not before": lambda P, Q, ahead, start, goal, n: _arrival(P, start, goal, n) - _arrival(P, start, goal, n - 1),
    "can it": lambda P, Q, ahead, start, goal, n: _arrival(P, start, goal, n) > 0,
}


@exercise(
    "06.4",
    difficulty=3,
    minutes=15,
    mistakes={
        "first of the ties": "where several actions are equally good, yours takes the first (argmax does). An agent that knows "
        "nothing then goes up for ever. Give each of the best the same chance.",
        "wanders": "this is the random walk's chance: all actions alike, whatever Q says. Only the best ones are taken.",
        "leaves again": "you ask whether it *stands* on the goal after the last step. Arrived is arrived: keep who enters the "
        "goal there.",
        "counts twice": "you add up visits to the goal, and who leaves and returns is counted again. Keep who enters the goal "
        "there, or stop counting them.",
        "one step short": "that is one step too few: the last step counts too.",
        "one step more": "that is one step too many.",
        "not before": "this is the chance to arrive with the very last step. Arriving sooner counts as well.",
        "can it": "you say whether it *can* arrive, 0 or 1. How likely is it?",
        "simulated": "this is near, off by up to {off:.2g}, and looks like an average over simulated walks. It can be had "
        "exactly: move probabilities, not walkers.",
        "else": "in one world the chance to arrive within {steps} steps is {wanted:.3g}, and yours is {given:.3g}. Move the "
        "probability of being in each state one step at a time, and keep what enters the goal.",
    },
)
def arrival(answer):
    """Does the greedy policy arrive in time?"""
    rng, cases = np.random.default_rng(64), []
    for k, (world, steps) in enumerate(zip(worlds(4, seed=64), (8, 12, 5, 20), strict=True)):
        ahead = world.next_state
        Q = np.zeros(ahead.shape) if k == 0 else rng.integers(2, size=ahead.shape) / 2  # no knowledge, and many ties
        start, goal = 0, 2 + k
        given = scalar(call(answer, Q, ahead, start, goal, steps))
        cases.append((given, (_greedy_chain(Q, ahead), Q, ahead, start, goal, steps)))
    exact = [_arrival(P, start, goal, n) for _, (P, _, _, start, goal, n) in cases]
    off = [abs(given - chance) for (given, _), chance in zip(cases, exact, strict=True)]
    if max(off) < 1e-6:
        return "exact, ties and all, and who has arrived has arrived. An agent that knows nothing is a random walker."
    for name, other in _OTHER_CHANCES.items():
        if all(close(given, other(*inputs)) for given, inputs in cases):
            raise Mistake(name)
    if max(off) < 0.05:
        raise Mistake("simulated", off=max(off))
    worst = int(np.argmax(off))
    raise Mistake("else", steps=cases[worst][1][-1], wanted=exact[worst], given=cases[worst][0])


_GOALS = {"a": (1, 11), "b": (4, 4), "c": (9, 2), "d": (9, 7), "e": (11, 11)}  # the lesson's letters on the map


@cache
def _gains() -> dict[str, float]:
    """What four options change in the area under the curve, for each goal, as the lesson's next cell computes it."""
    world = GridWorld.named("four_rooms")
    exact = extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9))
    four, start = discover_eigenoptions(world, exact, 4, gamma=0.9), (11, 1)
    area = {
        (letter, len(options)): q_learning(world, options, start, goal, 150, 12, 0.1, 0.9, 100, 0).reached.mean()
        for letter, goal in _GOALS.items()
        for options in (four, [])
    }
    return {letter: float(area[letter, 4] - area[letter, 0]) for letter in _GOALS}


@exercise(
    "06.5",
    difficulty=1,
    minutes=4,
    mistakes={
        "a": "look at A again: one of the four options ends exactly there, and a random walk needs a thousand steps for it.",
        "b": "look at B again: no option ends near it, and hardly a route leads across it. How does an agent get there when "
        "half of its choices run off to a corner?",
        "c": "look at C again: it is three steps from where every episode begins. What can go wrong on three steps?",
        "d": "look at D again: routes lead through the door next to it. But an option does not stop on its way: who runs past "
        "a goal, even one tile from it, has no choice to turn off.",
        "e": "look at E again: one of the four options ends exactly there.",
        "letters": "write the letters of the goals at which four options hurt, such as 'ab'; there are a to e.",
    },
)
def hurt(answer):
    """Where do four options hurt?"""
    if not isinstance(answer, (str, list, tuple, set)) or not all(isinstance(one, str) for one in answer):
        raise Mistake("letters")
    given = {letter for letter in "".join(answer).lower() if letter.isalnum()}
    if not given or not given <= set(_GOALS):
        raise Mistake("letters")
    gains = _gains()
    for letter, gain in gains.items():
        if (gain < -0.02) != (letter in given):
            raise Mistake(letter)
    shown = ", ".join(f"{letter.upper()} {round(gain, 2) + 0.0:+.2f}" for letter, gain in gains.items())
    return f"the area changes by {shown.replace('-', '−')}. Options help where they end, not where they run past."
