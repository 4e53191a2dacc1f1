"""Explorers: every control can be moved anywhere, a moved one equals a fresh one, and mistakes are answered in words."""

import random

import pytest

from eigenlib import widgets
from eigenlib.experiments.deep_rooms import GAMMA, stored_runs
from eigenlib.gridworld import GridWorld, map_names
from eigenlib.widgets import MazeEditor, explore_deep_sr, explore_eigenvectors, explore_sr

WORLD = GridWorld.named("four_rooms")
EXPLORERS = {
    "eigenvectors": explore_eigenvectors,
    "deep sr": lambda: explore_deep_sr(WORLD, stored_runs(), GAMMA),
}
every_explorer = pytest.mark.parametrize("explore", EXPLORERS.values(), ids=EXPLORERS.keys())


def choices(name, control):
    """All extremes of a control and some of its middle."""
    if hasattr(control, "options"):
        return [value[1] if isinstance(value, tuple) else value for value in control.options]
    if hasattr(control, "min"):
        middle = (control.min + control.max) / 2
        return [control.min, control.max, type(control.value)(middle)]
    raise AssertionError(f"no values for {name}")


@every_explorer
def test_every_control_can_be_moved_to_its_ends(explore):
    explorer = explore()
    for name, control in explorer.controls.items():
        for value in choices(name, control):
            control.value = value
            assert explorer.message.value == ""
            assert bytes(explorer.image.value).startswith(b"\x89PNG")


@every_explorer
def test_a_moved_explorer_equals_a_fresh_one(explore):
    """Forty random moves, then the same picture as an explorer that went there in one go: no artist is left behind."""
    rng = random.Random(1)
    moved, fresh = explore(), explore()
    for _ in range(40):
        name = rng.choice(list(moved.controls))
        moved.controls[name].value = rng.choice(choices(name, moved.controls[name]))
    for name, value in moved.values.items():
        fresh.controls[name].value = value
    assert moved.values == fresh.values
    assert moved.image.value == fresh.image.value


def test_the_sr_explorer_has_a_picture_and_words_and_refuses_states_that_are_not_there():
    explorer = explore_sr(WORLD, episodes=7)
    data, _ = explorer._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")
    assert "The SR of four_rooms learned in 7 episodes" in data["text/plain"]
    explorer.episodes, explorer.start, explorer.vector = 1000, "random", 2
    assert "start random, seed 0, eigenvector 2" in explorer._repr_mimebundle_()[0]["text/plain"]
    with pytest.raises(ValueError, match="state must be at most 103"):
        explore_sr(WORLD, state=104)


def test_python_is_held_to_what_the_browser_can_do():
    explorer = explore_sr(WORLD)
    explorer.world = GridWorld.from_text("..")  # whose picture has neither vector nor state that were asked for
    explorer.vector = explorer.state = 9
    assert explorer._repr_mimebundle_()[0]["image/png"].startswith(b"\x89PNG")
    for name, value, said in (
        ("gamma", 1.0, "γ must lie"),
        ("text", ".?", "Unknown character"),
        ("text", "", "free cell"),
    ):
        with pytest.raises(ValueError, match=said):
            setattr(explorer, name, value)
    with pytest.raises(ValueError, match="without slips"):
        explorer.world = GridWorld.named("four_rooms", slip=0.1)


def test_another_map_with_fewer_eigenvectors_is_no_mistake():
    explorer = explore_eigenvectors("maze")
    explorer.controls["index"].value = 160
    for name in map_names():
        if name in explorer.controls["name"].options:
            explorer.controls["name"].value = name
            assert explorer.message.value == ""
            assert explorer.controls["index"].value < GridWorld.named(name).n_states


def test_the_editor_gives_its_map_back_and_refuses_what_it_cannot_do():
    editor = MazeEditor(WORLD)
    assert editor.world.n_states == WORLD.n_states
    data, metadata = editor._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")
    assert "eigenvector 1" in metadata["image/png"]["alt"]
    editor.world = GridWorld.from_text("...")
    assert editor.text == "..."
    for unsuitable in (GridWorld.named("four_rooms", slip=0.1), GridWorld.from_text(".>.")):
        with pytest.raises(ValueError, match="slips and one-way doors"):
            MazeEditor(unsuitable)
        with pytest.raises(ValueError, match="slips and one-way doors"):
            editor.world = unsuitable


@pytest.mark.parametrize("text", [".", "..", ".....", ".>."])
def test_the_smallest_maps_can_be_explored(text):
    explorer = explore_sr(GridWorld.from_text(text))
    assert explorer.vector == min(1, len(text) - 1)
    assert "The SR of the map" in explorer._repr_mimebundle_()[0]["text/plain"]


def test_the_option_has_the_discount_that_was_asked_for(monkeypatch):
    asked = []
    original = widgets.learn_eigenoption
    monkeypatch.setattr(widgets, "learn_eigenoption", lambda *given: asked.append(given[2]) or original(*given))
    explore_eigenvectors(gamma=0.5)
    assert set(asked) == {0.5}


def test_an_eigenvector_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="There is no eigenvector 9: this map has the numbers 0 to 1"):
        MazeEditor(GridWorld.from_text(".."), index=9)
