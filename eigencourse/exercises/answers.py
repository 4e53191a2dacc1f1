"""Reading an answer: what checks use to call a learner's function and to name what is wrong (see eigencourse.exercises)."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigencourse.grading.wire import Outcome, Remote, as_numpy, ask
from eigenlib.gridworld import GridWorld

# Mistakes that any exercise can see. Like those of an exercise they go on after "not yet: ".
GENERAL = {
    "raised": "your function stopped with {error}. It was called with {inputs}.",
    "in place": "your function changed what it was given and returned nothing. Compute the new values and return them.",
    "returned nothing": "your function computes something and returns nothing. Is there a `return` at its end?",
    "not a function": "this check wants a function and got {kind}. Hand over its name, without brackets.",
    "not numbers": "numbers were asked for, and this is {kind}.",
    "shape": "the answer has shape {shape}, but {wanted} was asked for.",
    "not finite": "the answer holds NaN or ∞. Look for a division by zero.",
    "complex": "the answer has an imaginary part, which none of the quantities here should have.",
    "too slow": "there was no answer within {seconds:g} seconds. Is there a loop that never ends?",
    "unreadable": "the check could not make sense of this answer ({error}). Compare it with what the exercise asks for.",
}


class Mistake(Exception):
    """A wrong answer, by the name of its mistake; `numbers` fill the blanks of the sentence that explains it."""

    def __init__(self, name: str, **numbers: Any):
        super().__init__(name)
        self.name, self.numbers = name, numbers


class Blank(Exception):
    """Nothing has been filled in yet."""


def is_blank(answer: Any) -> bool:
    """None, `...`, or a container that holds nothing else."""
    if isinstance(answer, (list, tuple, dict)) and len(answer):
        return all(map(is_blank, answer.values() if isinstance(answer, dict) else answer))
    return answer is None or answer is Ellipsis


def call(function: Any, *arguments: Any) -> Any:
    """What the learner's function returns. It gets copies, so it cannot change what the check goes on to use."""
    if isinstance(function, Remote):
        outcome: Outcome = function.ask(arguments)
    elif callable(function):
        outcome = ask(function, arguments)
    else:
        raise Mistake("not a function", kind=kind_of(function))
    if outcome.error:
        raise Mistake("raised", error=outcome.error, inputs=", ".join(map(_described, arguments)))
    if is_blank(outcome.result):
        if outcome.changed or (outcome.result is None and not outcome.stub):
            raise Mistake("in place" if outcome.changed else "returned nothing")
        raise Blank
    return outcome.result


def array(answer: Any, shape: tuple[int, ...] | None = None, finite: bool = True) -> np.ndarray:
    """The answer as real numbers, of this shape if one is given, and without NaN or ∞ unless these are to be looked at."""
    answer = as_numpy(answer)
    values = np.asarray(answer) if not isinstance(answer, (set, dict)) else np.asarray(None)
    if values.dtype.kind not in "iufc":
        raise Mistake("not numbers", kind=kind_of(answer))
    if values.dtype.kind == "c":
        if np.abs(values.imag).max(initial=0) > 1e-9 * np.abs(values).max(initial=1):
            raise Mistake("complex")
        values = values.real
    if shape is not None and values.shape != shape:
        raise Mistake("shape", shape=values.shape, wanted=shape)
    if finite and not np.isfinite(values).all():
        raise Mistake("not finite")
    return values.astype(float)


def scalar(answer: Any) -> float:
    """The answer as one real number; ∞ is allowed, because some limits are."""
    values = np.asarray(as_numpy(answer))
    if values.dtype.kind not in "iuf" or np.isnan(values).any():
        raise Mistake("not numbers", kind=kind_of(answer))
    if values.size != 1:
        raise Mistake("shape", shape=values.shape, wanted="a single number")
    return float(values.reshape(()))


def pair(answer: Any) -> tuple[Any, Any]:
    """The two things that were asked for."""
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise Mistake("a pair")
    return answer[0], answer[1]


def kind_of(thing: Any) -> str:
    return (
        "a function" if callable(thing) or isinstance(thing, Remote) else f"{type(thing).__name__} {str(thing)[:40]!r}"
    )


def _described(argument: Any) -> str:
    if hasattr(argument, "shape") and argument.shape:
        return f"an array of shape {argument.shape}"
    if isinstance(argument, GridWorld):
        return f"a world of {argument.n_states} states"
    return f"{argument:.4g}" if isinstance(argument, float) else repr(argument)
