"""The fuzz behind test_fuzz.py: what is thrown at a parameter, and the one rule for what may become of it.

A table gives for every function a right value of each parameter and its Kind. Every parameter in turn is then replaced, the
others staying right, by each of the STRANGERS, which no parameter in particular expects, and by what the Kind itself knows to
be wrong. The call must refuse, in one sentence of ours, or it must be right: the value says the same in other words
(`same`) and gives the same answer, or it is one that may be given, too (`fine`). Anything else is reported: a raw exception, a
sentence that is none, a value taken without a word, an answer that changed, a call that does not come back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import dis
import faulthandler
import math
import os
import re
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

# Of CPU that one call may take, compiling included: far more than any needs, and a busy machine changes nothing.
SECONDS = 60
MEMORY = 6 * 2**30  # bytes that the fuzz may take beyond what it began with
HUGE = 10**30  # more than 64 bits can hold

Make = Callable[[], Any]


class Hang(BaseException):
    """A call that did not come back in time."""


def made(*values: Any) -> dict[str, Make]:
    """{label: a function that gives the value}; for values that a call cannot change."""
    return {_label(value): (lambda value=value: value) for value in values}


def _label(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype} {value.shape}"
    try:
        text = repr(value)
    except Exception:  # what was taken without a word may not even be shown
        return f"a broken {type(value).__name__}"
    return text if len(text) < 60 else text[:57] + "…"


STRANGERS: dict[str, Make] = made(
    None, True, 1.5, -1, HUGE, math.nan, math.inf, -math.inf, 1j, "nonsense", "", b"\xff"
) | {
    "[]": lambda: [],
    "[1, 2, 3]": lambda: [1, 2, 3],
    "ragged": lambda: [[1.0, 2.0], [3.0]],
    "[nan, 1]": lambda: np.array([math.nan, 1.0]),
    "(2, 0)": lambda: np.zeros((2, 0)),
    "{}": lambda: {},
    "object": object,
    "function": lambda: _label,
    "generator": lambda: (k for k in (1, 2)),
}


@dataclass(frozen=True)
class Kind:
    """right: makes a right value.  bad, same, fine: more values by label; `fine` may also name strangers, and `skip` those
    whose fate is not ours to decide: what a function that the user gave makes of its arguments, say."""

    right: Make
    bad: Mapping[str, Make] = field(default_factory=dict)
    same: Mapping[str, Make] = field(default_factory=dict)
    fine: Mapping[str, Make | None] = field(default_factory=dict)
    skip: tuple[str, ...] = ()

    def cases(self) -> Iterator[tuple[str, Make, str]]:
        """(label, value, "bad" | "same" | "fine") of everything to try."""
        named = {label: make for label, make in self.fine.items() if make is not None}
        for label, make in {**STRANGERS, **self.bad, **named, **self.same}.items():
            if label not in self.skip:
                yield label, make, "same" if label in self.same else "fine" if label in self.fine else "bad"

    def also(self, *labels: str, **values: Any) -> Kind:
        """The same kind, for which these strangers and these values are fine, too."""
        more = dict.fromkeys(labels) | {label: (lambda value=value: value) for label, value in values.items()}
        return dataclasses.replace(self, fine={**self.fine, **more})

    def without(self, *labels: str) -> Kind:
        return dataclasses.replace(self, skip=labels)

    def refusing(self, **values: Make) -> Kind:
        return dataclasses.replace(self, bad={**self.bad, **values})


def whole(value: int, least: int | None = 1, most: int | None = None, none: bool = False) -> Kind:
    """A whole number; a float is none, not even 2.0, and True is none either."""
    wrong = [float(value), str(value), [value], False]
    wrong += [] if least is None else [least - 1]
    wrong += [] if most is None else [most + 1]
    number = [
        label
        for label, at in (("-1", -1), (str(HUGE), HUGE))
        if (least is None or at >= least) and (at <= most if most is not None else least is None)
    ]
    fine = dict.fromkeys([*number, *(["None"] if none else [])])
    return Kind(lambda: value, made(*wrong), made(np.int64(value)), fine)


def real(value: float, low: float = -math.inf, high: float = math.inf, ends: str = "[]", none: bool = False) -> Kind:
    """A finite number between low and high, these included where `ends` says so."""

    def inside(number: float) -> bool:
        above = number >= low if ends[0] == "[" else number > low
        return math.isfinite(number) and above and (number <= high if ends[1] == "]" else number < high)

    edges = [edge for edge in (low, high) if math.isfinite(edge)]
    beyond = [low - 0.01, high + 0.01] if edges else []
    wrong = [number for number in (*edges, *beyond) if math.isfinite(number) and not inside(number)]
    fine = [label for label, number in (("1.5", 1.5), ("-1", -1.0), (str(HUGE), float(HUGE))) if inside(number)]
    fine += [_label(edge) for edge in edges if inside(edge)] + (["None"] if none else [])
    more = {_label(edge): (lambda edge=edge: edge) for edge in edges if inside(edge)}
    wrong_ones = made(*wrong, str(value), [value], np.array([value, value]), False)
    return Kind(lambda: value, wrong_ones, made(np.float64(value)), dict.fromkeys(fine) | more)


def seed(none: bool = True, generator: bool = True, value: int = 0) -> Kind:
    """A seed: any whole number from 0 on, however large; a Generator and None where the function says so."""
    fine: dict[str, Make | None] = {str(HUGE): None} | ({"None": None} if none else {})
    more = {"Generator": lambda: np.random.default_rng(0)}
    bad = made(float(value), str(value), [value], False, -7)
    return Kind(
        lambda: value, bad | ({} if generator else more), made(np.int64(value)), fine | (more if generator else {})
    )


def flag(value: bool) -> Kind:
    """True or False; words and numbers that Python takes for true are not meant."""
    bad = made("False", "yes", 0, 1, 2, np.array([True, False]))
    return Kind(lambda: value, bad, made(np.bool_(value)), {"True": None})


def choice(value: str, *others: str, none: bool = False) -> Kind:
    fine = {other: (lambda other=other: other) for other in others}
    upper = {value.upper(): (lambda: value.upper())} if value.upper() != value else {}
    bad = {"[value]": (lambda: [value]), "array": (lambda: np.array([value, value])), **upper}
    return Kind(lambda: value, bad, {}, fine | ({"None": None} if none else {}))


def text(value: str = "a sentence of some words", fine: tuple[str, ...] = ("nonsense", "")) -> Kind:
    return Kind(lambda: value, made(0, [value]), {}, dict.fromkeys(map(repr, fine)))


def array(
    right: Make,
    finite: bool = True,
    fine: tuple[str, ...] = (),
    empty: bool = False,
    rows: bool = False,
    complex_too: bool = False,
    whole_too: bool = False,
) -> Kind:
    """An array of numbers. rows: how many there are is free; empty: none at all is fine; finite: NaN and ∞ are not."""
    array = np.asarray(right())
    bad: dict[str, Make] = {
        "one axis more": lambda: np.asarray(right())[None],
        "words": lambda: np.full(array.shape, "word"),
        "objects": lambda: np.full(array.shape, None, dtype=object),
    }
    if array.ndim:
        bad["one axis less"] = lambda: np.asarray(right())[0]
    if not rows and array.ndim:
        bad["one row less"] = lambda: np.asarray(right())[:-1]
        bad["one row more"] = lambda: np.concatenate([np.asarray(right()), np.asarray(right())[-1:]])
    if array.ndim > 1:
        bad["one column less"] = lambda: np.asarray(right())[:, :-1]
    if not empty:
        bad["empty"] = lambda: np.asarray(right())[:0]
    if not complex_too:
        bad["complex"] = lambda: np.asarray(right()) + 1j
    if array.dtype.kind == "f":
        for name, number in (("with NaN", math.nan), ("with ∞", math.inf)):
            if finite:
                bad[name] = lambda number=number: _spoilt(right(), number)
    elif array.dtype.kind in "iu" and not whole_too:
        bad["with a fraction"] = lambda: _spoilt(np.asarray(right()).astype(float), 0.5)
    same: dict[str, Make] = {
        "as list": lambda: np.asarray(right()).tolist(),
        "strided": lambda: np.repeat(np.asarray(right()), 2, axis=0)[::2],
    }
    if array.ndim > 1:
        same["Fortran order"] = lambda: np.asfortranarray(right())
    return Kind(right, bad, same, dict.fromkeys(fine))


def square(right: Make, fine: tuple[str, ...] = ()) -> Kind:
    """An (S, S) matrix, dense or sparse."""
    kind = array(right, fine=fine)
    bad = dict(kind.bad) | {"sparse, one row less": lambda: sparse.csr_matrix(right()[:-1])}
    return dataclasses.replace(kind, bad=bad, same={**kind.same, "sparse": lambda: sparse.csr_array(right())})


def thing(right: Make, fine: tuple[str, ...] = (), **bad: Make) -> Kind:
    """An object of a class of its own: no stranger can stand for it."""
    return Kind(right, bad, {}, dict.fromkeys(fine))


def sequence(right: Make, fine: tuple[str, ...] = (), **bad: Make) -> Kind:
    """Several things in a row: a list, a tuple and a generator of them are the same."""
    same = {
        "tuple": lambda: tuple(right()),
        "iterator": lambda: iter(list(right())),
        "generator of them": lambda: (one for one in right()),
    }
    return Kind(right, {"with None": lambda: [*right(), None], **bad}, same, dict.fromkeys(fine))


def path(right: Make, fine: tuple[str, ...] = (), **bad: Make) -> Kind:
    """A path, as text or Path; a number, nothing and a NUL byte are none."""
    return Kind(right, made("\0", 3) | bad, {"as text": lambda: str(right())}, dict.fromkeys(fine))


def _spoilt(values: Any, number: float) -> np.ndarray:
    values = np.array(values)
    values.flat[-1] = number
    return values


# --- the rule -----------------------------------------------------------------------------------------------------------


def fault_of(error: BaseException, names: set[str]) -> str:
    """What is wrong with an exception as a refusal; "" if it is one sentence of ours. names: words it may begin with."""
    said = f"{type(error).__name__}: {error}"
    if not isinstance(error, ValueError | OSError | RuntimeError) or type(error) is UnicodeDecodeError:
        return f"raw {said}"
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    ours = at is not None and at.tb_frame.f_globals.get("__name__", "").split(".")[0] in ("eigenlib", "eigencourse")
    if not ours or dis.opname[at.tb_frame.f_code.co_code[at.tb_lasti]] != "RAISE_VARARGS":
        return f"raw {said}"
    return not_a_sentence(str(error), names)


def not_a_sentence(said: str, names: set[str]) -> str:
    """Why this is not one clear sentence, "" if it is; a name (of a parameter, a game, a file) may stand for the capital."""
    word = said.split(" ")[0] if said else ""
    first = re.split(r"[,:.\[]", word)[0]
    if not said or "\n" in said or not said.endswith((".", "?")) or len(said.split()) < 4:
        return f"no sentence: {said!r}"
    if not (said[0].isupper() or first in names or said[0] in "γ'-0123456789" or re.search(r"[a-z0-9][/.][a-z]", word)):
        return f"does not begin like one: {said!r}"
    return ""


def same_answer(one: Any, other: Any) -> bool:
    """Whether two results are equal to the last digit; what cannot be compared counts as equal if it is of one type."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.dtype.kind in "fc" and other.dtype.kind in "fc":
            return one.shape == other.shape and np.allclose(one, other, rtol=1e-12, atol=1e-12, equal_nan=True)
        return one.shape == other.shape and np.array_equal(one, other)
    if sparse.issparse(one) or sparse.issparse(other):
        dense = [part.toarray() if sparse.issparse(part) else part for part in (one, other)]
        return same_answer(*dense)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_answer(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_answer, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12) or (one != one and other != other)
    if isinstance(one, int | str | bytes | bool) or one is None:
        return one == other
    if dataclasses.is_dataclass(one):
        if type(one) is not type(other):
            return False
        return all(same_answer(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    return True


@contextlib.contextmanager
def guarded(what: str) -> Iterator[None]:
    """A time limit around one call: first a Hang that can be reported; where only C code runs, the end of the process."""

    def stop(_signal, _frame):
        raise Hang(what)

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    faulthandler.dump_traceback_later(10 * SECONDS, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def bounded_memory() -> Iterator[None]:
    """An allocation that no machine has room for fails here as it would elsewhere, instead of taking the machine down."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        now = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def outcome(call: Make, what: str) -> tuple[Any, BaseException | None]:
    """What a call gave, or raised."""
    with guarded(what), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)  # numpy's way to say that a NaN is being made
        try:
            return call(), None
        except Hang as hang:
            return None, hang
        except Exception as error:
            return None, error


def fuzz(
    name: str, function: Callable, kinds: Mapping[str, Kind], names: set[str] = frozenset()
) -> tuple[int, list[str]]:
    """Try everything on every parameter of one function: how many cases there were, and what was wrong with them.

    names: of parameters of other functions, which this one may have called, and which may be the first word of a sentence.
    """
    faults: list[str] = []

    def call(changed: str = "", make: Make | None = None):
        arguments = {key: kind.right() for key, kind in kinds.items() if key != changed}
        if make is not None:
            arguments[changed] = make()
        positional = [arguments.pop(key) for key in list(arguments) if key == "self"]
        return function(*positional, **arguments)

    expected, error = outcome(call, name)
    if error is not None:
        return 1, [f"{name}: the right call fails: {type(error).__name__}: {error}"]
    count, names = 1, {*kinds, *names}
    for key, kind in kinds.items():
        for label, make, standing in kind.cases() if key != "self" else ():
            count += 1
            answer, error = outcome(lambda key=key, make=make: call(key, make), f"{name}({key}={label})")
            if isinstance(error, Hang):
                fault = f"did not come back within {SECONDS} s of CPU"
            elif error is not None:
                fault = fault_of(error, names)
                if not fault and standing != "bad":
                    fault = f"refuses what it should take: {error}"
            elif standing == "bad":
                fault = f"takes it without a word: {_label(answer)}"
            else:
                fault = "" if standing == "fine" or same_answer(answer, expected) else "gives another answer"
            if fault:
                faults.append(f"{name}({key}={label}): {fault}")
    return count, faults
