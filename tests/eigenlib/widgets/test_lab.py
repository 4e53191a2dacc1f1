"""The lessons' explorers in JupyterLab, in Chromium: they follow every move, even while cells still run."""

import nbformat
import pytest
from explorers import check_editor, check_sr_explorer
from film_player import check_player
from lab import Lab, in_lab, jupyterlab

from eigencourse import report
from eigencourse.lessons import Lesson, lessons

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.xdist_group("lab")]
# The cells of each lesson that its explorers need, and slider keys that always change the picture of the first.
EXPLORERS = {
    "02": (("imports", "two-build", "explorer"), ["ArrowLeft"]),
    "03": (("imports", "explorer"), []),
    "04": (("imports", "explorer", "editor"), ["ArrowRight"]),
    "08": (("imports", "stored", "explore"), ["ArrowLeft", "ArrowRight"]),
    "10": (("imports", "explore"), []),
}


def with_explorers(*numbers):
    """One small notebook of these lessons' explorers: as a reader meets them, but without what else the lessons compute."""
    cells = [nbformat.v4.new_markdown_cell("# Explorers")]
    for lesson in lessons(numbers):
        found = {cell.id: cell for cell in lesson.notebook.cells}
        for name in ("parameters", *EXPLORERS[lesson.number][0]):
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
    """Every explorer follows twenty moves, the first while cells still run; the maze editor and the films live too."""
    address, folder = server

    def explore(lab):
        (folder / "go").unlink(missing_ok=True)
        lab.run_all()
        explorers = [lab.explorer(which) for which in range(3)]
        lab.tab.locator(".eigenlib-films").wait_for()
        before = [lab.picture(explorer) for explorer in explorers]
        assert lab.busy(), "the moves below must meet a notebook that still runs"
        keys = [keys for _, keys in EXPLORERS.values() if keys]
        for explorer, (key, *_) in zip(explorers, keys, strict=True):
            lab.move(explorer, key)
        assert lab.busy()
        (folder / "go").touch()
        lab.wait_done()
        for explorer, picture, mine in zip(explorers, before, keys, strict=True):
            lab.wait_for_new_picture(explorer, picture)
            follow_twenty_moves(lab, explorer, mine)
        check_sr_explorer(lab.tab)
        check_editor(lab.tab)
        check_player(lab.tab.locator(".eigenlib-films"))
        assert "[ ]:" not in {
            text.strip() for text in lab.tab.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()
        }
        assert lab.tab.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
        assert lab.errors == []

    in_lab(browser, address, "explorers.ipynb", explore)


def follow_twenty_moves(lab, explorer, keys):
    explorer.scroll_into_view_if_needed()
    for move in range(20):
        before = lab.picture(explorer)
        lab.move(explorer, keys[move % len(keys)])
        lab.wait_for_new_picture(explorer, before)


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
    assert tab.get_by_text("Explorer, drawn at map four_rooms").count() == 1
    assert errors == []
    context.close()
