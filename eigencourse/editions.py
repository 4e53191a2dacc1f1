"""Two editions of the course, made from the notebooks: one to hand out, one to teach from (`make student`).

build/student/ has no solutions and no outputs, so every check there says "not attempted yet". build/instructor/ has both,
and notes beside every exercise: minutes, and the mistakes its check knows by name. Solutions are the cells tagged
`solution`; everything in the notes comes from the checks themselves, so they cannot fall behind them.
"""

from __future__ import annotations

import copy
from pathlib import Path

import nbformat

from eigencourse.exercises import Exercise, all_exercises
from eigencourse.lessons import Lesson, NotebookProblem, lessons
from eigenlib import _require
from eigenlib.paths import ROOT
from eigenlib.storage import replace_file, whole_folder

_MARKER = ".eigenlib-edition"  # only a folder that holds this file is ever replaced

STUDENT = """# Eigenoptions: the course, to work in

Open `{first}.ipynb` in JupyterLab, with `eigenlib` installed, and run the cells from top to bottom. An exercise is a cell
with a blank (`None` or `...`); fill it in, run it, and run the check below it. Keep the names that begin with `my_`, they are
what is looked at. A check answers in one line: ✔ passed, ✘ with what seems to be wrong, or · not attempted yet.

{table}
"""

INSTRUCTOR = """# Eigenoptions: the course, to teach from

The notebooks of `../student` with solutions, outputs and notes. To hand the course out, give away `../student`. To mark what
comes back, one row a notebook:

    eigenlib grade handed_in --csv marks.csv --stats

It runs every submission in a room of its own and asks the checks anew; what a submission says about itself does not count. On
Linux it can write only in a scratch folder and sees neither your files nor other processes nor the network; where a system
cannot give that, it says so and stops. SECURITY.md in the repository says what is promised and what not.

{table}

{notes}
"""


def tagged(cell, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


def student_edition(lesson: Lesson):
    """The notebook without solutions and outputs; it knows which lesson it is, whatever its file will be called."""
    notebook = copy.deepcopy(lesson.notebook)
    notebook.cells = [cell for cell in notebook.cells if not tagged(cell, "solution")]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata["eigenlib"]["lesson"] = lesson.number
    return notebook


def instructor_edition(lesson: Lesson):
    """The notebook as it is, its solutions unfolded, with timings at the top and a note under each exercise."""
    notebook, by_heading = copy.deepcopy(lesson.notebook), {one.heading: one for one in all_exercises(lesson.number)}
    cells = []
    for cell in notebook.cells:
        if tagged(cell, "solution"):
            cell.metadata.pop("jupyter", None)
        cells.append(cell)
        heading = cell.source.splitlines()[0].removeprefix("### ") if cell.source else ""
        if cell.cell_type == "markdown" and heading in by_heading:
            cells.append(_note(f"{cell.id}-note", _mistakes(by_heading[heading])))
    cells.insert(1, _note("timings", f"**For the instructor.** {_timings(lesson)}"))
    notebook.cells = cells
    return notebook


def write_editions(out: Path) -> list[Path]:
    """Write out/student and out/instructor, each whole or not at all; returns the two folders."""
    course, out = lessons(), _require.path(out, "out")
    table = "\n".join(
        ["| | lesson | exercises | minutes |", "|---|---|---|---|"]
        + [
            f"| {lesson.number} | [{lesson.title}]({lesson.path.name}) | {len(mine) or '–'} | {_sum(mine) or '–'} |"
            for lesson in course
            for mine in [all_exercises(lesson.number)]
        ]
    )
    notes = "\n\n".join(
        f"## {lesson.number} {lesson.title}\n\n{_timings(lesson)}\n\n{_all_mistakes(lesson)}".rstrip()
        for lesson in course
    )
    readmes = {
        "student": STUDENT.format(first=course[0].name, table=table),
        "instructor": INSTRUCTOR.format(table=table, notes=notes),
    }
    editions = {"student": student_edition, "instructor": instructor_edition}
    for name in editions:
        folder = out / name
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / _MARKER).exists())):
            raise NotebookProblem(
                f"{folder} exists and is not an edition of ours: choose another --out or move it away."
            )
    for name, edition in editions.items():
        with whole_folder(out / name) as building:
            (building / _MARKER).touch()
            replace_file(building / "README.md", readmes[name].encode())
            for lesson in course:
                replace_file(building / lesson.path.name, (nbformat.writes(edition(lesson)) + "\n").encode())
    return [out / name for name in editions]


def _note(name: str, text: str):
    return nbformat.v4.new_markdown_cell(text, id=name, metadata={"tags": ["instructor"]})


def _sum(chosen: list[Exercise]) -> int:
    return sum(one.minutes for one in chosen)


def _timings(lesson: Lesson) -> str:
    """What the lesson takes: the computer's seconds, measured by the last report if there is one, and the class's minutes."""
    text = f"Runs within {lesson.budget:.0f} s on two cores"
    report = ROOT / "report" / "notebooks" / lesson.path.name
    if report.exists():
        text += f" ({nbformat.read(report, as_version=4).metadata.papermill.duration:.0f} s in your last report)"
    mine = all_exercises(lesson.number)
    return text + (f"; {len(mine)} exercises, {_sum(mine)} minutes." if mine else "; no exercises with a check.")


def _mistakes(one: Exercise) -> str:
    known = "\n".join(f"- **{name}**: {text}" for name, text in one.mistakes.items())
    return f"**For the instructor.** {one.minutes} minutes. What `check.{one.name}` says to each mistake:\n\n{known}"


def _all_mistakes(lesson: Lesson) -> str:
    lines = []
    for one in all_exercises(lesson.number):
        known = "; ".join(name for name in one.mistakes if name != "else")
        lines.append(
            f"- **{one.heading}.** {one.title.rstrip('?')}{'?' if '?' in one.title else '.'} It knows: {known}."
        )
    return "\n".join(lines)
