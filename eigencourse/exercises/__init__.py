"""Exercises and their checks: `from eigencourse.exercises import check`, then `check.td_update(my_td_update)` in a lesson.

A check is a function in the module of its lesson, decorated with `@exercise`. It asks whether the answer is right, on random
worlds, a long corridor and the four rooms, so any right answer passes; where one fails, it looks for a classic mistake and
raises `Mistake("its name")`, mostly by `compare`, to which it gives the right value and the wrong ones:

    @exercise
    def successor(answer):
        \"\"\"Ψ from T and γ.\"\"\"
        compare(answer, chains(4), values, numbers)
        return "what this shows."

Its number, difficulty, minutes, and what a learner reads about each mistake stand beside it in the lesson's .toml; the
instructor's notes find them there too. The learner's answer is called `my_` + the check's name. An answer left blank is "not
attempted yet"; nothing that a learner writes stops the notebook.

To add an exercise: the check and its words, as above; in `tests/eigencourse/answers/` two right answers or more, and a wrong
one for each mistake; in the notebook four cells in a row, where the lesson has just taught what is needed and not yet shown
the answer: the words, under the heading that `Exercise.heading` gives; the blank, tagged `exercise`; `check.name(my_name)`,
tagged `check`; and a solution, tagged `solution` and folded, from `# A solution` to `check.name(our_name)`. The tests say
what is missing.
"""

from __future__ import annotations

import html
import pkgutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

import numpy as np
from IPython.display import display

from eigencourse.exercises.answers import GENERAL, Blank, Mistake, is_blank

MARKS = {"passed": "✔", "wrong": "✘", "blank": "·"}
_SAYS = {"passed": " passed: ", "wrong": ", not yet: ", "blank": ": not attempted yet."}
_KEY = "eigenlib"  # where a record travels in an output's metadata, as the ledger's do


@dataclass(frozen=True)
class Feedback:
    """What became of an answer: its state, the mistake's name if one was recognised, and a sentence for the learner."""

    state: str
    mistake: str = ""
    text: str = ""


@dataclass(frozen=True)
class Exercise:
    """One exercise: `number` "03.1" is the first of lesson 03; `mistakes` maps names to what a learner reads."""

    number: str
    name: str
    title: str
    difficulty: int
    minutes: int
    mistakes: Mapping[str, str]
    function: Callable[[Any], str]

    @property
    def lesson(self) -> str:
        return self.number[:2]

    @property
    def answer(self) -> str:
        """The name under which a learner's notebook holds the answer."""
        return f"my_{self.name}"

    @property
    def heading(self) -> str:
        return f"Exercise {self.number} · {'●' * self.difficulty} · {self.minutes} min"

    def judge(self, answer: Any) -> Feedback:
        """The verdict on an answer; whatever it is, this does not raise."""
        if is_blank(answer):
            return Feedback("blank")
        try:
            with np.errstate(all="ignore"):  # NaN and ∞ are told in a sentence
                return Feedback("passed", text=self.function(answer))
        except Blank:
            return Feedback("blank")
        except Mistake as mistake:
            sentence = self.mistakes.get(mistake.name) or GENERAL[mistake.name]
            return Feedback("wrong", mistake.name, sentence.format(**mistake.numbers))
        except Exception as error:  # an answer nobody thought of must not stop the notebook
            sentence = GENERAL["unreadable"].format(error=f"{type(error).__name__}: {error}")
            return Feedback("wrong", "unreadable", sentence)

    def show(self, answer: Any = None) -> None:
        """Judge and display: one line to read, the record in the output's metadata."""
        feedback = self.judge(answer)
        line = f"{MARKS[feedback.state]} Exercise {self.number}{_SAYS[feedback.state]}{feedback.text}"
        entry = {"number": self.number, "name": self.name, "state": feedback.state, "mistake": feedback.mistake}
        box = f'<div class="ledger exercise {feedback.state}">{html.escape(line)}</div>'
        display({"text/plain": line, "text/html": box}, metadata={_KEY: {"exercise": entry}}, raw=True)


_registry: dict[str, Exercise] = {}  # by name


@cache
def _words(module: str) -> dict[str, dict[str, Any]]:
    """{check: its number, difficulty, minutes, mistakes} of a lesson's module."""
    return tomllib.loads(files(__name__).joinpath(f"{module.rpartition('.')[2]}.toml").read_text(encoding="utf-8"))


def exercise(function: Callable[[Any], str]) -> Callable[[Any], str]:
    """Register a check under its function's name; the first line of its docstring is the exercise's title."""
    title = (function.__doc__ or "").strip().splitlines()[0].rstrip(".")
    new = Exercise(
        name=function.__name__, title=title, function=function, **_words(function.__module__)[function.__name__]
    )
    for old in _registry.values():
        if (old.name == new.name) != (old.number == new.number):
            raise ValueError(f"Exercise {new.number} {new.name!r} clashes with {old.number} {old.name!r}.")
    _registry[new.name] = new
    return function


def all_exercises(lesson: str | None = None) -> list[Exercise]:
    """Every exercise, or those of one lesson ("03"), in order. Modules called lesson… are found by themselves."""
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("lesson"):
            import_module(f"{__name__}.{module.name}")
    everything = sorted(_registry.values(), key=lambda one: one.number)
    return [one for one in everything if lesson in (None, one.lesson)]


def collect(notebook) -> list[dict[str, str]]:
    """The records of all checks in an executed notebook, in order."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    found = [output.get("metadata", {}).get(_KEY, {}).get("exercise") for output in outputs]
    return [dict(entry) for entry in found if entry]


class _Checks:
    """`check.name(answer)` for every exercise; tab completion lists them."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        for one in all_exercises():
            if one.name == name:
                return one.show
        raise AttributeError(f"There is no check {name!r}; there are {', '.join(dir(self))}.")

    def __dir__(self) -> list[str]:
        return [one.name for one in all_exercises()]


check = _Checks()
