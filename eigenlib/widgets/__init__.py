"""Explorers: figures behind controls (notebooks 02–04 and on).

An explorer draws once as a plain picture, so a notebook without a live kernel still shows it, and then redraws into the
same `Image` widget. Two decisions make it feel instant and never freeze: only the artists marked LIVE are drawn again, over
a background kept from the first drawing; and no `Output` widget is used, because those lose updates while cells still run.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import numpy as np
import traitlets
from matplotlib.figure import Figure

from eigenlib import _require, plots
from eigenlib.eigenoptions import learn_eigenoption
from eigenlib.eigenpurposes import alignment, extract_eigenpurposes, match_signs
from eigenlib.gridworld import ARROWS, GridWorld, map_names
from eigenlib.plots.explorers import SCREEN_DPI, Screen, deep_sr, eigenoption, spectra
from eigenlib.representation import learn_successor_representation, relative_error, successor_representation


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


class _Explorer(anywidget.AnyWidget):
    """An explorer computed in the browser: in JupyterLab, and without a kernel in the report.

    Its script is kernel.js (the mathematics), stage.js (what it draws with) and a file of its own. Every trait can be set from
    Python and read there after the reader's hand has moved it; `world` is the map as it stands.
    """

    # What the still picture shows, in words, and how the controls stood; names of traits in braces.
    alt = settings = ""
    text = traitlets.Unicode().tag(sync=True)
    gamma = traitlets.Float(0.9).tag(sync=True)

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
        """The world, if this explorer can show it."""
        plots.require_map(world)
        if world.slip:
            raise ValueError("This explorer takes maps without slips: walks in the browser do not slip.")
        return world

    @traitlets.validate("text")
    def _valid_text(self, proposal) -> str:
        return self._fit(GridWorld.from_text(proposal["value"])).text

    @traitlets.validate("gamma")
    def _valid_gamma(self, proposal) -> float:
        return _require.discount(proposal["value"])

    def still(self) -> Figure:
        """What stands in its place where nothing runs."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs):
        fig, values = self.still(), self.trait_values() | {"name": self._name}
        alt, settings = self.alt.format_map(values), self.settings.format_map(values)
        width = int(fig.get_size_inches()[0] * SCREEN_DPI)
        return _pictured(super()._repr_mimebundle_(**kwargs), plots.png(fig, SCREEN_DPI), width, alt, settings)


class MazeEditor(_Explorer, script="maze.js"):
    """A living maze: walls are painted, its eigenvectors and options follow (notebook 04, and the report's first page).

    `editor.world` is the map as painted, and can be set; so can `index`, `sign`, `gamma`, and `flat`, which looks at the
    landscape from above. story: begin with the walkers.
    """

    alt = (
        "Still picture of the maze editor: eigenvector, landscape, option, eigenvalues. Live, its walls can be edited."
    )
    settings = "eigenvector {index}"
    index = traitlets.Int(1).tag(sync=True)
    sign = traitlets.Int(1).tag(sync=True)
    flat = traitlets.Bool(False).tag(sync=True)
    story = traitlets.Bool(False).tag(sync=True)
    # Only a page of its own may put the maze into its address.
    share = traitlets.Bool(False).tag(sync=True)

    def __init__(self, world: GridWorld, index: int = 1, gamma: float = 0.9, story: bool = False) -> None:
        story, index = _require.flag(story, "story"), _require.whole(index, "index", 0)
        if index >= self._fit(world).n_states:
            raise ValueError(f"There is no eigenvector {index}: this map has the numbers 0 to {world.n_states - 1}.")
        super().__init__(world, index=index, gamma=_require.discount(gamma), story=story)

    def _fit(self, world: GridWorld) -> GridWorld:
        plots.require_map(world)
        if world.slip or np.isin(world.characters, list(ARROWS)).any():
            raise ValueError("The maze editor takes maps without slips and one-way doors: only there T is symmetric.")
        return world

    def still(self) -> Figure:
        return _option_figure(self.world, self.index, self.sign, self.gamma)


def _option_figure(world: GridWorld, index: int, sign: int, gamma: float) -> Figure:
    """An eigenvector as heat map and landscape, its option, and where its eigenvalue stands."""
    index = min(index, world.n_states - 1)
    purposes = extract_eigenpurposes(successor_representation(world.transition_matrix(), gamma))
    vector = sign * purposes.vectors[:, index]
    policy = learn_eigenoption(world, vector, gamma).policy
    return eigenoption(world, purposes.values, index, vector, policy)


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


class _LearnedSR(_Explorer, script="sr.js"):
    alt = (
        "The SR of {name} learned in {episodes:,} episodes: a row of it, eigenvector {vector} learned and exact, and the error "
        "against episodes."
    )
    settings = (
        "episodes {episodes}, γ {gamma}, step size {step_size}, start {start}, seed {seed}, eigenvector {vector}, "
        "row of state {state}"
    )
    episodes = traitlets.Int(100).tag(sync=True)
    step_size = traitlets.Float(0.1).tag(sync=True)
    start: Any = traitlets.Enum(["fixed", "random"], "fixed").tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)
    vector = traitlets.Int(1).tag(sync=True)
    state = traitlets.Int(0).tag(sync=True)

    def still(self) -> Figure:
        world, last = self.world, self.episodes
        k, state = min(self.vector, world.n_states - 1), min(self.state, world.n_states - 1)
        marks = sorted({*(round(10 ** (step / 8)) for step in range(30) if 10 ** (step / 8) < last), last})
        psi = successor_representation(world.transition_matrix(), self.gamma)
        stack = learn_successor_representation(
            world, last, 100, self.step_size, self.gamma, self.start, self.seed, snapshots=marks
        )
        exact, learned = extract_eigenpurposes(psi), extract_eigenpurposes(stack[-1], k + 1).vectors
        fig = plots.figure(12.2, 3.3)
        axes = fig.subplots(1, 4, width_ratios=[1, 1, 1, 1.25])
        plots.maze(axes[0], world, stack[-1][state], log=True, limit=3.0)
        axes[0].plot(*world.cells[state][::-1], "o", color="white", markeredgecolor=plots.INK, markersize=7)
        plots.maze(axes[1], world, match_signs(learned[:, [k]], exact.vectors[:, [k]])[:, 0], signed=True)
        plots.maze(axes[2], world, exact.vectors[:, k], signed=True)
        axes[3].loglog(marks, relative_error(stack, psi), "o-", color=plots.COLOURS["td"], markevery=[-1])
        axes[3].set_xlabel("episodes")
        score = f"learned, alignment {alignment(learned, exact)[k]:.2f}"
        titles = ("row of $\\hat\\Psi$ at the dot", score, "exact eigenvector", "error of $\\hat\\Psi$")
        for ax, text in zip(axes, titles, strict=True):
            ax.set_title(text)
        return fig


def explore_sr(world: GridWorld, episodes: int = 100, gamma: float = 0.9, state: int = 0) -> _Explorer:
    """Ψ̂ by TD under your hands: episodes, γ, step size, start; click the map for another row (notebook 03).

    The numbers are those of `learn_successor_representation` with 100 steps and this seed.
    """
    plots.require_map(world)
    episodes, gamma = _require.whole(episodes, "episodes", 1), _require.discount(gamma)
    state = _require.whole(state, "state", 0, world.n_states - 1)
    return _LearnedSR(world, episodes=episodes, gamma=gamma, state=state, vector=min(1, world.n_states - 1))


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
