"""How fast the tabular steps are, as ratios measured in one run: `python benchmarks/tabular.py`.

Three implementations of Alg. 2 learn the SR of four rooms side by side: the library's kernel, a plain NumPy loop with one
vectorised row update a step, and a textbook agent and environment with their own classes. Each is timed several times,
in turns, and its best time counts, so that a busy machine slows none of them alone.
"""

from __future__ import annotations

import os
import time

import numpy as np

from eigenlib.comparing import relative_error
from eigenlib.eigenoptions import discover_eigenoptions
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import MOVES, GridWorld
from eigenlib.representation import learn_successor_representation, successor_representation

ETA, GAMMA, STEPS, ROUNDS = 0.1, 0.9, 100, 7


def numpy_loop(world: GridWorld, episodes: int) -> np.ndarray:
    """One step at a time, the row updated as a vector."""
    rng = np.random.default_rng(0)
    moves, psi, unit = world.next_state, np.zeros((world.n_states, world.n_states)), np.eye(world.n_states)
    for _ in range(episodes):
        s = rng.integers(world.n_states)
        for _ in range(STEPS):
            s_next = moves[s, rng.integers(4)]
            psi[s] += ETA * (unit[s] + GAMMA * psi[s_next] - psi[s])
            s = s_next
    return psi


class RoomsEnvironment:
    """A grid as courses write it: a position, a step, an observation, a reward and a flag."""

    def __init__(self, world: GridWorld, rng: np.random.Generator):
        self.world, self.rng, self.position = world, rng, (0, 0)

    def reset(self) -> int:
        self.position = tuple(self.world.cells[self.rng.integers(self.world.n_states)])
        return self.observation()

    def observation(self) -> int:
        return int(self.world.state_at[self.position])

    def step(self, action: int) -> tuple[int, float, bool, dict]:
        target = (self.position[0] + MOVES[action][0], self.position[1] + MOVES[action][1])
        if self.world.free[target]:
            self.position = target
        return self.observation(), 0.0, False, {}


class SuccessorAgent:
    """A tabular SR agent as courses write it: a policy to sample from and an update in lists, element by element."""

    def __init__(self, n_states: int, n_actions: int, rng: np.random.Generator):
        self.n_states, self.n_actions, self.rng = n_states, n_actions, rng
        self.psi = [[0.0] * n_states for _ in range(n_states)]

    def policy(self, state: int) -> np.ndarray:
        return np.full(self.n_actions, 1 / self.n_actions)

    def act(self, state: int) -> int:
        return int(self.rng.choice(self.n_actions, p=self.policy(state)))

    def td_error(self, state: int, next_state: int, j: int) -> float:
        return (state == j) + GAMMA * self.psi[next_state][j] - self.psi[state][j]

    def update(self, state: int, next_state: int) -> None:
        errors = [self.td_error(state, next_state, j) for j in range(self.n_states)]
        for j, error in enumerate(errors):
            self.psi[state][j] += ETA * error


def python_agent(world: GridWorld, episodes: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    environment, agent = RoomsEnvironment(world, rng), SuccessorAgent(world.n_states, world.n_actions, rng)
    for _ in range(episodes):
        state = environment.reset()
        for _ in range(STEPS):
            next_state, _reward, _done, _info = environment.step(agent.act(state))
            agent.update(state, next_state)
            state = next_state
    return np.array(agent.psi)


def seconds(function) -> float:
    before = time.perf_counter()
    function()
    return time.perf_counter() - before


def main() -> None:
    world = GridWorld.named("four_rooms")
    exact = successor_representation(world.transition_matrix(), GAMMA)
    purposes = extract_eigenpurposes(exact)
    seeds = range(24)
    marks = np.unique(np.geomspace(1, 5000, 40).astype(int))

    def kernel(episodes: int, **options) -> np.ndarray:
        return learn_successor_representation(world, episodes, STEPS, ETA, GAMMA, **options)

    compile_or_load = seconds(lambda: kernel(1))
    # name: (what is timed, steps it takes); episodes chosen so that each takes a good part of a second or less
    learners = {
        f"kernel, {len(seeds)} runs, {os.cpu_count()} cores": (lambda: kernel(1000, seeds=seeds), 1000 * len(seeds)),
        "kernel, one run": (lambda: kernel(5000), 5000),
        "NumPy loop": (lambda: numpy_loop(world, 20), 20),
        "Python agent": (lambda: python_agent(world, 5), 5),
    }
    others = {
        "learn the SR, 1,000 episodes": lambda: kernel(1000),
        f"learn 5,000 episodes, error at {len(marks)} snapshots": lambda: relative_error(
            kernel(5000, snapshots=marks), exact
        ),
        "discover all 206 eigenoptions": lambda: discover_eigenoptions(world, purposes),
        "discover the first 8": lambda: discover_eigenoptions(world, purposes, count=8),
    }
    assert all(relative_error(psi, exact) < 0.9 for psi in (kernel(20), numpy_loop(world, 20), python_agent(world, 20)))
    times: dict[str, list[float]] = {name: [] for name in (*learners, *others)}
    for _ in range(ROUNDS):
        for name, (function, _) in learners.items():
            times[name].append(seconds(function))
        for name, work in others.items():
            times[name].append(seconds(work))

    rate = {name: episodes * STEPS / min(times[name]) for name, (_, episodes) in learners.items()}
    print(f"TD learning of the SR, four rooms ({world.n_states} states), best of {ROUNDS}")
    print(f"{'':30}{'steps/s':>14}{'× NumPy loop':>15}{'× Python agent':>17}")
    for name, steps in rate.items():
        print(f"{name:30}{steps:14,.0f}{steps / rate['NumPy loop']:15,.1f}{steps / rate['Python agent']:17,.1f}")
    print(f"\n{'':46}{'best ms':>9}{'median ms':>11}")
    for name in others:
        print(f"{name:46}{1000 * min(times[name]):9.1f}{1000 * np.median(times[name]):11.1f}")
    print(f"{'import numba, compile or load the kernel':46}{1000 * compile_or_load:9.0f}")


if __name__ == "__main__":
    main()
