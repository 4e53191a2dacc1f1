"""Explorers: figures behind controls (notebooks 02–04 and on).

An explorer draws once as a plain picture, so a notebook without a live kernel still shows it, and then redraws into the
same `Image` widget. Two decisions make it feel instant and never freeze: only the artists marked LIVE are drawn again, over
a background kept from the first drawing; and no `Output` widget is used, because those lose updates while cells still run.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

import anywidget
import ipywidgets
import numpy as np
import traitlets
from matplotlib.figure import Figure

from eigenlib import _require, plots
from eigenlib.comparing import alignment, match_signs, relative_error
from eigenlib.eigenoptions import learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import ARROWS, GridWorld, map_names
from eigenlib.plots.explorers import SCREEN_DPI, Screen, deep_sr, eigenoption, learned_sr, spectra
from eigenlib.representation import learn_successor_representation, successor_representation


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
        for function, name in ((draw, "draw"), (alt, "alt")):
            if not callable(function):
                raise ValueError(f"{name} must be a function, got {_require.shown(function)}.")
        for name, control in _require.mapping(controls, "controls", "names and widgets").items():
            _require.instance(control, f"controls[{name!r}]", ipywidgets.ValueWidget)
        extra = [
            _require.instance(one, "extra", ipywidgets.Widget) for one in _require.several(extra, "extra", "widgets")
        ]
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


class MazeEditor(anywidget.AnyWidget):
    """A maze whose walls are added and removed by clicking, its eigenvectors and options following (notebook 04).

    All of it is computed in the browser, so that it also works in the report. `editor.world` is the map as edited.
    """

    _esm = (Path(__file__).with_name("maze_editor.js")).read_text(encoding="utf-8")
    text = traitlets.Unicode().tag(sync=True)
    index = traitlets.Int(1).tag(sync=True)
    sign = traitlets.Int(1).tag(sync=True)
    gamma = traitlets.Float(0.9).tag(sync=True)

    def __init__(self, world: GridWorld, index: int = 1, gamma: float = 0.9) -> None:
        plots.require_map(world)
        index, gamma = _require.whole(index, "index", 0), _require.discount(gamma)
        if index >= world.n_states:
            raise ValueError(f"There is no eigenvector {index}: this map has the numbers 0 to {world.n_states - 1}.")
        if world.slip or np.isin(world.characters, list(ARROWS)).any():
            raise ValueError("The maze editor takes maps without slips and one-way doors: only there T is symmetric.")
        super().__init__(text=world.text, index=index, gamma=gamma)

    @property
    def world(self) -> GridWorld:
        return GridWorld.from_text(self.text)

    def _repr_mimebundle_(self, **kwargs):
        purposes = extract_eigenpurposes(successor_representation(self.world.transition_matrix(), self.gamma))
        vector = self.sign * purposes.vectors[:, self.index]
        policy = learn_eigenoption(self.world, vector, self.gamma).policy
        fig = eigenoption(self.world, purposes.values, self.index, vector, policy)
        alt = "Still picture of the maze editor: eigenvector, landscape, option, eigenvalues. Live, its walls can be edited."
        return _pictured(
            super()._repr_mimebundle_(**kwargs), plots.png(fig, 92), 1100, alt, f"eigenvector {self.index}"
        )


def slider(description: str, value: float, low: float, high: float, step: float) -> ipywidgets.FloatSlider:
    """A slider that redraws while it is dragged."""
    low, step = _require.real(low, "low"), _require.real(step, "step", 0, ends="(]")
    high = _require.real(high, "high", low)
    value, description = _require.real(value, "value", low, high), _require.text(description, "description")
    return ipywidgets.FloatSlider(value, min=low, max=high, step=step, description=description, readout_format=".3g")


def explore_spectra(world: GridWorld, laplacian_values, gamma: float = 0.9) -> Explorer:
    """The two spectra against γ (notebook 02)."""
    plots.require_map(world)
    gamma = _require.real(gamma, "γ", 0.01, 0.99)
    return Explorer(
        lambda fig, gamma: spectra(laplacian_values, gamma, fig),
        {"gamma": slider("γ", gamma, 0.01, 0.99, 0.01)},
        lambda gamma: f"Spectra of the Laplacian and of the SR of {world.name or 'the map'} at γ = {gamma:g}.",
    )


def explore_sr(world: GridWorld, episodes: int = 100, gamma: float = 0.9, state: int = 0) -> Explorer:
    """Ψ̂ by TD under your hands: episodes, γ, step size, start, seed (notebook 03).

    Every move learns Ψ̂ anew, up to 5,000 episodes; `play` walks through the episodes.
    """
    plots.require_map(world)
    episodes, gamma = _require.whole(episodes, "episodes", 1), _require.real(gamma, "γ", 0.05, 0.99)
    state = _require.whole(state, "state", 0, world.n_states - 1)
    tens = (35, 40, 50, 60, 70, 80, 100, 120, 150, 200, 250, 300, 400)
    stops = [
        *range(1, 31),
        *tens,
        *(10 * ten for ten in tens if ten >= 50),
        5000,
    ]  # one by one, then about evenly in log
    nearest = min(stops, key=lambda stop: abs(stop - episodes))
    last = world.n_states - 1

    @lru_cache(maxsize=16)
    def exact(gamma: float):
        psi = successor_representation(world.transition_matrix(), gamma)
        return psi, extract_eigenpurposes(psi)

    @lru_cache(maxsize=4)
    def learned_at(
        marks: tuple[int, ...], gamma: float, step_size: float, start: Literal["fixed", "random"], seed: int
    ):
        return learn_successor_representation(world, marks[-1], 100, step_size, gamma, start, seed, snapshots=marks)

    def draw(fig, episodes, gamma, step_size, start, seed, vector, state):
        if not 0 <= state < world.n_states:
            raise ValueError(f"There is no state {state}: this map has the states 0 to {last}.")
        psi, purposes = exact(gamma)
        marks = tuple(stop for stop in stops if stop <= episodes)
        stack = learned_at(marks, gamma, step_size, start, seed)
        learned = extract_eigenpurposes(stack[-1], min(vector + 2, world.n_states)).vectors
        score = alignment(learned, purposes)[vector]
        learned = match_signs(learned[:, [vector]], purposes.vectors[:, [vector]])[:, 0]
        words = f"learned, alignment {score:.2f}"
        errors = relative_error(stack, psi)
        return learned_sr(
            world, stack[-1][state], learned, purposes.vectors[:, vector], state, marks, errors, words, fig
        )

    count = ipywidgets.SelectionSlider(
        options=[(f"{stop:,}", stop) for stop in stops], value=nearest, description="episodes"
    )
    play = ipywidgets.Play(value=stops.index(nearest), min=0, max=len(stops) - 1, interval=150)
    ipywidgets.jslink((play, "value"), (count, "index"))
    return Explorer(
        draw,
        {
            "episodes": count,
            "gamma": slider("γ", gamma, 0.05, 0.99, 0.01),
            "step_size": ipywidgets.SelectionSlider(
                options=[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0], value=0.1, description="step size"
            ),
            "start": ipywidgets.ToggleButtons(
                options=["fixed", "random"], value="fixed", description="start", style={"button_width": "5em"}
            ),
            "seed": ipywidgets.IntText(0, description="seed", layout={"width": "150px"}),
            "vector": ipywidgets.IntSlider(min(1, last), min=0, max=min(10, last), description="eigenvector"),
            "state": ipywidgets.IntText(state, description="row of state", layout={"width": "170px"}),
        },
        lambda **now: (
            f"The SR of {world.name or 'the map'} learned in {now['episodes']:,} episodes: a row of it, eigenvector "
            f"{now['vector']} learned and exact, and the error against episodes."
        ),
        extra=[play],
    )


def explore_eigenvectors(name: str = "four_rooms", gamma: float = 0.9, index: int = 1) -> Explorer:
    """Any eigenvector of any bundled map: heat map, landscape, option, place in the spectrum (notebook 04)."""

    gamma = _require.discount(gamma)
    last = GridWorld.named(_require.text(name, "name")).n_states - 1
    index = _require.whole(index, "index", 0, last)

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

    known = list(dict.fromkeys([*map_names(), name]))  # and a map of the user's own, by its path
    maps = ipywidgets.Dropdown(options=known, value=name, description="map")
    which = ipywidgets.IntSlider(index, min=0, max=last, description="eigenvector")
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
    from eigenlib.experiments import deep_rooms

    plots.require_map(world)
    count = _require.whole(count, "count", 1, world.n_states - 1)
    for key, run in _require.mapping(runs, "runs", "stored runs").items():
        if not isinstance(run, deep_rooms.Learned) or not isinstance(key, tuple) or len(key) != 3:
            raise ValueError("runs must be {(width, γ, seed): Learned}, as deep_rooms.stored_runs() gives them.")
    gammas = sorted({g for width, g, seed in runs if all((known, g, 0) in runs for known in deep_rooms.WIDTHS)})
    if _require.real(gamma, "γ") not in gammas:
        raise ValueError(f"γ must be one of {', '.join(map(str, gammas)) or 'those of runs'}, got {gamma!r}.")
    T = world.transition_matrix()
    exact = extract_eigenpurposes(T, count + 1).vectors[:, 1:]  # those of Ψ, for every γ

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
    from eigenlib.widgets.films import FilmExplorer

    return FilmExplorer(games)
