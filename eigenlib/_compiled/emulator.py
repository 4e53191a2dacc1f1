"""The compiled inner loops of a frame (numba).

From one decision to the next most rows of a screen stay as they are: only those that change are worked on.
"""

from __future__ import annotations

import numpy as np
from numba import njit

UNKNOWN = -1


@njit(cache=True, nogil=True)
def translate(screen, flash, seen, table, greys, changed):
    """greys (H, W) ← table (256,) of the colours in screen (H, W), where the colour `flash` counts as 0.

    seen: (H, W) the screen that greys was last made from. changed: (H,) bool, set for rows that were not the same.
    Returns False at a colour that is UNKNOWN to the table; call again when it has been learned.
    """
    for y in range(screen.shape[0]):
        row, old, grey = screen[y], seen[y], greys[y]
        difference = np.uint8(0)
        for x in range(row.size):  # no if in here: so it becomes vector instructions
            row[x] *= row[x] != flash
            difference |= row[x] ^ old[x]
        if difference:
            changed[y] = True
            for x in range(row.size):
                if table[row[x]] == UNKNOWN:
                    return False
                grey[x] = table[row[x]]
            old[:] = row
    return True


@njit(cache=True, nogil=True)
def shrink(first, second, rows, row_weights, columns, column_weights, changed, out):
    """out (84, 84) ← area means of the brighter of two grey screens (H, W), rounded to the nearest, halves up.

    rows: (84,) the first screen row under each row of out; row_weights: (K, 84) its weight and those of the rows below.
    columns: (84,), column_weights: (3, 84) likewise: a column of out lies over at most three of a screen 160 wide.
    changed: (H,) bool, the screen rows that are new; rows of out without any stay as they are. Cleared here.
    Sums are whole numbers below 2²⁴, exact in float32.
    """
    width = first.shape[1]
    line = np.zeros(width + 2, np.float32)  # one row of out before its columns are joined; the last may run over
    total = row_weights[:, 0].sum() * column_weights[:, 0].sum()
    half, share = total / np.float32(2) + np.float32(0.25), np.float32(1) / total  # .25 because share is rounded
    left, middle, right = column_weights
    for i in range(out.shape[0]):
        new = False
        for k in range(row_weights.shape[0]):
            new |= row_weights[k, i] > 0 and changed[rows[i] + k]
        if not new:
            continue
        line[:] = 0
        for k in range(row_weights.shape[0]):
            weight = row_weights[k, i]
            if weight > 0:
                a, b = first[rows[i] + k], second[rows[i] + k]
                for x in range(width):
                    line[x] += weight * np.float32(max(a[x], b[x]))
        row = out[i]
        for j in range(out.shape[1]):
            x = columns[j]
            area = left[j] * line[x] + middle[j] * line[x + 1] + right[j] * line[x + 2]
            row[j] = np.uint8((area + half) * share)
    changed[:] = False
