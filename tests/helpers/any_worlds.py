"""Seeded random worlds of every kind that `outcomes` can describe, and their probabilities written out plainly."""

import numpy as np
from mazes import random_maze
from worlds import place_door

from eigenlib.finite_world import FiniteWorld
from eigenlib.gridworld import GridWorld
from eigenlib.worlds import World


class Windy(GridWorld):
    """After every step a wind carries one cell up, more often in some columns than in others."""

    def outcomes(self):
        wind = np.linspace(0, 0.8, self.free.shape[1])[self.cells[:, 1]]  # (S,)
        pairs = []
        for probability, states in super().outcomes():
            pairs += [(probability * (1 - wind[:, None] + 0 * states), states)]
            pairs += [(probability * (wind[:, None] + 0 * states), self.next_state[states, 0])]
        return pairs


class Portals(GridWorld):
    """Some actions lead somewhere else, always: one outcome, which the map does not show."""

    def outcomes(self):
        rng = np.random.default_rng(self.n_states)
        return [
            (
                1.0,
                np.where(
                    rng.random(self.next_state.shape) < 0.2, rng.permutation(self.n_states)[:, None], self.next_state
                ),
            )
        ]


class Kings(GridWorld):
    """Eight actions: the four moves and the four moves done twice, which slip back to one step by a chance of their own."""

    n_actions = 8

    def outcomes(self):
        one, rng = self.next_state, np.random.default_rng(self.n_states)
        two = np.stack([one[one[:, a], a] for a in range(4)], axis=1)
        chance = np.concatenate([np.ones_like(one, dtype=float), rng.random(one.shape)], axis=1)
        return [(chance, np.concatenate([one, two], axis=1)), (1 - chance, np.concatenate([one, one], axis=1))]


class Lopsided(GridWorld):
    """Slips to the left only, and by action more often: outcomes that permute the moves, and yet no uniform walk."""

    def outcomes(self):
        chance = np.tile([0.1, 0.3, 0.6, 0.9], (self.n_states, 1))
        return [(1 - chance, self.next_state), (chance, np.roll(self.next_state, 1, axis=1))]


class Spinner(World):
    """No map, three actions: on, back, or anywhere by equal chances, with different odds in every state."""

    n_actions = 3

    def __init__(self, n_states):
        self.n_states = n_states

    def outcomes(self):
        s = np.arange(self.n_states)
        on, back = (np.stack([s + 1, s - 1, s + shift], axis=1) % self.n_states for shift in (2, 3))
        odds = np.repeat((s[:, None] + 1) / (self.n_states + 1), 3, axis=1)
        return [(odds, on), (1 - odds, back)]


class Named(Spinner):
    """The same with one deterministic outcome: its fast way has nothing to do with maps."""

    def outcomes(self):
        return [(1, super().outcomes()[0][1].astype(np.int32))]


def drawn(rng, kind=GridWorld, slip=0.0, doors=0):
    grid = np.array([list(line) for line in random_maze(rng, 3, 4, 0.15).splitlines()])
    for _ in range(doors):
        place_door(grid, (rng.integers(3), rng.integers(4)), int(rng.integers(4)))
    return kind.from_text("\n".join("".join(line) for line in grid), slip=slip)


def dense(rng, n_states, n_actions, successors):
    """Random probabilities, most of them zero; the odd state leads nowhere else."""
    table = np.zeros((n_actions, n_states, n_states))
    for a, s in np.ndindex(n_actions, n_states):
        table[a, s, rng.choice(n_states, size=successors, replace=False)] = rng.dirichlet(np.ones(successors))
    return FiniteWorld(table)


def any_worlds(seed=0, rounds=2):
    """{label: world} of two states and more."""
    rng, found = np.random.default_rng(seed), {}
    for k in range(rounds):
        found |= {
            f"plain {k}": drawn(rng),
            f"slip {k}": drawn(rng, slip=(0.1, 0.5, 1.0)[k % 3]),
            f"doors {k}": drawn(rng, doors=6),
            f"doors and slip {k}": drawn(rng, slip=0.3, doors=6),
            f"wind {k}": drawn(rng, Windy),
            f"wind and slip {k}": drawn(rng, Windy, slip=0.2),
            f"lopsided {k}": drawn(rng, Lopsided),
            f"portals {k}": drawn(rng, Portals),
            f"kings {k}": drawn(rng, Kings),
            f"spinner {k}": Spinner(4 + k),
            f"one outcome, three actions {k}": Named(4 + k),
            f"table {k}": dense(rng, 6, 2 + k, 3),
            f"full table {k}": dense(rng, 5, 3, 5),
            f"one action {k}": dense(rng, 5, 1, 2),
            f"a table that ends {k}": FiniteWorld(np.concatenate([np.eye(3)[None], np.eye(3)[None, [1, 2, 2]]])),
        }
    return {label: world for label, world in found.items() if world.n_states > 1}


def table_of(world):
    """(A, S, S) p(s′ | s, a), one number after the other."""
    p = np.zeros((world.n_actions, world.n_states, world.n_states))
    for chance, states in world.outcomes():
        for s in range(world.n_states):
            for a in range(world.n_actions):
                p[a, s, states[s, a]] += chance[s, a] if np.ndim(chance) else chance
    return p
