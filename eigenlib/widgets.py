"""Explorers: figures behind controls (notebooks 02–04 and on).

An explorer draws once as a plain picture, so a notebook without a live kernel still shows it, and then redraws into the
same `Image` widget. Two decisions make it feel instant and never freeze: only the artists marked LIVE are drawn again, over
a background kept from the first drawing; and no `Output` widget is used, because those lose updates while cells still run.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import anywidget
import ipywidgets
import numpy as np
import traitlets
from matplotlib.figure import Figure

from eigenlib import plots
from eigenlib.eigenoptions import learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes, match_signs
from eigenlib.gridworld import ARROWS, GridWorld, map_names
from eigenlib.live import SCREEN_DPI, Screen, deep_sr, eigenoption, learned_sr, spectra
from eigenlib.paths import ASSETS
from eigenlib.representation import successor_representation


class Explorer(ipywidgets.VBox):
    """Controls above a figure.

    draw(fig, **values) → Figure: builds the figure when fig is None, otherwise updates its LIVE artists and returns it; where
    that cannot be (another map, say) it may return a new one.
    alt(**values) → str: what the picture shows, for readers who cannot see it.
    A ValueError from `draw` is the user's to mend and is shown in words; anything else is a bug of ours and is raised.
    """

    def __init__(
        self,
        draw: Callable[..., Figure],
        controls: Mapping[str, ipywidgets.ValueWidget],
        alt: Callable[..., str],
        extra: Sequence[ipywidgets.Widget] = (),
    ) -> None:
        self._draw, self._alt, self.controls = draw, alt, dict(controls)
        self.screen = Screen(draw(None, **self.values))
        self.image = ipywidgets.Image(value=self.screen.png(), format="png", layout={"max_width": "100%"})
        self.message = ipywidgets.HTML()
        for control in self.controls.values():
            control.observe(self._changed, names="value")
        row = ipywidgets.HBox([*self.controls.values(), *extra], layout={"flex_flow": "row wrap"})
        super().__init__([row, self.message, self.image])
        self.add_class("eigenlib-explorer")

    @property
    def values(self) -> dict[str, Any]:
        return {name: control.value for name, control in self.controls.items()}

    def _changed(self, _change=None) -> None:
        try:
            fig = self._draw(self.screen.fig, **self.values)
        except ValueError as problem:
            self.message.value = f'<p class="eigenlib-problem" role="alert">{html.escape(str(problem))}</p>'
            return
        except Exception as bug:  # the traceback would vanish in the kernel's log: leave a mark that tests find
            self.message.value = f'<p class="eigenlib-bug" role="alert">{html.escape(repr(bug))}</p>'
            raise
        if fig is not self.screen.fig:
            self.screen = Screen(fig)
        self.message.value = ""
        self.image.value = self.screen.png()

    def _repr_mimebundle_(self, include=None, exclude=None, **kwargs):
        bundle = super()._repr_mimebundle_(include=include, exclude=exclude, **kwargs)
        settings = ", ".join(f"{getattr(c, 'description', '') or name} {c.value}" for name, c in self.controls.items())
        width = int(self.screen.fig.get_size_inches()[0] * SCREEN_DPI)
        return _pictured(bundle, self.screen.png(), width, self._alt(**self.values), settings)


def _pictured(bundle, png: bytes, width: int, alt: str, settings: str):
    """A widget's display data, and beside it a picture for every place that has no kernel (GitHub, the report)."""
    data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
    alt = f"{alt} Controls: {settings}."
    data |= {"image/png": png, "text/plain": f"Explorer: {alt}"}
    return data, {"image/png": {"alt": alt, "width": width}, "eigenlib": {"explorer": settings}}


def script(name: str, explorer: str) -> str:
    """The module of an explorer computed in the browser: kernel.js, stage.js and its own file, in which it has a name."""
    parts = [(ASSETS / part).read_text(encoding="utf-8") for part in ("kernel.js", "stage.js", name)]
    return "\n".join([*parts, f"export default {explorer};\n"])


class MazeEditor(anywidget.AnyWidget):
    """A living maze: walls are painted, its eigenvectors and options follow (notebook 04, and the report's first page).

    All of it is computed in the browser, so that it also works in the report. `editor.world` is the map as painted, and can be
    set; so can `index`, `sign`, `gamma`, and `flat`, which looks at the landscape from above. story: begin with the walkers.
    """

    _esm = script("maze.js", "livingMaze")
    text = traitlets.Unicode().tag(sync=True)
    index = traitlets.Int(1).tag(sync=True)
    sign = traitlets.Int(1).tag(sync=True)
    gamma = traitlets.Float(0.9).tag(sync=True)
    flat = traitlets.Bool(False).tag(sync=True)
    story = traitlets.Bool(False).tag(sync=True)
    share = traitlets.Bool(False).tag(sync=True)  # only a page of its own may put the maze into its address

    def __init__(self, world: GridWorld, index: int = 1, gamma: float = 0.9, story: bool = False) -> None:
        if not 0 <= index < world.n_states:
            raise ValueError(f"There is no eigenvector {index}: this map has the numbers 0 to {world.n_states - 1}.")
        super().__init__(text=_editable(world).text, index=index, gamma=gamma, story=story)

    @property
    def world(self) -> GridWorld:
        return GridWorld.from_text(self.text)

    @world.setter
    def world(self, world: GridWorld) -> None:
        self.text = _editable(world).text

    def _repr_mimebundle_(self, **kwargs):
        purposes = extract_eigenpurposes(successor_representation(self.world.transition_matrix(), self.gamma))
        vector = self.sign * purposes.vectors[:, self.index]
        policy = learn_eigenoption(self.world, vector, self.gamma).policy
        fig = eigenoption(self.world, purposes.values, self.index, vector, policy)
        alt = "Still picture of the maze editor: eigenvector, landscape, option, eigenvalues. Live, its walls can be edited."
        return _pictured(
            super()._repr_mimebundle_(**kwargs), plots.png(fig, 92), 1100, alt, f"eigenvector {self.index}"
        )


def _editable(world: GridWorld) -> GridWorld:
    if world.slip or np.isin(world.characters, list(ARROWS)).any():
        raise ValueError("The maze editor takes maps without slips and one-way doors: only there T is symmetric.")
    return world


def slider(description: str, value: float, low: float, high: float, step: float) -> ipywidgets.FloatSlider:
    """A slider that redraws while it is dragged."""
    return ipywidgets.FloatSlider(value, min=low, max=high, step=step, description=description, readout_format=".3g")


def explore_spectra(world: GridWorld, laplacian_values, gamma: float = 0.9) -> Explorer:
    """The two spectra against γ (notebook 02)."""
    return Explorer(
        lambda fig, gamma: spectra(laplacian_values, gamma, fig),
        {"gamma": slider("γ", gamma, 0.01, 0.99, 0.01)},
        lambda gamma: f"Spectra of the Laplacian and of the SR of {world.name or 'the map'} at γ = {gamma:g}.",
    )


class SRExplorer(anywidget.AnyWidget):
    """Ψ̂ by TD, learned in the browser with the library's own random numbers (notebook 03): see `explore_sr`."""

    _esm = script("sr.js", "srExplorer")
    text = traitlets.Unicode().tag(sync=True)
    episodes = traitlets.Int(100).tag(sync=True)
    gamma = traitlets.Float(0.9).tag(sync=True)
    step_size = traitlets.Float(0.1).tag(sync=True)
    start = traitlets.Enum(["fixed", "random"], "fixed").tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)
    vector = traitlets.Int(1).tag(sync=True)
    state = traitlets.Int(0).tag(sync=True)

    def __init__(self, world: GridWorld, **values: Any) -> None:
        super().__init__(text=world.text, **values)
        self._name = world.name or "the map"

    @property
    def world(self) -> GridWorld:
        return GridWorld.from_text(self.text)

    def _repr_mimebundle_(self, **kwargs):
        fig = learned_sr(
            self.world, self.episodes, self.gamma, self.step_size, self.start, self.seed, self.vector, self.state
        )
        alt = (
            f"The SR of {self._name} learned in {self.episodes:,} episodes: a row of it, eigenvector {self.vector} learned and "
            "exact, and the error against episodes."
        )
        settings = (
            f"episodes {self.episodes}, γ {self.gamma}, step size {self.step_size}, start {self.start}, seed {self.seed}, "
            f"eigenvector {self.vector}, row of state {self.state}"
        )
        return _pictured(super()._repr_mimebundle_(**kwargs), plots.png(fig, SCREEN_DPI), 1122, alt, settings)


def explore_sr(world: GridWorld, episodes: int = 100, gamma: float = 0.9, state: int = 0) -> SRExplorer:
    """Ψ̂ by TD under your hands: episodes, γ, step size, start, seed; click the map for another row (notebook 03).

    The numbers are those of learn_successor_representation with 100 steps and this seed.
    """
    if not 0 <= state < world.n_states:
        raise ValueError(f"There is no state {state}: this map has the states 0 to {world.n_states - 1}.")
    return SRExplorer(world, episodes=episodes, gamma=gamma, state=state, vector=min(1, world.n_states - 1))


def explore_eigenvectors(name: str = "four_rooms", gamma: float = 0.9, index: int = 1) -> Explorer:
    """Any eigenvector of any bundled map: heat map, landscape, option, place in the spectrum (notebook 04)."""

    @cache
    def solved(name: str):
        world = GridWorld.named(name)
        return world, extract_eigenpurposes(successor_representation(world.transition_matrix(), gamma))

    drawn = {"map": name}

    def draw(fig, name, index, sign):
        world, purposes = solved(name)
        vector = (1 if sign == "+" else -1) * purposes.vectors[:, index]
        policy = learn_eigenoption(world, vector, gamma).policy
        fig = None if drawn["map"] != name else fig
        drawn["map"] = name
        return eigenoption(world, purposes.values, index, vector, policy, fig)

    maps = ipywidgets.Dropdown(options=map_names(), value=name, description="map")
    which = ipywidgets.IntSlider(index, min=0, max=solved(name)[0].n_states - 1, description="eigenvector")
    maps.observe(lambda change: which.set_trait("max", solved(change.new)[0].n_states - 1), names="value")
    return Explorer(
        draw,
        {
            "name": maps,
            "index": which,
            "sign": ipywidgets.ToggleButtons(
                options=["+", "−"], value="+", description="sign", style={"button_width": "3em"}
            ),
        },
        lambda name, index, sign: (
            f"Eigenvector {sign}{index} of {name}: heat map, landscape, option with its end states, eigenvalues."
        ),
    )


def explore_deep_sr(world: GridWorld, runs: Mapping, gamma: float = 0.9, count: int = 4) -> Explorer:
    """What stored networks found, against γ and width, by either potential (notebook 08).

    runs: {(width, γ, seed): Learned}, as `deep_rooms.stored_runs` gives them; those of seed 0 are shown.
    """
    from eigenlib import deep_rooms

    T = world.transition_matrix()
    exact = extract_eigenpurposes(T, count + 1).vectors[:, 1:]  # those of Ψ, for every γ
    gammas = sorted({g for width, g, seed in runs if seed == 0 and width in deep_rooms.WIDTHS})

    def draw(fig, gamma, width, potential):
        run = runs[width, gamma, 0]
        table = run.psi if potential == "eᵀψ" else run.phi
        found = deep_rooms.potentials(table, deep_rooms.directions(run.psi), count).vectors
        error = deep_rooms.successor_error(run, T, gamma)
        score = deep_rooms.canonical_correlations(found, exact).mean()
        words = f"error of ψ {error:.2f}      canonical correlation of {potential} {score:.2f}"
        return deep_sr(world, exact, match_signs(found, exact), words, fig)

    def buttons(options: Sequence[str], value: str, description: str) -> ipywidgets.ToggleButtons:
        return ipywidgets.ToggleButtons(
            options=options, value=value, description=description, style={"button_width": "5em"}
        )

    return Explorer(
        draw,
        {
            "gamma": ipywidgets.SelectionSlider(options=gammas, value=gamma, description="γ"),
            "width": buttons(list(deep_rooms.WIDTHS), "16 / 256", "width"),
            "potential": buttons(["eᵀψ", "eᵀφ"], "eᵀψ", "potential"),
        },
        lambda gamma, width, potential: (
            f"First {count} exact directions, and below them {potential} of a network of width {width} at γ = {gamma:g}."
        ),
    )


def explore_films(games: Mapping[str, Mapping[tuple[int, int], Any]]) -> anywidget.AnyWidget:
    """Films of options, played in the browser, in the report too: {title: `atari.films.films` of a game} (notebook 10)."""
    from eigenlib.film_widget import FilmExplorer

    return FilmExplorer(games)
