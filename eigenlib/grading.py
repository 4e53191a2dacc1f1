"""Marks for handed-in notebooks: `eigenlib grade SUBMISSION.ipynb … --csv marks.csv`.

Three processes, so that a submission costs at most its own row and cannot award itself anything:

    eigenlib grade ──▶ an examiner for each submission, who asks the checks ──▶ a kernel in a sandbox, which runs its cells

This module is the first of them: it hands each submission to an examiner (`eigenlib.exercises.examiner`), ends whatever is
left of it, and writes the table.
"""

from __future__ import annotations

import base64
import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from eigenlib import _require
from eigenlib.exercises.sandbox import end_family

LARGEST = 100 * 2**20  # bytes of a submission
_GRACE = 60.0  # seconds that an examiner may be late


def grade(
    submissions: Iterable[Path | str], csv_file: Path | str, timeout: float = 60, total: float = 600, jobs: int = 1
) -> list[dict[str, Any]]:
    """Grade notebooks and write one row each; nothing that is wrong with one of them is raised.

    timeout: seconds a cell may take.  total: seconds a whole notebook may take.  jobs: notebooks at a time.
    """
    names = [str(_require.path(path, "submissions")) for path in _require.several(submissions, "submissions", "files")]
    target, jobs = _require.path(csv_file, "csv_file"), _require.whole(jobs, "jobs", 1, 1024)
    timeout, total = (
        _require.real(seconds, name, 0, 10**7, "(]") for seconds, name in ((timeout, "timeout"), (total, "total"))
    )
    if not target.parent.is_dir():
        raise ValueError(f"There is no folder {target.parent} for the marks: make it, or choose another --csv.")
    if target.is_dir():
        raise ValueError(f"The marks cannot be written to {target}, which is a folder: choose another --csv.")
    contents = [_read(Path(name)) for name in names]  # before any of them can change another

    def one(name: str, content: bytes | str) -> dict[str, Any]:
        result = _examined(name, content, timeout, total)
        marks: dict[str, str] = result.get("marks", {})
        shown = os.fsencode(name).decode("utf-8", "replace")  # archives of other systems hold names in other codes
        row: dict[str, Any] = {"file": shown, "lesson": result.get("lesson", ""), "status": plain(result["status"])}
        row |= {"passed": sum(mark == "passed" for mark in marks.values()), "total": len(marks) or "", **marks}
        print(f"{shown}: {row['passed']} of {row['total'] or '?'}, {row['status']}", flush=True)
        return row

    with ThreadPoolExecutor(jobs) as threads:
        rows = list(threads.map(one, names, contents))
    _write(target, rows)
    return rows


def plain(text: str) -> str:
    """One short printable line, whatever a submission put into it."""
    _require.text(text, "text")
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())[:200]


def _read(path: Path) -> bytes | str:
    """The file's bytes, or why there are none."""
    try:
        return path.read_bytes() if path.stat().st_size <= LARGEST else f"larger than {LARGEST // 2**20} MB"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _examined(name: str, content: bytes | str, timeout: float, total: float) -> dict[str, Any]:
    """What the examiner says of one submission; it is ended with all that it started."""
    if isinstance(content, str):
        return {"status": f"broken: {content}"}
    job = {"name": name, "notebook": base64.b64encode(content).decode(), "timeout": timeout, "total": total}
    # -P: never import what lies in the current folder, which may well be that of the submissions.
    command, pipe = [sys.executable, "-P", "-m", "eigenlib.exercises.examiner"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as examiner:
        try:
            output, errors = examiner.communicate(json.dumps(job), timeout=total + _GRACE)
        except subprocess.TimeoutExpired:
            return {"status": f"timeout: not done after {total:g} s"}
        finally:
            if examiner.poll() is None:  # else its number may already be another's
                end_family(examiner.pid)
    if examiner.returncode:
        last = errors.strip().splitlines()[-1:] or [f"exit status {examiner.returncode}"]
        return {"status": f"broken: its examiner stopped ({last[0]})"}
    try:
        return json.loads(output)
    except ValueError:
        return {"status": "broken: its examiner said nothing that can be read"}


def _write(target: Path, rows: list[dict[str, Any]]) -> None:
    """The table, in its place only when it is whole. A text that a spreadsheet would take for a formula is quoted."""
    first = ["file", "lesson", "passed", "total", "status"]
    columns = first + sorted({key for row in rows for key in row} - set(first))
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, columns, restval="")
            table.writeheader()
            for row in rows:
                risky = {key: value for key, value in row.items() if str(value).startswith(("=", "+", "-", "@"))}
                table.writerow(row | {key: f"'{value}" for key, value in risky.items()})
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
