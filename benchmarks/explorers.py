"""How long a move takes until it shows: `python benchmarks/explorers.py`, in Chromium. Two bars for the 95th percentile.

From the event to the end of the frame that shows it, the wait for the frame included: 50 ms on 104 tiles; 100 ms on 400 for the
leading vectors, a row of Ψ and an option. Whole spectra and diffusion times go on in slices behind that frame.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from eigencourse.doctor import find_browser
from eigenlib import widgets
from eigenlib.experiments.deep_rooms import stored_runs
from eigenlib.gridworld import GridWorld, MapError
from eigenlib.large.rooms import big_rooms

MOVES, BAR = 200, 50.0
GAMMAS = {"gamma": [0.1, 0.5, 0.9, 0.97, 0.99]}
TILES, SEEDS = {"state": range(104)}, {"seed": range(9)}

# Moves and their times, in the page: the event, the frame that paints it, and a task behind that frame.
DRIVE = """async ([module, state, moves]) => {
  const el = document.createElement("div"), listeners = {}, taken = [];
  document.body.replaceChildren(el);
  const model = {
    get: (name) => state[name], save_changes: () => {}, off: () => {},
    on: (event, listener) => (listeners[event] ??= []).push(listener),
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = value;
      for (const one of listeners[`change:${name}`] ?? []) one();
    },
  };
  (await import(URL.createObjectURL(new Blob([module], { type: "text/javascript" })))).default.render({ model, el });
  const shown = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  for (let k = 0; k < 5; k++) await shown();
  for (const move of [...moves.slice(0, 30), ...moves]) {
    const begin = performance.now();
    for (const name in move) model.set(name, move[name]);
    await shown();
    taken.push(performance.now() - begin);
    for (let k = 0; k < 3; k++) await shown();
  }
  return taken.slice(30);
}"""


def drawn(rng: random.Random, **values: Any) -> list[dict[str, Any]]:
    """Random moves of these traits."""
    return [{name: rng.choice(values[name])} for name in rng.choices(list(values), k=MOVES)]


def painted(rng: random.Random, world: GridWorld) -> list[dict[str, Any]]:
    """Maps as a hand makes them: each differs from the one before by one tile, and all are in one piece."""
    moves: list[dict[str, Any]] = []
    while len(moves) < MOVES:
        row, col = world.cells[rng.randrange(world.n_states)]
        lines = [list(line) for line in world.text.splitlines()]
        lines[row][col] = "X"
        text = "\n".join(map("".join, lines))
        try:
            GridWorld.from_text(text)
        except MapError:
            continue
        moves += [{"text": text}, {"text": world.text}]
    return moves


def jobs(rng: random.Random) -> dict[str, tuple[Any, list[dict[str, Any]], float]]:
    """{name: (explorer, moves, bar)}."""
    world, large = GridWorld.named("four_rooms"), big_rooms(4, 5)
    found = {f"living maze, {one.n_states} tiles": (widgets.MazeEditor(one), painted(rng, one), bar)
             for one, bar in ((world, BAR), (large, 2 * BAR))}  # fmt: skip
    found |= {
        "sums (01)": (widgets.explore_sums(world), drawn(rng, step=range(160), **GAMMAS, **TILES), BAR),
        "spectra (02)": (widgets.explore_spectra(world), drawn(rng, vector=range(11), noise=[0, 0.1], **GAMMAS), BAR),
        "SR (03)": (
            widgets.explore_sr(world),
            drawn(rng, episodes=[1, 10, 100, 400], vector=range(11), **GAMMAS, **TILES, **SEEDS),
            BAR,
        ),
        "eigenvectors (04)": (
            widgets.explore_eigenvectors(),
            drawn(rng, index=range(104), sign=[1, -1], **GAMMAS),
            BAR,
        ),
        "diffusion (05)": (widgets.explore_diffusion(world), drawn(rng, count=range(0, 33, 2), **GAMMAS), BAR),
        "reward (06)": (
            widgets.explore_reward(world, 0, 103),
            drawn(rng, count=range(0, 33, 4), goal=range(1, 103), episodes=[10, 100], **SEEDS),
            BAR,
        ),
        "dynamics (07)": (
            widgets.explore_dynamics(world),
            drawn(rng, wind=[0, 0.3, 0.6], slip=[0, 0.2], vector=range(11), **GAMMAS, **TILES),
            BAR,
        ),
        "deep SR (08)": (
            widgets.explore_deep_sr(world, stored_runs(), 0.9),
            drawn(rng, gamma=[0.5, 0.9, 0.97, 0.99], potential=["eᵀψ", "eᵀφ"]),
            BAR,
        ),
    }
    return found


def main() -> None:
    print(f"{MOVES} random moves each, milliseconds until they show (95 % under the bar in brackets)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"])
        tab = chromium.new_page(viewport={"width": 1280, "height": 900})
        for name, (widget, moves, bar) in jobs(random.Random(0)).items():
            state = {key: value for key, value in widget.get_state().items() if not key.startswith("_")}
            taken = np.array(tab.evaluate(DRIVE, [widget._esm, state | {"layout": None}, moves]))
            middle, late = np.percentile(taken, [50, 95])
            verdict = "met" if late < bar else "NOT met"
            print(
                f"{name:28} median {middle:5.1f}   95 % {late:5.1f}   worst {taken.max():5.1f}   {verdict} ({bar:.0f})"
            )
        chromium.close()


if __name__ == "__main__":
    main()
