"""Where nobody tries things: a package that cannot be written, no home, an ASCII terminal, strange paths, other systems."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from eigenlib.paths import ROOT

PARTS = ("eigenlib", "eigencourse", "notebooks", "data")
ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
# Python then really takes files for ASCII, unless it is told; usually it is cleverer than the locale.
NOTHING_BUT_ASCII = {**ASCII, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
# No folder can be made there, not even by root.
NO_HOME = {"HOME": "/dev/null/home"}
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
UNSHARE = ["unshare", "--mount"] if hasattr(os, "geteuid") and os.geteuid() == 0 else ["unshare", "-r", "--mount"]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The repository as somebody else has it."""
    folder = tmp_path_factory.mktemp("odd") / "Übungen im März"
    folder.mkdir()
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "LICENSE", folder)
    return folder


def python(course: Path, here: Path, *words: str, read_only: bool = True, **environment: str):
    """Run Python there, from another folder and with nothing of our environment but the way to programs."""
    (here / "tmp").mkdir(parents=True)
    environment |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(course), "TMPDIR": str(here / "tmp")}
    command = [sys.executable, *words]
    if read_only:
        shut_in = [*UNSHARE, "sh", "-c", READ_ONLY, "sh", str(course)]
        try:
            possible = subprocess.run([*shut_in, "true"], capture_output=True).returncode == 0
        except OSError:
            possible = False
        if not possible:
            pytest.skip("no mount namespaces here, so the package cannot be made read-only for us")
        command = shut_in + command
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert os.listdir(here / "tmp") == []  # whatever stood in for home or cache
    return done.stdout


@pytest.mark.notebook
def test_a_report_with_everything_odd_at_once(course, tmp_path):
    said = python(
        course, tmp_path / "où", *["-m", "eigenlib", "report", "--only", "01", "--out"], "mes pages", **NO_HOME, **ASCII
    )
    assert "1 of 1 notebooks ran" in said
    assert "o?/mes pages/index.html" in said
    page = tmp_path / "où" / "mes pages" / "01_successor_representation.html"
    assert "Matplotlib created" not in page.read_text(encoding="utf-8")


def test_marks_from_a_read_only_course_without_a_home(course, tmp_path):
    cells = [nbformat.v4.new_code_cell("my_first_light = 10")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "01_successor_representation_zoë.ipynb")
    said = python(course, tmp_path / "ici", *["-m", "eigenlib", "grade", ".."], **ASCII)
    assert "zo?.ipynb: 1 of 5, ok" in said
    assert "zoë" in (tmp_path / "ici" / "marks.csv").read_text(encoding="utf-8")


def test_compiled_code_where_nothing_can_be_kept(course, tmp_path):
    code = "from eigenlib import GridWorld, learn_successor_representation as learn, paths\n"
    code += "print(learn(GridWorld.named('four_rooms'), 2, 5, 0.1, 0.9, seeds=[0])[0].sum() > 0, paths.ROOT.is_dir())"
    assert python(course, tmp_path / "ici", "-c", code, **NO_HOME) == "True True\n"


@pytest.mark.parametrize("words", ["--help", "experiment --help", "student"])
def test_a_terminal_and_files_of_ascii(words, course, tmp_path):
    """Nothing here has a path of other letters: where Python takes those for ASCII, papermill cannot write them down."""
    assert python(ROOT, tmp_path / "here", "-m", "eigenlib", *words.split(), read_only=False, **NOTHING_BUT_ASCII)


# --- other systems, as far as they can be tried here --------------------------------------------------------------------

# Import all modules but those that `eigenlib grade` needs, which it says does not run on Windows.
ELSEWHERE = """
import builtins, pkgutil, sys
import eigencourse, eigenlib

real = builtins.__import__

def without_posix(name, globals=None, *more):
    here = (globals or {}).get("__name__", "")
    if here.startswith("eigen") and name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix"):
        raise ModuleNotFoundError(f"{here} asks for {name}")
    return real(name, globals, *more)

builtins.__import__ = without_posix
names = [m.name for package in (eigenlib, eigencourse) for m in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
linux = {f"eigencourse.grading.{name}" for name in ("grade", "sandbox", "keeper", "examiner", "runner")}
for name in names:
    if name not in linux and not name.endswith("__main__"):
        __import__(name)
print(len(names))
try:
    __import__("eigencourse.grading.keeper")
except ModuleNotFoundError as problem:
    print(problem)
"""


def test_nothing_but_grading_needs_modules_that_windows_lacks(tmp_path):
    count, refused = python(
        ROOT, tmp_path / "x", "-c", ELSEWHERE, read_only=False, HOME=os.environ["HOME"]
    ).splitlines()
    assert int(count) > 90
    assert refused == "eigencourse.grading.keeper asks for resource"


SPAWNED = """
import multiprocessing
import numpy as np
from eigenlib import GridWorld, discover_eigenoptions, extract_eigenpurposes, learn_successor_representation

def learned(world, seed):
    return learn_successor_representation(world, 3, 20, 0.1, 0.9, seeds=[seed])[0]

def options(world, psi):
    return discover_eigenoptions(world, extract_eigenpurposes(psi), 2)

if __name__ == "__main__":
    world = GridWorld.named("four_rooms")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        psi = pool.apply(learned, (world, 5))
        found = pool.apply(options, (world, psi))
    assert np.array_equal(psi, learned(world, 5))
    assert [np.array_equal(a.policy, b.policy) for a, b in zip(found, options(world, psi), strict=True)] == [True] * 2
"""


def test_worlds_and_options_travel_to_processes_that_are_not_forked(tmp_path):
    (tmp_path / "spawned.py").write_text(SPAWNED, encoding="utf-8")
    python(ROOT, tmp_path / "x", str(tmp_path / "spawned.py"), read_only=False, HOME=os.environ["HOME"])
