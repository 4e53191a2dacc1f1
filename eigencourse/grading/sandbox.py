"""A room for strangers' code (`eigenlib grade`): what is not needed is not there. Linux's own means, nothing to install.

    examiner ──▶ the room's keeper (`eigencourse.grading.keeper`) ──▶ the submission (`eigencourse.grading.runner`)
                 assembles a root, counts, ends everything            owns nothing, may do nothing

The submission sees a root made of read-only mounts of the system's libraries, Python, eigenlib and its data, and of
eigencourse the few files that a notebook needs (`_SEEN`); a scratch folder in memory, of limited size, which is also /tmp,
/run and /dev/shm; five harmless devices; and its own processes. There is no network, not even a loopback. It runs under a
number that owns nothing outside, without privileges and without a way to new ones. Processes, memory and scratch are limited
for the submission as a whole, and it has one core.

When the examiner ends, however it ends, the keeper reads the end of its control pipe and goes; and when the first process
of a pid namespace goes, the kernel kills all others in it. SECURITY.md says what this promises and what it does not.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from eigencourse.grading import keeper
from eigenlib.paths import CACHE, DATA, PACKAGE

_COURSE = Path(__file__).parents[1]
# All that there is of eigencourse inside, beside a check that says nothing, because answers are checked outside.
_SEEN: tuple[str, ...] = ("__init__.py", "paths.py", "ledger.py", "claims.toml")
_SEEN += ("grading/__init__.py", "grading/wire.py", "grading/runner.py")
_SILENT = '''"""Inside the room of a submission: its answers are checked outside."""
class _Silent:
    def __getattr__(self, name):
        return lambda answer=None: None
check = _Silent()
'''
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "fonts", "alternatives")
_KEPT = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")  # of the environment


class Room:
    """A running submission: `process.stdin` and `process.stdout` are the only ways in and out."""

    def __init__(self, command: list[str], core: int | None = None, unsafe: bool = False):
        """core: the only one to compute on."""
        self.folder = tempfile.mkdtemp(prefix="eigenlib-") if unsafe else ""
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join(dict.fromkeys(map(str, (PACKAGE.parent, _COURSE.parent)))),
            "HOME": self.folder or "/scratch/home",
            "TMPDIR": self.folder or "/tmp",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }
        job = {"command": command, "files": _files(), "core": core, "environment": environment, "places": places()}
        theirs, self.control = os.pipe()
        script = [sys.executable, "-I", "-S", keeper.__file__, json.dumps(job | {"cache": str(CACHE)}), str(theirs)]
        self.process = subprocess.Popen(
            command if unsafe else script,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if unsafe else subprocess.PIPE,
            cwd=self.folder or "/",
            env=environment if unsafe else {},
            pass_fds=() if unsafe else [theirs],
            preexec_fn=_limits_alone if unsafe else None,
            start_new_session=True,
        )
        os.close(theirs)

    def interrupt(self) -> None:
        with contextlib.suppress(OSError):
            if self.folder:
                self.process.send_signal(signal.SIGINT)
            else:
                os.write(self.control, b"i")

    def end(self) -> int:
        """Leave nothing of it behind, and say how it ended."""
        os.close(self.control)
        if self.folder:
            end_family(self.process.pid)
            shutil.rmtree(self.folder, ignore_errors=True)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()
        return self.process.wait()


def _files() -> dict[str, str]:
    """What stands where eigencourse does, {path: text}, and nothing else."""
    texts = {name: (_COURSE / name).read_text(encoding="utf-8") for name in _SEEN} | {"exercises/__init__.py": _SILENT}
    return {str(_COURSE / name): text for name, text in texts.items()}


def places() -> list[str]:
    """What a submission needs to read: the system, Python, eigenlib and the data; neither notebooks nor tests."""
    # Of Python's folders only what a program needs: a virtual environment may have been made in the middle of other things.
    inside = ("bin", "lib", "lib64", "share", "etc", "pyvenv.cfg")
    mine = [os.path.join(prefix, name) for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix) for name in inside]
    mine += [str(PACKAGE), str(DATA)]
    return [*keeper.SYSTEM, *(f"/etc/{name}" for name in _ETC), *sorted({*mine, *map(os.path.realpath, mine)})]


def missing() -> str:
    """What this system lacks for such a room, in a few words; empty where nothing is."""
    if not sys.platform.startswith("linux"):
        return f"{platform.system()} has no namespaces"
    room = Room([sys.executable, "-P", "-c", "import IPython, numpy, subprocess; subprocess.run('true')"])
    errors = room.process.communicate()[1].decode(errors="replace").strip().splitlines()
    if room.end() == 0:
        return ""
    return errors[-1] if errors else "its first process ended at once"


def end_family(pid: int) -> None:
    """End a process and all that it started: first everything is stopped, so that nothing new can start meanwhile."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        family: set[psutil.Process] = set()
        while new := {top, *top.children(recursive=True)} - family:
            for process in new:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.suspend()
            family |= new
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def adopt_orphans() -> None:
    """Processes whose parent ends become children of this one, so that none escapes (Linux)."""
    keeper.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def end_with_parent() -> None:
    """This process, and what it turns into, is killed when its parent ends, however that ends (Linux)."""
    keeper.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _limits_alone() -> None:
    end_with_parent()
    keeper.limit()
