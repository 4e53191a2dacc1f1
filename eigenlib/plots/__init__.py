"""Figures: one function each, returning a matplotlib Figure (all notebooks).

One look for the whole course: signed quantities on a zero-centred red–blue map, counts on a sequential one, walls in a grey
that is in neither, one colour a method. `show` puts a figure into a notebook with alt text, for readers who listen and
for the report.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection, PolyCollection
from matplotlib.colors import LogNorm, Normalize, is_color_like
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from eigenlib import _require
from eigenlib._extras import needed
from eigenlib.eigenoptions import Option
from eigenlib.gridworld import MOVES, GridWorld
from eigenlib.worlds import World

SIGNED, COUNTS = "RdBu_r", "magma"  # both readable with every common colour blindness
WALL, INK, ACCENT = "#8d9299", "#1f2430", "#d1495b"
COLOURS = {"sr": "#2f6690", "pvf": "#d17b0f", "primitive": "#5b5f66", "random": "#7b5ea7", "td": "#3a9188"}

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
    width, height = _require.real(width, "width", 0, 300, "(]"), _require.real(height, "height", 0, 300, "(]")
    fig = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(fig)
    if _require.text(title, "title"):
        fig.suptitle(title, x=0.01, ha="left")
    return fig


def png(fig: Figure, dpi: int = 120) -> bytes:
    """The figure as PNG bytes, the same bytes for the same figure."""
    _require.instance(fig, "fig", Figure)
    dpi, buffer = _require.whole(dpi, "dpi", 1, 2000), io.BytesIO()
    fig.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def show(fig: Figure, alt: str) -> None:
    """Display a figure; `alt` tells a reader who cannot see it what it shows."""
    _require.instance(fig, "fig", Figure)
    if len(_require.text(alt, "alt").split()) < 4:
        raise ValueError(f"Alt text should say in a sentence what the figure shows; got {alt!r}.")
    width = int(fig.get_size_inches()[0] * 92)
    needed("IPython.display", "course").display(
        {"image/png": png(fig), "text/plain": f"Figure: {alt}"},
        metadata={"image/png": {"alt": alt, "width": width}},
        raw=True,
    )


def require_map(world: GridWorld, *axes: Axes) -> None:
    """A world that can be drawn, and where; or a sentence that says how to make one."""
    if isinstance(world, World):
        _ = world.free  # where there is no map, this says so
    _require.instance(world, "world", GridWorld, "make one with GridWorld.named or GridWorld.from_text")
    for ax in axes:
        _require.instance(ax, "ax", Axes, "make some with plots.figure().subplots()")


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
    require_map(world, ax)
    signed, log = _require.flag(signed, "signed"), _require.flag(log, "log")
    decades = _require.real(decades, "decades", 0, 300, "(]")
    limit = None if limit is None else _require.real(limit, "limit", 0)
    bare = values is None  # a white floor, with its tiles to be counted
    colours = "gray_r" if bare else SIGNED if signed else COUNTS
    signed = signed and not bare
    values = np.zeros(world.n_states) if bare else _require.numbers(values, "values", (world.n_states,))
    top = (float(np.abs(values).max()) if limit is None else limit) or 1.0
    norm = LogNorm(top * 10.0**-decades, top, clip=True) if log else Normalize(-top if signed else 0.0, top)
    ax.set_facecolor(WALL)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    grid = world.to_grid(values)
    image = ax.imshow(grid, cmap=colours, norm=norm, interpolation="nearest")
    if bare:
        tiles = [Rectangle((x - 0.5, y - 0.5), 1, 1) for y, x in np.argwhere(np.isfinite(grid))]
        ax.add_collection(PatchCollection(tiles, facecolor="none", edgecolor="0.88", linewidth=0.6))
    return image


def name_cells(ax: Axes, world: GridWorld, names: Mapping[str, int]) -> None:
    """Letters on states, readable on every colour."""
    require_map(world, ax)
    for name, state in _require.mapping(names, "names", "names and states").items():
        row, col = world.cells[_require.whole(state, f"names[{name!r}]", 0, world.n_states - 1)]
        halo = {"boxstyle": "circle,pad=0.18", "facecolor": "white", "edgecolor": INK, "linewidth": 0.8}
        ax.text(
            col, row, _require.text(name, "names"), ha="center", va="center", fontsize=9, fontweight="bold", bbox=halo
        )


def arrows(ax: Axes, world: GridWorld, policy, colour: str = INK) -> None:
    """An option on the map: an arrow where its policy (S,) acts, a dot where it terminates (policy −1)."""
    require_map(world, ax)
    policy = _require.wholes(policy, "policy", (world.n_states,), -1, len(MOVES) - 1)
    if not is_color_like(colour):
        raise ValueError(f"colour must be a colour, such as 'red' or '#1f2430', got {_require.shown(colour)}.")
    ends = policy < 0
    dy, dx = np.ma.array(MOVES[policy], mask=np.stack([ends, ends], axis=1)).T  # masked: not drawn
    rows, cols = world.cells.T
    ax.quiver(cols, rows, dx, -dy, pivot="mid", scale=1.55, scale_units="xy", width=0.16, units="xy", color=colour,
              headwidth=3.2, headlength=3.0, headaxislength=2.8)  # fmt: skip
    ax.scatter(cols[ends], rows[ends], s=26, color=ACCENT, edgecolor="white", linewidth=0.7, zorder=3)


def landscape(ax: Axes, world: GridWorld, values) -> None:
    """Signed values (S,) as a terraced landscape over the map, seen from above the lower edge.

    Drawn as flat polygons, far ones first, which is many times faster than a 3-D axes.
    """
    require_map(world, ax)
    values = _require.numbers(values, "values", (world.n_states,))
    top = float(np.abs(values).max()) or 1.0
    colours = matplotlib.colormaps[SIGNED](values / top / 2 + 0.5)
    height = 3.2 * (values / top + 1.0) + 0.25
    turn, tilt = np.deg2rad(24), np.deg2rad(40)

    def project(row, col, up):
        across, near = col * np.cos(turn) - row * np.sin(turn), col * np.sin(turn) + row * np.cos(turn)
        return np.stack([across, up * np.cos(tilt) - near * np.sin(tilt)], axis=-1)

    rows, cols = world.cells.T
    far_first = np.argsort(cols * np.sin(turn) + rows * np.cos(turn))
    half = 0.5
    ring = [(-half, -half), (-half, half), (half, half), (half, -half)]  # a tile's corners, around
    lid = np.stack([project(rows + r, cols + c, height) for r, c in ring], axis=1)
    floor = np.zeros_like(height)
    sides = []
    for (r1, c1), (r2, c2) in ((ring[2], ring[3]), (ring[1], ring[2])):  # the two sides that face the reader
        corners = [(r1, c1, height), (r2, c2, height), (r2, c2, floor), (r1, c1, floor)]
        sides.append(np.stack([project(rows + r, cols + c, up) for r, c, up in corners], axis=1))
    shapes = np.stack([*sides, lid], axis=1)[far_first].reshape(-1, 4, 2)
    tints = np.stack([colours * (0.62, 0.62, 0.62, 1), colours * (0.78, 0.78, 0.78, 1), colours], axis=1)[far_first]
    faces = [tuple(tint) for tint in tints.reshape(-1, 4).tolist()]
    ax.add_collection(PolyCollection(list(shapes), facecolor=faces, linewidth=0.3, edgecolor="#3c4350"))
    ax.set_axis_off()
    ax.set_aspect("equal")
    edge = np.array([project(r, c, up) for r in (0, world.free.shape[0] - 1) for c in (0, world.free.shape[1] - 1)
                     for up in (0.0, 6.7)])  # fmt: skip
    ax.set_xlim(edge[:, 0].min(), edge[:, 0].max())
    ax.set_ylim(edge[:, 1].min(), edge[:, 1].max())


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
    require_map(world)
    panels = _pictures(world, panels, "panels")
    shared, size = _require.flag(shared, "shared"), _require.real(size, "size", 0, 50, "(]")
    columns = min(len(panels) if columns is None else _require.whole(columns, "columns", 1), len(panels))
    rows = -(-len(panels) // columns)
    fig = figure(
        columns * size + 0.9 * shared, rows * (size * world.free.shape[0] / world.free.shape[1] + 0.35) + 0.45, title
    )
    sizes = [float(np.abs(values).max()) for values in panels.values() if values is not None]
    limit = max(sizes, default=0.0) if shared else None
    grid = fig.subplots(rows, columns, squeeze=False)
    for ax in grid.flat[len(panels) :]:
        ax.set_visible(False)
    for ax, (heading, values) in zip(grid.flat, panels.items(), strict=False):
        image = maze(ax, world, values, signed=signed, log=log, decades=decades, limit=limit)
        ax.set_title(heading, fontsize=10)
        name_cells(ax, world, {} if names is None else names)
    if shared:
        bar = fig.colorbar(image, ax=list(grid.flat), shrink=0.85, aspect=24, pad=0.015)
        bar.outline.set_visible(False)
        bar.set_label(_require.text(label, "label"))
    return fig


def _pictures(world: GridWorld, panels, name: str) -> dict[str, np.ndarray | None]:
    """{title: (S,) values or None}, at least one."""
    found = {
        _require.text(title, f"A title in {name}"): values
        if values is None
        else _require.numbers(values, f"{name}[{title!r}]", (world.n_states,))
        for title, values in _require.mapping(panels, name, "titles and values").items()
    }
    if not found:
        raise ValueError(f"{name} must hold at least one picture.")
    return found


def arc(world: GridWorld, walks, sr_row, eigenvector, option, screen) -> Figure:
    """The course in one picture: world → Ψ → eigenvector → option → Atari (notebook 00).

    walks: (n, steps) states.  sr_row, eigenvector: (S,).  option: an Option.  screen: (210, 160, 3) a game's picture.
    """
    require_map(world)
    walks = _require.wholes(walks, "walks", ("n", "steps"), 0, world.n_states - 1)
    sr_row = _require.numbers(sr_row, "sr_row", (world.n_states,))
    eigenvector = _require.numbers(eigenvector, "eigenvector", (world.n_states,))
    _require.instance(option, "option", Option)
    policy = _require.wholes(option.policy, "option.policy", (world.n_states,), -1, len(MOVES) - 1)
    _require.wholes(screen, "screen", ("height", "width", 3), 0, 255)
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
    for path, shade in zip(world.cells[walks] + jitter, shades, strict=True):
        ax.plot(path[:, 1], path[:, 0], color=shade, linewidth=0.8, alpha=0.8)
    maze(place(1), world, sr_row, log=True)
    landscape(fig.add_axes((lefts[2], 0.02, 0.23, 0.88)), world, eigenvector)
    ax = place(3)
    maze(ax, world, eigenvector, signed=True, limit=2.2 * float(np.abs(eigenvector).max()))
    arrows(ax, world, policy)
    ax = place(4)
    ax.imshow(screen)
    ax.set_axis_off()
    return fig


def panels(
    world: GridWorld,
    rows: Mapping[str, Mapping[str, np.ndarray]],
    policies: Mapping[str, Mapping[str, np.ndarray]] | None = None,
) -> Figure:
    """The appendix's tables of pictures: {row: {column: eigenvector (S,)}}, or options over them where policies are given."""
    require_map(world)
    lines = {
        row: {
            column: _require.numbers(vector, f"rows[{row!r}][{column!r}]", (world.n_states,))
            for column, vector in _require.mapping(line, f"rows[{row!r}]", "titles and vectors").items()
        }
        for row, line in _require.mapping(rows, "rows", "rows").items()
    }
    columns = list(next(iter(lines.values()), ()))
    if not columns or any(list(line) != columns for line in lines.values()):
        raise ValueError("rows must hold at least one row of pictures, and every row the same columns.")
    for row in lines if policies is not None else ():
        given = _require.mapping(policies, "policies", "rows").get(row)
        if not isinstance(given, Mapping) or not set(columns) <= set(given):
            raise ValueError("policies must hold a policy for every picture in rows, or be None.")
    fig = figure(2.05 * len(columns) + 0.3, 2.05 * len(lines) + 0.5)
    grid = fig.subplots(len(lines), len(columns), squeeze=False)
    for line, (row, vectors) in zip(grid, lines.items(), strict=True):
        for ax, column in zip(line, columns, strict=True):
            strength = 1.0 if policies is None else 2.4  # paler under arrows
            maze(ax, world, vectors[column], signed=True, limit=strength * float(np.abs(vectors[column]).max()))
            if policies is not None:
                arrows(ax, world, policies[row][column])
            if ax in grid[0]:
                ax.set_title(column, fontsize=10.5)
        line[0].set_ylabel(row, fontsize=10.5)
    return fig
