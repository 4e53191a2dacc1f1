"""The report: every notebook executed through papermill, as one HTML site that opens offline (`make report`).

The site is built in a folder beside its final place and moved there when it is whole, so an interrupted run leaves the old
report as it was. Notebooks that were finished by then are kept in .NAME.unfinished beside it, and the next run goes on with
them. Mathematics is typeset by a copy of MathJax inside the site; no page asks the network for anything.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eigencourse.lessons import Lesson, NotebookProblem, Outcome, lessons, run_many
from eigencourse.report import pages
from eigenlib.storage import alone_in, whole_folder

_MARKER = ".eigenlib-report"  # only a folder that holds this file is ever replaced


def write_report(chosen: list[Lesson], out: Path, parameters: Mapping[str, Any], jobs: int) -> int:
    """Execute, render, move into place, tell. Returns the exit status: 1 if any notebook failed."""
    out = out.resolve()
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / _MARKER).exists())):
        raise NotebookProblem(f"{out} exists and is not a report of ours: choose another --out or move it away.")
    begin = time.perf_counter()
    unfinished = out.with_name(f".{out.name}.unfinished")
    with alone_in(unfinished):
        print(f"{len(chosen)} notebook{'s' * (len(chosen) != 1)}, {jobs} at a time ...", flush=True)
        outcomes = run_many(chosen, unfinished, parameters, jobs, _tell)
        with whole_folder(out) as building:
            (building / _MARKER).touch()
            pages.render(building, lessons(), outcomes, parameters)
        for outcome in outcomes:
            outcome.output.unlink()
    failed = [outcome for outcome in outcomes if outcome.failure]
    print(f"\n{len(outcomes) - len(failed)} of {len(outcomes)} notebooks ran in {time.perf_counter() - begin:.0f} s.")
    for outcome in failed:
        print(f"failed: {outcome.name}, {outcome.failure}", file=sys.stderr)
    print(f"Report: {out / 'index.html'}")
    return int(bool(failed))


def _tell(outcome: Outcome) -> None:
    state = "failed" if outcome.failure else "ok, finished before" if outcome.kept else "ok"
    print(f"{outcome.name:32} {outcome.seconds:6.1f} s  {state}", flush=True)
