"""The report: every notebook executed through papermill, as one HTML site that opens offline (`make report`).

The site is built in a folder beside its final place and moved there when it is whole, so an interrupted run leaves the old
report as it was. Mathematics is typeset by a copy of MathJax inside the site; no page asks the network for anything.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eigencourse.report import pages
from eigencourse.lessons import Lesson, NotebookProblem, Outcome, lessons, run_many
from eigenlib.storage import whole_folder

_MARKER = ".eigenlib-report"  # only a folder that holds this file is ever replaced


def write_report(chosen: list[Lesson], out: Path, parameters: Mapping[str, Any], jobs: int) -> int:
    """Execute, render, move into place, tell. Returns the exit status: 1 if any notebook failed."""
    out = out.resolve()
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / _MARKER).exists())):
        raise NotebookProblem(f"{out} exists and is not a report of ours: choose another --out or move it away.")
    begin = time.perf_counter()
    with whole_folder(out) as building:
        (building / _MARKER).touch()
        outcomes = run_many(chosen, building / "notebooks", parameters, jobs, _tell)
        pages.render(building, lessons(), outcomes, parameters)
    failed = [outcome for outcome in outcomes if outcome.failure]
    print(f"\n{len(outcomes) - len(failed)} of {len(outcomes)} notebooks ran in {time.perf_counter() - begin:.0f} s.")
    for outcome in failed:
        print(f"failed: {outcome.name}, {outcome.failure}", file=sys.stderr)
    print(f"Report: {out / 'index.html'}")
    return int(bool(failed))


def _tell(outcome: Outcome) -> None:
    print(f"{outcome.name:32} {outcome.seconds:6.1f} s  {'failed' if outcome.failure else 'ok'}", flush=True)
