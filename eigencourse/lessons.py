"""Finding, running and storing the notebooks (the engine behind `make report`, `make notebooks` and the tests).

Notebooks are committed with their outputs, and only `refresh` writes those: executed at default parameters, everything that
changes from run to run stripped, so running it twice changes no byte. Reports and tests run copies and leave the
originals alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import nbformat

from eigencourse.execution import WIDGET_VIEW, execute, hidden_errors, kill_kernels, literally, stopped_at
from eigencourse.paths import NOTEBOOKS
from eigenlib import _require
from eigenlib.paths import CACHE, DATA, PACKAGE
from eigenlib.storage import alone_in, read_description, replace_file, sha256, write_description

PROGRESS = CACHE / "notebooks" / "stored.json"  # what an interrupted `eigenlib notebooks` has stored


class NotebookProblem(ValueError):
    """A request that cannot be carried out; the message names what is valid."""


@dataclass(frozen=True)
class Lesson:
    """One notebook of the course."""

    path: Path

    @property
    def number(self) -> str:
        return self.path.stem[:2]

    @property
    def name(self) -> str:
        return self.path.stem

    @cached_property
    def notebook(self):
        return nbformat.read(self.path, as_version=4)

    @property
    def title(self) -> str:
        """The first heading, without its number."""
        heading = re.search(r"^#\s+(.+)$", self.notebook.cells[0].source, flags=re.MULTILINE)
        return heading.group(1).strip() if heading else self.name

    @property
    def question(self) -> str:
        """The bold line under the heading: the question the lesson answers."""
        bold = re.search(r"^\*\*(.+?)\*\*", self.notebook.cells[0].source, flags=re.MULTILINE | re.DOTALL)
        return " ".join(bold.group(1).split()) if bold else ""

    @property
    def budget(self) -> float:
        """Seconds the notebook may take at `quick` on two cores."""
        return float(self.notebook.metadata["eigenlib"]["budget_seconds"])

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The notebook's parameters and their defaults as source text."""
        import papermill

        found = papermill.inspect_notebook(literally(self.path))
        return {name: entry["default"] for name, entry in found.items()}


@dataclass(frozen=True)
class Failure:
    """Where a notebook stopped: the cell's number as Jupyter shows it, In [n], 0 if unknown, and the error in one line."""

    cell: int
    error: str

    def __str__(self) -> str:
        return f"cell [{self.cell}]: {self.error}" if self.cell else self.error


@dataclass(frozen=True)
class Outcome:
    """What became of one run; kept: an earlier run, interrupted since, had finished it."""

    name: str
    output: Path
    seconds: float
    failure: Failure | None
    kept: bool = False


def lessons(only: Iterable[str] | None = None) -> list[Lesson]:
    """The notebooks in reading order; `only` picks by number or name and refuses what is not there."""
    everything = [Lesson(path) for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))]
    if not everything:
        raise NotebookProblem(
            f"There are no notebooks in {NOTEBOOKS}: eigenlib was installed without its repository, so get that, too."
        )
    if only is None:
        return everything
    words = [_require.text(word, "only") for word in _require.several(only, "only", "numbers or names of notebooks")]
    wanted = [word.strip().removesuffix(".ipynb") for word in words if word.strip()]
    valid = {key: lesson for lesson in everything for key in (lesson.number, lesson.name)}
    unknown = [word for word in wanted if word not in valid]
    if unknown or not wanted:
        named = ", ".join(repr(word) for word in unknown) or "an empty list"
        raise NotebookProblem(f"No notebook {named}; there are {', '.join(lesson.name for lesson in everything)}.")
    return [lesson for lesson in everything if lesson in [valid[word] for word in wanted]]


def require_parameters(chosen: Iterable[Lesson], parameters: Mapping[str, Any]) -> None:
    """Refuse a parameter that none of the chosen notebooks has: papermill itself would only warn."""
    valid = sorted({name for lesson in chosen for name in lesson.parameters}) if parameters else []
    unknown = [name for name in parameters if name not in valid]
    if unknown:
        raise NotebookProblem(
            f"No chosen notebook has a parameter {', '.join(map(repr, unknown))}; the valid ones are {', '.join(valid)}."
        )


def run(path: Path, output: Path, parameters: Mapping[str, Any], timeout: float | None = None) -> Outcome:
    """Execute one notebook into `output` (written even if it fails) in the folder that holds it."""
    # The lessons' matrices are small: one thread is fastest, and two that wait for a busy core take five times as long.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    lesson, begin = Lesson(path), time.perf_counter()
    mine = {name: value for name, value in parameters.items() if name in lesson.parameters}
    problem = execute(path, output.resolve(), mine, timeout)
    seconds = time.perf_counter() - begin
    if not output.exists():
        nbformat.write(lesson.notebook, output)
    executed = nbformat.read(output, as_version=4)
    hidden = hidden_errors(executed)
    failure = None
    if problem or hidden:
        failure = Failure(stopped_at(executed) if problem else 0, " ".join((problem or hidden[0]).split()))
    return Outcome(path.stem, output, seconds, failure)


def run_many(
    chosen: list[Lesson],
    folder: Path,
    parameters: Mapping[str, Any],
    jobs: int,
    tell: Callable[[Outcome], None],
    timeout: float | None = None,
) -> list[Outcome]:
    """Execute notebooks side by side, telling each outcome as it comes; returned in reading order.

    Kernels do the work, one process each; a thread here waits for each of them. What an earlier run has left in the folder
    is not executed again if it came from the same notebook, library and parameters; everything else there goes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = {lesson.path.name for lesson in chosen}
    for leftover in (path for path in folder.glob("*.ipynb") if path.name not in names):
        leftover.unlink()
    outcomes = []
    with ThreadPoolExecutor(min(jobs, len(chosen))) as pool:
        waiting = [pool.submit(_run_or_keep, lesson, folder, parameters, timeout) for lesson in chosen]
        try:
            for done in as_completed(waiting):
                outcomes.append(done.result())
                tell(outcomes[-1])
        except BaseException:  # Ctrl-C, or a full disk: nobody waits for these notebooks any more
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(waiting, timeout=0.2).not_done:
                kill_kernels()
            for outcome in (done.result() for done in waiting if not done.cancelled() and not done.exception()):
                if outcome.failure:  # its kernel was killed, just now
                    outcome.output.unlink()
            raise
    return sorted(outcomes, key=lambda outcome: outcome.name)


def _run_or_keep(lesson: Lesson, folder: Path, parameters: Mapping[str, Any], timeout: float | None) -> Outcome:
    """Execute into the folder under another name first, so that what has its own name there is whole."""
    output, part, made_from = (
        folder / lesson.path.name,
        folder / f".{lesson.name}.part.ipynb",
        _origin(lesson, parameters),
    )
    if output.exists():
        run_before = nbformat.read(output, as_version=4).metadata.get("eigenlib", {}).get("run", {})
        if run_before.get("origin") == made_from:
            return Outcome(lesson.name, output, run_before["seconds"], None, kept=True)
    try:
        outcome = run(lesson.path, part, parameters, timeout)
        executed = nbformat.read(part, as_version=4)
    finally:
        part.unlink(missing_ok=True)
    if outcome.failure is None:
        about = executed.metadata.setdefault("eigenlib", nbformat.NotebookNode())
        about["run"] = {"origin": made_from, "seconds": outcome.seconds}
    replace_file(output, (nbformat.writes(executed) + "\n").encode())
    return replace(outcome, name=lesson.name, output=output)


def _origin(lesson: Lesson, parameters: Mapping[str, Any]) -> str:
    """A checksum of what an executed notebook came from: itself, its parameters, the library and its data."""
    mine = sorted((name, repr(value)) for name, value in parameters.items() if name in lesson.parameters)
    return sha256(f"{sha256(lesson.path.read_bytes())} {mine} {_code()}".encode())


@cache
def _code() -> str:
    files = [path for folder in (PACKAGE, Path(__file__).parent) for path in sorted(folder.rglob("*.py"))]
    files += [*sorted(PACKAGE.rglob("*.js")), *DATA.glob("CHECKSUMS.sha256")]
    return sha256(b"".join(path.read_bytes() for path in files))


def refresh_many(chosen: list[Lesson]) -> Iterator[Outcome]:
    """Refresh lessons one by one; after a kill, the same command goes on where it was."""
    with alone_in(PROGRESS.parent):
        for leftover in (path for lesson in chosen for path in lesson.path.parent.glob(".*.part.ipynb")):
            leftover.unlink(missing_ok=True)
        names, stored = [lesson.name for lesson in chosen], {}
        if PROGRESS.exists() and (before := read_description(PROGRESS) or {}).get("chosen") == names:
            stored = before["stored"]
        for lesson in chosen:
            if stored.get(lesson.name) == _origin(lesson, {}):
                yield Outcome(lesson.name, lesson.path, 0.0, None, kept=True)
                continue
            outcome = refresh(lesson)
            if outcome.failure is None:
                stored[lesson.name] = _origin(lesson, {})
                write_description(PROGRESS, {"chosen": names, "stored": stored})
            yield outcome
        PROGRESS.unlink(missing_ok=True)


def refresh(lesson: Lesson) -> Outcome:
    """Execute at default parameters and store the outputs in place; a failing notebook is left as it was."""
    scratch = lesson.path.with_name(f".{lesson.name}.part.ipynb")
    try:
        outcome = run(lesson.path, scratch, {})
        if outcome.failure is None:
            executed = clean(nbformat.read(scratch, as_version=4))
            replace_file(lesson.path, (nbformat.writes(executed) + "\n").encode())
        return outcome
    finally:
        scratch.unlink(missing_ok=True)


def clean(notebook):
    """The notebook without anything that changes from run to run: timings, widget state and views, versions, loose ids."""
    kept = notebook.metadata.get("eigenlib", {})
    notebook.metadata = nbformat.from_dict(
        {
            "eigenlib": kept,
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: set[str] = set()
    for position, cell in enumerate(notebook.cells):
        if not cell.get("id") or cell["id"] in seen:
            cell["id"] = hashlib.sha256(f"{position}:{cell.source}".encode()).hexdigest()[:8]
        seen.add(cell["id"])
        keep = {key: cell.metadata[key] for key in ("tags", "jupyter", "eigenlib") if cell.metadata.get(key)}
        cell.metadata = nbformat.from_dict(keep)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
    return notebook
