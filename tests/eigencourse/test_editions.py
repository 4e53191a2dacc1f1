"""The editions: students get no solutions and nothing that crashes, instructors get everything; exercises are in order."""

import re

import nbformat
import pytest
from shared import executed

from eigencourse.cli import main
from eigencourse.editions import instructor_edition, student_edition, tagged, write_editions
from eigencourse.exercises import all_exercises, collect
from eigencourse.lessons import lessons
from eigencourse.report.lesson_page import lesson_page

TAUGHT = [lesson for lesson in lessons() if all_exercises(lesson.number)]
taught = pytest.mark.parametrize("lesson", TAUGHT, ids=lambda lesson: lesson.name)


def of(notebook, tag):
    return [cell for cell in notebook.cells if tagged(cell, tag)]


# --- the master ---------------------------------------------------------------------------------------------------------


@taught
def test_every_exercise_stands_in_its_lesson(lesson):
    """Words, a blank, its check, a folded solution: four cells in a row, in order, as the registry says."""
    mine, cells = all_exercises(lesson.number), lesson.notebook.cells
    places = [k for k, cell in enumerate(cells) if tagged(cell, "exercise")]
    assert 3 <= len(mine) <= 5
    assert len(places) == len(mine) == len(of(lesson.notebook, "check")) == len(of(lesson.notebook, "solution"))
    for one, k in zip(mine, places, strict=True):
        words, blank, check, solution = cells[k - 1 : k + 3]
        assert words.source.startswith(f"### {one.heading}\n")
        assert re.search(rf"^(def )?{one.answer}\b", blank.source, flags=re.MULTILINE)
        assert check.source == f"check.{one.name}({one.answer})"
        assert tagged(check, "check")
        assert tagged(solution, "solution")
        assert solution.metadata.jupyter == {"outputs_hidden": True, "source_hidden": True}
        assert solution.source.startswith("# A solution\n")  # the line that a folded cell still shows
        assert solution.source.endswith(f"check.{one.name}(our_{one.name})")
        assert "my_" not in solution.source  # or running it would overwrite the learner's answer
    minutes = sum(one.minutes for one in mine)
    assert f"*Exercises:* {len(mine)}, about {minutes} minutes." in cells[0].source


@taught
def test_the_master_passes_every_check(lesson):
    """As stored; the notebook tests hold the stored outputs against a fresh run."""
    mine = [one.number for one in all_exercises(lesson.number)]
    of_solutions = nbformat.v4.new_notebook(cells=of(lesson.notebook, "solution"))
    assert [(entry["number"], entry["state"]) for entry in collect(of_solutions)] == [(one, "passed") for one in mine]
    of_blanks = nbformat.v4.new_notebook(cells=of(lesson.notebook, "check"))
    assert [(entry["number"], entry["state"]) for entry in collect(of_blanks)] == [(one, "blank") for one in mine]


def test_the_report_keeps_solutions_in_a_closed_box():
    cells = [nbformat.v4.new_code_cell("my_answer = None"), nbformat.v4.new_code_cell("our_answer = 42")]
    cells[1].metadata["tags"] = ["solution"]
    page = lesson_page(nbformat.v4.new_notebook(cells=cells)).body
    (box,) = re.findall(
        r"<details class=\"solution\"><summary>Show a solution</summary>.*?</details>", page, flags=re.DOTALL
    )
    assert "our_answer" in box
    assert "our_answer" not in page.replace(box, "")
    assert "my_answer" not in box


# --- the student's ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_students_get_no_solutions_and_no_outputs(lesson):
    notebook = student_edition(lesson)
    text = nbformat.writes(notebook)
    nbformat.validate(notebook)
    assert of(notebook, "solution") == []
    assert not re.search(r"\bour_\w+", text)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
    assert notebook.metadata.eigenlib.lesson == lesson.number
    kept = [cell.source for cell in lesson.notebook.cells if not tagged(cell, "solution")]
    assert [cell.source for cell in notebook.cells] == kept


@pytest.mark.notebook
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_the_student_edition_runs_with_other_numbers_and_passes_nothing(lesson, tmp_path_factory):
    """Every cell runs, with parameters that nobody chose with care and before any solution; every check says so."""
    outcome = executed(tmp_path_factory, lesson)
    assert outcome.failure is None
    checks = of(nbformat.read(outcome.output, as_version=4), "check")
    states = [(entry["number"], entry["state"]) for entry in collect(nbformat.v4.new_notebook(cells=checks))]
    assert states == [(one.number, "blank") for one in all_exercises(lesson.number)]
    for cell in checks:
        assert "not attempted yet" in cell.outputs[0].data["text/plain"]


# --- the instructor's ---------------------------------------------------------------------------------------------------


@taught
def test_instructors_get_solutions_timings_and_notes(lesson):
    notebook = instructor_edition(lesson)
    nbformat.validate(notebook)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    assert [cell.source for cell in of(notebook, "solution")] == [
        cell.source for cell in of(lesson.notebook, "solution")
    ]
    assert all("jupyter" not in cell.metadata for cell in of(notebook, "solution"))
    timings, *notes = of(notebook, "instructor")
    assert f"{lesson.budget:.0f} s on two cores" in timings.source
    assert len(notes) == len(all_exercises(lesson.number))
    for one, note in zip(all_exercises(lesson.number), notes, strict=True):
        assert f"{one.minutes} minutes" in note.source
        assert all(text in note.source for text in one.mistakes.values())


def test_the_last_reports_seconds_are_shown(tmp_path, monkeypatch):
    monkeypatch.setattr("eigencourse.editions.ROOT", tmp_path)
    (tmp_path / "report" / "notebooks").mkdir(parents=True)
    ran = nbformat.v4.new_notebook(metadata={"papermill": {"duration": 12.3}})
    nbformat.write(ran, tmp_path / "report" / "notebooks" / TAUGHT[0].path.name)
    assert "(12 s in your last report)" in of(instructor_edition(TAUGHT[0]), "instructor")[0].source


# --- on disk ------------------------------------------------------------------------------------------------------------


def test_both_folders_are_written_whole_and_again(tmp_path, capsys):
    out = tmp_path / "build"
    for _ in range(2):
        assert main(["student", "--out", str(out)]) == 0
        (out / "student" / "stale.txt").touch()
    assert main(["student", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["instructor", "student"]
    names = [".eigenlib-edition", *(lesson.path.name for lesson in lessons()), "README.md"]
    for folder in out.iterdir():
        assert sorted(path.name for path in folder.iterdir()) == sorted(names)
        assert "{" not in (folder / "README.md").read_text()
    assert "eigenlib grade" in (out / "instructor" / "README.md").read_text()
    for one in all_exercises():
        assert one.heading in (out / "instructor" / "README.md").read_text()


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path, capsys):
    (tmp_path / "instructor").mkdir()
    (tmp_path / "instructor" / "my_notes.txt").write_text("years of work")
    assert main(["student", "--out", str(tmp_path)]) == 2
    assert "not an edition of ours" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["instructor", "my_notes.txt"]


def test_an_edition_that_cannot_be_finished_leaves_the_old_one(tmp_path, monkeypatch):
    write_editions(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("eigencourse.editions.replace_file", full)
    with pytest.raises(OSError, match="No space"):
        write_editions(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
