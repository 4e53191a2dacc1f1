"""Sampled diffusion times against the exact ones: the same when every state is a goal, near when some are (§4.1)."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from walks import CONVENTIONS, EIGENOPTIONS, ROOMS, everywhere, tasks

from eigenlib.diffusion import DiffusionWarning, diffusion_time
from eigenlib.eigenoptions import Option, discover_eigenoptions, random_subgoal_options
from eigenlib.eigenpurposes import sr_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.large import sampled_diffusion
from eigenlib.large.rooms import big_rooms
from eigenlib.large.sampled_diffusion import sampled_diffusion_time


def both(world, options, cost="decisions", interrupt=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiffusionWarning)
        exact = diffusion_time(world, options, cost, interrupt, matrix=True)
        return exact, sampled_diffusion_time(world, options, range(world.n_states), cost, interrupt)


def assert_same(world, options, cost, interrupt):
    exact, sampled = both(world, options, cost, interrupt)
    n, tolerance = world.n_states, 1e-14 * max(100, sampled.condition)
    np.testing.assert_allclose(sampled.goal_means, exact.matrix.sum(axis=0) / (n - 1), rtol=tolerance)
    assert sampled.mean == pytest.approx(exact.mean, rel=tolerance)
    assert sampled.median == pytest.approx(exact.median, rel=tolerance)
    assert sampled.mean_interval == (sampled.mean, sampled.mean)
    assert sampled.median_interval == (sampled.median, sampled.median)


def strongly_connected(world):
    edges = world.transition_matrix(sparse_result=True)
    return connected_components(edges, directed=True, connection="strong", return_labels=False) == 1


@given(tasks(largest=6), st.sampled_from(CONVENTIONS))
@settings(max_examples=150, deadline=None)
def test_all_goals_are_exact(task, convention):
    """Slips, doors that can be circumvented, options of all kinds; the tolerance is the condition number's."""
    world, options = task
    assume(strongly_connected(world))
    assert_same(world, options, *convention)


@everywhere
@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_four_rooms_where_ordinary_solvers_fail(cost, interrupt, slip):
    """Times of 10⁷ and more, to twelve digits: only the time to one well chosen state costs digits."""
    world = GridWorld.named("four_rooms", slip=slip)
    for options in (EIGENOPTIONS[:2], EIGENOPTIONS[:8], random_subgoal_options(world, 3, np.random.default_rng(0))):
        assert_same(world, options, cost, interrupt)


def test_times_beyond_all_walks_are_right():
    """Nine rooms of 6 × 6, two options: a mean of 10¹⁸ decisions."""
    world = big_rooms(3, 6)
    options = discover_eigenoptions(world, sr_eigenpurposes(world.transition_matrix(), 0.9, 2))
    exact, sampled = both(world, options)
    assert exact.mean > 1e15
    np.testing.assert_allclose(sampled.goal_means, exact.matrix.sum(axis=0) / (world.n_states - 1), rtol=1e-11)


def test_times_beyond_all_numbers_are_infinite():
    """A corridor with options back to its start: the far end is 10⁴⁰⁰ decisions away, which no float can hold."""
    world = GridWorld.from_text("." * 1500)
    policy = np.full(1500, 3)
    policy[0] = -1
    back = Option(policy=policy, initiation=policy >= 0, termination=policy < 0)
    result = sampled_diffusion_time(world, [back] * 4, [1, 1499], interrupt=False)
    assert np.isfinite(result.goal_means[0])
    assert result.goal_means[1] == np.inf
    assert result.mean == np.inf


@pytest.mark.parametrize(("options", "shares"), [(0, [0.85, 0.85]), (20, [0.5, 0.8])])
def test_intervals_hold_what_they_promise(options, shares):
    """Of 95 % intervals nearly so many hold the true value; fewer for a mean that a few goals carry, as with options."""
    exact = diffusion_time(ROOMS, EIGENOPTIONS[:options])
    found = [sampled_diffusion_time(ROOMS, EIGENOPTIONS[:options], 30, rng=seed) for seed in range(25)]
    means, medians = (np.array([getattr(each, f"{name}_interval") for each in found]) for name in ("mean", "median"))
    for intervals, value, share in zip((means, medians), (exact.mean, exact.median), shares, strict=True):
        assert (intervals[:, 0] < intervals[:, 1]).all()
        held = ((intervals[:, 0] <= value) & (value <= intervals[:, 1])).mean()
        assert share <= held, held
        assert np.ptp(intervals, axis=1).max() < 3 * value  # and they are not wide for nothing


def test_a_sample_is_its_seed():
    a, b, c = (sampled_diffusion_time(ROOMS, [], 10, rng=seed) for seed in (1, 1, 2))
    assert a.mean == b.mean
    assert a.median_interval == b.median_interval
    assert (a.goals != c.goals).any()
    assert len(set(a.goals)) == 10


def test_more_starts_than_quantiles(monkeypatch):
    """The median of a large world comes from quantiles of each goal: near the one of all times."""
    exact = sampled_diffusion_time(ROOMS, [], range(104))
    monkeypatch.setattr(sampled_diffusion, "_QUANTILES", 20)
    assert sampled_diffusion_time(ROOMS, [], range(104)).median == pytest.approx(exact.median, rel=0.02)


def test_a_large_world():
    """Ten thousand states, one factorisation: times near those of a goal solved on its own."""
    from scipy import sparse
    from scipy.sparse.linalg import spsolve

    world = big_rooms(12, 8)
    found = sampled_diffusion_time(world, [], 4, rng=3)
    T = world.transition_matrix(sparse_result=True)
    for goal, mean in zip(found.goals, found.goal_means, strict=True):
        rest = np.delete(np.arange(world.n_states), goal)
        A = sparse.csc_matrix(sparse.eye_array(len(rest)) - T[rest][:, rest])
        assert spsolve(A, np.ones(len(rest))).mean() == pytest.approx(mean, rel=1e-8)


def test_several_traps_are_refused():
    """Options to the nearer end of a corridor: it takes 10¹⁴ steps and more from one end to the other."""
    world = GridWorld.from_text("." * 400)
    policy = np.where(np.arange(400) < 200, 3, 1)
    policy[[0, 399]] = -1
    apart = Option(policy=policy, initiation=policy >= 0, termination=policy < 0)
    with pytest.raises(ValueError, match="no digit of these times would be right"):
        sampled_diffusion_time(world, [apart] * 3, 3)


def test_lost_digits_are_said(monkeypatch):
    monkeypatch.setattr(sampled_diffusion, "ILL_CONDITIONED", 100)
    with pytest.warns(DiffusionWarning, match="digits"):
        sampled_diffusion_time(ROOMS, [], 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sampled_diffusion_time(ROOMS, cost="time"), "cost must be"),
        (lambda: sampled_diffusion_time(ROOMS, goals=105), "105 goals.*104 states"),
        (lambda: sampled_diffusion_time(ROOMS, goals=0), "goals must be at least 1"),
        (lambda: sampled_diffusion_time(ROOMS, goals=[3, 3]), "different states"),
        (lambda: sampled_diffusion_time(ROOMS, goals=[104]), "from 0 to 103"),
        (lambda: sampled_diffusion_time(ROOMS, goals=["A"]), "a list of states"),
        (lambda: sampled_diffusion_time(GridWorld.from_text(".")), "one state only"),
        (lambda: sampled_diffusion_time(GridWorld.from_text(".>.")), "shuts for good.*diffusion_time"),
        (lambda: sampled_diffusion_time(GridWorld.from_text("..."), EIGENOPTIONS[:1], 2), "another world"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_single_goal_has_no_interval():
    found = sampled_diffusion_time(GridWorld.named("four_rooms"), goals=1, rng=0)
    assert np.isfinite([found.mean, found.median]).all()
    assert np.isnan([*found.mean_interval, *found.median_interval]).all()
