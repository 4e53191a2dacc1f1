"""Does every lesson say the same on other machines? (`make portable`; a short form in the tests)

OpenBLAS, numpy, torch and numba each choose their loops by the CPU that they meet, and loops that add in another order round
differently. Environment variables make them choose as an older CPU would, so one machine can stand in for several. Every
lesson is executed on each of them, and what it says is laid beside what is stored, as nbval does it: text, not pictures.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

import nbformat

from eigencourse import ledger
from eigencourse.lessons import Lesson, NotebookProblem, Outcome, clean, run, run_many
from eigenlib.paths import CACHE

_AVX512 = "X86_V4 AVX512_ICL AVX512_SPR"  # numpy's names
_OLD = {  # without AVX2 and FMA, in the C library's exp and cos too
    "ATEN_CPU_CAPABILITY": "default",
    "NPY_DISABLE_CPU_FEATURES": f"X86_V3 {_AVX512}",
    "NUMBA_CPU_NAME": "generic",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4",
}
MACHINES: dict[str, dict[str, str]] = {
    "own": {},
    "threads": {"OMP_NUM_THREADS": "2"},
    "skylakex": {"OPENBLAS_CORETYPE": "SkylakeX", "ATEN_CPU_CAPABILITY": "avx512"},
    "haswell": {
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "NPY_DISABLE_CPU_FEATURES": _AVX512,
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+fma",
    },
    "sandybridge": _OLD | {"OPENBLAS_CORETYPE": "Sandybridge", "ONEDNN_MAX_CPU_ISA": "AVX"},
    "nehalem": _OLD | {"OPENBLAS_CORETYPE": "Nehalem", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    "prescott": _OLD | {"OPENBLAS_CORETYPE": "Prescott", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"},
}
_TWINS = {"Prescott": "Katmai"}  # what OpenBLAS calls its oldest loops when asked

# Runs in a kernel and says what the libraries really chose; where they chose what this CPU cannot do, the kernel dies here.
_PROBE = '''
import ctypes, os, tempfile
from pathlib import Path

import numpy as np
import scipy.linalg
import torch
from numba.core.registry import cpu_target


def core(package, suffix):
    """The CPU type whose loops a package's OpenBLAS runs."""
    for path in Path(np.__file__).parent.with_name(f"{package}.libs").glob("*openblas*"):
        name = getattr(ctypes.CDLL(str(path)), f"scipy_openblas_get_corename{suffix}")
        name.restype = ctypes.c_char_p
        return name().decode()


matrix = np.random.default_rng(0).normal(size=(200, 200))
np.linalg.eigh(matrix + matrix.T), scipy.linalg.eig(matrix)
os.environ["ONEDNN_VERBOSE"] = "1"  # oneDNN tells its choice on the first convolution, and only to file 1
with tempfile.TemporaryFile() as said:
    before = os.dup(1)
    os.dup2(said.fileno(), 1)
    torch.nn.functional.conv2d(torch.ones(8, 4, 20, 20), torch.ones(8, 4, 3, 3))
    ctypes.CDLL(None).fflush(None)
    os.dup2(before, 1)
    said.seek(0)
    isa = [line.split("isa:")[1].strip() for line in said.read().decode().splitlines() if "isa:" in line]
loops = [name for name, works in np._core._multiarray_umath.__cpu_features__.items() if works and name[:5] == "X86_V"]
print(f"OpenBLAS {core('numpy', '64_')} (numpy) {core('scipy', '')} (scipy), numpy {max(loops, default='unknown')}", end=", ")
print(f"torch {torch.backends.cpu.get_cpu_capability()}, oneDNN {isa[0] if isa else 'unknown'}", end=", ")
print(f"numba {cpu_target.target_context.codegen().magic_tuple()[1]}, threads {torch.get_num_threads()}")
'''


class Difference(NamedTuple):
    """An output that is not as stored.  cell: its number in the notebook, counted from 0."""

    lesson: str
    cell: int
    stored: str
    got: str


class Comparison(NamedTuple):
    """A lesson as executed beside the lesson as stored.  flips: verdicts that changed, in words."""

    outputs: int
    differences: list[Difference]
    flips: list[str]


@contextlib.contextmanager
def simulated(name: str) -> Iterator[None]:
    """Kernels started in here run on the named machine; numba keeps what it compiles for it apart."""
    before = dict(os.environ)
    for variable in before:  # "own" is what the CPU itself brings about
        if variable.startswith("OPENBLAS_") or any(variable in machine for machine in MACHINES.values()):
            del os.environ[variable]
    os.environ.update({"OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(CACHE / "portable" / name)} | MACHINES[name])
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def probe(machine: str) -> str:
    """What the libraries choose in a kernel on that machine; a reason to leave it out is raised as NotebookProblem."""
    with tempfile.TemporaryDirectory(prefix="eigenlib-probe-") as folder, simulated(machine):
        path = Path(folder, "probe.ipynb")
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(_PROBE)]), path)
        outcome = run(path, Path(folder, "out.ipynb"), {})
        if outcome.failure:
            raise NotebookProblem(f"this CPU cannot run it ({outcome.failure.error})")
        chosen = "".join(texts(nbformat.read(outcome.output, as_version=4).cells[0])).strip()
    wanted = MACHINES[machine].get("OPENBLAS_CORETYPE", "")
    if f"OpenBLAS {_TWINS.get(wanted, wanted)}" not in chosen:
        raise NotebookProblem(f"its OpenBLAS is not here ({chosen})")
    return chosen


def texts(cell) -> list[str]:
    """What a cell says in words, output by output."""
    return [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", [])]


def compare(lesson: Lesson, outcome: Outcome) -> Comparison:
    """Text and verdicts of an executed lesson against the stored ones."""
    executed = clean(nbformat.read(outcome.output, as_version=4))
    outputs, differences = 0, []
    for number, (stored, fresh) in enumerate(zip(lesson.notebook.cells, executed.cells, strict=True)):
        outputs += len(texts(stored))
        pairs = zip_longest(texts(stored), texts(fresh), fillvalue="")
        differences += [Difference(lesson.name, number, *pair) for pair in pairs if pair[0] != pair[1]]
    if outcome.failure:
        differences.append(Difference(lesson.name, outcome.failure.cell, "runs to its end", outcome.failure.error))
    before, after = (_verdicts(notebook) for notebook in (lesson.notebook, executed))
    flips = [
        f"{lesson.name}: {name} {before.get(name, 'not recorded')} → {after.get(name, 'not recorded')}"
        for name in before | after
        if before.get(name) != after.get(name)
    ]
    return Comparison(outputs, differences, flips)


def _verdicts(notebook) -> dict[str, str]:
    records = ledger.collect(notebook)["record"]
    return {f"{entry['claim']} ({entry['part']})".removesuffix(" ()"): entry["verdict"] for entry in records}


def compare_on(machine: str, chosen: list[Lesson], jobs: int, tell: Callable[[str], None]) -> Comparison:
    """Execute lessons on one machine and sum up, telling each as it is done."""
    by_name, found = {lesson.name: lesson for lesson in chosen}, {}

    def done(outcome: Outcome) -> None:
        one = found[outcome.name] = compare(by_name[outcome.name], outcome)
        state = f"{one.outputs} outputs, {len(one.differences)} differ, {len(one.flips)} verdicts flip"
        tell(f"{machine:12} {outcome.name:34} {outcome.seconds:6.1f} s  {state}")

    with tempfile.TemporaryDirectory(prefix="eigenlib-portable-") as folder, simulated(machine):
        run_many(chosen, Path(folder), {}, jobs, done)
    outputs, differences, flips = zip(*(found[lesson.name] for lesson in chosen), strict=True)
    return Comparison(sum(outputs), [*chain(*differences)], [*chain(*flips)])


def examine(chosen: list[Lesson], machines: list[str], jobs: int, tell: Callable[[str], None]) -> bool:
    """The whole comparison, told line by line: machines, lessons, each difference, one table. True if nothing differs."""
    unknown = [name for name in machines if name not in MACHINES]
    if unknown or not machines:
        raise NotebookProblem(
            f"No machine {', '.join(map(repr, unknown)) or 'named'}; there are {', '.join(MACHINES)}."
        )
    runnable: dict[str, str] = {}
    for name in machines:
        try:
            choice = probe(name)
        except NotebookProblem as reason:
            tell(f"{name:12} left out: {reason}")
            continue
        twin = next((other for other, same in runnable.items() if same == choice), None)
        tell(f"{name:12} {f'left out: nothing would differ from {twin}' if twin else choice}")
        if not twin:
            runnable[name] = choice
    if not runnable:
        raise NotebookProblem("None of these machines can be simulated here: choose others.")
    results = {name: compare_on(name, chosen, jobs, tell) for name in runnable}
    for name, found in results.items():
        for lesson, cell, stored, got in found.differences:
            tell(f"\n{name}, {lesson}, cell {cell}\n  stored: {_indented(stored)}\n  got:    {_indented(got)}")
        for flip in found.flips:
            tell(f"\n{name}, verdict: {flip}")
    tell(f"\n{'machine':12} {'outputs compared':>18} {'that differ':>12} {'verdicts that flip':>19}")
    for name, found in results.items():
        tell(f"{name:12} {found.outputs:18} {len(found.differences):12} {len(found.flips):19}")
    return not any(found.differences or found.flips for found in results.values())


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n          ")
