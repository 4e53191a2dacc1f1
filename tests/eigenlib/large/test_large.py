"""Big mazes, and every function on every kind of world that a text can draw."""

import warnings

import numpy as np
import pytest
from scipy import ndimage
from shared import every

from eigenlib.comparing import residuals
from eigenlib.control import q_learning
from eigenlib.diffusion import diffusion_curve, diffusion_time
from eigenlib.eigenoptions import discover_eigenoptions, follow, learn_eigenoption, random_subgoal_options
from eigenlib.eigenpurposes import extract_eigenpurposes, sr_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.large.rooms import big_rooms
from eigenlib.large.sampled_diffusion import sampled_diffusion_time
from eigenlib.options import require_options, subgoal_option
from eigenlib.representation import laplacian, learn_successor_representation, successor_representation

DOORS = "......\n.X>.X.\n.X..X.\n.X.vX.\n......"
WORLDS = {
    "plain": GridWorld.from_text("......\n.XX.X.\n......"),
    "slip": GridWorld.from_text("......\n.XX.X.\n......", slip=0.3),
    "doors": GridWorld.from_text(DOORS),
    "doors and slip": GridWorld.from_text(DOORS, slip=0.3),
    "a door that shuts for good": GridWorld.from_text("...>..\n...X.."),
    "one state": GridWorld.from_text("."),
    "corridor": GridWorld.from_text("." * 30),
    "circle of doors": GridWorld.from_text(">>>v\n^XXv\n^<<<"),
    "always slips": GridWorld.from_text("....\n....", slip=1.0),
    "large": big_rooms(4, 5),
    "large, slip and doors": GridWorld.from_text(
        big_rooms(4, 5).text.replace(".....X.....", "..>..X..v..", 3), slip=0.1
    ),
}


def option_of(world):
    return learn_eigenoption(world, np.arange(world.n_states, dtype=float))


FUNCTIONS = {
    "transition_matrix": lambda w: w.transition_matrix(sparse_result=True).sum(axis=1),
    "adjacency": lambda w: w.adjacency(self_loops=True),
    "laplacian": lambda w: laplacian(w.adjacency(self_loops=True)),
    "laplacian of W without loops": lambda w: laplacian(w.adjacency(sparse_result=True)).data,
    "random_walks": lambda w: w.random_walks(0, 3, 5, np.random.default_rng(0)),
    "successor_representation": lambda w: successor_representation(w.transition_matrix(sparse_result=True), 0.9),
    "learn_successor_representation": lambda w: learn_successor_representation(w, 5, 10),
    "extract_eigenpurposes of Ψ": lambda w: (
        extract_eigenpurposes(successor_representation(w.transition_matrix(), 0.9)).vectors
    ),
    "extract_eigenpurposes of T": lambda w: (
        extract_eigenpurposes(w.transition_matrix(sparse_result=True), 1, method="sparse").vectors
    ),
    "extract_eigenpurposes of L": lambda w: (
        extract_eigenpurposes(laplacian(w.adjacency(True, sparse_result=True)), 1, "smallest", "sparse").vectors
    ),
    "sr_eigenpurposes": lambda w: sr_eigenpurposes(w.transition_matrix(sparse_result=True), 0.9, 1, "sparse").vectors,
    "residuals": lambda w: residuals(w.transition_matrix(), sr_eigenpurposes(w.transition_matrix(), 0.9, 1), gamma=0.9),
    "learn_eigenoption": lambda w: option_of(w).value,
    "discover_eigenoptions": lambda w: [
        option.policy
        for option in discover_eigenoptions(w, sr_eigenpurposes(w.transition_matrix(), 0.9, min(4, w.n_states)))
    ],
    "subgoal_option": lambda w: subgoal_option(w, w.n_states - 1).policy,
    "random_subgoal_options": lambda w: random_subgoal_options(w, 2, np.random.default_rng(0))[1].policy,
    "follow": lambda w: follow(w, option_of(w), 0, steps=20),
    "require_options": lambda w: require_options(w, [option_of(w)]),
    "diffusion_time": lambda w: diffusion_time(w, [option_of(w)]).median,
    "diffusion_curve": lambda w: diffusion_curve(w, [option_of(w)], [0, 1]).median,
    "sampled_diffusion_time": lambda w: sampled_diffusion_time(w, [option_of(w)], [0]).median,
    "q_learning": lambda w: q_learning(w, [option_of(w)], 0, w.n_states - 1, episodes=2, runs=1),
}


def test_every_function_on_every_world():
    every({f"{name}, {world}": (name, world) for name in FUNCTIONS for world in WORLDS}, works_or_says_why)


def works_or_says_why(name, world):
    """It works, or it says why not in a sentence; warnings are allowed, numbers that are no numbers are not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if world in REFUSED.get(name, ()):
            with pytest.raises(ValueError, match=r"^.{40,}\.$"):
                FUNCTIONS[name](WORLDS[world])
            return
        result = FUNCTIONS[name](WORLDS[world])
    for part in result if isinstance(result, (list, tuple)) else [result]:
        if isinstance(part, np.ndarray) and part.dtype.kind == "f":
            assert not np.isnan(part).any()


REFUSED = {
    "laplacian of W without loops": {"one state"},  # a state without an edge has no D^-½
    "q_learning": {"one state"},  # no start that is not the goal
    "diffusion_time": {"one state"},  # no pair of distinct states
    "diffusion_curve": {"one state"},
    # infinite times need all pairs; and climbing state numbers, this option has an end in each room and is trapped there
    "sampled_diffusion_time": {"one state", "a door that shuts for good", "large, slip and doors"},
}


def test_big_rooms():
    world = big_rooms(5, 4, seed=1, loops=0.0)
    assert world.free.shape == (26, 26)
    assert world.n_states == 25 * 16 + 24  # a tree: one doorway less than rooms
    assert ndimage.label(world.free)[1] == 1
    assert big_rooms(5, 4, seed=1, loops=0.0).text == world.text
    assert big_rooms(5, 4, seed=2, loops=0.0).text != world.text
    assert big_rooms(5, 4, seed=1, loops=1.0).n_states > world.n_states
    assert big_rooms(1, 3).n_states == 9
    assert big_rooms(2, 1, slip=0.1).slip == 0.1
    with pytest.raises(ValueError, match="rooms must be at least 1"):
        big_rooms(0, 3)
