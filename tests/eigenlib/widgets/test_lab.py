"""The lessons' explorers in JupyterLab, in Chromium: they follow every move, even while cells still run."""

import nbformat
import pytest
from explorers import check_editor, follows_twenty_moves, pictures, settled
from film_player import check_player
from lab import Lab, in_lab, jupyterlab

from eigencourse import report
from eigencourse.lessons import Lesson, lessons

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.xdist_group("lab")]
# The cells of each lesson that its explorers need.
EXPLORERS = {
    "01": ("imports", "map-figure", "sums"),
    "02": ("imports", "two-build", "explorer"),
    "03": ("imports", "explorer"),
    "04": ("imports", "explorer", "editor"),
    "05": ("imports", "place"),
    "06": ("imports", "race"),
    "07": ("imports", "setting", "touch"),
    "08": ("imports", "stored", "explore"),
    "10": ("imports", "explore"),
}


def with_explorers(*numbers):
    """One small notebook of these lessons' explorers: as a reader meets them, but without what else the lessons compute."""
    cells = [nbformat.v4.new_markdown_cell("# Explorers")]
    for lesson in lessons(numbers):
        found = {cell.id: cell for cell in lesson.notebook.cells}
        for name in ("parameters", *EXPLORERS[lesson.number]):
            cells.append(nbformat.v4.new_code_cell(found[name].source, id=f"{name}-{lesson.number}"))
    metadata = lessons(numbers)[0].notebook.metadata  # without a kernel's name the lab would ask for one
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A lab with one notebook, whose last cell keeps the kernel busy until it is told to go: moves meet a running notebook."""
    folder = tmp_path_factory.mktemp("lab")
    notebook = with_explorers(*EXPLORERS)
    wait = 'import os\nimport time\n\nwhile not os.path.exists("go"):\n    time.sleep(0.05)'
    notebook.cells.append(nbformat.v4.new_code_cell(wait))
    nbformat.write(notebook, folder / "explorers.ipynb")
    with jupyterlab(folder) as address:
        yield address, folder


def test_explorers_in_the_lab(server, browser):
    """Every explorer follows a move while cells still run, and twenty later; the maze editor and the films live too."""
    address, folder = server

    def explore(lab):
        (folder / "go").unlink(missing_ok=True)
        lab.run_all()
        lab.tab.locator(".eigenlib-films").wait_for()
        kinds = "document.querySelectorAll('.eigenlib-live')"
        lab.tab.wait_for_function(f"{kinds}.length === 9 && [...{kinds}].every((one) => one.parentElement.eigenlib)")
        assert lab.busy(), "the moves below must meet a notebook that still runs"
        desks = [
            k
            for k in range(9)
            if "eigenlib-maze" not in lab.tab.locator(".eigenlib-live").nth(k).get_attribute("class")
        ]
        for which in desks:
            move(lab.tab, which)
        assert lab.busy()
        (folder / "go").touch()
        lab.wait_done()
        for which in desks:
            follows_twenty_moves(lab.tab, which)
        check_player(lab.tab.locator(".eigenlib-films"))  # before the editor, which asks for a page at rest
        check_editor(lab.tab)
        assert "[ ]:" not in {
            text.strip() for text in lab.tab.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()
        }
        assert lab.tab.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
        assert lab.errors == []

    in_lab(browser, address, "explorers.ipynb", explore)


def move(tab, which):
    """One move of the first slider, seen."""
    box = tab.locator(".eigenlib-live").nth(which)
    box.scroll_into_view_if_needed()
    before = settled(tab, which), pictures(tab, which)
    slider = box.locator("input[type=range]").first
    slider.press("ArrowLeft" if slider.input_value() == slider.get_attribute("max") else "ArrowRight")
    assert (settled(tab, which), pictures(tab, which)) != before


def test_jupyterlabs_own_errors_are_told_apart_from_ours():
    lab = Lab.__new__(Lab)
    lab.errors, lab.theirs, lab.closing = [], [], False
    theirs = "at x (http://127.0.0.1:1/static/lab/jlab_core.js:1:1)"
    lost = "Cannot read properties of null (reading 'sharedModel')"
    lab.heard(lost, theirs)
    assert (lab.theirs, lab.errors) == ([lost], [])
    for message, source in ((lost, "at render (blob:http://127.0.0.1:1/2:3:4)"), ("x is not a function", theirs)):
        lab.heard(message, source)
        assert lab.errors.pop() == message
    lab.closing = True
    lab.heard("the socket is gone", theirs)
    assert lab.errors == []
    lab.heard("x is not a function", f"at render (blob:http://127.0.0.1:1/2:3:4) {theirs}")
    assert lab.errors == ["x is not a function"]


# --- the maze editor, in the lab and in the report ----------------------------------------------------------------------


def test_the_maze_editor_in_the_report_without_a_kernel(browser, tmp_path, monkeypatch):
    """The exported page, offline, from disk: the same clicks, the same numbers."""
    nbformat.write(with_explorers("04"), tmp_path / "04_editor.ipynb")
    editor = Lesson(tmp_path / "04_editor.ipynb")
    monkeypatch.setattr(report, "lessons", lambda: [editor])
    assert report.write_report([editor], tmp_path / "report", {}, jobs=1) == 0
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, offline=True, reduced_motion="reduce")
    tab, errors = context.new_page(), []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.goto((tmp_path / "report" / "04_editor.html").as_uri())
    tab.locator(".eigenlib-maze").wait_for()
    check_editor(tab)
    assert tab.locator(".eigenlib-eigenvectors canvas").count() == 4
    assert errors == []
    context.close()
