"""What several tests need and no two workers should make twice: executed lessons, folders made once for all, ports."""

import contextlib
import copy
import fcntl
import json
import os
import random
import shutil
import socket
from pathlib import Path

import nbformat
import pytest

from eigencourse.editions import student_edition, tagged
from eigencourse.lessons import Failure, Outcome, run

# What a reader is invited to change, at the smallest sizes: another world, another seed, another horizon. No lesson may lean
# on its default numbers.
CHANGED = {
    "00_start_here": {"MAP": "maze", "SEED": 11},
    "01_successor_representation": {"MAP": "four_rooms", "GAMMA": 0.5, "WALKS": 500, "SEED": 5},
    "02_pvf_sr_equivalence": {"MAP": "nine_rooms", "GAMMA": 0.5, "SEED": 1},
    "03_learning_the_sr": {"MAP": "nine_rooms", "GAMMA": 0.5, "RUNS": 3, "SEED": 7},
    "04_eigenoptions": {"MAP": "nine_rooms", "GAMMA": 0.95, "RUNS": 2, "SEED": 3},
    "05_diffusion_time": {"MAP": "dayan", "GAMMA": 0.95, "RUNS": 2, "SEED": 3},
    "06_learning_from_reward": {"MAP": "dayan", "SEED": 5, "RUNS": 1},
    "07_beyond_symmetric_worlds": {"MAP": "nine_rooms", "MILLION": 2_000, "MAZES": 2, "SEED": 3},
    "08_deep_successor_representation": {"UPDATES": 20, "SEED": 1},
    "09_atari_training": {"SAMPLES": 600, "STAGES": [2, 5], "SEED": 3},
    "10_atari_eigenoptions": {"STEPS": 20, "SEED": 2},
}
# The lessons that take a few seconds, in a second world: one that is hard for them, or drawn by the reader.
HARD = {
    "01_successor_representation": {"MAP": "maze", "GAMMA": 0.8, "WALKS": 500, "SEED": 6},
    "02_pvf_sr_equivalence": {"MAP": "open_room", "GAMMA": 0.8, "SEED": 2},
    "03_learning_the_sr": {"MAP": "corridor", "RUNS": 3, "SEED": 8},
    "04_eigenoptions": {"MAP": str(Path(__file__).with_name("own_map.txt")), "RUNS": 2, "SEED": 4},
    "05_diffusion_time": {"MAP": "corridor", "GAMMA": 0.5, "RUNS": 2, "SEED": 4},
    "06_learning_from_reward": {"MAP": "corridor", "GAMMA": 0.8, "SEED": 6, "RUNS": 1},
}


def every(cases, test):
    """test(*case) for all {name: case}: fails once, with a line for each case that does not hold."""
    wrong = []
    for name, case in cases.items():
        try:
            test(*case)
        except (Exception, pytest.fail.Exception) as problem:  # what pytest.raises raises is no Exception
            wrong.append(f"{name}: {type(problem).__name__}: {' '.join(str(problem).split())[:300]}")
    assert cases, "there is nothing to test"
    assert not wrong, f"{len(wrong)} of {len(cases)} do not hold:\n" + "\n".join(wrong)


def once(tmp_path_factory, name, make):
    """The folder `name`, common to all workers: whoever asks first fills it with make(folder), the others wait."""
    base = tmp_path_factory.getbasetemp()
    place = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, building = place / name, place / f"{name}.building"
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            make(building)
            building.rename(folder)
    return folder


def executed(tmp_path_factory, lesson):
    """The outcome of a lesson with its numbers CHANGED, run once in a folder that holds nothing else.

    It runs as a student has it, and the solutions come after its last cell: one run shows that the student's edition needs
    none of them, and that they are right in another world. Then every cell goes back to its place.
    """

    def make(folder):
        solutions = [copy.deepcopy(cell) for cell in lesson.notebook.cells if tagged(cell, "solution")]
        for cell in solutions:
            cell.outputs, cell.execution_count = [], None
        notebook = student_edition(lesson)
        notebook.cells += solutions
        (folder / "source").mkdir()
        nbformat.write(notebook, folder / "source" / lesson.path.name)
        outcome = run(folder / "source" / lesson.path.name, folder / lesson.path.name, CHANGED[lesson.name])
        ran, places = (
            nbformat.read(outcome.output, as_version=4),
            {c.id: k for k, c in enumerate(lesson.notebook.cells)},
        )
        ran.cells.sort(
            key=lambda cell: places.get(cell.id, places["parameters"] + 0.5)
        )  # papermill's own comes after them
        nbformat.write(ran, outcome.output)
        failure = outcome.failure and [outcome.failure.cell, outcome.failure.error]
        (folder / "outcome.json").write_text(json.dumps([outcome.seconds, failure]))

    folder = once(tmp_path_factory, f"executed-{lesson.name}", make)
    seconds, failure = json.loads((folder / "outcome.json").read_text())
    return Outcome(lesson.name, folder / lesson.path.name, seconds, Failure(*failure) if failure else None)


def free_port() -> int:
    """A port for a server that is about to start, below those that the system itself hands out, so that none is lost."""
    while True:
        with contextlib.suppress(OSError), socket.socket() as probe:
            port = random.SystemRandom().randrange(20_000, 32_000)
            probe.bind(("127.0.0.1", port))
            return port
