"""Worlds with options for both kinds of diffusion time (test_diffusion, test_sampled_diffusion)."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import strategies as st
from worlds import worlds

from eigenlib.eigenoptions import Option, discover_eigenoptions, learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.options import subgoal_option
from eigenlib.representation import successor_representation

CONVENTIONS = list(product(["decisions", "steps"], [True, False]))
ROOMS = GridWorld.named("four_rooms")
PURPOSES = extract_eigenpurposes(successor_representation(ROOMS.transition_matrix(), 0.9))
EIGENOPTIONS = discover_eigenoptions(ROOMS, PURPOSES)
everywhere = pytest.mark.parametrize(("cost", "interrupt"), CONVENTIONS)


def option(policy, initiation=None):
    policy = np.array(policy)
    initiation = policy >= 0 if initiation is None else np.array(initiation, dtype=bool)
    return Option(policy=policy, initiation=initiation, termination=policy < 0)


def moves(world, s, a):
    """The definition of a slip: [(chance, next state)] of action a in s."""
    slip = Fraction(world.slip)
    ways = ((1 - slip, a), (slip / 2, (a - 1) % 4), (slip / 2, (a + 1) % 4))
    return [(chance, int(world.next_state[s, turned])) for chance, turned in ways if chance]


@st.composite
def tasks(draw, **choices):
    """A world and up to four options: climbing, going to a subgoal, or following anything that ends, from fewer states."""
    world = draw(worlds(**choices).filter(lambda world: world.n_states > 1))
    n, options = world.n_states, []
    for kind in draw(st.lists(st.sampled_from(["climb", "subgoal", "any"]), max_size=4)):
        if kind == "climb":
            purpose = draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))
            options.append(learn_eigenoption(world, np.array(purpose, dtype=float)))
        elif kind == "subgoal":
            options.append(subgoal_option(world, draw(st.integers(0, n - 1))))
        else:
            policy = np.array(draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n)))
            policy[states_that_never_end(world, policy)] = -1
            able = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
            options.append(option(policy, (policy >= 0) & able))
    return world, options


def states_that_never_end(world, policy):
    """States that no way leads from to an end; and ending there leaves no others that do not end."""
    ends = policy < 0
    for _ in range(world.n_states):
        ends = ends | [
            any(ends[s_next] for _, s_next in moves(world, s, int(policy[s]))) for s in range(world.n_states)
        ]
    return ~ends
