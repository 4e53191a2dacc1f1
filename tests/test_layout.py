"""The walls of the house: who may import whom, what stands once, and how long the evening's reading is."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import eigenlib
from eigenlib.paths import ROOT

CORE = ("worlds", "gridworld", "representation", "eigenpurposes", "eigenoptions", "diffusion", "control")
PATH = (*CORE, "atari.pixels", "atari.network", "atari.learning", "atari.options")
FORWARDS = {"eigenlib._moved", "eigenlib.__main__"}  # they name the course as text, for those who ask for an old name


def modules(package: str) -> dict[str, Path]:
    files = (ROOT / package).rglob("*.py")
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


OURS = modules("eigenlib") | modules("eigencourse")


def imported(name: str) -> set[str]:
    """Every module that this one imports anywhere: at the top, inside functions, for type checking, or as `-m` and code."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(OURS[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: imports stand with their whole names"
            parent = node.module or ""
            found |= {f"{parent}.{a.name}" if f"{parent}.{a.name}" in OURS else parent for a in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and name not in FORWARDS:
            found |= set(re.findall(r"\b(?:from|import) (eigen(?:lib|course)[\w.]*)", node.value)) & set(OURS)
    return found - {name}


GRAPH = {name: imported(name) for name in OURS}


def reached(name: str) -> set[str]:
    """Everything that an import of this module may bring in, sooner or later."""
    seen, left = set(), [name]
    while left:
        for other in GRAPH.get(left.pop(), set()) - seen:
            seen.add(other)
            left.append(other)
    return seen


def test_there_is_no_cycle_hidden_ones_included():
    try:
        TopologicalSorter({name: others & set(OURS) for name, others in GRAPH.items()}).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None


def test_the_library_never_imports_the_course():
    wrong = {
        name: others
        for name in modules("eigenlib")
        if (others := {o for o in GRAPH[name] if o.startswith("eigencourse")})
    }
    assert not wrong


def test_the_core_needs_neither_torch_nor_matplotlib_nor_games():
    heavy = (
        "torch",
        "matplotlib",
        "ale_py",
        "IPython",
        "ipywidgets",
        "eigenlib.atari",
        "eigenlib.plots",
        "eigenlib.widgets",
    )
    for name in CORE:
        found = {other for other in reached(f"eigenlib.{name}") if other.startswith(heavy)}
        assert not found, f"{name} reaches {found}"


def test_importing_the_core_loads_nothing_heavy():
    script = f"import sys\nfrom eigenlib import {', '.join(CORE)}\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "matplotlib", "numba", "IPython", "ale_py"} & set(loaded)


def test_the_evening_s_reading_path_is_under_two_thousand_lines_and_is_the_map_s():
    lines = {name: len(OURS[f"eigenlib.{name}"].read_text(encoding="utf-8").splitlines()) for name in PATH}
    assert sum(lines.values()) < 2000, lines
    told = eigenlib.__doc__ or ""
    at = [told.find(name.removeprefix("atari.")) for name in PATH]
    assert -1 not in at, f"the map in eigenlib/__init__.py leaves out {PATH[at.index(-1)]}"


# What was doubled in the first edition, and the one file that does it now.
ONCE = {
    r"\bos\.(replace|rename)\(": "eigenlib/storage.py",
    r"\bsplu\(": "eigenlib/large/factors.py",
    r"^SIDE\b.*=": "eigenlib/atari/pixels.py",
    r"^MOVES\b.*=": "eigenlib/gridworld.py",
    r"^GAMES\b.*=": "eigenlib/atari/emulator.py",
    r"^NO_ACTION\b.*=": "eigenlib/atari/dataset.py",
    r"\bFileLock\(": "eigenlib/storage.py",
}


def test_what_was_doubled_stands_once():
    for pattern, place in ONCE.items():
        where = {
            str(file.relative_to(ROOT))
            for file in OURS.values()
            if re.search(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
        }
        assert where == {place}, f"{pattern} stands in {where}"


def test_tests_mirror_the_tree():
    """A test file is named after a module or stands in the folder of a package."""
    homes = {
        ".".join(p.relative_to(ROOT / "tests").with_suffix("").parts).replace("test_", "")
        for p in (ROOT / "tests").rglob("test_*.py")
    }
    strangers = {home for home in homes if "." in home and home not in OURS and home.rpartition(".")[0] not in OURS}
    assert not strangers, strangers
