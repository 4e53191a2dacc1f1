"""Checks of lesson 04, From a direction to a skill."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eigencourse.exercises import exercise
from eigencourse.exercises.answers import Mistake, array, call
from eigencourse.exercises.compare import choices, close, compare, parallel, worst
from eigencourse.exercises.worlds import corridor, four_rooms, worlds
from eigenlib.eigenoptions import follow, learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.representation import successor_representation

_TIE = 1e-9


@exercise
def purpose(answer):
    """The eigenpurpose's reward for every step"""

    def values(e, ahead):
        here, there = np.broadcast_to(e[:, None], ahead.shape), e[ahead]
        return there - here, {
            "sign flipped": here - there,
            "plus e(s)": there + here,
            "minus e(s′)": -there - here,
            "e(s′) alone": there,
            "e(s) alone": [here, -here],
            "no direction": [np.abs(there - here), (there - here) ** 2],
        }

    def search(r, e, ahead):
        here, there = np.broadcast_to(e[:, None], ahead.shape), e[ahead]
        gamma = ((r + here) * there).sum() / (there**2).sum()
        if 0 < gamma < 1 and close(r, gamma * there - here):
            raise Mistake("discounted", gamma=gamma)
        bumps = r[ahead == np.arange(len(e))[:, None]]
        if np.abs(bumps).max(initial=0) > _TIE:
            raise Mistake("bumps", bump=bumps[np.argmax(np.abs(bumps))])

    rng = np.random.default_rng(41)
    cases = [(rng.normal(size=world.n_states), world.next_state) for world in worlds(4, seed=41)]
    compare(answer, cases, values, lambda r, right, *_: worst(r, right), search=search)
    return "uphill earns, downhill costs, bumps do neither, and along a path all but e(end) − e(start) cancels."


def _sweeps(reward: np.ndarray, ahead: np.ndarray, gamma: float) -> Iterator[np.ndarray]:
    """(S, A) q after each sweep of value iteration from v = 0, with `terminate` worth 0, until v no longer changes."""
    v = np.zeros(len(ahead))
    for _ in range(5_000):
        q = reward + gamma * v[ahead]
        yield q
        better = np.maximum(q.max(axis=1), 0)
        if np.abs(better - v).max() <= 1e-13:
            return
        v = better


def _values(reward: np.ndarray, ahead: np.ndarray, gamma: float) -> np.ndarray:
    """(S, A) q in the end; γ may be −γ, as in one of the mistakes."""
    *_, q = _sweeps(reward, ahead, gamma)
    return q


def _fits(policy: np.ndarray, q: np.ndarray, ends: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether a policy terminates (−1) exactly where `ends` says, and elsewhere takes an action that has the wanted q."""
    taken = q[np.arange(len(q)), policy]
    return bool(((policy < 0) == ends).all() and (ends | (np.abs(taken - wanted) <= _TIE)).all())


def _greedy(policy: np.ndarray, q: np.ndarray) -> bool:
    """The best action where it is worth more than 0, whichever of equally good ones."""
    best = q.max(axis=1)
    return _fits(policy, q, best <= _TIE, best)


def _rewards(e: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    return e[ahead] - e[:, None]


# For each mistake the q that it leads to; a policy that is greedy for it, on all worlds, gives the mistake away.
_OTHER_VALUES = {
    "sign flipped": lambda e, ahead, gamma: _values(-_rewards(e, ahead), ahead, gamma),
    "minus γv": lambda e, ahead, gamma: _values(_rewards(e, ahead), ahead, -gamma),
    "plus e(s)": lambda e, ahead, gamma: _values(e[ahead] + e[:, None], ahead, gamma),
    "e(s′) alone": lambda e, ahead, gamma: _values(e[ahead], ahead, gamma),
    "one step ahead": lambda e, ahead, gamma: _rewards(e, ahead),
    "another γ": lambda e, ahead, gamma: _values(_rewards(e, ahead), ahead, 0.9),
}


@exercise
def option(answer):
    """From an eigenpurpose to an option"""
    rng = np.random.default_rng(42)
    # The heights are added to e: a constant changes nothing, unless e(s′) is paid alone.
    mazes = worlds(2, seed=42, fewest=10) + worlds(2, seed=43, fewest=10)
    settings = zip(mazes, (0.5, 0.8, 0.97, 0.7), (0, -2, 0.5, -0.7), strict=True)
    cases: list[tuple] = [
        (height + rng.normal(size=world.n_states), world.next_state, gamma) for world, gamma, height in settings
    ]
    # A hill at the end of a long plain: who stops after a few sweeps, or at a change below 0.001, never hears of it.
    cases.append((np.arange(75) // 74.0, corridor(75).next_state, 0.9))
    rooms = four_rooms()
    smooth = extract_eigenpurposes(successor_representation(rooms.transition_matrix(), 0.9), 4).vectors
    cases.append((smooth[:, 3] - 0.7, rooms.next_state, 0.8))
    given = [array(call(answer, *case), case[0].shape) for case in cases]
    goals = [_values(_rewards(e, ahead), ahead, gamma) for e, ahead, gamma in cases]
    every = np.concatenate(given)
    for shifted in (lambda one: one - 1, lambda one: np.where(one > 0, one - 1, -1)):
        if 4 in every and all(_greedy(shifted(one).astype(int), q) for one, q in zip(given, goals, strict=True)):
            raise Mistake("counted from one")
    if set(every) <= {0, 1, 2, 3, 4} and 4 in every:
        raise Mistake("fifth action")
    if not set(every) <= {-1, 0, 1, 2, 3}:
        raise Mistake("no actions", odd=next(x for x in every if x not in {-1, 0, 1, 2, 3}))
    policies = [(one.astype(int), case, q) for one, case, q in zip(given, cases, goals, strict=True)]
    if all(_greedy(policy, q) for policy, _, q in policies):
        return "it takes the best action where one pays, and ends where none does. So it always ends."
    if (every < 0).all():
        raise Mistake("ends at once")
    for name, values in _OTHER_VALUES.items():
        if all(_greedy(policy, values(*inputs)) for policy, inputs, _ in policies):
            raise Mistake(name)
    if all(_fits(policy, q, q.max(axis=1) < -_TIE, q.max(axis=1)) for policy, _, q in policies):
        raise Mistake("the tie")
    if (every >= 0).all():
        raise Mistake("never ends")
    if all((e[policy < 0] == e.max()).all() for policy, (e, _, _), _ in policies):  # or nowhere, by rounding
        raise Mistake("no γ")
    if all(_fits(policy, q, q.max(axis=1) <= _TIE, q.min(axis=1)) for policy, _, q in policies):
        raise Mistake("worst action")
    few = [_heard(policy, *inputs) for policy, inputs, _ in policies]
    if all(few):
        failed = next(k for k, (policy, _, q) in enumerate(policies) if not _greedy(policy, q))
        raise Mistake("too few sweeps", sweeps=few[failed])
    policy, _, q = next(case for case in policies if not _greedy(case[0], case[2]))
    worth = np.where(policy < 0, 0.0, q[np.arange(len(q)), policy])
    gap = np.maximum(q.max(axis=1), 0) - worth
    s = int(np.argmax(gap))
    does = "terminates" if policy[s] < 0 else f"takes action {policy[s]}"
    better = f"action {q[s].argmax()}" if q[s].max() > _TIE else "terminating"
    raise Mistake("else", does=does, better=better, gap=gap[s])


def _heard(policy: np.ndarray, e: np.ndarray, ahead: np.ndarray, gamma: float) -> int:
    """After how many sweeps a policy is greedy, 0 if after none."""
    return next((n for n, q in enumerate(_sweeps(_rewards(e, ahead), ahead, gamma), 1) if _greedy(policy, q)), 0)


_CHANGES = {  # what the lesson's option becomes: the q it then goes by, and from which worth on it goes on
    "a": lambda e, ahead: (_values(-_rewards(e, ahead), ahead, 0.9), _TIE),
    "b": lambda e, ahead: (_values(_rewards(e + 7, ahead), ahead, 0.9), _TIE),
    "c": lambda e, ahead: (_values(_rewards(e, ahead), ahead, 0.9), -_TIE),
    "d": lambda e, ahead: (_values(_rewards(e, ahead), ahead, 0.0), _TIE),
    "e": lambda e, ahead: (_values(e[ahead], ahead, 0.9), _TIE),
}


def _symptom(e: np.ndarray, ahead: np.ndarray, q: np.ndarray, above: float) -> str:
    """Which of the four symptoms, as the lesson numbers them, an option shows that goes on where q is above so much."""
    policy = np.where(q.max(axis=1) > above, q.argmax(axis=1), -1)
    if _greedy(policy, _values(_rewards(e, ahead), ahead, 0.9)):
        return "1"
    if _greedy(policy, _values(_rewards(-e, ahead), ahead, 0.9)):
        return "2"
    at = np.arange(len(e))
    for _ in range(len(e)):  # a way that ends never comes to a tile twice
        at = np.where(policy[at] < 0, at, ahead[at, policy[at]])
    hilltop = (e[ahead] <= e[:, None]).all(axis=1)
    return "4" if np.array_equal(policy < 0, hilltop) else "3" if (policy[at] >= 0).any() else ""


@exercise
def change(answer):
    """What breaks if one sign or one term changes?"""
    ahead, psi = four_rooms().next_state, successor_representation(four_rooms().transition_matrix(), 0.9)
    e = extract_eigenpurposes(psi).vectors[:, 1]
    right = {letter: _symptom(e, ahead, *changed(e, ahead)) for letter, changed in _CHANGES.items()}
    choices(answer, right, "all five")
    return "a flipped sign gives another good option, an added constant the same one; what breaks an option is losing its end."


@exercise
def directions(answer):
    """The first directions, in both signs"""

    def values(psi, count):
        up = np.linalg.eigh(psi)[1]  # from small to large
        down, pairs = up[:, ::-1], np.repeat(np.arange(len(psi)), 2)[:count]
        half = np.tile(np.arange((count + 1) // 2), 2)[:count]
        return down[:, 1 + pairs], {
            "one sign": down[:, 1 : count + 1],
            "all plus first": down[:, 1 + half],
            "constant": [down[:, pairs], down[:, :count], down[:, half]],
            "like the Laplacian": [up[:, one] for one in (pairs, 1 + pairs, np.arange(count), np.arange(count) + 1)],
            "rows": [*(rows[:, 1 + pairs] for rows in (down.T, up.T[:, ::-1], up.T)), up.T[:, pairs]],
        }

    def fits(given, right, *_):
        return parallel(given, right) and ((given[:, :-1:2] * given[:, 1::2]).sum(axis=0) < 0).all()

    def reading(result, right):
        given = array(result)
        if given.shape == right.shape[::-1] != right.shape:
            raise Mistake("lying down", wanted=right.shape)
        return array(given, right.shape)

    def search(given, psi, count):
        if parallel(given, values(psi, count)[0]):
            first = 2 * int(np.argmax((given[:, :-1:2] * given[:, 1::2]).sum(axis=0) > 0))
            raise Mistake("twice the same", first=first, second=first + 1)
        own = (given * (psi @ given)).sum(axis=0) / np.maximum((given**2).sum(axis=0), 1e-12)
        if close(psi @ given, given * own) and np.linalg.norm(given, axis=0).min() > 1e-9:
            raise Mistake("not sorted")

    def numbers(given, right, *_):
        column = next(k for k in range(right.shape[1]) if not parallel(given[:, k : k + 1], right[:, k : k + 1]))
        return {"column": column, "rank": ("", "second ", "third ")[column // 2]}

    chosen = worlds(4, seed=45, fewest=9)  # none with a repeated eigenvalue
    cases = [
        (successor_representation(world.transition_matrix(), 0.9), n)
        for world, n in zip(chosen, (4, 5, 2, 6), strict=True)
    ]
    found = compare(answer, cases, values, numbers, accept=fits, same=parallel, reading=reading, search=search)
    library = (extract_eigenpurposes(psi).vectors[:, 1 : 1 + (count + 1) // 2] for psi, count in cases)
    if any(((given[:, ::2] * own).sum(axis=0) < 0).any() for given, own in zip(found, library, strict=True)):
        return (
            "some of your pairs begin with the sign that comes second in the library, which is equally valid: nothing in Ψ "
            "says which of e and −e is the plus. Only the pair is determined."
        )
    return "smooth ones first, each with its negative, and no constant vector among them."


@exercise
def landscape(answer):
    """A landscape in which γ decides between two hills"""
    e = array(answer).ravel()
    if not 3 <= len(e) <= 30:
        raise Mistake("length", tiles=len(e))
    if e[1] >= e[0]:
        raise Mistake("no hill")
    if e.max() <= e[0]:
        raise Mistake("nothing higher")
    corridor = GridWorld.from_text("." * len(e))
    hasty, patient = (learn_eigenoption(corridor, e, gamma) for gamma in (0.5, 0.95))
    # What the way from tile 0 to each other tile is worth: all ways lead to the right.
    soon, late = (np.cumsum(np.diff(e) * gamma ** np.arange(len(e) - 1)) for gamma in (0.5, 0.95))
    if not hasty.termination[0]:
        raise Mistake("leaves at once", soon=soon.max())
    if patient.termination[0]:
        raise Mistake("never leaves", late=late.max())
    end = int(follow(corridor, patient, 0)[-1])
    if e[end] < e.max():
        raise Mistake("on the way", end=end)
    worth = f"{soon[end - 1]:.2g} at γ = 0.5 and {late[end - 1]:.2g} at γ = 0.95".replace("-", "−")
    return f"the way to the top is worth {worth}. The γ of an option is its patience."
