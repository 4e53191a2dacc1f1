"""Options against hand-made answers, against a naive solver, and against the promise that they always end (Alg. 1)."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from worlds import worlds

from eigenlib import eigenoptions
from eigenlib.eigenoptions import Option, discover_eigenoptions, follow, learn_eigenoption
from eigenlib.eigenpurposes import Eigenpurposes, extract_eigenpurposes
from eigenlib.gridworld import GridWorld, map_names
from eigenlib.large.rooms import big_rooms
from eigenlib.options import require_options
from eigenlib.representation import laplacian, successor_representation

UP, RIGHT, DOWN, LEFT = range(4)
GAMMAS = st.sampled_from([0.0, 0.3, 0.9, 0.99])


@st.composite
def tasks(draw, **choices):
    """A world and a direction in it: coarse steps (many ties), any numbers, or an eigenvector of its SR."""
    world = draw(worlds(**choices))
    kind = draw(st.sampled_from(["coarse", "any", "eigenvector"]))
    if kind == "eigenvector":
        psi = successor_representation(world.transition_matrix(), 0.9)
        return world, extract_eigenpurposes(psi).vectors[:, draw(st.integers(0, world.n_states - 1))]
    number = st.integers(-2, 2) if kind == "coarse" else st.floats(-1, 1).map(lambda x: round(x, 12))  # no subnormals
    return world, np.array(draw(st.lists(number, min_size=world.n_states, max_size=world.n_states)), dtype=float)


def rooms(first="largest"):
    world = GridWorld.named("four_rooms")
    if first == "smallest":
        return world, extract_eigenpurposes(laplacian(world.adjacency()), first="smallest")
    return world, extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9))


def dynamics(world):
    """(A, S, S) p(s′ | s, a), from the map's next states and the definition of a slip."""
    p = np.zeros((4, world.n_states, world.n_states))
    for s in range(world.n_states):
        for a in range(4):
            p[a, s, world.next_state[s, a]] += 1 - world.slip
            p[a, s, world.next_state[s, (a - 1) % 4]] += world.slip / 2
            p[a, s, world.next_state[s, (a + 1) % 4]] += world.slip / 2
    return p


def naive_q(world, e, gamma):
    """(A, S) optimal q by value iteration, from above, for longer than any tolerance can notice."""
    p = dynamics(world)
    reward = np.einsum("ast,ast->as", p, e[None, None, :] - e[None, :, None])
    value = np.full(world.n_states, 2 * np.abs(e).max() / (1 - gamma))
    for _ in range(1 + int(np.ceil(np.log(1e-14) / np.log(max(gamma, 1e-6))))):
        value = np.maximum(0, (reward + gamma * p @ value).max(axis=0))
    return reward + gamma * p @ value


def chain(world, option):
    """(S, S) the option's moves out of its initiation set; rows of terminal states are zero."""
    p = dynamics(world)[np.maximum(option.policy, 0), np.arange(world.n_states)]
    return np.where(option.initiation[:, None], p, 0)


def states_that_may_never_end(world, option):
    """Initiation states from which no way leads to termination: in a finite chain, those that do not end surely."""
    steps = chain(world, option) > 0
    ends = option.termination.copy()
    for _ in range(world.n_states):
        ends |= (steps & ends).any(axis=1)
    return np.flatnonzero(~ends)


# --- by hand --------------------------------------------------------------------------------------------------------


def test_a_corridor_by_hand():
    """e rises by 1, 2, 3 to the right: v adds them up, discounted, from the far end."""
    option = learn_eigenoption(GridWorld.from_text("...."), [0, 1, 3, 6], gamma=0.5)
    assert option.policy.tolist() == [RIGHT, RIGHT, RIGHT, -1]
    assert option.value.tolist() == [1 + 0.5 * (2 + 0.5 * 3), 2 + 0.5 * 3, 3, 0]
    assert option.initiation.tolist() == [True, True, True, False]
    assert option.termination.tolist() == [False, False, False, True]


def test_a_valley_is_crossed_only_if_it_pays():
    """From the left hill down by 1 and up by 4: worth −1 + 4γ, so it pays for γ > ¼."""
    world = GridWorld.from_text("...")
    assert learn_eigenoption(world, [1, 0, 4], gamma=0.3).policy.tolist() == [RIGHT, RIGHT, -1]
    assert learn_eigenoption(world, [1, 0, 4], gamma=0.2).policy.tolist() == [-1, RIGHT, -1]
    assert learn_eigenoption(world, [1, 0, 4], gamma=0.25).policy.tolist() == [-1, RIGHT, -1], "q = 0 must terminate"


def test_a_door_is_respected():
    """The climb leads left, but the door opens to the right only."""
    assert learn_eigenoption(GridWorld.from_text("..>."), [3, 2, 1, 0]).policy.tolist() == [-1, LEFT, -1, LEFT]


def test_slips_by_hand():
    """One step up a hill of 1 with slip 0.2 moves with chance 0.8 and else bumps: v = 0.8 + 0.2γv."""
    option = learn_eigenoption(GridWorld.from_text("..", slip=0.2), [0, 1], gamma=0.9)
    assert option.policy.tolist() == [RIGHT, -1]
    assert option.value[0] == pytest.approx(0.8 / (1 - 0.2 * 0.9), rel=1e-14)


def test_ties_go_up_right_down_left():
    """From the middle of a symmetric cross or square every way is as good; rounding must not choose."""
    world = GridWorld.from_text("...\n...\n...")
    corners, edges = [2, 1, 2, 1, 0, 1, 2, 1, 2], [0, 1, 0, 1, 0.5, 1, 0, 1, 0]
    for e in (corners, edges):
        assert learn_eigenoption(world, e).policy[4] == UP
        for ulp in (-1e-15, 1e-15):
            assert learn_eigenoption(world, e + ulp * np.arange(9)).policy[4] == UP
    assert learn_eigenoption(world, corners).policy.tolist() == [-1, RIGHT, -1, UP, UP, UP, -1, RIGHT, -1]
    assert learn_eigenoption(world, [0, 0, 0, 1, 0, 1, 0, 1, 0]).policy[4] == RIGHT
    assert learn_eigenoption(world, [0, 0, 0, 1, 0, 0, 0, 1, 0]).policy[4] == DOWN


def test_flat_ground_is_crossed_towards_a_hill():
    option = learn_eigenoption(GridWorld.from_text("......"), [0, 0, 0, 0, 0, 1])
    assert option.policy.tolist() == [RIGHT] * 5 + [-1]
    np.testing.assert_allclose(option.value[:5], 0.9 ** np.arange(4, -1, -1), rtol=1e-14)


# --- constant directions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", map_names())
@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_the_constant_eigenvector_is_no_option(name, slip):
    """As LAPACK returns it, with its rounding: not one state may be worth starting from."""
    world = GridWorld.named(name, slip=slip)
    purposes = extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9))
    for sign in (1, -1):
        option = learn_eigenoption(world, sign * purposes.vectors[:, 0])
        assert option.termination.all()
        assert (option.policy == -1).all()
    first = discover_eigenoptions(world, purposes, count=1)[0]
    assert first.origin == (1, 1)


@given(worlds(), st.floats(-1e3, 1e3), GAMMAS, st.integers(0, 100))
@example(GridWorld.from_text("..", slip=0.5), -5e-324, 0.0, 0)
@settings(max_examples=100, deadline=None)
def test_noise_on_a_constant_is_no_option(world, level, gamma, seed):
    noise = np.random.default_rng(seed).normal(size=world.n_states) * 1e-14
    assert learn_eigenoption(world, level * (1 + noise), gamma).termination.all()


# --- every option, on random worlds ---------------------------------------------------------------------------------


@given(tasks(), GAMMAS)
@example((GridWorld.from_text("."), np.array([1.0])), 0.9)
@example((GridWorld.from_text("..\n..", slip=1.0), np.array([0.0, 1, 1, 0])), 0.99)
@settings(max_examples=600, deadline=None)
def test_options_always_terminate(task, gamma):
    """With probability one, from every state they start in; and they start wherever they do not end."""
    world, e = task
    option = learn_eigenoption(world, e, gamma)
    assert states_that_may_never_end(world, option).size == 0
    assert (option.initiation == ~option.termination).all()
    assert ((option.policy >= 0) == option.initiation).all()
    assert ((option.value > 0) == option.initiation).all()


@given(tasks(largest=5), GAMMAS)
@settings(max_examples=300, deadline=None)
def test_options_are_optimal(task, gamma):
    """Against a naive solver: the same values, the first best action where starting pays, nothing where it does not."""
    world, e = task
    option, q = learn_eigenoption(world, e, gamma), naive_q(world, e, gamma)
    size = np.abs(e).max()
    best = q.max(axis=0)
    assert np.abs(np.maximum(best, 0) - option.value).max() <= 2e-9 * size
    assert option.initiation[best > 2e-9 * size].all()
    assert not option.initiation[best < 0.5e-9 * size].any()
    first = np.argmax(q >= best - 1e-12 * size, axis=0)
    clear = np.array([not ((gap > 1e-13 * size) & (gap < 1e-8 * size)).any() for gap in (best - q).T])
    where = option.initiation & clear  # no action is nearly, but not quite, as good as the best
    assert (option.policy[where] == first[where]).all()


@given(tasks(), GAMMAS)
@settings(max_examples=200, deadline=None)
def test_values_are_those_of_the_policy(task, gamma):
    """v = (I − γP)⁻¹ (reward of the policy): what is promised is what following the option earns."""
    world, e = task
    option = learn_eigenoption(world, e, gamma)
    P = chain(world, option)
    earned = np.linalg.solve(np.eye(world.n_states) - gamma * P, P @ e - P.sum(axis=1) * e)
    np.testing.assert_allclose(option.value, earned, rtol=0, atol=2e-9 * np.abs(e).max() / (1 - gamma) + 1e-300)


@given(tasks(doors=False, slips=False), st.sampled_from([0.25, 4.0, 2.0**40]))
@settings(max_examples=100, deadline=None)
def test_the_scale_of_a_direction_does_not_matter(task, scale):
    world, e = task
    assert (learn_eigenoption(world, e).policy == learn_eigenoption(world, scale * e).policy).all()


@pytest.mark.parametrize("gamma", [0.9999, 0.99999999, 1 - 1e-12])
@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_options_terminate_however_near_one_gamma_is(gamma, slip):
    world, purposes = GridWorld.named("four_rooms", slip=slip), rooms()[1]
    for option in discover_eigenoptions(world, purposes, count=12, gamma=gamma):
        assert states_that_may_never_end(world, option).size == 0


# --- discovery ------------------------------------------------------------------------------------------------------


def test_order_and_signs():
    world, purposes = rooms()
    options = discover_eigenoptions(world, purposes, count=5)
    assert [option.origin for option in options] == [(1, 1), (1, -1), (2, 1), (2, -1), (3, 1)]
    for option in options:
        column, sign = option.origin
        np.testing.assert_array_equal(option.eigenpurpose, sign * purposes.vectors[:, column])
        alone = learn_eigenoption(world, option.eigenpurpose)
        assert (alone.policy == option.policy).all()
        assert (alone.value == option.value).all()
    up, down = options[:2]
    assert up.termination[np.argmax(up.eigenpurpose)]
    assert down.termination[np.argmin(up.eigenpurpose)]
    assert not (up.termination & down.termination).any(), "no state is a top of e and of −e"
    single = discover_eigenoptions(world, purposes, count=2, both_signs=False)
    assert [option.origin for option in single] == [(1, 1), (2, 1)]


def test_all_options_of_four_rooms():
    """The SR's constant vector is dropped, 103 × 2 remain; the Laplacian's D^½·1 is not constant, 104 × 2 remain."""
    world, purposes = rooms()
    options = discover_eigenoptions(world, purposes)
    assert [option.origin for option in options] == [(k, sign) for k in range(1, 104) for sign in (1, -1)]
    assert all(states_that_may_never_end(world, option).size == 0 for option in options)
    assert [option.origin for option in discover_eigenoptions(*rooms("smallest"))[:2]] == [(0, 1), (0, -1)]


def test_the_first_eigenoption_of_four_rooms_goes_to_corners():
    """With self-loops e is flat across a wall, so the option ends in the corner itself (§4.1)."""
    world, purposes = rooms()
    for option in discover_eigenoptions(world, purposes, count=2):
        ends = world.cells[option.termination]
        assert len(ends) == 1
        assert tuple(ends[0]) in {(1, 1), (1, 11), (11, 1), (11, 11)}


def test_fewer_than_asked_is_said():
    world, purposes = rooms()
    assert len(discover_eigenoptions(world, purposes, count=206)) == 206
    with pytest.raises(ValueError, match="207 options were asked for, but the 104 eigenvectors given yield only 206"):
        discover_eigenoptions(world, purposes, count=207)
    few = Eigenpurposes(purposes.values[:3], purposes.vectors[:, :3])
    with pytest.raises(ValueError, match="yield only 4: extract more eigenvectors or ask for fewer"):
        discover_eigenoptions(world, few, count=5)
    with pytest.raises(ValueError, match="use both signs"):
        discover_eigenoptions(world, purposes, count=104, both_signs=False)


def test_refusals():
    world, purposes = rooms()
    with pytest.raises(ValueError, match="one number for each of the 104 states, got shape \\(3,\\)"):
        learn_eigenoption(world, [1, 2, 3])
    with pytest.raises(ValueError, match=r"got shape \(104, 104\): pass one column"):
        learn_eigenoption(world, purposes.vectors)
    with pytest.raises(ValueError, match="not finite"):
        learn_eigenoption(world, np.full(104, np.nan))
    with pytest.raises(ValueError, match="must be real"):
        learn_eigenoption(world, np.ones(104) * 1j)
    with pytest.raises(ValueError, match="γ must lie in"):
        learn_eigenoption(world, np.ones(104), gamma=1)
    with pytest.raises(ValueError, match="count must be at least 1"):
        discover_eigenoptions(world, purposes, count=0)
    with pytest.raises(ValueError, match="do not belong to this world"):
        discover_eigenoptions(GridWorld.from_text("..."), purposes)


# --- large worlds ---------------------------------------------------------------------------------------------------


@pytest.fixture
def compiled(monkeypatch):
    """The compiled sweeps, whatever the size of the world."""
    return lambda use: monkeypatch.setattr(eigenoptions, "_LARGE", 0 if use else 10**9)


@given(tasks(), GAMMAS)
@settings(max_examples=300, deadline=None)
def test_compiled_sweeps_give_the_same_option(task, gamma):
    """To the last digit where nothing slips; else sums have another order, and values differ by rounding."""
    world, e = task
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(eigenoptions, "_LARGE", 10**9)
        plain = learn_eigenoption(world, e, gamma)
        patch.setattr(eigenoptions, "_LARGE", 0)
        quick = learn_eigenoption(world, e, gamma)
    assert (quick.value == plain.value).all() or world.slip
    np.testing.assert_allclose(quick.value, plain.value, rtol=0, atol=1e-13 * np.abs(e).max() / (1 - gamma))
    assert (quick.policy == plain.policy).all()
    assert (quick.initiation == plain.initiation).all()


@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_compiled_discovery_is_the_same(slip, compiled, monkeypatch):
    """Many directions, in batches of two: the same options in the same order."""
    world, purposes = GridWorld.named("four_rooms", slip=slip), rooms()[1]
    compiled(False)
    plain = discover_eigenoptions(world, purposes)
    compiled(True)
    monkeypatch.setattr(eigenoptions, "_BATCH", 1)
    quick = discover_eigenoptions(world, purposes)
    assert [option.origin for option in quick] == [option.origin for option in plain]
    assert all((a.policy == b.policy).all() for a, b in zip(quick, plain, strict=True))


def test_a_world_of_sixty_thousand_states():
    """Above the limit by itself; a smooth direction, and the option ends from everywhere."""
    world = big_rooms(15, 16)
    assert world.n_states > eigenoptions._LARGE
    row, col = world.cells.T
    option = learn_eigenoption(world, np.hypot(row, col))
    require_options(world, [option])
    path = follow(world, option, 0)
    assert option.termination[path[-1]]
    assert np.hypot(*world.cells[path[-1]]) > np.hypot(*world.cells[0])


@given(worlds(), st.data())
@settings(max_examples=200, deadline=None)
def test_options_that_never_end_are_refused(world, data):
    """By doubling of paths or, with slips, a search backwards: against the definition, state by state."""
    policy = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=world.n_states, max_size=world.n_states)))
    option = Option(policy=policy, initiation=policy >= 0, termination=policy < 0)
    if states_that_may_never_end(world, option).size:
        with pytest.raises(ValueError, match="Option 0 never terminates once it is in state"):
            require_options(world, [option])
    else:
        require_options(world, [option])


def test_following_an_option():
    world = GridWorld.from_text("....")
    option = learn_eigenoption(world, [0, 1, 3, 6])
    assert follow(world, option, 0).tolist() == [0, 1, 2, 3]
    assert follow(world, option, 1, steps=1).tolist() == [1, 2]
    assert follow(world, option, 3).tolist() == [3]
    with pytest.raises(ValueError, match="one of the states 0 to 3 of this world, got 4"):
        follow(world, option, 4)
    slippery = GridWorld.from_text("....", slip=0.5)
    option = learn_eigenoption(slippery, [0, 1, 3, 6])
    ways = [follow(slippery, option, 0, rng=seed).tolist() for seed in range(400)]
    assert ways[0] == follow(slippery, option, 0, rng=0).tolist()
    assert all(way[-1] == 3 for way in ways)
    assert np.mean([len(way) - 1 for way in ways]) == pytest.approx(6, abs=0.5)  # 3 steps that succeed half the time


def test_a_vector_that_comes_again_gives_no_option_twice():
    """T of a one-way street cannot be diagonalised: LAPACK returns one vector four times."""
    world = GridWorld.from_text(".>>>>.")
    purposes = extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9))
    columns = [option.origin[0] for option in discover_eigenoptions(world, purposes)]
    assert len(set(columns)) == 3 - 1  # the first is constant
    policies = {tuple(option.policy.tolist()) for option in discover_eigenoptions(world, purposes)}
    assert len(policies) == len(columns)


def test_random_subgoals_take_a_seed():
    world = GridWorld.named("four_rooms")
    given, made = (eigenoptions.random_subgoal_options(world, 3, rng) for rng in (7, np.random.default_rng(7)))
    for one, other in zip(given, made, strict=True):
        np.testing.assert_array_equal(one.policy, other.policy)
