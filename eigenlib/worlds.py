"""Any finite world: how many states, how many actions, and what an action can do (notebook 07).

A world is three names, and every function of this library asks for nothing else:

    n_states, n_actions   S and A
    outcomes()            pairs (probability, (S, A) next states). In state s action a leads to next_states[s, a] with that
                          probability: a number, or an (S, A) array where chances depend on state and action. Over all
                          pairs the probabilities of each (s, a) sum to 1.

A deterministic world has one pair; floors on which one slips to either side have three. So dynamics of one's own are a
`World` with these names, or a `GridWorld` whose `outcomes` is replaced: then it can also be drawn. Tables of
probabilities, and Gymnasium's toy-text environments, are a `FiniteWorld`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from eigenlib import _moved, _require
from eigenlib._dynamics import Dynamics, Outcome, Sampler
from eigenlib._require import Matrix

__all__ = ["NoMap", "Outcome", "Sampler", "World", "require_world"]
__getattr__ = _moved.names_of(__name__)
_GEOMETRY = "characters", "cells", "free", "landmarks", "next_state", "slip", "state_at", "text", "to_grid"


class NoMap(AttributeError, ValueError):
    """Something was asked that only a world drawn on a map can answer."""


class World:
    """S states, A actions, and what actions do there."""

    n_states: int
    n_actions: int
    name: str = ""

    def outcomes(self) -> list[Outcome]:
        """What an action can do: (probability, (S, A) next states) pairs; see the module's docstring."""
        raise NotImplementedError(f"{type(self).__name__} must say in outcomes() what its actions do.")

    @property
    def dynamics(self) -> list[Outcome]:
        """What `outcomes` says, checked and brought into one form: all functions look here.

        Chances that are the same everywhere are a float. Outcomes that never happen are left out, and one that cannot
        happen in (s, a) leads where the likeliest one does: who follows all ways need not look at their chances.
        """
        return self._now.pairs

    @property
    def sampler(self) -> Sampler:
        """The same as tables to draw from. One outcome needs no draw."""
        return self._now.sampler

    @property
    def uniform_moves(self) -> np.ndarray | None:
        """(S, A) moves among which the uniform policy walks with equal chances, if it does; else None.

        It does where all outcomes lead to the same states in another order. Slips are such: one who chooses every direction
        equally often and then slips to a side still goes in every direction equally often.
        """
        return self._now.uniform_moves

    @property
    def _now(self) -> Dynamics:
        """A world may change between two questions, so outcomes() is asked each time; only a new answer is checked."""
        said, kept = self.outcomes(), self.__dict__.get("_kept")
        said = list(said) if np.iterable(said) else said
        if not isinstance(kept, Dynamics) or not kept.still(said, (self.n_states, self.n_actions)):
            shape = _require.whole(self.n_states, "n_states", 1), _require.whole(self.n_actions, "n_actions", 1)
            kept = self.__dict__["_kept"] = Dynamics(said, shape)
        return kept

    def transition_matrix(self, policy: np.ndarray | None = None, sparse_result: bool = False) -> Matrix:
        """(S, S) row-stochastic T[s, s′] under `policy`, (S, A) probabilities; None is the uniform random policy."""
        weights, sparse_result = self._require_policy(policy), _require.flag(sparse_result, "sparse_result")
        rows = np.repeat(np.arange(self.n_states), self.n_actions)
        total = sparse.csr_matrix((self.n_states, self.n_states))
        for probability, states in self.dynamics:
            entries = (probability * weights).ravel()
            total += sparse.csr_matrix((entries, (rows, states.ravel())), shape=total.shape)
        return total if sparse_result else total.toarray()

    def adjacency(self, self_loops: bool = False, sparse_result: bool = False) -> Matrix:
        """(S, S) W: which state is one move from which (§2.2).

        Without self-loops W is 0/1 between neighbours, the convention of the 2017 eigenoption paper. With them it counts the
        actions that lead there, bumps included, so W = |A|·T and every degree is |A|: what the theorem of notebook 02 needs.
        A one-way door makes W unsymmetric.
        """
        _require.flag(self_loops, "self_loops")
        _require.flag(sparse_result, "sparse_result")
        moves, shape = self.uniform_moves, (self.n_states, self.n_states)
        if moves is None:
            W = sparse.csr_matrix(self.n_actions * self.transition_matrix(sparse_result=True))
        else:
            rows = np.repeat(np.arange(self.n_states), self.n_actions)
            W = sparse.csr_matrix((np.ones(rows.size), (rows, moves.ravel())), shape=shape)
        if not self_loops:
            W.setdiag(0)
            W.eliminate_zeros()
            W.data[:] = 1.0
        return W if sparse_result else W.toarray()

    def random_walks(
        self,
        start: int,
        walks: int,
        steps: int,
        rng: int | np.random.Generator | None = None,
        policy: np.ndarray | None = None,
    ) -> np.ndarray:
        """(walks, steps + 1) states visited by independent walks under `policy` (uniform if None).

        rng: a seed, or a Generator to draw from; None is seed 0.
        """
        start = _require.state(start, "start", self.n_states)
        walks, steps = _require.whole(walks, "walks", 0), _require.whole(steps, "steps", 0)
        random, (ways, upto) = _require.generator(rng), self.sampler
        chances = np.cumsum(self._require_policy(policy), axis=1)[:, :-1]
        _require.room("These walks", walks, steps + 1)
        states = np.empty((walks, steps + 1), dtype=np.int64)
        states[:, 0] = start
        for t in range(steps):
            here = states[:, t]
            action = (random.random(walks)[:, None] >= chances[here]).sum(axis=1)
            way = (random.random(walks) >= upto[:, here, action]).sum(axis=0) if len(upto) else 0
            states[:, t + 1] = ways[way, here, action]
        return states

    def place(self, state: int) -> str:
        """Where a state is, for people."""
        return f"state {_require.state(state, 'state', self.n_states)}"

    def _require_policy(self, policy: np.ndarray | None) -> np.ndarray:
        if policy is None:
            return np.full((self.n_states, self.n_actions), 1 / self.n_actions)
        policy = _require.floats(policy, "A policy")
        if policy.shape != (self.n_states, self.n_actions):
            raise ValueError(
                f"A policy here has shape ({self.n_states}, {self.n_actions}), one row of action probabilities per state; "
                f"got {policy.shape}."
            )
        if not (policy >= 0).all() or not np.allclose(policy.sum(axis=1), 1):
            worst = int(np.argmax(np.abs(policy.sum(axis=1) - 1) + (policy < 0).any(axis=1)))
            raise ValueError(f"Row {worst} of the policy is not a probability distribution: {policy[worst]}.")
        # Rows of float32 do not sum to 1 to the last digit.
        policy /= policy.sum(axis=1, keepdims=True)
        return policy

    def __getattr__(self, name: str) -> Any:
        if name in _GEOMETRY:
            raise NoMap(
                f"This world has no map, so it has no `{name}`: drawings, widgets and (row, column) places need a GridWorld."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name or 'own world'}: {self.n_states} states, {self.n_actions} actions)"


def require_world(world: World) -> None:
    _require.instance(world, "world", World, "GridWorld.named, GridWorld.from_text and FiniteWorld make one")
