"""Checks of lesson 05, Do these skills help an explorer?"""

from __future__ import annotations

from functools import cache

import numpy as np

from eigencourse.exercises import Mistake, array, call, chains, close, exercise, recognise, scalar, worlds
from eigenlib.diffusion import Cost, DiffusionTime, diffusion_time
from eigenlib.eigenoptions import discover_eigenoptions, learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.representation import successor_representation


def _hitting(P: np.ndarray, goal: int, gamma: float = 1.0) -> np.ndarray:
    """(S,) expected steps of the chain P to the goal; with γ, discounted ones."""
    others = np.arange(len(P)) != goal
    h = np.zeros(len(P))
    h[others] = np.linalg.solve(np.eye(others.sum()) - gamma * P[np.ix_(others, others)], np.ones(others.sum()))
    return h


@exercise(
    "05.1",
    difficulty=1,
    minutes=3,
    mistakes={
        "shortest way": "that is about what somebody needs who knows the way. This walk does not; most of its steps take back "
        "what others gained.",
        "every tile once": "that would be about one visit to every tile. A random walk does not tick tiles off: it comes "
        "back to the same ones.",
        "distance squared": "a walk on an open line would need about the square of the distance, and you are near that. But "
        "there are two doors on the way, and it must stumble into each of them.",
        "too few": "it takes longer. A walk moves back and forth, so it needs about the square of the distance on an open "
        "line, and here it must also find two doors.",
        "too many": "it is not that bad. There are 104 tiles, and in the long run the walk stands on each of them equally "
        "often, every 104 steps on average.",
    },
)
def far_corner(answer):
    """How long does a random walk take from corner to corner?"""
    world, given = GridWorld.named("four_rooms"), scalar(answer)
    start, goal = (int(world.state_at[cell]) for cell in ((11, 1), (1, 11)))
    steps, distance = _hitting(world.transition_matrix(), goal)[start], 20
    if steps / 2 <= given <= 2 * steps:
        return f"within a factor of two: it is {steps:,.0f} steps, for a way of {distance}."
    if given <= 2 * distance:
        raise Mistake("shortest way")
    if abs(given - world.n_states) <= 10:
        raise Mistake("every tile once")
    if abs(given - distance**2) <= 50:
        raise Mistake("distance squared")
    raise Mistake("too few" if given < steps else "too many")


@exercise(
    "05.2",
    difficulty=2,
    minutes=10,
    mistakes={
        "goal left in": "the goal's row is still in the system. Then nothing ends the walk, every row of I − P sums to 0, and "
        "the equations have no solution: the solver fails or returns noise. Take out row and column of the goal.",
        "pseudo-inverse": "you made the singular system solvable by force (pinv or lstsq). It answers another question. Take "
        "row and column of the goal out, and an ordinary solve will do.",
        "way back": "h is right except at the goal, where you have {back:.3g}: the steps until the walk comes *back*. Whoever "
        "is there has arrived: 0.",
        "from the goal": "these are the times from the goal to everywhere else. Where a step back is not as likely as the step "
        "forth, they differ from the times to it.",
        "transposed": "you used Pᵀ. Row s of P holds the steps that start in s, and h(s) averages over those.",
        "discounted": "a discount has got in. Every step counts in full here, however late; the sum stays finite because the "
        "walk ends.",
        "stops early": "you iterated {sweeps} times and stopped too soon: each sweep only counts one step more. Go on until h "
        "no longer changes, or solve for it.",
        "step lost": "this is one less than it should be everywhere but at the goal: the step onto the goal counts too.",
        "else": "h(s) must be 1 + Σ P(s, s′) h(s′) wherever s is not the goal, and in one state yours is {given:.4g} instead "
        "of {wanted:.4g}.",
    },
)
def hitting(answer):
    """Expected steps to a goal"""
    for (P, _), share in zip(chains(4, seed=52), (0.0, 0.4, 0.7, 0.99), strict=True):
        goal = int(share * len(P))
        eye, ones = np.eye(len(P)), np.ones(len(P))
        try:
            h = array(call(answer, P, goal), (len(P),))
        except Mistake as mistake:
            if mistake.name == "raised" and "singular" in mistake.numbers["error"].lower():
                raise Mistake("goal left in") from None
            raise
        elsewhere = np.arange(len(P)) != goal
        if h[goal] == 0 and close(h[elsewhere], (1 + P @ h)[elsewhere], 1e-5):
            continue
        exact = _hitting(P, goal)
        if np.abs(h).max() > 1e9:
            raise Mistake("goal left in")
        if close(h[elsewhere], exact[elsewhere], 1e-5) and close(h[goal], 1 + P[goal] @ exact):
            raise Mistake("way back", back=h[goal])
        wrong = {
            "pseudo-inverse": np.linalg.pinv(eye - P) @ ones,
            "from the goal": [np.array([_hitting(P, g)[goal] for g in range(len(P))])],
            "transposed": _hitting(P.T, goal),
            "discounted": [_hitting(P, goal, gamma) for gamma in (0.9, 0.95, 0.99)],
            "step lost": [np.where(elsewhere, exact - 1, 0)],
        }
        recognise(h, wrong)
        sweep = np.zeros(len(P))
        for sweeps in range(1, 2_000):
            sweep = np.where(elsewhere, 1 + P @ sweep, 0)
            if close(h, sweep, 1e-9):
                raise Mistake("stops early", sweeps=sweeps)
        worst = int(np.argmax(np.abs(h - exact)))
        raise Mistake("else", given=h[worst], wanted=exact[worst])
    return "h = 1 + Ph away from the goal and 0 on it, for four walks, and not one step was simulated."


def _end(ahead: np.ndarray, policy: np.ndarray, goal: int, interrupt: bool, most: int) -> np.ndarray:
    """(S,) where the option leads from each state in at most so many steps; if interrupted it stops at the goal."""
    at = np.arange(len(ahead))
    for step in range(min(most, len(ahead))):
        running = (policy[at] >= 0) & ~(interrupt & (at == goal) & (step > 0))
        at = np.where(running, ahead[at, policy[at]], at)
    return at


def _chain(ahead, policy, goal, *, chance=0.2, everywhere=False, interrupt=True, most=1_000) -> np.ndarray:
    """(S, S) where the next decision is taken; the rest are ways to get it wrong. chance: the option's, where it can start."""
    eye, end = np.eye(len(ahead)), _end(ahead, policy, goal, interrupt, most)
    weight = np.where((policy >= 0) | everywhere, chance, 0.0)[:, None]
    return (1 - weight) * eye[ahead].mean(axis=1) + weight * eye[end]


def _one_short(ahead, policy, goal) -> np.ndarray:
    last = policy[ahead[np.arange(len(ahead)), policy]] < 0  # where the option's next step would be its last
    weight = np.where(policy >= 0, 0.2, 0.0)[:, None]
    eye, end = np.eye(len(ahead)), _end(ahead, np.where(last, -1, policy), goal, True, 1_000)
    return (1 - weight) * eye[ahead].mean(axis=1) + weight * eye[end]


_OTHER_CHAINS = {
    "runs across": lambda *inputs: _chain(*inputs, interrupt=False),
    "one step": lambda *inputs: _chain(*inputs, most=1),
    "where it ends": lambda *inputs: _chain(*inputs, everywhere=True),
    "half and half": lambda *inputs: _chain(*inputs, chance=0.5),
    "actions only": lambda *inputs: _chain(*inputs, chance=0.0),
    "option always": lambda *inputs: _chain(*inputs, chance=1.0),
    "one short": _one_short,
}


@exercise(
    "05.3",
    difficulty=3,
    minutes=15,
    mistakes={
        "runs across": "your option runs on across the goal. Whoever stands on the goal has reached it: an option that "
        "crosses it is interrupted there.",
        "one step": "you let the option take a single step. One *decision* for it runs it to its end, however many steps that "
        "takes. Steps and decisions are different currencies.",
        "where it ends": "where the option ends (policy −1) it cannot be chosen, and there are four choices, not five. Yours "
        "chooses it all the same and stays put.",
        "half and half": "you toss a coin between actions and option. The choice is uniform among all five: the option has "
        "probability 1/5.",
        "actions only": "this is the walk without the option. Where it can start it is a fifth choice.",
        "option always": "you always take the option where it can start. It is one choice among five there.",
        "not divided": "your rows do not sum to 1. Divide by the number of choices: five where the option can start, "
        "else four.",
        "transposed": "your columns sum to 1, and the rows should: row s says where a decision in s leads.",
        "one short": "your option stops one step before its end.",
        "else": "from one state the next decision should be taken at state {place} with probability {wanted:.3g}, and yours "
        "says {given:.3g}. List the choices there, follow each to where it stops, and give each the same weight.",
    },
)
def decision_chain(answer):
    """The walk over decisions"""
    rng, cases = np.random.default_rng(53), []
    for world in worlds(4, seed=53, fewest=12):
        ahead, e = world.next_state, rng.normal(size=world.n_states)
        policy = learn_eigenoption(world, np.cumsum(e) / 5, 0.95).policy
        crossed = np.bincount(ahead[np.arange(len(e)), policy][policy >= 0], minlength=len(e)) * (policy >= 0)
        goal = int(np.argmax(crossed))  # a tile that the option often runs across
        given = array(call(answer, ahead, policy, goal), (len(e), len(e)))
        rows = np.arange(len(e)) != goal  # what happens after the arrival does not matter
        cases.append((given, rows, (ahead, policy, goal)))

    def all_are(wanted) -> bool:
        return all(close(given[rows], wanted(*inputs)[rows]) for given, rows, inputs in cases)

    if all_are(_chain):
        return "five choices where the option can start and four elsewhere, and each of them runs until it stops."
    for name, wanted in _OTHER_CHAINS.items():
        if all_are(wanted):
            raise Mistake(name)
    if all(close(given.T[rows], _chain(*inputs)[rows]) for given, rows, inputs in cases):
        raise Mistake("transposed")
    if not all(close(given[rows].sum(axis=1), np.ones(rows.sum())) for given, rows, _ in cases):
        raise Mistake("not divided")
    given, exact = next(
        (given[rows], _chain(*inputs)[rows])
        for given, rows, inputs in cases
        if not close(given[rows], _chain(*inputs)[rows])
    )
    s, place = np.unravel_index(np.argmax(np.abs(given - exact)), given.shape)
    raise Mistake("else", place=place, wanted=exact[s, place], given=given[s, place])


@cache
def _diffusion(count: int, cost: Cost = "decisions", interrupt: bool = True) -> DiffusionTime:
    """The lesson's four rooms with the first eigenoptions of the exact SR."""
    world = GridWorld.named("four_rooms")
    exact = extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9))
    options = discover_eigenoptions(world, exact, count, gamma=0.9) if count else []
    return diffusion_time(world, options, cost, interrupt, matrix=True)


@exercise(
    "05.4",
    difficulty=1,
    minutes=3,
    mistakes={
        "both fall": "you expect both to fall, as one would hope. More than half of the trips do become shorter. But think of "
        "the tiles where neither option leads: how does one get there when a third of all decisions pulls away? What do "
        "such trips do to the *mean*?",
        "both rise": "you expect both to rise. Some trips become far longer, which is enough to raise the mean; but the median "
        "asks only for the trip in the middle, and what do the options do to that one?",
        "the other way round": "it is the other way round. Which of the two averages feels a few very long trips?",
        "no change": "neither stays as it is: options shorten many trips and lengthen others.",
        "two factors": "two numbers above 0 are asked for: by which factor does each average change? Below 1 is shorter, above "
        "1 longer.",
    },
)
def first_pair(answer):
    """What do two options do to the mean, and to the median?"""
    factors = array([answer.get("mean"), answer.get("median")] if isinstance(answer, dict) else answer, (2,))
    if (factors <= 0).any():
        raise Mistake("two factors")
    if (factors == 1).any():
        raise Mistake("no change")
    none, two = _diffusion(0), _diffusion(2)
    exact = np.array([two.mean / none.mean, two.median / none.median])
    if ((factors > 1) == (exact > 1)).all():
        return (
            f"the mean becomes {exact[0]:,.0f} times what it was, the median {exact[1]:.2f} times. You said {factors[0]:,g} "
            f"and {factors[1]:,g}; the directions are what counts."
        )
    if (factors > 1).all():
        raise Mistake("both rise")
    raise Mistake("both fall" if (factors < 1).all() else "the other way round")


_HOLDS = {
    "a": "look at (a) again: what does one decision cost in steps, at the least?",
    "b": "look at (b) again: the median fell from 679 to 182 decisions. But among these are whole options; how many steps may "
    "the average decision take when two of six choices run from corner to corner?",
    "c": "look at (c) again: an option is paid in full now, so the gain must become smaller. But the mean was 17 times "
    "shorter; that is a lot to lose.",
    "d": "look at (d) again: if options run on across the goal, the agent must take a decision on exactly that tile. How often "
    "does one with 32 options stop in the middle of a room?",
    "e": "look at (e) again: a walk that takes a decision on the goal stands on it. Can it have stood there sooner? And later?",
}


@exercise(
    "05.5",
    difficulty=2,
    minutes=6,
    mistakes=_HOLDS | {"letters": "write the letters of the sentences that hold, such as 'ab'; there are a to e."},
)
def conventions(answer):
    """What breaks if the convention changes?"""
    if not isinstance(answer, (str, list, tuple, set)) or not all(isinstance(one, str) for one in answer):
        raise Mistake("letters")
    given = {letter for letter in "".join(answer).lower() if letter.isalnum()}
    if not given or not given <= set(_HOLDS):
        raise Mistake("letters")
    none, two, many = _diffusion(0), _diffusion(2, "steps"), _diffusion(32)
    steps, across = _diffusion(32, "steps"), _diffusion(32, "decisions", False)
    holds = {
        "a": _no_shorter(steps, many),
        "b": two.median < none.median,
        "c": steps.mean < none.mean,
        "d": across.median < none.median,
        "e": _no_shorter(across, many),
    }
    for letter, true in holds.items():
        if true != (letter in given):
            raise Mistake(letter)
    return (
        f"in steps two options lengthen even the median, to {two.median:.0f}, and 32 leave a mean of {steps.mean:.0f}; without "
        f"interruption their median is {across.median:,.0f}. Say what you count before you say what helps."
    )


def _no_shorter(these: DiffusionTime, those: DiffusionTime) -> bool:
    """Whether each pair's time is at least the other's, up to rounding."""
    assert these.matrix is not None
    assert those.matrix is not None
    return bool((these.matrix >= (1 - 1e-9) * those.matrix).all())
