"""Figures of the deep lessons (notebooks 08 and 09): the network, frames side by side, and strips of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from eigenlib import _require, plots

# One colour a module of the network, the same in figure and legend.
MODULES = {"representation": "#2f6690", "reconstruction": "#d17b0f", "SR estimator": "#3a9188"}


def _block(ax: Axes, x: float, y: float, shape: tuple[int, ...], colour: str) -> tuple[float, float]:
    """One layer's output at (x, y): a stack of sheets for images, a bar for vectors. Returns its width and height."""
    if len(shape) == 3:
        side = 0.42 + 0.9 * shape[1] / 84
        sheets = 4 if shape[0] > 1 else 1
        for k in range(sheets):
            shift = 0.06 * (sheets - 1 - k)
            ax.add_patch(Rectangle((x - side / 2 + shift, y - side / 2 + shift), side, side, facecolor=colour,
                                   edgecolor="white", linewidth=0.8))  # fmt: skip
        return side, side
    height = 0.42 * np.log2(shape[0]) / 3
    ax.add_patch(Rectangle((x - 0.13, y - height / 2), 0.26, height, facecolor=colour, edgecolor="white"))
    return 0.26, height


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], dashed: bool = False) -> None:
    ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, color="0.45", linewidth=1,
                                 linestyle="--" if dashed else "-"))  # fmt: skip


def network(layers: Sequence, n_actions: int) -> Figure:
    """The network of Fig. 2, drawn from `DeepSR.layers()`: output sizes, parameters and the stopped gradient."""
    n_actions, layers = _require.whole(n_actions, "n_actions", 1), _require.several(layers, "layers", "layers")
    by_name = {getattr(layer, "name", None): layer for layer in layers}
    chains = {
        "representation": ["conv1", "conv2", "conv3", "features"],
        "reconstruction": ["factor", "merge", "expand", "deconv1", "deconv2", "deconv3"],
        "SR estimator": ["successor1", "successor2"],
    }
    missing = [name for names in (*chains.values(), ["action"]) for name in names if name not in by_name]
    if missing or None in by_name:
        raise ValueError(f"layers must be what DeepSR.layers() gives; {missing or 'something else'} is wrong with it.")
    total = sum(layer.parameters for layer in layers)
    fig = plots.figure(11.6, 4.9, f"One network, three modules, {total / 1e6:.1f} million weights")
    ax = fig.subplots()
    ax.set(xlim=(-0.9, 15.7), ylim=(-3.6, 2.1), aspect="equal")
    ax.set_axis_off()

    def draw(name: str, x: float, y: float, colour: str) -> tuple[float, float]:
        layer = by_name[name]
        shape = layer.shape if len(layer.shape) != 2 else (1, *layer.shape)
        width, height = _block(ax, x, y, shape, colour)
        text = "×".join(map(str, layer.shape))
        ax.text(x, y - height / 2 - 0.12, f"{text}\n{_count(layer.parameters)}", ha="center", va="top", fontsize=7.6)
        return width, height

    _block(ax, -0.1, 0, (1, 84, 84), "0.35")
    ax.text(-0.1, -0.85, "frame s\n84×84", ha="center", va="top", fontsize=7.6)
    edge = 0.55
    for k, name in enumerate(chains["representation"]):
        x = 1.75 + 1.5 * k
        width, _ = draw(name, x, 0, MODULES["representation"])
        _arrow(ax, (edge + 0.08, 0), (x - width / 2 - 0.05, 0))
        edge = x + width / 2 + (0.2 if name.startswith("conv") else 0)
    ax.text(6.25, 1.02, "φ(s)", ha="center", fontsize=12, fontweight="bold", color=MODULES["representation"])

    colour = MODULES["reconstruction"]
    for k, name in enumerate(chains["reconstruction"]):
        x = 7.75 + 1.35 * k + 0.35 * (name == "deconv3")
        width, _ = draw(name, x, 0, colour)
        _arrow(ax, (edge + 0.08, 0), (x - width / 2 - 0.05, 0))
        edge = x + width / 2 + (0.2 if name.startswith("deconv") and name != "deconv3" else 0)
        if name == "factor":
            ax.text(8.42, 0.02, "⊗", ha="center", va="center", fontsize=19, color=colour,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})  # fmt: skip
            edge = 8.6
    action = by_name["action"]
    ax.text(
        8.42, 1.35, f"action a\none of {n_actions}\n{_count(action.parameters)}", ha="center", va="bottom", fontsize=7.6
    )
    _arrow(ax, (8.42, 1.3), (8.42, 0.3))
    ax.text(14.85, 1.0, "next frame\nζ(φ(s), a)", ha="center", fontsize=9, fontweight="bold", color=colour)

    colour = MODULES["SR estimator"]
    _arrow(ax, (6.25, -1.45), (6.25, -2.45), dashed=True)
    ax.text(6.25, -2.62, "ø", ha="center", va="center", fontsize=15, fontweight="bold", color=colour)
    ax.text(5.95, -2.62, "the gradient\nstops here", ha="right", va="center", fontsize=8.5, color="0.35")
    edge = 6.42
    for k, name in enumerate(chains["SR estimator"]):
        x = 7.75 + 1.35 * k
        width, _ = draw(name, x, -2.62, colour)
        _arrow(ax, (edge + 0.06, -2.62), (x - width / 2 - 0.05, -2.62))
        edge = x + width / 2
    ax.text(9.45, -2.62, "ψ(φ(s))", va="center", fontsize=12, fontweight="bold", color=colour)
    for k, (name, tint) in enumerate(MODULES.items()):
        ax.text(11.6, -1.9 - 0.42 * k, f"■ {name}", color=tint, fontsize=9.5)
    return fig


def _count(parameters: int) -> str:
    return f"{parameters / 1e6:.2f} M" if parameters >= 1e5 else f"{parameters / 1e3:.1f} k"


def _named(pictures: Mapping[str, np.ndarray], name: str) -> Mapping[str, np.ndarray]:
    """At least one picture, each under its name."""
    if not _require.mapping(pictures, name, "names and pictures"):
        raise ValueError(f"{name} must hold at least one picture.")
    for title in pictures:
        _require.text(title, f"A name in {name}")
    return pictures


def _picture(image, name: str) -> np.ndarray:
    """(height, width) in grey or (height, width, 3) in colour, as it is."""
    colour = isinstance(image, np.ndarray) and image.ndim == 3
    _require.numbers(image, name, ("height", "width", 3) if colour else ("height", "width"))
    return np.asarray(image)


def frames(images: Mapping[str, np.ndarray], title: str = "", columns: int | None = None, size: float = 1.5) -> Figure:
    """Grey or colour pictures in a row (or rows), each under its name."""
    images = {name: _picture(image, f"images[{name!r}]") for name, image in _named(images, "images").items()}
    size = _require.real(size, "size", 0, 50, "(]")
    columns = min(len(images) if columns is None else _require.whole(columns, "columns", 1), len(images))
    rows, title = -(-len(images) // columns), _require.text(title, "title")
    fig = plots.figure(columns * size + 0.1, rows * (size + 0.3) + 0.45 * bool(title), title)
    grid = fig.subplots(rows, columns, squeeze=False)
    for ax in grid.flat:
        ax.set_axis_off()
    for ax, (name, image) in zip(grid.flat, images.items(), strict=False):
        ax.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        ax.set_title(name, fontsize=9)
    return fig


def strips(rows: Mapping[str, np.ndarray], title: str = "", size: float = 1.05) -> Figure:
    """Films above one another, each a row of pictures, (n, H, W), with its name on the left (the appendix's figures)."""
    rows = {
        name: _require.numbers(film, f"rows[{name!r}]", ("n", "height", "width"))
        for name, film in _named(rows, "rows").items()
    }
    size, title = _require.real(size, "size", 0, 50, "(]"), _require.text(title, "title")
    count = max(map(len, rows.values()))
    fig = plots.figure(count * size + 0.9, len(rows) * size + 0.35 + 0.35 * bool(title), title)
    grid = fig.subplots(len(rows), count, squeeze=False)
    for line, (name, images) in zip(grid, rows.items(), strict=True):
        for k, ax in enumerate(line):
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if k < len(images):
                ax.imshow(images[k], cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        line[0].set_ylabel(name, fontsize=9, rotation=0, ha="right", va="center")
    return fig
