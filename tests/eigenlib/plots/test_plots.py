"""Figures: right colours for signed values, visible walls, and alt text."""

from unittest.mock import patch

import numpy as np
import pytest
from matplotlib.quiver import Quiver

from eigenlib import plots
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.plots import explorers
from eigenlib.representation import laplacian

WORLD = GridWorld.named("four_rooms")
VALUES = extract_eigenpurposes(laplacian(WORLD.adjacency(self_loops=True)), first="smallest").values


def test_signed_values_are_centred_on_zero():
    fig = plots.mazes(WORLD, {"a": np.linspace(-1, 3, 104), "b": np.zeros(104)}, signed=True)
    for ax in fig.axes[:2]:
        assert ax.images[0].norm.vmin == -ax.images[0].norm.vmax == -3


def test_walls_are_drawn_and_are_in_neither_colour_map():
    fig = plots.figure(4, 4)
    ax = fig.subplots()
    image = plots.maze(ax, WORLD, np.ones(104))
    assert np.ma.getmaskarray(np.ma.masked_invalid(image.get_array())).sum() == 65
    wall = np.array(plots.matplotlib.colors.to_rgb(plots.WALL))
    for name in (plots.SIGNED, plots.COUNTS):
        shades = plots.matplotlib.colormaps[name](np.linspace(0, 1, 256))[:, :3]
        assert np.abs(shades - wall).max(axis=1).min() > 0.08


def test_arrows_point_where_the_actions_go():
    """Rows grow downwards on screen, so 'up' must be drawn as up: a flipped sign here would mirror every option."""
    fig = plots.figure(4, 4)
    ax = fig.subplots()
    plots.maze(ax, WORLD)
    plots.arrows(ax, WORLD, np.zeros(104, dtype=int))
    (quiver,) = [part for part in ax.collections if isinstance(part, Quiver)]
    assert (quiver.V > 0).all()
    assert (quiver.U == 0).all()
    assert ax.yaxis_inverted()


def test_the_same_figure_gives_the_same_bytes():
    assert plots.png(explorers.spectra(VALUES, 0.9)) == plots.png(explorers.spectra(VALUES, 0.9))


def test_show_needs_a_sentence_and_passes_it_on():
    fig = plots.figure(2, 2)
    with pytest.raises(ValueError, match="sentence"):
        plots.show(fig, "a figure")
    with patch("IPython.display.display") as display:
        plots.show(fig, "An empty figure for a test.")
    assert display.call_args.kwargs["metadata"]["image/png"]["alt"] == "An empty figure for a test."


def test_maps_without_any_value_are_drawn():
    """The row of a state that was never visited is zero everywhere."""
    world = GridWorld.named("corridor")
    zero = np.zeros(world.n_states)
    for values in (zero, None):
        for log in (False, True):
            plots.mazes(world, {"a": values}, log=log)
    fig = plots.mazes(world, {"a": zero, "b": zero}, signed=True)
    (image,) = fig.axes[0].images
    colour = image.cmap(image.norm(0.0))
    assert min(colour[:3]) > 0.9  # zero is white, not the end of the scale
