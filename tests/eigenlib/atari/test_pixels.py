"""Mazes drawn as pixels: every state has its own frame, and acting is the GridWorld's acting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import worlds

from eigenlib.atari import pixels
from eigenlib.atari.pixels import AGENT, SIDE, PixelMaze
from eigenlib.gridworld import GridWorld, map_names

DOORS = "XXXXXXX\nX..>..X\nX.X.X.X\nX..<..X\nXXXXXXX"


@pytest.mark.parametrize("name", map_names())
def test_every_state_has_a_frame_of_its_own(name):
    maze = PixelMaze(GridWorld.named(name))
    assert maze.frames.shape == (maze.world.n_states, SIDE, SIDE)
    assert maze.frames.dtype == np.uint8
    assert len(np.unique(maze.frames.reshape(len(maze.frames), -1), axis=0)) == maze.world.n_states


@given(worlds())
@settings(max_examples=40, deadline=None)
def test_the_agent_is_drawn_where_it_is(world):
    maze = PixelMaze(world)
    for state in range(maze.world.n_states):
        maze.state = state
        ys, xs = np.nonzero(maze.frame() == AGENT)
        assert maze.position() == ((xs.min() + xs.max()) / 2, (ys.min() + ys.max()) / 2)
        assert np.ptp(xs) == np.ptp(ys)  # a square
    background = maze.frames.min(axis=0)
    cell = SIDE // max(maze.world.free.shape)
    walls = np.count_nonzero(background == pixels.WALL)
    assert walls == cell**2 * np.count_nonzero(~maze.world.free)
    ys, xs = np.nonzero(background != pixels.BEYOND)  # in the middle of the picture, give or take half a pixel
    assert abs(ys.min() + ys.max() - SIDE + 1) <= 1
    assert abs(xs.min() + xs.max() - SIDE + 1) <= 1


@given(worlds(slips=False), st.integers(0, 2**32 - 1), st.lists(st.integers(0, 3), min_size=1, max_size=40))
@settings(max_examples=40, deadline=None)
def test_without_slips_acting_follows_next_state(world, seed, actions):
    maze = PixelMaze(world, seed=seed, steps=40)
    for action in actions:
        before = maze.state
        assert maze.act(action) == 0
        assert maze.state == world.next_state[before, action]
        assert (maze.frame() == maze.frames[maze.state]).all()


def test_slips_are_as_frequent_as_the_world_says():
    world = GridWorld.from_text("XXXXX\nX...X\nX...X\nX...X\nXXXXX", slip=0.3)
    maze = PixelMaze(world, seed=1, steps=10**9)
    middle, tries = int(world.state_at[2, 2]), 20_000
    counts = np.zeros(world.n_states)
    for _ in range(tries):
        maze.state = middle
        maze.act(0)
        counts[maze.state] += 1
    expected = sum(chance * np.eye(world.n_states)[states[middle, 0]] for chance, states in world.outcomes())
    spread = np.sqrt(expected * (1 - expected) / tries)
    assert (np.abs(counts / tries - expected) <= 5 * spread).all()


def test_episodes_are_cut_off_and_start_anywhere():
    maze = PixelMaze(GridWorld.from_text(DOORS), seed=2, steps=3)
    starts = set()
    for _ in range(200):
        maze.reset()
        starts.add(maze.state)
        for _ in range(3):
            assert not maze.over
            maze.act(1)
        assert maze.over
        assert maze.cut_off
    assert starts == set(range(maze.world.n_states))
    with pytest.raises(RuntimeError, match="reset"):
        maze.act(0)


@given(st.integers(0, 99), st.lists(st.integers(0, 3), max_size=15), st.lists(st.integers(0, 3), max_size=15))
@settings(max_examples=25, deadline=None)
def test_restoring_brings_back_frame_and_future(seed, other, actions):
    maze = PixelMaze(GridWorld.from_text(DOORS, slip=0.5), seed=seed, steps=15)
    state, frame = maze.save(), maze.frame()

    def future():
        seen = []
        for action in actions:
            maze.act(action)
            seen.append((maze.state, maze.over))
        maze.reset()
        return [*seen, maze.state]

    first = future()
    maze.restore(state)
    for action in other:
        maze.act(action)
    maze.restore(state)
    assert (maze.frame() == frame).all()
    assert future() == first


def test_one_way_doors_show_and_point():
    plain = PixelMaze(GridWorld.from_text(DOORS.replace(">", ".").replace("<", ".")))
    maze = PixelMaze(GridWorld.from_text(DOORS))
    assert not (plain.frames == pixels.DOOR).any()
    right, left = int(maze.world.state_at[1, 3]), int(maze.world.state_at[3, 3])
    background = maze.frames.min(axis=0)
    for door, ahead in ((right, 1), (left, -1)):
        maze.state = door
        x, y = maze.position()
        ys, xs = np.nonzero(background == pixels.DOOR)
        near = np.abs(ys - y) < 7
        assert ((xs[near].mean() - x) * ahead) < 0  # open floor on the side where it may be left


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="does not fit into 84×84"):
        PixelMaze(GridWorld.from_text("." * 90))
    with pytest.raises(ValueError, match="steps must be at least 1"):
        PixelMaze(GridWorld.from_text(DOORS), steps=0)
    with pytest.raises(ValueError, match="actions 0 to 3"):
        PixelMaze(GridWorld.from_text(DOORS)).act(4)
    with pytest.raises(ValueError, match="read-only"):
        PixelMaze(GridWorld.from_text(DOORS)).frame()[0, 0] = 1


def test_other_seeds_and_what_a_dataset_records():
    maze = PixelMaze(GridWorld.named("four_rooms"), seed=1, steps=7)
    twin = maze.seeded(2)
    assert twin.steps == 7
    assert twin.parameters == maze.parameters
    assert PixelMaze(GridWorld.named("four_rooms", slip=0.1)).parameters != maze.parameters
    assert PixelMaze(GridWorld.from_text(DOORS)).parameters != maze.parameters
