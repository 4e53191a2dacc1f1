"""Options from pixels: the look-ahead does what brute force does, numbers are right where the answer is known, runs resume."""

import shutil
import signal
import subprocess
import sys
import time
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from eigencourse.cli import main
from eigenlib import storage
from eigenlib.atari import baselines, films, metrics, options, pipeline, pretrained
from eigenlib.atari.dataset import NO_ACTION, Dataset
from eigenlib.atari.emulator import Emulator
from eigenlib.atari.network import DeepSR, Sizes
from eigenlib.atari.pixels import PixelMaze
from eigenlib.gridworld import GridWorld
from eigenlib.plots import atari

TINY = Sizes(2, 16, 8)


class OneHot:
    """A network that recognises every state of a maze: φ is one-hot, ψ a matrix of our choice."""

    def __init__(self, maze, successor=None):
        self.frames = {frame.tobytes(): state for state, frame in enumerate(maze.frames)}
        assert len(self.frames) == len(maze.frames)
        self.sizes, self.n_actions = SimpleNamespace(features=len(maze.frames)), maze.n_actions
        self.mean, self.matrix = torch.zeros(84, 84), successor
        self.looked_at = 0

    def phi(self, frames):
        self.looked_at += len(frames)
        states = [self.frames[frame.numpy().tobytes()] for frame in frames]
        return torch.nn.functional.one_hot(torch.tensor(states), self.sizes.features).float()

    def psi(self, phi):
        return phi @ torch.as_tensor(self.matrix, dtype=torch.float32)


@pytest.fixture
def maze():
    return PixelMaze(GridWorld.named("four_rooms"), seed=3, steps=1000)


def greedy(world, potential, state, steps):
    """Brute force: always to the neighbour with the largest potential, the first one if several are."""
    states, stop = [state], -1
    for t in range(steps):
        ahead = potential[world.next_state[state]]
        if stop < 0 and ahead.max() <= potential[state]:
            stop = t
        state = int(world.next_state[state, ahead.argmax()])
        states.append(state)
    return states, stop


def states_of(maze, positions):
    here = maze.save()
    where = {}
    for state in range(maze.world.n_states):
        maze.state = state
        where[tuple(np.float32(maze.position()))] = state
    maze.restore(here)
    return [where[tuple(position)] for position in positions]


# --- following ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", ["phi", "psi"])
def test_the_best_action_is_taken_in_both_directions(maze, reward):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(maze.world.n_states, maze.world.n_states))
    vectors = options.both_signs(rng.normal(size=(maze.world.n_states, 5)))
    log = options.follow_greedily(maze, OneHot(maze, matrix), vectors, 12, reward=reward)
    for k in range(10):
        potential = vectors[:, k] if reward == "phi" else matrix @ vectors[:, k]
        states, stop = greedy(maze.world, potential, maze.state, 12)
        assert states_of(maze, log.positions[k]) == states
        assert log.stops[k] == stop
        np.testing.assert_allclose(log.potentials[k], potential[states], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(log.gains[k], np.diff(potential[states]), atol=1e-3)
        assert [maze.world.next_state[s, a] for s, a in zip(states, log.actions[k], strict=False)] == states[1:]
    assert states_of(maze, log.positions[0]) != states_of(maze, log.positions[1])


def test_signs_alternate():
    vectors = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(options.both_signs(vectors), vectors[:, [0, 0, 1, 1]] * [1, -1, 1, -1])


@pytest.mark.parametrize("depth", [2, 3])
def test_deeper_plans_are_the_best_of_all_sequences(maze, depth):
    vectors = np.random.default_rng(1).normal(size=(maze.world.n_states, 6))
    log = options.follow_greedily(maze, OneHot(maze), vectors, 5, depth=depth, gamma=0.8)
    for k in range(6):
        for t, state in enumerate(states_of(maze, log.positions[k])[:-1]):
            best: dict[int, float] = {}
            for sequence in product(range(4), repeat=depth):
                at, earned = state, 0.0
                for i, action in enumerate(sequence):
                    after = maze.world.next_state[at, action]
                    earned += 0.8**i * (vectors[after, k] - vectors[at, k])
                    best[sequence[0]] = max(best.get(sequence[0], -np.inf), earned)
                    at = after
            assert log.gains[k, t] == pytest.approx(max(best.values()), abs=1e-4)
            assert best[log.actions[k, t]] == pytest.approx(max(best.values()), abs=1e-4)


def test_a_plan_never_puts_off_what_it_can_have_now():
    """The best place is one step away: waiting and then going must not win over going."""
    maze = PixelMaze(GridWorld.from_text("....."), seed=0, steps=100)
    maze.state = 1
    log = options.follow_greedily(maze, OneHot(maze), np.array([[0.0], [0.0], [1.0], [0.0], [0.0]]), 4, depth=3)
    assert states_of(maze, log.positions[0]) == [1, 2, 2, 2, 2]
    assert log.stops[0] == 1


def test_where_plans_are_too_many_each_action_is_repeated():
    every = options.plans(3, 5)
    assert len(every) == len(set(every)) == 3 + 9 + 27 + 81 + 243
    assert every[:4] == [(0,), (1,), (2,), (0, 0)]
    for tree in (every, repeated := options.plans(18, 3)):
        before = {(): -1} | {plan: number for number, plan in enumerate(tree)}
        assert all(before[plan[:-1]] < number for number, plan in enumerate(tree))  # a plan stands after its beginning
    assert len(repeated) == 54
    assert repeated[18::18] == [(0, 0), (0, 0, 0)]
    assert all(len(set(plan)) == 1 for plan in repeated)


def test_ties_go_to_the_first_action(maze):
    log = options.follow_greedily(maze, OneHot(maze), np.ones((maze.world.n_states, 1)), 6)
    assert (log.actions == 0).all()
    assert (log.gains == 0).all()
    assert log.stops.tolist() == [0]


@pytest.mark.parametrize(
    "make", [lambda: PixelMaze(GridWorld.named("four_rooms"), 1, 50), lambda: Emulator("ms_pacman")]
)
def test_together_is_as_one_by_one(make):
    world = make()
    network = DeepSR(world.n_actions, TINY, seed=2)
    vectors = np.random.default_rng(0).normal(size=(TINY.features, 6))
    together = options.follow_greedily(world, network, vectors, 5)
    for k in range(6):
        alone = options.follow_greedily(world, network, vectors[:, [k]], 5)
        for name, column in alone._asdict().items():
            np.testing.assert_allclose(getattr(together, name)[k], column[0], rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_afterwards_the_world_is_as_before(sticky):
    network, vectors = DeepSR(3, TINY), np.random.default_rng(0).normal(size=(TINY.features, 4))
    worlds = [Emulator("freeway", seed=5, sticky=sticky) for _ in range(2)]
    for world in worlds:
        for _ in range(3):
            world.act(1)
    options.follow_greedily(worlds[0], network, vectors, 3, depth=2)
    for action in (1, 1, 0, 2, 1):
        np.testing.assert_array_equal(worlds[0].frame(), worlds[1].frame())
        assert worlds[0].position() == worlds[1].position()
        for world in worlds:
            world.act(action)


def test_it_starts_where_it_is_told_and_restores_even_after_an_error(maze):
    start, vectors = maze.save(), np.random.default_rng(0).normal(size=(maze.world.n_states, 3))
    expected = options.follow_greedily(maze, OneHot(maze), vectors, 4)
    maze.act(0), maze.act(3)
    here = maze.state
    for name, column in options.follow_greedily(maze, OneHot(maze), vectors, 4, start=start)._asdict().items():
        np.testing.assert_array_equal(column, getattr(expected, name))
    assert maze.state == here
    network = OneHot(maze)
    network.phi = lambda frames: 1 / 0
    with pytest.raises(ZeroDivisionError):
        options.follow_greedily(maze, network, vectors, 4)
    assert maze.state == here


def test_after_the_end_nothing_happens():
    maze = PixelMaze(GridWorld.named("four_rooms"), seed=0, steps=4)
    log = options.follow_greedily(
        maze, OneHot(maze), np.random.default_rng(0).normal(size=(maze.world.n_states, 3)), 7, depth=2
    )
    assert (log.actions[:, :4] >= 0).all()
    assert (log.actions[:, 4:] == -1).all()
    assert np.isfinite(log.positions[:, :4]).all()
    assert np.isnan(log.positions[:, 4:]).all()
    assert (log.gains[:, 4:] == 0).all()
    assert (log.potentials[:, 4:] == log.potentials[:, [4]]).all()
    maze.act(0), maze.act(0), maze.act(0), maze.act(0)
    assert (options.follow_greedily(maze, OneHot(maze), np.ones((maze.world.n_states, 2)), 3).actions == -1).all()


def test_equal_frames_are_looked_at_once(maze):
    network = OneHot(maze)
    options.follow_greedily(maze, network, np.ones((maze.world.n_states, 50)), 1)
    assert network.looked_at <= 1 + 4


def test_the_film_shows_what_was_done():
    world = Emulator("freeway", seed=0)
    log = options.follow_greedily(world, DeepSR(3, TINY), np.random.default_rng(3).normal(size=(TINY.features, 1)), 4)
    film, seen = films.replay(world, log.actions[0])
    assert film.shape == (5, 210, 160, 3)
    np.testing.assert_allclose(seen, log.positions[0])
    np.testing.assert_array_equal(film[0], world.screen())
    for action in log.actions[0]:
        world.act(int(action))
    np.testing.assert_array_equal(film[-1], world.screen())
    assert world.position() == pytest.approx(log.positions[0, -1])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"vectors": np.ones((3, 2))}, r"\(16, K\)"),
        ({"reward": "zeta"}, "'phi'"),
        ({"steps": 0}, "at least 1"),
        ({"depth": 0}, "at least 1"),
        ({"network": DeepSR(7, TINY)}, "made for 7"),
    ],
)
def test_what_cannot_be_followed_is_refused(maze, change, says):
    given = {"world": maze, "network": DeepSR(4, TINY), "vectors": np.ones((16, 2)), "steps": 2}
    with pytest.raises(ValueError, match=says):
        options.follow_greedily(**given | change)


# --- directions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centre", [False, True])
def test_eigenpurposes_are_right_singular_vectors(centre):
    rows = (np.random.default_rng(0).normal(size=(9000, 7)) * [9, 7, 5, 4, 3, 2, 1] + 3).astype(np.float32)
    found = options.eigenpurposes_from_rows(rows, 5, centre)
    _, values, vectors = np.linalg.svd(
        rows.astype(float) - rows.astype(float).mean(axis=0) * centre, full_matrices=False
    )
    np.testing.assert_allclose(found.values, values[:5], rtol=1e-6)
    np.testing.assert_allclose(np.abs((found.vectors * vectors[:5].T).sum(axis=0)), 1, atol=1e-9)
    assert (found.vectors[np.abs(found.vectors).argmax(axis=0), range(5)] > 0).all()


def test_bad_rows_are_refused():
    with pytest.raises(ValueError, match="between 1 and 4"):
        options.eigenpurposes_from_rows(np.ones((9, 4)), 5)
    with pytest.raises(ValueError, match="not finite"):
        options.eigenpurposes_from_rows(np.full((9, 4), np.nan), 2)
    with pytest.raises(ValueError, match="'pca'"):
        baselines.directions_of("best", np.ones((9, 4)), np.ones((9, 4)), 2)


def test_features_and_rows_are_the_networks():
    network = DeepSR(3, TINY, seed=1)
    frames = np.random.default_rng(0).integers(256, size=(options.BATCH + 3, 84, 84), dtype=np.uint8)
    phi, psi = options.features_and_rows(network, frames)
    with torch.no_grad():
        expected = network.phi(torch.from_numpy(frames))
        np.testing.assert_allclose(phi, expected.numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(psi, network.psi(expected).numpy(), rtol=1e-4, atol=1e-5)
    assert not torch.is_inference_mode_enabled()


def test_controls():
    rng = np.random.default_rng(0)
    phi, psi = rng.normal(size=(50, 6)) + 10, rng.normal(size=(50, 6)) + 10
    sr, pca, drawn = (baselines.directions_of(kind, phi, psi, 3).vectors for kind in ("sr", "pca", "random"))
    for vectors in (sr, pca, drawn):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1)
    assert sr[:, 0] @ np.ones(6) / 6**0.5 > 0.99  # not centred: the first is the mean
    assert abs(pca[:, 0] @ np.ones(6)) / 6**0.5 < 0.9
    np.testing.assert_array_equal(drawn, baselines.directions_of("random", phi, psi, 3).vectors)
    assert not np.allclose(drawn, baselines.directions_of("random", phi, psi, 3, seed=1).vectors)


def test_an_untrained_network_sees_the_same_and_knows_nothing():
    network = DeepSR(3, TINY, mean=np.full((84, 84), 0.3), scale=np.full((84, 84), 0.1), seed=4)
    network.conv1.weight.data += 1
    fresh = baselines.untrained_copy(network, seed=4)
    assert torch.equal(fresh.mean, network.mean)
    assert torch.equal(fresh.scale, network.scale)
    assert torch.equal(fresh.conv2.weight, network.conv2.weight)
    assert not torch.equal(fresh.conv1.weight, network.conv1.weight)


# --- numbers --------------------------------------------------------------------------------------------------------


def walk_on_a_grid(rng, samples, side=10):
    return rng.uniform(0, side * metrics.CELL, size=(samples, 2))


def test_r8_is_one_for_a_function_of_the_place_and_none_for_noise():
    rng = np.random.default_rng(0)
    positions = walk_on_a_grid(rng, 300)  # three visits a place: η² of noise would be a third
    cell = np.floor(positions / metrics.CELL)
    pure, noise = np.sin(cell[:, 0]) + cell[:, 1], rng.normal(size=(300, 400))
    assert metrics.r8(pure, positions) == pytest.approx([1.0])
    shares = metrics.r8(noise, positions)
    assert shares.mean() == pytest.approx(0, abs=0.02)
    half = pure / pure.std() + rng.normal(size=300)
    assert metrics.r8(np.repeat(half[:, None], 2, axis=1), positions) == pytest.approx([0.5, 0.5], abs=0.1)


def test_r8_knows_rooms_and_ignores_rows_without_a_position():
    positions = np.tile([[4.0, 4.0]], (40, 1))
    rooms = np.repeat([1, 2], 20)
    potential = rooms + 0.0
    assert np.isnan(metrics.r8(np.ones(40), positions)[0])
    assert metrics.r8(potential, positions)[0] == pytest.approx(0.0, abs=1e-9)
    assert metrics.r8(potential, positions, rooms)[0] == pytest.approx(1.0)
    positions[::2] = np.nan
    potential[::2] = 1e6
    assert metrics.r8(potential, positions, rooms)[0] == pytest.approx(1.0)
    assert np.isnan(metrics.r8(np.arange(3.0), np.arange(6.0).reshape(3, 2) * 50)[0])
    with pytest.raises(ValueError, match="position"):
        metrics.r8(potential, np.full((40, 2), np.nan))


def test_a_hill_is_one_basin_and_two_hills_are_two():
    positions = np.repeat(np.indices((9, 9)).reshape(2, -1).T * metrics.CELL + 4.0, 5, axis=0)
    x, y = positions.T
    one = -np.hypot(x - 20, y - 52)
    two = -np.minimum(np.hypot(x - 4, y - 36), np.hypot(x - 68, y - 36) + 0.5)
    shares = metrics.big_basin(np.stack([one, two, 0 * x], axis=1), positions)
    assert shares[0] == 1
    assert 0.5 <= shares[1] <= 0.6
    assert shares[2] == pytest.approx(1 / 81)  # on a plain every place is its own top
    rare = np.concatenate([positions, [[4.0, 500.0]] * 4])
    assert metrics.big_basin(np.append(one, [9.0] * 4), rare)[0] == 1  # four visits are too few
    assert metrics.big_basin(np.append(one, [9.0] * 4), rare, visits=4)[0] == pytest.approx(81 / 82)


def test_purposeful():
    there = np.array([[0, 0]] * 10 + [[50, 20]] * 10, dtype=float)
    share, mode = metrics.purposeful(there)
    assert (share, mode.tolist()) == (1.0, [50, 20, 0])
    assert metrics.purposeful(there[::-1])[1].tolist() == [0, 0, 0]
    nearby = there.copy()
    nearby[-3] = [56, 20]
    nearby[-2] = [90, 20]
    assert metrics.purposeful(nearby)[0] == pytest.approx(0.9)
    dead = there.copy()
    dead[-8:] = np.nan  # an episode that is over does not count as staying
    assert metrics.purposeful(dead)[0] == pytest.approx(0.2)
    assert metrics.purposeful(np.full((20, 2), np.nan))[0] == 0
    assert metrics.purposeful(there, np.repeat([1, 2, 3], [10, 4, 6]))[0] == pytest.approx(0.6)


def test_ends_and_deaths():
    ends = np.array([[0, 0], [10, 0], [40, 0], [40, 10], [0, 0]], dtype=float)
    assert metrics.distinct_ends(ends) == 2
    assert metrics.distinct_ends(ends, radius=5) == 4
    assert metrics.distinct_ends(np.column_stack([ends, [1, 1, 1, 2, 2]])) == 4
    assert metrics.distinct_ends(np.empty((0, 3))) == 0
    assert metrics.deaths(np.array([[3, 3, 2, 2, 1], [3, 3, 3, 3, 3]])).tolist() == [2, 0]


def test_behaviour_counts_only_those_that_go_somewhere():
    log = options.empty_log(3, 9)
    log.positions[0] = [10, 10]  # never moves
    log.positions[1, :3], log.positions[1, 3:] = [10, 10], [80, 10]
    log.positions[2] = np.arange(10)[:, None] * [20, 0] + 10.0  # never stays
    did = metrics.behaviour(log)
    assert did["goes"].tolist() == [False, True, False]
    assert did["ends"][1].tolist() == [80, 10, -1]


def test_prediction_errors_where_they_are_known():
    """A background of 0, one bright pixel that moves; the network always predicts the truth plus one unit."""
    frames = np.zeros((5, 84, 84), np.uint8)
    frames[range(5), 40, 20 + 10 * np.arange(5)] = 255
    positions = np.column_stack([20.5 + 10 * np.arange(5), np.full(5, 40.5)]) * [2, 2.5]  # on a screen of 210 × 168
    actions = np.array([1, 0, 1, 2, NO_ACTION], np.uint8)
    data = Dataset.from_arrays(frames, actions, np.zeros(5, np.uint8), 3, positions.astype(np.float32))
    network = DeepSR(3, TINY)
    network.phi = lambda now: now.roll(10, dims=2)
    network.predict = lambda phi, actions: phi / 255 + 1.0
    errors = metrics.prediction_errors(network, data, data.transitions, (210, 168))
    assert errors["frame"] == pytest.approx({"network": 1, "background": 1 / 84**2, "copy": 2 / 84**2}, rel=1e-5)
    assert errors["avatar"] == pytest.approx({"network": 1, "background": 1 / 144, "copy": 1 / 144}, rel=1e-5)
    blind = Dataset.from_arrays(frames, actions, np.zeros(5, np.uint8), 3)
    assert set(metrics.prediction_errors(network, blind, blind.transitions)) == {"frame"}


@pytest.mark.parametrize("known", [True, False])
def test_errors_in_other_units(known):
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (6, 84, 84), dtype=np.uint8)
    actions, ends = np.array([0, 1, 0, 1, 0, 255], np.uint8), np.zeros(6, np.uint8)
    positions = np.full((6, 2), 40.0 if known else np.nan, np.float32)
    data = Dataset.from_arrays(frames, actions, ends, 2, positions)
    network = DeepSR(2, Sizes(2, 8, 4), np.full((84, 84), 0.5), np.full((84, 84), 0.25))
    own = metrics.prediction_errors(network, data, data.transitions)
    double = metrics.prediction_errors(network, data, data.transitions, scale=np.full((84, 84), 0.5))
    assert set(own) == ({"frame", "avatar"} if known else {"frame"})
    for where, errors in own.items():
        for guess, error in errors.items():
            assert double[where][guess] == pytest.approx(error / 4, rel=1e-5)
    background = ((frames[1:] / 255 - 0.5) / 0.25) ** 2
    assert own["frame"]["background"] == pytest.approx(background.mean(), rel=1e-5)


def test_predictions_are_of_the_action_that_was_taken():
    rng = np.random.default_rng(0)
    frames, actions = rng.integers(0, 256, (6, 84, 84), dtype=np.uint8), np.array([0, 1, 0, 1, 0, 255], np.uint8)
    data = Dataset.from_arrays(frames, actions, np.zeros(6, np.uint8), 2, np.full((6, 2), 40.0, np.float32))
    network = DeepSR(2, Sizes(2, 8, 4), np.full((84, 84), 0.5), np.full((84, 84), 0.25))
    with torch.no_grad():
        for parameter in network.parameters():  # large enough to show in whole grey levels
            parameter.mul_(3)
        each = [network.predict(network.phi(torch.from_numpy(frames[:5])), torch.full((5,), a)) for a in range(2)]
        pixels = [network.to_pixels(guess).round().to(torch.uint8).numpy() for guess in each]
    assert (pixels[0] != pixels[1]).any()
    found = metrics.predicted_frames(network, data, np.array([3, 0]))
    np.testing.assert_array_equal(found, [pixels[1][3], pixels[0][0]])


# --- the pipeline ---------------------------------------------------------------------------------------------------

AMOUNTS = {"passes": 1, "refine-passes": 1, "samples": 300, "rows": 200, "purposes": 5, "steps": 5}
WORDS = [word for name, amount in AMOUNTS.items() for word in (f"--{name}", str(amount))]
SMALL = ["--processes", "1", *WORDS]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Freeway, run once from beginning to end through the command line."""
    out = tmp_path_factory.mktemp("atari") / "freeway"
    assert main(["atari", "run", "freeway", "--preset", "quick", "--out", str(out), *SMALL]) == 0
    return out


def test_a_run_leaves_everything_and_a_second_one_nothing_new(done, capsys):
    before = {path: path.stat().st_mtime_ns for path in done.rglob("*.np?")}
    assert main(["atari", "run", "freeway", "--preset", "quick", "--out", str(done), *SMALL]) == 0
    said = capsys.readouterr().out
    assert all(title in said for title in baselines.KINDS.values())
    assert "of 10" in said
    assert before == {path: path.stat().st_mtime_ns for path in done.rglob("*.np?")}
    assert (done / "options.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(contents(done / "discovery")) == ["options.json", "options.npz"]


def test_what_is_found_belongs_together(done):
    job = pipeline.prepare("freeway", "quick", out=done)
    found = pipeline.read_discovery(pipeline.discovery_path(job))
    assert set(found.kinds) == set(baselines.KINDS)
    for kind, arrays in found.kinds.items():
        assert arrays["positions"].shape == (10, 6, 2)
        assert arrays["actions"].shape == (10, 5)
        assert arrays["r8"].shape == arrays["values"].shape == (5,)
        assert arrays["big_basin"].shape == (10,)
        assert found.about["summary"][kind]["options"] == 10
    network = job.trained().network
    vectors = options.both_signs(found.kinds["sr"]["vectors"])
    again = options.follow_greedily(job.world(), network, vectors, 5)  # all ten at once, not in batches
    np.testing.assert_array_equal(again.actions, found.kinds["sr"]["actions"])
    np.testing.assert_array_equal(again.positions, found.kinds["sr"]["positions"])
    assert set(found.about["prediction_errors"]) == {"frame", "avatar"}
    assert found.about["command"].startswith("eigenlib atari discover freeway --preset quick")


def test_killed_discovery_goes_on_and_ends_with_the_same_files(done, tmp_path):
    """SIGKILL in the middle, twice; what was finished is not done again, and the end is the same."""
    copy = tmp_path / "again"
    for part in ("network", "walk"):
        shutil.copytree(done / part, copy / part)
    command = [sys.executable, "-m", "eigenlib", "atari", "discover", "freeway", "--preset", "quick", *SMALL]
    ages: dict[str, int] = {}
    wanted, attempts = [2, 5], 6  # on a busy machine the kill may come too late: then the round begins anew
    while wanted and (attempts := attempts - 1):
        process = subprocess.Popen([*command, "--out", str(copy)], stderr=subprocess.DEVNULL)
        while len(list((copy / "discovery").glob("*.json"))) < wanted[0] and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        if process.wait() != -signal.SIGKILL:
            shutil.rmtree(copy / "discovery")
            wanted, ages = [2, 5], {}
            continue
        parts = {path.name: path.stat().st_mtime_ns for path in (copy / "discovery").glob("options-*.json")}
        assert parts.items() >= ages.items()
        ages, wanted = parts, wanted[1:]
    assert len(ages) >= 5
    assert main([*command[3:], "--out", str(copy)]) == 0
    (mine, about), (theirs, wanted_about) = (storage.load(at / "discovery" / "options") for at in (copy, done))
    assert set(mine) == set(theirs)
    for name, array in mine.items():  # another process may round float32 otherwise
        np.testing.assert_allclose(array, theirs[name], rtol=1e-4, atol=1e-4, err_msg=name)
    assert about["made_from"] == wanted_about["made_from"]
    for kind, numbers in wanted_about["summary"].items():
        assert about["summary"][kind] == pytest.approx(numbers, rel=1e-4)
    assert sorted(contents(copy / "discovery")) == sorted(contents(done / "discovery"))


def test_parts_of_another_discovery_are_not_used(done, tmp_path):
    copy = tmp_path / "again"
    shutil.copytree(done, copy)
    job = pipeline.prepare("freeway", "quick", out=copy, rows=200, purposes=5, steps=4)
    assert pipeline.discover(job, progress=False).kinds["sr"]["actions"].shape == (10, 4)
    (copy / "discovery" / "options.npz").write_bytes(b"cut short")
    assert pipeline.discover(job, progress=False).kinds["sr"]["actions"].shape == (10, 4)
    other = pipeline.discover(job, progress=False, reward="psi", depth=2, centre=True)
    assert (copy / "discovery" / "options-psi-depth2-centred.npz").is_file()
    assert pipeline.read_discovery(pipeline.discovery_path(job)).about["made_from"]["reward"] == "phi"
    assert other.about["made_from"] | {"depth": 1} != other.about["made_from"]


def test_shipped_files_are_read_back_and_checked(done, tmp_path):
    job = pipeline.prepare("freeway", "quick", out=done)
    pipeline.ship(job, destination=tmp_path)
    assert sorted(contents(tmp_path)) == [
        *("freeway-lesson.json", "freeway-lesson.npz", "freeway.json", "freeway.safetensors")
    ]
    network, arrays, about = pretrained.load("Freeway", tmp_path)
    walk = pipeline.datasets.open_dataset(done / "walk")
    frames = np.array(walk.frames[:4])
    shipped, trained = (options.features_and_rows(n, frames)[0] for n in (network, job.trained().network))
    np.testing.assert_allclose(shipped, trained, rtol=0.05, atol=0.01)
    assert arrays["frames"].shape == (65, 84, 84)
    assert (arrays["actions"] != NO_ACTION).all()
    assert np.ptp(arrays["positions"][:, 1]) > 0
    assert arrays["screen"].shape == (210, 160, 3)
    assert arrays["sr.positions"].shape == (10, 6, 2)
    assert len(arrays["history.update"]) == len(arrays["history.successor"]) > 0
    assert about["command"] == f"eigenlib atari run freeway --preset quick {' '.join(WORDS)}"
    text = (tmp_path / "freeway-lesson.json").read_text() + (tmp_path / "freeway.json").read_text()
    assert str(done.parent) not in text
    with pytest.raises(FileNotFoundError, match="there are freeway"):
        pretrained.load("pong", tmp_path)
    (tmp_path / "freeway.safetensors").write_bytes(b"something else")
    with pytest.raises(ValueError, match="checksums differ"):
        pretrained.load("freeway", tmp_path)


def test_the_liveliest_rows_hold_no_death_and_no_end():
    rng = np.random.default_rng(0)
    frames = np.zeros((300, 84, 84), np.uint8)
    actions, ends = rng.integers(3, size=300).astype(np.uint8), np.zeros(300, np.uint8)
    positions = np.cumsum(rng.normal(size=(300, 2)) * 0.1, axis=0).astype(np.float32)
    positions[100:130, 0] += 50 * np.arange(30)  # the longest way
    positions[211:] += 5000  # a death, after which the avatar is elsewhere, is no way
    ends[210] = 1
    actions[[150, 299]] = NO_ACTION
    rows = pretrained.liveliest(Dataset.from_arrays(frames, actions, ends, 3, positions), 40)
    assert len(rows) == 41
    assert rows[0] <= 100
    assert rows[-1] >= 129
    ends[::20] = 1
    with pytest.raises(ValueError, match="longer"):
        pretrained.liveliest(Dataset.from_arrays(frames, actions, ends, 3, positions), 40)


def test_telling_options_end_in_different_places():
    ends = np.array([[0, 0, 1], [5, 5, 1], [90, 0, 1], [90, 0, 2], [50, 50, 1]], dtype=float)
    goes = np.array([True, True, True, True, False])
    assert atari._telling_options(ends, goes) == [0, 2, 3]
    far = np.arange(12)[:, None] * [100, 0, 0]
    assert atari._telling_options(far, np.ones(12, bool)) == list(range(8))  # one for each colour


def test_stains_are_where_the_option_was_and_darkest_where_it_stayed():
    screen = np.full((210, 160, 3), 200, np.uint8)
    track = np.array([[[20, 20]] * 2 + [[100, 150]] * 30 + [[np.nan, np.nan]]])
    picture = atari._density(screen, track)
    plain = picture[0, 0]
    changed = np.abs(picture - plain).sum(axis=2)
    assert changed[20, 20] > 0.05
    assert changed[150, 100] > 2 * changed[20, 20]
    assert changed[20, 100] == 0
    assert (changed > 0).sum() == 2 * metrics.CELL**2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["dance", "freeway"], ["'dance'", "collect, train, discover, show, run"]),
        (["collect", "frogway"], ["'frogway'", "freeway"]),
        (["collect", "freeway", "--preset", "huge"], ["'huge'", "quick, standard, paper"]),
        (["collect", "freeway", "--samples", "0"], ["samples", "at least 2"]),
        (["collect", "freeway", "--seed", "-1"], ["seed", "-1"]),
        (["collect", "freeway", "--processes", "0"], ["--processes"]),
        (["train", "freeway", "--device", "abacus"], ["'abacus'"]),
        (["train", "freeway", "--threads", "0"], ["--threads must be at least 1, got 0"]),
        (["train", "freeway", "--precision", "half"], ["--precision must be auto, fp32 or bf16, got 'half'"]),
        (["train", "freeway"], ["eigenlib atari collect freeway"]),
        (["discover", "freeway"], ["eigenlib atari train freeway"]),
        (["show", "freeway"], ["atari discover"]),
        (["ship", "freeway"], ["eigenlib atari train freeway"]),
    ],
)
def test_what_cannot_be_is_one_sentence(capsys, tmp_path, arguments, says):
    assert main(["atari", *arguments, "--out", str(tmp_path / "job")]) == 2
    text = capsys.readouterr().err.strip()
    assert text.count("\n") == 0
    assert all(word in text for word in says)
    assert not (tmp_path / "job").exists()


def test_threads_and_precision_reach_the_training(done, monkeypatch):
    asked = []
    monkeypatch.setattr(
        pipeline.training, "train", lambda *_, **ways: asked.append((ways["threads"], ways["precision"]))
    )
    for more in ([], ["--threads", "3"], ["--precision", "bf16"]):
        assert main(["atari", "train", "freeway", "--preset", "quick", "--out", str(done), *SMALL, *more]) == 0
    assert asked == [("auto", "auto"), (3, "auto"), ("auto", "bf16")]


def test_another_amount_in_the_same_folder_is_refused(done, capsys):
    arguments = ["atari", "train", "freeway", "--preset", "quick", "--out", str(done), *SMALL, "--passes", "2"]
    assert main(arguments) == 2
    assert "passes 1 there, 2 here" in capsys.readouterr().err


def test_folders_are_named_by_what_is_in_them():
    assert pipeline.prepare("Ms. Pac-Man").out.name == "ms_pacman-standard"
    assert pipeline.prepare("freeway", "quick", seed=3).out.name == "freeway-quick-seed3"
    assert pipeline.prepare("freeway", "paper").amounts == (500_000, pipeline.Config(sizes="paper"), 50_000, 20, 100)
    job = pipeline.prepare("freeway", "quick", seed=3, steps=9, passes=1)
    assert job.command("train") == "eigenlib atari train freeway --preset quick --passes 1 --steps 9 --seed 3"
    assert job.amounts.config.seed == 3


def test_random_play_is_noted_as_options_are(maze):
    log = baselines.wander(maze, 3, 20, np.random.default_rng(0))
    before = states_of(maze, log.positions[:, 0])
    assert len(set(before)) == 1
    for k in range(3):
        states = states_of(maze, log.positions[k])
        assert [maze.world.next_state[s, a] for s, a in zip(states, log.actions[k], strict=False)] == states[1:]
    assert len({tuple(actions) for actions in log.actions.tolist()}) == 3
    assert maze.state == before[0]


def test_random_play_stops_where_an_episode_does():
    short = PixelMaze(GridWorld.named("four_rooms"), seed=3, steps=5)
    log = baselines.wander(short, 2, 9, np.random.default_rng(0))
    assert (log.actions[:, :5] >= 0).all()
    assert (log.actions[:, 5:] == -1).all()
    assert np.isnan(log.positions[:, 6:]).all()


def test_an_option_ends_where_nothing_pays_any_more():
    """Six options: one ends far away, one near, one after a death, one in another room, one never, one before a death."""
    positions = np.zeros((6, 6, 2), np.float32)
    positions[:, :, 0] = np.arange(6) * np.array([10, 1, 10, 0, 10, 10])[:, None]
    rooms, lives = np.ones((6, 6), np.int16), np.full((6, 6), 3, np.int16)
    lives[2, 2:] = lives[5, 4:] = 2
    rooms[3, 3:] = 2
    found = metrics.terminations(
        {"positions": positions, "rooms": rooms, "lives": lives, "stops": np.array([3, 3, 3, 4, -1, 3])}
    )
    assert found["goes"].tolist() == [True, False, False, True, False, True]
    np.testing.assert_array_equal(found["ends"][0], [30, 0, 1])
    assert np.isnan(found["ends"][4]).all()
    assert np.isnan(found["positions"][0, 4:]).all()
    assert np.isfinite(found["positions"][0, :4]).all()
    assert np.isfinite(found["positions"][4]).all()
