"""Figures: one function each, returning a matplotlib Figure (all notebooks).

One look for the whole course: signed quantities on a zero-centred red–blue map, counts on a sequential one, walls in a grey
that is in neither, one colour a method. `show` puts a figure into a notebook with alt text, for readers who listen and
for the report. Artists with the id LIVE are the ones an explorer moves; everything else in a figure stays put.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

import matplotlib
import numpy as np
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from eigenlib.gridworld import MOVES, GridWorld

SIGNED, COUNTS = "RdBu_r", "magma"  # both readable with every common colour blindness
WALL, INK, ACCENT = "#8d9299", "#1f2430", "#d1495b"
COLOURS = {"sr": "#2f6690", "pvf": "#d17b0f", "primitive": "#5b5f66", "random": "#7b5ea7", "td": "#3a9188"}
LIVE = "live"

matplotlib.rcParams.update(
    {
        "axes.edgecolor": "#9aa0a8",
        "axes.grid": False,
        "axes.labelcolor": INK,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "figure.titlesize": 13,
        "figure.titleweight": "bold",
        "font.size": 10.5,
        "legend.frameon": False,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }
)


def figure(width: float = 9.0, height: float = 3.4, title: str = "") -> Figure:
    """An empty figure, inches; the title is a sentence that says what to see."""
    fig = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(fig)
    if title:
        fig.suptitle(title, x=0.01, ha="left")
    return fig


def png(fig: Figure, dpi: int = 120) -> bytes:
    """The figure as PNG bytes, the same bytes for the same figure."""
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def show(fig: Figure, alt: str) -> None:
    """Display a figure; `alt` tells a reader who cannot see it what it shows."""
    if len(alt.split()) < 4:
        raise ValueError(f"Alt text should say in a sentence what the figure shows; got {alt!r}.")
    width = int(fig.get_size_inches()[0] * 92)
    display(
        {"image/png": png(fig), "text/plain": f"Figure: {alt}"},
        metadata={"image/png": {"alt": alt, "width": width}},
        raw=True,
    )


def maze(
    ax: Axes,
    world: GridWorld,
    values=None,
    *,
    signed: bool = False,
    limit: float | None = None,
    log: bool = False,
    decades: float = 4,
) -> AxesImage:
    """Values (S,) on the map, walls grey. `limit`: the largest size to show; a log scale ends `decades` below it."""
    colours = "gray_r" if values is None else SIGNED if signed else COUNTS  # no values: a white floor
    values = np.zeros(world.n_states) if values is None else np.asarray(values, dtype=float)
    top = limit if limit is not None else float(np.abs(values).max()) or 1.0
    norm = LogNorm(top * 10.0**-decades, top, clip=True) if log else Normalize(-top if signed else 0.0, top)
    ax.set_facecolor(WALL)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    image = ax.imshow(world.to_grid(values), cmap=colours, norm=norm, interpolation="nearest")
    image.set_gid(LIVE)
    return image


def name_cells(ax: Axes, world: GridWorld, names: Mapping[str, int]) -> None:
    """Letters on states, readable on every colour."""
    for name, state in names.items():
        row, col = world.cells[state]
        halo = {"boxstyle": "circle,pad=0.18", "facecolor": "white", "edgecolor": INK, "linewidth": 0.8}
        ax.text(col, row, name, ha="center", va="center", fontsize=9, fontweight="bold", bbox=halo)


def arrows(ax: Axes, world: GridWorld, policy, colour: str = INK) -> None:
    """An option on the map: an arrow where its policy (S,) acts, a dot where it terminates (policy −1)."""
    policy = np.asarray(policy)
    acting = policy >= 0
    rows, cols = world.cells[acting].T
    dy, dx = MOVES[policy[acting]].T
    ax.quiver(cols, rows, dx, -dy, pivot="mid", scale=1.55, scale_units="xy", width=0.16, units="xy", color=colour,
              headwidth=3.2, headlength=3.0, headaxislength=2.8)  # fmt: skip
    rows, cols = world.cells[~acting].T
    ax.scatter(cols, rows, s=26, color=ACCENT, edgecolor="white", linewidth=0.7, zorder=3)


def mazes(
    world: GridWorld,
    panels: Mapping[str, np.ndarray | None],
    *,
    title: str = "",
    signed: bool = False,
    log: bool = False,
    decades: float = 4,
    shared: bool = True,
    columns: int | None = None,
    label: str = "",
    names: Mapping[str, int] | None = None,
    size: float = 2.4,
) -> Figure:
    """Small multiples of one map: {panel title: (S,) values, or None for the bare map}; `shared`: the same colours."""
    columns = min(columns or len(panels), len(panels))
    rows = -(-len(panels) // columns)
    fig = figure(
        columns * size + 0.9 * shared, rows * (size * world.free.shape[0] / world.free.shape[1] + 0.35) + 0.45, title
    )
    limit = max(float(np.abs(values).max()) for values in panels.values() if values is not None) if shared else None
    grid = fig.subplots(rows, columns, squeeze=False)
    for ax in grid.flat[len(panels) :]:
        ax.set_visible(False)
    for ax, (heading, values) in zip(grid.flat, panels.items(), strict=False):
        image = maze(ax, world, values, signed=signed, log=log, decades=decades, limit=limit)
        ax.set_title(heading, fontsize=10)
        name_cells(ax, world, names or {})
    if shared:
        bar = fig.colorbar(image, ax=list(grid.flat), shrink=0.85, aspect=24, pad=0.015)
        bar.outline.set_visible(False)
        bar.set_label(label)
    return fig


def arc(world: GridWorld, walks, sr_row, eigenvector, option, screen) -> Figure:
    """The course in one picture: world → Ψ → eigenvector → option → Atari (notebook 00).

    walks: (n, steps) states.  sr_row, eigenvector: (S,).  option: an Option.  screen: (210, 160, 3) a game's picture.
    """
    fig = Figure(figsize=(13.2, 3.1))
    FigureCanvasAgg(fig)
    lefts, width, height = (0.005, 0.207, 0.402, 0.642, 0.85), 0.185, 0.79  # side by side, headings on one line
    headings = ("1  wander", "2  remember: $\\Psi$", "3  find a direction", "4  follow it", "5  from pixels")
    for left, heading in zip(lefts, headings, strict=True):
        fig.text(left + 0.004, 0.925, heading, fontsize=14, fontweight="bold")

    def place(panel: int, **kwargs):
        return fig.add_axes((lefts[panel], 0.07, width, height), anchor="NW", **kwargs)

    ax = place(0)
    maze(ax, world)
    shades = matplotlib.colormaps["viridis"](np.linspace(0.1, 0.9, len(walks)))
    jitter = np.random.default_rng(0).uniform(-0.27, 0.27, (*np.shape(walks), 2))  # keeps overlapping steps visible
    for path, shade in zip(world.cells[np.asarray(walks)] + jitter, shades, strict=True):
        ax.plot(path[:, 1], path[:, 0], color=shade, linewidth=0.8, alpha=0.8)
    maze(place(1), world, sr_row, log=True)
    ax = fig.add_axes((lefts[2] - 0.01, -0.06, 0.25, 1.04), projection="3d")
    surface(ax, world, eigenvector)
    ax = place(3)
    maze(ax, world, eigenvector, signed=True, limit=2.2 * float(np.abs(eigenvector).max()))
    arrows(ax, world, option.policy)
    ax = place(4)
    ax.imshow(screen)
    ax.set_axis_off()
    return fig


def surface(ax, world: GridWorld, eigenvector) -> None:
    """An eigenvector (S,) as a landscape over the map; walls are holes. ax: a 3-D axes."""
    height = world.to_grid(eigenvector)
    rows, cols = np.indices(height.shape)
    top = np.nanmax(np.abs(height))
    colours = matplotlib.colormaps[SIGNED](Normalize(-top, top)(np.nan_to_num(height)))
    colours[~world.free] = 0.0
    ax.plot_surface(cols, -rows, height, facecolors=colours, rstride=1, cstride=1, shade=False, linewidth=0.25,
                    edgecolor="#444b57")  # fmt: skip
    ax.view_init(elev=48, azim=-72)  # the map's top is far, its left is left
    ax.set_box_aspect((1, 1, 0.45), zoom=1.2)
    ax.set_axis_off()


def spectra(laplacian_values, gamma: float, fig: Figure | None = None) -> Figure:
    """The two spectra and the curve that joins them, λ = 1/(1 − γ(1 − λ′)) (§3.2; the slider of notebook 02).

    laplacian_values: (S,) eigenvalues of L.  Give `fig` back to redraw it for another γ.
    """
    lam = np.sort(np.asarray(laplacian_values))
    sr = 1 / (1 - gamma * (1 - lam))
    grid = np.linspace(0, 2, 200)
    curve = 1 / (1 - gamma * (1 - grid))
    ranks = np.arange(1, len(lam) + 1)
    if fig is None:
        fig = figure(10, 3.5)
        left, right = fig.subplots(1, 2, width_ratios=[1.15, 1])
        left.plot(grid, curve, color="#b8bec6", linewidth=2)
        left.plot(lam, sr, "o", color=COLOURS["sr"], markersize=3.6)
        left.set_xlabel("eigenvalue of the Laplacian, $\\lambda'$ (small = smooth)")
        left.set_ylabel("eigenvalue of the SR, $\\lambda$")
        left.set_yscale("log")
        left.set_ylim(0.4, 130)
        left.set_yticks([0.5, 1, 2, 5, 10, 20, 50, 100], ["0.5", "1", "2", "5", "10", "20", "50", "100"])
        left.minorticks_off()
        left.set_title("one curve carries every eigenvalue across")
        right.plot(ranks, sr / sr.max(), color=COLOURS["sr"], linewidth=2)
        right.plot(ranks, lam / lam.max(), color=COLOURS["pvf"], linewidth=2)
        right.set_xlabel("rank of the Laplacian's eigenvalue")
        right.set_ylabel("share of the largest")
        right.set_ylim(-0.03, 1.08)
        right.text(ranks[-1] * 0.74, 0.74, "Laplacian rises", color=COLOURS["pvf"], ha="right")
        right.text(ranks[-1] * 0.98, 0.1, "SR falls", color=COLOURS["sr"], ha="right", va="bottom")
        right.set_title("the order is reversed")
        head = left.text(0.97, 0.95, "", transform=left.transAxes, ha="right", va="top", fontsize=12)
        for artist in (*left.lines, right.lines[0], head):
            artist.set_gid(LIVE)
    left, right = fig.axes
    left.lines[0].set_ydata(curve)
    left.lines[1].set_ydata(sr)
    right.lines[0].set_ydata(sr / sr.max())
    gap = f"\n4th to 5th: {(sr[3] - sr[4]) / sr[0]:.3f} of the largest" if len(sr) > 4 else ""
    left.texts[0].set_text(f"$\\gamma$ = {gamma:.3g}, horizon {1 / (1 - gamma):.3g} steps{gap}")
    return fig
