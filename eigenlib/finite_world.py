"""Worlds given by tables of probabilities, and those of Gymnasium's toy-text environments (notebook 07)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from eigenlib import _require
from eigenlib.worlds import Outcome, World

_TYPED = 1e-6  # by which rows may miss 1, for they may come in float32; they are then divided by their sum


class FiniteWorld(World):
    """A world given by its table of probabilities."""

    def __init__(self, probabilities: Any, name: str = "") -> None:
        """probabilities: p(s′ | s, a) as an (A, S, S) array, or as A matrices of shape (S, S), dense or sparse."""
        try:
            tables = [_require.square(table, f"The table of action {a}") for a, table in enumerate(probabilities)]
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
    def from_gymnasium(cls, env: Any, restart: bool = False) -> FiniteWorld:
        """The world of a Gymnasium environment that keeps its dynamics in `P`, as toy-text ones do; rewards are left out.

        A state in which some way ends the episode is final: no action leaves it. With restart=True every action leads from
        it to where episodes start.
        """
        env, restart = getattr(env, "unwrapped", env), _require.flag(restart, "restart")
        P: Any = getattr(env, "P", None)
        label = getattr(getattr(env, "spec", None), "id", None) or type(env).__name__
        try:
            rows = [(a, s, *way) for s in P for a in P[s] for way in P[s][a]]
            action, state, chance, target, _, ends = np.array(rows, dtype=float).T
        except (TypeError, ValueError, IndexError, KeyError):
            raise ValueError(
                f"env must keep its dynamics in P, but {label} has no table P[state][action] of (probability, next state, "
                "reward, terminated), as FrozenLake, Taxi and CliffWalking have: build a FiniteWorld from its probabilities."
            ) from None
        size = len(P)
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

    def _normalised(self, table: _require.Matrix, action: int) -> _require.Matrix:
        table.sum_duplicates()
        table.eliminate_zeros()
        rows = np.asarray(table.sum(axis=1)).ravel()
        worst = int(np.argmax(np.abs(rows - 1)))
        if _require.smallest(table) < 0 or abs(rows[worst] - 1) > _TYPED:
            raise ValueError(
                f"The table of action {action} holds no probabilities: entries must not be negative (the smallest is "
                f"{_require.smallest(table):g}) and rows sum to 1 (row {worst} sums to {rows[worst]:.6g})."
            )
        return sparse.csr_matrix(sparse.diags_array(1 / rows) @ table)


def _start_of(env: Any, n_states: int, label: str) -> np.ndarray:
    """(S,) where the episodes of a Gymnasium environment begin."""
    start = getattr(env, "initial_state_distrib", None)
    if start is None and getattr(env, "start_state_index", None) is not None:
        start = np.eye(n_states)[env.start_state_index]
    start = np.zeros(0) if start is None else _require.floats(start, "initial_state_distrib")
    if start.shape != (n_states,):
        raise ValueError(
            f"{label} does not say where episodes start (initial_state_distrib), so it cannot restart: use restart=False."
        )
    return start
