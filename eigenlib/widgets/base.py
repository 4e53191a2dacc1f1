"""What every explorer is: a widget that leaves a picture, and one that holds a map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets
from matplotlib.figure import Figure

from eigenlib import _require, plots
from eigenlib.eigenpurposes import Eigenpurposes, extract_eigenpurposes
from eigenlib.gridworld import ARROWS, GridWorld
from eigenlib.representation import successor_representation

STILL_DPI = 92


class Pictured(anywidget.AnyWidget):
    """A widget that leaves a picture, with words, where nothing runs: on GitHub, on paper, without JavaScript."""

    def still(self) -> tuple[Figure, str, str]:
        """The picture, what it shows, and how the controls stood."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs):
        fig, alt, settings = self.still()
        bundle: Any = super()._repr_mimebundle_(**kwargs)
        data, alt = dict(bundle[0] if isinstance(bundle, tuple) else bundle), f"{alt} Controls: {settings}."
        data |= {"image/png": plots.png(fig, STILL_DPI), "text/plain": f"Explorer: {alt}"}
        width = int(fig.get_size_inches()[0] * STILL_DPI)
        return data, {"image/png": {"alt": alt, "width": width}, "eigenlib": {"explorer": settings}}


class Explorer(Pictured):
    """An explorer of a map. Every trait can be set from Python, and follows the reader's hand; so does `world`."""

    text = traitlets.Unicode().tag(sync=True)
    gamma = traitlets.Float(0.9).tag(sync=True)
    # Whether it can show one-way doors.
    doors = True

    def __init_subclass__(cls, script: str = "", **kwargs: Any) -> None:
        if script:  # traitlets makes subclasses of its own
            files = [Path(__file__).with_name(name) for name in ("kernel.js", "stage.js", script)]
            cls._esm = "\n".join([*(file.read_text(encoding="utf-8") for file in files), "export default explorer;\n"])
        super().__init_subclass__(**kwargs)

    def __init__(self, world: GridWorld, **values: Any) -> None:
        self._name = getattr(world, "name", "") or "the map"
        super().__init__(text=self._fit(world).text, **values)

    @property
    def world(self) -> GridWorld:
        return GridWorld.from_text(self.text)

    @world.setter
    def world(self, world: GridWorld) -> None:
        self.text = self._fit(world).text

    def _fit(self, world: GridWorld) -> GridWorld:
        plots.require_map(world)
        if world.slip or (not self.doors and np.isin(world.characters, list(ARROWS)).any()):
            without = "slips" if self.doors else "slips and one-way doors: only there T is symmetric"
            raise ValueError(f"This explorer takes maps without {without}.")
        return world

    @traitlets.validate("text")
    def _valid_text(self, proposal) -> str:
        return self._fit(GridWorld.from_text(proposal["value"])).text

    @traitlets.validate("gamma")
    def _valid_gamma(self, proposal) -> float:
        return _require.discount(proposal["value"])

    def _purposes(self) -> Eigenpurposes:
        return extract_eigenpurposes(successor_representation(self.world.transition_matrix(), self.gamma))
