"""How fast exact diffusion times are, as ratios measured in one run: `python benchmarks/diffusion.py`.

Four rooms, decisions, interrupted options. The same linear systems are built and solved three ways: by the library; as a
course would write it, one state, option and goal at a time with `np.linalg.solve` for each goal; and the same loops with
everything that can be turned into Python lists turned into lists first, which is as fast as they get. Each is timed several
times, in turns, and its best time counts, so that a busy machine slows none of them alone.
"""

from __future__ import annotations

import os
import time

import numpy as np

from eigenlib.diffusion import diffusion_curve, diffusion_time
from eigenlib.eigenoptions import Option, discover_eigenoptions, random_subgoal_options
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.representation import successor_representation

ROUNDS = 3


def state_by_state(world: GridWorld, options: list[Option]) -> np.ndarray:
    """(S, S) expected decisions from s to g, each option followed step by step from each state for each goal."""
    times = np.zeros((world.n_states, world.n_states))
    for goal in range(world.n_states):
        others = [s for s in range(world.n_states) if s != goal]
        place = {s: i for i, s in enumerate(others)}
        A, b = np.eye(len(others)), np.ones(len(others))
        for s in others:
            ends = [world.next_state[s, action] for action in range(world.n_actions)]
            for option in options:
                if option.initiation[s]:
                    end = s
                    while end != goal and not option.termination[end]:
                        end = world.next_state[end, option.policy[end]]
                    ends.append(end)
            for end in ends:
                if end != goal:
                    A[place[s], place[end]] -= 1 / len(ends)
        times[others, goal] = np.linalg.solve(A, b)
    return times


def state_by_state_in_lists(world: GridWorld, options: list[Option]) -> np.ndarray:
    """The same, without a NumPy scalar in the inner loop."""
    times = np.zeros((world.n_states, world.n_states))
    moves, policies = world.next_state.tolist(), [option.policy.tolist() for option in options]
    for goal in range(world.n_states):
        others = [s for s in range(world.n_states) if s != goal]
        place = {s: i for i, s in enumerate(others)}
        A, b = np.eye(len(others)), np.ones(len(others))
        for s in others:
            ends = list(moves[s])
            for policy in policies:
                if policy[s] >= 0:
                    end = s
                    while end != goal and policy[end] >= 0:
                        end = moves[end][policy[end]]
                    ends.append(end)
            for end in ends:
                if end != goal:
                    A[place[s], place[end]] -= 1 / len(ends)
        times[others, goal] = np.linalg.solve(A, b)
    return times


def seconds(function) -> float:
    before = time.perf_counter()
    function()
    return time.perf_counter() - before


def main() -> None:
    world, slippery = GridWorld.named("four_rooms"), GridWorld.named("four_rooms", slip=0.2)
    purposes = extract_eigenpurposes(successor_representation(world.transition_matrix(), 0.9))
    options, sliding = discover_eigenoptions(world, purposes), discover_eigenoptions(slippery, purposes)
    subgoals = random_subgoal_options(world, 300, np.random.default_rng(0))
    compile_or_load = seconds(lambda: diffusion_time(world))

    ours = diffusion_time(world, options[:32], matrix=True).matrix
    for function in (state_by_state, state_by_state_in_lists):
        np.testing.assert_allclose(function(world, options[:32]), ours, rtol=1e-9)

    def pointwise(function) -> list[float]:
        return [function(world, options[:k]).mean() for k in range(0, 33, 2)]

    # name: (the library, state by state, in lists)
    compared = {
        "32 options": (
            lambda: diffusion_time(world, options[:32]),
            lambda: state_by_state(world, options[:32]),
            lambda: state_by_state_in_lists(world, options[:32]),
        ),
        "curve 0, 2, …, 32 options": (
            lambda: diffusion_curve(world, options[:32]),
            lambda: pointwise(state_by_state),
            lambda: pointwise(state_by_state_in_lists),
        ),
    }
    others = {
        "full curve 0, 2, …, 206 options": lambda: diffusion_curve(world, options),
        "  in steps": lambda: diffusion_curve(world, options, cost="steps"),
        "  in steps, not interrupted": lambda: diffusion_curve(world, options, cost="steps", interrupt=False),
        "  with slip 0.2": lambda: diffusion_curve(slippery, sliding),
        "curve 0, 2, …, 300 random subgoal options": lambda: diffusion_curve(world, subgoals),
        "find 300 random subgoal options": lambda: random_subgoal_options(world, 300, np.random.default_rng(0)),
    }
    best: dict[str, list[float]] = {name: [np.inf] * 3 for name in compared} | {name: [np.inf] for name in others}
    for _ in range(ROUNDS):
        for name, functions in compared.items():
            fast = min(seconds(functions[0]) for _ in range(7))  # short: a single one may meet a busy moment
            best[name] = np.minimum(best[name], [fast, *map(seconds, functions[1:])]).tolist()
        for name, work in others.items():
            best[name] = [min(best[name][0], seconds(work))]

    print(f"Diffusion times in four rooms ({world.n_states} states), {os.cpu_count()} cores, best of {ROUNDS} rounds")
    print(f"{'':44}{'library':>10}{'state by state':>24}{'in lists':>20}")
    for name in compared:
        library, plain, lists = best[name]
        ratios = f"{plain:12.2f} s {plain / library:7,.0f} ×{lists:10.2f} s {lists / library:5,.0f} ×"
        print(f"{name:44}{1000 * library:7.1f} ms {ratios}")
    for name in others:
        print(f"{name:44}{best[name][0]:7.2f} s")
    print(f"{'import numba, compile or load the loops':44}{compile_or_load:7.2f} s")


if __name__ == "__main__":
    main()
