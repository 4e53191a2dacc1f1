"""Lessons in JupyterLab, in Chromium: they run to the end, and explorers follow every move, even while cells still run."""

import nbformat
import pytest
from lab import Lab, jupyterlab

from eigenlib.notebooks import Lesson
from eigenlib.paths import NOTEBOOKS

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.xdist_group("lab")]
# (lesson, which of its explorers, slider keys that always change its picture)
EXPLORERS = [("02_pvf_sr_equivalence", 0, ["ArrowLeft"])]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The lessons, each with a last cell that keeps the kernel busy for a while, so that moves meet a running notebook."""
    folder = tmp_path_factory.mktemp("lab")
    for name in {name for name, *_ in EXPLORERS}:
        notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
        notebook.cells.append(nbformat.v4.new_code_cell("import time\n\ntime.sleep(6)"))
        nbformat.write(notebook, folder / f"{name}.ipynb")
    with jupyterlab(folder) as address:
        yield address


@pytest.mark.parametrize(("name", "which", "keys"), EXPLORERS)
def test_explorer_follows_twenty_moves(server, browser, name, which, keys):
    lab = Lab(browser, server, f"{name}.ipynb")
    lab.run_all()
    explorer = lab.explorer(which)
    assert lab.busy(), "the moves below must meet a notebook that still runs"
    before = lab.picture(explorer)
    lab.move(explorer, keys[0])
    lab.wait_done()
    lab.wait_for_new_picture(explorer, before)
    for move in range(20):
        before = lab.picture(explorer)
        lab.move(explorer, keys[move % len(keys)])
        lab.wait_for_new_picture(explorer, before)
    prompts = lab.tab.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()
    assert len([prompt for prompt in prompts if prompt.strip() != "[ ]:"]) >= len(code_cells(name))
    assert lab.tab.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    assert lab.errors == []
    lab.tab.close()


def code_cells(name):
    return [cell for cell in Lesson(NOTEBOOKS / f"{name}.ipynb").notebook.cells if cell.cell_type == "code"]
