"""Verdicts by intervals and margins: what a few networks can say, and what they cannot (notebook 10)."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from scipy import stats

HOLDS, PARTLY, FAILS, SMALL, UNTESTABLE = (
    "holds",
    "holds partly",
    "does not hold",
    "not reproduced at this size",
    "untestable here",
)


class Verdict(NamedTuple):
    """A claim, or one part of it: the mean over networks and its 95 % interval, against a margin."""

    claim: str
    part: str
    verdict: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float | None = None
    note: str = ""

    def __str__(self) -> str:
        measured = (
            "" if self.value is None else f", {self.value:.2f} [{self.low:.2f}, {self.high:.2f}], margin {self.margin}"
        )
        return f"{self.claim:12} {self.part or 'as a whole'}: {self.verdict}{measured}{self.note and f' ({self.note})'}"


def combined(verdicts: list[str]) -> str:
    """The verdict of a claim from those of its parts."""
    if verdicts and set(verdicts) == {HOLDS}:
        return HOLDS
    if HOLDS in verdicts:
        return PARTLY
    counts = Counter(verdicts)
    weakest_first = (UNTESTABLE, SMALL, FAILS)
    return max(weakest_first, key=lambda v: (counts[v], -weakest_first.index(v))) if verdicts else UNTESTABLE


def judged(
    claim: str,
    part: str,
    values: list[float | None],
    margin: float,
    later: float | None = None,
    obstacle: str = "",
    networks: int = 5,
) -> Verdict:
    """Against a margin: values, one of each network; later, the same with more training; obstacle, why it cannot be told."""
    known = np.array([value for value in values if value is not None and np.isfinite(value)])
    if len(known) < networks:
        obstacle = obstacle or f"{len(known)} of {networks} networks were measured"
    if not len(known):
        return Verdict(claim, part, UNTESTABLE, margin=margin, note=obstacle)
    mean, spread = known.mean(), known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else np.inf
    half = stats.t.ppf(0.975, len(known) - 1) * spread if len(known) > 1 else np.inf
    low, high = mean - half, mean + half
    if obstacle:
        verdict = UNTESTABLE
    elif low > margin:
        verdict = HOLDS
    elif high < margin and later is not None and later < margin:
        verdict = FAILS
    else:
        verdict = SMALL
    return Verdict(claim, part, verdict, float(mean), float(low), float(high), margin, obstacle)
