"""`eigenlib doctor --course`: the pass sheet of the evening before, from lessons that run, fail or miss a solution."""

import nbformat
import pytest

from eigencourse import exercises
from eigencourse.cli import main
from eigencourse.doctor import Finding, Line, pass_line
from eigencourse.lessons import Failure, Lesson, Outcome


@pytest.fixture
def healthy(monkeypatch):
    """A machine in order, without the seconds that looking at it takes."""
    monkeypatch.setattr("eigencourse.doctor.examine", lambda: iter([Finding("ok", "python", "3.11")]))


def lesson(path, *sources):
    cells = [nbformat.v4.new_code_cell(source) for source in ("TIER = 'quick'", *sources)]
    cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return Lesson(path)


def test_the_sheet_has_a_line_per_lesson_and_the_status_says_whether_all_is_ready(
    healthy, tmp_path, monkeypatch, capsys
):
    good, bad = lesson(tmp_path / "90_good.ipynb", "1 + 1"), lesson(tmp_path / "91_bad.ipynb", "1 / 0")
    monkeypatch.setattr("eigencourse.lessons.lessons", lambda only=None: [good] if only else [good, bad])
    assert main(["doctor", "--course", "--only", "90", "--jobs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok        python")  # the machine comes first
    assert any(line.startswith("90_good ") and line.endswith("  ok") for line in lines)
    assert lines[-2:] == ["1 of 1 ready, 0 solutions pass.", "Ready."]
    assert main(["doctor", "--course", "--jobs", "1"]) == 1
    told = capsys.readouterr().out
    assert "failed  in cell [2]: ZeroDivisionError: division by zero" in told
    assert told.splitlines()[-2:] == ["1 of 2 ready, 0 solutions pass.", "Not ready: see the errors above."]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["90_good.ipynb", "91_bad.ipynb"]


def executed(path, *states):
    """An executed notebook of lesson 01 with the first exercises in the states given."""
    outputs = [
        nbformat.v4.new_output(
            "display_data", metadata={"eigenlib": {"exercise": {"number": one.number, "state": state, "mistake": ""}}}
        )
        for one, state in zip(exercises.all_exercises("01"), states, strict=False)
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=outputs)]), path)
    return path


def test_solutions_that_pass_are_counted_and_a_missing_one_is_a_problem(tmp_path):
    asked = exercises.all_exercises("01")
    path = executed(tmp_path / "01_x.ipynb", *["passed"] * len(asked))
    assert pass_line(Outcome("01_x", path, 3.0, None)) == Line("01_x", 3.0, len(asked), len(asked), "")
    path = executed(tmp_path / "01_x.ipynb", "blank", *["passed"] * (len(asked) - 1))
    line = pass_line(Outcome("01_x", path, 3.0, None))
    assert (line.passed, line.problem) == (len(asked) - 1, f"no solution passes for {asked[0].number}")
    line = pass_line(Outcome("01_x", path, 3.0, Failure(7, "ValueError: planted")))
    assert line.problem == "in cell [7]: ValueError: planted"


def test_an_error_of_the_machine_is_not_ready_though_every_lesson_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("eigencourse.doctor.examine", lambda: iter([Finding("error", "games", "no ROM", "Reinstall.")]))
    monkeypatch.setattr("eigencourse.doctor.rehearse", lambda *_: [Line("01_x", 1.0, 5, 5, "")])
    assert main(["doctor", "--course", "--only", "01"]) == 1
    assert "1 of 1 ready" in capsys.readouterr().out


@pytest.mark.notebook
def test_a_real_lesson_is_ready(healthy, capsys):
    assert main(["doctor", "--course", "--only", "01", "--jobs", "1"]) == 0
    number = len(exercises.all_exercises("01"))
    assert f"{number} of {number} solutions pass" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--course", "--only", "77"], "'77'"), (["--course", "--jobs", "0"], "--jobs"), (["--only", "01"], "--course")],
)
def test_what_cannot_be_is_refused_before_anything_runs(capsys, arguments, says):
    assert main(["doctor", *arguments]) == 2
    told = capsys.readouterr()
    assert says in told.err
    assert told.out == ""
