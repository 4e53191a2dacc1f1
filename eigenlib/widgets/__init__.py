"""Explorers: pictures under the reader's hands (notebooks 01–08 and 10), one class each and its JavaScript beside it.

They are computed in the browser, so that they live in JupyterLab and, without a kernel, in the report. kernel.js holds the
mathematics, compared with eigenlib in tests/eigenlib/widgets/test_kernel.py; stage.js is what they draw with. Python gives them
their first state, sees every move (`explorer.gamma`, `explorer.world`), and leaves a picture for places that run nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from eigenlib import _require, plots
from eigenlib.comparing import alignment, match_signs
from eigenlib.control import q_learning
from eigenlib.diffusion import DiffusionWarning, diffusion_time
from eigenlib.eigenoptions import discover_eigenoptions, learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import ARROWS, GridWorld, map_names
from eigenlib.plots.explorers import spectra
from eigenlib.representation import laplacian, learn_successor_representation, successor_representation
from eigenlib.widgets.base import Explorer, Pictured


class MazeEditor(Explorer, script="maze.js"):
    """A living maze: walls are painted, its eigenvectors and options follow (notebook 04, and the report's first page).

    `editor.world` is the map as painted, and can be set; so can `index`, `sign`, `gamma`, and `flat`, which looks at the
    landscape from above. story: begin with the walkers.
    """

    doors = False
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

    def still(self) -> tuple[Figure, str, str]:
        world, purposes = self.world, self._purposes()
        vectors = {f"$e_{k}$": self.sign * vector for k, vector in enumerate(purposes.vectors.T[:5])}
        policies = {name: learn_eigenoption(world, vector, self.gamma).policy for name, vector in vectors.items()}
        alt = f"The first directions of {self._name}, each with its option: arrows, and dots where it ends."
        return plots.panels(world, {"": vectors}, {"": policies}), alt, f"eigenvector {self.index}, sign {self.sign:+d}"


class EigenvectorExplorer(MazeEditor, script="eigenvectors.js"):
    """Any eigenvector of any bundled map: heat map, landscape, option, place in the spectrum (notebook 04)."""

    doors = True
    maps = traitlets.Dict().tag(sync=True)

    def __init__(self, name: str = "four_rooms", gamma: float = 0.9, index: int = 1) -> None:
        world = GridWorld.named(_require.text(name, "name"))
        index = _require.whole(index, "index", 0, world.n_states - 1)
        super().__init__(world, index, gamma)
        # A map of the user's own, by its path, comes after the bundled ones.
        self.maps = {known: GridWorld.named(known).text for known in dict.fromkeys([*map_names(), name])}


class SumExplorer(Explorer, script="sums.js"):
    """Ψ as a film: I + γT + γ²T² + …, from any tile, at any γ (notebook 01)."""

    step = traitlets.Int(0).tag(sync=True)
    state = traitlets.Int(0).tag(sync=True)

    def __init__(self, world: GridWorld, gamma: float = 0.9, state: int = 0, step: int = 0) -> None:
        state = _require.whole(state, "state", 0, self._fit(world).n_states - 1)
        super().__init__(world, gamma=_require.discount(gamma), state=state, step=_require.whole(step, "step", 0, 160))

    def still(self) -> tuple[Figure, str, str]:
        world, state = self.world, min(self.state, self.world.n_states - 1)
        T, psi = world.transition_matrix(), successor_representation(world.transition_matrix(), self.gamma)
        # What is left after t terms is γᵗTᵗΨ.
        rest = {t: (self.gamma**t * np.linalg.matrix_power(T, t) @ psi)[state] for t in (3, 11, 41)}
        panels = {f"terms up to t = {t - 1}": np.maximum(psi[state] - row, 0) for t, row in rest.items()}
        fig = plots.mazes(world, panels | {"all terms": psi[state]}, log=True, decades=8, label="discounted visits")
        alt = f"The sum of the terms γᵗTᵗ of {self._name} from state {state}: up to 2, 10 and 40 steps, and all of it."
        return fig, alt, f"terms up to {self.step}, γ {self.gamma:g}, start {state}"


class SpectraExplorer(Explorer, script="spectra.js"):
    """The two spectra, and noisy eigenvectors beside the exact ones, against γ (notebook 02)."""

    doors = False
    noise = traitlets.Float(0.1).tag(sync=True)
    vector = traitlets.Int(3).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)

    def __init__(self, world: GridWorld, laplacian_values=None, gamma: float = 0.9) -> None:
        """laplacian_values: not needed any more, as the browser finds them; checked where given."""
        self._fit(world)
        if laplacian_values is not None:
            _require.numbers(laplacian_values, "laplacian_values", (world.n_states,))
        super().__init__(world, gamma=_require.discount(gamma))

    def still(self) -> tuple[Figure, str, str]:
        matrix = laplacian(self.world.adjacency(self_loops=True))
        fig = spectra(extract_eigenpurposes(matrix, first="smallest").values, self.gamma)
        return (
            fig,
            f"Spectra of the Laplacian and of the SR of {self._name} at γ = {self.gamma:g}.",
            f"γ {self.gamma:g}",
        )


class SRExplorer(Explorer, script="sr.js"):
    """Ψ̂ by TD under your hands: episodes, γ, step size, start; click the map for another row (notebook 03).

    The numbers are those of `learn_successor_representation` with 100 steps and this seed.
    """

    episodes = traitlets.Int(100).tag(sync=True)
    step_size = traitlets.Float(0.1).tag(sync=True)
    start: Any = traitlets.Enum(["fixed", "random"], "fixed").tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)
    vector = traitlets.Int(1).tag(sync=True)
    state = traitlets.Int(0).tag(sync=True)

    def __init__(self, world: GridWorld, episodes: int = 100, gamma: float = 0.9, state: int = 0) -> None:
        state = _require.whole(state, "state", 0, self._fit(world).n_states - 1)
        episodes, vector = _require.whole(episodes, "episodes", 1), min(1, world.n_states - 1)
        super().__init__(world, gamma=_require.discount(gamma), episodes=episodes, state=state, vector=vector)

    def still(self) -> tuple[Figure, str, str]:
        world, k = self.world, min(self.vector, self.world.n_states - 1)
        how = (100, self.step_size, self.gamma, self.start, self.seed)
        learned = extract_eigenpurposes(learn_successor_representation(world, self.episodes, *how), k + 1).vectors
        exact = self._purposes()
        panels = {
            f"learned, alignment {alignment(learned, exact)[k]:.2f}": match_signs(learned, exact.vectors[:, : k + 1])[
                :, k
            ],
            "exact": exact.vectors[:, k],
        }
        alt = f"Eigenvector {k} of {self._name}: as {self.episodes:,} episodes have taught it, and exact."
        settings = f"episodes {self.episodes}, γ {self.gamma}, step size {self.step_size}, start {self.start}, seed {self.seed}"
        return plots.mazes(world, panels, signed=True, label=f"$e_{k}$"), alt, settings


class DiffusionExplorer(Explorer, script="diffusion.js"):
    """Add options, or place them by hand, and watch mean, median and the tiles that get lost (notebook 05)."""

    doors = False
    kind: Any = traitlets.Enum(["eigenoptions", "random tiles", "by hand"], "eigenoptions").tag(sync=True)
    count = traitlets.Int(2).tag(sync=True)
    placed: Any = traitlets.List(traitlets.Int()).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)

    def __init__(self, world: GridWorld, count: int = 2, gamma: float = 0.9) -> None:
        super().__init__(self._fit(world), count=_require.whole(count, "count", 0), gamma=_require.discount(gamma))

    def still(self) -> tuple[Figure, str, str]:
        world, most = self.world, 2 * (self.world.n_states - 1)
        options = discover_eigenoptions(world, self._purposes(), min(32, most), gamma=self.gamma) if most else []
        panels = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiffusionWarning)
            for k in (0, 2, 8, 32):
                times: Any = diffusion_time(world, options[:k], matrix=True).matrix
                panels[f"{k} options"] = times.sum(axis=0) / max(1, world.n_states - 1)
        fig = plots.mazes(world, panels, log=True, decades=6, label="decisions to get there", size=2.3)
        alt = f"How long the walk takes to each tile of {self._name}, with no options, two, eight and thirty-two."
        return fig, alt, f"{self.kind}, {self.count} options"


class RewardExplorer(Explorer, script="reward.js"):
    """Q-learning with the four actions alone, and with options too, side by side (notebook 06)."""

    doors = False
    start = traitlets.Int(0).tag(sync=True)
    goal = traitlets.Int(1).tag(sync=True)
    count = traitlets.Int(8).tag(sync=True)
    episodes = traitlets.Int(100).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)
    tool: Any = traitlets.Enum(["goal", "start"], "goal").tag(sync=True)

    def __init__(self, world: GridWorld, start: int = 0, goal: int = 1, count: int = 8, gamma: float = 0.9) -> None:
        last = self._fit(world).n_states - 1
        start, goal = _require.whole(start, "start", 0, last), _require.whole(goal, "goal", 0, last)
        if start == goal:
            raise ValueError(f"start and goal must be two tiles, but both are {goal}.")
        count = _require.whole(count, "count", 0)
        super().__init__(world, start=start, goal=goal, count=count, gamma=_require.discount(gamma))

    def still(self) -> tuple[Figure, str, str]:
        options = discover_eigenoptions(self.world, self._purposes(), min(self.count, 2 * (self.world.n_states - 1)))
        fig = plots.figure(6.6, 3.2, "Chance to reach the goal, greedily")
        ax = fig.subplots()
        for name, used, colour in (("four actions", [], "primitive"), (f"with {len(options)} options", options, "sr")):
            reached = q_learning(
                self.world, used, self.start, self.goal, 500, 24, gamma=self.gamma, rng=self.seed
            ).reached
            ax.plot(reached.mean(axis=0), color=plots.COLOURS[colour], linewidth=2)
            ax.text(500, reached[:, -1].mean(), name, color=plots.COLOURS[colour], ha="right", va="bottom")
        ax.set_xlabel("episodes")
        alt = (
            f"Chance to reach the goal in {self._name} against episodes, with the four actions alone and with options."
        )
        return fig, alt, f"start {self.start}, goal {self.goal}, {self.count} options, γ {self.gamma:g}"


class DynamicsExplorer(Explorer, script="dynamics.js"):
    """Wind, slips and one-way doors: what is left of a direction and its option (notebook 07).

    wind: the chance to be carried one tile up after a move, in the last column; it grows from 0 in the first one.
    """

    wind = traitlets.Float(0.0).tag(sync=True)
    slip = traitlets.Float(0.0).tag(sync=True)
    vector = traitlets.Int(1).tag(sync=True)
    sign = traitlets.Int(1).tag(sync=True)
    state = traitlets.Int(0).tag(sync=True)
    tool: Any = traitlets.Enum(["row", *ARROWS, "."], "row").tag(sync=True)

    def __init__(self, world: GridWorld, wind: float = 0.0, slip: float = 0.0, gamma: float = 0.9) -> None:
        wind, slip = _require.real(wind, "wind", 0, 1), _require.real(slip, "slip", 0, 1)
        super().__init__(self._fit(world), wind=wind, slip=slip, gamma=_require.discount(gamma))

    def chain(self) -> np.ndarray:
        """T of the random walk, the wind included: (S, S). A slip does not change it."""
        world, T = self.world, self.world.transition_matrix()
        blown = self.wind * world.cells[:, 1:] / max(1, world.free.shape[1] - 1)
        return (1 - blown) * T + blown * (T @ np.eye(world.n_states)[world.next_state[:, 0]])

    def still(self) -> tuple[Figure, str, str]:
        k, calm = min(self.vector, self.world.n_states - 1), self.world.transition_matrix()
        windy = self.chain() if self.wind else DynamicsExplorer(self.world, 0.6).chain()
        found = [extract_eigenpurposes(successor_representation(T, self.gamma)).vectors[:, [k]] for T in (calm, windy)]
        panels = {"calm": found[0][:, 0], "in the wind": match_signs(found[1], found[0])[:, 0]}
        fig = plots.mazes(self.world, panels, signed=True, label=f"$e_{k}$")
        alt = f"Eigenvector {k} of {self._name}, calm and in a wind that blows up, harder further right."
        return fig, alt, f"wind {self.wind:g}, slip {self.slip:g}, γ {self.gamma:g}, eigenvector {k}"


class DeepSRExplorer(Explorer, script="deep.js"):
    """What stored networks found, against γ and width, by either potential (notebook 08).

    runs: {(width, γ, seed): Learned}, as `deep_rooms.stored_runs` gives them; those of seed 0 are shown.
    """

    width = traitlets.Unicode("16 / 256").tag(sync=True)
    potential: Any = traitlets.Enum(["eᵀψ", "eᵀφ"], "eᵀψ").tag(sync=True)
    exact: Any = traitlets.List().tag(sync=True)
    # [{gamma, width, potential, error, score, vectors}], the vectors in thousandths.
    runs: Any = traitlets.List().tag(sync=True)

    def __init__(self, world: GridWorld, runs: Mapping, gamma: float = 0.9, count: int = 4) -> None:
        from eigenlib.experiments import deep_rooms

        count = _require.whole(count, "count", 1, self._fit(world).n_states - 1)
        for key, run in _require.mapping(runs, "runs", "stored runs").items():
            if not isinstance(run, deep_rooms.Learned) or not isinstance(key, tuple) or len(key) != 3:
                raise ValueError("runs must be {(width, γ, seed): Learned}, as deep_rooms.stored_runs() gives them.")
        gammas = sorted({g for width, g, seed in runs if all((known, g, 0) in runs for known in deep_rooms.WIDTHS)})
        if _require.real(gamma, "γ") not in gammas:
            raise ValueError(f"γ must be one of {', '.join(map(str, gammas)) or 'those of runs'}, got {gamma!r}.")
        T = world.transition_matrix()
        exact = extract_eigenpurposes(T, count + 1).vectors[:, 1:]  # those of Ψ, for every γ
        told = []
        for g, width in ((g, width) for g in gammas for width in deep_rooms.WIDTHS):
            run = runs[width, g, 0]
            for name, table in (("eᵀψ", run.psi), ("eᵀφ", run.phi)):
                found = deep_rooms.potentials(table, deep_rooms.directions(run.psi), count).vectors
                score = float(deep_rooms.canonical_correlations(found, exact).mean())
                told.append({"gamma": g, "width": width, "potential": name, "score": score})
                told[-1] |= {
                    "error": float(deep_rooms.successor_error(run, T, g)),
                    "vectors": _thousandths(found, exact),
                }
        super().__init__(world, gamma=gamma, runs=told, exact=_thousandths(exact, exact))

    def still(self) -> tuple[Figure, str, str]:
        now = (self.gamma, self.width, self.potential)
        shown = next(run for run in self.runs if (run["gamma"], run["width"], run["potential"]) == now)
        rows = {
            name: {f"{k + 1}": np.array(vector) / 1000 for k, vector in enumerate(vectors)}
            for name, vectors in (("exact", self.exact), ("network", shown["vectors"]))
        }
        alt = (
            f"First {len(self.exact)} exact directions, and below them {self.potential} of a network of width {self.width} "
            f"at γ = {self.gamma:g}."
        )
        return plots.panels(self.world, rows), alt, f"γ {self.gamma:g}, width {self.width}, potential {self.potential}"


def _thousandths(vectors: np.ndarray, like: np.ndarray) -> list[list[int]]:
    """(S, k) unit columns, their signs matched, as k lists of whole numbers: small in a page."""
    return np.rint(1000 * match_signs(vectors, like)).astype(int).T.tolist()


def explore_films(games: Mapping[str, Mapping[tuple[int, int], Any]]) -> Pictured:
    """Films of options, played in the browser, in the report too: {title: `atari.films.films` of a game} (notebook 10)."""
    from eigenlib.widgets.films import FilmExplorer

    return FilmExplorer(games)


# As the lessons call them.
explore_sums, explore_spectra, explore_sr = SumExplorer, SpectraExplorer, SRExplorer
explore_eigenvectors, explore_diffusion = EigenvectorExplorer, DiffusionExplorer
explore_reward, explore_dynamics, explore_deep_sr = RewardExplorer, DynamicsExplorer, DeepSRExplorer
