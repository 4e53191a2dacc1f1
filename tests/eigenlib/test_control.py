"""Q-learning with options: against the rules written out in Python, against exact values, and against kill -9 (§4.1)."""

import dataclasses
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from greedy import evaluate_greedy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from worlds import worlds

from eigenlib import _compiled
from eigenlib.control import optimal_return, q_learning
from eigenlib.eigenoptions import Option, discover_eigenoptions, learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.experiments import control
from eigenlib.experiments.control import (
    STORED,
    TASKS,
    ControlExperiment,
    control_experiment,
    load_reference,
    save_reference,
)
from eigenlib.gridworld import GridWorld
from eigenlib.paths import REFERENCE, ROOT
from eigenlib.representation import successor_representation

UP, RIGHT, DOWN, LEFT = range(4)
ROOMS = GridWorld.named("four_rooms")
CORRIDOR = GridWorld.from_text(".....")
PURPOSES = extract_eigenpurposes(successor_representation(ROOMS.transition_matrix(), 0.9))
EIGENOPTIONS = discover_eigenoptions(ROOMS, PURPOSES, 32)


def to_the_right(world=CORRIDOR):
    """Goes right until it bumps."""
    end = world.next_state[:, RIGHT] == np.arange(world.n_states)
    return Option(np.where(end, -1, RIGHT), ~end, end)


# --- the rules, written out -------------------------------------------------------------------------------------------


def draws(stream: int):
    """splitmix64 in Python's own integers, from where run k starts."""
    state = int(stream)
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


def slipped(world, action, bits):
    chance = (next(bits) >> 11) / 2**53
    return (action + (chance < world.slip / 2) - (chance >= 1 - world.slip / 2)) % 4


def plainly(world, options, start, goal, episodes, step_size, gamma, steps, stream, duration):
    """One run, a step at a time: what it learned, and every decision (state, option or None) it made."""
    bits, tables, decisions = draws(stream), [], []
    q = np.zeros((world.n_states, 4))
    for _ in range(episodes):
        s, option, age, action = start, None, 0, None
        for _ in range(steps):
            if option is not None:
                ended = age == 2 if duration == "2017" else option.termination[s] or age == duration
                option = None if ended else option
            if option is None:
                here = [each for each in options if each.initiation[s] and not each.termination[s]]
                choice = (next(bits) >> 32) * (4 + len(here)) >> 32
                option, age = (None, 0) if choice < 4 else (here[choice - 4], 0)
                action = choice if choice < 4 else int(option.policy[s])
                decisions.append((s, option))
            elif duration != "2017":
                action = int(option.policy[s])
            age += 1
            s_next = world.next_state[s, slipped(world, action, bits) if world.slip else action]
            target = 1.0 if s_next == goal else gamma * max(q[s_next])
            q[s, action] += step_size * (target - q[s, action])
            s = s_next
            if s == goal:
                break
        tables.append(q.copy())
    return np.array(tables), decisions


def brute_force(world, q, start, goal, gamma, steps):
    """Return and chance of arrival by pushing a distribution through a matrix, ties shared."""
    p = np.zeros((world.n_states, world.n_states))
    for s in range(world.n_states):
        best = [a for a in range(4) if q[s, a] == max(q[s])]
        for a in best:
            for chance, states in world.outcomes():
                p[s, states[s, a]] += chance / len(best)
    here, returns, reached = np.eye(world.n_states)[start], 0.0, 0.0
    for t in range(steps):
        here = here @ p
        returns, reached = returns + gamma**t * here[goal], reached + here[goal]
        here[goal] = 0.0
    return returns, reached


@st.composite
def tasks(draw, **choices):
    """A world of two states or more, start and goal, and up to four options that end; some start only here or there."""
    world = draw(worlds(**{"largest": 4, **choices}))
    assume(world.n_states > 1)
    start, goal = draw(st.permutations(range(world.n_states)))[:2]
    options = []
    for _ in range(draw(st.integers(0, 4))):
        e = draw(st.lists(st.integers(-2, 2), min_size=world.n_states, max_size=world.n_states))
        option = learn_eigenoption(world, np.array(e, dtype=float))
        if draw(st.booleans()):
            some = draw(st.lists(st.booleans(), min_size=world.n_states, max_size=world.n_states))
            option = dataclasses.replace(option, initiation=option.initiation & np.array(some))
        options.append(option)
    return world, options, start, goal


@given(
    tasks(),
    st.integers(1, 12),
    st.integers(1, 20),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.sampled_from([0.0, 0.5, 0.9]),
    st.integers(0, 2**70),
    st.sampled_from([None, 1, 2, 3, "2017"]),
)
@settings(max_examples=300, deadline=None)
def test_is_the_rules_written_out(task, episodes, steps, step_size, gamma, seed, duration):
    """Every digit of Q and of what was recorded, for each of two runs."""
    learned = q_learning(*task, episodes, 2, step_size, gamma, steps, seed, duration)
    world, options, start, goal = task
    for k, stream in enumerate(np.random.SeedSequence(seed).generate_state(2, np.uint64)):
        tables, _ = plainly(world, options, start, goal, episodes, step_size, gamma, steps, stream, duration)
        assert (learned.q[k] == tables[-1]).all()
        returns, reached = evaluate_greedy(world, tables, start, goal, gamma, steps)
        assert (learned.returns[k] == returns).all()
        assert (learned.reached[k] == reached).all()


def test_is_the_rules_written_out_at_scale():
    """Four rooms, 32 eigenoptions, 60 episodes: no drift, no forgotten evaluation."""
    start, goal = 80, 30
    for world in (ROOMS, GridWorld.named("four_rooms", slip=0.2)):
        for duration in (None, "2017"):
            learned = q_learning(world, EIGENOPTIONS, start, goal, 60, 1, rng=7, option_duration=duration)
            stream = np.random.SeedSequence(7).generate_state(1, np.uint64)[0]
            tables, _ = plainly(world, EIGENOPTIONS, start, goal, 60, 0.1, 0.9, 100, stream, duration)
            assert (learned.q[0] == tables[-1]).all()
            assert (learned.returns[0] == evaluate_greedy(world, tables, start, goal)[0]).all()
            assert learned.q.any(), "the goal was never found: this test shows nothing"


@given(tasks(), st.integers(1, 30), st.sampled_from([0.0, 0.5, 0.9]), st.integers(0, 100))
@settings(max_examples=300, deadline=None)
def test_the_evaluation_is_exact(task, steps, gamma, seed):
    """Against a matrix: values with many ties, with few, and none."""
    world, _, start, goal = task
    rng = np.random.default_rng(seed)
    q = np.stack([rng.integers(0, levels, (world.n_states, 4)) for levels in (1, 2, 3, 1000)])
    returns, reached = evaluate_greedy(world, q, start, goal, gamma, steps)
    expected = [brute_force(world, table, start, goal, gamma, steps) for table in q]
    np.testing.assert_allclose(np.transpose([returns, reached]), expected, rtol=1e-12, atol=1e-15)


def test_the_evaluation_by_hand():
    """Three cells in a row, from the left to the right: γ for two sure steps, ½ · ½γ … when nothing is known."""
    world, q = GridWorld.from_text("..."), np.zeros((3, 4))
    assert evaluate_greedy(world, q, 0, 2, gamma=0.5, steps=2)[1] == 1 / 16
    q[:, RIGHT] = 1
    assert evaluate_greedy(world, q, 0, 2, gamma=0.5, steps=2) == (0.5, 1.0)
    assert evaluate_greedy(world, q, 0, 2, gamma=0.5, steps=1) == (0.0, 0.0)
    assert evaluate_greedy(world, q, 1, 2, gamma=0.5) == (1.0, 1.0)
    q[0, LEFT] = 1  # a tie between going and bumping: arrives with step n + 1 with chance 2⁻ⁿ
    assert evaluate_greedy(world, q, 0, 2, gamma=0.5, steps=4) == pytest.approx((0.25 * 1.3125, 7 / 8))
    q[1, LEFT] = 2  # now the middle sends it back, for ever
    assert evaluate_greedy(world, q, 0, 2) == (0.0, 0.0)


# --- what the behaviour does ------------------------------------------------------------------------------------------


def test_options_start_only_where_they_may():
    """In the rules written out, which the kernel follows to the last digit; and options that start nowhere change nothing."""
    half = [
        dataclasses.replace(option, initiation=option.initiation & (np.arange(104) < 52)) for option in EIGENOPTIONS
    ]
    stream = np.random.SeedSequence(0).generate_state(1, np.uint64)[0]
    tables, decisions = plainly(ROOMS, half, 80, 30, 40, 0.1, 0.9, 100, stream, None)
    assert (q_learning(ROOMS, half, 80, 30, 40, 1).q[0] == tables[-1]).all()
    started = [s for s, option in decisions if option is not None]
    assert started
    assert max(started) < 52
    nowhere = [dataclasses.replace(option, initiation=np.zeros(104, dtype=bool)) for option in EIGENOPTIONS]
    with_them, without = (q_learning(ROOMS, options, *TASKS[3], 50, 5) for options in (nowhere, []))
    assert (with_them.q == without.q).all()
    assert (with_them.returns == without.returns).all()


def test_value_travels_one_state_an_episode():
    """Nearly every choice is the one option there is, 5,000 times over: it walks to the goal, and Q backs up one step a time.

    So the start, four steps away, has value after the fourth episode: Q(0) = α⁴γ³.
    """
    learned = q_learning(CORRIDOR, [to_the_right()] * 5000, 0, 4, 4, 3, rng=1)
    np.testing.assert_allclose(learned.q[:, 0, RIGHT], 0.1**4 * 0.9**3)
    assert (learned.reached[:, 3] == 1).all()
    assert (learned.reached[:, :3] < 1).all()
    np.testing.assert_allclose(learned.returns[:, 3], 0.9**3)
    np.testing.assert_allclose(learned.q[:, 3, RIGHT], 1 - 0.9**4)


def test_options_run_until_they_end_or_are_cut():
    """A bend: right, right, down, down. Run to the end the option finds the goal; cut short it starts again from where it is,
    so it does too; the 2017 rule repeats the first action and runs past the bend."""
    world = GridWorld.from_text("....\nXX.X\nXX.X")
    option = Option(
        np.array([RIGHT, RIGHT, DOWN, -1, DOWN, -1]), np.arange(6) % 6 < 5, np.array([0, 0, 0, 1, 0, 1], bool)
    )
    option = dataclasses.replace(option, initiation=~option.termination)
    for duration, finds in ((None, True), (1, True), (2, True), (3, True), ("2017", True)):
        learned = q_learning(world, [option] * 5000, 0, 5, 1, 3, steps=4, rng=1, option_duration=duration)
        assert (learned.q[:, 4, DOWN] == 0.1).all() == finds
    # From state 1 the first action is right: the 2017 rule repeats it, past the bend, into the dead end.
    for duration, finds in ((None, True), (2, True), ("2017", False)):
        learned = q_learning(world, [option] * 5000, 1, 5, 1, 3, steps=3, rng=1, option_duration=duration)
        assert (learned.q[:, 4, DOWN] == 0.1).all() == finds


def test_choices_are_uniform():
    """One step from the middle of three cells to the right one: the action goes there, and so do three of five options."""
    world = GridWorld.from_text("...")
    right, middle = to_the_right(world), np.arange(3) == 1
    left = Option(np.where(middle, LEFT, -1), middle, ~middle)
    slippery = GridWorld.from_text("...\n...", slip=0.2)  # from the middle of the upper row
    down = Option(np.where(np.arange(6) == 1, DOWN, -1), np.arange(6) == 1, np.arange(6) != 1)
    for here, options, chance in (
        (world, [], 1 / 4),
        (world, [right] * 3 + [left] * 2, 4 / 9),
        (slippery, [down, to_the_right(slippery), down], (2 * 0.8 + 4 * 0.1) / 7),
    ):
        found = q_learning(here, options, 1, 2, 1, 40_000, steps=1).q[:, 1] > 0
        assert found.any(axis=1).mean() == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / 40_000))


# --- what is learned --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], EIGENOPTIONS], ids=["actions only", "32 options"])
def test_the_best_way_is_learned(options):
    """In every setting and run, with time: as much as the best policy earns, and Q itself near the exact values."""
    for start, goal in TASKS:
        learned = q_learning(ROOMS, options, start, goal, 6000, 4, step_size=0.5)
        assert learned.returns[:, -1] == pytest.approx(optimal_return(ROOMS, start, goal), rel=1e-12)
        assert (learned.reached[:, -1] == 1).all()


def test_the_best_way_on_slippery_ground():
    world = GridWorld.from_text("....\n.X.v\n....", slip=0.2)
    learned = q_learning(world, [], 0, (2, 3), 3000, 8, step_size=0.02)
    best = optimal_return(world, 0, (2, 3))
    assert (learned.returns[:, -1] <= best + 1e-12).all()
    assert (learned.returns[:, -200:].mean(axis=1) > 0.97 * best).all()


@given(tasks(slips=False), st.integers(1, 15), st.integers(0, 100))
@settings(max_examples=100, deadline=None)
def test_a_little_value_is_all_it_takes(task, episodes, seed):
    """Without slips: Q ≤ γ max Q(s′) everywhere, so the goal is reached surely as soon as the start has any value."""
    world, _, start, goal = task
    learned = q_learning(*task, episodes, 3, steps=30, rng=seed)
    ahead = learned.q.max(axis=2)
    ahead[:, goal] = 1 / 0.9
    assert (learned.q <= 0.9 * ahead[:, world.next_state] + 1e-15)[:, np.arange(world.n_states) != goal].all()
    valued = learned.q[:, start].max(axis=1) > 0
    assert (learned.reached[valued, -1] == 1).all()
    assert (np.diff(learned.reached)[learned.reached[:, :-1] == 1] == 0).all()


def test_the_optimum_by_hand():
    assert optimal_return(CORRIDOR, 0, 4) == pytest.approx(0.9**3)
    assert optimal_return(CORRIDOR, 0, 4, steps=3) == 0
    assert [round(np.log(optimal_return(ROOMS, *task)) / np.log(0.9) + 1) for task in TASKS] == [20, 16, 11, 8]
    slippery = GridWorld.from_text("..", slip=0.2)  # v = 0.8 + 0.2γv
    assert optimal_return(slippery, 0, 1) == pytest.approx(0.8 / (1 - 0.18))
    assert optimal_return(GridWorld.from_text("..>."), 3, 0) == 0  # the door cannot be passed this way


def test_eigenoptions_help_and_hurt():
    """What notebook 06 tells: from corner to corner options help much; across one room the first four do harm."""
    far, near = (
        [q_learning(ROOMS, EIGENOPTIONS[:count], *TASKS[task], 200, 40).reached.mean() for count in (0, 4, 32)]
        for task in (0, 3)
    )
    assert far[0] < 0.1 < 0.8 < min(far[1:])
    assert near[1] < 0.8 < 0.98 < near[0]


# --- same seed, same numbers ------------------------------------------------------------------------------------------


def same(one, other):
    return all((a == b).all() for a, b in zip(one, other, strict=True))


def test_few_runs_are_the_first_of_many():
    many = q_learning(ROOMS, EIGENOPTIONS, *TASKS[2], 30, 23, rng=4)
    for runs in (1, 2, 9):
        assert same(q_learning(ROOMS, EIGENOPTIONS, *TASKS[2], 30, runs, rng=4), [part[:runs] for part in many])
    short = q_learning(ROOMS, EIGENOPTIONS, *TASKS[2], 11, 23, rng=4)
    assert (short.returns == many.returns[:, :11]).all()
    assert (many.q[0] != many.q[1]).any()
    assert not same(many, q_learning(ROOMS, EIGENOPTIONS, *TASKS[2], 30, 23, rng=5))


def test_the_number_of_threads_does_not_matter(monkeypatch):
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(_compiled, "THREADS", threads)
        results.append(q_learning(ROOMS, EIGENOPTIONS, *TASKS[3], 40, 17))
    assert same(results[0], results[1])
    assert same(results[0], results[2])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_process_does_not_matter(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot fork")
    here = _elsewhere()
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert same(pool.apply_async(_elsewhere).get(timeout=600), here)


def _elsewhere():
    return tuple(q_learning(CORRIDOR, [to_the_right()], 0, 4, 30, 5))


def test_seeds_and_generators():
    one, two = (q_learning(CORRIDOR, [], 0, 4, 5, 2, rng=np.random.default_rng(4)) for _ in range(2))
    assert same(one, two)
    assert same(q_learning(CORRIDOR, [], 0, 4, 5, 2), q_learning(CORRIDOR, [], 0, 4, 5, 2, rng=0))


def test_a_state_or_its_cell():
    by_cell, by_state = (q_learning(ROOMS, [], *task, 20, 2) for task in (TASKS[3], (0, np.int64(45))))
    assert ROOMS.state_at[5, 5] == 45
    assert same(by_cell, by_state)


# --- the experiment ---------------------------------------------------------------------------------------------------

SMALL = ControlExperiment(
    tasks=TASKS[2:], representations=(100, "exact"), counts=(0, 4, 8), sr_runs=3, runs=5, episodes=30
)


@pytest.fixture(scope="module")
def small():
    return control_experiment(SMALL, progress=False)


def equal(one, other):
    return all(np.array_equal(getattr(one, a), getattr(other, a)) for a in ("mean", "half", "area", "optimal"))


def test_the_paper_is_the_default():
    paper = ControlExperiment()
    assert (paper.representations, paper.counts) == ((100, 500, 1000, "exact"), (0, 4, 8, 32, 64, 128))
    assert (paper.sr_runs, paper.runs, paper.steps, paper.step_size, paper.gamma) == (24, 100, 100, 0.1, 0.9)
    rooms = [{(s // 6, c // 6) for s, c in ((r - (col > 6), col) for r, col in task)} for task in paper.tasks]
    assert len(paper.tasks) == 4
    assert [len(room) for room in rooms] == [2, 2, 2, 1]


def test_shapes_and_averages(small):
    assert small.mean.shape == small.half.shape == (2, 2, 2, 3, 30)
    assert small.area.shape == (2, 2, 2, 3, 3)
    np.testing.assert_allclose(small.area.mean(axis=-1), small.mean.mean(axis=-1), rtol=1e-6)
    assert (small.area[:, :, 0, 0] == small.area[:, :, 1, 0]).all(), "with no options the representation cannot matter"
    assert (small.area[:, :, 0, 1:] != small.area[:, :, 1, 1:]).all()
    assert all(len(np.unique(runs)) == 3 for runs in small.area[1, :, :, 0].reshape(-1, 3)), (
        "SR runs must differ in seed"
    )
    assert (small.mean[0] <= small.mean[1] + 1e-6).all()
    assert (small.half >= 0).all()


def test_the_interval_covers(small):
    """Student's t over SR runs, by hand for one number."""
    options = control._option_sets(SMALL, 100, (0, 1, 2))
    last = [control._curve(control.Setting(SMALL, 0, 100, 4), options[r][:4], r)[0, -1] for r in range(3)]
    assert small.mean[0, 0, 0, 1, -1] == pytest.approx(np.mean(last))
    assert small.half[0, 0, 0, 1, -1] == pytest.approx(4.302652729911275 * np.std(last, ddof=1) / np.sqrt(3), rel=1e-5)
    assert any(not (a.policy == b.policy).all() for a, b in zip(options[0], options[1], strict=True))


def test_a_part_is_the_part_of_the_whole(small):
    """Seeds come from what a run is, not from where in the grid it stands."""
    part = dataclasses.replace(SMALL, tasks=TASKS[3:], representations=("exact",), counts=(4,))
    alone = control_experiment(part, progress=False)
    assert (alone.area[:, 0, 0, 0] == small.area[:, 1, 1, 1]).all()


def test_interrupted_by_kill_9(tmp_path, small):
    """Killed several times at random moments, the experiment goes on where it was and ends as if nothing had happened."""
    script = (
        "import sys\nfrom eigenlib.experiments.control import *\n"
        f"control_experiment({SMALL!r}, sys.argv[1], progress=False)\nprint('done')"
    )
    command, chance = [sys.executable, "-c", script, str(tmp_path)], random.Random(os.getpid())
    finished: dict = {}
    kills = 0
    for target in (0, 1, 4, 7):
        run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        while run.poll() is None and len(list(tmp_path.glob("*.json"))) <= target:
            time.sleep(0.001)
        time.sleep(chance.random() * 0.02)
        run.send_signal(signal.SIGKILL)
        kills += run.wait(timeout=600) == -signal.SIGKILL
        now = {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("*.json")}
        assert finished.items() <= now.items(), "a finished part was computed again"
        finished = now
    assert kills >= 3
    resumed = control_experiment(SMALL, tmp_path, progress=False)
    assert equal(resumed, small)
    assert len(list(tmp_path.iterdir())) == 2 * 10, (
        "2 tasks × (2 × 2 + once no options), two files each, and nothing else"
    )
    before = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert equal(control_experiment(SMALL, tmp_path, progress=False), small)
    assert before == {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}


def test_damaged_and_foreign_parts_are_computed_again(tmp_path, small):
    control_experiment(SMALL, tmp_path, progress=False)
    arrays = sorted(tmp_path.glob("*.npz"))
    arrays[0].write_bytes(arrays[0].read_bytes()[:-8])
    arrays[1].unlink()
    arrays[2].with_suffix(".json").write_text("{")
    arrays[3].write_bytes(arrays[3].read_bytes()[:-8] + bytes(8))
    assert equal(control_experiment(SMALL, tmp_path, progress=False), small)
    other = control_experiment(dataclasses.replace(SMALL, seed=1), tmp_path, progress=False)
    assert not equal(other, small)
    assert len(list(tmp_path.glob("*.npz"))) == 20
    described = json.loads(arrays[0].with_suffix(".json").read_text())
    assert {"parameters", "versions", "sha256"} <= described.keys()


def check_reference(path, cells=12):
    """By how much some stored combinations, one SR run of each, differ from what this code makes of them."""
    curves, worst = load_reference(path), 0.0
    experiment, shape = curves.experiment, curves.area.shape[1:]
    for number in np.unique(np.linspace(0, np.prod(shape[:3]) - 1, cells).astype(int)):
        task, i, c = (int(at) for at in np.unravel_index(number, shape[:3]))
        known, count, r = experiment.representations[i], experiment.counts[c], int(number) % shape[3]
        options = control._option_sets(experiment, known if count else None, (r,))[0][:count]
        again = control._curve(control.Setting(experiment, task, known, count), options, r).mean(axis=-1)
        worst = max(worst, float(np.abs(again - curves.area[:, task, i, c, r]).max()))
    return worst


def test_the_reference_is_kept_and_checked(tmp_path, small):
    path = tmp_path / "control"
    save_reference(small, path)
    loaded = load_reference(path)
    assert equal(loaded, small)
    assert loaded.experiment == small.experiment
    assert check_reference(path, cells=12) == 0
    described = json.loads(path.with_suffix(".json").read_text())
    assert {"command", "parameters", "seeds", "versions", "code", "sha256"} <= described.keys()
    save_reference(dataclasses.replace(small, experiment=dataclasses.replace(SMALL, seed=1)), tmp_path / "other")
    assert check_reference(tmp_path / "other", cells=4) > 1e-3, "data that this code does not make were accepted"
    path.with_suffix(".npz").write_bytes(path.with_suffix(".npz").read_bytes() + b"\0")
    with pytest.raises(ValueError, match="checksums differ"):
        load_reference(path)


@pytest.mark.parametrize("name", STORED)
def test_stored_curves_are_what_this_code_makes(name):
    """Twelve of the 96 combinations computed again: if code and data part ways, this fails."""
    assert check_reference(REFERENCE / name) < 1e-12, f"make the curves anew: eigenlib experiment {name}"
    assert sum(file.stat().st_size for file in REFERENCE.glob(f"{name}.*")) < 1e6


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"goal": (6, 6)}, "goal lies inside a wall, at row 6, column 6"),
        ({"start": (0, 0)}, "start lies inside a wall"),
        ({"goal": (13, 1)}, r"goal lies outside the map: it has rows 0 to 12 and columns 0 to 12, got \(13, 1\)"),
        ({"goal": (-1, 1)}, "goal lies outside the map"),
        ({"goal": 104}, "goal must be one of the states 0 to 103 of this world, got 104"),
        ({"start": -1}, "start must be one of the states"),
        ({"start": 2.5}, r"start must be a state's number or a \(row, column\) pair, got 2.5"),
        ({"start": (1, 1, 1)}, r"start must be a state's number or a \(row, column\) pair"),
        ({"start": "A"}, r"start must be a state's number or a \(row, column\) pair"),
        ({"start": 45}, "start and goal are the same state, 45"),
        ({"start": (5, 5)}, "start and goal are the same state, 45"),
        ({"runs": 0}, "runs must be at least 1, got 0"),
        ({"episodes": 0}, "episodes must be at least 1, got 0"),
        ({"episodes": 2.5}, "episodes must be a whole number"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"step_size": 0}, r"step_size \(α\) must lie in \(0, 1\]"),
        ({"step_size": float("nan")}, r"step_size \(α\) must lie in \(0, 1\]"),
        ({"gamma": 1.0}, "γ must lie in"),
        ({"rng": -1}, "A seed cannot be negative"),
        ({"rng": "lucky"}, "A seed is a whole number"),
        ({"option_duration": 0}, "option_duration must be at least 1"),
        ({"option_duration": "2016"}, "option_duration must be None, a number of steps, or '2017'"),
        ({"options": EIGENOPTIONS[0]}, "options must be a list"),
        (
            {"options": [to_the_right()]},
            r"Option 0 was made for another world: .* this world has 104",
        ),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        q_learning(ROOMS, **{"options": [], "start": 0, "goal": 45, "episodes": 1, "runs": 1, **arguments})


def test_options_that_never_end_are_refused():
    round_and_round = Option(np.array([RIGHT, LEFT, -1]), np.array([1, 0, 0], bool), np.array([0, 0, 1], bool))
    world = GridWorld.from_text("...")
    with pytest.raises(ValueError, match=r"Option 1 never terminates once it is in state 0 \(row 0, column 0\)"):
        q_learning(world, [to_the_right(world), round_and_round], 0, 2, 1, 1)
    text = "....\nXX.X"  # in state 3 it bumps into the wall for ever, unless it slips back
    astray = Option(np.array([RIGHT, RIGHT, DOWN, UP, -1]), np.arange(5) == 0, np.arange(5) == 4)
    with pytest.raises(ValueError, match="Option 0 never terminates once it is in state 3"):
        q_learning(GridWorld.from_text(text), [astray], 0, 4, 1, 1)
    q_learning(GridWorld.from_text(text, slip=0.2), [astray], 0, 4, 1, 1)  # it may be long, but it ends surely
    lost = Option(np.array([RIGHT, -1, -1]), np.array([1, 0, 0], bool), np.array([0, 0, 1], bool))
    with pytest.raises(ValueError, match="Option 0 neither terminates in state 1 nor names an action there"):
        q_learning(world, [lost], 0, 2, 1, 1)


def test_other_refusals():
    with pytest.raises(ValueError, match="start and goal are the same"):
        optimal_return(CORRIDOR, 1, 1)
    for change in ({"counts": (4, 4)}, {"tasks": ()}, {"counts": (-1,)}):
        with pytest.raises(ValueError, match="An experiment needs"):
            control_experiment(dataclasses.replace(SMALL, **change), progress=False)
    with pytest.raises(ValueError, match="sr_runs must be at least 1"):
        control_experiment(dataclasses.replace(SMALL, sr_runs=0), progress=False)
