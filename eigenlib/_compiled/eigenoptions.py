"""The sweeps of value iteration in a large world (numba)."""

from __future__ import annotations

import numpy as np
from numba import njit

from eigenlib._compiled import in_threads
from eigenlib.worlds import World


def action_values(world: World, purposes: np.ndarray, gamma: float, rounding: np.ndarray) -> np.ndarray:
    """What `eigenoptions._action_values` returns, by the same sweeps, one eigenpurpose in each thread.

    With a single outcome the same to the last digit.
    """
    dynamics = world.dynamics
    ways = np.array([ahead for _, ahead in dynamics], dtype=np.int32)
    shape = ways.shape[1:] if any(np.ndim(chance) for chance, _ in dynamics) else (1, 1)
    chances = np.array([np.broadcast_to(chance, shape) for chance, _ in dynamics])
    q = np.empty((purposes.shape[1], world.n_actions, world.n_states))

    def run(k: int) -> None:
        climb(ways, chances, np.ascontiguousarray(purposes[:, k]), float(gamma), rounding[k], q[k])

    in_threads(run, range(len(q)))
    return np.moveaxis(q, 0, -1)


@njit(cache=True, nogil=True)
def climb(ways, chances, purpose, gamma, rounding, q):
    """Value iteration from zero for one eigenpurpose, (S,), into q, (A, S): see eigenoptions.py.

    ways: (K, S, A) next states.  chances: (K, S, A), or (K, 1, 1) where they are the same everywhere.
    """
    n_outcomes, n_states, n_actions = ways.shape
    varying = chances.shape[1] > 1 or chances.shape[2] > 1
    value, better = np.zeros(n_states), np.zeros(n_states)
    changed = True
    while changed:
        changed = False
        for s in range(n_states):
            best = 0.0
            for a in range(n_actions):
                s_next = ways[0, s, a]
                reward, v = purpose[s_next], value[s_next]
                if n_outcomes > 1:
                    reward, v = 0.0, 0.0
                    for k in range(n_outcomes):
                        s_next = ways[k, s, a]
                        chance = chances[k, s, a] if varying else chances[k, 0, 0]
                        reward += chance * purpose[s_next]
                        v += chance * value[s_next]
                q[a, s] = reward - purpose[s] + gamma * v
                best = max(best, q[a, s])
            better[s] = best
            changed |= best - value[s] > rounding
        value, better = better, value
