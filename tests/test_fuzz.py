"""Whatever is given to a public function, a map or the command line: a right answer or one clear sentence, and never a hang.

The tables are in fuzz_tables.py and the rule is in fuzzing.py. A public function that has no entry fails the first test.
`make fuzz` runs the long form (EIGENLIB_FUZZ=10): ten times as many maps and damaged files, of other seeds.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages as walk
from unittest.mock import patch

import fuzz_tables
import numpy as np
import pytest
import torch
from fuzz_tables import ATARI, COURSE, PICTURES, SCRATCH, TABULAR
from fuzzing import bounded_memory, fault_of, fuzz, not_a_sentence, outcome
from mazes import random_maze

import eigencourse
import eigenlib
from eigencourse import cli
from eigencourse.lessons import NotebookProblem, lessons
from eigenlib import storage
from eigenlib.atari import dataset, emulator, pipeline, training
from eigenlib.experiments.control import load_reference
from eigenlib.gridworld import GridWorld, map_names

TIMES = int(os.environ.get("EIGENLIB_FUZZ", "1"))
TABLES = {**TABULAR, **PICTURES, **ATARI, **COURSE}
NAMES = {key for _, kinds in TABLES.values() for key in kinds} | {"ale-py", *emulator._games().values(), "fuzz", "mem"}

# Known faults that someone is mending: (the beginning of a line of the report, why). Must be empty in the end.
PENDING: tuple[tuple[str, str], ...] = ()

# Public by name, but given nothing that a user has typed: each with the way on which a user's values do reach it.
MACHINERY = {
    "experiments.verdicts.": "verdicts of the experiment in evidence, on its own results",
    "eigencourse.cli.": "the command line, fuzzed as such below",
    "eigencourse.doctor": "takes nothing, or what the command line has checked",
    "eigencourse.carry.": "eigenlib carry, below",
    "eigencourse.editions.": "eigenlib student, below",
    "eigencourse.report.figures.best_figure": "takes a notebook that nbformat has read",
    "eigencourse.ledger.claims": "takes nothing",
    "eigencourse.ledger.collect": "takes a notebook that nbformat has read",
    "eigencourse.ledger.measured": "takes an entry of ours",
    "eigencourse.ledger.summary": "takes entries of ours",
    "widgets.base.Explorer": "what all explorers are: each has its entry",
    "widgets.base.Pictured": "what all explorers are: each has its entry",
    "eigencourse.grading.marks.": "takes a path that was checked, and rows of ours; eigenlib grade, below",
    "eigencourse.execution.": "eigenlib report, below",
    "eigencourse.lessons.": "eigenlib report, notebooks and doctor, below; what users call, lessons, has its entry",
    "eigencourse.portable.": "eigenlib portable, below",
    "eigencourse.readme.": "eigenlib readme, below",
    "storage.alone_in": "takes a folder that was checked",
    "storage.code_of": "takes names of our modules",
    "storage.load_tensors": "damaged files, below",
    "storage.read_": "takes a path that was checked; damaged files, below",
    "storage.remove_leftovers": "takes a folder that was checked",
    "storage.replace_file": "takes a path that was checked",
    "storage.save_tensors": "takes tensors of a network; export_weights has its entry",
    "storage.sha256": "takes bytes",
    "storage.tensors_description": "damaged files, below",
    "storage.whole_folder": "takes a path that was checked",
    "storage.write_description": "takes a path that was checked",
    "eigencourse.report.": "eigenlib report, below",
    "canonical.canonical": "takes what a solver returned to extract_eigenpurposes",
    "large.factors.": "takes matrices that the library has built",
    "large.spectrum.": "extract_eigenpurposes and sr_eigenpurposes, which have checked all",
    "diffusion.require_conventions": "is itself a refusal",
    "plots.require_map": "is itself a refusal",
    "gridworld.GridWorld.outcomes": "takes nothing",
    "atari.batches.": "the inner loop of training: what notebooks make of it themselves has entries",
    "atari.dataset.": "see collect, play and open_dataset, which have entries",
    "atari.emulator.Emulator.": "takes nothing",
    "atari.emulator.windows": "takes the height and width of ALE's screen",
    "atari.learning.": "the inner loop of training: what notebooks make of it themselves has entries",
    "atari.device.": "takes objects of torch that training has made",
    "atari.metrics.places": "is itself a refusal",
    "atari.metrics.predicted": "takes what predicted_frames and prediction_errors have checked",
    "atari.network.DeepSR.layers": "takes nothing",
    "atari.options.empty_log": "takes what follow_greedily and wander have checked",
    "atari.options.note": "takes what follow_greedily and wander have checked",
    "atari.options.plans": "takes what follow_greedily has checked",
    "atari.options.visit": "takes a world that was checked; a start reaches it by follow_greedily",
    "atari.pipeline.": "eigenlib atari, below; prepare, which checks a job, has its entry",
    "atari.pixels.PixelMaze.": "takes nothing",
    "atari.pixels.PixelWorld": "a protocol",
    "atari.pixels.require_": "is itself a refusal",
    "atari.training.exported": "takes a network that was trained",
    "atari.training.fingerprint": "takes a dataset that train has checked",
    "experiments.deep_rooms.AsWritten": "an objective that watch_features makes",
    "experiments.atari_": "tasks of an experiment, whose settings stand in its file",
    "experiments.control.run": "a task of an experiment",
    "experiments.control.merged": "takes what tasks have found",
    "experiments.control.score": "takes what was stored",
    "experiments.control.settings": "takes an experiment that was checked",
    "experiments.control.store": "takes what tasks have found",
    "experiments.deep_rooms.run": "a task of an experiment",
    "experiments.deep_rooms.score": "takes what was stored",
    "experiments.deep_rooms.sto": "takes nothing, or what tasks have found",
    "experiments.make": "eigenlib experiment, below",
    "experiments.module_of": "eigenlib experiment, below",
    "experiments.scored": "eigenlib experiment, below",
}
RECORDS = {  # dataclasses that only the library fills in
    "experiments.control.Curves",
    "eigencourse.report.figures.Figure",
    "eigencourse.ledger.Claim",
    "eigencourse.lessons.Lesson",
    "eigencourse.lessons.Failure",
    "eigencourse.lessons.Outcome",
    "atari.dataset.Dataset",
    "atari.pipeline.Job",
    "atari.training.Run",
    "options.Option",  # fuzzed by what takes options
}


def public() -> dict[str, list[str]]:
    """{name: its parameters} of every public function, class and method of the package."""
    found: dict[str, list[str]] = {}
    # Answers of learners have their own tests (test_exercises), and so has the room in which they are asked for (test_grade).
    apart = re.compile(r"eigencourse\.(exercises|grading\.(examiner|keeper|runner|sandbox|wire))\b|.*\._")
    for module in (m for package in (eigenlib, eigencourse) for m in walk(package.__path__, f"{package.__name__}.")):
        parts = module.name.removeprefix("eigenlib.").split(".")
        if apart.match(module.name):
            continue
        for name, thing in vars(import_module(module.name)).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != module.name:
                continue
            if getattr(thing, "__name__", name) != name:  # a second name of something that is known by its first
                continue
            known = ".".join((*parts, name))
            if inspect.isclass(thing):
                found |= _members(known, thing)
            elif callable(thing):
                found[known] = _parameters(thing)
    return found


def _members(known: str, thing: type) -> dict[str, list[str]]:
    found = {}
    if issubclass(thing, BaseException):
        return {}
    if (
        not issubclass(thing, tuple) and known not in RECORDS and thing.__init__ is not object.__init__
    ):  # tuples are results
        found[known] = _parameters(thing.__init__)
    for name, member in vars(thing).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if inspect.isfunction(function) and not name.startswith("_"):
            found[f"{known}.{name}"] = _parameters(function)
    return found


def _parameters(function) -> list[str]:
    taken = inspect.signature(function).parameters.values()
    return [one.name for one in taken if one.name not in ("self", "cls") and one.kind is not one.VAR_KEYWORD]


def test_every_public_function_and_every_parameter_has_an_entry():
    known, missing = public(), []
    for name, parameters in known.items():
        if name in TABLES:
            more = set(parameters) - set(TABLES[name][1]) - {"modules"}
            also = [key for key in TABLES if key.startswith(f"{name}, ")]  # a second entry, for what excludes the first
            missing += [f"{name}: no entry for its parameter {one}" for one in sorted(more) if not also]
        elif parameters and not any(name.startswith(prefix) for prefix in MACHINERY):
            missing.append(f"{name}({', '.join(parameters)}): no entry in fuzz_tables.py")
    stale = [name for name in TABLES if name.split(",")[0] not in known]
    stale += [prefix for prefix in MACHINERY if not any(name.startswith(prefix) for name in known)]
    assert not missing + stale, "\n".join(missing + [f"{name}: no such function any more" for name in stale])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder of its own, in case something writes where it should not; one thread; a limit to memory."""
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with bounded_memory():
        yield
    torch.set_num_threads(threads)
    assert [path.name for path in tmp_path.iterdir() if path.name != "given"] == [], (
        "something was written to the folder"
    )


@pytest.fixture(scope="module", autouse=True)
def scratch():
    yield
    shutil.rmtree(SCRATCH, ignore_errors=True)


@pytest.fixture
def report(record_property):
    """report(what, count, faults): how many cases there were, also for the end of the run; every fault that nobody mends."""

    def tell(what: str, count: int, faults: list[str]) -> None:
        left = [fault for fault in faults if not any(fault.startswith(known) for known, _ in PENDING)]
        record_property("fuzz", (what, count, len(faults)))
        print(f"\n{what}: {count} cases, {len(faults)} faults, {len(faults) - len(left)} of them pending")
        assert not left, f"{len(left)} of {count} cases:\n" + "\n".join(left)

    return tell


@pytest.mark.parametrize("area", ["tabular", "pictures", "atari", "course"])
def test_every_parameter_is_right_or_refused(area, report):
    total, faults = 0, []
    for name, (function, kinds) in getattr(fuzz_tables, area.upper()).items():
        count, found = fuzz(name, function, kinds, NAMES)
        total, faults = total + count, faults + found
    report(area, total, faults)


# --- maps ---------------------------------------------------------------------------------------------------------------


def judged(name: str, call, faults: list[str]) -> None:
    """Right, or a sentence; what a right answer must be, the call itself asserts."""
    _, error = outcome(call, name)
    if isinstance(error, AssertionError):
        faults.append(f"{name}: wrong, {error}")
    elif error is not None and (fault := fault_of(error, NAMES)):
        faults.append(f"{name}: {fault}")


def world_is_sound(text: str) -> None:
    """A map that is taken must be a world: every state in place, every row of T a distribution, nothing out of reach."""
    world = GridWorld.from_text(text)
    T = world.transition_matrix()
    assert world.n_states == sum(character not in "X#" for line in world.text.splitlines() for character in line)
    assert world.n_states > 0
    assert np.allclose(T.sum(axis=1), 1), "rows of T"
    assert (T >= 0).all()
    assert np.array_equal(world.to_grid(np.arange(world.n_states))[world.free], np.arange(world.n_states))
    assert GridWorld.from_text(world.text).text == world.text


ALPHABET = ".X#^>v<ABCxyz \t0\u0416é\u200b\0\r\x1b"


def mutated(text: str, rng: random.Random) -> str:
    """A few characters changed, dropped or put in, lines torn or doubled."""
    letters = list(text)
    for _ in range(rng.randint(1, 4)):
        at, how = rng.randrange(len(letters) + 1), rng.randrange(5)
        if how == 0 and at < len(letters):
            letters[at] = rng.choice(ALPHABET)
        elif how == 1 and at < len(letters):
            del letters[at]
        elif how == 2:
            letters.insert(at, rng.choice(ALPHABET + "\n"))
        elif how == 3:
            lines = "".join(letters).splitlines()
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines or [""]))
            letters = list("\n".join(lines))
        else:
            letters = letters[:at]
    return "".join(letters)


def test_maps_are_worlds_or_refused(report):
    rng, faults, count = random.Random(TIMES), [], 0
    drawn = np.random.default_rng(TIMES)
    bundled = [(eigenlib.paths.MAPS / f"{name}.txt").read_text(encoding="utf-8") for name in map_names()[:6]]
    for _ in range(300 * TIMES):
        maze = random_maze(drawn, int(drawn.integers(1, 9)), int(drawn.integers(1, 9)), 0.4)
        size = rng.randint(0, 30)
        noise = "".join(rng.choice(ALPHABET + "\n...XX") for _ in range(size))
        for text in (maze, noise, mutated(maze, rng), mutated(rng.choice(bundled), rng)):
            judged(f"from_text({text!r})", lambda text=text: world_is_sound(text), faults)
            count += 1
    report("maps", count, faults)


def test_maps_by_name_and_by_file(tmp_path, report):
    given, faults, count = tmp_path / "given", [], 0
    given.mkdir()
    files = {
        "good.txt": b"..\n..",
        "latin.txt": b"\xe9\xff\n..",
        "utf16.txt": "..\n..".encode("utf-16"),
        "empty.txt": b"",
        "zero.txt": b"\0\0",
        "windows.txt": b"..\r\n..\r\n",
        "long.txt": b"." * 5000,
    }
    for name, content in files.items():
        (given / name).write_bytes(content)
    (given / "folder.txt").mkdir()
    (given / "loop.txt").symlink_to(given / "loop.txt")
    paths = [str(given / name) for name in (*files, "folder.txt", "loop.txt", "missing.txt")]
    strange = [
        "",
        " ",
        ".",
        "..",
        "/",
        "//",
        "\0",
        "four_rooms.txt",
        "../maps/four_rooms",
        "FOUR_ROOMS",
        "four_rooms\n",
        "~",
        "*",
        "a" * 10_000,
        "\udcff",
        "/dev/null",
        "/proc/self/mem",
        "C:\\maps\\x.txt",
        "http://example.org/map.txt",
    ]
    for name in paths + strange:
        judged(f"named({name[:60]!r})", lambda name=name: GridWorld.named(name), faults)
        count += 1
    assert GridWorld.named(str(given / "windows.txt")).n_states == 4
    report("maps by name", count, faults)


# --- files that are damaged ---------------------------------------------------------------------------------------------


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Cut short, bits turned over, a piece of noise or of zeros in the middle, doubled, or emptied."""
    at = rng.randrange(max(len(data), 1))
    noise = bytes(rng.randrange(256) for _ in range(rng.randint(1, 40)))
    flipped = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :] if data else noise
    holed, filled = data[:at] + b"\0" * 8 + data[at + 8 :], data[:at] + noise + data[at:]
    return rng.choice([data[:at], flipped, filled, holed, data + data, b"", noise])


def bomb(path: Path) -> None:
    """A kilobyte that says it holds a terabyte, with a checksum that is right."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**11,)})
    _sealed(path, header.getvalue())


def _sealed(path: Path, member: bytes, name: str = "numbers.npy") -> None:
    """An archive with one member, whatever it is, and a description that vouches for it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, member)
    _vouched(path, buffer.getvalue())


def _vouched(path: Path, data: bytes) -> None:
    path.with_name(path.name + ".npz").write_bytes(data)
    about = {"sha256": hashlib.sha256(data).hexdigest(), "parameters": {}, "command": "none"}
    path.with_name(path.name + ".json").write_text(json.dumps(about))


def test_damaged_archives_are_refused(tmp_path, report):
    given, rng, faults, count = tmp_path / "given", random.Random(TIMES), [], 0
    given.mkdir()
    storage.save(given / "whole", {"numbers": np.arange(50.0), "more": np.eye(3)}, command="none")
    parts = {suffix: (given / f"whole{suffix}").read_bytes() for suffix in (".npz", ".json")}
    at = given / "torn"

    def load() -> None:
        arrays, _ = storage.load(at)
        if "numbers" in arrays:
            assert np.array_equal(arrays["numbers"], np.arange(50.0)), "another array than was stored"

    for k in range(150 * TIMES):
        for suffix, data in parts.items():
            at.with_name(at.name + suffix).write_bytes(
                damaged(data, rng) if (suffix == ".npz") == (k % 3 > 0) else data
            )
        judged(f"load, damage {k}", load, faults)
        _vouched(at, damaged(parts[".npz"], rng))  # the damage is older than the checksum
        judged(f"load, vouched damage {k}", lambda: storage.load(at), faults)
        count += 2
    pickled = io.BytesIO()
    np.save(pickled, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    zeros = io.BytesIO()
    np.save(zeros, np.zeros(2**20))  # eight megabytes of nothing in a few kilobytes
    for what, make in {
        "bomb": lambda: bomb(at),
        "too large": lambda: _sealed(at, zeros.getvalue()),
        "pickle": lambda: _sealed(at, pickled.getvalue()),
        "words": lambda: _sealed(at, b"words"),
        "no array": lambda: _sealed(at, b"words", "words.txt"),
        "folder": lambda: (at.with_name("torn.npz").unlink(), at.with_name("torn.npz").mkdir()),
    }.items():
        make()
        with patch.object(storage, "LARGEST", 2**20):
            _, error = outcome(lambda: storage.load(at), what)
        if error is None or fault_of(error, NAMES):
            faults.append(f"load, {what}: {error!r}")
        judged(f"load_reference, {what}", lambda: load_reference(at), faults)
        count += 2
    report("damaged archives", count, faults)


def test_damaged_networks_and_datasets_are_refused(tmp_path, report):
    rng, faults, count = random.Random(TIMES), [], 0
    good = {"run": fuzz_tables.stored_run(), "data": fuzz_tables.stored_data()}
    for kind, load in (("run", training.load_run), ("data", dataset.open_dataset)):
        folder = tmp_path / "given" / kind
        names = sorted(path.name for path in good[kind].iterdir() if path.is_file())
        for k in range(40 * TIMES):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(good[kind], folder)
            chosen = folder / rng.choice(names)
            chosen.write_bytes(damaged(chosen.read_bytes(), rng))
            judged(
                f"{load.__name__}, damage {k} to {chosen.name}", lambda load=load, folder=folder: load(folder), faults
            )
            count += 1
    run, changed = good["run"], tmp_path / "given" / "entry"
    about = storage.tensors_description(run / "run")

    def load() -> None:
        training.load_run(changed)

    def take_up() -> None:
        training.train(fuzz_tables.data(), fuzz_tables.config(), changed, progress=False, device="cpu", threads=1)

    for entry in about:
        for wrong in (None, -5, 10**9, 1e300, "words", [], {}, [1, "a"], True):
            for what in (load, take_up):
                shutil.rmtree(changed, ignore_errors=True)
                shutil.copytree(run, changed)
                (changed / "run.json").write_text(json.dumps(about | {entry: wrong}))
                name = f"{what.__name__}, {entry} = {wrong!r}"
                judged(name, what, faults)
                if entry == "update" and what is take_up and outcome(what, name)[1] is None:
                    faults.append(f"{name}: taken without a word")
                count += 1
    report("damaged networks and datasets", count, faults)


# --- the command line ---------------------------------------------------------------------------------------------------

NUMBERS = ("nan", "inf", "-inf", "-1", "0", "1.5", "x", "", "1e400", str(10**30), "0x10", "²")
WORDS = ("", "nonsense", "\0", "a\nb", "é", "--", "-", "a" * 5000)


class Reached(Exception):
    """The command went to work."""


def _reached(*_args, **_kwargs):
    raise Reached


WORK = (
    "eigencourse.report.run_many",
    "eigencourse.lessons.refresh",
    "eigencourse.readme.write",
    "eigencourse.readme.stale",
    "eigencourse.carry.carry",
    "eigencourse.editions.write_editions",
    "eigencourse.grading.grade._Class._examined",
    "eigencourse.grading.marks.write",
    "eigenlib.experiments._tasks.tasks",
    "eigencourse.doctor.examine",
    "eigencourse.doctor.run_many",
    "eigencourse.portable.probe",
    "eigencourse.readme.note_minutes",
)


def told(arguments: list[str]) -> tuple[str, str]:
    """("refused" | "worked" | "fault", what was said) of a command, run in this process with its long work left out."""
    out, err = io.StringIO(), io.StringIO()
    with ExitStack() as stack:
        for name in WORK:
            stack.enter_context(patch(name, _reached))
        stack.enter_context(patch.dict(pipeline.STEPS, dict.fromkeys(pipeline.STEPS, _reached)))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        status, error = outcome(lambda: cli.main(arguments), " ".join(arguments)[:200])
    if isinstance(error, Reached):
        return "worked", out.getvalue()
    if error is not None:
        return "fault", f"{type(error).__name__}: {error}"
    said = err.getvalue().strip()
    if status == 0:
        return "worked", out.getvalue()
    if not said.startswith("eigenlib: ") or (
        fault := not_a_sentence(said.removeprefix("eigenlib: "), NAMES | set(COMMANDS))
    ):
        return "fault", f"exit {status}, {said!r} {fault if said.startswith('eigenlib: ') else ''}"
    return "refused", said


COMMANDS = {  # option: (what it may be given, whether any word will do)
    "report": {
        "--tier": ("quick", False),
        "--only": ("02", False),
        "-p": ("GAMMA=0.8", False),
        "--params": (None, False),
        "--out": ("given/report", True),
        "--jobs": ("2", False),
    },
    "notebooks": {"--only": ("02", False)},
    "portable": {"--only": ("02", False), "--machines": ("own", False), "--jobs": ("2", False)},
    "readme": {},
    "student": {"--out": ("given/build", True)},
    "carry": {},
    "grade": {
        "--csv": ("given/marks.csv", True),
        "--timeout": ("5", False),
        "--total": ("50", False),
        "--jobs": ("1", False),
        "--gradebook": ("moodle", False),
        "--students": (None, False),
    },
    "experiment": {},
    "reference": {},
    "atari": {
        "--preset": ("quick", False),
        "--device": ("cpu", False),
        "--out": ("given/job", True),
        "--seed": ("3", False),
        "--precision": ("fp32", False),
        "--threads": ("1", False),
        "--processes": ("1", False),
        "--samples": ("50", False),
        "--passes": ("1", False),
        "--refine-passes": ("1", False),
        "--rows": ("50", False),
        "--purposes": ("2", False),
        "--steps": ("5", False),
    },
    "doctor": {"--only": ("02", False), "--jobs": ("2", False)},
}
POSITIONAL = {
    "report": ["--only", "02"],
    "carry": ["given/old.ipynb", "given/new.ipynb"],
    "grade": ["given/none.ipynb"],
    "experiment": ["atari_myopia"],
    "reference": ["control"],
    "atari": ["show", "freeway"],
    "doctor": ["--course"],
}
FINE = {  # what is right though it looks odd
    ("--passes", "0"),
    ("--refine-passes", "0"),
    ("--seed", "0"),
    ("-p", "GAMMA=0.8"),
    ("--timeout", "1.5"),
    ("--total", "1.5"),
}


def test_every_command_and_option_is_in_the_table():
    parser = cli._parser()
    (commands,) = [action.choices for action in parser._actions if isinstance(action.choices, dict)]
    missing = [name for name in commands if name not in COMMANDS]
    for name, command in commands.items():
        options = {option for action in command._actions if action.nargs != 0 for option in action.option_strings[-1:]}
        missing += [f"{name} {option}" for option in options - set(COMMANDS.get(name, ()))]
    assert not missing, f"not in COMMANDS: {missing}"


def test_the_command_line_refuses_in_one_sentence(tmp_path, report):
    given, faults, count = tmp_path / "given", [], 0
    given.mkdir()
    (given / "file").write_text("words")
    (given / "latin.yml").write_bytes(b"\xff\xfe")
    (given / "deep.yml").write_text("[" * 20_000)
    (given / "list.yml").write_text("- 1")
    (given / "big.yml").write_text("a: " + "b" * (2**20 + 10))
    (given / "keys.yml").write_text("1: 2")
    (given / "secret.yml").write_text("SEED: 3")
    (given / "secret.yml").chmod(0)
    names = ("", "file", "latin.yml", "deep.yml", "list.yml", "big.yml", "keys.yml", "missing", "file/below")
    files = [f"given/{name}" for name in names]

    def trial(arguments: list[str], right: bool | None) -> None:
        """right: it must work; False: it must refuse; None: either."""
        nonlocal count
        count += 1
        fate, said = told(arguments)
        shown = " ".join(word[:40] for word in arguments)
        if fate == "fault" or (right is not None and (fate == "worked") != right):
            faults.append(f"eigenlib {shown!r}: {fate}: {said[:300]}")

    for word in ("reprot", "gerade", "", "x" * 500, "-x", "--nonsense", "--versio\0n"):
        trial([word], False)
    for command, options in COMMANDS.items():
        rest = POSITIONAL.get(command, [])
        trial([command, *rest], True)
        for extra in ("--nonsense", "stray"):
            trial([command, *rest, extra], None if command == "grade" and extra == "stray" else False)
        for option, (right, any_word) in options.items():
            trial([command, *rest, option], False)  # nothing after it
            if right is not None:
                trial([command, *rest, option, right], True)
            for wrong in (*NUMBERS, *WORDS, *files):
                either = None if any_word and wrong not in ("", "\0") else False
                trial([command, *rest, option, wrong], True if (option, wrong) in FINE else either)
    for where in range(2):
        for wrong in WORDS:
            words = ["show", "freeway"]
            words[where] = wrong
            trial(["atari", *words], False)
    for wrong in (*WORDS, *NUMBERS):
        trial(["experiment", wrong], False)
    for wrong in ("", "\0"):
        trial(["grade", wrong], False)
    for path in files:
        trial(["grade", path, "--csv", "given/marks.csv"], None)
        for command in ("report", "student"):
            trial([command, "--out", path], None)
    assert "did you mean report?" in told(["reprot"])[1]
    report("command line", count, faults)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_a_sentence(tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "secret.yml").touch(mode=0)
    assert told(["report", "--params", "given/secret.yml"])[0] == "refused"


def test_without_the_repository_every_command_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("eigencourse.lessons.NOTEBOOKS", tmp_path / "notebooks")
    with pytest.raises(NotebookProblem, match="installed without its repository"):
        lessons()
    for command in (["report"], ["notebooks"], ["readme"], ["student"], ["doctor", "--course"]):
        with patch("eigencourse.readme.README", tmp_path / "README.md"):
            out, err = io.StringIO(), io.StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                assert cli.main(command) == 2
        assert "installed without its repository" in err.getvalue()
        assert err.getvalue().count("\n") == 1


def test_a_terminal_without_greek_goes_on():
    """An ASCII terminal gets a question mark for φ instead of a traceback."""
    code = "import sys; from eigencourse import cli; "
    code += "cli.COMMANDS['doctor'] = (lambda options: print('\\u03c6 is here') or 0, ()); "
    code += "sys.exit(cli.main(['doctor']))"
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=ascii_only, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "? is here\n", "")
