"""One submission, examined (`python -m eigencourse.grading.examiner`, a process that `eigenlib grade` starts).

All cells run in order in a room of their own (`eigencourse.grading.sandbox`), errors allowed. Then the submission is asked for
its answers, by the names that the exercises give them, and the learner's functions are called with questions of our own. Only
plain data comes back (`eigencourse.grading.wire`), and the checks judge it here. What a notebook prints, stores in its outputs,
or does to its own copy of eigenlib does not matter.

A cell or an answer that ends its process, or cannot be interrupted, costs itself only: everything runs again without it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import psutil

from eigencourse.exercises import Exercise, Feedback, all_exercises
from eigencourse.exercises.answers import Mistake
from eigencourse.grading import keeper, runner, sandbox, wire
from eigencourse.lessons import lessons

CALL = 10.0  # seconds that one call of a learner's function may take
START = 60.0  # seconds until the first reply
NOT_STARTED = "broken: its kernel did not start"


class Stopped(Exception):
    """Nothing more can be had from this submission; the message is its status."""


class Gone(Exception):
    """The submission's process has ended, or had to be ended; the message says how."""


class Kernel:
    """A submission's process, and the only way to it: a request goes in, a reply comes out or does not."""

    def __init__(self, deadline: float, call: float, core: int | None, unsafe: bool):
        command = [sys.executable, "-P", "-m", runner.__name__]
        self.deadline, self.call, self.number, self.buffer = deadline, call, 0, b""
        self.room = sandbox.Room(command, core, unsafe)
        assert self.room.process.stdin
        assert self.room.process.stdout
        self.requests, self.replies = self.room.process.stdin.fileno(), self.room.process.stdout.fileno()
        for pipe in (self.requests, self.replies):
            os.set_blocking(pipe, False)

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: Any) -> None:
        self.room.end()

    def ask(self, seconds: float, **request: Any) -> dict[str, Any]:
        """The reply. TimeoutError if it had to be interrupted, Gone if nothing answers any more, Stopped if time is over."""
        if time.monotonic() > self.deadline:
            raise Stopped
        self.number += 1
        line = json.dumps({"id": self.number, **request}).encode() + b"\n"
        try:
            self._write(line, time.monotonic() + seconds)
            with contextlib.suppress(TimeoutError):
                return self._reply(min(time.monotonic() + seconds, self.deadline))
            if time.monotonic() > self.deadline:  # it may not have had its own time
                raise Stopped
            self.room.interrupt()
            self._reply(time.monotonic() + 5)
        except BrokenPipeError:
            raise Gone(self._how()) from None
        except TimeoutError:
            raise Gone(f"took over {seconds:g} s and could not be interrupted") from None
        raise TimeoutError

    def _write(self, line: bytes, end: float) -> None:
        while line:
            if not select.select([], [self.requests], [], max(0, end - time.monotonic()))[1]:
                raise TimeoutError
            line = line[os.write(self.requests, line) :]

    def _reply(self, end: float) -> dict[str, Any]:
        """The next line that answers the last request; what else is in the pipe is nobody's."""
        while True:
            line, newline, rest = self.buffer.partition(b"\n")
            if newline:
                self.buffer = rest
                with contextlib.suppress(ValueError, RecursionError, MemoryError):
                    reply = json.loads(line)
                    if isinstance(reply, dict) and reply.get("id") == self.number:
                        return reply
                continue
            if len(self.buffer) > runner.LARGEST + 1000:  # which our side of the submission does not send
                raise BrokenPipeError
            left = end - time.monotonic()
            if left < 0 or not select.select([self.replies], [], [], left)[0]:
                raise TimeoutError
            if not (data := os.read(self.replies, 2**20)):
                raise BrokenPipeError
            self.buffer += data

    def _how(self) -> str:
        with contextlib.suppress(Exception):
            if self.room.process.wait(5) == keeper.TOO_MUCH:
                return f"took over {keeper.MEMORY / 2**30:g} GB of memory"
        return "ended its process"


class Answer(wire.Remote):
    """A learner's function, called where it lives."""

    def __init__(self, kernel: Kernel, name: str):
        self.kernel, self.name = kernel, name
        self.lost: Gone | Stopped | None = None

    def ask(self, arguments: tuple) -> wire.Outcome:
        try:
            reply = self.kernel.ask(self.kernel.call, name=self.name, arguments=wire.encode(arguments))
        except TimeoutError:
            raise Mistake("too slow", seconds=self.kernel.call) from None
        except (Gone, Stopped) as lost:  # which the check must not take for an answer
            self.lost = lost
            raise
        result, error = wire.decode(reply["result"]), str(reply["error"])
        return wire.Outcome(result, bool(reply["changed"]), error, bool(reply["stub"]))


class Examination:
    """The way through one submission: what was left out so far, and the marks."""

    def __init__(self, sources: list[str], lesson: str, timeout: float, total: float):
        self.sources, self.exercises = sources, all_exercises(lesson)
        self.timeout, self.total, self.deadline = timeout, total, time.monotonic() + total
        self.marks = {one.number: "not graded" for one in self.exercises}
        self.left_out: dict[int, str] = {}  # cells by number, and why
        self.at = "its beginning"

    def run(self, core: int | None, unsafe: bool) -> str:
        """Fill in the marks and give the status."""
        try:
            while True:
                with Kernel(self.deadline, min(CALL, self.timeout), core, unsafe) as kernel:
                    try:
                        kernel.ask(START, source="")
                    except (Gone, TimeoutError):
                        return NOT_STARTED
                    status = self._cells(kernel)
                    if status is not None and self._answers(kernel):
                        return status
        except Stopped:
            return f"timeout: over {self.total:g} s in all, at {self.at}"

    def _cells(self, kernel: Kernel) -> str | None:
        """Run everything, whatever happens, and say what did; None if one cell more must be left out."""
        notes, raised, late = [], [], False
        for number, source in enumerate(self.sources, start=1):
            self.at = f"cell [{number}]"
            try:
                if number in self.left_out:
                    raise Gone(self.left_out[number])
                reply = kernel.ask(self.timeout, source=source)
                if error := reply.get("error") or reply.get("failed"):
                    raised.append(f"{self.at}: {error}")
            except TimeoutError:
                notes.append(f"{self.at} took over {self.timeout:g} s")
                late = True
            except Gone as gone:
                if number not in self.left_out:
                    self.left_out[number] = str(gone)
                    return None
                notes.append(f"{self.at} {gone}, so it was left out")
                late |= "interrupted" in str(gone)
        if raised:
            notes.append(f"{len(raised)} cell{'s' * (len(raised) > 1)} stopped with an error, first {raised[0]}")
        return ("timeout: " if late else "ok, but ") + "; ".join(notes) if notes else "ok"

    def _answers(self, kernel: Kernel) -> bool:
        """Judge what has no mark yet; False if the process went with an answer, which then has its mark."""
        for one in self.exercises:
            if self.marks[one.number] != "not graded":
                continue
            self.at = one.answer
            try:
                feedback = _judge(kernel, one)
            except Gone as gone:
                self.marks[one.number] = f"wrong: {'too slow' if 'interrupted' in str(gone) else gone}"
                return False
            self.marks[one.number] = f"wrong: {feedback.mistake}" if feedback.state == "wrong" else feedback.state
        return True


def _judge(kernel: Kernel, exercise: Exercise) -> Feedback:
    try:
        found = kernel.ask(kernel.call, name=exercise.answer)
        if not found.get("function"):
            return exercise.judge(wire.decode(found["value"]))
    except TimeoutError:
        return Feedback("wrong", "too slow")
    except (ValueError, TypeError, KeyError, RecursionError, MemoryError):
        return Feedback("wrong", "unreadable")
    answer = Answer(kernel, exercise.answer)
    feedback = exercise.judge(answer)
    if answer.lost:
        raise answer.lost
    return feedback


def examine(
    name: str, notebook: bytes, timeout: float, total: float, core: int | None = None, unsafe: bool = False
) -> dict[str, Any]:
    """{"lesson": "01", "status": "ok", "marks": {"01.1": "passed", …}, "ours": False} of one submission; ours: our fault."""
    try:
        content = nbformat.reads(notebook.decode(), as_version=4)
        sources = [str(cell.source) for cell in content.cells if cell.cell_type == "code"]
        lesson = _lesson(content, Path(name).stem)
    except Exception as error:
        return {"status": f"broken: not a notebook ({type(error).__name__})"}
    if not lesson:
        return {"status": "broken: neither its metadata nor its name says which lesson it is"}
    examination = Examination(sources, lesson, timeout, total)
    status = examination.run(core, unsafe)
    return {"lesson": lesson, "status": status, "marks": examination.marks, "ours": status == NOT_STARTED}


def _lesson(notebook, stem: str) -> str:
    """The number of the lesson with exercises that this is: as its edition says, else as its file is called."""
    number = notebook.metadata.get("eigenlib", {}).get("lesson", "")
    named = [lesson.number for lesson in lessons() if lesson.name in stem]
    return next((str(one) for one in (number, *named) if one and all_exercises(str(one))), "")


def main() -> None:
    """A job as JSON comes in, what became of it goes out."""
    keeper.limit()
    sandbox.adopt_orphans()
    sandbox.end_with_parent()
    job = json.load(sys.stdin)
    job["notebook"] = base64.b64decode(job["notebook"])
    if os.getppid() != job.pop("parent"):  # who has ended before we asked to end with it
        return
    try:
        print(json.dumps(examine(**job)))
    finally:
        # Orphans that came to us, where there is no room that ends with its keeper.
        for child in psutil.Process().children():
            sandbox.end_family(child.pid)


if __name__ == "__main__":
    main()
