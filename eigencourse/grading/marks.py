"""The table of marks that `eigenlib grade` writes, read again, summed up, and handed on to a gradebook.

A row holds the file, its lesson, passed and total, a status, one column an exercise, and the fingerprint of what was graded.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from eigencourse.exercises import all_exercises
from eigencourse.lessons import lessons as all_lessons
from eigenlib.storage import replace_file

FIRST = ["file", "lesson", "passed", "total", "status"]
GRADEBOOKS = ("moodle", "canvas")
Row = dict[str, Any]

_RISKY = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would take it for a formula
_CANVAS = re.compile(r"^[^_]+_(?:late_)?(\d+)_\d+_", flags=re.IGNORECASE)  # as Canvas names what was handed in


def read(path: Path) -> list[Row]:
    """The rows of an earlier run; [] if there was none."""
    if not path.exists():
        return []
    rows = _table(path)
    if rows and not {"file", "status"} <= set(rows[0]):
        raise ValueError(f"{path} is not a table of marks: choose another --csv.")
    kept = [{key: _unquoted(value) for key, value in row.items() if key and value} for row in rows]
    return [row | {name: int(row[name]) for name in ("passed", "total") if row.get(name, "").isdigit()} for row in kept]


def write(path: Path, rows: Iterable[Row]) -> None:
    """The whole table, on disk before this returns, and never half of it."""
    rows = list(rows)
    columns = FIRST + sorted({key for row in rows for key in row} - set(FIRST))
    _write(path, [columns, *([row.get(column, "") for column in columns] for row in rows)])


def statistics(rows: Iterable[Row]) -> str:
    """Of each exercise: how many passed, were wrong, blank or not graded; and the mistakes by name, most frequent first."""
    columns: dict[str, list[str]] = {}
    for key, mark in (pair for row in rows for pair in _marks(row).items()):
        columns.setdefault(key, []).append(mark)
    titles = {one.number: one.title for one in all_exercises()}
    lines = ["exercise  passed  wrong  blank  not graded"] if columns else ["No exercise has been graded yet."]
    for number, marks in sorted(columns.items()):
        kinds = Counter(mark.partition(":")[0] for mark in marks)
        share = f"{kinds['passed'] / len(marks):.0%}"
        lines.append(
            f"{number:8} {share:>7} {kinds['wrong']:6} {kinds['blank']:6} {kinds['not graded']:11}  {titles.get(number, '')}"
        )
        mistakes = Counter(mark.removeprefix("wrong: ") for mark in marks if mark.startswith("wrong"))
        lines += [f"{count:15} × {name}" for name, count in mistakes.most_common()]
    return "\n".join(lines)


def gradebook(rows: Iterable[Row], kind: str, path: Path, students: Path | None = None) -> list[str]:
    """Write points a student and lesson as `kind` imports them, and give what needs a look.

    The student is who the table `students` (columns file, id and, if you like, name) says, else who the file's name says.
    What could not be graded is left empty: it must not become a zero on the way.
    """
    known = _students(students) if students else {}
    points: dict[str, dict[str, Row]] = {}
    people, remarks = {}, []
    for row in rows:
        if not (lesson := row.get("lesson", "")):
            remarks.append(f"{row['file']}: {row['status']}")
            continue
        person = _student(row, known)
        people[person["id"]] = person
        old = points.setdefault(person["id"], {}).get(lesson)
        if old:
            remarks.append(
                f"{person['id']} has handed in lesson {lesson} twice: the better of {old['file']}, {row['file']}"
            )
        if any(mark == "not graded" for mark in _marks(row).values()):
            remarks.append(f"{row['file']}: not graded in full ({row['status']}), so its points stay empty")
            points[person["id"]].setdefault(lesson, row | {"passed": ""})
        elif not old or old["passed"] == "" or row["passed"] > old["passed"]:
            points[person["id"]][lesson] = row
    lessons = sorted({lesson for found in points.values() for lesson in found})
    chosen = {key: [found.get(lesson, {"passed": ""}) for lesson in lessons] for key, found in points.items()}
    table: list[list[Any]]
    if kind == "canvas":
        about = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
        table = [[*about, *(f"Lesson {lesson}" for lesson in lessons)]]
        table += [["    Points Possible", "", "", "", "", *(len(all_exercises(lesson)) for lesson in lessons)]]
        for key, rows in chosen.items():
            one, sis = people[key], "" if people[key]["canvas"] else key
            table.append([one["name"], one["canvas"], sis, sis, "", *(row["passed"] for row in rows)])
    else:
        table = [["ID number", *(f"Lesson {lesson}{part}" for lesson in lessons for part in ("", " feedback"))]]
        for key, rows in chosen.items():
            table.append([key, *(value for row in rows for value in (row["passed"], _feedback(row)))])
    _write(path, table)
    return remarks


def _marks(row: Row) -> dict[str, str]:
    return {key: mark for key, mark in row.items() if re.fullmatch(r"\d\d\.\d+", key) and mark}


def _feedback(row: Row) -> str:
    return "; ".join(f"{number} {mark}" for number, mark in sorted(_marks(row).items()))


def _student(row: Row, known: Mapping[str, dict[str, str]]) -> dict[str, str]:
    """Who handed in a file: from the table by its path or name, else Canvas' own number, else the name without the lesson."""
    path = PurePath(row["file"])
    if found := known.get(row["file"]) or known.get(path.name):
        return {"id": found["id"], "name": found.get("name") or found["id"], "canvas": ""}
    if match := _CANVAS.match(path.name):
        return {"id": match[1], "name": path.name.partition("_")[0], "canvas": match[1]}
    taught = next((lesson.name for lesson in all_lessons() if lesson.number == row["lesson"]), "")
    name = path.stem.replace(taught, "").removeprefix("_by_").strip("_- .") or path.parent.name or path.stem
    return {"id": name, "name": name, "canvas": ""}


def _students(path: Path) -> dict[str, dict[str, str]]:
    rows = _table(path)
    if not rows or not {"file", "id"} <= set(rows[0]):
        raise ValueError(f"{path} must have the columns file and id (and, if you like, name): a line for each file.")
    return {row["file"]: row for row in rows if row["file"] and row["id"]}


def _table(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file, strict=True))
    except (OSError, ValueError, csv.Error) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not a comma-separated table in UTF-8"
        raise ValueError(f"{path} cannot be read: {reason}.") from None


def _write(path: Path, table: list[list[Any]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([[_quoted(value) for value in line] for line in table])
    try:
        replace_file(path, text.getvalue().encode())
    except OSError as problem:
        raise ValueError(
            f"{path} cannot be written ({problem.strerror}): make room or choose another place, then run this again; "
            "what it held is still there."
        ) from None


def _quoted(value: Any) -> str:
    return f"'{value}" if str(value).startswith(_RISKY) else str(value)


def _unquoted(value: str) -> str:
    return value[1:] if value[:1] == "'" and value[1:].startswith(_RISKY) else value
