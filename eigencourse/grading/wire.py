"""Calling a learner's function, here or in another process, with nothing but plain data in between.

The grader runs a submission's code in a process of its own and its checks in another. What passes between the two is JSON
with arrays as base64, never pickle: reading an answer cannot run code. `ask` is what both sides mean by "call".
"""

from __future__ import annotations

import base64
import copy
import dataclasses
import dis
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from eigenlib.gridworld import GridWorld

LARGEST_SPARSE = 2**24  # entries, zeros included: whoever reads one may write it out in full


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a call led to.

    changed: the function wrote into an argument.  error: the exception it stopped with, in words.  stub: it is not written yet.
    """

    result: Any = None
    changed: bool = False
    error: str = ""
    stub: bool = False


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
        return Outcome(stub=True)
    except (Exception, SystemExit) as error:
        return Outcome(error=f"{type(error).__name__}: {' '.join(str(error).split())}"[:300])
    pairs = [(old, new) for old, new in zip(arguments, mine, strict=True) if isinstance(old, np.ndarray)]
    return Outcome(result, changed=not all(np.array_equal(old, new) for old, new in pairs), stub=_is_stub(function))


def _is_stub(function: Callable) -> bool:
    """Whether its body is `pass`, a docstring, or a constant: who forgot the `return` has written more than that."""
    nothing = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "COPY_FREE_VARS"}
    code = getattr(function, "__code__", None)
    return code is not None and {step.opname for step in dis.get_instructions(code)} <= nothing


def serve(namespace: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """In the learner's process: look up a name and, if arguments are given, call it."""
    thing = namespace.get(wanted["name"])
    if "arguments" not in wanted:
        return {"function": True} if callable(thing) else {"value": encode(thing)}
    outcome = ask(thing, decode(wanted["arguments"]))  # type: ignore[arg-type]
    return dataclasses.asdict(dataclasses.replace(outcome, result=None)) | {"result": encode(as_numpy(outcome.result))}


def as_numpy(thing: Any) -> Any:
    """Sparse matrices and torch's tensors, with a gradient or without, as arrays; anything else as it is."""
    if hasattr(thing, "detach"):
        thing = thing.detach().cpu().numpy()
    return thing.toarray() if hasattr(thing, "toarray") else thing


def encode(thing: Any) -> Any:
    """A value as JSON; what has no such form becomes its type's name, which no check accepts as an answer."""
    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if sparse.issparse(thing):
        csr = sparse.csr_array(thing)
        return {"sparse": [encode(part) for part in (csr.data, csr.indices, csr.indptr, csr.shape)]}
    thing = as_numpy(thing)
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
    if kind == "sparse":
        *parts, shape = map(decode, content)
        if not 0 < np.prod([int(side) for side in shape], dtype=float) <= LARGEST_SPARSE:
            raise ValueError(f"a sparse matrix of shape {shape} is larger than any question")
        return sparse.csr_array(tuple(parts), shape=shape)
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
