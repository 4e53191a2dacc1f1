"""How time and memory grow with the world, from a hundred states to a million: `python benchmarks/scale.py`.

Every line is a process of its own, so that its peak memory is its own: a maze of rooms is drawn, ten eigenpurposes of its
SR are found (sparse: from T; dense: Ψ is formed and given to LAPACK, where that is possible), one eigenoption is learned
and followed, and the diffusion time of the four actions is estimated from ten goals. `--ten-million` adds 10⁷ states.
BLAS gets one thread: this work waits for memory, and a second thread gains nothing but loses much on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np

SIZES = {
    100: (2, 5),
    1_000: (5, 6),
    2_000: (6, 7),
    10_000: (10, 10),
    100_000: (20, 16),
    1_000_000: (63, 16),
}  # states: rooms, their size
TEN_MILLION = {10_000_000: (199, 16)}
LARGEST_DENSE = 2_000  # states: 10,000 take LAPACK minutes, 100,000 would need 160 GB
COUNT, GAMMA, GOALS = 10, 0.9, 10


def measure(rooms: int, size: int, method: str, progress: bool) -> dict[str, float]:
    """Seconds of each step in this process, its peak memory, and what it found."""
    from eigenlib._compiled.eigenoptions import climb
    from eigenlib.comparing import residuals
    from eigenlib.eigenoptions import follow, learn_eigenoption
    from eigenlib.eigenpurposes import sr_eigenpurposes
    from eigenlib.gridworld import GridWorld
    from eigenlib.large.rooms import big_rooms
    from eigenlib.large.sampled_diffusion import sampled_diffusion_time

    corridor = GridWorld.from_text("..").next_state.astype(np.int32)
    # Compiled before the clock runs.
    climb(corridor[None], np.ones((1, 1, 1)), np.ones(2), GAMMA, 1e-16, np.empty((4, 2)))
    sr_eigenpurposes(big_rooms(3, 4).transition_matrix(sparse_result=True), GAMMA, COUNT, method)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found: dict[str, float] = {}
    clock: list[float] = []
    used: list[float] = []

    def lap(name: str) -> None:
        found[name] = time.perf_counter() - clock[-1]
        found[f"{name}, CPU"] = time.process_time() - used[-1]
        start()

    def start() -> None:
        clock.append(time.perf_counter())
        used.append(time.process_time())

    start()
    world = big_rooms(rooms, size)
    T = world.transition_matrix(sparse_result=True)
    lap("world")
    purposes = sr_eigenpurposes(T, GAMMA, min(COUNT, world.n_states), method, progress=progress)
    lap("purposes")
    found["memory"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024  # MB, the world included
    found["residual"] = residuals(T, purposes, GAMMA, 1e-13).max()
    start()
    option = learn_eigenoption(world, purposes.vectors[:, 1], GAMMA)
    lap("option")
    path = follow(world, option, int(np.argmin(purposes.vectors[:, 1])), steps=100_000)
    found["path"] = len(path) - 1
    start()
    if method == "sparse":
        sampled_diffusion_time(world, [], min(GOALS, world.n_states), progress=progress)
        lap("diffusion")
    return found | {"states": world.n_states}


def run(rooms: int, size: int, method: str, progress: bool) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", str(rooms), str(size), method] + ["--progress"] * progress
    alone = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=alone).stdout)


def exponent(states: list[float], values: list[float]) -> float:
    """The slope of log value against log states, over the larger half, where constant costs no longer count."""
    half = slice(-max(2, len(states) // 2), None)
    return float(np.polyfit(np.log(states[half]), np.log(values[half]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ten-million", action="store_true", help="also 10⁷ states: some minutes, 9 GB")
    parser.add_argument("--progress", action="store_true", help="show what is being done")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    choices = parser.parse_args()
    if choices.one:
        rooms, size, method = choices.one
        print(json.dumps(measure(int(rooms), int(size), method, choices.progress)))
        return
    print(
        f"{COUNT} eigenpurposes of the SR, one eigenoption, diffusion time from {GOALS} goals; seconds, and MB at the peak"
    )
    columns = "world", "purposes", "purposes, CPU", "option", "diffusion"
    print(f"{'states':>11}{'':8}" + "".join(f"{name:>15}" for name in columns) + f"{'MB':>9}{'residual':>11}")
    rows: dict[str, list[dict[str, float]]] = {"dense": [], "sparse": []}
    for rooms, size in (SIZES | TEN_MILLION if choices.ten_million else SIZES).values():
        for method, results in rows.items():
            if method == "dense" and rooms * rooms * size * size > LARGEST_DENSE:
                continue
            row = run(rooms, size, method, choices.progress or rooms > 100)
            results.append(row)
            times = "".join(f"{row[name]:15.3f}" if name in row else f"{'':15}" for name in columns)
            print(f"{row['states']:11,.0f} {method:7}{times}{row['memory']:9,.0f}{row['residual']:11.1e}", flush=True)
    sparse, dense = rows["sparse"], rows["dense"]
    states = [row["states"] for row in sparse]
    fits = {
        name: exponent(states, [row[name] for row in sparse]) for name in ("purposes", "option", "diffusion", "memory")
    }
    print("grows like states to the power " + ", ".join(f"{name} {power:.2f}" for name, power in fits.items()))
    last = dense[-1]
    same = next(row for row in sparse if row["states"] == last["states"])
    print(
        f"sparse against numpy's dense route at {last['states']:,.0f} states: "
        f"{last['purposes'] / same['purposes']:.0f} × faster; "
        f"at {states[-1]:,.0f} states Ψ alone would take {8 * states[-1] ** 2 / 1e12:,.0f} TB"
    )


if __name__ == "__main__":
    main()
