"""Marks for handed-in notebooks: `eigenlib grade SUBMISSION.ipynb … --csv marks.csv`.

Three processes, so that a submission costs at most its own row and cannot award itself anything:

    eigenlib grade ──▶ an examiner for each submission, who asks the checks ──▶ a room, in which its cells run

This module is the first of them: it hands each submission to an examiner (`eigencourse.grading.examiner`), ends whatever is
left of it, and has its row on disk before the next one begins. What was graded before, by the same checks, is not graded again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import queue
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from eigencourse.grading import marks, sandbox
from eigenlib import _require
from eigenlib.paths import PACKAGE
from eigenlib.storage import alone_in

LARGEST = 50 * 2**20  # bytes of a submission
_ROOM = 2**20  # bytes that must be free where the marks go
_GRACE = 60.0  # seconds that an examiner may be late


def grade(
    submissions: Iterable[Path | str],
    csv_file: Path | str,
    timeout: float = 60,
    total: float = 600,
    jobs: int = 1,
    again: bool = False,
    unsafe: bool = False,
) -> list[marks.Row]:
    """Grade notebooks, a row each, and give the rows; nothing that is wrong with one of them is raised.

    timeout: seconds a cell may take.  total: seconds a whole notebook may take.  jobs: notebooks at a time.
    again: also what has its mark already.  unsafe: without a sandbox, with the rights of whoever calls this.
    """
    given = [_require.path(path, "submissions") for path in _require.several(submissions, "submissions", "files")]
    target, jobs = _require.path(csv_file, "csv_file"), _require.whole(jobs, "jobs", 1, 1024)
    timeout, total = (
        _require.real(seconds, name, 0, 10**7, "(]") for seconds, name in ((timeout, "timeout"), (total, "total"))
    )
    again, unsafe = _require.flag(again, "again"), _require.flag(unsafe, "unsafe")
    names = _found(given)
    _require_place(target)
    if not unsafe and (lack := sandbox.missing()):
        raise ValueError(
            f"Submissions cannot be shut in on this system ({lack}): grade on a Linux that allows user namespaces, "
            "or in a container or account with nothing to lose and then with --unsafe."
        )
    with alone_in(target.absolute().parent):
        return _Class(target, names, timeout, total, jobs, again, unsafe).grade()


class _Class:
    """All submissions of one call, and the table that grows."""

    def __init__(self, target: Path, names: dict[str, str], timeout, total, jobs, again, unsafe):
        self.target, self.names, self.jobs, self.again = target, names, jobs, again
        self.settings = {"timeout": timeout, "total": total, "unsafe": unsafe}
        self.rows: dict[str, marks.Row] = {row["file"]: row for row in marks.read(target)}
        # a call that goes on where it was stopped gives the same table as one that was not
        self.order = list(dict.fromkeys([*({} if self.rows.keys() <= names.keys() else self.rows), *names]))
        self.code = f"{_code()} {timeout:g} {total:g}".encode()
        self.lock, self.running, self.stopping = threading.Lock(), set[subprocess.Popen](), False
        self.cores: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        every = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") and not unsafe else [None]
        for number in range(jobs):
            self.cores.put(every[number % len(every)])

    def grade(self) -> list[marks.Row]:
        self._write()  # a place that cannot be written to is better known now
        pool = ThreadPoolExecutor(self.jobs)
        try:
            for future in [pool.submit(self._one, shown, name) for shown, name in self.names.items()]:
                future.result()
        finally:  # Ctrl-C and a full disk come through here too
            with self.lock:
                self.stopping = True
                for examiner in self.running:
                    sandbox.end_family(examiner.pid)
            pool.shutdown(cancel_futures=True)
        return [self.rows[shown] for shown in self.names]

    def _one(self, shown: str, name: str) -> None:
        content = _read(Path(name))
        fingerprint = hashlib.sha256(self.code + content).hexdigest()[:16] if isinstance(content, bytes) else ""
        old = self.rows.get(shown)
        if old and fingerprint and old.get("fingerprint") == fingerprint and not self.again:
            print(f"{shown}: {old['passed']} of {old.get('total') or '?'}, as before", flush=True)
            return
        result = self._examined(name, content)
        if result is None:
            return
        found: dict[str, str] = result.get("marks", {})
        row: marks.Row = {"file": shown, "lesson": result.get("lesson", ""), "status": plain(result["status"])}
        row |= {"passed": sum(mark == "passed" for mark in found.values()), "total": len(found) or "", **found}
        if not result.get("ours"):  # what went wrong on our side is tried again next time
            row["fingerprint"] = fingerprint
        with self.lock:
            if self.stopping:
                return
            self.rows[shown] = row
            self._write()
        print(f"{shown}: {row['passed']} of {row['total'] or '?'}, {row['status']}", flush=True)

    def _write(self) -> None:
        marks.write(self.target, [self.rows[shown] for shown in self.order if shown in self.rows])

    def _examined(self, name: str, content: bytes | str) -> dict[str, Any] | None:
        """What the examiner says of one submission, who is ended with all that was started; None if we were told to stop."""
        if isinstance(content, str):
            return {"status": f"broken: {content}"}
        core, total = self.cores.get(), self.settings["total"]
        job = {"name": name, "notebook": base64.b64encode(content).decode(), "core": core, "parent": os.getpid()}
        # -P: never import what lies in the current folder, which may well be that of the submissions. A session of its own:
        # Ctrl-C is for us, who then end it.
        command = [sys.executable, "-P", "-m", "eigencourse.grading.examiner"]
        pipe = subprocess.PIPE
        with self.lock:
            if self.stopping:
                return None
            examiner = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
            self.running.add(examiner)
        with examiner:
            try:
                output, errors = examiner.communicate(json.dumps(job | self.settings).encode(), timeout=total + _GRACE)
            except subprocess.TimeoutExpired:
                return {"status": f"timeout: not done after {total:g} s"}
            finally:
                with self.lock:
                    if examiner.poll() is None:  # else its number may already be another's
                        sandbox.end_family(examiner.pid)
                    self.running.discard(examiner)
                self.cores.put(core)
        if self.stopping:
            return None
        if examiner.returncode:
            last = errors.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {examiner.returncode}"]
            return {"status": f"broken: its examiner stopped ({last[0]})", "ours": True}
        try:
            return json.loads(output)
        except ValueError:
            return {"status": "broken: its examiner said nothing that can be read", "ours": True}


def plain(text: str, most: int = 200) -> str:
    """One printable line, whatever a submission put into it."""
    _require.text(text, "text"), _require.whole(most, "most", 0)
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())[:most]


def _found(submissions: Iterable[Path | str]) -> dict[str, str]:
    """{name to show: path} of every submission; of a folder, all notebooks in it and below."""
    paths: list[str] = []
    for name in map(str, submissions):
        inside = []
        if os.path.isdir(name) and not os.path.islink(name):  # a link may lead anywhere
            for folder, below, files in os.walk(name):
                below[:] = sorted(one for one in below if not one.startswith((".", "__MACOSX")))
                inside += [os.path.join(folder, file) for file in sorted(files) if file.endswith(".ipynb")]
        paths += inside or [name]
    found: dict[str, str] = {}
    for path in dict.fromkeys(map(os.path.normpath, paths)):
        shown = plain(os.fsencode(path).decode("utf-8", "replace"), 4096)  # archives of other systems hold other codes
        number = 1
        while (key := f"{shown} ({number})" if number > 1 else shown) in found:
            number += 1
        found[key] = path
    return found


def _require_place(target: Path) -> None:
    """Refuse a place for the marks that cannot hold them, before an hour of work."""
    if not target.parent.is_dir():
        raise ValueError(f"There is no folder {target.parent} for the marks: make it, or choose another --csv.")
    if target.is_dir():
        raise ValueError(f"The marks cannot be written to {target}, which is a folder: choose another --csv.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target} is no ordinary file, so the marks cannot be kept there: choose another --csv.")
    if not os.access(target.parent, os.W_OK):
        raise ValueError(f"The folder {target.absolute().parent} cannot be written to: choose another --csv.")
    if (free := shutil.disk_usage(target.parent).free) < _ROOM:
        raise ValueError(f"Only {free // 1024} kB are free for {target}, and 1 MB is asked for: make room first.")


def _read(path: Path) -> bytes | str:
    """The file's bytes, or why there are none. Nothing but an ordinary file is opened: a FIFO would never end."""
    try:
        kind = os.lstat(path).st_mode
        if stat.S_ISLNK(kind):
            return "a link, not a file"
        if stat.S_ISDIR(kind):
            return "a folder without a notebook"
        if not stat.S_ISREG(kind):
            return "not an ordinary file"
        flags = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"))
        with open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags)) as file:
            content = file.read(LARGEST + 1)
        return content if len(content) <= LARGEST else f"larger than {LARGEST // 2**20} MB"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _code() -> str:
    """A checksum of everything that could change a mark."""
    found = hashlib.sha256()
    for folder in (PACKAGE, Path(__file__).parents[1]):
        for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".toml")):
            found.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return found.hexdigest()
