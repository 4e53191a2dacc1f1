"""The two loops of `diffusion` that are compiled (numba)."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def follow(path, starts, end, took, slot, column, cut, into, spent):
    """Walk every option's path from every state once and move its way to each goal that it crosses.

    path, end, took: (k, S) next state, last state, steps to it.  slot: (S,) a goal's row in cut, −1 for other states.
    cut: (G, S, E), into, spent: (G, S), changed in place. All numbers are whole, so nothing is rounded.
    """
    for o in range(path.shape[0]):
        for s in range(path.shape[1]):
            if starts[o, s]:
                last = end[o, s]
                g = path[o, s]
                while g != last:
                    k = slot[g]
                    if k >= 0:
                        cut[k, s, column[last]] -= 1
                        into[k, s] += 1
                        spent[k, s] -= took[o, g]
                    g = path[o, g]


@njit(cache=True, nogil=True)
def eliminate(ways, cut, leave, costs, order, place, n_ends, band, solution):
    """Solve r(s) h(s) = c(s) + Σ_{s′} N(s, s′) h(s′) for each goal, never subtracting (see `diffusion`).

    ways: (S, S), cut: (G, S, ≥ n_ends), leave: (G, S): N = ways + cut, and what leads into the goal beside N(s, g).
    costs, solution: (G, S, M), may be one array.  order: (S,) the state in each row of ways; the other arrays are indexed
    by state.  place: (G,) the goals' rows.  Beyond its first n_ends rows and columns, ways is a matrix of that bandwidth.
    """
    n_goals, n_states, n_costs = costs.shape
    shift = n_costs + 1  # a row: costs, the way into the goal, the ways to other states
    work = np.zeros((n_states, shift + n_states))
    rest, x = np.empty(n_states), np.zeros((n_costs, n_states))
    for k in range(n_goals):
        goal = place[k]
        for i in range(n_states):
            row, s = work[i], order[i]
            for m in range(n_costs):
                row[m] = costs[k, s, m]
            row[n_costs] = leave[k, s] + ways[i, goal]
            if goal < n_ends:
                row[n_costs] += cut[k, s, goal]
            for j in range(n_ends):
                row[shift + j] = ways[i, j] + cut[k, s, j]
            low, high = (max(n_ends, i - band), min(n_states, i + band + 1)) if i >= n_ends else (n_ends, n_states)
            for j in range(low, high):
                row[shift + j] = ways[i, j]
            row[shift + goal] = 0.0
        for p in range(n_states - 1, -1, -1):
            if p == goal:
                continue
            pivot, dense, low = work[p], min(n_ends, p), max(n_ends, p - band)
            total = 0.0
            for j in range(n_costs, shift + dense):
                total += pivot[j]
            for j in range(shift + low, shift + p):
                total += pivot[j]
            rest[p] = total
            for begin, stop in ((0, dense), (low, p)):
                for i in range(begin, stop):
                    row = work[i]
                    share = row[shift + p]
                    if share != 0.0:
                        share /= total
                        for j in range(shift + dense):
                            row[j] += share * pivot[j]
                        for j in range(shift + low, shift + p):
                            row[j] += share * pivot[j]
        for p in range(n_states):
            row, dense, low = work[p], min(n_ends, p), max(n_ends, p - band)
            for m in range(n_costs):
                h = 0.0
                if p != goal:
                    h = row[m]
                    for j in range(dense):
                        h += row[shift + j] * x[m, j]
                    for j in range(low, p):
                        h += row[shift + j] * x[m, j]
                    h /= rest[p]
                x[m, p] = h
                solution[k, order[p], m] = h
