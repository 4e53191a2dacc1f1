"""Calling a learner's function, here or in another process, with nothing but plain data in between.

The grader runs a submission's code in a process of its own and its checks in another. What passes between the two is JSON
with arrays as base64, never pickle: reading an answer cannot run code. `ask` is what both sides mean by "call".
"""

from __future__ import annotations

import base64
import copy
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from eigenlib.gridworld import GridWorld


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a call led to. changed: the function wrote into an argument; error: the exception it stopped with, in words."""

    result: Any = None
    changed: bool = False
    error: str = ""


class Remote(ABC):
    """A learner's function that lives in another process."""

    @abstractmethod
    def ask(self, arguments: tuple) -> Outcome: ...


def ask(function: Callable, arguments: tuple) -> Outcome:
    """Call with copies of the arguments. NotImplementedError is how a stub may say that it is one: no result, no error."""
    mine = copy.deepcopy(arguments)
    try:
        result = function(*mine)
    except NotImplementedError:
        return Outcome()
    except (Exception, SystemExit) as error:
        return Outcome(error=f"{type(error).__name__}: {' '.join(str(error).split())}"[:300])
    pairs = [(old, new) for old, new in zip(arguments, mine, strict=True) if isinstance(old, np.ndarray)]
    return Outcome(result, changed=not all(np.array_equal(old, new) for old, new in pairs))


def serve(namespace: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """In the learner's process: look up a name and, if arguments are given, call it."""
    thing = namespace.get(wanted["name"])
    if "arguments" not in wanted:
        return {"function": True} if callable(thing) else {"value": encode(thing)}
    outcome = ask(thing, decode(wanted["arguments"]))  # type: ignore[arg-type]
    return {"result": encode(outcome.result), "changed": outcome.changed, "error": outcome.error}


def encode(thing: Any) -> Any:
    """A value as JSON; what has no such form becomes its type's name, which no check accepts as an answer."""
    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if hasattr(thing, "toarray"):
        thing = thing.toarray()
    if isinstance(thing, np.ndarray) and thing.dtype.kind in "biufcU":
        data = base64.b64encode(np.ascontiguousarray(thing).tobytes()).decode()
        return {"array": [thing.dtype.str, list(thing.shape), data]}
    for kind, name in ((tuple, "tuple"), (list, "list"), ((set, frozenset), "set")):
        if isinstance(thing, kind):
            return {name: [encode(one) for one in thing]}
    if isinstance(thing, dict):
        return {"dict": [[encode(key), encode(value)] for key, value in thing.items()]}
    if isinstance(thing, complex):
        return {"complex": [thing.real, thing.imag]}
    if isinstance(thing, GridWorld):
        return {"world": [thing.text, thing.slip]}
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return {"record": {field.name: encode(getattr(thing, field.name)) for field in dataclasses.fields(thing)}}
    return {"ellipsis": 0} if thing is Ellipsis else {"other": type(thing).__name__}


def decode(thing: Any) -> Any:
    """The inverse of `encode`; the other side may be hostile, so an array is never larger than the text it came in."""
    if not isinstance(thing, dict):
        return thing
    ((kind, content),) = thing.items()
    if kind == "array":
        name, shape, data = content
        dtype = np.dtype(str(name))
        if dtype.kind not in "biufcU":
            raise ValueError(f"an array of {dtype} is not plain data")
        return np.frombuffer(base64.b64decode(data), dtype).reshape(shape).copy()
    if kind in ("tuple", "list", "set"):
        return {"tuple": tuple, "list": list, "set": set}[kind](map(decode, content))
    if kind == "dict":
        return {decode(key): decode(value) for key, value in content}
    if kind == "complex":
        return complex(*content)
    if kind == "world":
        return GridWorld.from_text(str(content[0]), slip=float(content[1]))
    if kind == "record":
        return SimpleNamespace(**{str(name): decode(value) for name, value in content.items()})
    return Ellipsis if kind == "ellipsis" else SimpleNamespace(type=str(content))
