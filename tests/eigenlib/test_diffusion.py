"""Diffusion times against hand-made answers, a chain written out node by node, exact fractions and walks (§4.1)."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from walks import CONVENTIONS, EIGENOPTIONS, PURPOSES, ROOMS, everywhere, moves, option, tasks
from worlds import worlds

from eigenlib import _compiled, diffusion
from eigenlib.diffusion import DiffusionWarning, diffusion_curve, diffusion_time
from eigenlib.eigenoptions import Option, discover_eigenoptions, learn_eigenoption, random_subgoal_options
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.options import subgoal_option
from eigenlib.representation import laplacian, successor_representation

UP, RIGHT, DOWN, LEFT = range(4)


def quietly(function, *arguments, **choices):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiffusionWarning)
        return function(*arguments, **choices)


def times(world, options, cost, interrupt):
    return quietly(diffusion_time, world, options, cost, interrupt, matrix=True).matrix


def written_out(world, options, cost):
    """The walk as one chain over nodes (−1, s), deciding, and (o, s), running option o: {node: {next node: chance}}, prices.

    Equal options share their nodes, with more weight, so that hundreds of copies cost no more than one.
    """
    different = list({id(each): each for each in options}.values())
    copies = [sum(each is other for other in options) for each in different]
    chain, price = {}, {}
    for s in range(world.n_states):
        able = [o for o, each in enumerate(different) if each.initiation[s]]
        n = 4 + sum(copies[o] for o in able)
        row = {(o, s): Fraction(copies[o], n) for o in able}
        for a in range(4):
            for chance, s_next in moves(world, s, a):
                row[-1, s_next] = row.get((-1, s_next), 0) + chance / n
        chain[-1, s], price[-1, s] = row, (1 if cost == "decisions" else Fraction(4, n))
        for o, each in enumerate(different):
            if not each.termination[s]:
                row = {}
                for chance, s_next in moves(world, s, int(each.policy[s])):
                    node = (-1 if each.termination[s_next] else o, s_next)
                    row[node] = row.get(node, 0) + chance
                chain[o, s], price[o, s] = row, (0 if cost == "decisions" else 1)
    return chain, price


def brute_force(world, options, cost, interrupt, goals=None, exact=False):
    """(S, G) times by one solve a goal over all nodes; ∞ where a node without a way to the goal may come first.

    Also how far off they may be, relatively: row sums of A⁻¹ are its norm, and so tell the condition of the solve.
    """
    worst = 0.0
    chain, price = written_out(world, options, cost)
    goals = range(world.n_states) if goals is None else goals
    result = np.zeros((world.n_states, len(goals)))
    for column, g in enumerate(goals):
        goal = {node for node in chain if node[1] == g and (interrupt or node[0] == -1)}
        doomed = backwards(chain, set(chain) - backwards(chain, goal, goal), goal)
        result[[s for s in range(world.n_states) if (-1, s) in doomed], column] = np.inf
        nodes = [node for node in chain if node not in doomed and node not in goal]
        place = {node: i for i, node in enumerate(nodes)}
        A = np.eye(len(nodes), dtype=object if exact else float)
        for node, i in place.items():
            for ahead, chance in chain[node].items():
                if ahead in place:
                    A[i, place[ahead]] -= chance if exact else float(chance)
        b = np.array([price[node] for node in nodes], dtype=object if exact else float)
        h = solve_exactly(A, b) if exact else np.linalg.solve(A, b)
        if not exact and nodes:
            worst = max(worst, 1e-14 * np.linalg.solve(A, np.ones(len(A))).max())
        for (mode, s), i in place.items():
            if mode == -1:
                result[s, column] = float(h[i])
    return result, worst


def backwards(chain, targets, stops):
    """All nodes with a way into targets that does not lead through a node of `stops` first."""
    found = set(targets)
    while True:
        more = {node for node, row in chain.items() if node not in found and node not in stops and found & set(row)}
        if not more:
            return found
        found |= more


def solve_exactly(A, b):
    """Gaussian elimination in fractions."""
    A, b = [[Fraction(x) for x in row] for row in A], [Fraction(x) for x in b]
    for p in range(len(A)):
        swap = next(i for i in range(p, len(A)) if A[i][p])
        A[p], A[swap], b[p], b[swap] = A[swap], A[p], b[swap], b[p]
        for i in range(len(A)):
            if i != p and A[i][p]:
                f = A[i][p] / A[p][p]
                A[i] = [x - f * y if y else x for x, y in zip(A[i], A[p], strict=True)]
                b[i] -= f * b[p]
    return [b[p] / A[p][p] for p in range(len(A))]


def walks(world, options, cost, interrupt, walks, rng):
    """(walks,) times of walks between random pairs of distinct states, step by step."""
    policies = np.array([each.policy for each in options])
    starts = np.array([each.initiation for each in options])
    s, g = rng.integers(world.n_states, size=(2, walks))
    g = (s + 1 + g % (world.n_states - 1)) % world.n_states
    running, spent, alive = np.full(walks, -1), np.zeros(walks), np.arange(walks)
    while alive.size:
        here, mode = s[alive], running[alive]
        able = np.concatenate([np.ones((alive.size, 4), dtype=bool), starts[:, here].T], axis=1)
        choice = np.argmax(rng.random(able.shape) * able, axis=1)  # uniform among the able ones
        deciding = mode < 0
        mode = np.where(deciding & (choice >= 4), choice - 4, mode)
        action = np.where(mode >= 0, policies[mode, here], choice)
        turn = rng.random(alive.size)
        action = (action + (turn < world.slip / 2) - (turn >= 1 - world.slip / 2)) % 4 if world.slip else action
        here = world.next_state[here, action]
        mode = np.where((mode >= 0) & (policies[mode, here] < 0), -1, mode)
        s[alive], running[alive] = here, mode
        spent[alive] += deciding if cost == "decisions" else 1
        alive = alive[(here != g[alive]) | (not interrupt and mode >= 0)]
    return spent


# --- by hand --------------------------------------------------------------------------------------------------------


@everywhere
def test_primitive_actions_in_four_rooms(cost, interrupt):
    """The known numbers; without options all conventions agree."""
    result = diffusion_time(ROOMS, [], cost, interrupt, matrix=True)
    assert round(result.mean, 2) == 620.77
    assert round(result.median, 2) == 679.08
    assert result.condition == result.matrix.max()
    assert result.unreachable == 0
    assert (np.diag(result.matrix) == 0).all()


@pytest.mark.parametrize(
    ("cost", "interrupt", "expected"),
    [
        ("decisions", True, [[0, 2.5, 4.0], [13, 0, 3.0], [17, 4, 0]]),
        ("decisions", False, [[0, 4.5, 4.0], [13, 0, 3.0], [17, 4, 0]]),
        ("steps", True, [[0, 2.5, 4.6], [13, 0, 3.2], [17, 4, 0]]),
        ("steps", False, [[0, 5.0, 4.6], [13, 0, 3.2], [17, 4, 0]]),
    ],
)
def test_three_cells_by_hand(cost, interrupt, expected):
    """One option to the right end. With x, y, z the times from left to right, for example to the middle:

    interrupted 5x = 5 + 3x (three bumps), else 5x = 5 + 3x + z, or 6 + 3x + z in steps; and 4z = 4 + 3z.
    """
    result = times(GridWorld.from_text("..."), [option([RIGHT, RIGHT, -1])], cost, interrupt)
    np.testing.assert_allclose(result, expected, rtol=1e-14)


def test_an_option_counts_only_where_it_may_start():
    """The same option, started from the left cell only: now the middle has four choices."""
    result = times(GridWorld.from_text("..."), [option([RIGHT, RIGHT, -1], [1, 0, 0])], "decisions", True)
    np.testing.assert_allclose(result[1:, 0], [8, 12], rtol=1e-14)  # 4y = 4 + 2y + z, z = 4 + y


def test_a_slippery_option_by_hand():
    """Two cells, slip ½: one of four directions leads across, and the option tries twice on average: 5x = c + 3x."""
    world, across = GridWorld.from_text("..", slip=0.5), option([RIGHT, -1])
    assert times(world, [across], "decisions", True)[0, 1] == pytest.approx(5 / 2, rel=1e-14)
    assert times(world, [across], "steps", True)[0, 1] == pytest.approx((4 + 2) / 2, rel=1e-14)


def test_infinite_where_a_door_shuts_behind():
    """From the third cell only the fourth can be reached. An option from the first runs there; interruption alone lets it
    stop at the second on its way."""
    world, through = GridWorld.from_text("..>."), option([RIGHT, RIGHT, RIGHT, -1])
    for interrupt in (True, False):
        with pytest.warns(DiffusionWarning, match=r"For \d of 12 pairs the walk may never reach the goal") as told:
            result = diffusion_time(world, [through], interrupt=interrupt, matrix=True)
        assert len(told) == 1
        infinite = np.isinf(result.matrix)
        assert infinite.tolist() == [
            [False, not interrupt, False, False],
            [True, False, False, False],
            [True, True, False, False],
            [True, True, False, False],
        ]
        assert result.unreachable == infinite.sum()
        assert result.mean == np.inf
        assert result.condition == result.matrix[~infinite].max()


# An option that tries to leave at the bottom right but walks up almost always: it runs for 10⁸ steps.
LONG = option([0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, -1, 0])


# --- against the walk written out -----------------------------------------------------------------------------------


@given(tasks(largest=5), st.sampled_from(CONVENTIONS))
@example((GridWorld.from_text(".>."), []), ("decisions", True))
@example((GridWorld.from_text("XX..\n....\nX...\n....\n....", slip=0.1), [LONG]), ("steps", True))
@settings(max_examples=400, deadline=None)
def test_agrees_with_the_chain_written_out(task, convention):
    """Node by node, one node for every state of every running option: the same times, the same infinities."""
    world, options = task
    expected, uncertain = brute_force(world, options, *convention)
    np.testing.assert_allclose(times(world, options, *convention), expected, rtol=1e-12 + uncertain)


@everywhere
def test_agrees_in_four_rooms(cost, interrupt):
    options, goals = EIGENOPTIONS[:6], [0, 30, 51, 77, 103]
    expected, uncertain = brute_force(ROOMS, options, cost, interrupt, goals)
    assert uncertain < 1e-5
    np.testing.assert_allclose(times(ROOMS, options, cost, interrupt)[:, goals], expected, rtol=uncertain)


@everywhere
@pytest.mark.parametrize("slip", [0.0, 0.25])
def test_walks_agree(cost, interrupt, slip):
    """20,000 walks between random pairs; 4.5 standard errors are passed by chance once in 150,000 tests."""
    world = GridWorld.from_text("...X...\n...v...\n.......", slip=slip)
    purposes = extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9))
    options = discover_eigenoptions(world, purposes, count=8)
    sample = walks(world, options, cost, interrupt, 20_000, np.random.default_rng(4))
    error = sample.std() / np.sqrt(len(sample))
    exact = diffusion_time(world, options, cost, interrupt).mean
    assert abs(sample.mean() - exact) < 4.5 * error
    assert error < 0.03 * exact, "too few walks to tell anything"


@given(tasks(largest=6))
@settings(max_examples=100, deadline=None)
def test_conventions_are_ordered(task):
    """Interruption never comes later, steps are never fewer than decisions."""
    world, options = task
    h = {each: times(world, options, *each) for each in CONVENTIONS}
    slack = 1 + 1e-12
    for cost in ("decisions", "steps"):
        assert (h[cost, True] <= h[cost, False] * slack).all()
    for interrupt in (True, False):
        assert (h["decisions", interrupt] <= h["steps", interrupt] * slack).all()


@given(
    worlds(largest=5, doors=False, slips=False).filter(lambda world: world.n_states > 1), st.sampled_from(CONVENTIONS)
)
@settings(max_examples=60, deadline=None)
def test_options_of_one_step_are_actions_with_more_weight(world, convention):
    """One option for each action that moves: the walk of a policy that bumps half as often. Options nowhere are none."""
    states = np.arange(world.n_states)
    moving = world.next_state != states[:, None]
    options = [option(np.where(states == s, a, -1)) for s, a in np.argwhere(moving)]
    nowhere = option(np.full(world.n_states, -1))
    T = world.transition_matrix((1.0 + moving) / (1.0 + moving).sum(axis=1, keepdims=True))
    result = times(world, [nowhere, *options, nowhere], *convention)
    for g in states:
        others = states != g
        A = np.eye(world.n_states - 1) - T[np.ix_(others, others)]
        np.testing.assert_allclose(result[others, g], np.linalg.solve(A, np.ones(len(A))), rtol=1e-9)


def test_a_mirrored_world_has_mirrored_times():
    text = ".....\n.X.>.\n..X.."
    world, mirror = GridWorld.from_text(text), GridWorld.from_text("\n".join(reversed(text.splitlines())))
    twin = mirror.state_at[2 - world.cells[:, 0], world.cells[:, 1]]
    flipped = np.array([DOWN, RIGHT, UP, LEFT, -1])
    options = [subgoal_option(world, 3), learn_eigenoption(world, np.arange(world.n_states) ** 2.0)]
    mirrored = []
    for each in options:
        policy = np.empty_like(each.policy)
        policy[twin] = flipped[each.policy]
        mirrored.append(option(policy))
    for convention in CONVENTIONS:
        expected = times(world, options, *convention)
        np.testing.assert_allclose(times(mirror, mirrored, *convention)[np.ix_(twin, twin)], expected, rtol=1e-12)


# --- digits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slip", [0.0, 0.25])
@everywhere
def test_every_digit_where_ordinary_solvers_have_none(cost, interrupt, slip):
    """Nine cells and four hundred options back to the left end: 10¹⁶ decisions to the right end. Fractions know better."""
    world = GridWorld.from_text(".........", slip=slip)
    options = [subgoal_option(world, 0)] * 400
    with pytest.warns(DiffusionWarning, match=r"The longest time is \d\.\de\+\d\d decisions") as told:
        result = diffusion_time(world, options, cost, interrupt, matrix=True)
    assert len(told) == 1
    np.testing.assert_allclose(result.matrix, brute_force(world, options, cost, interrupt, exact=True)[0], rtol=1e-13)
    assert result.condition > 1e15


@given(tasks(largest=3), st.sampled_from(CONVENTIONS))
@settings(max_examples=60, deadline=None)
def test_every_digit_on_small_worlds(task, convention):
    world, options = task
    exact, _ = brute_force(world, options, *convention, exact=True)
    np.testing.assert_allclose(times(world, options, *convention), exact, rtol=1e-13)


def test_a_well_behaved_system_is_not_warned_about():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = diffusion_time(ROOMS, EIGENOPTIONS[:8], "steps", matrix=True)
        assert 1e7 < result.condition < diffusion.ILL_CONDITIONED
        assert result.condition == diffusion_time(ROOMS, EIGENOPTIONS[:8], matrix=True).matrix.max()


# --- four rooms -----------------------------------------------------------------------------------------------------


def test_the_mean_explodes_while_the_median_falls():
    """Few options carry the walk away from where it wants to go; twelve of them beat primitive actions (JMLR 2023)."""
    curve = diffusion_curve(ROOMS, EIGENOPTIONS[:32])
    assert curve.counts.tolist() == list(range(0, 33, 2))
    assert (curve.mean[1:6] > curve.mean[0]).all()
    assert (curve.mean[6:] < curve.mean[0] / 5).all()
    assert (curve.median[1:] < curve.median[0] / 3).all()
    assert curve.mean[1:6].max() > 1e5


def test_pvf_options_too():
    purposes = extract_eigenpurposes(laplacian(ROOMS.adjacency()), first="smallest")
    curve = diffusion_curve(ROOMS, discover_eigenoptions(ROOMS, purposes, count=64), [0, 64])
    assert curve.mean[1] < curve.mean[0] / 10


# --- curves and threads ---------------------------------------------------------------------------------------------


@given(tasks(largest=5), st.sampled_from(CONVENTIONS), st.data())
@settings(max_examples=100, deadline=None)
def test_a_curve_is_its_points(task, convention, data):
    world, options = task
    counts = sorted(data.draw(st.sets(st.integers(0, len(options)), min_size=1)))
    curve = quietly(diffusion_curve, world, options, counts, *convention)
    assert curve.counts.tolist() == counts
    for k, count in enumerate(counts):
        point = quietly(diffusion_time, world, options[:count], *convention)
        assert curve.unreachable[k] == point.unreachable
        np.testing.assert_allclose([field[k] for field in curve[1:4]], point[:3], rtol=1e-12)


@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_a_long_curve_is_its_points(slip):
    world = GridWorld.named("four_rooms", slip=slip)
    options = EIGENOPTIONS[:40:2] if not slip else discover_eigenoptions(world, PURPOSES, count=10)
    for convention in CONVENTIONS:
        curve = diffusion_curve(world, options, None, *convention)
        assert curve.counts.tolist() == list(range(0, len(options) + 1, 2))
        for k, count in enumerate(curve.counts):
            point = diffusion_time(world, options[:count], *convention)
            np.testing.assert_allclose([curve.mean[k], curve.median[k], curve.condition[k]], point[:3], rtol=1e-12)


@everywhere
@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_threads_change_nothing(cost, interrupt, slip, monkeypatch):
    """To the last bit, with one thread or many; where goals are cut into pieces changes nothing either."""
    world = GridWorld.named("four_rooms", slip=slip)
    options = discover_eigenoptions(world, PURPOSES, count=6)
    expected = times(world, options, cost, interrupt)
    for threads, piece in ((1, 26), (2, 26), (7, 26), (3, 1), (1, 1000)):
        monkeypatch.setattr(_compiled, "THREADS", threads)
        monkeypatch.setattr(diffusion, "_GOALS", piece)
        np.testing.assert_array_equal(times(world, options, cost, interrupt), expected)


# --- subgoal options ------------------------------------------------------------------------------------------------


def expected_steps(world, each, goal):
    """(S,) expected steps of an option to its end, from its policy's chain."""
    P = np.zeros((world.n_states, world.n_states))
    for s in np.flatnonzero(each.initiation):
        for chance, s_next in moves(world, s, int(each.policy[s])):
            P[s, s_next] += float(chance)
    P[goal] = 0
    return np.linalg.solve(np.eye(world.n_states) - P, np.where(each.initiation, 1.0, 0.0)), P


@given(worlds(), st.data())
@settings(max_examples=200, deadline=None)
def test_subgoals_are_reached_by_the_shortest_way(world, data):
    """No first action and then the policy is shorter; it starts where it can surely arrive, and ends at its goal only."""
    goal = data.draw(st.integers(0, world.n_states - 1))
    each = subgoal_option(world, goal)
    assert (each.termination == ~each.initiation).all()
    assert ((each.policy >= 0) == each.initiation).all()
    assert each.termination[goal]
    steps, P = expected_steps(world, each, goal)
    started = each.initiation
    assert not P[np.ix_(started, ~started & (np.arange(world.n_states) != goal))].any(), "it would end elsewhere"
    for s in np.flatnonzero(started):
        ways = [moves(world, s, a) for a in range(4)]
        safe = [all(started[s_next] or s_next == goal for _, s_next in way) for way in ways]
        q = [1 + sum(float(chance) * steps[s_next] for chance, s_next in way) for way in ways]
        best = min(value for value, ok in zip(q, safe, strict=True) if ok)
        assert steps[s] <= best * (1 + 1e-7)
        first = next(a for a in range(4) if safe[a] and q[a] <= best * (1 + 1e-10))
        assert each.policy[s] <= first, "a tie goes to the first action"
    if (world.slip == 0 and not any(arrow in world.text for arrow in "^>v<")) or world.n_states == 1:
        assert started.sum() == world.n_states - 1


def test_subgoals_by_hand():
    assert subgoal_option(GridWorld.from_text("...\n...\n..."), 0).policy.tolist() == [
        -1,
        LEFT,
        LEFT,
        UP,
        UP,
        UP,
        UP,
        UP,
        UP,
    ]
    assert subgoal_option(GridWorld.from_text("..>."), 3).policy.tolist() == [RIGHT, RIGHT, RIGHT, -1]
    assert subgoal_option(GridWorld.from_text("..>."), 0).policy.tolist() == [-1, LEFT, -1, -1]
    assert subgoal_option(GridWorld.from_text("....", slip=1.0), 3).policy.tolist() == [UP, UP, UP, -1]
    # In the middle of the top, left and right may slip through the door for ever; up slips to the left sooner or later.
    risky = GridWorld.from_text("...\nXvX\nX.X", slip=0.5)
    assert subgoal_option(risky, 0).policy.tolist() == [-1, UP, LEFT, -1, -1]


def test_random_subgoals():
    options = random_subgoal_options(ROOMS, 300, np.random.default_rng(3))
    again = random_subgoal_options(ROOMS, 300, np.random.default_rng(3))
    goals = [int(np.flatnonzero(each.termination)[0]) for each in options]
    assert all(each.termination.sum() == 1 for each in options)
    assert goals == [int(np.flatnonzero(each.termination)[0]) for each in again]
    assert goals == np.random.default_rng(3).integers(104, size=300).tolist()
    other = random_subgoal_options(ROOMS, 300, np.random.default_rng(4))
    assert goals != [int(np.flatnonzero(each.termination)[0]) for each in other]


# --- refusals -------------------------------------------------------------------------------------------------------


SMALL = GridWorld.from_text("...")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: diffusion_time(SMALL, cost="time"), "cost must be 'decisions' .* or 'steps' .*, not 'time'"),
        (lambda: diffusion_time(GridWorld.from_text(".")), "this world has one state only"),
        (
            lambda: diffusion_time(SMALL, EIGENOPTIONS[:1]),
            "Option 0 was made for another world: .* this world has 3 states",
        ),
        (lambda: diffusion_time(SMALL, [option([RIGHT, LEFT, -1])]), "Option 0 never terminates once it is in state 0"),
        (
            lambda: diffusion_time(SMALL, [option([-1, -1, LEFT]), option([UP, LEFT, -1])]),
            "Option 1 never terminates once it is in state 0",
        ),
        (
            lambda: diffusion_time(GridWorld.from_text("...", slip=0.5), [option([LEFT, RIGHT, RIGHT])]),
            "Option 0 never terminates",
        ),
        (
            lambda: diffusion_time(SMALL, [Option(np.array([RIGHT, -1, -1]), *np.eye(2, 3, dtype=bool))]),
            "Option 0 neither terminates in state 2 nor names an action there",
        ),
        (
            lambda: diffusion_time(SMALL, [option([RIGHT, 4, -1])]),
            "Option 0 neither terminates in state 1 nor names an action there",
        ),
        (
            lambda: diffusion_time(SMALL, [option([RIGHT, -1, -1], [1, 1, 0])]),
            "Option 0 may start in state 1, where it terminates at once",
        ),
        (lambda: diffusion_curve(SMALL, [], [0, 2]), "between 0 and the 0 options given, got .0, 2."),
        (lambda: diffusion_curve(SMALL, [option([RIGHT, -1, -1])] * 3, [2, 2]), "counts must be increasing"),
        (lambda: diffusion_curve(SMALL, [option([RIGHT, -1, -1])] * 3, [-1, 2]), "counts must be increasing"),
        (lambda: diffusion_curve(SMALL, [], []), "counts must be increasing"),
        (lambda: diffusion_curve(SMALL, [], [0.5]), "counts must be whole numbers"),
        (lambda: diffusion_curve(SMALL, [], 3), "counts must be whole numbers"),
        (lambda: subgoal_option(SMALL, 3), "one of the states 0 to 2 of this world, got 3"),
        (lambda: subgoal_option(SMALL, -1), "one of the states 0 to 2 of this world, got -1"),
        (lambda: subgoal_option(SMALL, "A"), "A subgoal must be a state's number, got 'A'"),
        (lambda: random_subgoal_options(SMALL, 0, np.random.default_rng(0)), "count must be at least 1"),
        (lambda: diffusion_time(SMALL, option([RIGHT, -1, -1])), "options must be a list"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_inputs_are_not_touched():
    options = EIGENOPTIONS[:4]
    before = [(each.policy.copy(), each.initiation.copy(), each.termination.copy()) for each in options]
    for convention in CONVENTIONS:
        diffusion_time(ROOMS, options, *convention)
    for each, parts in zip(options, before, strict=True):
        for now, then in zip((each.policy, each.initiation, each.termination), parts, strict=True):
            np.testing.assert_array_equal(now, then)
