"""A student's answers in a new edition: all that was written comes along, nothing that is there is lost."""

import nbformat
import pytest

from eigencourse.carry import carry
from eigencourse.cli import main
from eigencourse.editions import student_edition, tagged
from eigencourse.exercises import all_exercises
from eigencourse.lessons import NotebookProblem, lessons

TAUGHT = [lesson for lesson in lessons() if all_exercises(lesson.number)]
BLANK = 'def my_successor(T, gamma):\n    """Words."""\n    return ...'
MINE = "def my_successor(T, gamma):\n    return inverse(np.eye(len(T)) - gamma * T)"


def write(path, *sources):
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources]), path)
    return path


def sources(path):
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


@pytest.mark.parametrize("lesson", TAUGHT, ids=lambda lesson: lesson.name)
def test_every_answer_of_a_lesson_comes_along_and_no_blank_does(lesson, tmp_path):
    old, new = student_edition(lesson), student_edition(lesson)
    names = [one.answer for one in all_exercises(lesson.number)]
    paths = [tmp_path / "old.ipynb", tmp_path / "new.ipynb"]
    for notebook, path in zip((old, new), paths, strict=True):
        nbformat.write(notebook, path)
    before = paths[1].read_bytes()
    assert "0 answers carried over." in carry(*paths)[0]
    assert paths[1].read_bytes() == before
    blanks = [cell for cell in old.cells if tagged(cell, "exercise")]
    for cell, name in zip(blanks, names, strict=True):
        cell.source = f"{name} = 1  # mine"
    nbformat.write(old, paths[0])
    carry(*paths)
    assert [s for s in sources(paths[1]) if s.endswith("# mine")] == [f"{name} = 1  # mine" for name in names]
    assert len(sources(paths[1])) == len(new.cells)


def test_the_last_answer_counts_with_what_it_needs(tmp_path):
    """A second try further down, a function of one's own, and a cell that does not run yet."""
    helper = "import numpy as np\ndef inverse(A):\n    return np.linalg.inv(A)"
    broken = "my_drift = [0.4, 0.4, 0.2,"
    old = write(tmp_path / "old.ipynb", BLANK, "my_successor = np.linalg.inv", helper, MINE, broken, "other = 3")
    new = write(tmp_path / "new.ipynb", "first = 1", BLANK, "my_drift = None  # four numbers", "my_ratio_limit = None")
    (line,) = carry(old, new)
    assert sources(new) == ["first = 1", helper, MINE, broken, "my_ratio_limit = None"]
    assert line == "new.ipynb: 2 answers carried over (my_successor, my_drift)."


def test_nothing_is_written_over_and_what_has_no_place_is_named(tmp_path):
    old = write(tmp_path / "old.ipynb", MINE, "my_old_one = 3", "my_drift = {'a': None}")
    new = write(tmp_path / "new.ipynb", "my_successor = 'begun'", "my_drift = None")
    before = new.read_bytes()
    (line,) = carry(old, new)
    assert new.read_bytes() == before
    assert "0 answers carried over; already there: my_successor;" in line
    assert "only in your old notebook: my_old_one" in line


def test_a_folder_at_a_time_and_refusals(tmp_path, capsys):
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    write(old / "01.ipynb", "my_drift = [1, 0, 0, 0]")
    for arguments in (("nowhere", new), (old, old), (old, new), (old / "01.ipynb", new)):
        with pytest.raises(NotebookProblem):
            carry(*arguments)
    write(new / "01.ipynb", "my_drift = None")
    assert main(["carry", str(old), str(new)]) == 0
    assert "1 answers carried over (my_drift)" in capsys.readouterr().out
    assert sources(new / "01.ipynb") == ["my_drift = [1, 0, 0, 0]"]
    (new / "01.ipynb").write_text("{")
    assert main(["carry", str(old / "01.ipynb"), str(new / "01.ipynb")]) == 2
    assert "cannot be read as a notebook" in capsys.readouterr().err
