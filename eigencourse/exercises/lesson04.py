"""Checks of lesson 04, From a direction to a skill."""

from __future__ import annotations

import numpy as np

from eigencourse.exercises import Mistake, array, call, close, exercise, recognise, worlds
from eigenlib.eigenoptions import follow, learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.representation import successor_representation

_TIE = 1e-9


@exercise(
    "04.1",
    difficulty=1,
    minutes=5,
    mistakes={
        "sign flipped": "you flipped the sign of the whole difference: e(s) − e(s′) pays for going down. It is the "
        "eigenpurpose of −e and equally valid (−e is an eigenvector too, and the paper uses both), but it leads to the "
        "other option. Uphill must earn: e(s′) − e(s).",
        "plus e(s)": "the sign of e(s) is flipped: you add the tile that is left instead of subtracting it. A bump must earn "
        "0, and yours earns 2e(s).",
        "minus e(s′)": "the sign of e(s′) is flipped: where the step leads counts with a plus, where it began with a minus.",
        "e(s′) alone": "you pay e(s′) alone and forgot to subtract e(s). Then a bump on a high tile earns e(s) again and "
        "again, and who stands there has no reason ever to stop.",
        "e(s) alone": "this does not depend on the action. The reward of a step is the height where it ends minus the height "
        "where it began.",
        "no direction": "you took the absolute value (or a square), so a step down pays like a step up. Down must cost as "
        "much as up earns: only then do the rewards of a path cancel.",
        "discounted": "you discounted e(s′) by {gamma:.3g}. Eq. 1 has no γ; it comes in later, before v(s′).",
        "bumps": "bumping into a wall earns {bump:.3g} in yours. Where s′ = s the difference is 0.",
        "else": "add up what a walk earns, and everything but e(end) − e(start) must cancel. For one step yours pays "
        "{given:.3g} instead of {wanted:.3g}.",
    },
)
def purpose(answer):
    """The eigenpurpose's reward for every step"""
    rng = np.random.default_rng(41)
    for world in worlds(4, seed=41):
        ahead, e = world.next_state, rng.normal(size=world.n_states)
        r = array(call(answer, e, ahead), ahead.shape)
        here, there = np.broadcast_to(e[:, None], ahead.shape), e[ahead]
        if close(r, there - here):
            walk = [0]
            actions = rng.integers(world.n_actions, size=50)
            for a in actions:
                walk.append(ahead[walk[-1], a])
            if close(r[walk[:-1], actions].sum(), e[walk[-1]] - e[walk[0]]):
                continue
        wrong = {
            "sign flipped": here - there,
            "plus e(s)": there + here,
            "minus e(s′)": -there - here,
            "e(s′) alone": there,
            "e(s) alone": [here, -here],
            "no direction": [np.abs(there - here), (there - here) ** 2],
        }
        recognise(r, wrong)
        gamma = ((r + here) * there).sum() / (there**2).sum()
        if 0 < gamma < 1 and close(r, gamma * there - here):
            raise Mistake("discounted", gamma=gamma)
        bumps = r[ahead == np.arange(len(e))[:, None]]
        if np.abs(bumps).max(initial=0) > _TIE:
            raise Mistake("bumps", bump=bumps[np.argmax(np.abs(bumps))])
        worst = np.unravel_index(np.argmax(np.abs(r - there + here)), r.shape)
        raise Mistake("else", given=r[worst], wanted=(there - here)[worst])
    return "uphill earns, downhill costs, bumps do neither, and along a path all but e(end) − e(start) cancels."


def _values(reward: np.ndarray, ahead: np.ndarray, gamma: float, sweeps: int = 5_000) -> np.ndarray:
    """(S, A) q by value iteration from v = 0, with `terminate` worth 0; γ may be −γ, as in one of the mistakes."""
    v = np.zeros(len(ahead))
    for _ in range(sweeps):
        q = reward + gamma * v[ahead]
        better = np.maximum(q.max(axis=1), 0)
        if np.abs(better - v).max() <= 1e-13:
            break
        v = better
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


@exercise(
    "04.2",
    difficulty=2,
    minutes=12,
    mistakes={
        "sign flipped": "you flipped the sign of the reward: your option climbs −e. That is equally valid as an option, and "
        "the paper uses it too, because −e is an eigenvector as good as e. But it is the other one: a step from s to s′ "
        "pays e(s′) − e(s).",
        "minus γv": "the sign before γv(s′) is flipped: what can still be earned from s′ on speaks *for* going there.",
        "plus e(s)": "the sign of e(s) is flipped: the reward is e(s′) − e(s), and you add.",
        "worst action": "this takes the worst action where it should take the best: argmin for argmax, or a sign of q.",
        "e(s′) alone": "you pay e(s′) alone and forgot to subtract e(s). On high ground every step then earns, and no option "
        "would ever want to end there.",
        "the tie": "your option goes on where its best action is worth exactly 0. On a hilltop by a wall that action is the "
        "bump: it earns nothing, leads nowhere, and is taken for ever. End where max q ≤ 0, with the equals sign.",
        "never ends": "your option never ends: there is no −1 in it. Where no action is worth more than 0, it must "
        "terminate. (If it says so and yet does not: is there a γ? Without it every way is worth the same, and rounding "
        "keeps the option going.)",
        "ends at once": "your option is −1 everywhere, so it never begins. It ends only where *all* actions are worth at "
        "most 0.",
        "one step ahead": "you look one step ahead only: γv(s′) is missing, or v never left 0. So your option stops on every "
        "hilltop, however low. Repeat until v no longer changes.",
        "too few sweeps": "you stopped after {sweeps} sweeps. Each carries news of a hill one tile further, so tiles further "
        "away have not heard of it yet. Repeat until v no longer changes.",
        "another γ": "your option looks ahead with γ = 0.9 whatever it is told. Use the argument, not the lesson's GAMMA.",
        "no γ": "γ is missing: what lies ahead counts in full, so going soon is no better than going late, and a detour or a "
        "bump costs nothing.",
        "fifth action": "you wrote the fifth action as 4. It is asked for as −1.",
        "no actions": "one of −1, 0, 1, 2, 3 is asked for in each state; yours holds {odd:g}.",
        "else": "in a random world your option {does} in one of the states, although {better} is worth {gap:.2g} more. q(s, a) "
        "is the reward plus γv(s′), and v the largest q or 0.",
    },
)
def option(answer):
    """From an eigenpurpose to an option"""
    rng, cases = np.random.default_rng(42), []
    gammas = (0.5, 0.8, 0.97, 0.7)
    heights = (0, -2, 0.5, -0.7)  # added to e: a constant changes nothing, unless e(s′) is paid alone
    for world, gamma, height in zip(worlds(4, seed=42, fewest=10), gammas, heights, strict=True):
        e, ahead = height + rng.normal(size=world.n_states), world.next_state
        given = array(call(answer, e, ahead, gamma), e.shape)
        cases.append((given, (e, ahead, gamma), _values(_rewards(e, ahead), ahead, gamma)))
    every = np.concatenate([given for given, _, _ in cases])
    if set(every) <= {0, 1, 2, 3, 4} and 4 in every:
        raise Mistake("fifth action")
    if not set(every) <= {-1, 0, 1, 2, 3}:
        raise Mistake("no actions", odd=next(x for x in every if x not in {-1, 0, 1, 2, 3}))
    policies = [(given.astype(int), inputs, q) for given, inputs, q in cases]
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
    for sweeps in range(2, 12):
        few = (_values(_rewards(e, ahead), ahead, gamma, sweeps) for _, (e, ahead, gamma), _ in policies)
        if all(_greedy(policy, q) for (policy, _, _), q in zip(policies, few, strict=True)):
            raise Mistake("too few sweeps", sweeps=sweeps)
    policy, _, q = next(case for case in policies if not _greedy(case[0], case[2]))
    worth = np.where(policy < 0, 0.0, q[np.arange(len(q)), policy])
    gap = np.maximum(q.max(axis=1), 0) - worth
    s = int(np.argmax(gap))
    does = "terminates" if policy[s] < 0 else f"takes action {policy[s]}"
    better = f"action {q[s].argmax()}" if q[s].max() > _TIE else "terminating"
    raise Mistake("else", does=does, better=better, gap=gap[s])


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


@exercise(
    "04.3",
    difficulty=2,
    minutes=8,
    mistakes={
        "a": "look at (a) again: e(s) − e(s′) is the reward that −e would pay. Is −e an eigenvector, and which way does it "
        "lead?",
        "b": "look at (b) again: (e(s′) + 7) − (e(s) + 7). What is left of the 7?",
        "c": "look at (c) again: the option stands in its corner, and to bump into the wall is worth 0 + γ·0. Does it stop?",
        "d": "look at (d) again: with γ = 0 an option sees one step far. What does it do on a low hill next to a high one?",
        "e": "look at (e) again: in its corner, where e is largest and positive, what does a bump earn now? And the next one?",
        "all five": "give one of the numbers 1 to 4 for each of a, b, c, d and e. A number may come twice.",
    },
)
def change(answer):
    """What breaks if one sign or one term changes?"""
    pairs = answer if isinstance(answer, dict) else dict(zip("abcde", answer, strict=False))
    given = {str(key).lower(): str(value).removesuffix(".0") for key, value in pairs.items()}
    if set(given) != set(_CHANGES) or not set(given.values()) <= set("1234"):
        raise Mistake("all five")
    world = GridWorld.named("four_rooms")
    ahead, psi = world.next_state, successor_representation(world.transition_matrix(), 0.9)
    e = extract_eigenpurposes(psi).vectors[:, 1]
    for letter, changed in _CHANGES.items():
        if given[letter] != _symptom(e, ahead, *changed(e, ahead)):
            raise Mistake(letter)
    return "a flipped sign gives another good option, an added constant the same one; what breaks an option is losing its end."


@exercise(
    "04.4",
    difficulty=2,
    minutes=8,
    mistakes={
        "one sign": "you took each eigenvector once. Its negative is an eigenvector too and leads to another option: after "
        "each e comes −e.",
        "twice the same": "column {second} should be column {first} with its sign flipped, and it is the same again. Two "
        "options would be one.",
        "all plus first": "these are the right vectors in the wrong order: all with one sign first, then all with the other. "
        "Each −e comes right after its e.",
        "constant": "you kept the constant vector, which Ψ has on top. All its differences are 0, so it is no option at all; "
        "leave it out and go on with the next.",
        "like the Laplacian": "you sorted the SR like the Laplacian: these are its roughest vectors, which change sign from "
        "tile to tile. Smooth is small in the Laplacian and large in Ψ, and eigh puts the largest last.",
        "rows": "eigh returns the vectors as columns. You took rows, which are no eigenvectors.",
        "lying down": "you returned one vector a row. Shape {wanted} is asked for: one a column.",
        "else": "column {column} is not what it should be: an eigenvector of Ψ, with the {rank}largest eigenvalue after the "
        "constant vector's.",
    },
)
def directions(answer):
    """The first directions, in both signs"""
    flipped = False
    for world, count in zip(worlds(4, seed=45, fewest=9), (4, 5, 2, 6), strict=True):  # none with a repeated eigenvalue
        psi = successor_representation(world.transition_matrix(), 0.9)
        _, vectors = np.linalg.eigh(psi)  # from small to large
        given = array(call(answer, psi, count))
        if given.shape == (count, world.n_states):
            raise Mistake("lying down", wanted=(world.n_states, count))
        given = array(given, (world.n_states, count))
        unit = given / np.maximum(np.linalg.norm(given, axis=0), 1e-12)
        down, pairs = vectors[:, ::-1], np.repeat(np.arange(world.n_states), 2)[:count]
        half = np.tile(np.arange((count + 1) // 2), 2)[:count]

        def are(vectors, unit=unit) -> bool:
            return close(np.abs((unit * vectors).sum(axis=0)), np.ones(len(unit.T)))

        if are(down[:, 1 + pairs]):
            signs = (unit[:, :-1:2] * unit[:, 1::2]).sum(axis=0)
            if (signs > 0).any():
                k = int(np.argmax(signs > 0))
                raise Mistake("twice the same", first=2 * k, second=2 * k + 1)
            library = extract_eigenpurposes(psi).vectors[:, 1 + pairs[::2]]
            flipped = flipped or bool(((unit[:, ::2] * library).sum(axis=0) < 0).any())
            continue
        wrong = {
            "one sign": down[:, 1 : count + 1],
            "all plus first": down[:, 1 + half],
            "constant": [down[:, pairs], down[:, :count], down[:, half]],
            "like the Laplacian": [
                vectors[:, pairs],
                vectors[:, 1 + pairs],
                vectors[:, :count],
                vectors[:, 1 : count + 1],
            ],
            "rows": [
                down.T[:, 1 + pairs],
                vectors.T[:, ::-1][:, 1 + pairs],
                vectors.T[:, pairs],
                vectors.T[:, 1 + pairs],
            ],
        }
        for name, candidates in wrong.items():
            if any(are(one) for one in (candidates if isinstance(candidates, list) else [candidates])):
                raise Mistake(name)
        column = int(np.argmin(np.abs((unit * down[:, 1 + pairs]).sum(axis=0))))
        raise Mistake("else", column=column, rank=("", "second ", "third ")[column // 2])
    if flipped:
        return (
            "some of your pairs begin with the sign that comes second in the library, which is equally valid: nothing in Ψ "
            "says which of e and −e is the plus. Only the pair is determined."
        )
    return "smooth ones first, each with its negative, and no constant vector among them."


@exercise(
    "04.5",
    difficulty=3,
    minutes=12,
    mistakes={
        "length": "a hill, a valley and a higher hill need three tiles at least, and 30 are allowed; yours has {tiles}.",
        "no hill": "tile 0 is no hilltop: its neighbour is at least as high. Let the ground fall first.",
        "nothing higher": "no tile is higher than tile 0, so at no γ is there a reason to leave it.",
        "leaves at once": "already at γ = 0.5 the option leaves tile 0: a way from there is worth {soon:.3g}, more than 0. "
        "Make the valley deeper or longer: what comes k steps later counts γᵏ.",
        "never leaves": "also at γ = 0.95 the option stays on tile 0, where no way is worth more than {late:.3g}. The "
        "valley is too deep or too long even for the patient.",
        "on the way": "at γ = 0.95 it leaves tile 0 but ends on tile {end}, which is not the highest. Take hills off its way.",
    },
)
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
