"""How long a move takes until it shows: `python benchmarks/explorers.py`. The bar is 50 ms for the 95th percentile.

Explorers drawn by the kernel: two hundred random moves of random controls, four rooms; from setting the control to new PNG
bytes. Explorers computed in the browser: in Chromium, from the event to the end of the frame that shows it, the wait for the
frame included; the living maze also on 400 tiles, where the bar is 100 ms.
"""

from __future__ import annotations

import random
import time

import numpy as np

from eigenlib.doctor import find_browser
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld, MapError, big_rooms
from eigenlib.representation import laplacian
from eigenlib.widgets import Explorer, MazeEditor, explore_eigenvectors, explore_spectra, explore_sr

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


def tell(name: str, taken: np.ndarray, bar: float) -> None:
    middle, late = np.percentile(taken, [50, 95])
    verdict = "met" if late < bar else "NOT met"
    print(f"{name:34} median {middle:5.1f}   95 % {late:5.1f}   worst {taken.max():5.1f}   {verdict} ({bar:.0f})")


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


def in_browser(world: GridWorld) -> None:
    from playwright.sync_api import sync_playwright

    rng = random.Random(0)
    values = {
        "episodes": [1, 10, 100, 400],
        "gamma": [0.1, 0.5, 0.9, 0.98],
        "vector": range(11),
        "state": range(104),
        "seed": range(9),
    }
    sr = [{name: rng.choice(values[name])} for name in rng.choices(list(values), k=MOVES)]
    rooms = [(world, BAR), (big_rooms(4, 5), 2 * BAR)]
    jobs = {f"living maze, {one.n_states} tiles": (MazeEditor(one), painted(one, rng), bar) for one, bar in rooms}
    jobs["SR (03), in the browser"] = (explore_sr(world), sr, BAR)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"])
        tab = chromium.new_page(viewport={"width": 1280, "height": 900})
        for name, (widget, moves, bar) in jobs.items():
            state = {key: value for key, value in widget.get_state().items() if not key.startswith("_")}
            tell(name, np.array(tab.evaluate(DRIVE, [widget._esm, state | {"layout": None}, moves])), bar)
        chromium.close()


def painted(world: GridWorld, rng: random.Random) -> list[dict[str, str]]:
    """Maps as a hand makes them: each differs from the one before by one tile, and all are in one piece."""
    moves: list[dict[str, str]] = []
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


def main() -> None:
    world = GridWorld.named("four_rooms")
    values = extract_eigenpurposes(laplacian(world.adjacency(self_loops=True)), first="smallest").values
    eigenvectors = explore_eigenvectors()
    eigenvectors.controls["name"].options = ["four_rooms"]  # a new map is a new figure, not a redraw
    explorers = {
        "spectra (02)": explore_spectra(world, values),
        "eigenvectors (04)": eigenvectors,
    }
    print(f"redraws of {MOVES} random moves, milliseconds in the kernel (bar: 95 % under {BAR:.0f})")
    for name, explorer in explorers.items():
        milliseconds(explorer)  # compile and warm up
        taken = milliseconds(explorer)
        tell(name, taken, BAR)
    in_browser(world)


if __name__ == "__main__":
    main()
