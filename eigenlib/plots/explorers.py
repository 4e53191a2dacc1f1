"""Figures that can be redrawn in a blink (what the explorers of `widgets` show; notebooks 02–04).

Each figure is a plain function that builds it the first time and, given it back, moves its LIVE artists. A Screen renders it:
the background is kept from the first drawing and only the LIVE artists are drawn again.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from eigenlib import _require, plots
from eigenlib.gridworld import GridWorld

SCREEN_DPI = 92


class Screen:
    """A Figure that can be rendered again and again, quickly: PNG bytes of its current state."""

    def __init__(self, fig: Figure) -> None:
        self.fig, self.canvas = fig, FigureCanvasAgg(_require.instance(fig, "fig", Figure))
        fig.set_dpi(SCREEN_DPI)
        self.canvas.draw()  # the layout engine runs once, here
        fig.set_layout_engine("none")
        self.live = sorted(fig.findobj(lambda artist: artist.get_gid() == plots.LIVE), key=lambda a: a.get_zorder())
        for artist in self.live:
            artist.set_animated(True)  # leaves them out of the background
        self.canvas.draw()
        self.background = self.canvas.copy_from_bbox(fig.bbox)

    def png(self) -> bytes:
        self.canvas.restore_region(self.background)
        for artist in self.live:
            (artist.axes or self.fig).draw_artist(artist)
        return _quick_png(np.asarray(self.canvas.buffer_rgba())[..., :3])


def _require_drawn(fig: Figure | None, axes: int) -> None:
    """Only a figure that the same function has drawn can be redrawn."""
    if fig is not None and (not isinstance(fig, Figure) or len(fig.axes) != axes):
        raise ValueError(f"fig must be None or a figure that this function has drawn, got {_require.shown(fig)}.")


def _quick_png(pixels: np.ndarray) -> bytes:
    """(H, W, 3) bytes as a PNG whose lines are not filtered: a third of the time of a general encoder, a quarter more bytes."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # a zero before each line says: no filter
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, RGB
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 1)), (b"IEND", b""))
    parts = [
        struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data)) for tag, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def spectra(laplacian_values, gamma: float, fig: Figure | None = None) -> Figure:
    """The two spectra and the curve that joins them, λ = 1/(1 − γ(1 − λ′)) (§3.2; the slider of notebook 02).

    laplacian_values: (S,) eigenvalues of L.  Give `fig` back to redraw it for another γ.
    """
    _require_drawn(fig, 2)
    gamma, lam = _require.discount(gamma), np.sort(_require.numbers(laplacian_values, "laplacian_values", ("S",)))
    if lam[0] < -1e-9 or lam[-1] > 2 + 1e-9:
        raise ValueError(
            f"laplacian_values must lie in [0, 2], as those of L do, but go from {lam[0]:g} to {lam[-1]:g}."
        )
    sr = 1 / (1 - gamma * (1 - lam))
    grid = np.linspace(0, 2, 200)
    curve = 1 / (1 - gamma * (1 - grid))
    ranks = np.arange(1, len(lam) + 1)
    if fig is None:
        fig = plots.figure(10, 3.5)
        left, right = fig.subplots(1, 2, width_ratios=[1.15, 1])
        left.plot(grid, curve, color="#b8bec6", linewidth=2)
        left.plot(lam, sr, "o", color=plots.COLOURS["sr"], markersize=3.6)
        left.set_xlabel("eigenvalue of the Laplacian, $\\lambda'$ (small = smooth)")
        left.set_ylabel("eigenvalue of the SR, $\\lambda$")
        left.set_yscale("log")
        left.set_ylim(0.4, 130)
        left.set_yticks([0.5, 1, 2, 5, 10, 20, 50, 100], ["0.5", "1", "2", "5", "10", "20", "50", "100"])
        left.minorticks_off()
        left.set_title("one curve carries every eigenvalue across")
        right.plot(ranks, sr / sr.max(), color=plots.COLOURS["sr"], linewidth=2)
        right.plot(ranks, lam / lam.max(), color=plots.COLOURS["pvf"], linewidth=2)
        right.set_xlabel("rank of the Laplacian's eigenvalue")
        right.set_ylabel("share of the largest")
        right.set_ylim(-0.03, 1.08)
        right.text(ranks[-1] * 0.74, 0.74, "Laplacian rises", color=plots.COLOURS["pvf"], ha="right")
        right.text(ranks[-1] * 0.98, 0.1, "SR falls", color=plots.COLOURS["sr"], ha="right", va="bottom")
        right.set_title("the order is reversed")
        head = left.text(0.97, 0.95, "", transform=left.transAxes, ha="right", va="top", fontsize=12)
        for artist in (*left.lines, right.lines[0], head):
            artist.set_gid(plots.LIVE)
    left, right = fig.axes
    left.lines[0].set_ydata(curve)
    left.lines[1].set_ydata(sr)
    right.lines[0].set_ydata(sr / sr.max())
    gap = f"\n4th to 5th: {(sr[3] - sr[4]) / sr[0]:.3f} of the largest" if len(sr) > 4 else ""
    left.texts[0].set_text(f"$\\gamma$ = {gamma:.3g}, horizon {1 / (1 - gamma):.3g} steps{gap}")
    return fig


def eigenoption(world: GridWorld, values, index: int, vector, policy, fig: Figure | None = None) -> Figure:
    """An eigenvector as heat map and landscape, its option, and where its eigenvalue stands (the explorer of notebook 04).

    values: (k,) eigenvalues.  index: the chosen one.  vector: (S,), its sign chosen.  policy: (S,).
    """
    plots.require_map(world)
    _require_drawn(fig, 4)
    values, vector = _require.numbers(values, "values", ("k",)), _require.numbers(vector, "vector", (world.n_states,))
    index = _require.whole(index, "index", 0, len(values) - 1)
    policy = _require.wholes(policy, "policy", (world.n_states,), -1, world.n_actions - 1)
    if fig is None:
        fig = plots.figure(12.6, 3.3)
        axes = fig.subplots(1, 4, width_ratios=[1, 1.2, 1, 1.1])
        plots.maze(axes[0], world, vector, signed=True)
        plots.maze(axes[2], world, vector, signed=True)
        axes[3].plot(np.arange(len(values)), values, ".", color="#9aa5b1", markersize=5)
        axes[3].plot([], [], "o", color=plots.ACCENT, markersize=9, gid=plots.LIVE)
        axes[3].set_xlabel("index")
        axes[3].set_title("eigenvalues of $\\Psi$")
        for ax, text in zip(axes, ("eigenvector", "as a landscape", "its option"), strict=False):
            ax.set_title(text)
    axes = fig.axes
    top = float(np.abs(vector).max()) or 1.0
    for ax, strength in ((axes[0], 1.0), (axes[2], 2.4)):
        ax.images[0].set_data(world.to_grid(vector))
        ax.images[0].set_clim(-strength * top, strength * top)
    plots.landscape(axes[1], world, vector)
    plots.arrows(axes[2], world, policy)
    axes[3].lines[1].set_data([index], [values[index]])
    return fig


def deep_sr(world: GridWorld, exact, found, words: str, fig: Figure | None = None) -> Figure:
    """Exact directions above, a network's potentials below (the explorer of notebook 08).

    exact, found: (S, k) unit columns, signs matched.  words: the scores, as text.
    """
    plots.require_map(world)
    exact = _require.numbers(exact, "exact", (world.n_states, "k"))
    found, count = _require.numbers(found, "found", exact.shape), exact.shape[1]
    _require.text(words, "words")
    _require_drawn(fig, 2 * count)
    if fig is None:
        fig = plots.figure(2.35 * count + 0.4, 5.8, " ")  # a blank line, where the scores go
        for k, ax in enumerate(fig.subplots(2, count).flat):
            plots.maze(ax, world, (exact if k < count else found)[:, k % count], signed=True)
            ax.set_title(f"exact, {k + 1}" if k < count else f"network, {k - count + 1}")
        fig.text(0.012, 0.965, "", fontsize=11, gid=plots.LIVE)
    for k, ax in enumerate(fig.axes[count:]):
        ax.images[0].set_data(world.to_grid(found[:, k]))
        top = float(np.abs(found[:, k]).max()) or 1.0
        ax.images[0].set_clim(-top, top)
    fig.texts[-1].set_text(words)
    return fig
