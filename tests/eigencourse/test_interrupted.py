"""Reports and refreshes that are killed, really: nothing lives on, nothing is lost, and the next run goes on where it was."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import nbformat
import psutil
import pytest

from eigencourse.lessons import clean
from eigenlib.paths import ROOT

# Commands of eigenlib on a small course of its own: 90 is done at once, 91 waits until it may go on.
START = """
import sys
from pathlib import Path
from eigencourse import cli, lessons, readme
lessons.NOTEBOOKS, lessons.PROGRESS = Path("course"), Path("progress/stored.json").resolve()
readme.MINUTES = Path("minutes.json").resolve()
sys.exit(cli.main(sys.argv[1:]))
"""
QUICK = "import os; open('{0}/ran-90', 'a').write(str(os.getpid()) + '\\n')"
# With the interpreter's lock held: a kernel that must look around by itself would not notice that its parent is gone.
SLOW = """
import ctypes, os
open('{0}/ran-91', 'a').write(str(os.getpid()) + '\\n')
if not os.path.exists('{0}/go'):
    ctypes.PyDLL(None).sleep(600)
"""


@pytest.fixture
def course(tmp_path):
    folder = tmp_path / "a folder with Ümläuts"
    (folder / "course").mkdir(parents=True)
    for number, source in (("90", QUICK), ("91", SLOW)):
        cells = [nbformat.v4.new_markdown_cell(f"# Lesson {number}"), nbformat.v4.new_code_cell("TIER = 'quick'")]
        cells[1].metadata["tags"] = ["parameters"]
        notebook = clean(nbformat.v4.new_notebook(cells=[*cells, nbformat.v4.new_code_cell(source.format(folder))]))
        notebook.metadata["eigenlib"] = {"budget_seconds": 30}
        nbformat.write(notebook, folder / "course" / f"{number}_lesson.ipynb")
    return folder


def start(folder, *words):
    command = [sys.executable, "-c", START, *words]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def until(condition, process=None, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


def kernels(folder):
    return [int(line) for name in ("ran-90", "ran-91") if (folder / name).exists() for line in (folder / name).open()]


def interrupted(folder, how, *words):
    """Begin, stop it in the middle of lesson 91; returns what it said after everything it started has gone."""
    process = start(folder, *words)
    until(lambda: (folder / "ran-91").exists() and (folder / "ran-91").read_text().endswith("\n"), process)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)
    else:
        process.send_signal(how)
    begin = time.monotonic()
    until(lambda: not any(psutil.pid_exists(pid) and alive(pid) for pid in kernels(folder)), seconds=60)
    gone = time.monotonic() - begin
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err, gone


def alive(pid):
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def runs(folder, number):
    return len((folder / f"ran-{number}").read_text().splitlines())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_report_that_is_killed_leaves_no_process_and_the_next_one_goes_on(course, how):
    words = ("report", "--jobs", "1", "--out", "report")
    status, out, err, gone = interrupted(course, how, *words)
    assert gone < 2, f"a kernel outlived its parent by {gone:.1f} s"
    assert "90_lesson" in out
    assert not (course / "report").exists()
    if how == signal.SIGINT:
        assert status == 130
        assert "what was finished is kept" in err
    (course / "go").touch()
    process = start(course, *words)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert (runs(course, 90), runs(course, 91)) == (1, 2)  # only what was missing ran
    assert "ok, finished before" in out
    assert (course / "report" / "index.html").exists()
    assert (course / "report" / "notebooks" / "90_lesson.ipynb").exists()
    assert [path.name for path in course.iterdir() if path.name.startswith(".")] == []


def test_what_was_finished_is_not_believed_after_a_change(course):
    words = ("report", "--jobs", "1", "--out", "report")
    interrupted(course, signal.SIGKILL, *words)
    (course / "go").touch()
    path = course / "course" / "90_lesson.ipynb"
    path.write_text(path.read_text().replace("# Lesson 90", "# Lesson 90, mended"))
    assert start(course, *words).wait(timeout=120) == 0
    assert runs(course, 90) == 2
    assert "mended" in (course / "report" / "90_lesson.html").read_text()


def test_a_finished_report_begins_anew(course):
    (course / "go").touch()
    for _ in range(2):
        assert start(course, "report", "--only", "90", "--out", "report").wait(timeout=120) == 0
    assert runs(course, 90) == 2


def test_two_reports_in_one_folder_do_not_meet(course):
    process = start(course, "report", "--out", "report")
    until(lambda: (course / "ran-91").exists(), process)
    second = start(course, "report", "--out", "report")
    _, err = second.communicate(timeout=120)
    assert second.returncode == 2
    assert "Another process is at work" in err
    assert err.count("\n") == 1
    (course / "go").touch()
    assert start(course, "report", "--out", "elsewhere").wait(timeout=120) == 0
    process.kill()
    process.communicate(timeout=60)


def test_a_refresh_that_is_killed_goes_on(course):
    _, out, _, gone = interrupted(course, signal.SIGKILL, "notebooks")
    assert gone < 2
    assert "90_lesson" in out
    before = (course / "course" / "90_lesson.ipynb").read_bytes()
    assert list((course / "course").glob(".*"))  # the half of 91 that was being executed
    (course / "go").touch()
    process = start(course, "notebooks")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert (runs(course, 90), runs(course, 91)) == (1, 2)
    assert "stored, before" in out
    assert (course / "course" / "90_lesson.ipynb").read_bytes() == before
    assert sorted(path.name for path in (course / "course").iterdir()) == ["90_lesson.ipynb", "91_lesson.ipynb"]
    assert not (course / "progress").exists()
    assert start(course, "notebooks", "--only", "90").wait(timeout=120) == 0
    assert runs(course, 90) == 2  # a run that was not interrupted leaves nothing to go on with


def can_mount():
    command = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not can_mount(), reason="no user namespaces here, so no small disk can be made")
@pytest.mark.parametrize("size", [20, 60, 400])
def test_a_full_disk_names_the_file_and_the_room_and_leaves_no_half(course, size):
    """A real file system of so many kilobytes: too small for a notebook, for two, or for the pages."""
    (course / "go").touch()
    (course / "small").mkdir()
    wide = course / "course" / "91_lesson.ipynb"
    text = nbformat.read(wide, as_version=4)
    text.cells[-1].source += "print('x' * 40_000)"
    nbformat.write(text, wide)
    script = (
        f"mount -t tmpfs -o size={size}k none small && {sys.executable} -c '{START}' report --jobs 1 --out small/report"
    )
    script += "; status=$?; ls -A small; exit $status"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=course,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "cannot be written (No space left on device; it takes " in done.stderr
    assert str(course / "small") in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    left = [line for line in done.stdout.splitlines() if line.startswith((".", "report"))]
    assert left in ([], [".report.unfinished"])
    assert ROOT not in (course / "small").parents
