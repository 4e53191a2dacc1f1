"""What the greedy policy of some Q earns, by the compiled loop that `q_learning` calls after its episodes."""

import numpy as np

from eigenlib._compiled.control import greedy_outcome, greedy_tables
from eigenlib.control import require_task


def evaluate_greedy(world, q, start, goal, gamma=0.9, steps=100):
    """(returns, reached) of q, (..., S, A): two arrays of shape (...)."""
    task, q, discounts = require_task(world, start, goal), np.asarray(q, float), gamma ** np.arange(steps)
    successors, unroll = greedy_tables(world)
    visited = np.empty(world.n_states, bool)
    found = [
        greedy_outcome(table, *successors, *task, discounts, visited, *unroll) for table in q.reshape(-1, *q.shape[-2:])
    ]
    return tuple(np.reshape(part, q.shape[:-2]) for part in zip(*found, strict=True))
