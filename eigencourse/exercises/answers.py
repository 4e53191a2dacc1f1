"""Reading an answer: what checks use to call a learner's function and to name what is wrong (see eigencourse.exercises)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eigencourse.grading.wire import Outcome, Remote, ask
from eigenlib.gridworld import GridWorld

# Mistakes that any exercise can see. Like those of an exercise they go on after "not yet: ".
GENERAL = {
    "raised": "your function stopped with {error}. It was called with {inputs}.",
    "in place": "your function changed what it was given and returned nothing. Compute the new values and return them.",
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
        raise Mistake("in place") if outcome.changed else Blank
    return outcome.result


def array(answer: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """The answer as real, finite numbers, of this shape if one is given."""
    if hasattr(answer, "toarray"):
        answer = answer.toarray()
    values = np.asarray(answer) if not isinstance(answer, (set, dict)) else np.asarray(None)
    if values.dtype.kind not in "iufc":
        raise Mistake("not numbers", kind=kind_of(answer))
    if values.dtype.kind == "c":
        if np.abs(values.imag).max(initial=0) > 1e-9 * np.abs(values).max(initial=1):
            raise Mistake("complex")
        values = values.real
    if shape is not None and values.shape != shape:
        raise Mistake("shape", shape=values.shape, wanted=shape)
    if not np.isfinite(values).all():
        raise Mistake("not finite")
    return values.astype(float)


def scalar(answer: Any) -> float:
    """The answer as one real number; ∞ is allowed, because some limits are."""
    values = np.asarray(answer)
    if values.dtype.kind not in "iuf" or np.isnan(values).any():
        raise Mistake("not numbers", kind=kind_of(answer))
    if values.size != 1:
        raise Mistake("shape", shape=values.shape, wanted="a single number")
    return float(values.reshape(()))


def close(left: Any, right: Any, tolerance: float = 1e-6) -> bool:
    """Equal up to rounding, and up to what a long but finite sum leaves out."""
    left, right = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    if left.shape != right.shape:
        return False
    return bool((np.abs(left - right) <= tolerance * np.maximum(1, np.abs(right))).all())


def recognise(answer: Any, wrong: Mapping[str, Any]) -> None:
    """Raise the first mistake whose wrong value the answer has; a list holds several values of one mistake."""
    for name, values in wrong.items():
        if any(close(answer, value) for value in (values if isinstance(values, list) else [values])):
            raise Mistake(name)


def kind_of(thing: Any) -> str:
    return (
        "a function" if callable(thing) or isinstance(thing, Remote) else f"{type(thing).__name__} {str(thing)[:40]!r}"
    )


def _described(argument: Any) -> str:
    if isinstance(argument, np.ndarray):
        return f"an array of shape {argument.shape}"
    if isinstance(argument, GridWorld):
        return f"a world of {argument.n_states} states"
    return f"{argument:.4g}" if isinstance(argument, float) else repr(argument)
