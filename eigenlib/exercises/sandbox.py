"""The process in which a submission runs (`eigenlib grade`): everything it should not do is taken away, then a kernel starts.

Always: a memory limit, no large files, an empty home of its own, no variables of the instructor's environment, and an end
with the grader. Where Linux allows it, also: files can be written only in that home (Landlock), and there are no other
processes to see and no network (namespaces, by util-linux's `unshare`). What a system does not offer is left out: on such a
system, and for a class you have reason to distrust, grade in a container or under another account.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

import psutil

_UNSHARE = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--net"]
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH")  # of the environment


@cache
def namespaces() -> list[str]:
    """What to put before a command to run it among no other processes and without a network; empty where that is refused."""
    for command in ([*_UNSHARE, "--mount-proc"], _UNSHARE):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            if subprocess.run([*command, "true"], capture_output=True, timeout=10).returncode == 0:
                return command
    return []


def start_kernel(folder: Path, connection_file: str) -> subprocess.Popen:
    """A kernel that listens where `connection_file` says and can write only in `folder`."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"HOME": str(folder), "TMPDIR": str(folder), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", "eigenlib.exercises.sandbox", str(folder), connection_file]
    silent = subprocess.DEVNULL
    return subprocess.Popen(
        [*namespaces(), *command],
        cwd=folder,
        env=environment,
        stdin=silent,
        stdout=silent,
        stderr=silent,
        start_new_session=True,
        preexec_fn=end_with_parent,
    )


def limit_memory(size: int) -> None:
    """For this process and those it starts: so many bytes of memory, files of at most 256 MB, no core dumps."""
    for limit, most in (("RLIMIT_AS", size), ("RLIMIT_FSIZE", 2**28), ("RLIMIT_CORE", 0)):
        with contextlib.suppress(ValueError, OSError):  # macOS does not know or keep all of them
            resource.setrlimit(getattr(resource, limit), (most, most))


def end_family(pid: int) -> None:
    """End a process and all that it started: first everything is stopped, so that nothing new can start meanwhile."""
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
    _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def end_with_parent() -> None:
    """This process, and what it turns into, is killed when its parent ends, however that ends (Linux)."""
    _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def write_only_in(folder: Path) -> bool:
    """From now on, for good, this process can change no file outside `folder` (Linux's Landlock); False where there is none."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    create, add_rule, restrict = 444, 445, 446  # the same numbers on every processor
    version = libc.syscall(create, None, 0, 1)
    if version < 1:
        return False
    write, make = 1 << 1, sum(1 << bit for bit in range(4, 13))  # write a file; remove and make files and folders
    write |= (1 << 14) if version >= 3 else 0  # truncate
    everything = write | make | ((1 << 13) if version >= 2 else 0)  # move
    rules = libc.syscall(create, struct.pack("=Q", everything), 8, 0)
    for path, allowed in ((folder, everything), ("/dev/shm", everything), ("/dev", write)):
        with contextlib.suppress(OSError):
            place = os.open(path, os.O_PATH)
            libc.syscall(add_rule, rules, 1, struct.pack("=Qi", allowed, place), 0)
            os.close(place)
    _prctl(38, 1)  # PR_SET_NO_NEW_PRIVS, without which the next call is refused
    return libc.syscall(restrict, rules, 0) == 0


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    write_only_in(Path(sys.argv[1]))
    from ipykernel.kernelapp import launch_new_instance

    sys.path.insert(0, "")  # a notebook may import what it has written beside itself
    launch_new_instance(argv=["-f", sys.argv[2]])
