"""How fast Q-learning with options is, as ratios measured in one run: `python benchmarks/control.py`.

Four implementations learn and evaluate side by side, 500 episodes of setting 1 with 32 eigenoptions: the library's kernel; a
textbook agent and environment with their own classes; and a lean Python loop (lists, no classes), once with the agent's
evaluation, a single rollout of the greedy policy, and once with the kernel's, the exact expectation. Each is timed several
times, in turns, and its best time counts, so that a busy machine slows none of them alone.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

import numpy as np

from eigenlib.control import q_learning
from eigenlib.eigenoptions import Option, discover_eigenoptions
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.experiments.control import TASKS
from eigenlib.gridworld import MOVES, GridWorld
from eigenlib.representation import successor_representation

ALPHA, GAMMA, STEPS, EPISODES, ROUNDS = 0.1, 0.9, 100, 500, 5


class GoalEnvironment:
    """A grid as courses write it: a position, a step, an observation, a reward and a flag."""

    def __init__(self, world: GridWorld, start: tuple[int, int], goal: tuple[int, int]):
        self.world, self.start, self.goal, self.position = world, start, goal, start

    def reset(self) -> int:
        self.position = self.start
        return self.observation()

    def observation(self) -> int:
        return int(self.world.state_at[self.position])

    def step(self, action: int) -> tuple[int, float, bool, dict]:
        target = (self.position[0] + MOVES[action][0], self.position[1] + MOVES[action][1])
        if self.world.free[target]:
            self.position = target
        done = self.position == self.goal
        return self.observation(), float(done), done, {}


class OptionsAgent:
    """Q-learning as courses write it: a table, a behaviour policy over actions and options, an update."""

    def __init__(self, n_states: int, n_actions: int, options: list[Option], rng: np.random.Generator):
        self.q = np.zeros((n_states, n_actions))
        self.n_actions, self.options, self.rng = n_actions, options, rng
        self.option: Option | None = None

    def available(self, state: int) -> list:
        return [*range(self.n_actions), *(option for option in self.options if option.initiation[state])]

    def behave(self, state: int) -> int:
        if self.option is not None and self.option.termination[state]:
            self.option = None
        if self.option is None:
            choices = self.available(state)
            choice = choices[self.rng.integers(len(choices))]
            if not isinstance(choice, Option):
                return choice
            self.option = choice
        return int(self.option.policy[state])

    def greedy(self, state: int) -> int:
        return int(self.rng.choice(np.flatnonzero(self.q[state] == self.q[state].max())))

    def update(self, state: int, action: int, reward: float, next_state: int, done: bool) -> None:
        target = reward + (0.0 if done else GAMMA * np.max(self.q[next_state]))
        self.q[state, action] += ALPHA * (target - self.q[state, action])


def python_agent(world: GridWorld, options: list[Option], start, goal, episodes: int, seed: int) -> np.ndarray:
    """(episodes,) whether the greedy policy reached the goal."""
    rng = np.random.default_rng(seed)
    environment, agent = (
        GoalEnvironment(world, start, goal),
        OptionsAgent(world.n_states, world.n_actions, options, rng),
    )
    reached = np.zeros(episodes)
    for episode in range(episodes):
        state, agent.option = environment.reset(), None
        for _ in range(STEPS):
            action = agent.behave(state)
            next_state, reward, done, _info = environment.step(action)
            agent.update(state, action, reward, next_state, done)
            state = next_state
            if done:
                break
        state = environment.reset()
        for _ in range(STEPS):
            state, reward, done, _info = environment.step(agent.greedy(state))
            reached[episode] += reward
            if done:
                break
    return reached


def python_loop(
    world: GridWorld, options: list[Option], start, goal, episodes: int, seed: int, exact=False
) -> np.ndarray:
    """The same as fast as plain Python goes: tables made ahead, lists instead of arrays, nothing called that can be spared."""
    draw = random.Random(seed).random
    first, last = int(world.state_at[start]), int(world.state_at[goal])
    moves = world.next_state.tolist()
    policies = [option.policy.tolist() for option in options]
    menu = [[k for k, policy in enumerate(policies) if policy[s] >= 0] for s in range(world.n_states)]
    q = [[0.0] * 4 for _ in range(world.n_states)]
    reached = np.zeros(episodes)
    for episode in range(episodes):
        s, policy = first, None
        for _ in range(STEPS):
            action = policy[s] if policy is not None else -1
            if action < 0:
                policy, here = None, menu[s]
                choice = int(draw() * (4 + len(here)))
                if choice < 4:
                    action = choice
                else:
                    policy = policies[here[choice - 4]]
                    action = policy[s]
            s_next, row = moves[s][action], q[s]
            target = 1.0 if s_next == last else GAMMA * max(q[s_next])
            row[action] += ALPHA * (target - row[action])
            s = s_next
            if s == last:
                break
        if exact:
            reached[episode] = chance_to_arrive(world, np.array(q), first, last)
            continue
        s = first
        for _ in range(STEPS):
            row = q[s]
            top = max(row)
            best = [a for a in range(4) if row[a] == top]
            s = moves[s][best[int(draw() * len(best))]]
            if s == last:
                reached[episode] = 1.0
                break
    return reached


def chance_to_arrive(world: GridWorld, q: np.ndarray, start: int, goal: int) -> float:
    """The exact evaluation, one vectorised sweep a step."""
    best = q == q.max(axis=1, keepdims=True)
    chances = best / best.sum(axis=1, keepdims=True)
    first, total = (np.arange(world.n_states) == goal).astype(float), 0.0
    for _ in range(STEPS):
        first = (chances * first[world.next_state]).sum(axis=1)
        first[goal] = 0.0
        total += first[start]
    return total


def seconds(function: Callable) -> float:
    before = time.perf_counter()
    function()
    return time.perf_counter() - before


def main() -> None:
    world, (start, goal) = GridWorld.named("four_rooms"), TASKS[0]
    purposes = extract_eigenpurposes(successor_representation(world.transition_matrix(), GAMMA))
    options = discover_eigenoptions(world, purposes, 128)
    some = options[:32]

    def kernel(runs: int, used: list[Option] = some) -> np.ndarray:
        return q_learning(world, used, start, goal, EPISODES, runs, ALPHA, GAMMA, STEPS).reached

    compile_or_load = seconds(lambda: kernel(1))
    # They learn the same: a run of theirs lies among the kernel's. (The rollouts add noise; the mean over 500 has little.)
    areas = kernel(400).mean(axis=1)
    for other in (python_loop, python_agent):
        area = other(world, some, start, goal, EPISODES, 1).mean()
        assert abs(area - areas.mean()) < 6 * areas.std() + 0.01, (other, area, areas.mean(), areas.std())
    learners: dict[str, tuple[Callable, int]] = {
        f"kernel, 100 runs, {os.cpu_count()} cores": (lambda: kernel(100), 100),
        "kernel, one run": (lambda: kernel(1), 1),
        "lean loop, one rollout": (lambda: python_loop(world, some, start, goal, EPISODES, 0), 1),
        "lean loop, exact evaluation": (
            lambda: python_loop(world, some, start, goal, EPISODES, 0, exact=True),
            1,
        ),
        "Python agent": (lambda: python_agent(world, some, start, goal, EPISODES, 0), 1),
    }
    counts = {f"100 runs with {count} options": options[:count] for count in (0, 4, 8, 32, 64, 128)}
    times: dict[str, list[float]] = {name: [] for name in (*learners, *counts)}
    for _ in range(ROUNDS):
        for name, (function, _) in learners.items():
            times[name].append(seconds(function))
        for name, used in counts.items():
            times[name].append(seconds(lambda used=used: kernel(100, used)))

    rate = {name: EPISODES * runs / min(times[name]) for name, (_, runs) in learners.items()}
    print(f"Q-learning, four rooms, setting 1, 32 options, {EPISODES} episodes a run, each evaluated; best of {ROUNDS}")
    python = [name for name in rate if not name.startswith("kernel")]
    print(f"{'':28}{'episodes/s':>12}" + "".join(f"{'× ' + name:>32}" for name in python))
    for name, episodes in rate.items():
        print(f"{name:28}{episodes:12,.0f}" + "".join(f"{episodes / rate[other]:32,.1f}" for other in python))
    print(f"\n{'':44}{'best ms':>9}{'median ms':>11}")
    for name in counts:
        print(f"{name:44}{1000 * min(times[name]):9.1f}{1000 * np.median(times[name]):11.1f}")
    print(f"{'import numba, compile or load the kernels':44}{1000 * compile_or_load:9.0f}")


if __name__ == "__main__":
    main()
