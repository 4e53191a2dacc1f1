"""Lessons in JupyterLab, in Chromium: they run to the end, and explorers follow every move, even while cells still run."""

import os
import time

import nbformat
import pytest
from lab import in_lab, jupyterlab
from test_explorers import check_editor, check_sr_explorer
from test_films import check_player

from eigenlib.notebooks import Lesson
from eigenlib.paths import NOTEBOOKS
from eigenlib.report import write_report

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.xdist_group("lab")]
# (lesson, which of its explorers, slider keys that always change its picture)
EXPLORERS = [
    ("02_pvf_sr_equivalence", 0, ["ArrowLeft"]),
    ("04_eigenoptions", 0, ["ArrowRight"]),
    ("08_deep_successor_representation", 0, ["ArrowLeft", "ArrowRight"]),
]
FILMS = ("parameters", "imports", "explore")  # the cells of lesson 10 that its film explorer needs


@pytest.fixture(autouse=True)
def alone(tmp_path_factory):
    """One lab at a time: two side by side on two cores are so slow that moves miss the running notebook they should meet."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    lock = tmp_path_factory.getbasetemp().parent / "lab.lock"  # the parent belongs to this run and all its workers
    while True:
        try:
            lock.mkdir()
            break
        except FileExistsError:
            time.sleep(0.5)
    yield
    lock.rmdir()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The lessons, each with a last cell that keeps the kernel busy for a while, so that moves meet a running notebook."""
    folder = tmp_path_factory.mktemp("lab")
    for name in {name for name, *_ in EXPLORERS} | {"03_learning_the_sr"}:
        notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
        notebook.cells.append(nbformat.v4.new_code_cell("import time\n\ntime.sleep(6)"))
        nbformat.write(notebook, folder / f"{name}.ipynb")
    # Lesson 10 takes a minute to come to its films: here they are alone.
    films = nbformat.read(NOTEBOOKS / "10_atari_eigenoptions.ipynb", as_version=4)
    films.cells = [cell for cell in films.cells if cell.id in FILMS]
    nbformat.write(films, folder / "films.ipynb")
    with jupyterlab(folder) as address:
        yield address


@pytest.mark.parametrize(("name", "which", "keys"), EXPLORERS)
def test_explorer_follows_twenty_moves(server, browser, name, which, keys):
    in_lab(browser, server, f"{name}.ipynb", lambda lab: follow_twenty_moves(lab, name, which, keys))


def follow_twenty_moves(lab, name, which, keys):
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


def code_cells(name):
    return [cell for cell in Lesson(NOTEBOOKS / f"{name}.ipynb").notebook.cells if cell.cell_type == "code"]


# --- the maze editor, in the lab and in the report ----------------------------------------------------------------------


def test_the_maze_editor_in_the_lab(server, browser):
    in_lab(browser, server, "04_eigenoptions.ipynb", edit_a_maze)


def edit_a_maze(lab):
    lab.run_all()
    lab.tab.locator(".eigenlib-maze").wait_for(timeout=120_000)
    lab.wait_done()
    check_editor(lab.tab)
    assert lab.errors == []


def test_the_sr_explorer_in_the_lab(server, browser):
    in_lab(browser, server, "03_learning_the_sr.ipynb", learn_an_sr)


def learn_an_sr(lab):
    lab.run_all()
    lab.tab.locator(".eigenlib-sr").wait_for(timeout=120_000)
    lab.wait_done()
    check_sr_explorer(lab.tab)
    assert lab.errors == []


def test_the_film_explorer_in_the_lab(server, browser):
    in_lab(browser, server, "films.ipynb", watch_a_film)


def watch_a_film(lab):
    lab.run_all()
    player = lab.tab.locator(".eigenlib-films")
    player.wait_for(timeout=120_000)
    lab.wait_done()
    check_player(player)
    assert lab.errors == []


def test_the_maze_editor_in_the_report_without_a_kernel(browser, tmp_path):
    """The exported page, offline, from disk: the same clicks, the same numbers."""
    write_report([Lesson(NOTEBOOKS / "04_eigenoptions.ipynb")], tmp_path / "report", {}, jobs=1)
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, offline=True, reduced_motion="reduce")
    tab, errors = context.new_page(), []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.goto((tmp_path / "report" / "04_eigenoptions.html").as_uri())
    tab.locator(".eigenlib-maze").wait_for()
    check_editor(tab)
    assert tab.get_by_text("Explorer, drawn at map four_rooms").count() == 1
    assert errors == []
    context.close()
