"""How long a redraw takes in the kernel: `python benchmarks/explorers.py`. The bar is 50 ms for the 95th percentile.

Two hundred random moves of random controls, four rooms; each time from setting the control to new PNG bytes.
"""

from __future__ import annotations

import random
import time

import numpy as np

from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.representation import laplacian
from eigenlib.widgets import Explorer, explore_eigenvectors, explore_spectra, explore_sr

MOVES, BAR = 200, 50.0


def random_value(control, rng: random.Random):
    if hasattr(control, "options"):
        option = rng.choice(control.options)
        return option[1] if isinstance(option, tuple) else option
    if hasattr(control, "min"):
        if isinstance(control.value, int):
            return rng.randint(control.min, control.max)
        return round(rng.uniform(control.min, control.max), 2)
    return rng.randrange(100)


def milliseconds(explorer: Explorer) -> np.ndarray:
    rng, taken = random.Random(0), []
    for _ in range(MOVES):
        control = rng.choice(list(explorer.controls.values()))
        value = random_value(control, rng)
        begin = time.perf_counter()
        control.value = value
        taken.append(1e3 * (time.perf_counter() - begin))
    return np.array(taken)


def main() -> None:
    world = GridWorld.named("four_rooms")
    values = extract_eigenpurposes(laplacian(world.adjacency(self_loops=True)), first="smallest").values
    eigenvectors = explore_eigenvectors()
    eigenvectors.controls["name"].options = ["four_rooms"]  # a new map is a new figure, not a redraw
    explorers = {
        "spectra (02)": explore_spectra(world, values),
        "SR (03)": explore_sr(world),
        "eigenvectors (04)": eigenvectors,
    }
    print(f"redraws of {MOVES} random moves, milliseconds in the kernel (bar: 95 % under {BAR:.0f})")
    for name, explorer in explorers.items():
        milliseconds(explorer)  # compile and warm up
        taken = milliseconds(explorer)
        middle, late = np.percentile(taken, [50, 95])
        verdict = "met" if late < BAR else "NOT met"
        print(f"{name:20} median {middle:5.1f}   95 % {late:5.1f}   worst {taken.max():5.1f}   {verdict}")


if __name__ == "__main__":
    main()
