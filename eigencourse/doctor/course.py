"""The evening before a class: does every lesson run here, and does every solution pass? (`eigenlib doctor --course`)"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat

from eigencourse import exercises
from eigencourse.lessons import Lesson, Outcome, run_many

LONGEST = 900.0  # seconds after which a single cell counts as hanging


@dataclass(frozen=True)
class Line:
    """One lesson of the pass sheet; `problem` is empty where it is ready."""

    name: str
    seconds: float
    passed: int
    exercises: int
    problem: str

    def __str__(self) -> str:
        solutions = (
            f"{self.passed} of {self.exercises} solutions pass" if self.exercises else "no exercises with a check"
        )
        state = f"failed  {self.problem}" if self.problem else "ok"
        return f"{self.name:34} {self.seconds:6.1f} s  {solutions:26}  {state}"


def rehearse(chosen: list[Lesson], jobs: int, tell: Callable[[Line], None]) -> list[Line]:
    """Run the lessons at their default numbers in a scratch folder, telling each line as it comes."""
    lines = {}

    def done(outcome: Outcome) -> None:
        lines[outcome.name] = examined(outcome)
        tell(lines[outcome.name])

    with tempfile.TemporaryDirectory(prefix="eigenlib-rehearsal-") as folder:
        run_many(chosen, Path(folder), {}, jobs, done, timeout=LONGEST)
    return [lines[lesson.name] for lesson in chosen]


def examined(outcome: Outcome) -> Line:
    """What an executed notebook says about itself: where it stopped, and which exercises a solution passes."""
    asked = {one.number for one in exercises.all_exercises(outcome.name[:2])}
    records = exercises.collect(nbformat.read(outcome.output, as_version=4))
    passed = asked & {entry["number"] for entry in records if entry["state"] == "passed"}
    problem = ""
    if outcome.failure:
        cell = f"in cell [{outcome.failure.cell}]: " if outcome.failure.cell else ""
        problem = cell + outcome.failure.error
    elif asked - passed:
        problem = f"no solution passes for {', '.join(sorted(asked - passed))}"
    return Line(outcome.name, outcome.seconds, len(passed), len(asked), problem)
