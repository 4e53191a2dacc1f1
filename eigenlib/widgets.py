"""Explorers: the figures of `plots` behind controls (notebooks 02–04 and on).

An explorer draws once as a plain picture, so a notebook without a live kernel still shows it, and then redraws into the
same `Image` widget. Two decisions make it feel instant and never freeze: only the artists marked LIVE are drawn again, over
a background kept from the first drawing; and no `Output` widget is used, because those lose updates while cells still run.
"""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from eigenlib import plots
from eigenlib.gridworld import GridWorld

_SCREEN_DPI = 92


class Screen:
    """A Figure that can be rendered again and again, quickly: PNG bytes of its current state."""

    def __init__(self, fig: Figure) -> None:
        self.fig, self.canvas = fig, FigureCanvasAgg(fig)
        fig.set_dpi(_SCREEN_DPI)
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
        pixels = Image.fromarray(np.asarray(self.canvas.buffer_rgba())[..., :3].copy())
        buffer = io.BytesIO()
        pixels.save(buffer, "png", compress_level=1)
        return buffer.getvalue()


class Explorer(ipywidgets.VBox):
    """Controls above a figure.

    draw(fig, **values) → Figure: builds the figure when fig is None, otherwise updates its LIVE artists.
    alt(**values) → str: what the picture shows, for readers who cannot see it.
    A ValueError from `draw` is the user's to mend and is shown in words; anything else is a bug of ours and is raised.
    """

    def __init__(
        self,
        draw: Callable[..., Figure],
        controls: Mapping[str, ipywidgets.ValueWidget],
        alt: Callable[..., str],
    ) -> None:
        self._draw, self._alt, self.controls = draw, alt, dict(controls)
        self.screen = Screen(draw(None, **self.values))
        self.image = ipywidgets.Image(value=self.screen.png(), format="png")
        self.image.layout.max_width = "100%"
        self.message = ipywidgets.HTML()
        for control in self.controls.values():
            control.observe(self._changed, names="value")
        row = ipywidgets.HBox(list(self.controls.values()), layout={"flex_flow": "row wrap"})
        super().__init__([row, self.message, self.image])
        self.add_class("eigenlib-explorer")

    @property
    def values(self) -> dict[str, Any]:
        return {name: control.value for name, control in self.controls.items()}

    def _changed(self, _change=None) -> None:
        try:
            self._draw(self.screen.fig, **self.values)
        except ValueError as problem:
            self.message.value = f'<p class="eigenlib-problem" role="alert">{html.escape(str(problem))}</p>'
            return
        except (
            Exception
        ) as bug:  # a callback's traceback would vanish in the kernel's log: leave a mark that tests find
            self.message.value = f'<p class="eigenlib-bug" role="alert">{html.escape(repr(bug))}</p>'
            raise
        self.message.value = ""
        self.image.value = self.screen.png()

    def _repr_mimebundle_(self, include=None, exclude=None, **kwargs):
        """The live widget, and beside it a picture for every place that has no kernel (GitHub, the report)."""
        bundle = super()._repr_mimebundle_(include=include, exclude=exclude, **kwargs)
        if bundle is None:
            return bundle
        settings = ", ".join(f"{getattr(c, 'description', '') or name} {c.value}" for name, c in self.controls.items())
        alt = f"{self._alt(**self.values)} Controls: {settings}."
        width = int(self.screen.fig.get_size_inches()[0] * _SCREEN_DPI)
        data = {**bundle, "image/png": self.screen.png(), "text/plain": f"Explorer: {alt}"}
        return data, {"image/png": {"alt": alt, "width": width}, "eigenlib": {"explorer": settings}}


def slider(description: str, value: float, low: float, high: float, step: float, **kwargs) -> ipywidgets.FloatSlider:
    """A slider that redraws while it is dragged."""
    return ipywidgets.FloatSlider(
        value=value, min=low, max=high, step=step, description=description, readout_format=".3g",
        continuous_update=True, **kwargs,
    )  # fmt: skip


def explore_spectra(world: GridWorld, laplacian_values, gamma: float = 0.9) -> Explorer:
    """The two spectra against γ (notebook 02)."""
    return Explorer(
        lambda fig, gamma: plots.spectra(laplacian_values, gamma, fig),
        {"gamma": slider("γ", gamma, 0.01, 0.99, 0.01)},
        lambda gamma: f"Spectra of the Laplacian and of the SR of {world.name or 'the map'} at γ = {gamma:g}.",
    )
