"""Any finite world: every function does what outcomes() says, against code written out plainly (§2.1; notebook 07)."""

import json
import re
import types
import warnings

import gymnasium
import numpy as np
import pytest
from any_worlds import Spinner, Windy, any_worlds, drawn, table_of
from greedy import evaluate_greedy
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import binom, norm

from eigencourse.paths import NOTEBOOKS
from eigenlib import eigenoptions, plots
from eigenlib.atari.pixels import PixelMaze
from eigenlib.comparing import alignment, principal_cosines
from eigenlib.control import optimal_return, q_learning
from eigenlib.diffusion import DiffusionWarning, diffusion_curve, diffusion_time
from eigenlib.eigenoptions import Option, discover_eigenoptions, follow, learn_eigenoption, random_subgoal_options
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.finite_world import FiniteWorld
from eigenlib.gridworld import GridWorld, MapError
from eigenlib.large.rooms import big_rooms
from eigenlib.large.sampled_diffusion import sampled_diffusion_time
from eigenlib.options import subgoal_option
from eigenlib.representation import learn_successor_representation, successor_representation
from eigenlib.worlds import World

WORLDS = any_worlds()
TABLES = {label: table_of(world) for label, world in WORLDS.items()}
LAKE, TAXI, CLIFF = "FrozenLake-v1", "Taxi-v4", "CliffWalking-v1"


def everywhere(check, worlds=WORLDS):
    """check(world, p, rng) in all worlds; one assertion that names every world in which it fails."""
    failed = {}
    for number, (label, world) in enumerate(worlds.items()):
        try:
            check(world, TABLES[label], np.random.default_rng(number))
        except Exception as problem:
            failed[label] = f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
    assert not failed, f"{len(failed)} of {len(worlds)} worlds: {failed}"


def options_of(world, rng, count=3):
    """Eigenoptions of random purposes, the first of which starts in some of its states only."""
    made = [learn_eigenoption(world, rng.integers(-3, 4, size=world.n_states).astype(float)) for _ in range(count)]
    some = made[0].initiation & (rng.random(world.n_states) < 0.7)
    return [Option(made[0].policy, some, made[0].termination), *made[1:]]


def close(found, expected, rtol=1e-9):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-9)


def as_likely(counts, draws, expected):
    """Observed counts as far in the binomial's tails as four standard errors are in the normal's, and no further."""
    expected = np.clip(expected, 0, 1)  # a sum of chances may pass 1 by rounding
    tail = np.minimum(binom.cdf(counts, draws, expected), binom.sf(np.asarray(counts) - 1, draws, expected))
    assert (tail >= norm.sf(4)).all(), (counts, draws * expected)


# --- exact --------------------------------------------------------------------------------------------------------------


def test_transition_matrices_and_graphs():
    def check(world, p, rng):
        policy = rng.dirichlet(np.ones(world.n_actions), size=world.n_states)
        close(world.transition_matrix(policy), np.einsum("sa,ast->st", policy, p))
        close(world.transition_matrix(), p.mean(axis=0))
        close(world.adjacency(self_loops=True), p.sum(axis=0))
        assert (world.adjacency() == (p.sum(axis=0) > 0) * (1 - np.eye(world.n_states))).all()

    everywhere(check)


def test_a_table_is_the_world_it_was_made_from():
    def check(world, p, rng):
        for given in (p, list(map(sparse.csr_matrix, p)), p.astype(np.float32)):
            again = FiniteWorld(given)
            np.testing.assert_allclose(table_of(again), p, atol=1e-7 if given is not p else 1e-15)
            assert len(again.outcomes()) == (p > 0).sum(axis=2).max()
            assert (again.n_states, again.n_actions) == (world.n_states, world.n_actions)

    everywhere(check)


def plain_option(p, e, gamma):
    """(S,) v and (S, A) q of an eigenpurpose, by as many sweeps as it takes."""
    reward = (p @ e).T - e[:, None]
    v = np.zeros(len(e))
    for _ in range(150):  # 0.8¹⁵⁰ is 10⁻¹⁵
        q = reward + gamma * (p @ v).T
        v = np.maximum(q.max(axis=1), 0)
    return v, q


@pytest.mark.parametrize("large", [False, True], ids=["sparse", "compiled"])
def test_eigenoptions(large, monkeypatch):
    monkeypatch.setattr(eigenoptions, "_LARGE", 0 if large else 10**9)

    def check(world, p, rng):
        e = rng.integers(-3, 4, size=world.n_states).astype(float)
        option, (v, q) = learn_eigenoption(world, e, gamma=0.8), plain_option(p, e, 0.8)
        close(option.value, v)
        assert (option.initiation == (v > 1e-8)).all()
        on = option.initiation
        close(q[on, option.policy[on]], v[on])
        purposes = extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.8))
        for found in discover_eigenoptions(world, purposes, gamma=0.8):
            close(found.value, plain_option(p, found.eigenpurpose, 0.8)[0])

    everywhere(check)


def test_subgoal_options_go_the_shortest_way_where_it_is_sure():
    def check(world, p, rng):
        goal, states = int(rng.integers(world.n_states)), np.arange(world.n_states)
        option = subgoal_option(world, goal)
        sure = np.ones(world.n_states, bool)
        while True:  # sure: states that come to the goal by actions which never leave `sure`
            safe = (p[:, :, ~sure].sum(axis=2) == 0).T
            reached = states == goal
            for _ in states:
                reached = reached | (safe & (p[:, :, reached].sum(axis=2) > 0).T).any(axis=1)
            if (reached == sure).all():
                break
            sure = reached
        assert (option.initiation == (sure & (states != goal))).all()
        on = np.flatnonzero(option.initiation)
        chain, v = p[option.policy[on], on], np.zeros(world.n_states)
        v[on] = np.linalg.solve(np.eye(len(on)) - chain[:, on], np.ones(len(on)))
        close(np.where(safe, 1 + (p @ v).T, np.inf).min(axis=1)[on], v[on])  # no other action would be shorter

    everywhere(check)


def plain_times(p, options, goal, cost, interrupt):
    """(S,) expected time to the goal by one dense system over (s) and (s, running option); ∞ where it may never come."""
    n_actions, n, _ = p.shape
    size = n * (1 + len(options))
    P, price = np.zeros((size, size)), np.zeros(size)
    for s in range(n):
        here = [o for o, option in enumerate(options) if option.initiation[s]]
        for a in range(n_actions):
            P[s, :n] += p[a, s] / (n_actions + len(here))
        for o in here:
            P[s, n * (o + 1) + s] += 1 / (n_actions + len(here))
        price[s] = 1.0 if cost == "decisions" else n_actions / (n_actions + len(here))
        for o, option in enumerate(options):
            if option.termination[s]:
                P[n * (o + 1) + s, s] = 1.0  # free, and at once
            else:
                P[n * (o + 1) + s, n * (o + 1) : n * (o + 2)] = p[option.policy[s], s]
                price[n * (o + 1) + s] = float(cost == "steps")
    final = np.zeros(size, bool)
    final[goal] = True
    if interrupt:
        final[goal::n] = True
    P[final], price[final] = 0.0, 0.0
    comes = final.copy()
    for _ in range(size):
        comes |= (P[:, comes] > 0).any(axis=1)
    lost = ~comes
    for _ in range(size):
        lost |= (P[:, lost] > 0).any(axis=1)
    h = np.full(size, np.inf)
    h[~lost] = np.linalg.solve(np.eye((~lost).sum()) - P[np.ix_(~lost, ~lost)], price[~lost])
    return h[:n]


@pytest.mark.parametrize("interrupt", [True, False], ids=["interrupted", "to the end"])
@pytest.mark.parametrize("cost", ["decisions", "steps"])
def test_diffusion(cost, interrupt):
    def check(world, p, rng):
        options = options_of(world, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiffusionWarning)
            found = diffusion_time(world, iter(options), cost, interrupt, matrix=True)
            curve = diffusion_curve(world, iter(options), [0, 1, 3], cost, interrupt)
            points = [diffusion_time(world, options[:k], cost, interrupt) for k in (0, 1, 3)]
        exact = np.stack([plain_times(p, options, g, cost, interrupt) for g in range(world.n_states)], axis=1)
        usual = ~(exact > 1e5) | np.isinf(exact)  # beyond that the plain solver has lost the digits we compare
        close(found.matrix[usual], exact[usual])
        assert (np.isinf(found.matrix) == np.isinf(exact)).all()
        assert found.unreachable == np.isinf(exact).sum()
        close(curve.mean, [point.mean for point in points])
        close(curve.median, [point.median for point in points])
        connected = connected_components(p.sum(axis=0), connection="strong", return_labels=False) == 1
        if connected and usual.all():
            sampled = sampled_diffusion_time(world, iter(options), np.arange(world.n_states), cost, interrupt)
            off = ~np.eye(world.n_states, dtype=bool)
            close(sampled.goal_means, [exact[off[:, g], g].mean() for g in range(world.n_states)], rtol=1e-8)
        elif not connected:
            with pytest.raises(ValueError, match="cannot be reached"):
                sampled_diffusion_time(world, options)

    everywhere(check)


def plain_greedy(p, q, start, goal, gamma, steps):
    best = q == q.max(axis=1, keepdims=True)
    chain = np.einsum("sa,ast->st", best / best.sum(axis=1, keepdims=True), p)
    here, returns, reached = np.eye(len(q))[start], 0.0, 0.0
    for t in range(steps):
        here = here @ chain
        returns, reached = returns + gamma**t * here[goal], reached + here[goal]
        here[goal] = 0.0
    return returns, reached


def test_greedy_policies_and_the_best_there_is():
    def check(world, p, rng):
        start, goal = rng.permutation(world.n_states)[:2]
        q = rng.integers(0, 3, size=(5, world.n_states, world.n_actions)).astype(float)
        found = np.stack(evaluate_greedy(world, q, start, goal, 0.8, 12), axis=1)
        close(found, [plain_greedy(p, table, start, goal, 0.8, 12) for table in q])
        v = np.zeros(world.n_states)
        for _ in range(12):
            v = (p @ np.where(np.arange(world.n_states) == goal, 1.0, 0.8 * v)).T.max(axis=1)
        close(optimal_return(world, start, goal, 0.8, 12), v[start])

    everywhere(check)


# --- sampled --------------------------------------------------------------------------------------------------------------


def test_walks_go_where_powers_of_T_say():
    def check(world, p, rng):
        policy = rng.dirichlet(np.ones(world.n_actions), size=world.n_states)
        walks = world.random_walks(1, 4000, 5, rng, policy)
        T = np.einsum("sa,ast->st", policy, p)
        for t in range(6):
            as_likely(np.bincount(walks[:, t], minlength=world.n_states), 4000, np.linalg.matrix_power(T, t)[1])

    everywhere(check)


def test_the_learned_SR_has_seen_the_world_itself():
    """After two steps from s the row of j ≠ s is not zero exactly if the first step led to j."""

    def check(world, p, rng):
        s = int(rng.integers(world.n_states))
        runs = learn_successor_representation(world, 1, 2, 1.0, 0.5, start=s, seeds=range(800))
        seen = runs.any(axis=2).sum(axis=0)
        others = np.arange(world.n_states) != s
        as_likely(seen[others], 800, p.mean(axis=0)[s, others])

    everywhere(check)


def test_the_learned_SR_converges_to_the_exact_one():
    def check(world, p, rng):
        learned = learn_successor_representation(world, 1500, 20, 1.0, 0.5, seeds=range(12), decay=0.8)
        exact = np.linalg.inv(np.eye(world.n_states) - 0.5 * p.mean(axis=0))
        error = learned.std(axis=0, ddof=1) / np.sqrt(12)
        assert (np.abs(learned.mean(axis=0) - exact) <= 4 * error + 0.01).all(), np.abs(
            learned.mean(axis=0) - exact
        ).max()

    everywhere(check)


def plain_q_run(p, options, start, goal, episodes, steps, rng):
    n_actions, n, _ = p.shape
    q = np.zeros((n, n_actions))
    for _ in range(episodes):
        s, option = start, None
        for _ in range(steps):
            if option is not None and option.termination[s]:
                option = None
            if option is None:
                here = [each for each in options if each.initiation[s]]
                choice = int(rng.integers(n_actions + len(here)))
                option = here[choice - n_actions] if choice >= n_actions else None
            a = choice if option is None else option.policy[s]
            after = int(rng.choice(n, p=p[a, s] / p[a, s].sum()))
            target = 1.0 if after == goal else 0.9 * q[after].max()
            q[s, a] += 0.5 * (target - q[s, a])
            s = after
            if s == goal:
                break
    return q


def test_q_learning_learns_what_a_plain_loop_learns():
    def check(world, p, rng):
        start, goal = (int(state) for state in rng.permutation(world.n_states)[:2])
        options = options_of(world, rng, 2)
        found = q_learning(world, iter(options), start, goal, 3, 2000, 0.5, steps=8, rng=5)
        plain = np.array([plain_q_run(p, options, start, goal, 3, 8, rng) for _ in range(120)])
        error = np.sqrt(found.q.var(axis=0) / 2000 + plain.var(axis=0) / 120)
        rare = 4 * 120**-0.5 * np.sqrt(found.q.mean(axis=0))  # entries that the plain loop met hardly ever
        gap = np.abs(found.q.mean(axis=0) - plain.mean(axis=0))
        assert (gap <= np.maximum(4 * error, rare) + 1e-12).all(), gap.max()
        for k in range(3):  # and judges it rightly
            close((found.returns[k, -1], found.reached[k, -1]), plain_greedy(p, found.q[k], start, goal, 0.9, 8))

    everywhere(check)


def test_one_step_of_q_learning():
    """Q(start, a) after one step is α if it led to the goal."""

    def check(world, p, rng):
        start, goal = (int(state) for state in rng.permutation(world.n_states)[:2])
        q = q_learning(world, [], start, goal, 1, 4000, 0.5, steps=1, rng=int(rng.integers(99))).q
        as_likely((q[:, start] == 0.5).sum(axis=0), 4000, p[:, start, goal] / world.n_actions)

    everywhere(check)


def test_following_options_and_acting_in_drawn_mazes():
    def check(world, p, rng):
        option = options_of(world, rng)[1]
        for s in np.flatnonzero(option.initiation)[:1]:
            ways = [follow(world, option, s, rng=seed, steps=1) for seed in range(150)]
            as_likely(np.bincount([way[1] for way in ways], minlength=world.n_states), 150, p[option.policy[s], s])
            way = follow(world, option, s, rng=rng)
            assert option.termination[way[-1]]
            assert not option.termination[way[:-1]].any()
        if isinstance(world, GridWorld):
            maze = PixelMaze(world, seed=int(rng.integers(99)), steps=10**6)
            for a in range(world.n_actions):
                seen = np.zeros(world.n_states)
                for _ in range(150):
                    maze.state = 1
                    maze.act(a)
                    seen[maze.state] += 1
                as_likely(seen, 150, p[a, 1])

    everywhere(check)


# --- Gymnasium --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", [False, True], ids=["absorbs", "restarts"])
@pytest.mark.parametrize("name", [LAKE, TAXI, CLIFF])
def test_gymnasium_worlds_move_as_the_real_environment_does(name, restart):
    env = gymnasium.make(name, max_episode_steps=10**9)
    world, real, rng = FiniteWorld.from_gymnasium(env, restart=restart), env.unwrapped, np.random.default_rng(0)
    assert (world.n_states, world.n_actions) == (env.observation_space.n, env.action_space.n)
    tiles = (
        (0, 6, 14) if name == LAKE else range(world.n_states)
    )  # where the ice leads is drawn: three tiles, many times
    seen, ends = np.zeros((world.n_actions, world.n_states, world.n_states)), set()
    env.reset(seed=0)
    for s in tiles:
        for a in range(world.n_actions):
            for _ in range(300 if name == LAKE else 1):
                real.s = s
                after, _, terminated, _, _ = env.step(a)
                seen[a, s, after] += 1
                ends |= {int(after)} if terminated else set()
    assert len(ends) == {LAKE: 3, TAXI: 4, CLIFF: 1}[name]
    p, start = table_of(world), real.initial_state_distrib
    for s in set(tiles) - ends:
        as_likely(seen[:, s], seen[0, s].sum(), p[:, s])
    for s in ends:
        close(p[:, s], np.tile(start if restart else np.eye(world.n_states)[s], (world.n_actions, 1)))
    walk = world.random_walks(int(np.argmax(start)), 3, 50, rng)
    assert (p.mean(axis=0)[walk[:, :-1], walk[:, 1:]] > 0).all()


def test_all_steps_of_algorithm_1_on_the_frozen_lake():
    world = FiniteWorld.from_gymnasium(gymnasium.make(LAKE), restart=True)
    p = table_of(world)
    options = discover_eigenoptions(
        world, extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9)), 4
    )
    exact = np.stack([plain_times(p, options, g, "decisions", True) for g in range(16)], axis=1)
    close(diffusion_time(world, options, matrix=True).matrix, exact)
    close(sampled_diffusion_time(world, options, goals=np.arange(16)).mean, exact.sum() / (16 * 15))
    learned = q_learning(world, options, 0, 15, 400, 50)
    assert 0.5 < learned.returns[:, -1].mean() / optimal_return(world, 0, 15) <= 1 + 1e-12
    with pytest.warns(DiffusionWarning, match="never reach"):  # holes and goal keep whom they have
        assert diffusion_time(FiniteWorld.from_gymnasium(gymnasium.make(LAKE))).mean == np.inf


def test_taxi_learns_to_drive():
    """500 states, six actions: the way from one start to the passenger's goal, with and without eigenoptions."""
    world = FiniteWorld.from_gymnasium(gymnasium.make(TAXI))
    assert [type(chance) for chance, _ in world.dynamics] == [float]  # one outcome: the fast way
    taxi = gymnasium.make(TAXI).unwrapped
    start, goal = taxi.encode(0, 0, 0, 1), taxi.encode(0, 4, 1, 1)  # from R, where the passenger waits, to G
    here, way = {start}, 0
    while goal not in here:
        here, way = {after for s in here for a in range(6) for _, after, _, _ in taxi.P[s][a]}, way + 1
    assert optimal_return(world, start, goal) == pytest.approx(0.9 ** (way - 1))
    # Four destinations never meet, so the first four eigenvectors are constant on each and make no option.
    purposes = extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9), 20)
    options = discover_eigenoptions(world, purposes, 4)
    learned = q_learning(world, options, start, goal, 300, 8, steps=200)
    assert learned.reached[:, -1].max() == 1.0
    p = table_of(world)
    for k in range(8):
        close(learned.returns[k, -1], plain_greedy(p, learned.q[k], start, goal, 0.9, 200)[0])


# --- refusals ---------------------------------------------------------------------------------------------------------------


class Says(World):
    """A world of two states and three actions that says what it is told to."""

    n_states, n_actions = 2, 3

    def __init__(self, *pairs):
        self.pairs = pairs

    def outcomes(self):
        return self.pairs[0] if len(self.pairs) == 1 else self.pairs


STAY = np.zeros((2, 3), int)
SMALL = GridWorld.from_text("...")
RIGHT = Option(np.array([1, 1, -1]), np.array([True, True, False]), np.array([False, False, True]))
BARE = Spinner(4)


def with_policy(policy, **changes):
    return Option(**{"policy": policy, "initiation": RIGHT.initiation, "termination": RIGHT.termination} | changes)


REFUSED = [
    (lambda: q_learning("rooms", [], 0, 1), "world must be a World"),
    (lambda: diffusion_time(None), "world must be a World"),
    (lambda: sampled_diffusion_time(3), "world must be a World"),
    (lambda: learn_successor_representation([], 5), "world must be a World"),
    (lambda: learn_eigenoption({}, [0, 1]), "world must be a World"),
    (lambda: discover_eigenoptions({}, None), "world must be a World"),
    (lambda: follow(0, RIGHT, 0), "world must be a World"),
    (lambda: subgoal_option("a", 0), "world must be a World"),
    (lambda: PixelMaze("a"), "world must be a World"),
    (lambda: Says([(0.5, STAY)]).transition_matrix(), "in state 0 those of action 0 sum to 0.5"),
    (lambda: Says((0.5, STAY), (np.full((2, 3), 0.4), STAY)).transition_matrix(), "sum to 0.9"),
    (lambda: Says([]).transition_matrix(), "sum to 0"),
    (lambda: Says([(1.0, STAY + 2)]).transition_matrix(), "from 0 to 1; they range from 2 to 2"),
    (lambda: Says([(1.0, STAY - 1)]).transition_matrix(), "from 0 to 1"),
    (lambda: Says([(1.0, STAY * 1.0)]).transition_matrix(), "whole numbers of shape"),
    (lambda: Says([(1.0, STAY.T)]).transition_matrix(), "whole numbers of shape"),
    (lambda: Says((1.5, STAY), (-0.5, STAY)).transition_matrix(), "not negative"),
    (lambda: Says([(np.nan, STAY)]).transition_matrix(), "not negative"),
    (lambda: Says([(np.ones(3), STAY)]).transition_matrix(), "is a number or an array of shape"),
    (lambda: Says([("a", STAY)]).transition_matrix(), "must be an array of numbers"),
    (lambda: Says(3).transition_matrix(), "pairs"),
    (lambda: FiniteWorld(3), "one matrix of the same size"),
    (lambda: FiniteWorld([]), "one matrix of the same size"),
    (lambda: FiniteWorld([np.eye(2), np.eye(3)]), "one matrix of the same size"),
    (lambda: FiniteWorld(np.ones((2, 2, 3))), "square"),
    (lambda: FiniteWorld([np.eye(2), np.eye(2) / 2]), "The table of action 1 .*row 0 sums to 0.5"),
    (lambda: FiniteWorld([[[2, -1], [0, 1]]]), "smallest is -1"),
    (lambda: FiniteWorld([[[np.nan, 1], [0, 1]]]), "not finite"),
    (lambda: FiniteWorld.from_gymnasium(3), "int has no table P"),
    (lambda: FiniteWorld.from_gymnasium(types.SimpleNamespace(P={0: {0: [(1.0, 7, 0, False)]}})), "numbered 0 to 0"),
    (lambda: FiniteWorld.from_gymnasium(types.SimpleNamespace(P={0: {0: [(1.0, 0, 0, True)]}}), True), "restart=False"),
    (lambda: BARE.cells, "This world has no map"),
    (lambda: plots.maze(plots.figure().subplots(), BARE, [0, 1, 2, 3]), "This world has no map"),
    (lambda: PixelMaze(BARE), "This world has no map"),
    (lambda: q_learning(BARE, [], (0, 0), 1), "places need a GridWorld"),
    (lambda: SMALL.random_walks(None, 1, 1), "start must be a state's number, got None"),
    (lambda: SMALL.random_walks(0, 1.5, 1), "walks must be a whole number"),
    (lambda: SMALL.random_walks(0, 1, -1), "steps must be at least 0"),
    (lambda: SMALL.random_walks(0, 10**14, 10**4), "do not fit into memory"),
    (lambda: SMALL.random_walks(0, 1, 1, "a"), "A seed is a whole number or a numpy Generator, got 'a'"),
    (lambda: SMALL.random_walks(0, 1, 1, -1), "cannot be negative"),
    (lambda: SMALL.random_walks(0, 1, 1, 0, "up"), "A policy must be an array of numbers"),
    (lambda: SMALL.random_walks(0, 1, 1, 0, np.full((3, 4), np.nan)), "not a probability distribution"),
    (lambda: SMALL.to_grid([1, 2j, 3]), "complex"),
    (lambda: SMALL.to_grid("abc"), "array of numbers"),
    (lambda: GridWorld.from_text(None), "A map is text"),
    (lambda: GridWorld(5), "A map is text"),
    (lambda: q_learning(SMALL, [], 0, 1, runs=10**12), "These runs do not fit into memory"),
    (lambda: q_learning(SMALL, [], 0, 1, steps=10**12), "So many steps do not fit into memory"),
    (lambda: GridWorld.named(None), "A map's name is text"),
    (lambda: GridWorld.from_text("..", slip=None), "slip must be a number, got None"),
    (lambda: GridWorld.from_text("..", slip="0.1"), "slip must be a number"),
    (lambda: GridWorld.from_text("..", slip=[0.1]), "slip must be a number"),
    (lambda: big_rooms(None, 2), "rooms must be a whole number"),
    (lambda: big_rooms(2, 0), "size must be at least 1"),
    (lambda: big_rooms(2, 2, seed="a"), "A seed is a whole number"),
    (lambda: big_rooms(2, 2, loops=2), "loops is a chance"),
    (lambda: big_rooms(10**6, 10**6), "do not fit into memory"),
    (lambda: follow(SMALL, RIGHT, "a"), "start must be a state's number"),
    (lambda: follow(SMALL, RIGHT, 1.5), "start must be a state's number"),
    (lambda: follow(SMALL, RIGHT, 0, steps="a"), "steps must be a whole number"),
    (lambda: follow(SMALL, None, 0), "of type NoneType"),
    (lambda: diffusion_time(SMALL, 3), "of type int"),
    (lambda: diffusion_time(SMALL, [RIGHT, "up"]), "of type str"),
    (lambda: diffusion_time(SMALL, [with_policy([1.5, 1, -1])]), "policy must hold whole numbers"),
    (lambda: diffusion_time(SMALL, [with_policy([np.nan, 1, -1])]), "policy must hold whole numbers"),
    (lambda: diffusion_time(SMALL, [with_policy(["1", "1", "1"])]), "policy must hold whole numbers"),
    (lambda: diffusion_time(SMALL, [with_policy([1, 1, -1], initiation=[0.5, 1, 0])]), "True and False"),
    (lambda: discover_eigenoptions(SMALL, np.eye(3)), "for one vector use learn_eigenoption"),
    (lambda: learn_eigenoption(SMALL, ["a", "b", "c"]), "An eigenpurpose holds numbers"),
    (lambda: random_subgoal_options(SMALL, 2, "a"), "A seed is a whole number"),
    (lambda: learn_successor_representation(SMALL, 5, start=[0, 1]), "start must be a state's number"),
    (lambda: learn_successor_representation(SMALL, 5, step_size="a"), "step_size .* must be a number"),
    (lambda: learn_successor_representation(SMALL, 5, decay=None), "decay must be a number"),
    (lambda: learn_successor_representation(SMALL, 5, seeds=3), "Give either rng"),
    (lambda: learn_successor_representation(SMALL, 2**70), "at most 2⁶²"),
    (lambda: q_learning(SMALL, [], 0, [[1, 2], [3]]), "a state's number or a .row, column. pair"),
    (lambda: alignment(np.zeros((3, 1)), extract_eigenpurposes(np.eye(3))), "Vector 0 is zero"),
    (lambda: principal_cosines(np.eye(3)[:, :2], np.zeros((3, 1))), "Vector 0 is zero"),
    (lambda: principal_cosines(np.eye(3), np.eye(2)), "do not belong to one world"),
]


def test_refusals_are_one_sentence():
    failed = []
    for number, (call, message) in enumerate(REFUSED):
        try:
            failed.append((number, message, call()))
        except ValueError as problem:
            said = str(problem)
            if not re.search(message, said) or "\n" in said or not said.endswith("."):
                failed.append((number, message, said))
        except Exception as problem:
            failed.append((number, message, repr(problem)))
    assert not failed, failed


def test_map_files_that_are_not_text(tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"..\xff..")
    with pytest.raises(MapError, match="not a text file in UTF-8"):
        GridWorld.named(str(tmp_path / "bad.txt"))


# --- details ----------------------------------------------------------------------------------------------------------------


def test_options_may_come_from_a_generator():
    world = GridWorld.named("four_rooms")
    options = discover_eigenoptions(
        world, extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9)), 8
    )
    task = {"start": 0, "goal": 90, "episodes": 20, "runs": 5}
    assert (q_learning(world, (o for o in options), **task).q == q_learning(world, options, **task).q).all()
    assert diffusion_time(world, iter(options)) == diffusion_time(world, options)
    assert diffusion_curve(world, iter(options)).counts.tolist() == [0, 2, 4, 6, 8]
    assert sampled_diffusion_time(world, iter(options), 5).mean == sampled_diffusion_time(world, options, 5).mean


def test_more_options_than_sixteen_bits_can_number():
    """Of 40,000 options only the last goes right: were its number to wrap, another would run in its place."""
    world = GridWorld.from_text("....")
    idle = Option(np.full(4, -1), np.zeros(4, bool), np.ones(4, bool))
    right = Option(np.array([1, 1, 1, -1]), np.arange(4) < 3, np.arange(4) == 3)
    many = q_learning(world, [idle] * 40_000 + [right], 0, 3, 5, 50)
    few = q_learning(world, [right], 0, 3, 5, 50)
    assert (many.q == few.q).all()
    assert many.returns.any()


def test_more_actions_than_eight_bits_can_number():
    """Of 300 actions the last one leads on; an option takes it."""
    n = 300
    table = np.tile(np.eye(3), (n, 1, 1))
    table[-1] = np.eye(3)[[1, 2, 2]]
    world = FiniteWorld(table)
    last = Option(np.array([n - 1, n - 1, -1]), np.arange(3) < 2, np.arange(3) == 2)
    q = q_learning(world, [last] * 300, 0, 2, 3, 20, steps=4).q
    assert q[:, 0, -1].any()


def test_none_is_seed_zero_everywhere():
    world, e = GridWorld.named("four_rooms", slip=0.3), np.arange(104.0)
    option = learn_eigenoption(world, e)
    for draw in (
        lambda rng: world.random_walks(0, 3, 9, rng),
        lambda rng: learn_successor_representation(world, 3, rng=rng),
        lambda rng: q_learning(world, [option], 0, 1, 5, 5, rng=rng).q,
        lambda rng: follow(world, option, 0, rng=rng),
        lambda rng: [option.policy for option in random_subgoal_options(world, 3, rng)],
        lambda rng: sampled_diffusion_time(world, [], 5, rng=rng).goals,
        lambda rng: [PixelMaze(world, rng).state for _ in range(3)],
    ):
        assert np.array_equal(draw(None), draw(0))
        assert not np.array_equal(draw(None), draw(1))


def test_slips_are_drawn_from_dynamics_as_they_always_were():
    """The stream of the first edition, written out: below slip/2 a turn to the right, above 1 − slip/2 one to the left."""
    world, rng, state = GridWorld.named("four_rooms", slip=0.3), np.random.default_rng(7), 20
    walk = world.random_walks(20, 1, 200, 7)[0]
    for after in walk[1:]:
        action, chance = int(rng.random() * 4), rng.random()
        state = world.next_state[state, (action + (chance < 0.15) - (chance >= 0.85)) % 4]
        assert state == after


def test_a_world_may_change_between_two_questions():
    """Lesson 07 turns a leak up while it looks on: nothing of the old dynamics may be kept, whatever was changed and how."""

    class Leak(GridWorld):
        leak, moves = 0.1, np.array([[0, 1, 0, 0], [1, 1, 1, 0]])

        def outcomes(self):
            return [(1 - self.leak, self.moves), (self.leak, 1 - self.moves)]

    world = Leak.from_text("..")
    for change in (lambda: None, lambda: setattr(Leak, "leak", 0.3), lambda: Leak.moves.__setitem__((0, 1), 0)):
        change()
        close(world.transition_matrix(), table_of(world).mean(axis=0))
        q = q_learning(world, [], 0, 1, 1, 4000, 0.5, steps=1).q
        as_likely((q[:, 0] == 0.5).sum(axis=0), 4000, table_of(world)[:, 0, 1] / 4)


def test_a_map_in_pieces_may_be_joined_by_outcomes():
    class Joined(GridWorld):
        def outcomes(self):
            return [(1.0, (self.next_state + 1) % self.n_states)]

    assert Joined.from_text(".X.").n_states == 2
    with pytest.raises(MapError, match="falls into 2 parts"):
        GridWorld.from_text(".X.")


def test_impossible_outcomes_do_not_count_as_ways():
    """An outcome of chance 0 leads out of the option's trap: it must not be mistaken for a way to its end."""
    stay, leave = np.zeros((2, 1), int), np.ones((2, 1), int)
    world = Says((np.array([[1.0], [0.5]]), stay), (np.array([[0.0], [0.5]]), leave))
    world.n_actions = 1
    with pytest.raises(ValueError, match="never terminates once it is in state 0"):
        diffusion_time(world, [Option(np.array([0, -1]), np.array([True, False]), np.array([False, True]))])
    assert not subgoal_option(world, 1).initiation.any()


def test_mazes_of_other_dynamics_have_other_parameters():
    calm, windy = (PixelMaze(drawn(np.random.default_rng(1), kind)) for kind in (GridWorld, Windy))
    assert "outcomes" not in calm.parameters
    assert calm.parameters != windy.parameters


def test_the_lake_of_lesson_07_is_gymnasiums():
    cells = json.loads((NOTEBOOKS / "07_beyond_symmetric_worlds.ipynb").read_text(encoding="utf-8"))["cells"]
    names = {"np": np, "FiniteWorld": FiniteWorld, "SimpleNamespace": types.SimpleNamespace}
    names["ledger"] = types.SimpleNamespace(check=lambda *_, **__: None)
    for source in ("".join(cell["source"]) for cell in cells if cell["id"] in ("lake", "lake-world")):
        exec(source, names)
    close(table_of(names["lake"]), table_of(FiniteWorld.from_gymnasium(gymnasium.make(LAKE), restart=True)))
