"""Checks of lesson 01, The successor representation."""

from __future__ import annotations

import numpy as np

from eigencourse.exercises import Mistake, array, call, chains, close, exercise, recognise, scalar
from eigenlib.gridworld import GridWorld
from eigenlib.representation import successor_representation


def _room():
    """The lesson's world and the states A, B, C."""
    world = GridWorld.named("dayan")
    return world, *(world.landmarks[letter] for letter in "ABC")


def _steps(T: np.ndarray, start: int, end: int) -> int:
    """The fewest steps from start to end."""
    reach, steps = np.eye(len(T))[start], 0
    while not reach[end]:
        reach, steps = reach @ T, steps + 1
    return steps


@exercise(
    "01.1",
    difficulty=1,
    minutes=3,
    mistakes={
        "through the wall": "that is the way through the wall. The walk has to go around it, over the open top.",
        "that is B": "that many steps take it to B. C is on the other side of the wall.",
        "tiles, not steps": "you seem to have counted the tiles of the path, both ends included. A step goes from one tile "
        "to the next, so there is one step less than there are tiles.",
        "tiles between": "you seem to have counted the tiles between A and C. The step onto C counts too.",
        "not whole": "steps come one at a time: a whole number is asked for.",
        "too soon": "no path is that short. Trace one with your finger: up to the passage, across, and down again.",
        "too late": "there is a shorter way. The question is when the first glow can arrive, not when most of it does.",
    },
)
def first_light(answer):
    """When does C first light up?"""
    world, a, b, c = _room()
    T, given = world.transition_matrix(), scalar(answer)
    steps, straight = _steps(T, a, c), np.abs(world.cells[a] - world.cells[c]).sum()
    if given == steps:
        return f"the glow moves one tile a term, and the way around the wall is {steps} steps long."
    recognise(given, {"through the wall": straight, "that is B": _steps(T, a, b)})
    recognise(given, {"tiles, not steps": steps + 1, "tiles between": steps - 1})
    if np.isfinite(given) and given != round(given):
        raise Mistake("not whole")
    raise Mistake("too soon" if given < steps else "too late")


@exercise(
    "01.2",
    difficulty=2,
    minutes=10,
    mistakes={
        "transposed": "you returned Ψᵀ. Row s must hold the visits of a walk that starts in s, so it adds up to 1/(1−γ); "
        "in yours the columns do.",
        "visit now": "the visits at t = 0 are missing: the walk stands on its first tile before it takes a step. The series "
        "begins with I.",
        "γ on the wrong term": "γ is on the wrong term. Each step is discounted, so γ belongs to T, and to nothing else: "
        "Ψ = I + γTΨ.",
        "entry by entry": "you took the powers of T entry by entry. Two steps are the matrix product T @ T; T**2 only "
        "squares each number.",
        "not inverted": "this is I − γT itself. Ψ is its inverse.",
        "stops early": "your series stops after {terms} terms, and the rest weighs {missing:.2g} in each row. Take terms "
        "until γᵗ/(1−γ) is negligible, or solve for all of them at once.",
        "else": "Ψ must equal I + γTΨ, and for T of shape {shape} and γ = {gamma} yours is off by up to {off:.2g}. A visit is "
        "either now, or after one more random step.",
    },
)
def successor(answer):
    """Ψ from T and γ"""
    for T, gamma in chains(5, seed=12):
        eye = np.eye(len(T))
        psi = array(call(answer, T, gamma), T.shape)
        if close(psi, eye + gamma * T @ psi):
            continue
        exact, t = successor_representation(T, gamma), np.arange(1, 400)[:, None, None]
        entrywise = ((gamma * T) ** t).sum(axis=0)
        wrong = {
            "transposed": exact.T,
            "visit now": [exact - eye, T @ exact],
            "γ on the wrong term": [
                gamma * exact,
                np.linalg.inv(gamma * eye - T),
                np.linalg.inv((1 - gamma) * eye - T),
            ],
            "entry by entry": [1 + entrywise, eye + entrywise, entrywise],
            "not inverted": eye - gamma * T,
        }
        recognise(psi, wrong)
        missing = 1 / (1 - gamma) - psi.sum(axis=1).mean()  # γⁿ/(1−γ) after n terms
        if 0 < missing * (1 - gamma) < 1:
            terms = round(np.log(missing * (1 - gamma)) / np.log(gamma))
            if close(psi, exact - np.linalg.matrix_power(gamma * T, terms) @ exact):
                raise Mistake("stops early", terms=terms, missing=missing)
        raise Mistake("else", shape=T.shape, gamma=gamma, off=np.abs(psi - eye - gamma * T @ psi).max())
    return "on five random walks Ψ = I + γTΨ: every visit is now, or after one more step."


@exercise(
    "01.3",
    difficulty=2,
    minutes=10,
    mistakes={
        "reward now": "this is Ψr, which also pays for standing where you start. On arrival, the first reward is that of the "
        "next tile.",
        "one γ too many": "almost: you took the visit at t = 0 away, but what comes after it is still discounted as if it "
        "came one step later. The first arrival counts in full.",
        "γ instead of a shift": "a factor γ moves every reward in time, the one at t = 0 included. That one must go.",
        "transposed": "you summed over the rows of Ψ. The visits that start in s stand in row s: Ψ r, not Ψᵀ r.",
        "else": "a reward on arrival means v = T(r + γv): the next tile's reward, plus γ times its value. Yours is off by up "
        "to {off:.2g}. Which visits does Ψ count that should not be paid, and what does each of the others weigh?",
    },
)
def arrival_value(answer):
    """The value of wandering when a reward is paid on arrival"""
    rng = np.random.default_rng(13)
    for T, gamma in chains(4, seed=13):
        psi, r = successor_representation(T, gamma), rng.normal(size=len(T))
        v = array(call(answer, psi, r, gamma), r.shape)
        if close(v, T @ (r + gamma * v)):
            continue
        value, columns = psi @ r, psi.T @ r
        wrong = {
            "reward now": value,
            "one γ too many": value - r,
            "γ instead of a shift": [gamma * value, value / gamma],
            "transposed": [columns, columns - r, (columns - r) / gamma],
        }
        recognise(v, wrong)
        raise Mistake("else", off=np.abs(v - T @ (r + gamma * v)).max())
    return "v = T(r + γv) on four random walks, and T was never needed: Ψ knows it."


@exercise(
    "01.4",
    difficulty=1,
    minutes=3,
    mistakes={
        "the other end": "that is what γ → 0 does: then only the shortest path counts. With γ → 1 late visits count as much "
        "as early ones.",
        "as at 0.9": "that is the ratio at γ = 0.9. Looking further ahead changes it: late visits begin to count.",
        "B stays ahead": "you expect B to keep some lead. After a million steps, how much does it matter where the walk began?",
        "C overtakes": "why should C be visited more often than B in the long run? A step from s to s′ is as likely as one "
        "back.",
    },
)
def ratio_limit(answer):
    """Where does Ψ(A,B)/Ψ(A,C) go as γ → 1?"""
    world, a, b, c = _room()
    near, far = (successor_representation(world.transition_matrix(), gamma)[a] for gamma in (0.9, 1 - 1e-9))
    given, limit = scalar(answer), far[b] / far[c]
    if abs(given - limit) <= 0.005:
        return "in the long run the walk forgets where it began, and all tiles are visited equally often."
    if given > 1e4:
        raise Mistake("the other end")
    if abs(given / (near[b] / near[c]) - 1) < 0.1:
        raise Mistake("as at 0.9")
    raise Mistake("B stays ahead" if given > limit else "C overtakes")


@exercise(
    "01.5",
    difficulty=3,
    minutes=15,
    mistakes={
        "no probabilities": "four probabilities are asked for: none below 0, together 1. Yours sum to {total:.3g}.",
        "the old walk": "these are the lesson's own four quarters, with which B is {ratio:.0f} times nearer.",
        "another order": "the order is up, right, down, left. In the order {order} your numbers would do it.",
        "never there": "with these the walk never reaches C. Which directions does the way around the wall need?",
        "else": "B is still {ratio:.3g} times nearer than C. What takes the walk to B, and what to C?",
    },
)
def drift(answer):
    """A walk to which C is nearer than B"""
    world, a, b, c = _room()

    def nearness(chances: np.ndarray) -> tuple[float, float]:
        T = world.transition_matrix(np.tile(chances, (world.n_states, 1)))
        row = successor_representation(T, 0.9)[a]
        return row[b], row[c]

    given = array(answer, (4,))
    if (given < 0).any() or abs(given.sum() - 1) > 1e-6:
        raise Mistake("no probabilities", total=given.sum())
    to_b, to_c = nearness(given)
    if to_c > to_b:
        return f"Ψ(A,B) is now {to_b:.2g} and Ψ(A,C) {to_c:.2g}. Nearness belongs to the walk, not to the map alone."
    if close(given, np.full(4, 0.25)):
        raise Mistake("the old walk", ratio=to_b / to_c)
    for order in ("up, down, left, right", "left, right, up, down", "right, up, left, down"):
        place = [order.split(", ").index(name) for name in ("up", "right", "down", "left")]
        if np.less(*nearness(given[place])):
            raise Mistake("another order", order=order)
    if to_c == 0:
        raise Mistake("never there")
    raise Mistake("else", ratio=to_b / to_c)
