"""One machine in the place of another: what differs is found, and the lessons say the same on an older CPU."""

import copy
import os

import nbformat
import pytest

from eigencourse import portable
from eigencourse.cli import main
from eigencourse.lessons import Failure, Lesson, NotebookProblem, Outcome, lessons, run
from eigencourse.portable import MACHINES, compare, examine, probe, simulated


@pytest.fixture(scope="session")
def other():
    """An older CPU than this one that can be simulated here, and what the libraries choose on it and on this one."""
    own, reasons = probe("own"), []
    for name in ("sandybridge", "nehalem"):  # the newer one is quicker
        try:
            chosen = probe(name)
        except NotebookProblem as reason:
            reasons.append(f"{name}: {reason}")
            continue
        if chosen.split()[1] != own.split()[1]:
            return name, chosen, own
        reasons.append(f"{name}: it is this machine")
    pytest.skip("; ".join(reasons))


@pytest.mark.notebook
@pytest.mark.parametrize("lesson", lessons(["02", "05", "08"]), ids=lambda lesson: lesson.name)
def test_a_lesson_says_the_same_on_another_cpu(lesson, other, tmp_path):
    """The short form of `make portable`: 02 and 05 live on repeated eigenvalues, 08 trains in single precision."""
    with simulated(other[0]):
        outcome = run(lesson.path, tmp_path / lesson.path.name, {})
    found = compare(lesson, outcome)
    assert found.differences == []
    assert found.flips == []
    assert found.outputs > 20


def test_kernels_really_run_on_the_machine_that_was_asked_for(other):
    name, chosen, own = other
    core = MACHINES[name]["OPENBLAS_CORETYPE"]
    assert f"OpenBLAS {core} (numpy) {core} (scipy), numpy X86_V2, torch DEFAULT, oneDNN Intel " in chosen
    assert "numba generic, threads 1" in chosen
    for library, here in zip(chosen.split(", "), own.split(", "), strict=True):
        assert library != here or "threads" in library


def test_a_simulated_machine_leaves_no_trace(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    before, caches = dict(os.environ), set()
    for machine in MACHINES:
        with simulated(machine):
            caches.add(os.environ["NUMBA_CACHE_DIR"])
            assert os.environ.get("OPENBLAS_CORETYPE") == MACHINES[machine].get("OPENBLAS_CORETYPE")
            assert os.environ["OMP_NUM_THREADS"] == MACHINES[machine].get("OMP_NUM_THREADS", "1")
        assert dict(os.environ) == before
    assert len(caches) == len(MACHINES)  # what was compiled for one CPU is not loaded on another


@pytest.mark.parametrize(
    ("variables", "reason"),
    [({"OPENBLAS_CORETYPE": "Z80"}, "its OpenBLAS is not here"), ({"PYTHONMALLOC": "none"}, "this CPU cannot run it")],
)
def test_a_machine_that_cannot_be_simulated_is_left_out_with_a_reason(monkeypatch, variables, reason):
    monkeypatch.setitem(MACHINES, "planted", variables)
    told = []
    with pytest.raises(NotebookProblem, match="None of these"):
        examine([], ["planted"], 1, told.append)
    assert len(told) == 1
    assert told[0].startswith(f"planted      left out: {reason}")


def test_unknown_machines_and_lessons_are_refused_in_one_sentence(capsys):
    assert main(["portable", "--machines", "haswell,cray"]) == 2
    assert "No machine 'cray'; there are own, threads," in capsys.readouterr().err
    assert main(["portable", "--only", "77"]) == 2
    assert "No notebook '77'" in capsys.readouterr().err


# --- the comparison -----------------------------------------------------------------------------------------------------


def cell(*outputs):
    return nbformat.v4.new_code_cell("…", outputs=list(outputs))


def printed(text):
    return nbformat.v4.new_output("stream", name="stdout", text=text)


def verdict(verdict, value=0.5):
    entry = {"claim": "deep-sr", "part": "planted", "value": value, "verdict": verdict}
    return nbformat.v4.new_output("display_data", {"text/plain": "…"}, metadata={"eigenlib": {"record": entry}})


@pytest.fixture
def stored(tmp_path):
    picture = nbformat.v4.new_output("display_data", {"image/png": "aaaa", "text/plain": "Figure: one."})
    cells = [nbformat.v4.new_markdown_cell("words"), cell(printed("29\n"), picture), cell(verdict("holds"))]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "90_planted.ipynb")
    return Lesson(tmp_path / "90_planted.ipynb")


def compared(stored, tmp_path, change, failure=None):
    """The comparison after `change` was made to the cells of a run."""
    fresh = copy.deepcopy(stored.notebook)
    change(fresh.cells)
    nbformat.write(fresh, tmp_path / "out.ipynb")
    return compare(stored, Outcome(stored.name, tmp_path / "out.ipynb", 1.0, failure))


def test_pictures_are_no_difference(stored, tmp_path):
    found = compared(stored, tmp_path, lambda cells: cells[1].outputs[1].data.update({"image/png": "bbbb"}))
    assert found == (3, [], [])


def test_a_changed_number_a_new_and_a_missing_output_are_found(stored, tmp_path):
    found = compared(stored, tmp_path, lambda cells: cells[1].outputs[0].update(text="31\n"))
    assert found == (3, [(stored.name, 1, "29\n", "31\n")], [])
    found = compared(stored, tmp_path, lambda cells: cells[1].outputs.pop())
    assert found.differences == [(stored.name, 1, "Figure: one.", "")]
    found = compared(stored, tmp_path, lambda cells: cells[1].outputs.append(printed("more\n")))
    assert found.differences == [(stored.name, 1, "", "more\n")]


def test_a_flipped_verdict_is_found_even_if_the_text_is_the_same(stored, tmp_path):
    found = compared(stored, tmp_path, lambda cells: cells[2].update(outputs=[verdict("does not hold")]))
    assert found.differences == []
    assert found.flips == [f"{stored.name}: deep-sr (planted) holds → does not hold"]


def test_a_lesson_that_stops_is_a_difference(stored, tmp_path):
    found = compared(stored, tmp_path, lambda cells: None, Failure(2, "ZeroDivisionError: division by zero"))
    assert found.differences == [(stored.name, 2, "runs to its end", "ZeroDivisionError: division by zero")]


def test_the_table_counts_and_a_difference_is_told_with_its_place(stored, monkeypatch):
    """From the kernel to the last line: a lesson that prints its OpenBLAS type differs on another machine."""
    told = []
    source = 'import os\nprint(os.environ.get("OPENBLAS_CORETYPE", "own"))'
    notebook = nbformat.v4.new_notebook(cells=[cell(printed("own\n"))])
    notebook.cells[0].source = source
    nbformat.write(notebook, stored.path)
    monkeypatch.setitem(MACHINES, "planted", {"OPENBLAS_CORETYPE": "Planted"})
    monkeypatch.setattr(portable, "probe", lambda name: f"chosen on {name}")
    assert examine([stored], ["own", "planted"], 1, told.append) is False
    text = "\n".join(told)
    assert "planted, 90_planted, cell 0\n  stored: own\n  got:    Planted" in text
    assert [line.split() for line in text.splitlines()[-2:]] == [["own", "1", "0", "0"], ["planted", "1", "1", "0"]]
    assert examine([stored], ["own"], 1, told.append) is True
