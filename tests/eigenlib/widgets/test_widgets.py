"""Explorers as Python sees them: a picture with words for places that run nothing, traits that are held to what can be."""

import pytest

from eigenlib.experiments.deep_rooms import GAMMA, stored_runs
from eigenlib.gridworld import GridWorld
from eigenlib.widgets import (
    MazeEditor,
    explore_deep_sr,
    explore_diffusion,
    explore_dynamics,
    explore_eigenvectors,
    explore_reward,
    explore_spectra,
    explore_sr,
    explore_sums,
)

WORLD = GridWorld.named("four_rooms")
# How each is made, and the beginning and the end of what its picture says.
EXPLORERS = {
    "sums": (lambda: explore_sums(WORLD, step=3), "The sum of the terms", "terms up to 3, γ 0.9, start 0."),
    "spectra": (lambda: explore_spectra(WORLD), "Spectra of the Laplacian and of the SR of four_rooms", "γ 0.9."),
    "sr": (lambda: explore_sr(WORLD, 7), "Eigenvector 1 of four_rooms: as 7 episodes", "start fixed, seed 0."),
    "eigenvectors": (explore_eigenvectors, "The first directions of four_rooms", "eigenvector 1, sign +1."),
    "maze": (lambda: MazeEditor(WORLD), "The first directions of four_rooms", "eigenvector 1, sign +1."),
    "diffusion": (lambda: explore_diffusion(WORLD), "How long the walk takes", "eigenoptions, 2 options."),
    "reward": (lambda: explore_reward(WORLD, 98, 4), "Chance to reach the goal in four_rooms", "8 options, γ 0.9."),
    "dynamics": (lambda: explore_dynamics(WORLD), "Eigenvector 1 of four_rooms, calm", "γ 0.9, eigenvector 1."),
    "deep sr": (lambda: explore_deep_sr(WORLD, stored_runs(), GAMMA), "First 4 exact directions", "potential eᵀψ."),
}
every_explorer = pytest.mark.parametrize(("explore", "begins", "ends"), EXPLORERS.values(), ids=EXPLORERS.keys())


@every_explorer
def test_a_picture_with_words_stands_where_nothing_runs(explore, begins, ends):
    data, metadata = explore()._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["text/plain"].startswith(f"Explorer: {begins}")
    assert data["text/plain"].endswith(ends)
    assert data["text/plain"] == f"Explorer: {metadata['image/png']['alt']}"
    assert "application/vnd.jupyter.widget-view+json" in data


@every_explorer
def test_python_is_held_to_what_the_browser_can_do(explore, begins, ends):
    explorer = explore()
    explorer.gamma = 0.0
    assert explorer.gamma == 0
    for name, value, said in (
        ("gamma", 1.0, "γ must lie"),
        ("text", ".?", "Unknown character"),
        ("text", "", "free cell"),
    ):
        with pytest.raises(ValueError, match=said):
            setattr(explorer, name, value)
    with pytest.raises(ValueError, match="without slips"):
        explorer.world = GridWorld.named("four_rooms", slip=0.1)
    assert explorer.world.text == WORLD.text


@every_explorer
def test_another_map_is_no_mistake(explore, begins, ends):
    """One that has neither the eigenvector nor the tiles that were shown; the stored networks have seen four rooms only."""
    explorer = explore()
    if "First 4" in begins:
        return
    for text in ("...", "..\n.."):
        explorer.world = GridWorld.from_text(text)
        assert explorer.text == text
        if not explorer.has_trait("goal"):  # where S and G are no tiles any more
            assert explorer._repr_mimebundle_()[0]["image/png"].startswith(b"\x89PNG")


def test_one_way_doors_are_refused_where_the_spectrum_would_not_be_real():
    for explore in (MazeEditor, explore_spectra, explore_diffusion, explore_reward):
        with pytest.raises(ValueError, match="slips and one-way doors"):
            explore(GridWorld.from_text(".>."))
    for explore in (explore_sums, explore_sr, explore_dynamics):
        assert explore(GridWorld.from_text(".>.")).world.n_states == 3


def test_what_is_not_there_is_refused():
    with pytest.raises(ValueError, match="There is no eigenvector 9: this map has the numbers 0 to 1"):
        MazeEditor(GridWorld.from_text(".."), index=9)
    with pytest.raises(ValueError, match="state must be at most 103"):
        explore_sr(WORLD, state=104)
    with pytest.raises(ValueError, match="two tiles"):
        explore_reward(WORLD, 3, 3)


def test_a_map_of_ones_own_can_be_chosen_by_its_path(tmp_path):
    (tmp_path / "mine.txt").write_text("....")
    explorer = explore_eigenvectors(str(tmp_path / "mine.txt"))
    assert explorer.text == "...."
    assert explorer.maps[str(tmp_path / "mine.txt")] == "...."
    assert "four_rooms" in explorer.maps
