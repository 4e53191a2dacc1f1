"""The tables of the fuzz: for every public function a right call, and what kind of thing each parameter is (test_fuzz.py)."""

from __future__ import annotations

import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import torch
from fuzzing import Kind, array, choice, flag, path, real, seed, sequence, square, text, thing, whole

from eigencourse import ledger
from eigencourse import lessons as notebooks
from eigencourse.grading import grade as grading
from eigencourse.report import figures
from eigenlib import (
    canonical,
    comparing,
    control,
    diffusion,
    eigenoptions,
    eigenpurposes,
    experiments,
    finite_world,
    one_way,
    plots,
    representation,
    storage,
    widgets,
    worlds,
)
from eigenlib import options as options_
from eigenlib.atari import (
    baselines,
    batches,
    dataset,
    device,
    emulator,
    films,
    learning,
    metrics,
    pipeline,
    pixels,
    pretrained,
    training,
)
from eigenlib.atari import network as networks
from eigenlib.atari import options as deep_options
from eigenlib.atari.network import DeepSR, Sizes
from eigenlib.experiments import control as control_experiments
from eigenlib.experiments import deep_rooms
from eigenlib.gridworld import GridWorld
from eigenlib.large import rooms, sampled_diffusion
from eigenlib.options import Option
from eigenlib.paths import PRETRAINED, REFERENCE
from eigenlib.plots import atari as showing
from eigenlib.plots import deep as deep_plots
from eigenlib.plots import explorers as live
from eigenlib.widgets import films as film_widget

WORLD = GridWorld.from_text("A..X.\n.X...\n...XB", name="fuzz")
OTHER = GridWorld.from_text("....")
S = WORLD.n_states
T = WORLD.transition_matrix()
PSI = representation.successor_representation(T, 0.9)
PURPOSES = eigenpurposes.extract_eigenpurposes(PSI)
OPTIONS = eigenoptions.discover_eigenoptions(WORLD, PURPOSES, 4)
STRANGE = eigenoptions.discover_eigenoptions(
    OTHER,
    eigenpurposes.extract_eigenpurposes(representation.successor_representation(OTHER.transition_matrix(), 0.9)),
    2,
)
VECTOR = PURPOSES.vectors[:, 1].copy()


def world(make=lambda: WORLD) -> Kind:
    return thing(make, name=lambda: "four_rooms", map=lambda: WORLD.text, matrix=lambda: T)


def per_state(**kwargs) -> Kind:
    return array(lambda: VECTOR, **kwargs)


def _option(**changed) -> Option:
    parts = {name: getattr(OPTIONS[0], name) for name in ("policy", "initiation", "termination")}
    return Option(**(parts | changed))


def _bad_options() -> dict:
    return {
        "one alone": lambda: OPTIONS[0],
        "another world's": lambda: STRANGE,
        "numbers": lambda: [0, 1],
        "float policy": lambda: [_option(policy=OPTIONS[0].policy + 0.5)],
        "NaN policy": lambda: [_option(policy=np.full(S, np.nan))],
        "words for a policy": lambda: [_option(policy=np.full(S, "up"))],
        "no policy": lambda: [_option(policy=None)],
        "initiation of numbers": lambda: [_option(initiation=np.full(S, 0.5))],
        "never ends": lambda: [
            _option(policy=np.zeros(S, int), initiation=np.ones(S, bool), termination=np.zeros(S, bool))
        ],
        "actions beyond": lambda: [_option(policy=np.where(OPTIONS[0].policy >= 0, 7, -1))],
    }


def options(fine=("[]",)) -> Kind:
    return sequence(lambda: list(OPTIONS), fine, **_bad_options())


def gamma() -> Kind:
    return real(0.9, 0.0, 1.0, "[)")


def state(value: int = 1) -> Kind:
    return whole(value, 0, S - 1)


def place(value: int) -> Kind:
    kind = whole(value, 0, S - 1).refusing(
        wall=lambda: (0, 3), outside=lambda: (9, 9), words=lambda: ("a", "b"), floats=lambda: (0.0, 1.0)
    )
    bad = {label: make for label, make in kind.bad.items() if label != f"[{value}]"}
    return Kind(
        kind.right,
        bad,
        {**kind.same, "pair": lambda: tuple(WORLD.cells[value])},
        {**kind.fine, f"[{value}]": lambda: [value]},
    )


def matrix(make=lambda: PSI) -> Kind:
    return square(make)


def vectors(make=lambda: PURPOSES.vectors[:, :3], **kwargs) -> Kind:
    return array(make, **kwargs)


def purposes() -> Kind:
    return thing(
        lambda: PURPOSES,
        vectors=lambda: PURPOSES.vectors,
        nan=lambda: PURPOSES._replace(vectors=np.full((S, 3), np.nan), values=np.ones(3)),
        words=lambda: PURPOSES._replace(vectors=np.full((S, 3), "word"), values=np.ones(3)),
        another=lambda: eigenpurposes.extract_eigenpurposes(OTHER.transition_matrix()),
    )


def method(table: type, name: str, make, **kinds: Kind):
    return getattr(table, name), {"self": thing(make), **kinds}


POLICY = np.full((S, 4), 0.25)
TABLES_OF_T = np.stack([T] * 4)
FINITE = finite_world.FiniteWorld(TABLES_OF_T)

TABULAR = {
    "representation.laplacian": (representation.laplacian, {"W": matrix(lambda: WORLD.adjacency(self_loops=True))}),
    "representation.successor_representation": (
        representation.successor_representation,
        {"T": matrix(lambda: T), "gamma": gamma()},
    ),
    "representation.learn_successor_representation": (
        representation.learn_successor_representation,
        {
            "world": world(),
            "episodes": whole(3),
            "steps": whole(5),
            "step_size": real(0.1, 0, 1, "(]"),
            "gamma": gamma(),
            "start": whole(1, 0, S - 1, none=True).also(random="random", fixed="fixed"),
            "rng": seed(),
            "seeds": thing(lambda: None, ("None",), none=lambda: [None]),
            "snapshots": sequence(
                lambda: [1, 3], ("None",), unsorted=lambda: [3, 1], late=lambda: [1, 4], floats=lambda: [1.0, 3.0]
            ).also("[1, 2, 3]", "generator"),
            "decay": real(0.0, 0, 1),
        },
    ),
    "representation.learn_successor_representation, many": (
        lambda seeds: representation.learn_successor_representation(WORLD, 3, seeds=seeds),
        {
            "seeds": sequence(
                lambda: [0, 5], negative=lambda: [0, -1], floats=lambda: [0.0, 1.0], words=lambda: ["a"]
            ).also("None", "[1, 2, 3]", "generator")
        },
    ),
    "comparing.relative_error": (
        comparing.relative_error,
        {"estimate": array(lambda: PSI, fine=("one axis more",)), "exact": array(lambda: PSI)},
    ),
    "eigenpurposes.extract_eigenpurposes": (
        eigenpurposes.extract_eigenpurposes,
        {
            "matrix": matrix(),
            "count": whole(3, 1, S, none=True),
            "first": choice("largest", "smallest"),
            "method": choice("auto", "dense"),
            "progress": flag(False),
        },
    ),
    "eigenpurposes.sr_eigenpurposes": (
        eigenpurposes.sr_eigenpurposes,
        {
            "T": matrix(lambda: T),
            "gamma": gamma(),
            "count": whole(3, 1, S, none=True),
            "method": choice("auto", "dense"),
            "progress": flag(False),
        },
    ),
    "comparing.residuals": (
        comparing.residuals,
        {
            "matrix": matrix(),
            "purposes": purposes(),
            "gamma": Kind(lambda: None, gamma().bad, {}, {"None": None, "0.9": lambda: 0.9, "0.0": lambda: 0.0}),
            "tolerance": real(1e-8, 0),
        },
    ),
    "canonical.canonical_basis": (
        canonical.canonical_basis,
        {"basis": vectors(rows=True, fine=("one column less",))},
    ),
    "comparing.rotated": (
        comparing.rotated,
        {"purposes": purposes().without("another"), "rng": seed(), "tolerance": real(1e-8, 0)},
    ),
    "canonical.fix_signs": (canonical.fix_signs, {"vectors": vectors(rows=True, fine=("one column less",))}),
    "comparing.match_signs": (comparing.match_signs, {"vectors": vectors(), "reference": vectors()}),
    "comparing.eigenspaces": (
        comparing.eigenspaces,
        {"values": array(lambda: PURPOSES.values, rows=True, fine=("[1, 2, 3]",)), "tolerance": real(1e-8, 0)},
    ),
    "comparing.alignment": (
        comparing.alignment,
        {
            "vectors": vectors(fine=("one column less",)).refusing(zero=lambda: np.zeros((S, 3))),
            "exact": purposes(),
            "tolerance": real(1e-8, 0),
        },
    ),
    "comparing.principal_cosines": (
        comparing.principal_cosines,
        {
            "vectors": vectors(fine=("one column less",)).refusing(zero=lambda: np.zeros((S, 3))),
            "others": vectors(fine=("one column less",)).refusing(zero=lambda: np.zeros((S, 3))),
        },
    ),
    "eigenoptions.learn_eigenoption": (
        eigenoptions.learn_eigenoption,
        {"world": world(), "eigenpurpose": per_state(), "gamma": gamma()},
    ),
    "eigenoptions.discover_eigenoptions": (
        eigenoptions.discover_eigenoptions,
        {
            "world": world(),
            "purposes": purposes(),
            "count": whole(4, 1, 2 * S, none=True),
            "both_signs": flag(True),
            "gamma": gamma(),
        },
    ),
    "options.follow": (
        options_.follow,
        {
            "world": world(),
            "option": thing(lambda: OPTIONS[0], list=lambda: [OPTIONS[0]], other=lambda: STRANGE[0]),
            "start": state(),
            "steps": whole(3, 0, none=True),
            "rng": seed(),
        },
    ),
    "options.subgoal_option": (options_.subgoal_option, {"world": world(), "goal": state()}),
    "options.random_subgoal_options": (
        options_.random_subgoal_options,
        {"world": world(), "count": whole(2), "rng": seed()},
    ),
    "options.require_options": (options_.require_options, {"world": world(), "options": options()}),
    "diffusion.diffusion_time": (
        diffusion.diffusion_time,
        {
            "world": world(),
            "options": options(),
            "cost": choice("decisions", "steps"),
            "interrupt": flag(True),
            "matrix": flag(False),
        },
    ),
    "diffusion.diffusion_curve": (
        diffusion.diffusion_curve,
        {
            "world": world(),
            "options": options().without("[]"),
            "counts": sequence(
                lambda: [0, 1],
                ("None", "[1, 2, 3]", "generator"),
                unsorted=lambda: [2, 1],
                many=lambda: [0, 99],
                floats=lambda: [0.0, 2.0],
            ),
            "cost": choice("decisions", "steps"),
            "interrupt": flag(True),
        },
    ),
    "large.sampled_diffusion.sampled_diffusion_time": (
        sampled_diffusion.sampled_diffusion_time,
        {
            "world": world(),
            "options": options(),
            "goals": whole(3, 1, S).also("[1, 2, 3]", "generator", **{"[3]": [3]}),
            "cost": choice("decisions", "steps"),
            "interrupt": flag(True),
            "rng": seed(),
            "progress": flag(False),
        },
    ),
    "control.q_learning": (
        control.q_learning,
        {
            "world": world(),
            "options": options(),
            "start": place(0),
            "goal": place(5),
            "episodes": whole(3),
            "runs": whole(2),
            "step_size": real(0.1, 0, 1, "(]"),
            "gamma": gamma(),
            "steps": whole(7),
            "rng": seed(),
            "option_duration": whole(3, none=True).also(**{"2017": "2017"}),
        },
    ),
    "control.optimal_return": (
        control.optimal_return,
        {"world": world(), "start": place(0), "goal": place(5), "gamma": gamma(), "steps": whole(7)},
    ),
    "control.require_task": (control.require_task, {"world": world(), "start": place(0), "goal": place(5)}),
    "gridworld.GridWorld": (GridWorld, {"text": text("..\n..", ()), "name": text(), "slip": real(0.0, 0, 1)}),
    "gridworld.GridWorld.named": (GridWorld.named, {"name": text("four_rooms", ()), "slip": real(0.0, 0, 1)}),
    "gridworld.GridWorld.from_text": (
        GridWorld.from_text,
        {"text": text("..\n..", ()), "slip": real(0.0, 0, 1), "name": text()},
    ),
    "gridworld.GridWorld.to_grid": method(GridWorld, "to_grid", lambda: WORLD, values=per_state(finite=False)),
    "gridworld.GridWorld.place": method(GridWorld, "place", lambda: WORLD, state=whole(1, 0, S - 1)),
    "worlds.World.place": method(worlds.World, "place", lambda: FINITE, state=whole(1, 0, S - 1)),
    "worlds.World.transition_matrix": method(
        worlds.World,
        "transition_matrix",
        lambda: FINITE,
        policy=array(lambda: POLICY, fine=("None",)).refusing(negative=lambda: POLICY - 1, double=lambda: 2 * POLICY),
        sparse_result=flag(False),
    ),
    "worlds.World.adjacency": method(
        worlds.World, "adjacency", lambda: FINITE, self_loops=flag(False), sparse_result=flag(False)
    ),
    "worlds.World.random_walks": method(
        worlds.World,
        "random_walks",
        lambda: FINITE,
        start=state(),
        walks=whole(2, 0),
        steps=whole(3, 0),
        rng=seed(),
        policy=array(lambda: POLICY, fine=("None",)),
    ),
    "worlds.require_world": (worlds.require_world, {"world": world()}),
    "finite_world.FiniteWorld": (
        finite_world.FiniteWorld,
        {
            "probabilities": thing(
                lambda: TABLES_OF_T,
                negative=lambda: -TABLES_OF_T,
                double=lambda: 2 * TABLES_OF_T,
                flat=lambda: T,
                nan=lambda: TABLES_OF_T * np.nan,
                uneven=lambda: [T, np.eye(3)],
                words=lambda: ["a", "b"],
            ),
            "name": text(),
        },
    ),
    "finite_world.FiniteWorld.from_gymnasium": (
        finite_world.FiniteWorld.from_gymnasium,
        {
            "env": thing(
                lambda: SimpleNamespace(P={0: {0: [(1.0, 1, 0.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}),
                hollow=lambda: SimpleNamespace(P={}),
                words=lambda: SimpleNamespace(P="words"),
                far=lambda: SimpleNamespace(P={0: {0: [(1.0, 5, 0.0, False)]}}),
                half=lambda: SimpleNamespace(P={0: {0: [(0.5, 0, 0.0, False)]}}),
            ),
            "restart": flag(False).without("True"),
        },
    ),
    "large.rooms.big_rooms": (
        rooms.big_rooms,
        {"rooms": whole(2), "size": whole(2), "seed": seed(), "loops": real(0.1, 0, 1), "slip": real(0.0, 0, 1)},
    ),
    "one_way.with_valve": (one_way.with_valve, {"world": world()}),
}

# --- pictures -----------------------------------------------------------------------------------------------------------


SIZE = Sizes(2, 8, 8)


@cache
def network() -> DeepSR:
    return DeepSR(4, SIZE)


@cache
def axes():
    return plots.figure(3, 3).subplots()


def figure_of(count: int = 1):
    fig = plots.figure(3, 3)
    fig.subplots(1, count)
    return fig


def drawing(right=axes) -> Kind:
    return thing(right, figure=lambda: plots.figure(3, 3))


def picture() -> Kind:
    return thing(figure_of, axes=axes)


def size(value: float = 2.0) -> Kind:
    return real(value, 0, 50, "(]")


def mapping(right, fine=(), **bad) -> Kind:
    return thing(right, fine, list=lambda: [1], words=lambda: {"a": "b"}, none=lambda: {"a": object()}, **bad)


def quietly(function):
    """The function, its display thrown away."""

    def call(*args, **kwargs):
        with patch("eigencourse.ledger.display"), patch("IPython.display.display"):
            return function(*args, **kwargs)

    return call


FOUR_ROOMS = GridWorld.named("four_rooms")


@cache
def deep_runs():
    from eigenlib import deep_rooms

    drawn = np.random.default_rng(0)
    return {
        (width, 0.9, 0): deep_rooms.Learned(drawn.random((104, 12)), drawn.random((104, 12)))
        for width in deep_rooms.WIDTHS
    }


def choice_of(value, *others) -> Kind:
    """A number out of few."""
    kind = real(value, value, value) if isinstance(value, float) else whole(value, value, value)
    return kind.also(*map(repr, others))


FRAME = np.zeros((84, 84), np.uint8)
SCREEN = np.zeros((21, 16, 3), np.uint8)


@cache
def png_bytes() -> bytes:
    return plots.png(plots.figure(1, 1))


@cache
def a_film():
    from eigenlib.atari import films
    from eigenlib.atari.pixels import PixelMaze

    maze = PixelMaze(WORLD)
    positions = np.full((3, 2), np.nan)
    return films.film(maze, np.array([0, 1]), positions)


def film_games() -> Kind:
    return thing(
        lambda: {"Game": {(1, 1): a_film()}},
        empty=lambda: {"Game": {}},
        words=lambda: {"Game": {(1, 1): "film"}},
        keys=lambda: {"Game": {1: a_film()}},
        signs=lambda: {"Game": {(1, 5): a_film()}},
        number=lambda: {3: {(1, 1): a_film()}},
    )


PICTURES = {
    "plots.figure": (
        plots.figure,
        {"width": real(3.0, 0, 300, "(]"), "height": real(2.0, 0, 300, "(]"), "title": text()},
    ),
    "plots.png": (plots.png, {"fig": thing(lambda: plots.figure(1, 1)), "dpi": whole(40, 1, 2000)}),
    "plots.show": (quietly(plots.show), {"fig": thing(lambda: plots.figure(1, 1)), "alt": text(fine=())}),
    "plots.require_map": (lambda world, axes: plots.require_map(world, axes), {"world": world(), "axes": drawing()}),
    "plots.maze": (
        plots.maze,
        {
            "ax": drawing(),
            "world": world(),
            "values": per_state(fine=("None",)),
            "signed": flag(False),
            "limit": real(1.0, 0, none=True),
            "log": flag(False),
            "decades": real(4.0, 0, 300, "(]"),
        },
    ),
    "plots.name_cells": (
        plots.name_cells,
        {
            "ax": drawing(),
            "world": world(),
            "names": mapping(
                lambda: {"A": 1}, ("{}",), far=lambda: {"A": 99}, float=lambda: {"A": 1.0}, key=lambda: {1: 1}
            ),
        },
    ),
    "plots.arrows": (
        plots.arrows,
        {
            "ax": drawing(),
            "world": world(),
            "policy": array(lambda: OPTIONS[0].policy).refusing(far=lambda: np.full(S, 4)),
            "colour": thing(lambda: "red"),
        },
    ),
    "plots.landscape": (
        plots.landscape,
        {"ax": drawing(cache(lambda: plots.figure(3, 3).subplots())), "world": world(), "values": per_state()},
    ),
    "plots.mazes": (
        plots.mazes,
        {
            "world": world(),
            "panels": mapping(lambda: {"a": VECTOR}, nan=lambda: {"a": np.full(S, np.nan)}),
            "title": text(),
            "signed": flag(True),
            "log": flag(False),
            "decades": real(4.0, 0, 300, "(]"),
            "shared": flag(True),
            "columns": whole(2, none=True),
            "label": text(),
            "names": mapping(lambda: {"A": 1}, ("None", "{}")),
            "size": size(),
        },
    ),
    "plots.arc": (
        plots.arc,
        {
            "world": world(),
            "walks": array(lambda: np.zeros((2, 3), int), rows=True, fine=("one column less",)).refusing(
                far=lambda: np.full((2, 3), 99)
            ),
            "sr_row": per_state(),
            "eigenvector": per_state(),
            "option": thing(lambda: OPTIONS[0], other=lambda: STRANGE[0]),
            "screen": array(lambda: SCREEN, rows=True, fine=("one column less",)),
        },
    ),
    "plots.panels": (
        plots.panels,
        {
            "world": world(),
            "rows": mapping(
                lambda: {"r": {"a": VECTOR}},
                uneven=lambda: {"r": {"a": VECTOR}, "s": {"b": VECTOR}},
                hollow=lambda: {"r": {}},
                bare=lambda: {"r": {"a": None}},
            ),
            "policies": mapping(lambda: {"r": {"a": OPTIONS[0].policy}}, ("None",), partial=lambda: {"r": {}}),
        },
    ),
    "plots.deep.network": (deep_plots.network, {"layers": sequence(lambda: network().layers()), "n_actions": whole(4)}),
    "plots.deep.frames": (
        deep_plots.frames,
        {"images": mapping(lambda: {"a": FRAME}), "title": text(), "columns": whole(1, none=True), "size": size()},
    ),
    "plots.deep.strips": (
        deep_plots.strips,
        {"rows": mapping(lambda: {"a": FRAME[None]}), "title": text(), "size": size()},
    ),
    "plots.explorers.spectra": (
        live.spectra,
        {"laplacian_values": array(lambda: np.linspace(0, 1, 6), rows=True), "gamma": gamma()},
    ),
    "widgets.MazeEditor": (
        widgets.MazeEditor,
        {"world": world(), "index": whole(1, 0, S - 1), "gamma": gamma(), "story": flag(False)},
    ),
    "widgets.SumExplorer": (
        widgets.SumExplorer,
        {"world": world(), "gamma": gamma(), "state": state(), "step": whole(2, 0, 160)},
    ),
    "widgets.SpectraExplorer": (
        widgets.SpectraExplorer,
        {"world": world(), "laplacian_values": array(lambda: np.linspace(0, 1, S), fine=("None",)), "gamma": gamma()},
    ),
    "widgets.SRExplorer": (
        widgets.SRExplorer,
        {"world": world(), "episodes": whole(2), "gamma": gamma(), "state": state()},
    ),
    "widgets.EigenvectorExplorer": (
        widgets.EigenvectorExplorer,
        {"name": text("open_room", ()), "gamma": gamma(), "index": whole(1, 0, 99)},
    ),
    "widgets.DiffusionExplorer": (
        widgets.DiffusionExplorer,
        {"world": world(), "count": whole(2, 0), "gamma": gamma()},
    ),
    "widgets.RewardExplorer": (
        widgets.RewardExplorer,
        {"world": world(), "start": state(0), "goal": state(2), "count": whole(2, 0), "gamma": gamma()},
    ),
    "widgets.DynamicsExplorer": (
        widgets.DynamicsExplorer,
        {"world": world(), "wind": real(0.5, 0, 1), "slip": real(0.1, 0, 1), "gamma": gamma()},
    ),
    "widgets.DeepSRExplorer": (
        widgets.DeepSRExplorer,
        {
            "world": world(lambda: FOUR_ROOMS),
            "runs": thing(deep_runs, words=lambda: {"a": 1}, widths=lambda: {("no such width", 0.9, 0): 1}),
            "gamma": choice_of(0.9),
            "count": whole(2, 1, 103),
        },
    ),
    "widgets.explore_films": (widgets.explore_films, {"games": film_games()}),
    "widgets.films.FilmExplorer": (film_widget.FilmExplorer, {"games": film_games()}),
    "widgets.films.option_name": (film_widget.option_name, {"purpose": whole(3), "sign": choice_of(-1, 1)}),
    "widgets.films.still": (film_widget.still, {"film": thing(a_film), "title": text(), "name": text()}),
    "eigencourse.report.figures.Figure.small": method(
        figures.Figure,
        "small",
        lambda: figures.Figure(png_bytes(), ""),
        width=whole(40, 1, 10_000),
        height=whole(40, 1, 10_000),
    ),
    "eigencourse.report.figures.same_picture": (
        figures.same_picture,
        {"one": thing(png_bytes, text=lambda: b"no picture"), "other": thing(png_bytes, text=lambda: b"no picture")},
    ),
}

# --- pixels and Atari ---------------------------------------------------------------------------------------------------


SCRATCH = Path(tempfile.mkdtemp(prefix="eigenlib-fuzz-"))
ROWS = 40
_NUMBER = count()


def maze() -> pixels.PixelMaze:
    return pixels.PixelMaze(WORLD)


@cache
def game() -> emulator.Emulator:
    return emulator.Emulator("freeway")


@cache
def data() -> dataset.Dataset:
    table, _ = dataset.play(maze(), ROWS, np.random.default_rng(0))
    return dataset.Dataset.from_arrays(**table, n_actions=4)


@cache
def stored_data() -> Path:
    dataset.collect(maze(), 20, SCRATCH / "stored", progress=False)
    return SCRATCH / "stored"


def fresh() -> Path:
    """A folder that is not there yet."""
    return SCRATCH / f"fresh-{next(_NUMBER)}"


@cache
def stored_run() -> Path:
    training.train(data(), config(), SCRATCH / "run", progress=False, threads=1, device="cpu")
    return SCRATCH / "run"


@cache
def exported() -> Path:
    training.export_weights(training.load_run(stored_run()), SCRATCH / "network")
    return SCRATCH / "network"


def config(**changed) -> training.Config:
    return training.Config(**({"sizes": SIZE, "passes": 0, "batch": 4} | changed))


def a_network() -> Kind:
    return thing(network, module=lambda: torch.nn.Linear(2, 2))


def tensor(right, **bad) -> Kind:
    return thing(
        right,
        numpy=lambda: right().numpy(),
        empty_shape=lambda: right().new_zeros(()),
        axis=lambda: right()[None],
        **bad,
    )


def frames_tensor() -> Kind:
    return tensor(
        lambda: torch.zeros(2, 84, 84, dtype=torch.uint8),
        floats=lambda: torch.zeros(2, 84, 84),
        small=lambda: torch.zeros(2, 8, 8, dtype=torch.uint8),
    )


def phi_tensor() -> Kind:
    return tensor(
        lambda: torch.zeros(2, 8), narrow=lambda: torch.zeros(2, 7), whole=lambda: torch.zeros(2, 8, dtype=torch.long)
    )


def actions_tensor() -> Kind:
    return tensor(
        lambda: torch.tensor([0, 1]),
        far=lambda: torch.tensor([0, 4]),
        negative=lambda: torch.tensor([0, -1]),
        floats=lambda: torch.tensor([0.0, 1.0]),
        more=lambda: torch.tensor([0, 1, 2]),
    )


def pictures(count: int = 3, rows: bool = True) -> Kind:
    return array(lambda: np.zeros((count, 84, 84), np.uint8), rows=rows, whole_too=True).refusing(
        floats=lambda: np.zeros((count, 84, 84))
    )


def rows_of() -> Kind:
    drawn = np.random.default_rng(0).random((6, 8))
    return array(lambda: drawn, rows=True, fine=("one column less",))


POSITIONS = np.array(
    [[3.0, 4.0], [30.0, 4.0], [3.0, 40.0], [3.0, 5.0], [np.nan, np.nan], [4.0, 4.0], [3.0, 6.0], [2.0, 4.0]]
)
POTENTIALS = np.arange(16.0).reshape(8, 2) % 5


def positions(right=lambda: POSITIONS, **kwargs) -> Kind:
    return array(right, finite=False, **kwargs).refusing(nowhere=lambda: np.full(np.shape(right()), np.inf))


@cache
def tracks() -> deep_options.Trajectories:
    return deep_options.follow_greedily(maze(), network(), np.eye(8)[:, :4], 3)


@cache
def did() -> dict[str, np.ndarray]:
    return {**tracks()._asdict(), **metrics.behaviour(tracks())}


def found(*needed: str, **bad) -> Kind:
    missing = {f"without {name}": (lambda name=name: {k: v for k, v in did().items() if k != name}) for name in needed}
    words = {f"{name} of words": (lambda name=name: {**did(), name: "words"}) for name in needed}
    short = {f"{name} too short": (lambda name=name: {**did(), name: did()[name][:-1]}) for name in needed}
    return thing(did, **missing, **words, **short, **bad)


def pixel_world(right=maze) -> Kind:
    return thing(right, grid=lambda: WORLD, name=lambda: "freeway")


def small_sizes() -> Kind:
    return thing(
        lambda: SIZE,
        ("[1, 2, 3]",),
        two=lambda: (1, 2),
        zero=lambda: (0, 1, 2),
        floats=lambda: (1.0, 2.0, 3.0),
        huge=lambda: (2**30, 2, 2),
    )


def config_kinds() -> dict[str, Kind]:
    kinds: dict[str, Kind] = {
        "sizes": thing(
            lambda: "small", two=lambda: (1, 2), zero=lambda: (0, 1, 2), floats=lambda: (1.0, 2.0, 3.0)
        ).also("[1, 2, 3]", paper="paper"),
        "gamma": gamma(),
        "decay": real(0.99, 0, 1, "[)"),
        "life_ends": flag(True),
        "stop_gradient": flag(True),
        "normalisation": choice("deviation", "raw", "mean"),
        "losses": choice("both", "sr", "reconstruction"),
    }
    kinds |= {
        name: whole(5) for name in ("batch", "target_period", "refine_batch", "refine_target_period", "log_every")
    }
    kinds |= {name: whole(5, 0) for name in ("passes", "refine_passes")} | {"seed": seed(False, False)}
    kinds["seed"] = whole(0, 0)
    return kinds | {name: real(0.5, 0, ends="(]") for name in ("step_size", "refine_step_size", "epsilon", "floor")}


def held_threads(count):
    with device.threads(count):
        return torch.get_num_threads()


def without_collecting(seed, samples):
    with patch("eigenlib.experiments.deep_rooms.collect"):
        return str(type(deep_rooms.four_rooms_dataset(seed, samples)))


def device_kind() -> Kind:
    return choice("cpu", "auto").refusing(cuda=lambda: "cuda:99", number=lambda: "cuda:x", odd=lambda: "cpu:0")


IMAGE = np.full((84, 84), 0.5)
SUMMARY = {"r8": 0.5, "big_basin": 0.5, "options": 4, "go_and_stay": 1, "distinct_ends": 1, "deaths": 0}
ABOUT = {
    "summary": dict.fromkeys(("sr", "pca", "random", "untrained"), SUMMARY),
    "prediction_errors": {"frame": {"network": 0.1, "background": 0.2, "copy": 0.3}},
}

ATARI = {
    "atari.emulator.game_name": (emulator.game_name, {"text": text("Freeway", ())}),
    "atari.emulator.Emulator": (
        emulator.Emulator,
        {
            "game": text("freeway", ()),
            "seed": seed(False, False),
            "frame_skip": whole(5, 1, 1000),
            "sticky": real(0.0, 0, 1, "[)"),
            "mode": whole(0, 0, 7, none=True),
            "difficulty": whole(0, 0, 1, none=True),
            "actions": choice("minimal", "full"),
            "steady": flag(True),
        },
    ),
    "atari.emulator.Emulator.seeded": method(emulator.Emulator, "seeded", game, seed=seed(False, False)),
    "atari.emulator.Emulator.act": method(emulator.Emulator, "act", game, action=whole(1, 0, 2)),
    "atari.emulator.Emulator.restore": method(
        emulator.Emulator, "restore", game, state=thing(lambda: game().save(), maze=lambda: maze().save())
    ),
    "atari.pixels.PixelMaze": (pixels.PixelMaze, {"world": world(), "seed": seed(), "steps": whole(100)}),
    "atari.pixels.PixelMaze.seeded": method(pixels.PixelMaze, "seeded", maze, seed=seed()),
    "atari.pixels.PixelMaze.act": method(pixels.PixelMaze, "act", maze, action=whole(1, 0, 3)),
    "atari.pixels.PixelMaze.restore": method(
        pixels.PixelMaze,
        "restore",
        maze,
        state=thing(lambda: maze().save(), far=lambda: (99, *maze().save()[1:]), game=lambda: game().save()),
    ),
    "atari.pixels.draw": (pixels.draw, {"world": world()}),
    "atari.network.DeepSR": (
        networks.DeepSR,
        {
            "n_actions": whole(4, 1, 10_000),
            "sizes": config_kinds()["sizes"],
            "mean": array(lambda: IMAGE, fine=("None",)),
            "scale": array(lambda: IMAGE, fine=("None",)).refusing(zero=lambda: np.zeros((84, 84))),
            "seed": whole(0, 0),
        },
    ),
    "atari.network.DeepSR.normalise": method(networks.DeepSR, "normalise", network, frames=frames_tensor()),
    "atari.network.DeepSR.to_pixels": method(
        networks.DeepSR,
        "to_pixels",
        network,
        prediction=tensor(lambda: torch.zeros(2, 84, 84), small=lambda: torch.zeros(2, 8, 8)),
    ),
    "atari.network.DeepSR.phi": method(networks.DeepSR, "phi", network, frames=frames_tensor()),
    "atari.network.DeepSR.predict": method(
        networks.DeepSR, "predict", network, phi=phi_tensor(), actions=actions_tensor()
    ),
    "atari.network.DeepSR.psi": method(networks.DeepSR, "psi", network, phi=phi_tensor(), stop_gradient=flag(True)),
    "atari.network.DeepSR.forward": method(
        networks.DeepSR, "forward", network, frames=frames_tensor(), actions=actions_tensor()
    ),
    "atari.network.require_sizes": (networks.require_sizes, {"sizes": config_kinds()["sizes"]}),
    "atari.dataset.Dataset.from_arrays": (
        dataset.Dataset.from_arrays,
        {
            "frames": thing(
                lambda: data().frames,
                floats=lambda: data().frames.astype(float),
                short=lambda: data().frames[:-1],
                list=lambda: data().frames.tolist(),
            ),
            "actions": thing(
                lambda: data().actions,
                long=lambda: data().actions.astype(int),
                short=lambda: data().actions[:-1],
                open=lambda: np.zeros(ROWS, np.uint8),
                far=lambda: np.full(ROWS, 9, np.uint8),
            ),
            "ends": thing(
                lambda: data().ends, long=lambda: data().ends.astype(int), far=lambda: np.full(ROWS, 9, np.uint8)
            ),
            "n_actions": whole(4, 1, 255),
            "positions": thing(lambda: data().positions, ("None",), double=lambda: data().positions.astype(float)),
            "about": thing(lambda: {}, ("None", "{}")),
        },
    ),
    "atari.dataset.open_dataset": (
        dataset.open_dataset,
        {
            "path": path(stored_data, missing=lambda: SCRATCH / "nothing", file=lambda: stored_data() / "about.json"),
            "verify": flag(True),
        },
    ),
    "atari.dataset.play": (
        dataset.play,
        {
            "world": pixel_world(),
            "rows": whole(5, 2, 10**9),
            "rng": seed(),
            "episode_steps": whole(3, none=True),
            "one_room": flag(True),
        },
    ),
    "atari.dataset.collect": (
        dataset.collect,
        {
            "world": thing(maze, grid=lambda: WORLD, other=lambda: "no such game").without("function"),
            "samples": whole(20, 2, 10**12),
            "path": path(fresh, file=lambda: stored_data() / "about.json").without("'nonsense'"),
            "processes": whole(1, 1, 1024),
            "seed": whole(0, 0),
            "shard": whole(5000, 2),
            "episode_steps": whole(7, none=True).without("None"),
            "one_room": flag(True),
            "progress": flag(False),
        },
    ),
    "atari.options.features_and_rows": (deep_options.features_and_rows, {"network": a_network(), "frames": pictures()}),
    "atari.options.eigenpurposes_from_rows": (
        deep_options.eigenpurposes_from_rows,
        {"rows": rows_of(), "count": whole(2, 1, 6), "centre": flag(False)},
    ),
    "atari.baselines.directions_of": (
        baselines.directions_of,
        {
            "kind": choice("sr", "pca", "random"),
            "phi": rows_of(),
            "psi": rows_of(),
            "count": whole(2, 1, 6),
            "centre": flag(False),
            "seed": seed(False, False),
        },
    ),
    "atari.options.both_signs": (deep_options.both_signs, {"vectors": rows_of()}),
    "atari.baselines.untrained_copy": (baselines.untrained_copy, {"network": a_network(), "seed": whole(0, 0)}),
    "atari.options.follow_greedily": (
        deep_options.follow_greedily,
        {
            "world": pixel_world(),
            "network": a_network(),
            "vectors": array(lambda: np.eye(8)[:, :2]).without("one column less"),
            "steps": whole(2, 1, 32_767),
            "reward": choice("phi", "psi"),
            "depth": whole(1, 1, 256),
            "gamma": gamma(),
            "start": thing(lambda: maze().save(), ("None",)),
            "progress": flag(False),
        },
    ),
    "atari.baselines.wander": (
        baselines.wander,
        {"world": pixel_world(), "count": whole(2, 1, 10**6), "steps": whole(2, 1, 32_767), "rng": seed()},
    ),
    "atari.films.replay": (
        films.replay,
        {
            "world": pixel_world(),
            "actions": array(lambda: np.array([0, 1, -1]), rows=True, empty=True, fine=("[]", "[1, 2, 3]")).refusing(
                far=lambda: np.array([0, 9])
            ),
            "start": thing(lambda: maze().save(), ("None",)),
        },
    ),
    "atari.metrics.r8": (
        metrics.r8,
        {
            "potentials": array(lambda: POTENTIALS, fine=("one column less",)),
            "positions": positions(),
            "rooms": array(lambda: np.zeros(8, int), fine=("None",), whole_too=True),
        },
    ),
    "atari.metrics.big_basin": (
        metrics.big_basin,
        {
            "potentials": array(lambda: POTENTIALS, fine=("one column less",)),
            "positions": positions(),
            "rooms": array(lambda: np.zeros(8, int), fine=("None",), whole_too=True),
            "visits": whole(1),
        },
    ),
    "atari.metrics.purposeful": (
        metrics.purposeful,
        {
            "positions": positions(),
            "rooms": array(lambda: np.zeros(8, int), fine=("None",), whole_too=True),
            "radius": real(8.0, 0),
        },
    ),
    "atari.metrics.distinct_ends": (
        metrics.distinct_ends,
        {
            "ends": array(lambda: POSITIONS[:3], rows=True, empty=True, fine=("[]",)).without(
                "one column less", "(2, 0)"
            ),
            "radius": real(16.0, 0),
        },
    ),
    "atari.metrics.deaths": (
        metrics.deaths,
        {
            "lives": array(
                lambda: np.array([[3, 2, 2], [3, 3, 3]]), rows=True, fine=("one column less",), whole_too=True
            )
        },
    ),
    "atari.metrics.unharmed": (metrics.unharmed, {"trajectories": thing(tracks, dict=did)}),
    "atari.metrics.behaviour": (
        metrics.behaviour,
        {"trajectories": thing(tracks, dict=did), "staying": real(0.8, 0, 1), "away": real(16.0, 0)},
    ),
    "atari.metrics.terminations": (
        metrics.terminations,
        {"did": found("positions", "rooms", "lives", "stops"), "away": real(16.0, 0)},
    ),
    "atari.metrics.prediction_errors": (
        metrics.prediction_errors,
        {
            "network": a_network(),
            "dataset": thing(data, path=stored_data),
            "rows": array(lambda: np.array([0, 1]), rows=True, fine=("[1, 2, 3]",)).refusing(
                far=lambda: np.array([0, 999]), end=lambda: np.array([ROWS - 1])
            ),
            "screen": array(lambda: np.array([84, 84])),
            "scale": array(lambda: IMAGE, fine=("None",)).refusing(zero=lambda: np.zeros((84, 84))),
        },
    ),
    "atari.metrics.avatar_boxes": (
        metrics.avatar_boxes,
        {"positions": positions(rows=True), "screen": array(lambda: np.array([84, 84]))},
    ),
    "atari.films.Film.frame": method(films.Film, "frame", a_film, step=whole(1, 0, 2)),
    "atari.films.film": (
        films.film,
        {
            "world": pixel_world(),
            "actions": array(lambda: np.array([0, 1])).refusing(far=lambda: np.array([0, 9])),
            "positions": array(lambda: np.full((3, 2), np.nan), finite=False),
            "rooms": array(lambda: np.zeros(3, int), fine=("None", "[1, 2, 3]"), whole_too=True),
            "lives": array(lambda: np.zeros(3, int), fine=("None", "[1, 2, 3]"), whole_too=True),
            "start": thing(lambda: maze().save(), ("None",)),
            "caption": text(),
        },
    ),
    "atari.films.films": (
        films.films,
        {
            "world": pixel_world(),
            "did": found("actions", "positions", "rooms", "lives", "goes", "stays", "deaths", "stops"),
            "purposes": sequence(
                lambda: [1, 2], ("[]", "generator"), far=lambda: [9], floats=lambda: [1.0], zero=lambda: [0]
            ),
            "start": thing(lambda: maze().save(), ("None",)),
        },
    ),
    "plots.atari.summary_table": (
        showing.summary_table,
        {
            "about": thing(
                lambda: ABOUT,
                hollow=lambda: {"summary": {}},
                words=lambda: {"summary": "words"},
                partial=lambda: {"summary": {key: {} for key in ABOUT["summary"]}},
            )
        },
    ),
    "plots.atari.draw_options": (
        showing.draw_options,
        {
            "ax": drawing(),
            "screen": array(lambda: SCREEN, rows=True, fine=("one column less",)),
            "arrays": found("positions", "rooms", "ends", "goes"),
        },
    ),
    "plots.atari.density_figure": (
        showing.density_figure,
        {
            "screen": array(lambda: SCREEN, rows=True, fine=("one column less",)),
            "kinds": thing(
                lambda: {"sr": did()}, words=lambda: {"sr": "words"}, hollow=lambda: {"sr": {}}, key=lambda: {3: did()}
            ),
        },
    ),
    "atari.metrics.predicted_frames": (
        metrics.predicted_frames,
        {
            "network": a_network(),
            "data": thing(data),
            "rows": array(lambda: np.array([0, 1]), rows=True, fine=("[1, 2, 3]",)).refusing(
                far=lambda: np.array([0, 999])
            ),
        },
    ),
    "experiments.stored": (experiments.stored, {"name": choice("atari_myopia", *experiments.EXPERIMENTS)}),
    "atari.pretrained.load": (
        pretrained.load,
        {
            "game": text("freeway", ()),
            "folder": path(
                lambda: PRETRAINED, missing=lambda: SCRATCH / "nothing", file=lambda: stored_data() / "about.json"
            ),
            "device": device_kind(),
        },
    ),
    "atari.pretrained.liveliest": (pretrained.liveliest, {"walk": thing(data), "count": whole(3, 1, ROWS - 1)}),
    "atari.training.Config": (training.Config, config_kinds()),
    "atari.training.load_run": (
        training.load_run,
        {
            "folder": path(stored_run, missing=lambda: SCRATCH / "nothing", file=lambda: stored_data() / "about.json"),
            "device": device_kind(),
        },
    ),
    "atari.training.load_network": (
        training.load_network,
        {"path": path(exported, missing=lambda: SCRATCH / "nothing"), "device": device_kind()},
    ),
    "atari.training.export_weights": (
        training.export_weights,
        {
            "run": thing(lambda: training.load_run(stored_run()), network=network),
            "path": path(lambda: SCRATCH / "again", folder=lambda: SCRATCH / "network.json" / "below").without(
                "'nonsense'"
            ),
        },
    ),
    "atari.batches.image_statistics": (
        batches.image_statistics,
        {"frames": pictures(), "normalisation": choice("deviation", "raw", "mean"), "floor": real(0.02, 0, ends="(]")},
    ),
    "atari.learning.Objective": (
        learning.Objective,
        {
            "network": a_network(),
            "target": a_network(),
            "gamma": gamma(),
            "losses": choice("both", "sr", "reconstruction"),
            "stop_gradient": flag(True),
        },
    ),
    "atari.learning.choose_trained": (
        learning.choose_trained,
        {
            "network": a_network(),
            "losses": choice("both", "sr", "reconstruction"),
            "stop_gradient": flag(True),
            "refine": flag(False),
        },
    ),
    "atari.batches.FrameBatches": (
        batches.FrameBatches,
        {
            "dataset": thing(data),
            "life_ends": flag(True),
            "device": thing(lambda: torch.device("cpu"), name=lambda: "nowhere"),
        },
    ),
    "atari.training.train": (
        training.train,
        {
            "dataset": thing(data, path=stored_data),
            "config": thing(config, dict=dict, other=lambda: config(seed=5)),
            "folder": path(stored_run, file=lambda: stored_data() / "about.json").without("'nonsense'"),
            "device": device_kind(),
            "progress": flag(False),
            "threads": whole(1, 1, 1024, none=True).also("'auto'"),
            "precision": choice("fp32", "auto"),
            "compile": choice("auto").also("True", no=False),
            "checkpoint_seconds": real(120.0, 0),
            "until": whole(10**6, none=True),
        },
    ),
    "atari.device.choose_device": (device.choose_device, {"name": device_kind()}),
    "atari.device.threads": (held_threads, {"count": whole(1, 1, 1024, none=True)}),
    "atari.pipeline.prepare": (
        pipeline.prepare,
        {
            "game": text("freeway", ()),
            "preset": choice("quick", "standard", "paper"),
            "seed": whole(0, 0),
            "device": device_kind(),
            "out": path(lambda: SCRATCH / "job", ("None", "'nonsense'")),
            "samples": whole(5, 2, none=True),
            "rows": whole(5, 2, none=True),
            "purposes": whole(5, none=True),
            "steps": whole(5, 1, 32_767, none=True),
            "passes": whole(5, 0, none=True),
            "refine_passes": whole(5, 0, none=True),
            "precision": choice("auto", "fp32", "bf16"),
            "threads": whole(1, 1, 1024, none=True),
        },
    ),
    "experiments.deep_rooms.learned": (deep_rooms.learned, {"network": a_network(), "maze": pixel_world()}),
    "experiments.deep_rooms.centred": (deep_rooms.centred, {"values": rows_of()}),
    "experiments.deep_rooms.successor_error": (
        deep_rooms.successor_error,
        {
            "found": thing(
                lambda: deep_rooms.learned(network(), maze()),
                other=lambda: deep_rooms.Learned(np.ones((4, 2)), np.ones((4, 2))),
            ),
            "T": matrix(lambda: T),
            "gamma": gamma(),
        },
    ),
    "experiments.deep_rooms.directions": (deep_rooms.directions, {"rows": rows_of()}),
    "experiments.deep_rooms.potentials": (
        deep_rooms.potentials,
        {
            "table": rows_of().without("one column less"),
            "vectors": array(lambda: np.eye(8)[:, :3]).without("one column less"),
            "count": whole(2, 1, 3),
        },
    ),
    "experiments.deep_rooms.canonical_correlations": (
        deep_rooms.canonical_correlations,
        {
            "a": array(lambda: PURPOSES.vectors[:, 1:4]).without("one column less"),
            "b": array(lambda: PURPOSES.vectors[:, 1:4]).without("one column less"),
        },
    ),
    "experiments.deep_rooms.untrained": (
        deep_rooms.untrained,
        {"maze": pixel_world(), "seed": whole(0, 0), "sizes": small_sizes()},
    ),
    "experiments.deep_rooms.predictions": (
        deep_rooms.predictions,
        {
            "network": a_network(),
            "maze": pixel_world(),
            "states": array(lambda: np.array([0, 1]), rows=True, fine=("[1, 2, 3]",)).refusing(
                far=lambda: np.array([0, 99])
            ),
        },
    ),
    "experiments.deep_rooms.four_rooms_dataset": (
        without_collecting,
        {"seed": whole(0, 0), "samples": whole(20, 2, 10**12)},
    ),
    "experiments.deep_rooms.watch_features": (
        deep_rooms.watch_features,
        {
            "data": thing(data),
            "losses": choice("both", "sr", "reconstruction"),
            "stop_gradient": flag(True),
            "updates": whole(1),
            "sizes": small_sizes(),
            "gamma": gamma(),
            "as_written": flag(False),
        },
    ),
}

# --- verdicts, files, the course ----------------------------------------------------------------------------------------


@cache
def archive() -> Path:
    storage.save(SCRATCH / "archive", {"numbers": np.arange(6.0)}, command="none")
    return SCRATCH / "archive"


SMALL = {
    "world": "four_rooms",
    "slip": 0.0,
    "tasks": ((0, 5),),
    "representations": (3,),
    "counts": (0, 2),
    "sr_runs": 1,
    "runs": 1,
    "episodes": 2,
    "step_size": 0.1,
    "gamma": 0.9,
    "steps": 5,
    "option_duration": None,
    "seed": 0,
}


@cache
def curves() -> control_experiments.Curves:
    return control_experiments.control_experiment(control_experiments.ControlExperiment(**SMALL), progress=False)


@cache
def saved_curves() -> Path:
    control_experiments.save_reference(curves(), SCRATCH / "curves")
    return SCRATCH / "curves"


def small_experiment(**changed):
    return control_experiments.control_experiment(
        control_experiments.ControlExperiment(**(SMALL | changed)), progress=False
    )


def graded(**arguments):
    with patch("builtins.print"):
        return grading.grade(**arguments)


@cache
def stored_discovery() -> Path:
    storage.save(SCRATCH / "discovery", {"sr.values": np.ones(3)})
    return SCRATCH / "discovery"


COURSE = {
    "eigencourse.ledger.record": (
        quietly(ledger.record),
        {
            "claim": choice("theorem-vectors"),
            "value": real(1.0),
            "holds": flag(True),
            "criterion": text(),
            "partly": flag(False),
            "spread": thing(
                lambda: (0.0, 1.0), ("None", "generator"), nan=lambda: (0.0, np.nan), words=lambda: ("a", "b")
            ),
            "part": text(),
            "unit": text(),
            "note": text(),
            "digits": whole(3, 1, 3),
        },
    ),
    "eigencourse.ledger.check": (
        quietly(ledger.check),
        {
            "what": text(),
            "value": real(0.5, high=1.0)
            .also("-1")
            .without("nan", "inf", "-inf", "1.5", "1000000000000000000000000000000", "1.01"),
            "at_most": real(1.0, 0.5).without("-1", "0.49"),
        },
    ),
    "eigencourse.ledger.result": (quietly(ledger.result), {"what": text(), "value": real(0.5), "unit": text()}),
    "eigencourse.ledger.rounded": (ledger.rounded, {"value": real(0.5), "digits": whole(3, 1, 3)}),
    "storage.save": (
        storage.save,
        {
            "path": path(lambda: SCRATCH / "saved").without("'nonsense'"),
            "arrays": thing(
                lambda: {"a": np.ones(2)},
                ("{}",),
                objects=lambda: {"a": np.array([None])},
                lists=lambda: {"a": [1]},
                number=lambda: {3: np.ones(2)},
            ),
        },
    ),
    "storage.load": (
        storage.load,
        {"path": path(archive, missing=lambda: SCRATCH / "nothing", folder=lambda: SCRATCH)},
    ),
    "experiments.control.ControlExperiment": (
        small_experiment,
        {
            "world": text("four_rooms", ()),
            "slip": real(0.0, 0, 1),
            "tasks": thing(lambda: ((0, 5),), same=lambda: ((0, 0),), wall=lambda: (((0, 0), 5),), one=lambda: (5,)),
            "representations": thing(lambda: (3,), word=lambda: ("nearly",), zero=lambda: (0,), float=lambda: (3.0,)),
            "counts": thing(lambda: (0, 2), double=lambda: (2, 2), negative=lambda: (-2,), float=lambda: (2.0,)),
            "sr_runs": whole(1, 1, 10**9),
            "runs": whole(1, 1, 10**9),
            "episodes": whole(2, 1, 10**9),
            "step_size": real(0.1, 0, 1, "(]"),
            "gamma": gamma(),
            "steps": whole(5, 1, 10**9),
            "option_duration": whole(3, none=True).also(**{"2017": "2017"}),
            "seed": whole(0, 0),
        },
    ),
    "experiments.control.control_experiment": (
        control_experiments.control_experiment,
        {
            "experiment": thing(lambda: control_experiments.ControlExperiment(**SMALL)).without("None"),
            "folder": path(fresh, ("None",)).without("'nonsense'"),
            "progress": flag(False).without("True"),
        },
    ),
    "experiments.control.save_reference": (
        control_experiments.save_reference,
        {"curves": thing(curves), "path": path(lambda: SCRATCH / "curves again").without("'nonsense'")},
    ),
    "experiments.control.load_reference": (
        control_experiments.load_reference,
        {
            "path": path(
                saved_curves, missing=lambda: SCRATCH / "nothing", other=archive, deep=lambda: REFERENCE / "deep_rooms"
            )
        },
    ),
    "experiments.control.stored_curves": (
        control_experiments.stored_curves,
        {"name": choice("control", "control_2017"), "regenerate": flag(False).without("True"), "progress": flag(False)},
    ),
    "eigencourse.lessons.lessons": (
        notebooks.lessons,
        {"only": sequence(lambda: ["02", "05"], ("None",), far=lambda: ["77"], whole=lambda: [2], text=lambda: "02")},
    ),
    "eigencourse.grading.grade.grade": (
        graded,
        {
            "submissions": sequence(lambda: [SCRATCH / "nothing.ipynb"], ("[]",), numbers=lambda: [3]),
            "csv_file": path(
                lambda: SCRATCH / "marks.csv", folder=lambda: SCRATCH, far=lambda: SCRATCH / "no" / "marks.csv"
            ).without("'nonsense'"),
            "timeout": real(60.0, 0, 10**7, "(]"),
            "total": real(600.0, 0, 10**7, "(]"),
            "jobs": whole(1, 1, 1024),
            "again": flag(False),
            "unsafe": flag(True),
        },
    ),
    "eigencourse.grading.grade.plain": (grading.plain, {"text": text(), "most": whole(200, 0)}),
    "atari.pipeline.read_discovery": (
        lambda path: pipeline.read_discovery(path).kinds,
        {"path": path(stored_discovery, missing=lambda: SCRATCH / "nothing", other=archive)},
    ),
}
