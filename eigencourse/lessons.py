"""Finding, running and storing the notebooks (the engine behind `make report`, `make notebooks` and the tests).

Notebooks are committed with their outputs, and only `refresh` writes those: executed at default parameters, everything that
changes from run to run stripped, so running it twice changes no byte. Reports and tests run copies and leave the
originals alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat

from eigencourse.paths import NOTEBOOKS
from eigenlib import _require
from eigenlib.storage import replace_file

WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# A kernel that says nothing into our progress lines, and that Linux ends as soon as the thread that started it is gone;
# elsewhere ipykernel itself looks every second whether its parent is alive.
KERNEL = ["--log-level=CRITICAL"]
if sys.platform == "linux":
    KERNEL += ["--IPKernelApp.exec_lines=__import__('ctypes').CDLL(None).prctl(1, 9);"]


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

        found = papermill.inspect_notebook(_literally(self.path))
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
    """What became of one run."""

    name: str
    output: Path
    seconds: float
    failure: Failure | None


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
    valid = sorted({name for lesson in chosen for name in lesson.parameters})
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
    problem = _execute(path, output.resolve(), mine, timeout)
    seconds = time.perf_counter() - begin
    if not output.exists():
        nbformat.write(lesson.notebook, output)
    executed = nbformat.read(output, as_version=4)
    hidden = hidden_errors(executed)
    failure = None
    if problem or hidden:
        failure = Failure(_stopped_at(executed) if problem else 0, " ".join((problem or hidden[0]).split()))
    return Outcome(path.stem, output, seconds, failure)


def _execute(path: Path, output: Path, parameters: dict[str, Any], timeout: float | None, starts: int = 3) -> str:
    """Have papermill run a notebook and return what went wrong, "" for nothing; a kernel gets so many chances to start."""
    # papermill and its imports cost a second, which `eigenlib --help` should not pay.
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    logging.getLogger("papermill").setLevel(logging.ERROR)
    try:
        papermill.execute_notebook(
            _literally(path),
            _literally(output),
            parameters=parameters,
            kernel_name="python3",
            progress_bar=False,
            execution_timeout=timeout,
            # how the kernel cuts what is printed into messages is a matter of timing
            coalesce_streams=True,
            # where the kernel runs; papermill's own `cwd` would move this process, with all its threads
            resources={"metadata": {"path": str(output.parent)}},
            extra_arguments=KERNEL,
        )
    except PapermillExecutionError as error:
        return f"{error.ename}: {error.evalue}"
    except DeadKernelError:
        return "its kernel was killed: is there enough memory?"
    except Exception as error:  # such as a cell that never ends: still a failed page, not a failed report
        if isinstance(error, OSError) and error.errno:  # but a disk that is full is no notebook's fault
            raise OSError(error.errno, error.strerror, error.filename or str(output)) from None
        # A plain RuntimeError means that no cell has run: the kernel did not start. Its ports are chosen before it
        # binds them, and on a busy machine another program may take one in between. So, with new ports, again.
        if type(error) is RuntimeError and starts > 1:
            return _execute(path, output, parameters, timeout, starts - 1)
        return f"{type(error).__name__}: {str(error).strip() or 'the kernel stopped'}"
    return ""


def _literally(path: Path) -> str:
    """A path for papermill, which fills in what stands in braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def run_many(
    chosen: list[Lesson],
    folder: Path,
    parameters: Mapping[str, Any],
    jobs: int,
    tell: Callable[[Outcome], None],
    timeout: float | None = None,
) -> list[Outcome]:
    """Execute notebooks side by side, telling each outcome as it comes; returned in reading order.

    Kernels do the work, one process each; a thread here waits for each of them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with ThreadPoolExecutor(min(jobs, len(chosen))) as pool:
        waiting = [pool.submit(run, lesson.path, folder / lesson.path.name, parameters, timeout) for lesson in chosen]
        try:
            for done in as_completed(waiting):
                outcomes.append(done.result())
                tell(outcomes[-1])
        except BaseException:  # Ctrl-C, or a full disk: nobody waits for these notebooks any more
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(waiting, timeout=0.2).not_done:
                _kill_kernels()
            raise
    return sorted(outcomes, key=lambda outcome: outcome.name)


def _kill_kernels() -> None:
    import psutil

    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if "ipykernel_launcher" in child.cmdline():
                child.kill()


def hidden_errors(notebook) -> list[str]:
    """Errors that hide in widgets: a callback that raises does not fail papermill, its traceback lands in widget state."""
    state = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    found = []
    for model in state.values():
        content = model.get("state", {})
        for output in content.get("outputs") or []:
            if output.get("output_type") == "error":
                found.append(f"in a widget: {output.get('ename')}: {output.get('evalue')}")
        if "eigenlib-bug" in str(content.get("value", "")):
            found.append(f"in an explorer: {re.sub('<[^>]+>', '', content['value'])}")
    return found


def refresh(lesson: Lesson) -> Outcome:
    """Execute at default parameters and store the outputs in place; a failing notebook is left as it was."""
    scratch = lesson.path.with_name(f".{lesson.name}.{os.getpid()}.tmp.ipynb")
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


def _stopped_at(executed) -> int:
    """The In [n] of the cell that did not complete."""
    count = 0
    for cell in executed.cells:
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        count += 1
        if cell.metadata.get("papermill", {}).get("status") != "completed":
            return cell.execution_count or count
    return count
