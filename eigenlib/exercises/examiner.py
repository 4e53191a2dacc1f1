"""One submission, examined (`python -m eigenlib.exercises.examiner`, a process that `eigenlib grade` starts).

All cells run in order in a sandboxed kernel, errors allowed. Then the kernel is asked for the answers, by the names that the
exercises give them, and the learner's functions are called with questions of our own. Only plain data comes back
(`eigenlib.exercises.wire`), and the checks judge it here. What a notebook prints, stores in its outputs, or does to its own
copy of eigenlib does not matter.
"""

from __future__ import annotations

import base64
import contextlib
import json
import queue
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
import psutil

from eigenlib.exercises import Exercise, Feedback, all_exercises, sandbox, wire
from eigenlib.exercises.answers import Mistake
from eigenlib.notebooks import lessons

MEMORY = 4 * 2**30  # bytes a submission may use, and its examiner
CALL = 10.0  # seconds that one call of a learner's function may take
_SERVE = "__import__('eigenlib.exercises.wire', fromlist=['serve']).serve(globals(), '{}')"


class Stopped(Exception):
    """Nothing more can be had from this submission; the message is its status."""


class Kernel:
    """A submission's process, and the only way to it: a request goes in, a reply comes out or does not.

    Only the channel of replies is open, so what a notebook prints is dropped where it arises, however much it is.
    """

    def __init__(self, folder: Path, total: float, call: float):
        from jupyter_client.blocking import BlockingKernelClient
        from jupyter_client.connect import write_connection_file

        self.deadline, self.total, self.call = time.monotonic() + total, total, call
        file, _ = write_connection_file(str(folder / "kernel.json"), transport="ipc", ip=str(folder / "kernel"))
        self.process = sandbox.start_kernel(folder, file)
        self.client = BlockingKernelClient()
        self.client.load_connection_file(file)
        self.client.start_channels(shell=True, iopub=False, stdin=False, hb=False, control=True)
        self._reply(self.client.kernel_info(), 60)

    def run(self, what: str, source: str, seconds: float, expression: str = "") -> dict[str, Any]:
        """Execute and return the reply. TimeoutError if it had to be interrupted, Stopped if the kernel is of no more use."""
        if time.monotonic() > self.deadline:
            raise Stopped(f"timeout: over {self.total:g} s in all, at {what}")
        quietly = {"store_history": False, "allow_stdin": False, "stop_on_error": False}
        request = self.client.execute(source, user_expressions={"reply": expression} if expression else {}, **quietly)
        try:
            with contextlib.suppress(TimeoutError):
                return self._reply(request, min(seconds, self.deadline - time.monotonic()))
            self.client.control_channel.send(self.client.session.msg("interrupt_request", {}))
            self._reply(request, 5)
        except ProcessLookupError:
            raise Stopped(f"broken: {what} ended its process") from None
        except TimeoutError:
            raise Stopped(f"timeout: {what} took over {seconds:g} s and could not be interrupted") from None
        raise TimeoutError

    def ask(self, name: str, **request: Any) -> dict[str, Any]:
        """Have `wire.serve` answer in the kernel; whatever is no such answer becomes a ValueError."""
        content = self.run(name, "", self.call, _SERVE.format(wire.pack({"name": name, **request})))
        shown = content.get("user_expressions", {}).get("reply", {}).get("data", {}).get("text/plain", "")
        return dict(json.loads(base64.b64decode(str(shown).strip("'"), validate=True)))

    def _reply(self, request: str, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(queue.Empty):
                message = self.client.get_shell_msg(timeout=max(0.01, min(0.5, end - time.monotonic())))
                if message.get("parent_header", {}).get("msg_id") == request:
                    return message["content"]
            if self.process.poll() is not None:
                raise ProcessLookupError
            if time.monotonic() > end:
                raise TimeoutError


class Answer(wire.Remote):
    """A learner's function, called where it lives."""

    def __init__(self, kernel: Kernel, name: str):
        self.kernel, self.name, self.stopped = kernel, name, ""

    def ask(self, arguments: tuple) -> wire.Outcome:
        try:
            reply = self.kernel.ask(self.name, arguments=wire.encode(arguments))
        except TimeoutError:
            raise Mistake("too slow", seconds=self.kernel.call) from None
        except Stopped as stopped:  # which the check must not take for an answer
            self.stopped = str(stopped)
            raise
        return wire.Outcome(wire.decode(reply["result"]), bool(reply["changed"]), str(reply["error"]))


def examine(name: str, notebook: bytes, timeout: float, total: float) -> dict[str, Any]:
    """{"lesson": "01", "status": "ok", "marks": {"01.1": "passed", …}} of one submission."""
    try:
        content = nbformat.reads(notebook.decode(), as_version=4)
        sources = [str(cell.source) for cell in content.cells if cell.cell_type == "code"]
        lesson = _lesson(content, Path(name).stem)
    except Exception as error:
        return {"status": f"broken: not a notebook ({type(error).__name__})"}
    if not lesson:
        return {"status": "broken: neither its metadata nor its name says which lesson it is"}
    marks = {one.number: "not graded" for one in all_exercises(lesson)}
    folder = Path(tempfile.mkdtemp(prefix="eigenlib-"))
    status = "broken: its kernel did not start"
    try:
        with contextlib.suppress(TimeoutError, ProcessLookupError):
            kernel = Kernel(folder, total, min(CALL, timeout))
            status = _run_cells(kernel, sources, timeout)
            for one in all_exercises(lesson):
                feedback = _judge(kernel, one)
                marks[one.number] = f"wrong: {feedback.mistake}" if feedback.state == "wrong" else feedback.state
    except Stopped as stopped:
        status = str(stopped)
    finally:
        for child in psutil.Process().children():  # the kernel, and orphans that came to us
            sandbox.end_family(child.pid)
        shutil.rmtree(folder, ignore_errors=True)
    return {"lesson": lesson, "status": status, "marks": marks}


def _lesson(notebook, stem: str) -> str:
    """The number of the lesson with exercises that this is: as its edition says, else as its file is called."""
    number = notebook.metadata.get("eigenlib", {}).get("lesson", "")
    named = [lesson.number for lesson in lessons() if lesson.name in stem]
    return next((str(one) for one in (number, *named) if one and all_exercises(str(one))), "")


def _run_cells(kernel: Kernel, sources: list[str], timeout: float) -> str:
    """Run everything, whatever happens; the status says what did."""
    slow, raised = [], []
    for number, source in enumerate(sources, start=1):
        try:
            content = kernel.run(f"cell [{number}]", source, timeout)
            if content.get("status") == "error":
                raised.append(f"cell [{number}]: {content.get('ename')}")
        except TimeoutError:
            slow.append(f"cell [{number}]")
    if slow:
        return f"timeout: {slow[0]} took over {timeout:g} s"
    return f"ok, but {len(raised)} cells stopped with an error, first {raised[0]}" if raised else "ok"


def _judge(kernel: Kernel, exercise: Exercise) -> Feedback:
    try:
        found = kernel.ask(exercise.answer)
        if not found.get("function"):
            return exercise.judge(wire.decode(found.get("value")))
    except TimeoutError:
        return Feedback("wrong", "too slow")
    except (ValueError, TypeError, KeyError, RecursionError):
        return Feedback("wrong", "unreadable")
    answer = Answer(kernel, exercise.answer)
    feedback = exercise.judge(answer)
    if answer.stopped:
        raise Stopped(answer.stopped)
    return feedback


def main() -> None:
    """A job as JSON comes in, what became of it goes out."""
    sandbox.limit_memory(MEMORY)
    sandbox.adopt_orphans()
    job = json.load(sys.stdin)
    job["notebook"] = base64.b64decode(job["notebook"])
    print(json.dumps(examine(**job)))


if __name__ == "__main__":
    main()
