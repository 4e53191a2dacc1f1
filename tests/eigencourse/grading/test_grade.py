"""The grader: right marks, and a broken, hanging or hostile notebook costs its own row only."""

import base64
import csv
import json
import os
import signal
import subprocess
import sys
import time

import attacks
import nbformat
import psutil
import pytest
from attacks import GOOD, notebook

from eigencourse.cli import main
from eigencourse.exercises import all_exercises
from eigencourse.grading import grade as grading
from eigencourse.grading import sandbox
from eigencourse.grading.grade import grade
from eigencourse.lessons import lessons

# In one process: the attacks watch the package's files, and one of these tests changes such a file for a moment.
pytestmark = pytest.mark.xdist_group("grading")
PARTLY = [
    GOOD,
    "my_successor = lambda T, gamma: np.linalg.inv(np.eye(len(T)) - gamma * T).T",
    "my_ratio_limit = None",
    "def my_arrival_value(psi, r, gamma):\n    return psi @ missing",
    "1 / 0",
]
# Everything a notebook could say about itself, and everything it could do to its own copy of the checks.
SELF_AWARDING = [
    """
import eigencourse.exercises as exercises, eigencourse.grading.wire as wire
exercises.Exercise = exercises.Feedback = exercises.all_exercises = lambda *_: "passed"
print("✔ Exercise 01.1 passed: well done.")
exercises.check.first_light(10)
""",
    """
import json
marks = {"lesson": "01", "status": "ok", "marks": {"01.1": "passed", "01.2": "passed"}}
print(json.dumps(marks))
wire.serve = lambda namespace, request: {"function": FUNCTION, "state": "passed", "value": "passed", **marks}
""",
]
HOSTILE_ANSWER = """
class Passes:
    state, mistake, text = "passed", "", "."
    def __eq__(self, other): return True
    __le__ = __lt__ = __ge__ = __gt__ = __eq__
    def __abs__(self): return self
    __sub__ = __rsub__ = __matmul__ = __rmatmul__ = lambda self, other: self
my_first_light = Passes()
my_successor = lambda T, gamma: Passes()
my_drift = Passes()
"""
FAMILY = """
import os, subprocess, time
subprocess.Popen(["sleep", "{seconds}"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "{seconds}"])
    os._exit(0)
time.sleep(0.5)
"""
STUBBORN = """
import time
while True:
    try:
        time.sleep(1)
    except KeyboardInterrupt:
        pass
"""
SLEEP = str(70_000 + os.getpid() % 10_000)  # an hour and a number by which to know our own again


def claims_to_have_passed():
    """Stored outputs that say so, records included."""
    content = json.loads(notebook("my_first_light = None"))
    record = {"number": "01.1", "name": "first_light", "state": "passed", "mistake": ""}
    line = {"text/plain": "✔ Exercise 01.1 passed"}
    output = {"output_type": "display_data", "data": line, "metadata": {"eigenlib": {"exercise": record}}}
    content["cells"][0]["outputs"] = [output]
    return json.dumps(content)


SUBMISSIONS = {
    "good": notebook(GOOD),
    "partly": notebook(*PARTLY),
    "blank": notebook("def my_successor(T, gamma):\n    return ...", "my_first_light = None"),
    "broken": "{ this is no notebook",
    "binary": "\udcff\udcfe",
    "unknown": notebook(GOOD, lesson="77"),
    "claims": claims_to_have_passed(),
    "self_awarding": notebook("FUNCTION = False", *SELF_AWARDING),
    "self_awarding_functions": notebook("FUNCTION = True", *SELF_AWARDING),
    "hostile_answer": notebook(HOSTILE_ANSWER),
    "exits": notebook(GOOD, "import os; os._exit(0)", "my_ratio_limit = 1"),
    "quits": notebook("quit()", GOOD, "exit()", "my_ratio_limit = 1", "quit(keep_kernel=True)"),
    "answer_exits": notebook(GOOD, "import os\ndef my_successor(T, gamma):\n    os._exit(0)"),
    "kills": notebook(GOOD, "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"),
    "memory": notebook(GOOD, "x = bytearray(2**36)", "my_ratio_limit = 2"),
    "huge_answer": notebook(GOOD, "def my_successor(T, gamma):\n    return np.zeros(2 * 10**8)"),
    "rough": notebook(
        "for _ in range(5): print('x' * 10**7)",
        "input('the answer, please: ')",
        FAMILY.format(seconds=SLEEP),
        "import os, shutil; shutil.rmtree(os.getcwd(), ignore_errors=True)",
        GOOD,
    ),
}
SLOW = {
    "slow_cell": notebook(GOOD, "while True: pass", "my_ratio_limit = 2"),
    "slow_answer": notebook(GOOD, "def my_successor(T, gamma):\n    while True: pass"),
    "stubborn": notebook(GOOD, STUBBORN),
}


def marked(folder):
    """All of them at once, as a lecturer would; from the folder they are in, where a trap lies."""
    (folder / "json.py").write_text("raise SystemExit('imported from the folder of the submissions')")
    (folder / "precious.txt").write_text("years of work")
    wipe = f"open({str(folder / 'precious.txt')!r}, 'w').close()"
    for name, content in (SUBMISSIONS | SLOW | {"wipes": notebook(wipe, GOOD)}).items():
        (folder / f"{name}.ipynb").write_text(content, errors="surrogateescape")
    here, rows = os.getcwd(), {}
    os.chdir(folder)
    try:
        for names, timeout in ((SLOW, 5), ((*SUBMISSIONS, "wipes", "missing"), 60)):
            grade([f"{name}.ipynb" for name in names], "marks.csv", timeout, jobs=2)
            with open("marks.csv", newline="") as file:
                rows |= {row["file"].removesuffix(".ipynb"): row for row in csv.DictReader(file)}
    finally:
        os.chdir(here)
    return rows


ALL = ["passed"] * 5
SPOILT = "ok, but 1 cell stopped with an error, first "
EXPECTED = {  # how the status begins, and the marks
    "good": ("ok", ALL),
    "partly": (SPOILT + "cell [5]", ["passed", "wrong: transposed", "wrong: raised", "blank", "passed"]),
    "blank": ("ok", ["blank"] * 5),
    "broken": ("broken: not a notebook", [""] * 5),
    "binary": ("broken: not a notebook", [""] * 5),
    "missing": ("broken: cannot be read", [""] * 5),
    "unknown": ("broken: neither its metadata nor its name", [""] * 5),
    "slow_cell": ("timeout: cell [2] took over 5 s", [*ALL[:3], "wrong: B stays ahead", "passed"]),
    "slow_answer": ("ok", ["passed", "wrong: too slow", *ALL[2:]]),
    "stubborn": ("timeout: cell [2] took over 5 s and could not be interrupted", ALL),
    "claims": ("ok", ["blank"] * 5),
    "self_awarding": (
        "ok",
        ["wrong: not numbers", "wrong: not a function", "wrong: not a function", *["wrong: not numbers"] * 2],
    ),
    "self_awarding_functions": ("ok", ["wrong: not numbers", *["wrong: unreadable"] * 2, *["wrong: not numbers"] * 2]),
    "hostile_answer": ("ok", ["wrong: not numbers", "wrong: not numbers", "blank", "blank", "wrong: not numbers"]),
    "exits": ("ok, but cell [2] ended its process, so it was left out", ALL),
    "quits": ("ok", ALL),
    "answer_exits": ("ok", ["passed", "wrong: ended its process", *ALL[2:]]),
    "kills": ("ok", ALL),  # its parent is the keeper, whom nothing inside can harm
    "memory": (SPOILT + "cell [2]: MemoryError", [*ALL[:3], "wrong: B stays ahead", "passed"]),
    "huge_answer": ("ok", None),
    "rough": (SPOILT + "cell [2]: EOFError", ALL),
}


def test_every_lessons_own_solutions_earn_full_marks(tmp_path):
    """So every check can be asked from another process, whatever its questions and answers are made of."""
    taught = [lesson for lesson in lessons() if all_exercises(lesson.number)]
    for lesson in taught:
        code = [cell for cell in lesson.notebook.cells if cell.cell_type == "code"]
        solutions = [cell.source.replace("our_", "my_") for cell in code if "solution" in cell.metadata.get("tags", [])]
        parameters, imports = code[:2]
        (tmp_path / f"{lesson.name}_by_ada.ipynb").write_text(
            notebook(parameters.source, imports.source, *solutions, lesson="")
        )
    rows = grade(sorted(tmp_path.glob("*.ipynb")), tmp_path / "marks.csv", timeout=600, total=3600, jobs=2)
    assert [row["lesson"] for row in rows] == [lesson.number for lesson in taught]
    for row in rows:
        assert row["status"] == "ok"
        assert row["passed"] == row["total"] == len(all_exercises(row["lesson"])), row


def left_over(seconds=SLEEP):
    return [process for process in psutil.process_iter(["cmdline"]) if seconds in (process.info["cmdline"] or [])]


def test_a_whole_class_hands_in(tmp_path):
    """One test, because it is one run: a row for everyone, the right marks in it, and nothing left behind."""
    rows, numbers = marked(tmp_path), [f"01.{k}" for k in range(1, 6)]
    assert list(rows) == [*SLOW, *SUBMISSIONS, "wipes", "missing"]
    found = {name: (row["status"], [row[number] for number in numbers]) for name, row in rows.items()}
    for name, (status, answers) in EXPECTED.items():
        assert found[name][0].startswith(status), (name, found[name])
        assert answers in (None, found[name][1]), (name, found[name])
        assert rows[name]["passed"] == str(found[name][1].count("passed"))
        assert rows[name]["total"] == ("5" if any(found[name][1]) else "")
    assert found["huge_answer"][1][1].startswith("wrong")
    assert [path.name for path in tmp_path.glob(".*")] == []
    assert left_over() == []
    assert (tmp_path / "precious.txt").read_text() == "years of work"
    assert found["wipes"] == (SPOILT + "cell [1]: FileNotFoundError", ALL)


@pytest.mark.parametrize("name", ["rough", "exits"])
def test_it_also_works_where_the_system_offers_no_sandbox(name):
    mine = SLEEP + "2"  # the class may hand in at the same time
    content = base64.b64encode(SUBMISSIONS[name].replace(SLEEP, mine).encode()).decode()
    job = {
        "name": f"{name}.ipynb",
        "notebook": content,
        "timeout": 30,
        "total": 60,
        "unsafe": True,
        "parent": os.getpid(),
    }
    command = [sys.executable, "-m", "eigencourse.grading.examiner"]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, timeout=600)
    result = json.loads(done.stdout)
    assert result["status"].startswith(EXPECTED[name][0])
    assert list(result["marks"].values()) == EXPECTED[name][1]
    assert left_over(mine) == []


def test_the_total_is_limited_too(tmp_path):
    path = tmp_path / "01.ipynb"
    path.write_text(notebook(GOOD, *["import time; time.sleep(1)"] * 60))
    (row,) = grade([path], tmp_path / "marks.csv", timeout=30, total=5)
    assert row["status"].startswith("timeout: over 5 s in all")
    assert "cell [60]" not in row["status"]  # it did not wait for all of them


def test_a_file_named_like_a_formula_stays_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    grade(["=HYPERLINK(1).ipynb"], "marks.csv")
    assert (tmp_path / "marks.csv").read_text().splitlines()[1].startswith("'=HYPERLINK")


def test_an_examiner_that_fails_costs_one_row(tmp_path, monkeypatch):
    monkeypatch.setattr("eigencourse.grading.grade.sys.executable", "/bin/false")
    path = tmp_path / "01.ipynb"
    path.write_text(notebook(GOOD))
    (row,) = grade([path], tmp_path / "marks.csv", unsafe=True)
    assert row["status"].startswith("broken: its examiner stopped")


def test_the_command_refuses_what_cannot_be(tmp_path, capsys):
    assert main(["grade", "a.ipynb", "--csv", str(tmp_path / "nowhere" / "marks.csv")]) == 2
    assert "no folder" in capsys.readouterr().err
    for option, value in (("--timeout", "0"), ("--timeout", "nan"), ("--total", "inf"), ("--jobs", "-1")):
        assert main(["grade", "a.ipynb", option, value]) == 2
        said = capsys.readouterr().err
        assert any(words in said for words in ("above 0", "must be a finite number", "must be at least 1"))
    for arguments in (
        ["--gradebook", "excel"],
        ["--students", "who.csv"],
        ["--csv", "/dev/null"],
        ["--csv", "/proc/m.csv"],
    ):
        assert main(["grade", "a.ipynb", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["ctrl-c", "term", "kill"])
def test_the_grader_ends_and_every_finished_row_stays(tmp_path, number):
    """Nothing keeps running, what was marked is on disk, and the next run grades the rest only."""
    mine = f"{SLEEP}{int(number)}"
    (tmp_path / "a.ipynb").write_text(notebook(GOOD))
    (tmp_path / "b.ipynb").write_text(notebook(FAMILY.format(seconds=mine), "while True: pass"))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # see test_cli: a run in the background ignores it
    command = [sys.executable, "-m", "eigenlib", "grade", ".", "--jobs", "1"]
    process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE)
    end = time.monotonic() + 600
    while not left_over(mine):
        assert time.monotonic() < end
        time.sleep(0.1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert number != signal.SIGINT or b"stopped by you" in errors
    end = time.monotonic() + 60  # two seconds on a quiet machine
    while left_over(mine):
        assert time.monotonic() < end
        time.sleep(0.05)
    rows = table(tmp_path / "marks.csv")
    assert [(row["file"], row["passed"]) for row in rows] == [("a.ipynb", "5")]
    (tmp_path / "b.ipynb").write_text(notebook(GOOD))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert "a.ipynb: 5 of 5, as before" in done.stdout
    assert "b.ipynb: 5 of 5, ok" in done.stdout


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_only_what_changed_is_graded_again(tmp_path, monkeypatch, capsys):
    """By the submission, by the checks, by the limits, or because one says so; rows of other files stay."""
    paths = [tmp_path / f"{name}.ipynb" for name in "ab"]
    for path in paths:
        path.write_text(notebook(GOOD))
    graded = []
    fake = {"lesson": "01", "status": "ok", "marks": dict.fromkeys(("01.1", "01.2"), "passed")}
    monkeypatch.setattr(grading._Class, "_examined", lambda self, name, content: graded.append(name[-7]) or fake)

    def run(what=paths, **settings):
        graded.clear()
        rows = grade(what, tmp_path / "marks.csv", **settings)
        assert [row["passed"] for row in rows] == [2] * len(what)
        return "".join(sorted(graded))

    assert run() == "ab"
    assert run() == ""
    paths[1].write_text(notebook(GOOD, "1"))
    assert run() == "b"
    assert run(timeout=30) == "ab"
    assert run(timeout=30) == ""
    assert run(timeout=30, again=True) == "ab"
    monkeypatch.setattr(grading, "_code", lambda: "other checks")
    assert run(timeout=30) == "ab"
    assert run(paths[:1], timeout=30) == ""
    assert [row["file"][-7:] for row in table(tmp_path / "marks.csv")] == ["a.ipynb", "b.ipynb"]
    fake["ours"] = True  # what went wrong on our side is tried again
    assert run(again=True) == "ab"
    assert run() == "ab"


def test_every_change_of_a_check_is_seen():
    first, path = grading._code(), grading.Path(grading.__file__).parents[1] / "exercises" / "answers.py"
    content, about = path.read_bytes(), path.stat()
    try:
        path.write_bytes(content + b"\n")
        assert grading._code() != first
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def test_the_table_of_someone_else_is_not_touched(tmp_path, capsys):
    for content in (b"name,points\nada,5\n", b"\xff\xfe\x00", b'file,status\n"torn'):
        (tmp_path / "marks.csv").write_bytes(content)
        assert main(["grade", "a.ipynb", "--csv", str(tmp_path / "marks.csv")]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert (tmp_path / "marks.csv").read_bytes() == content


def test_where_there_is_no_sandbox_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sandbox.sys, "platform", "darwin")
    monkeypatch.setattr(sandbox.platform, "system", lambda: "Darwin")
    (tmp_path / "a.ipynb").write_text(notebook(GOOD))
    assert main(["grade", str(tmp_path), "--csv", str(tmp_path / "marks.csv")]) == 2
    said = capsys.readouterr().err
    assert "Darwin has no namespaces" in said
    assert "--unsafe" in said
    assert not (tmp_path / "marks.csv").exists()


@pytest.mark.parametrize("kind", ["user", "mnt"])
def test_a_refusal_of_the_kernel_is_named(kind):
    """Where namespaces are forbidden, the sentence says which."""
    script = "from eigencourse.grading import sandbox; print(sandbox.missing())"
    refuse = f'echo 0 > /proc/sys/user/max_{kind}_namespaces; exec "$@"'
    command = ["unshare", "-Urf", "sh", "-c", refuse, "sh", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert ("user namespace:" if kind == "user" else "other namespaces:") in done.stdout, done.stderr


def test_two_graders_do_not_write_one_table(tmp_path, capsys):
    with grading.alone_in(tmp_path):
        assert main(["grade", str(tmp_path), "--csv", str(tmp_path / "marks.csv"), "--unsafe"]) == 2
    assert "Another process is at work" in capsys.readouterr().err


def test_a_disk_that_fills_up_keeps_the_rows_before(tmp_path, monkeypatch, capsys):
    for name in "abc":
        (tmp_path / f"{name}.ipynb").write_text(notebook(GOOD))
    written, real = [], grading.marks.replace_file

    def replace(path, data):
        written.append(data)
        if len(written) == 3:  # the empty table, the first row, and now
            raise OSError(28, "No space left on device")
        real(path, data)

    monkeypatch.setattr("eigencourse.grading.marks.replace_file", replace)
    assert main(["grade", str(tmp_path), "--csv", str(tmp_path / "marks.csv"), "--jobs", "1"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert [row["file"][-7:] for row in table(tmp_path / "marks.csv")] == ["a.ipynb"]


def test_a_sample_of_attacks_is_held():
    """As whoever runs the tests; `make attacks` tries all of them."""
    with attacks.world() as made:
        problems = attacks.attempt(made, attacks.sample())
    assert not problems


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_a_sample_of_attacks_is_held_for_an_ordinary_user():
    done = subprocess.run(attacks.as_user(["--sample"]), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_strange_files_cost_a_row_each():
    with attacks.world() as made:
        problems = attacks.attempt_files(made)
    assert not problems


def test_a_name_in_another_code_and_a_missing_file_cost_their_rows_only(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    nbformat.write(nbformat.v4.new_notebook(), "plain.ipynb")
    strange = os.fsdecode(b"M\xfcller.ipynb")  # Latin-1, as in archives of older systems
    (tmp_path / "plain.ipynb").rename(tmp_path / strange)
    assert main(["grade", strange, "nobody.ipynb", "--csv", "marks.csv"]) == 1
    with open("marks.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == ["M\ufffdller.ipynb", "nobody.ipynb"]
    assert "which lesson" in rows[0]["status"]
    assert "No such file" in rows[1]["status"]
    (tmp_path / "folder.csv").mkdir()
    assert main(["grade", strange, "--csv", "folder.csv"]) == 2
    assert "folder.csv, which is a folder" in capsys.readouterr().err


def test_a_notebook_of_the_first_edition_is_graded(tmp_path):
    """By the names that modules had then: they run in the room without an error, and its answers earn what they did."""
    old = "from eigenlib import ledger, plots\nfrom eigenlib.exercises import check\nfrom eigenlib.gridworld import GridWorld"
    record = "ledger.record('sr-neumann', 1e-15, holds=True, criterion='at most 1e-10')\nplots.maze"
    (tmp_path / "01.ipynb").write_text(notebook(old, record, GOOD, "check.first_light(my_first_light)"))
    (row,) = grade([tmp_path / "01.ipynb"], tmp_path / "marks.csv")
    assert (row["status"], row["passed"]) == ("ok", 5)
