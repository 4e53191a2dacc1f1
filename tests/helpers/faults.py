"""What may happen to a long command while it runs: `make faults`, and a sample in `make test`.

Every long command, at its smallest, is first run undisturbed. Then, each time from the same beginning, it is

- killed (SIGKILL), told to end (SIGTERM) or interrupted (Ctrl-C) when it is about to change a file for the n-th time, or at
  a random moment;
- given a disk that is full from the n-th change of a file on, or a real file system of a few kilobytes;
- started twice at once.

It has held if afterwards nothing runs for more than two seconds, what it said was a sentence, the same command, given again,
ends well, and then the folder holds the same files as after the undisturbed run, byte for byte, and none besides.
Timings are left out of the comparison; they are all that may differ.

    make faults ARGS="experiment grade --tries 2 --seed 7"
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil

from eigencourse.lessons import clean

HELPER = Path(__file__).with_name("small_command.py")
GRACE = 2.0  # seconds that something may live on
LONGEST = 600.0
SIGNALS = ("KILL", "TERM", "INT")
ATARI = (
    "freeway --preset quick --device cpu --threads 1 --precision fp32 --seed 3 --out job --processes 2 --samples 100"
)
ATARI += " --passes 2 --refine-passes 1 --rows 60 --purposes 1 --steps 2"
ANSWER = "import numpy as np\nmy_first_light = 10\nmy_ratio_limit = {}\n"


@dataclass(frozen=True)
class Command:
    words: str
    after: str = ""  # the command that has to be done before
    least: int = 0  # bytes that it wants to see before it begins


COMMANDS = {
    "experiment": Command("experiment control"),
    "notebooks": Command("notebooks"),
    "report": Command("report --out pages --jobs 2"),
    "grade": Command("grade handed-in --csv marks/marks.csv --jobs 2", least=2**20),
    "collect": Command(f"atari collect {ATARI}", least=2**20),
    "train": Command(f"atari train {ATARI}", "collect"),
    "discover": Command(f"atari discover {ATARI}", "train", 2**20),
    "run": Command(f"atari run {ATARI}", least=2**20),
}


Begun = tuple[subprocess.Popen, Path]  # a process, and the file that keeps what it says


class Fault(Exception):
    """What should not have happened, in a sentence."""


class Bench:
    """One command, its undisturbed run, and what it is put through."""

    def __init__(self, name: str, scratch: Path, rng: random.Random):
        self.command, self.scratch, self.rng, self.number = COMMANDS[name], scratch, rng, 0
        self.start = scratch / f"{name}-start"
        before = scratch / f"{self.command.after}-whole"
        if self.command.after and not before.exists():
            Bench(self.command.after, scratch, rng)
        shutil.copytree(before, self.start) if self.command.after else _furnish(self.start)
        whole, counted = scratch / f"{name}-whole", scratch / f"{name}-changes"
        shutil.copytree(self.start, whole)
        begin = time.monotonic()
        self._finish(self._begin(whole, count=str(counted)))
        self.seconds, self.changes = time.monotonic() - begin, int(counted.read_text())
        self.wanted, self.size = contents(whole), _size(whole) - _size(self.start)

    def at_change(self, sort: str, at: int) -> None:
        """A signal, or a disk that is full from then on, when it is about to change a file for the at-th time."""
        with self._folder() as folder:
            # on a full disk it ends well if all that was left to do was to remove something
            expected = {"KILL": -9, "TERM": -15, "INT": 130, "full": None}[sort]
            self._finish(self._begin(folder, sort, at), expected, full=sort == "full")
            self._again(folder)

    def at_moment(self, sort: str, share: float) -> None:
        """A signal after a share of the time that it takes; Ctrl-C goes to everything in its terminal."""
        with self._folder() as folder:
            begun = process, _ = self._begin(folder)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(share * self.seconds)
            with contextlib.suppress(ProcessLookupError):
                number = getattr(signal, f"SIG{sort}")
                os.killpg(process.pid, number) if sort == "INT" else process.send_signal(number)
            self._finish(begun, None)
            self._again(folder)

    def small_disk(self, room: int) -> None:
        """A file system with so many bytes of room; then it grows."""
        with self._folder() as folder, _mounted(folder, self.start, room) as grow:
            # where nobody may mount, no file may grow beyond that
            self._finish(self._begin(folder, most=0 if grow else room), None, full=True)
            if grow is not None:
                grow()
            self._again(folder)

    def two_at_once(self, _: int) -> None:
        with self._folder() as folder:
            both = [self._begin(folder) for _ in range(2)]
            ends = [_ended(begun) for begun in both]
            for status, text in ends:
                if status not in (0, 2) or (status and "at work" not in text):
                    raise Fault(f"of two at once one ended with {status}: {text[-300:]}")
            if all(status for status, _ in ends):
                raise Fault("of two at once both were refused")
            self._compare(folder)

    def _begin(self, folder: Path, sort: str = "none", at: int = 0, count: str = "-", most: int = 0) -> Begun:
        command = [sys.executable, str(HELPER), sort, str(at), count, *self.command.words.split()]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(self.scratch)}
        if most:
            command = ["sh", "-c", f'ulimit -f {max(1, most // 512)} && exec "$0" "$@"', *command]
        # A session of its own: what is sent to it does not reach us. Into a file: a pipe ends when all that hold it have ended.
        self.number += 1
        with open(self.scratch / f"said-{self.number}", "wb") as said:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
            )
        return process, Path(said.name)

    def _finish(self, begun: Begun, status: int | None = 0, full: bool = False) -> None:
        """Wait for its end and for that of all it started, and look at what it said."""
        found, text = _ended(begun)
        _require_quiet()
        if found != status and status is not None:
            raise Fault(f"it ended with {found}, not {status}: {text[-600:]}")
        if (full or status == 130) and ("Traceback" in text or found not in (0, 2, 130)):
            raise Fault(f"it ended with {found} and no sentence: {text[-600:]}")
        if full and found and not re.search("no space|too large| free", text, re.IGNORECASE):
            raise Fault(f"it does not say that the disk is full: {text[-600:]}")

    def _again(self, folder: Path) -> None:
        try:
            self._finish(self._begin(folder))
        except Fault as fault:
            raise Fault(f"given again, {fault}") from None
        self._compare(folder)

    def _compare(self, folder: Path) -> None:
        found = contents(folder)
        differ = sorted(name for name in {*found, *self.wanted} if found.get(name) != self.wanted.get(name))
        if differ:
            more, less = [n for n in differ if n not in self.wanted], [n for n in differ if n not in found]
            raise Fault(f"other files than undisturbed (too many {more}, too few {less}, all that differ {differ})")

    @contextlib.contextmanager
    def _folder(self) -> Iterator[Path]:
        """A folder as at the beginning, with a name of the kind that people have; the same length always."""
        folder = self.scratch / "ein Ördner"
        shutil.copytree(self.start, folder)
        try:
            yield folder
        finally:
            _require_quiet(kill=True)
            shutil.rmtree(folder)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, by its path, without what depends on time."""
    files = (path for path in sorted(folder.rglob("*")) if not path.is_dir() or path.is_symlink())
    found = {str(path.relative_to(folder)): _timeless(path) for path in files}
    return found | {str(path.relative_to(folder)): b"" for path in folder.rglob("*") if path.is_dir()}


def _timeless(path: Path) -> bytes:
    if path.suffix == ".ipynb":
        notebook = clean(nbformat.read(path, as_version=4))
        notebook.metadata.eigenlib.pop("run", None)
        return nbformat.writes(notebook).encode()
    if path.name == "run.json":
        about = json.loads(path.read_bytes())
        return json.dumps(about | {"history": [entry[:3] for entry in about["history"]]}).encode()
    if path.suffix == ".html":
        return re.sub(rb"[\d.]+(\xa0|&nbsp;| )(s|min|seconds?|minutes?)\b", b"", path.read_bytes())
    return path.read_bytes()


def _furnish(folder: Path) -> None:
    """Two lessons and two answers to hand in."""
    for name in ("course", "handed-in", "marks"):
        (folder / name).mkdir(parents=True)
    for number in ("90", "91"):
        head, code = nbformat.v4.new_markdown_cell(f"# Lesson {number}\n\n**Why?**"), nbformat.v4.new_code_cell
        cells = [head, code("TIER = 'quick'"), code(f"print(sum(range({number})))")]
        cells[1].metadata["tags"] = ["parameters"]
        _write(folder / "course" / f"{number}_lesson.ipynb", cells, eigenlib={"budget_seconds": 30})
    for name, limit in (("ada", 1), ("bob", 2)):
        path = folder / "handed-in" / f"01_successor_representation_{name}.ipynb"
        _write(path, [nbformat.v4.new_code_cell(ANSWER.format(limit))])


def _write(path: Path, cells: list, **metadata) -> None:
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    nbformat.write(clean(nbformat.v4.new_notebook(cells=cells, metadata=metadata)), path)


def _ended(begun: Begun) -> tuple[int, str]:
    process, said = begun
    try:
        process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Fault(f"it was not done after {LONGEST:.0f} s") from None
    return process.returncode, said.read_text(encoding="utf-8", errors="replace")


def _require_quiet(kill: bool = False) -> None:
    """Orphans are adopted by us, so whatever is left is a descendant."""
    end = time.monotonic() + GRACE
    while left := [one for one in psutil.Process().children(recursive=True) if _alive(one)]:
        if kill or time.monotonic() > end:
            said = [" ".join(one.cmdline())[:120] for one in left if _alive(one)]
            for one in left:
                with contextlib.suppress(psutil.Error):
                    one.kill()
            if said and not kill:
                raise Fault(f"after {GRACE:.0f} s there was still {said}")
        time.sleep(0.05)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


@contextlib.contextmanager
def _mounted(folder: Path, start: Path, room: int):
    """A file system in memory at `folder`, with what is in `start` and `room` more bytes; None where nobody may mount."""

    def resize(size: int) -> bool:
        how = "remount," if folder.is_mount() else ""
        command = ["mount", "-t", "tmpfs", "-o", f"{how}size={size}", "eigenlib-faults", str(folder)]
        return sys.platform == "linux" and subprocess.run(command, capture_output=True).returncode == 0

    if not resize(2**28):
        yield None
        return
    try:
        shutil.copytree(start, folder, dirs_exist_ok=True)
        about = os.statvfs(folder)
        resize((about.f_blocks - about.f_bfree) * about.f_frsize + room)
        yield lambda: resize(2**28)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _size(folder: Path) -> int:
    return sum(-(-path.stat().st_size // 4096) * 4096 for path in folder.rglob("*") if path.is_file())


def trials(bench: Bench, tries: int) -> Iterator[tuple[str, list]]:
    """Sorts of faults, each with its method and the values to try."""
    rng, least = bench.rng, bench.command.least
    for sort in (*SIGNALS, "full"):
        places = rng.sample(range(1, bench.changes + 1), min(tries, bench.changes))
        if tries > 1:  # what a kill leaves when all was stored is easily forgotten: this one is among the last
            places[0] = rng.randint(max(1, bench.changes - 9), bench.changes)
        label = "disk full from a change on" if sort == "full" else f"SIG{sort} at a change"
        yield label, [(bench.at_change, sort, at) for at in sorted(places)]
    for sort in SIGNALS:
        yield f"SIG{sort} at a moment", [(bench.at_moment, sort, rng.random()) for _ in range(tries)]
    rooms = [4096 * rng.randint(1, 1 + int(1.3 * bench.size) // 4096) + least for _ in range(tries)]
    yield "a disk of a few kilobytes", [(bench.small_disk, room) for room in rooms]
    yield "two at once", [(bench.two_at_once, 2) for _ in range(-(-tries // 2))]


def main() -> int:
    parser = argparse.ArgumentParser(description="What may happen to a long command while it runs.")
    parser.add_argument("commands", nargs="*", help=f"of {', '.join(COMMANDS)} (default: all)")
    parser.add_argument("--tries", type=int, default=4, help="of each sort of fault (default: 4)")
    parser.add_argument("--seed", type=int, default=0, help="of places and moments (default: 0)")
    parser.add_argument("--only", default="", help="sorts of faults whose names match this")
    options = parser.parse_args()
    if unknown := set(options.commands) - set(COMMANDS):
        parser.error(f"there is no {', '.join(unknown)}")
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: no orphan gets away
    failures: list[str] = []
    print(f"{'command':12}{'fault':30}{'tried':>6}  outcome", flush=True)
    with tempfile.TemporaryDirectory(prefix="eigenlib faults ") as scratch:
        for name in options.commands or COMMANDS:
            bench = Bench(name, Path(scratch), random.Random(f"{options.seed} {name}"))
            print(f"{name:12}{'none':30}{1:6}  {bench.changes} changes of files, {bench.seconds:.1f} s", flush=True)
            for sort, cases in trials(bench, options.tries):
                if not re.search(options.only, sort):
                    continue
                held = 0
                for try_it, *values in cases:
                    try:
                        try_it(*values)
                        held += 1
                    except Fault as fault:
                        failures.append(f"{name}, {sort} {values}: {fault}")
                outcome = "held" if held == len(cases) else f"{len(cases) - held} FAILED"
                print(f"{name:12}{sort:30}{len(cases):6}  {outcome}", flush=True)
    print(*(f"\n{failure}" for failure in failures), sep="")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
