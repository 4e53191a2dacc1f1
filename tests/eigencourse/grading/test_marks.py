"""The table of marks: statistics with mistakes by name, and what gradebooks import."""

import csv

import pytest

from eigencourse.exercises import all_exercises
from eigencourse.grading import grade, marks


def row(file, answers, lesson="01", status="ok", passed=None):
    found = {f"{lesson}.{k}": mark for k, mark in enumerate(answers, start=1)}
    passed = sum(mark == "passed" for mark in answers) if passed is None else passed
    return {"file": file, "lesson": lesson, "status": status, "passed": passed, "total": len(answers) or "", **found}


P, T, B = "passed", "wrong: transposed", "blank"
ROWS = [
    row("in/01_successor_representation_by_ada.ipynb", [P, P, P, P, P]),
    row("in/lovelacebob_LATE_4711_99_01.ipynb", [P, T, P, B, P]),
    row("in/carol.ipynb", [P, T, "wrong: raised", B, B]),
    row("in/dora.ipynb", [P, *["not graded"] * 4], status="timeout: over 600 s in all, at my_successor"),
    {"file": "in/fifo.ipynb", "lesson": "", "status": "broken: not an ordinary file", "passed": 0, "total": ""},
]


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_what_is_written_can_be_read_again(tmp_path):
    rows = [*ROWS, row("=1+1.ipynb", [P] * 5) | {"fingerprint": "-1e5"}]
    marks.write(tmp_path / "marks.csv", rows)
    assert marks.read(tmp_path / "marks.csv") == [{k: v for k, v in one.items() if v != ""} for one in rows]
    assert table(tmp_path / "marks.csv")[-1][0] == "'=1+1.ipynb"  # no formula for a spreadsheet
    assert marks.read(tmp_path / "none.csv") == []


def test_statistics_name_the_mistakes():
    text = marks.statistics(ROWS)
    lines = {line.split()[0]: line for line in text.splitlines() if line[:2] == "01"}
    title = next(one.title for one in all_exercises("01") if one.number == "01.2")
    assert lines["01.1"].split()[1:5] == ["100%", "0", "0", "0"]
    assert lines["01.2"].split()[1:5] == ["25%", "2", "0", "1"]
    assert lines["01.2"].endswith(title)
    assert lines["01.4"].split()[1:5] == ["25%", "0", "2", "1"]
    after = text.splitlines()[text.splitlines().index(lines["01.2"]) + 1]
    assert after.split() == ["2", "×", "transposed"]
    assert "1 × raised" in text
    assert marks.statistics([]) == "No exercise has been graded yet."


def test_moodle_gets_points_and_reasons_and_no_zero_for_what_was_not_graded(tmp_path):
    remarks = marks.gradebook(ROWS, "moodle", tmp_path / "m.csv")
    head, *lines = table(tmp_path / "m.csv")
    assert head == ["ID number", "Lesson 01", "Lesson 01 feedback"]
    assert [line[:2] for line in lines] == [["ada", "5"], ["4711", "3"], ["carol", "1"], ["dora", ""]]
    assert "01.2 wrong: transposed" in lines[1][2]
    assert len(remarks) == 2
    assert "dora" in remarks[0]
    assert "fifo" in remarks[1]


def test_canvas_gets_its_own_columns(tmp_path):
    """As its importer asks for: five columns about the student, the last of them the section, then points possible."""
    rows = [*ROWS, row("in/02_pvf_sr_equivalence_by_ada.ipynb", [P, P, T, B, P], lesson="02")]
    marks.gradebook(rows, "canvas", tmp_path / "c.csv")
    head, possible, ada, bob, *_ = table(tmp_path / "c.csv")
    assert head == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Lesson 01", "Lesson 02"]
    assert possible == ["    Points Possible", "", "", "", "", "5", "5"]
    assert ada == ["ada", "", "ada", "ada", "", "5", "3"]
    assert bob == ["lovelacebob", "4711", "", "", "", "3", ""]


@pytest.mark.parametrize(
    ("file", "who"),
    [
        ("01_successor_representation_by_ada.ipynb", "ada"),
        ("ada_01_successor_representation.ipynb", "ada"),
        ("hw01_ada.ipynb", "hw01_ada"),
        ("Ada Lovelace_17_file/01_successor_representation.ipynb", "Ada Lovelace_17_file"),
        ("lovelaceada_4711_99_x.ipynb", "4711"),
        ("lovelaceada_LATE_4711_99_x.ipynb", "4711"),
    ],
)
def test_a_files_name_says_who_handed_it_in(tmp_path, file, who):
    marks.gradebook([row(file, [P])], "moodle", tmp_path / "m.csv")
    assert table(tmp_path / "m.csv")[1][0] == who


def test_a_table_says_who_is_who(tmp_path):
    (tmp_path / "who.csv").write_text(
        "\ufefffile,id,name\ncarol.ipynb,007,Carol C\nin/dora.ipynb,008,\n", encoding="utf-8"
    )
    marks.gradebook(ROWS, "canvas", tmp_path / "c.csv", tmp_path / "who.csv")
    lines = {line[0]: line for line in table(tmp_path / "c.csv")}
    assert lines["Carol C"][1:4] == ["", "007", "007"]
    assert lines["008"][1:4] == ["", "008", "008"]
    (tmp_path / "who.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="columns file and id"):
        marks.gradebook(ROWS, "canvas", tmp_path / "c.csv", tmp_path / "who.csv")
    with pytest.raises(ValueError, match="cannot be read"):
        marks.gradebook(ROWS, "canvas", tmp_path / "c.csv", tmp_path / "nowhere.csv")


def test_of_two_submissions_the_better_one_counts_and_it_is_said(tmp_path):
    twice = [row("a/carol.ipynb", [P, B]), row("b/carol.ipynb", [P, P]), row("c/carol.ipynb", [B, B])]
    remarks = marks.gradebook(twice, "moodle", tmp_path / "m.csv")
    assert table(tmp_path / "m.csv")[1][:2] == ["carol", "2"]
    assert len(remarks) == 2


def test_a_call_that_goes_on_has_the_order_of_one_that_was_not_stopped(tmp_path):
    """The second of three was done first when it was stopped; a table with others in it keeps its order."""
    given = {name: name for name in ("ada", "bob", "cy")}
    for stored, order in ((["bob"], ["ada", "bob", "cy"]), (["eve", "bob"], ["eve", "bob", "ada", "cy"])):
        marks.write(tmp_path / "marks.csv", [{"file": name, "status": "ok"} for name in stored])
        assert grade._Class(tmp_path / "marks.csv", given, 60, 600, 1, False, False).order == order
