"""The tables of the fuzz: for every public function a right call, and what kind of thing each parameter is (test_fuzz.py)."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from fuzzing import Kind, array, choice, flag, made, path, real, seed, sequence, square, text, thing, whole

from eigenlib import control, diffusion, eigenoptions, eigenpurposes, gridworld, representation, sampled_diffusion, spectrum
from eigenlib.eigenoptions import Option
from eigenlib.gridworld import GridWorld

WORLD = GridWorld.from_text("A..X.\n.X...\n...XB", name="fuzz")
OTHER = GridWorld.from_text("....")
S = WORLD.n_states
T = WORLD.transition_matrix()
PSI = representation.successor_representation(T, 0.9)
PURPOSES = eigenpurposes.extract_eigenpurposes(PSI)
OPTIONS = eigenoptions.discover_eigenoptions(WORLD, PURPOSES, 4)
STRANGE = eigenoptions.discover_eigenoptions(
    OTHER, eigenpurposes.extract_eigenpurposes(representation.successor_representation(OTHER.transition_matrix(), 0.9)), 2
)
VECTOR = PURPOSES.vectors[:, 1].copy()


def world(make=lambda: WORLD) -> Kind:
    return thing(make, name=lambda: "four_rooms", map=lambda: WORLD.text, matrix=lambda: T)


def per_state(make=lambda: VECTOR, **kwargs) -> Kind:
    return array(make, **kwargs)


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
        "never ends": lambda: [_option(policy=np.zeros(S, int), initiation=np.ones(S, bool), termination=np.zeros(S, bool))],
        "actions beyond": lambda: [_option(policy=np.where(OPTIONS[0].policy >= 0, 7, -1))],
    }


def options(fine=("[]", "{}")) -> Kind:
    # An empty dict holds no options, as an empty list does.
    return sequence(lambda: list(OPTIONS), fine, **_bad_options())


def gamma() -> Kind:
    return real(0.9, 0.0, 1.0, "[)")


def state(value: int = 1, pair: bool = False, words: bool = False) -> Kind:
    kind = whole(value, 0, S - 1)
    return kind


def place(value: int) -> Kind:
    kind = whole(value, 0, S - 1).refusing(
        wall=lambda: (0, 3), outside=lambda: (9, 9), words=lambda: ("a", "b"), floats=lambda: (0.0, 1.0)
    )
    bad = {label: make for label, make in kind.bad.items() if label != f"[{value}]"}
    return Kind(kind.right, bad, {**kind.same, "pair": lambda: tuple(WORLD.cells[value])}, {**kind.fine, f"[{value}]": lambda: [value]})


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

TABULAR = {
    "representation.laplacian": (representation.laplacian, {"W": matrix(lambda: WORLD.adjacency(self_loops=True))}),
    "representation.successor_representation": (representation.successor_representation, {"T": matrix(lambda: T), "gamma": gamma()}),
    "representation.learn_successor_representation": (
        representation.learn_successor_representation,
        {
            "world": world(), "episodes": whole(3), "steps": whole(5), "step_size": real(0.1, 0, 1, "(]"), "gamma": gamma(),
            "start": whole(1, 0, S - 1, none=True).also(random="random", fixed="fixed"), "rng": seed(), "seeds": thing(lambda: None, ("None",), none=lambda: [None]),
            "snapshots": sequence(lambda: [1, 3], ("None",), unsorted=lambda: [3, 1], late=lambda: [1, 4], floats=lambda: [1.0, 3.0]).also("[1, 2, 3]", "generator"),
            "decay": real(0.0, 0, 1),
        },
    ),
    "representation.learn_successor_representation, many": (
        lambda seeds: representation.learn_successor_representation(WORLD, 3, seeds=seeds),
        {"seeds": sequence(lambda: [0, 5], negative=lambda: [0, -1], floats=lambda: [0.0, 1.0], words=lambda: ["a"]).also("None", "[1, 2, 3]", "generator")},
    ),
    "representation.relative_error": (
        representation.relative_error, {"estimate": array(lambda: PSI, rows=False), "exact": array(lambda: PSI)},
    ),
    "eigenpurposes.extract_eigenpurposes": (
        eigenpurposes.extract_eigenpurposes,
        {"matrix": matrix(), "count": whole(3, 1, S, none=True), "first": choice("largest", "smallest"),
         "method": choice("auto", "dense"), "progress": flag(False)},
    ),
    "eigenpurposes.sr_eigenpurposes": (
        eigenpurposes.sr_eigenpurposes,
        {"T": matrix(lambda: T), "gamma": gamma(), "count": whole(3, 1, S, none=True), "method": choice("auto", "dense"), "progress": flag(False)},
    ),
    "eigenpurposes.residuals": (
        eigenpurposes.residuals,
        {"matrix": matrix(), "purposes": purposes(), "gamma": Kind(lambda: None, gamma().bad, {}, {"None": None, "0.9": lambda: 0.9, "0.0": lambda: 0.0}),
         "tolerance": real(1e-8, 0)},
    ),
    "eigenpurposes.fix_signs": (eigenpurposes.fix_signs, {"vectors": vectors(rows=True)}),
    "eigenpurposes.match_signs": (eigenpurposes.match_signs, {"vectors": vectors(), "reference": vectors()}),
    "eigenpurposes.eigenspaces": (eigenpurposes.eigenspaces, {"values": array(lambda: PURPOSES.values, rows=True, fine=("[1, 2, 3]",)), "tolerance": real(1e-8, 0)}),
    "eigenpurposes.alignment": (
        eigenpurposes.alignment,
        {"vectors": vectors(rows=False).refusing(zero=lambda: np.zeros((S, 3))), "exact": purposes(), "tolerance": real(1e-8, 0)},
    ),
    "eigenpurposes.principal_cosines": (
        eigenpurposes.principal_cosines,
        {"vectors": vectors().refusing(zero=lambda: np.zeros((S, 3))), "others": vectors().refusing(zero=lambda: np.zeros((S, 3)))},
    ),
    "spectrum.leading_eigenpairs": (
        spectrum.leading_eigenpairs,
        {"matrix": matrix(lambda: T), "count": whole(2, 1, S), "gamma": gamma(), "method": choice("sparse"), "progress": flag(False)},
    ),
    "spectrum.rank": (spectrum.rank, {"values": array(lambda: PURPOSES.values, rows=True, complex_too=True, fine=("[1, 2, 3]", "complex")), "gamma": gamma()}),
    "spectrum.is_symmetric": (spectrum.is_symmetric, {"M": matrix(lambda: T)}),
    "spectrum.has_a_known_end": (spectrum.has_a_known_end, {"M": matrix(lambda: T)}),
    "eigenoptions.learn_eigenoption": (eigenoptions.learn_eigenoption, {"world": world(), "eigenpurpose": per_state(), "gamma": gamma()}),
    "eigenoptions.discover_eigenoptions": (
        eigenoptions.discover_eigenoptions,
        {"world": world(), "purposes": purposes(), "count": whole(4, 1, 2 * S, none=True), "both_signs": flag(True), "gamma": gamma()},
    ),
    "eigenoptions.follow": (
        eigenoptions.follow,
        {"world": world(), "option": thing(lambda: OPTIONS[0], list=lambda: [OPTIONS[0]], other=lambda: STRANGE[0]),
         "start": state(), "steps": whole(3, 0, none=True), "rng": seed()},
    ),
    "eigenoptions.subgoal_option": (eigenoptions.subgoal_option, {"world": world(), "goal": state()}),
    "eigenoptions.random_subgoal_options": (eigenoptions.random_subgoal_options, {"world": world(), "count": whole(2), "rng": seed()}),
    "eigenoptions.require_options": (eigenoptions.require_options, {"world": world(), "options": options()}),
    "diffusion.diffusion_time": (
        diffusion.diffusion_time,
        {"world": world(), "options": options(), "cost": choice("decisions", "steps"), "interrupt": flag(True), "matrix": flag(False)},
    ),
    "diffusion.diffusion_curve": (
        diffusion.diffusion_curve,
        {"world": world(), "options": options(("[]", "{}")), "counts": sequence(lambda: [0, 1], ("None", "[1, 2, 3]", "generator"), unsorted=lambda: [2, 1], many=lambda: [0, 99], floats=lambda: [0.0, 2.0]),
         "cost": choice("decisions", "steps"), "interrupt": flag(True)},
    ),
    "sampled_diffusion.sampled_diffusion_time": (
        sampled_diffusion.sampled_diffusion_time,
        {"world": world(), "options": options(), "goals": whole(3, 1, S).also("[1, 2, 3]", "generator", **{"[3]": [3]}), "cost": choice("decisions", "steps"),
         "interrupt": flag(True), "rng": seed(), "progress": flag(False)},
    ),
    "control.q_learning": (
        control.q_learning,
        {"world": world(), "options": options(), "start": place(0), "goal": place(5), "episodes": whole(3), "runs": whole(2),
         "step_size": real(0.1, 0, 1, "(]"), "gamma": gamma(), "steps": whole(7), "rng": seed(),
         "option_duration": whole(3, none=True).also(**{"2017": "2017"})},
    ),
    "control.evaluate_greedy": (
        control.evaluate_greedy,
        {"world": world(), "q": array(lambda: np.zeros((S, 4))), "start": place(0), "goal": place(5), "gamma": gamma(), "steps": whole(7)},
    ),
    "control.optimal_return": (control.optimal_return, {"world": world(), "start": place(0), "goal": place(5), "gamma": gamma(), "steps": whole(7)}),
    "control.require_task": (control.require_task, {"world": world(), "start": place(0), "goal": place(5)}),
    "gridworld.GridWorld": (GridWorld, {"text": text("..\n..", ()), "name": text(), "slip": real(0.0, 0, 1)}),
    "gridworld.GridWorld.named": (GridWorld.named, {"name": text("four_rooms", ()), "slip": real(0.0, 0, 1)}),
    "gridworld.GridWorld.from_text": (GridWorld.from_text, {"text": text("..\n..", ()), "slip": real(0.0, 0, 1), "name": text()}),
    "gridworld.GridWorld.to_grid": method(GridWorld, "to_grid", lambda: WORLD, values=per_state(finite=False)),
    "gridworld.GridWorld.from_grid": method(GridWorld, "from_grid", lambda: WORLD, grid=array(lambda: WORLD.to_grid(VECTOR), finite=False)),
    "gridworld.GridWorld.transition_matrix": method(
        GridWorld, "transition_matrix", lambda: WORLD,
        policy=array(lambda: POLICY, fine=("None",)).refusing(negative=lambda: POLICY - 1, double=lambda: 2 * POLICY), sparse_result=flag(False),
    ),
    "gridworld.GridWorld.adjacency": method(GridWorld, "adjacency", lambda: WORLD, self_loops=flag(False), sparse_result=flag(False)),
    "gridworld.GridWorld.random_walks": method(
        GridWorld, "random_walks", lambda: WORLD, start=state(), walks=whole(2), steps=whole(3, 0), rng=seed(),
        policy=array(lambda: POLICY, fine=("None",)),
    ),
    "gridworld.big_rooms": (
        gridworld.big_rooms, {"rooms": whole(2), "size": whole(2), "seed": seed(), "loops": real(0.1, 0, 1), "slip": real(0.0, 0, 1)},
    ),
}  # fmt: skip

# --- pictures -----------------------------------------------------------------------------------------------------------

from unittest.mock import patch  # noqa: E402

from eigenlib import deep_plots, figures, film_widget, live, plots, widgets  # noqa: E402
from eigenlib.atari.network import DeepSR, Sizes  # noqa: E402

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
        with patch(f"{function.__module__}.display"):
            return function(*args, **kwargs)

    return call


FOUR_ROOMS = GridWorld.named("four_rooms")


@cache
def deep_runs():
    from eigenlib import deep_rooms

    drawn = np.random.default_rng(0)
    return {(width, 0.9, 0): deep_rooms.Learned(drawn.random((104, 12)), drawn.random((104, 12))) for width in deep_rooms.WIDTHS}


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
    return thing(lambda: {"Game": {(1, 1): a_film()}}, empty=lambda: {"Game": {}}, words=lambda: {"Game": {(1, 1): "film"}},
                 keys=lambda: {"Game": {1: a_film()}}, signs=lambda: {"Game": {(1, 5): a_film()}}, number=lambda: {3: {(1, 1): a_film()}})  # fmt: skip


PICTURES = {
    "plots.figure": (plots.figure, {"width": real(3.0, 0, 300, "(]"), "height": real(2.0, 0, 300, "(]"), "title": text()}),
    "plots.png": (plots.png, {"fig": thing(lambda: plots.figure(1, 1)), "dpi": whole(40, 1, 2000)}),
    "plots.show": (quietly(plots.show), {"fig": thing(lambda: plots.figure(1, 1)), "alt": text(fine=())}),
    "plots.require_map": (lambda world, axes: plots.require_map(world, axes), {"world": world(), "axes": drawing()}),
    "plots.maze": (
        plots.maze,
        {"ax": drawing(), "world": world(), "values": per_state(fine=("None",)), "signed": flag(False), "limit": real(1.0, 0, none=True),
         "log": flag(False), "decades": real(4.0, 0, 300, "(]")},
    ),
    "plots.name_cells": (plots.name_cells, {"ax": drawing(), "world": world(), "names": mapping(lambda: {"A": 1}, ("{}",), far=lambda: {"A": 99}, float=lambda: {"A": 1.0}, key=lambda: {1: 1})}),
    "plots.arrows": (plots.arrows, {"ax": drawing(), "world": world(), "policy": array(lambda: OPTIONS[0].policy).refusing(far=lambda: np.full(S, 4)), "colour": thing(lambda: "red")}),
    "plots.landscape": (plots.landscape, {"ax": drawing(cache(lambda: plots.figure(3, 3).subplots())), "world": world(), "values": per_state()}),
    "plots.mazes": (
        plots.mazes,
        {"world": world(), "panels": mapping(lambda: {"a": VECTOR, "b": None}, nan=lambda: {"a": np.full(S, np.nan)}), "title": text(), "signed": flag(True), "log": flag(False),
         "decades": real(4.0, 0, 300, "(]"), "shared": flag(True), "columns": whole(2, none=True), "label": text(), "names": mapping(lambda: {"A": 1}, ("None", "{}")), "size": size()},
    ),
    "plots.arc": (
        plots.arc,
        {"world": world(), "walks": array(lambda: np.zeros((2, 3), int), rows=True, fine=("one column less",)).refusing(far=lambda: np.full((2, 3), 99)), "sr_row": per_state(), "eigenvector": per_state(),
         "option": thing(lambda: OPTIONS[0], other=lambda: STRANGE[0]), "screen": array(lambda: SCREEN, rows=True, fine=("one column less",))},
    ),
    "plots.panels": (
        plots.panels,
        {"world": world(), "rows": mapping(lambda: {"r": {"a": VECTOR}}, uneven=lambda: {"r": {"a": VECTOR}, "s": {"b": VECTOR}}, hollow=lambda: {"r": {}}, bare=lambda: {"r": {"a": None}}),
         "policies": mapping(lambda: {"r": {"a": OPTIONS[0].policy}}, ("None",), partial=lambda: {"r": {}})},
    ),
    "deep_plots.network": (deep_plots.network, {"layers": sequence(lambda: network().layers()), "n_actions": whole(4)}),
    "deep_plots.frames": (
        deep_plots.frames, {"images": mapping(lambda: {"a": FRAME}), "title": text(), "columns": whole(1, none=True), "size": size()},
    ),
    "deep_plots.strips": (deep_plots.strips, {"rows": mapping(lambda: {"a": FRAME[None]}), "title": text(), "size": size()}),
    "live.Screen": (live.Screen, {"fig": thing(lambda: live.spectra(np.linspace(0, 1, S), 0.9))}),
    "live.spectra": (live.spectra, {"laplacian_values": array(lambda: np.linspace(0, 1, 6), rows=True), "gamma": gamma(), "fig": thing(lambda: None, ("None",), other=lambda: plots.figure(1, 1))}),
    "live.learned_sr": (
        live.learned_sr,
        {"world": world(), "row": per_state(), "learned": per_state(), "exact": per_state(), "state": state(), "episodes": array(lambda: np.array([1, 2]), whole_too=True),
         "errors": array(lambda: np.array([0.5, 0.4])), "scores": text(), "fig": thing(lambda: None, ("None",), other=lambda: plots.figure(1, 1))},
    ),
    "live.eigenoption": (
        live.eigenoption,
        {"world": world(), "values": array(lambda: PURPOSES.values, rows=True, fine=("[1, 2, 3]",)), "index": whole(1, 0, S - 1), "vector": per_state(), "policy": array(lambda: OPTIONS[0].policy),
         "fig": thing(lambda: None, ("None",), other=lambda: plots.figure(1, 1))},
    ),
    "live.deep_sr": (
        live.deep_sr,
        {"world": world(), "exact": vectors(), "found": vectors(), "words": text(), "fig": thing(lambda: None, ("None",), other=lambda: plots.figure(1, 1))},
    ),
    "widgets.Explorer": (
        widgets.Explorer,
        {"draw": thing(lambda: (lambda fig, gamma: live.spectra(np.linspace(0, 1, 6), gamma, fig)), text=lambda: "draw", gives=lambda: (lambda fig, gamma: 3)).without("function"),
         "controls": thing(lambda: {"gamma": widgets.slider("γ", 0.5, 0.1, 0.9, 0.1)}, list=lambda: [1], words=lambda: {"gamma": 0.5}).without("{}"),
         "alt": thing(lambda: (lambda gamma: "A picture for a test.")).without("function"), "extra": thing(lambda: (), ("[]",), none=lambda: [None])},
    ),
    "widgets.MazeEditor": (widgets.MazeEditor, {"world": world(), "index": whole(1, 0, S - 1), "gamma": gamma()}),
    "widgets.slider": (
        widgets.slider,
        {"description": text(), "value": real(0.5, 0.1, 0.9), "low": real(0.1, high=0.5).also("-1"), "high": real(0.9, 0.5), "step": real(0.1, 0, ends="(]")},
    ),
    "widgets.explore_spectra": (widgets.explore_spectra, {"world": world(), "laplacian_values": array(lambda: np.linspace(0, 1, 6), rows=True), "gamma": real(0.9, 0.01, 0.99)}),
    "widgets.explore_sr": (widgets.explore_sr, {"world": world(), "episodes": whole(2), "gamma": real(0.9, 0.05, 0.99), "state": state()}),
    "widgets.explore_eigenvectors": (widgets.explore_eigenvectors, {"name": text("open_room", ()), "gamma": gamma(), "index": whole(1, 0, 104)}),
    "widgets.explore_deep_sr": (
        widgets.explore_deep_sr,
        {"world": world(lambda: FOUR_ROOMS), "runs": thing(deep_runs, words=lambda: {"a": 1}, widths=lambda: {("no such width", 0.9, 0): 1}), "gamma": choice_of(0.9), "count": whole(2, 1, 103)},
    ),
    "widgets.explore_films": (widgets.explore_films, {"games": film_games()}),
    "film_widget.FilmExplorer": (film_widget.FilmExplorer, {"games": film_games()}),
    "film_widget.option_name": (film_widget.option_name, {"purpose": whole(3), "sign": choice_of(-1, 1)}),
    "film_widget.still": (film_widget.still, {"film": thing(a_film), "title": text(), "name": text()}),
    "figures.Figure.small": method(figures.Figure, "small", lambda: figures.Figure(png_bytes(), ""), width=whole(40, 1, 10_000), height=whole(40, 1, 10_000)),
    "figures.same_picture": (figures.same_picture, {"one": thing(png_bytes, text=lambda: b"no picture"), "other": thing(png_bytes, text=lambda: b"no picture")}),
}  # fmt: skip
