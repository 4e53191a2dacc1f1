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

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from eigenlib import _require
from eigenlib._require import (
    require_floats,
    require_generator,
    require_positive,
    require_room,
    require_square,
    require_state,
)

_GEOMETRY = "characters", "cells", "free", "from_grid", "landmarks", "next_state", "slip", "state_at", "text", "to_grid"
_ROUNDING = 1e-9  # by which probabilities may miss 1
_TYPED = 1e-6  # the same for tables, which may come in float32; their rows are then divided by their sum

Outcome = tuple[float | np.ndarray, np.ndarray]


class NoMap(AttributeError, ValueError):
    """Something was asked that only a world drawn on a map can answer."""


class Sampler(NamedTuple):
    """ways: (K, S, A) next states.  upto: (K − 1, S, A). A draw in [0, 1) takes the first way k with draw < upto[k],
    else the last."""

    ways: np.ndarray
    upto: np.ndarray


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
    def _now(self) -> _Dynamics:
        """A world may change between two questions, so outcomes() is asked each time; only a new answer is checked."""
        said, kept = self.outcomes(), self.__dict__.get("_kept")
        said = list(said) if np.iterable(said) else said
        if kept is None or not kept.still(said, (self.n_states, self.n_actions)):
            shape = require_positive(self.n_states, "n_states"), require_positive(self.n_actions, "n_actions")
            kept = self.__dict__["_kept"] = _Dynamics(said, shape)
        return kept

    def transition_matrix(self, policy=None, sparse_result: bool = False):
        """(S, S) row-stochastic T[s, s′] under `policy`, (S, A) probabilities; None is the uniform random policy."""
        weights, sparse_result = self._require_policy(policy), _require.flag(sparse_result, "sparse_result")
        rows = np.repeat(np.arange(self.n_states), self.n_actions)
        total = sparse.csr_matrix((self.n_states, self.n_states))
        for probability, states in self.dynamics:
            entries = (probability * weights).ravel()
            total += sparse.csr_matrix((entries, (rows, states.ravel())), shape=total.shape)
        return total if sparse_result else total.toarray()

    def adjacency(self, self_loops: bool = False, sparse_result: bool = False):
        """(S, S) W: which state is one move from which (§2.2).

        Without self-loops W is 0/1 between neighbours, the convention of the 2017 eigenoption paper. With them it counts the
        actions that lead there, bumps included, so W = |A|·T and every degree is |A|: what the theorem of notebook 02 needs.
        A one-way door makes W unsymmetric.
        """
        self_loops, sparse_result = (
            _require.flag(self_loops, "self_loops"),
            _require.flag(sparse_result, "sparse_result"),
        )
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
        self, start: int, walks: int, steps: int, rng: int | np.random.Generator | None = None, policy=None
    ) -> np.ndarray:
        """(walks, steps + 1) states visited by independent walks under `policy` (uniform if None).

        rng: a seed, or a Generator to draw from; None is seed 0.
        """
        start = require_state(self.n_states, start, "start")
        walks, steps = require_positive(walks, "walks", least=0), require_positive(steps, "steps", least=0)
        rng, (ways, upto) = require_generator(rng), self.sampler
        chances = np.cumsum(self._require_policy(policy), axis=1)[:, :-1]
        require_room("These walks", walks, steps + 1)
        states = np.empty((walks, steps + 1), dtype=np.int64)
        states[:, 0] = start
        for t in range(steps):
            here = states[:, t]
            action = (rng.random(walks)[:, None] >= chances[here]).sum(axis=1)
            way = (rng.random(walks) >= upto[:, here, action]).sum(axis=0) if len(upto) else 0
            states[:, t + 1] = ways[way, here, action]
        return states

    def place(self, state: int) -> str:
        """Where a state is, for people."""
        return f"state {require_state(self.n_states, state, 'state')}"

    def _require_policy(self, policy) -> np.ndarray:
        if policy is None:
            return np.full((self.n_states, self.n_actions), 1 / self.n_actions)
        policy = require_floats(policy, "A policy")
        if policy.shape != (self.n_states, self.n_actions):
            raise ValueError(
                f"A policy here has shape ({self.n_states}, {self.n_actions}), one row of action probabilities per state; "
                f"got {policy.shape}."
            )
        if not (policy >= 0).all() or not np.allclose(policy.sum(axis=1), 1):
            worst = int(np.argmax(np.abs(policy.sum(axis=1) - 1) + (policy < 0).any(axis=1)))
            raise ValueError(f"Row {worst} of the policy is not a probability distribution: {policy[worst]}.")
        return policy / policy.sum(axis=1, keepdims=True)  # float32 rows do not sum to 1 to the last digit

    def __getattr__(self, name: str):
        if name in _GEOMETRY:
            raise NoMap(
                f"This world has no map, so it has no `{name}`: drawings, widgets and (row, column) places need a GridWorld."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name or 'own world'}: {self.n_states} states, {self.n_actions} actions)"


def require_world(world: World) -> None:
    _require.instance(world, "world", World, "GridWorld.named, GridWorld.from_text and FiniteWorld make one")


class _Dynamics:
    """What outcomes() said, checked, and what follows from it."""

    def __init__(self, said, shape: tuple[int, int]) -> None:
        try:
            pairs = [(chance, states) for chance, states in said]
        except TypeError:
            raise ValueError("outcomes() must return (probability, next states) pairs.") from None
        self.shape, self.said = (
            shape,
            [(_chance(chance, shape), _next_states(states, shape)) for chance, states in pairs],
        )
        found = [(chance, states) for chance, states in self.said if np.any(chance > 0)]
        total = np.broadcast_to(sum(chance for chance, _ in found), shape)
        worst = np.unravel_index(np.argmax(np.abs(total - 1)), shape)
        if not abs(total[worst] - 1) <= _ROUNDING:
            raise ValueError(
                f"The probabilities of outcomes() must sum to 1 for every state and action, but in state {worst[0]} those of "
                f"action {worst[1]} sum to {total[worst]:.6g}."
            )
        if any(np.ndim(chance) and not np.all(chance) for chance, _ in found):
            chances = np.stack([np.broadcast_to(chance, shape) for chance, _ in found])
            ways = np.stack([states for _, states in found])
            likeliest = np.take_along_axis(ways, chances.argmax(axis=0)[None], axis=0)[0]
            found = [(chance, np.where(chance > 0, states, likeliest)) for chance, states in found]
        self.pairs = found

    def still(self, said, shape: tuple[int, int]) -> bool:
        """Whether a later answer is the same; anything odd is not, and will be checked."""
        try:
            return shape == self.shape and all(
                np.array_equal(chance, c) and (states is s or np.array_equal(states, s))
                for (chance, states), (c, s) in zip(said, self.said, strict=True)
            )
        except (TypeError, ValueError):
            return False

    @cached_property
    def sampler(self) -> Sampler:
        # The last outcome stands first. For slips that is the order right, ahead, left, in which this library has always
        # drawn them, so that what a seed gave stays what it gives.
        chances, ways = zip(*self.pairs[-1:], *self.pairs[:-1], strict=True)
        if any(np.ndim(chance) for chance in chances):
            upto = np.cumsum([np.broadcast_to(chance, self.shape) for chance in chances[:-1]], axis=0)
        else:
            upto = np.broadcast_to(np.cumsum(chances[:-1]).reshape(-1, 1, 1), (len(ways) - 1, *self.shape))
        return Sampler(ways[0][None] if len(ways) == 1 else np.stack(ways), upto)

    @cached_property
    def uniform_moves(self) -> np.ndarray | None:
        if len(self.pairs) == 1:
            return self.pairs[0][1]
        if any(np.ndim(chance) for chance, _ in self.pairs):
            return None
        moves = self.said[0][1]  # of the first pair even if it never happens: on a map they are the moves themselves
        ordered = np.sort(moves, axis=1)
        return moves if all((np.sort(states, axis=1) == ordered).all() for _, states in self.pairs) else None


class FiniteWorld(World):
    """A world given by its table of probabilities."""

    def __init__(self, probabilities, name: str = "") -> None:
        """probabilities: p(s′ | s, a) as an (A, S, S) array, or as A matrices of shape (S, S), dense or sparse."""
        try:
            tables = [require_square(table, f"The table of action {a}") for a, table in enumerate(probabilities)]
        except TypeError:
            tables = []
        if not tables or len({table.shape for table in tables}) > 1:
            raise ValueError(
                "A FiniteWorld takes (A, S, S) probabilities: for each action one matrix of the same size."
            )
        self.n_states, self.n_actions = tables[0].shape[0], len(tables)
        self.name = _require.text(name, "name")
        self._tables = [self._normalised(table, a) for a, table in enumerate(map(sparse.csr_matrix, tables))]

    @classmethod
    def from_gymnasium(cls, env, restart: bool = False) -> FiniteWorld:
        """The world of a Gymnasium environment that keeps its dynamics in `P`, as toy-text ones do; rewards are left out.

        A state in which some way ends the episode is final: no action leaves it. With restart=True every action leads from
        it to where episodes start.
        """
        env, restart = getattr(env, "unwrapped", env), _require.flag(restart, "restart")
        P, label = getattr(env, "P", None), getattr(getattr(env, "spec", None), "id", None) or type(env).__name__
        try:
            rows = [(a, s, *way) for s in P for a in P[s] for way in P[s][a]]  # type: ignore[union-attr,index]
            action, state, chance, target, _, ends = np.array(rows, dtype=float).T
        except (TypeError, ValueError, IndexError, KeyError):
            raise ValueError(
                f"env must keep its dynamics in P, but {label} has no table P[state][action] of (probability, next state, "
                "reward, terminated), as FrozenLake, Taxi and CliffWalking have: build a FiniteWorld from its probabilities."
            ) from None
        size = len(P)  # type: ignore[arg-type]
        final = np.unique(target[(ends > 0) & (chance > 0)]).astype(int)
        if not set(np.concatenate([state, target])) <= set(range(size)):
            raise ValueError(f"The states of {label} must be numbered 0 to {size - 1}.")
        after = sparse.eye_array(size, format="lil")
        if restart:
            after[final] = _start_of(env, size, label)
        going = sparse.diags_array(1.0 - np.isin(np.arange(size), final))
        tables = []
        for a in range(int(action.max()) + 1):
            here = action == a
            table = sparse.csr_matrix((chance[here], (state[here], target[here])), shape=after.shape)
            tables.append(going @ table + (sparse.eye_array(size) - going) @ after)
        return cls(tables, name=label)

    def outcomes(self) -> list[Outcome]:
        """The k-th successor of every (s, a), for as many k as the largest number of successors."""
        counts = np.stack([np.diff(table.indptr) for table in self._tables], axis=1)  # (S, A)
        ways = np.repeat(np.stack([t.indices[t.indptr[:-1]] for t in self._tables], axis=1)[None], counts.max(), axis=0)
        chances = np.zeros(ways.shape)
        for action, table in enumerate(self._tables):
            row = np.repeat(np.arange(self.n_states), counts[:, action])
            rank = np.arange(table.nnz) - table.indptr[row]
            ways[rank, row, action], chances[rank, row, action] = table.indices, table.data
        return list(zip(chances, ways, strict=True))

    def _normalised(self, table, action: int):
        table.sum_duplicates()
        table.eliminate_zeros()
        rows = np.asarray(table.sum(axis=1)).ravel()
        worst = int(np.argmax(np.abs(rows - 1)))
        if table.data.min(initial=0.0) < 0 or abs(rows[worst] - 1) > _TYPED:
            raise ValueError(
                f"The table of action {action} holds no probabilities: entries must not be negative (the smallest is "
                f"{table.data.min(initial=0.0):g}) and rows sum to 1 (row {worst} sums to {rows[worst]:.6g})."
            )
        return sparse.csr_matrix(sparse.diags_array(1 / rows) @ table)


def _chance(chance, shape: tuple[int, int]) -> float | np.ndarray:
    """A probability of outcomes(): a float, or an (S, A) array if it varies."""
    chance = require_floats(chance, "A probability of outcomes()")
    if chance.shape not in ((), shape):
        raise ValueError(
            f"A probability of outcomes() is a number or an array of shape {shape}, one per state and action; got shape "
            f"{chance.shape}."
        )
    if not (chance >= 0).all():
        raise ValueError("The probabilities of outcomes() must be numbers that are not negative.")
    return float(chance.flat[0]) if (chance == chance.flat[0]).all() else chance.copy()


def _next_states(states, shape: tuple[int, int]) -> np.ndarray:
    states = np.asarray(states)
    if states.shape != shape or states.dtype.kind not in "iu":
        raise ValueError(
            f"The next states of outcomes() are whole numbers of shape {shape}, one per state and action; got shape "
            f"{states.shape} of type {states.dtype}."
        )
    if states.min() < 0 or states.max() >= shape[0]:
        raise ValueError(
            f"The next states of outcomes() must be states, from 0 to {shape[0] - 1}; they range from {states.min()} to "
            f"{states.max()}."
        )
    # A copy, unless nobody can change the array: the next answer of outcomes() is compared with this one.
    return states.astype(np.int64, copy=states.flags.writeable)


def _start_of(env, n_states: int, label: str) -> np.ndarray:
    """(S,) where the episodes of a Gymnasium environment begin."""
    start = getattr(env, "initial_state_distrib", None)
    if start is None and getattr(env, "start_state_index", None) is not None:
        start = np.eye(n_states)[env.start_state_index]
    start = np.zeros(0) if start is None else require_floats(start, "initial_state_distrib")
    if start.shape != (n_states,):
        raise ValueError(
            f"{label} does not say where episodes start (initial_state_distrib), so it cannot restart: use restart=False."
        )
    return start
