"""The still picture of the explorer of spectra, which its lesson draws too (notebook 02)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from eigenlib import _require, plots


def spectra(laplacian_values, gamma: float) -> Figure:
    """The two spectra and the curve that joins them, λ = 1/(1 − γ(1 − λ′)) (§3.2; notebook 02).

    laplacian_values: (S,) eigenvalues of L.
    """
    gamma, lam = _require.discount(gamma), np.sort(_require.numbers(laplacian_values, "laplacian_values", ("S",)))
    if lam[0] < -1e-9 or lam[-1] > 2 + 1e-9:
        raise ValueError(
            f"laplacian_values must lie in [0, 2], as those of L do, but go from {lam[0]:g} to {lam[-1]:g}."
        )
    sr, ranks, grid = 1 / (1 - gamma * (1 - lam)), np.arange(1, len(lam) + 1), np.linspace(0, 2, 200)
    fig = plots.figure(10, 3.5)
    left, right = fig.subplots(1, 2, width_ratios=[1.15, 1])
    left.plot(grid, 1 / (1 - gamma * (1 - grid)), color="#b8bec6", linewidth=2)
    left.plot(lam, sr, "o", color=plots.COLOURS["sr"], markersize=3.6)
    left.set_xlabel("eigenvalue of the Laplacian, $\\lambda'$ (small = smooth)")
    left.set_ylabel("eigenvalue of the SR, $\\lambda$")
    left.set_yscale("log")
    left.set_ylim(0.4, 130)
    left.set_yticks([0.5, 1, 2, 5, 10, 20, 50, 100], ["0.5", "1", "2", "5", "10", "20", "50", "100"])
    left.minorticks_off()
    left.set_title("one curve carries every eigenvalue across")
    right.plot(ranks, sr / sr.max(), color=plots.COLOURS["sr"], linewidth=2)
    right.plot(ranks, lam / (lam.max() or 1), color=plots.COLOURS["pvf"], linewidth=2)
    right.set_xlabel("rank of the Laplacian's eigenvalue")
    right.set_ylabel("share of the largest")
    right.set_ylim(-0.03, 1.08)
    right.text(ranks[-1] * 0.74, 0.74, "Laplacian rises", color=plots.COLOURS["pvf"], ha="right")
    right.text(ranks[-1] * 0.98, 0.1, "SR falls", color=plots.COLOURS["sr"], ha="right", va="bottom")
    right.set_title("the order is reversed")
    gap = f"\n4th to 5th: {(sr[3] - sr[4]) / sr[0]:.3f} of the largest" if len(sr) > 4 else ""
    words = f"$\\gamma$ = {gamma:.3g}, horizon {1 / (1 - gamma):.3g} steps{gap}"
    left.text(0.97, 0.95, words, transform=left.transAxes, ha="right", va="top", fontsize=12)
    return fig
