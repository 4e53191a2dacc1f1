"""Who wants only the library gets a working one; what is missing says so in one sentence; lessons 00–07 need no torch."""

import ast
import os
import subprocess
import sys

import blocked
import nbformat
import pytest

from eigencourse.lessons import lessons, run
from eigenlib.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import try_wheel

HELPERS = str(ROOT / "tests" / "helpers")
TABULAR = pytest.mark.parametrize("lesson", lessons()[:8], ids=lambda lesson: lesson.name)


def without(packages, code):
    """Run code in a Python where these packages are missing."""
    start = f"import sys; sys.path.append({HELPERS!r}); import blocked; blocked.block({list(packages)!r})\n"
    return subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, cwd=ROOT)


def test_the_library_alone_runs_the_readme_s_example_and_names_the_extra_it_lacks():
    """As `make wheel` tries it, and the tabular core without matplotlib, too."""
    done = without((*blocked.ATARI, *blocked.COURSE, "matplotlib"), try_wheel.example() + try_wheel.MORE)
    assert done.returncode == 0, done.stderr


def test_what_blocks_an_import_does_block_it():
    done = without(["numba"], "import eigenlib.representation as r, numpy as np\nimport numba")
    assert "ModuleNotFoundError" in done.stderr


def test_pictures_are_drawn_without_a_notebook_and_shown_only_in_one():
    code = (
        "from eigenlib import plots\nfrom eigenlib.gridworld import GridWorld\nfrom matplotlib.figure import Figure\n"
    )
    code += "fig = Figure()\nplots.png(fig)\nplots.show(fig, 'An empty figure that shows nothing.')"
    done = without((*blocked.ATARI, *blocked.COURSE), code)
    assert done.stderr.strip().endswith("ImportError: IPython is not installed: pip install 'eigenlib[course]'.")


@pytest.mark.parametrize(
    ("packages", "arguments", "says"),
    [
        (blocked.COURSE, ["report"], " is not installed: pip install 'eigenlib[course]'."),
        (blocked.COURSE, ["doctor"], " is not installed: pip install 'eigenlib[course]'."),
        (blocked.COURSE, ["student"], " is not installed: pip install 'eigenlib[course]'."),
        (blocked.ATARI, ["atari", "show", "freeway"], "PyTorch is not installed: pip install 'eigenlib[atari]'."),
        (["ale_py"], ["atari", "show", "freeway"], "ale-py is not installed: pip install 'eigenlib[atari]'."),
    ],
)
def test_a_command_that_lacks_its_extra_says_so_in_one_sentence(packages, arguments, says):
    done = without(packages, f"import eigencourse.cli as cli\nsys.exit(cli.main({arguments!r}))")
    assert done.returncode == 2
    assert done.stderr.startswith("eigenlib: ")
    assert done.stderr.rstrip().endswith(says)
    assert done.stderr.count("\n") == 1


def test_the_help_needs_nothing():
    done = without((*blocked.ATARI, *blocked.COURSE, "matplotlib"), "import eigencourse.cli as cli\ncli.main([])")
    assert "report" in done.stdout
    assert done.stderr == ""


@TABULAR
def test_lessons_before_the_deep_ones_import_no_torch_and_no_games(lesson):
    cells = [cell.source for cell in lesson.notebook.cells if cell.cell_type == "code"]
    imports = []
    for node in (node for source in cells for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.Import | ast.ImportFrom) and not (getattr(node, "module", "") or "").startswith(
            "ale_py"
        ):
            imports.append(ast.unparse(node))
    done = without(blocked.ATARI, "\n".join([*imports, "assert not {'torch', 'ale_py'} & set(sys.modules)"]))
    assert len(imports) > 4
    assert done.returncode == 0, done.stderr


@pytest.mark.notebook
@pytest.mark.parametrize("number", ["00", "01"])
def test_a_lesson_runs_to_its_end_without_torch_and_games(number, tmp_path, monkeypatch):
    """Really: its kernel begins with the block, by way of sitecustomize."""
    (lesson,) = lessons([number])
    block = f"import sys\nsys.path.append({HELPERS!r})\nimport blocked\nblocked.block({list(blocked.ATARI)!r})\n"
    (tmp_path / "sitecustomize.py").write_text(block)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    outcome = run(lesson.path, tmp_path / lesson.path.name, {})
    assert outcome.failure is None
    code = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import torch")])
    nbformat.write(code, tmp_path / "control.ipynb")
    assert "No module named 'torch'" in run(tmp_path / "control.ipynb", tmp_path / "out.ipynb", {}).failure.error
