"""The notebook engine: every lesson runs, its stored outputs are true, and nothing can hide an error."""

import copy
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from jupyter_client import KernelManager
from shared import CHANGED, HARD, executed

from eigencourse import exercises, ledger
from eigencourse import lessons as notebooks
from eigencourse.execution import WIDGET_VIEW, hidden_errors
from eigencourse.lessons import Lesson, clean, lessons, refresh, run
from eigencourse.paths import NOTEBOOKS
from eigenlib.paths import ROOT

every_lesson = pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)


def write(path, *sources, metadata=None):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(
        nbformat.v4.new_notebook(cells=cells, metadata=metadata or {"eigenlib": {"budget_seconds": 30}}), path
    )
    return path


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


# --- stored notebooks ---------------------------------------------------------------------------------------------------


def stored_problems(notebook):
    """What is wrong with a notebook as committed; an empty list is good."""
    problems = []
    for number, cell in enumerate(code_cells(notebook), start=1):
        if cell.execution_count != number:
            problems.append(f"cell {number} was not executed in order: run make notebooks")
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                problems.append(f"cell {number} stores an error or a warning")
            if "image/png" in output.get("data", {}) and not output.metadata.get("image/png", {}).get("alt"):
                problems.append(f"cell {number} stores a figure without alt text")
            if WIDGET_VIEW in output.get("data", {}):
                problems.append(f"cell {number} stores a widget view, which no reader can open")
    if "widgets" in notebook.metadata:
        problems.append("widget state is stored")
    return problems


@every_lesson
def test_stored_notebook_is_complete(lesson):
    """nbval passes a notebook without outputs vacuously; this does not."""
    assert stored_problems(lesson.notebook) == []
    assert "parameters" in code_cells(lesson.notebook)[0].metadata.get("tags", [])
    assert 'TIER = "quick"' in code_cells(lesson.notebook)[0].source
    assert lesson.question.endswith("?")


def test_a_stripped_notebook_is_noticed():
    planted = copy.deepcopy(lessons()[1].notebook)
    for cell in code_cells(planted):
        cell.outputs, cell.execution_count = [], None
    assert stored_problems(planted)


@every_lesson
def test_no_cell_is_too_long_and_none_names_a_machine_path(lesson):
    for cell in lesson.notebook.cells:
        assert len(cell.source.splitlines()) <= 25 or cell.cell_type == "markdown"
        for place in (f"{Path.home()}/", f"{ROOT}/", "/home/"):
            assert place not in json.dumps(cell)


def nbval(path):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval",
        "--nbval-kernel-name",
        "python3",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-p", "no:xdist", "--rootdir", str(path.parent), "-c", os.devnull, str(path)]
    for _ in range(3):  # a kernel whose port another program took did not start; no cell has run then
        done = subprocess.run(command, capture_output=True, text=True, cwd=path.parent)
        if "Kernel died before replying" not in done.stdout + done.stderr:
            break
    return done


@pytest.mark.notebook
@every_lesson
def test_nbval_agrees_with_the_stored_text(lesson, tmp_path, record_property):
    path = tmp_path / lesson.path.name
    path.write_bytes(lesson.path.read_bytes())
    began = time.perf_counter()
    done = nbval(path)
    record_property("budget", (lesson.name, time.perf_counter() - began, lesson.budget))
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"{len(code_cells(lesson.notebook))} passed" in done.stdout


@pytest.mark.notebook
def test_nbval_notices_one_changed_number(tmp_path):
    planted = copy.deepcopy(Lesson(NOTEBOOKS / "01_successor_representation.ipynb").notebook)
    cell = next(cell for cell in planted.cells if cell.id == "T-rows")
    cell.outputs[0].text = cell.outputs[0].text.replace("0.25", "0.26")
    nbformat.write(planted, tmp_path / "planted.ipynb")
    done = nbval(tmp_path / "planted.ipynb")
    assert done.returncode == 1
    assert "1 failed" in done.stdout


# --- running them -------------------------------------------------------------------------------------------------------


@pytest.mark.notebook
@every_lesson
def test_papermill_runs_with_other_numbers(lesson, tmp_path_factory):
    """To the end, without a warning, with every solution accepted, and verdicts that say in which world they were measured."""
    holds_elsewhere(lesson, executed(tmp_path_factory, lesson), CHANGED[lesson.name])


@pytest.mark.notebook
@pytest.mark.parametrize("name", HARD)
def test_papermill_runs_where_it_is_hard(name, tmp_path):
    (lesson,) = lessons([name])
    holds_elsewhere(lesson, run(lesson.path, tmp_path / lesson.path.name, HARD[name]), HARD[name])


def holds_elsewhere(lesson, outcome, changed):
    assert set(changed) <= set(lesson.parameters)
    assert outcome.failure is None
    fresh = nbformat.read(outcome.output, as_version=4)
    printed = [output for cell in code_cells(fresh) for output in cell.outputs]
    assert [output.text for output in printed if output.get("name") == "stderr"] == []
    states = [[(e["number"], e["state"]) for e in exercises.collect(book)] for book in (fresh, lesson.notebook)]
    assert states[0] == states[1]
    records = ledger.collect(fresh)["record"]
    missing = {e["claim"] for e in ledger.collect(lesson.notebook)["record"]} - {entry["claim"] for entry in records}
    assert missing <= {"option-unvisited"}  # in a small map no tile may be left unvisited
    elsewhere = "MAP" in changed and lesson.number != "06"  # whose verdicts are about stored runs in the four rooms
    for entry in records:
        assert (f"in {Path(changed.get('MAP', '')).stem}, not in the paper's" in entry["part"]) == elsewhere


def test_every_tabular_lesson_has_a_map_and_a_seed_and_both_are_tried():
    for lesson in lessons()[:8]:
        assert {"MAP", "SEED"} <= set(lesson.parameters), lesson.name
        assert CHANGED[lesson.name]["MAP"] != lesson.parameters["MAP"].strip("\"'"), lesson.name
        assert str(CHANGED[lesson.name]["SEED"]) != lesson.parameters["SEED"], lesson.name


def test_the_three_ways_to_psi_agree_at_every_horizon(monkeypatch):
    """Lesson 00 invites to change γ: where the terms left out weigh less than rounding, rounding is what may remain."""
    lesson = lessons(["01"])[0]
    needed = ("imports", "map-figure", "walk-count", "T-rows", "neumann-figure", "solve-check", "agree-check")
    monkeypatch.setattr("eigencourse.ledger.display", lambda *_, **__: None)
    monkeypatch.setattr("eigenlib.plots.show", lambda *_: None)
    sources = {cell.id: cell.source for cell in lesson.notebook.cells}
    for gamma in (0.01, 0.3, 0.5, 0.7, 0.8, 0.95, 0.99):
        names = {"MAP": "dayan", "GAMMA": gamma, "WALKS": 400, "SEED": 1}
        for cell in needed:
            exec(sources[cell], names)


@pytest.mark.notebook
def test_refreshing_twice_changes_no_byte(tmp_path):
    path = tmp_path / "02_pvf_sr_equivalence.ipynb"
    path.write_bytes((NOTEBOOKS / path.name).read_bytes())
    assert refresh(Lesson(path)).failure is None
    once = path.read_bytes()
    assert refresh(Lesson(path)).failure is None
    assert path.read_bytes() == once
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]  # no scratch file left behind


def test_a_failing_notebook_is_left_as_it_was(tmp_path):
    path = write(tmp_path / "90_broken.ipynb", "x = 1", "print(x)", "1 / 0")
    before = path.read_bytes()
    outcome = refresh(Lesson(path))
    assert outcome.failure.cell == 3
    assert outcome.failure.error == "ZeroDivisionError: division by zero"
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_dead_kernel_is_a_failed_notebook(tmp_path):
    path = write(tmp_path / "90_dead.ipynb", "x = 1", "import os; open('runs', 'a').write('.'); os._exit(9)")
    outcome = run(path, tmp_path / "out.ipynb", {})
    assert outcome.failure.cell == 2
    assert (tmp_path / "runs").stat().st_size == 1  # what has begun does not begin again


@pytest.mark.parametrize(("taken", "fails"), [(1, False), (2, False), (3, True)])
def test_a_kernel_whose_port_was_taken_starts_again(tmp_path, monkeypatch, taken, fails):
    """Really taken, between the choice of the ports and the kernel's start: twice is bad luck, three times a failure."""
    path = write(tmp_path / "90_unlucky.ipynb", "x = 1", "print(x)")
    original, takers = KernelManager.write_connection_file, []

    def then_take_one(manager, **options):
        original(manager, **options)
        if len(takers) < taken:
            takers.append(socket.create_server(("127.0.0.1", manager.stdin_port)))

    monkeypatch.setattr(KernelManager, "write_connection_file", then_take_one)
    outcome = run(path, tmp_path / "out.ipynb", {})
    for taker in takers:
        taker.close()
    assert len(takers) == taken
    assert (outcome.failure is not None) == fails
    if fails:
        assert "Kernel died" in outcome.failure.error
    else:
        assert nbformat.read(outcome.output, as_version=4).cells[-1].outputs[0].text == "1\n"


def test_a_cell_that_never_ends_is_a_failed_notebook(tmp_path):
    path = write(tmp_path / "90_endless.ipynb", "x = 1", "import time; time.sleep(10**6)")
    outcome = run(path, tmp_path / "out.ipynb", {}, timeout=5)
    assert outcome.failure.cell == 2


# --- errors in widgets --------------------------------------------------------------------------------------------------

PLAIN = """
import ipywidgets
def draw(x):
    return 1 / (x - 3)
out = ipywidgets.interactive(draw, x=(0, 5))
out.children[0].value = {value}
out
"""


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (PLAIN.format(value=3), "ZeroDivisionError"),
        (PLAIN.format(value=4), None),
    ],
)
def test_an_error_inside_a_widget_callback_fails_the_notebook(tmp_path, source, found):
    path = write(tmp_path / "90_widget.ipynb", 'TIER = "quick"', source)
    outcome = run(path, tmp_path / "out.ipynb", {})
    if found is None:
        assert outcome.failure is None
    else:
        assert found in outcome.failure.error
        assert hidden_errors(nbformat.read(outcome.output, as_version=4))


def test_cleaning_keeps_words_and_pictures():
    cell = nbformat.v4.new_code_cell("print()", metadata={"tags": ["parameters"], "papermill": {"duration": 1.0}})
    view = {WIDGET_VIEW: {"model_id": "x"}, "text/plain": "Explorer", "image/png": "…"}
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="a\n")]
    cell.outputs.append(nbformat.v4.new_output("display_data", data=view))
    notebook = nbformat.v4.new_notebook(cells=[cell, nbformat.v4.new_markdown_cell("words")])
    notebook.cells[1].id = cell.id
    notebook.metadata |= {"widgets": {}, "papermill": {}}
    tidy = clean(notebook)
    assert tidy.cells[0].outputs[0].text == "a\n"
    assert set(tidy.cells[0].outputs[1].data) == {"text/plain", "image/png"}
    assert tidy.cells[0].metadata == {"tags": ["parameters"]}
    assert tidy.cells[0].id != tidy.cells[1].id
    assert set(tidy.metadata) == {"eigenlib", "kernelspec", "language_info"}


def test_what_is_printed_is_one_output_however_the_kernel_cut_it(tmp_path):
    path = write(
        tmp_path / "90_prints.ipynb",
        "x = 1",
        "import time\nfor k in range(3):\n    print(k, flush=True)\n    time.sleep(0.3)",
    )
    outcome = run(path, tmp_path / "out.ipynb", {})
    assert [output.text for output in nbformat.read(outcome.output, as_version=4).cells[1].outputs] == ["0\n1\n2\n"]


def test_a_folder_may_have_any_name(tmp_path):
    folder = tmp_path / "Müllers {Ordner} %s"
    folder.mkdir()
    path = write(folder / "90_any.ipynb", "x = 1", "print(x)", metadata=clean(nbformat.v4.new_notebook()).metadata)
    outcome = run(path, folder / "out.ipynb", {"x": 2})
    assert outcome.failure is None
    assert nbformat.read(outcome.output, as_version=4).cells[-1].outputs[0].text == "2\n"


def test_a_kernel_that_is_killed_fails_its_own_notebook_only(tmp_path):
    """As systems do that run out of memory."""
    paths = [
        write(tmp_path / "90_killed.ipynb", "x = 1", "import os; os.kill(os.getpid(), 9)"),
        write(tmp_path / "91_good.ipynb", "x = 1"),
    ]
    told = []
    killed, good = notebooks.run_many([Lesson(path) for path in paths], tmp_path / "out", {}, 2, told.append)
    assert sorted(told, key=lambda outcome: outcome.name) == [killed, good]
    assert "enough memory" in killed.failure.error
    assert good.failure is None
