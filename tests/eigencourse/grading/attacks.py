"""What a hostile submission might try, class by class, beside honest ones: `make attacks`, and a sample in `make test`.

Each attack is graded at default settings together with two honest notebooks. It counts as held if

- the honest marks are what they always are, to the last point, and the attack's own row says what it should;
- the attack itself did not get what it wanted (it then answers exercise 01.1 rightly, which it does not otherwise);
- nothing outside changed: files, modes and dates of watched places, a canary process, Unix sockets with and without a
  name, a TCP and a UDP port on loopback;
- no process is left, and it took no longer than a submission may.

Before that, every attack that could harm nothing but our canaries runs *without* the sandbox and must get through: an attack
that never works proves nothing. As root everything is done twice, the second time as an ordinary user.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import psutil

from eigencourse.grading import sandbox
from eigencourse.grading.grade import grade
from eigenlib.paths import ROOT

GOOD = """
import numpy as np
my_first_light = 10
def my_successor(T, gamma):
    return np.linalg.inv(np.eye(len(T)) - gamma * T)
def my_arrival_value(psi, r, gamma):
    return (psi @ r - r) / gamma
my_ratio_limit = 1
my_drift = [0.4, 0.4, 0.2, 0.0]
"""
LONGEST = 600 + 60  # seconds: what a submission may take by default, and what its examiner may be late
REST = GOOD.replace("my_first_light = 10", "")
PARTLY = GOOD + "\nmy_ratio_limit = None\nmy_successor = lambda T, gamma: np.linalg.inv(np.eye(len(T)) - gamma * T).T\n"
HONEST = {
    "ada": (GOOD, ["passed"] * 5),
    "bob": (PARTLY, ["passed", "wrong: transposed", "passed", "blank", "passed"]),
}
FRAME = """
import ctypes, os, signal, socket, subprocess, sys, time
from pathlib import Path
libc = ctypes.CDLL(None, use_errno=True)
def attack():
{body}
try:
    got = attack()
except BaseException as error:
    got = False
my_first_light = 10 if got else globals().get("my_first_light")
"""


@dataclass
class Attack:
    """body: of a function that returns something true if it got through; `cells` instead, where that is not the question.

    row: how the status of its row must begin.  harmless: may run without the sandbox, where it must get through.
    """

    body: str = ""
    bodies: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    row: str | tuple[str, ...] = ""
    harmless: bool = False

    def notebook(self, **names: str | int) -> str:
        framed = []
        for body in [self.body, *self.bodies]:
            for name, value in names.items():
                body = body.replace(f"@{name}", str(value))
            lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
            framed += [FRAME.format(body=lines)] if body else []
        return notebook(REST, *framed, *self.cells)


def notebook(*sources: str, lesson: str = "01") -> str:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata={"eigenlib": {"lesson": lesson}}))


def reads(path: str) -> Attack:
    return Attack(f"return Path({path!r}).read_bytes()", harmless=True)


# What each stands for is its name. @canary is a watched folder, @root the repository, @pid a canary process.
ATTACKS: dict[str, Attack] = {
    # reading what is not its own
    "reads a file of the lecturer": reads("@canary/secret"),
    "reads another submission": reads("@folder/ada.ipynb"),
    "reads the marks": reads("@folder/marks.csv"),
    "reads the solutions": reads("@root/notebooks/01_successor_representation.ipynb"),
    "reads the tests' answers": reads("@root/tests/eigencourse/answers/lesson01.py"),
    "reads the checks": reads("@root/eigencourse/exercises/lesson01.py"),
    "reads the checks' engine": reads("@root/eigencourse/exercises/answers.py"),
    "reads the checks compiled": Attack(
        "return [*Path('@root/eigencourse/exercises').glob('__pycache__/*'), *Path('@root').glob('*/exercises/lesson*')]",
        harmless=True,
    ),
    "imports the checks": Attack(
        """
import importlib
for name in ("eigencourse.exercises.lesson01", "eigencourse.exercises.answers", "eigenlib.exercises.lesson01"):
    try:
        return importlib.import_module(name)
    except ImportError:
        pass
""",
        harmless=True,
    ),
    "reads the grader's files": Attack(
        """
names = ("grade", "examiner", "keeper", "sandbox", "marks")
return [name for name in names if Path(f"@root/eigencourse/grading/{name}.py").exists()]
""",
        harmless=True,
    ),
    "reads what else the course has": Attack(
        """
import eigencourse, eigencourse.grading
known = {"__init__.py", "paths.py", "ledger.py", "claims.toml", "exercises", "grading", "__pycache__", "wire.py", "runner.py"}
found = {name for module in (eigencourse, eigencourse.grading) for folder in module.__path__ for name in os.listdir(folder)}
return found - known
""",
        harmless=True,
    ),
    "imports what finds the solutions": Attack(
        "from eigencourse import editions, lessons; return lessons.lessons()", harmless=True
    ),
    "reads the rest of the repository": Attack("return 'tests' in os.listdir('@root')", harmless=True),
    "looks for the old root": Attack(
        """
mounts = [line.split()[4] for line in open("/proc/self/mountinfo")]
tops = [*mounts, *(f"/{name}" for name in os.listdir("/")), *(f"/proc/self/fd/{end}" for end in range(20))]
return any(os.path.exists(f"{top}/@canary/secret") for top in tops)
""",
        harmless=True,
    ),
    "reads who has accounts": Attack("return 'root:' in Path('/etc/passwd').read_text()", harmless=True),
    "reads the host's name": Attack("return socket.gethostname() == '@host'", harmless=True),
    "reads the grader's environment": Attack(
        "return any(b'canary-token' in Path(f'/proc/{p}/environ').read_bytes() for p in ('self', os.getppid(), 1))"
    ),
    "looks through the keeper's eyes": Attack(
        """
ways = ("root", "cwd", "exe", "environ", "mem", "maps", "fd/3", "ns/mnt")
for way in ways:
    path = f"/proc/1/{way}"
    try:
        os.readlink(path) if way in ("root", "cwd", "exe", "fd/3", "ns/mnt") else open(path, "rb").read(1)
        return way
    except OSError as error:
        pass
"""
    ),
    "finds other processes": Attack(
        """
found = [Path(f"/proc/{p}/cmdline").read_bytes() for p in os.listdir("/proc") if p.isdigit()]
return any(b"canary-process" in line for line in found)
""",
        harmless=True,
    ),
    "reads a disk": Attack(
        """
for name in os.listdir("/dev"):
    if name.startswith(("vd", "sd", "nvme", "mem", "kmsg", "loop")):
        return open(f"/dev/{name}", "rb").read(1)
os.mknod("/tmp/disk", 0o60644, os.makedev(254, 0))
return open("/tmp/disk", "rb").read(1)
"""
    ),
    "reads kernel messages and symbols": Attack(
        """
if libc.klogctl(3, ctypes.create_string_buffer(99), 99) > 0:
    return True
return any(not line.startswith("0000000000000000") for line in open("/proc/kallsyms"))
"""
    ),
    # writing what is not its own
    "writes a file of the lecturer": Attack("return open('@canary/file', 'a').write('x')", harmless=True),
    "writes its neighbour's answers": Attack("return open('@folder/ada.ipynb', 'w').write('{}')"),
    "writes marks": Attack("return open('@folder/marks.csv', 'a').write('attack.ipynb,01,5,5,ok')"),
    "changes a mode": Attack("os.chmod('@canary/file', 0o777); return True", harmless=True),
    "changes dates": Attack("os.utime('@canary/file', (1, 1)); return True", harmless=True),
    "changes attributes": Attack("os.setxattr('@canary/file', 'user.x', b'1'); return True", harmless=True),
    "removes a file": Attack("os.unlink('@canary/doomed'); return True", harmless=True),
    "links to a file": Attack("os.link('@canary/file', '@folder/linked'); return True", harmless=True),
    "changes the package": Attack("return open('@root/eigenlib/__init__.py', 'a').write(' ')"),
    "changes Python's own packages": Attack(
        "import numpy; return open(Path(numpy.__file__).parent / 'evil.pth', 'w').write('import os')"
    ),
    "changes modes in the package": Attack("os.chmod('@root/eigenlib/__init__.py', 0o777); return True"),
    "changes the course": Attack("return open('@root/eigencourse/grading/wire.py', 'a').write(' ')"),
    "puts a check where none is": Attack("return open('@root/eigencourse/exercises/lesson01.py', 'w').write(' ')"),
    "changes the dates of a device": Attack("os.utime('/dev/null', (1, 1)); return True"),
    "makes the root writable again": Attack(
        """
for path in ("/", "@root/eigenlib", "@root/eigencourse", "/usr"):
    if libc.mount(b"none", path.encode(), None, ctypes.c_ulong(32 | 4096), None) == 0:
        return True
"""
    ),
    "leaves a file in the shared folders": Attack(
        """
for folder in ("/tmp", "/dev/shm", "/run", "/var/tmp"):
    try:
        Path(folder, "@mark").write_text("was here")
    except OSError:
        pass
"""
    ),
    "leaves start-up files for the next": Attack(
        """
for path in ("~/.ipython/profile_default/startup/x.py", "~/.local/lib/python3.11/site-packages/usercustomize.py"):
    full = Path(os.path.expanduser(path))
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_text("import os; os._exit(0)")
"""
    ),
    "writes to the terminal": Attack(
        """
for path in ("/dev/tty", "/dev/console", "/dev/tty0", *(f"/dev/pts/{k}" for k in range(9)), "/proc/1/fd/2"):
    try:
        return os.write(os.open(path, os.O_WRONLY), b"ada.ipynb: 0 of 5\\n")
    except OSError:
        pass
"""
    ),
    "types into the terminal": Attack(
        """
import fcntl
for end in range(10):
    try:
        fcntl.ioctl(end, 0x5412, b"x")
        return True
    except OSError:
        pass
"""
    ),
    "turns the kernel's knobs": Attack(
        """
for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/1/oom_score_adj"):
    try:
        return os.write(os.open(path, os.O_WRONLY), b"0")
    except OSError:
        pass
"""
    ),
    # sockets
    "reaches a Unix socket by its path": Attack(
        "s = socket.socket(socket.AF_UNIX); s.connect('@canary/socket'); s.send(b'x'); return True", harmless=True
    ),
    "reaches a Unix socket without a path": Attack(
        "s = socket.socket(socket.AF_UNIX); s.connect('\\0@mark'); s.send(b'x'); return True", harmless=True
    ),
    "reaches a FIFO": Attack(
        "return os.write(os.open('@canary/fifo', os.O_WRONLY | os.O_NONBLOCK), b'x')", harmless=True
    ),
    "reaches a port on loopback": Attack(
        "s = socket.create_connection(('127.0.0.1', @tcp), 3); s.send(b'x'); return True", harmless=True
    ),
    "sends a datagram on loopback": Attack(
        "return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @udp))", harmless=True
    ),
    "asks the network": Attack(
        """
for address in ("169.254.169.254", "1.1.1.1", "10.0.0.1"):
    if socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect_ex((address, 53)) == 0:
        return True
"""
    ),
    "reaches the machine below (vsock)": Attack(
        "s = socket.socket(40, socket.SOCK_STREAM); s.settimeout(2); return s.connect_ex((2, 1024)) in (0, 104)"
    ),
    "makes strange sockets": Attack(
        """
for family in (16, 17, 38, 40, 43, 44):
    try:
        return socket.socket(family, socket.SOCK_RAW if family in (16, 17) else socket.SOCK_SEQPACKET)
    except OSError:
        pass
"""
    ),
    # processes
    "kills a process": Attack("os.kill(@pid, signal.SIGTERM); return True"),
    "kills whatever it may": Attack("for number in (15, 19, 9):\n    os.kill(-1, number)\nreturn False"),
    "kills its keeper": Attack(
        """
for number in range(1, 65):
    try:
        os.kill(1, number)
    except OSError:
        pass
time.sleep(0.3)
return False
"""
    ),
    "starves its keeper": Attack(
        """
import resource
done = []
for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_AS):
    try:
        resource.prlimit(1, limit, (0, 0))
        done.append(limit)
    except OSError:
        pass
try:
    os.setpriority(os.PRIO_PROCESS, 1, 19)
    done.append("nice")
except OSError:
    pass
return done
"""
    ),
    "debugs its keeper": Attack(
        "return libc.ptrace(16, 1, 0, 0) == 0 or libc.ptrace(0x4206, 1, 0, 0) == 0 or libc.ptrace(16, os.getppid(), 0, 0) == 0"
    ),
    "leaves processes behind": Attack(
        """
for k in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (1, 2, 15):
                signal.signal(number, signal.SIG_IGN)
            os.execvp("sleep", ["sleep", "@sleep"])
        os._exit(0)
time.sleep(0.3)
"""
    ),
    "forks without end": Attack(
        """
while True:
    try:
        if os.fork() == 0:
            while True:
                pass
    except OSError:
        return len([p for p in os.listdir("/proc") if p.isdigit()]) > 70
""",
    ),
    "forks while forking": Attack(
        """
subprocess.Popen(["sh", "-c", "f() { f | f & }; f; f; f"])
time.sleep(5)
return len([p for p in os.listdir("/proc") if p.isdigit()]) > 70
""",
        row="",
    ),
    "starts threads without end": Attack(
        """
import threading
while True:
    try:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    except RuntimeError:
        return threading.active_count() > 70
"""
    ),
    "comes back from a fork": Attack("os.fork(); return False"),
    # privileges
    "becomes root": Attack("os.setuid(0); return True"),
    "uses a program with the rights of root": Attack(
        """
for name in ("su", "mount", "passwd", "newuidmap", "sudo", "pkexec"):
    for folder in ("/usr/bin", "/bin", "/usr/sbin"):
        if os.path.exists(f"{folder}/{name}"):
            out = subprocess.run([f"{folder}/{name}", "-c", "id"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
            if "uid=0" in out.stdout:
                return True
os.chmod(__import__("shutil").copy("/bin/sh", "/tmp/sh"), 0o6755)
return "euid=0" in subprocess.run(["/tmp/sh", "-pc", "id"], capture_output=True, text=True).stdout
"""
    ),
    "makes namespaces": Attack(
        """
flags = (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000)
if any(libc.unshare(flag) == 0 for flag in flags):
    return True
return libc.syscall(56, 0x10000000 | 17, None, None, None, None) > 0
"""
    ),
    "joins the keeper's namespaces": Attack(
        "return any(libc.setns(os.open(f'/proc/1/ns/{n}', os.O_RDONLY), 0) == 0 for n in ('mnt', 'user', 'net', 'pid'))"
    ),
    "changes its root": Attack("os.chroot('/proc/1/root'); return True"),
    "calls the kernel as a 32-bit or x32 program": Attack("return libc.syscall(0x40000000 + 39) > 0"),
    "uses the kernel's keys": Attack(
        "return libc.syscall(250, 0, -3, 1) > 0 or libc.syscall(248, b'user', b'k', b'v', 1, -3) > 0"
    ),
    "uses what is rarely looked at": Attack(
        "return any(libc.syscall(n, 1, 0, 0, 0, 0) >= 0 for n in (425, 321, 323, 298, 312, 300, 428, 430, 442))"
    ),
    # more than its share
    "takes all memory at once": Attack(
        cells=["hoard = np.ones(10**10)"], row="ok, but 1 cell stopped with an error, first"
    ),
    "takes memory bit by bit": Attack(
        cells=["hoard = []\nwhile True:\n    hoard.append(np.ones(2**23))", "1"],
        row=("ok, but cell [2] took over 4 GB", "timeout: cell [2] took over 60 s"),
    ),
    "takes memory in many processes": Attack(
        """
for k in range(30):
    if os.fork() == 0:
        hoard = b"x" * 2**29
        time.sleep(600)
time.sleep(20)
return True
""",
        row="ok, but cell [2] took over",
    ),
    "hides memory in files without a name": Attack(
        "ends = [os.memfd_create(str(k)) for k in range(9)]; [os.write(end, b'x' * 2**28) for end in ends]; return True"
    ),
    "hides memory in shared segments": Attack(
        "return libc.shmget(0, ctypes.c_size_t(2**30), 0o1600) >= 0 or libc.msgget(0, 0o1600) >= 0"
    ),
    "hides memory in sockets": Attack(
        """
pairs, chunk = [], b"x" * 2**16
for k in range(60):
    if os.fork() == 0:
        for _ in range(240):
            pairs.append(socket.socketpair())
            for end in pairs[-1]:
                end.setblocking(False)
                try:
                    while True:
                        end.send(chunk)
                except OSError:
                    pass
        time.sleep(600)
time.sleep(15)
return True
""",
        row="ok, but cell [2] took over",
    ),
    "fills its scratch folder": Attack(
        """
written = 0
try:
    for folder in ("/tmp", "/dev/shm", "/run", os.path.expanduser("~")):
        for k in range(20):
            with open(f"{folder}/big{k}", "wb") as file:
                for _ in range(16):
                    written += file.write(bytes(2**24))
except OSError:
    pass
return written > 1.1 * 2**30
"""
    ),
    "fills it with nothing but names": Attack(
        """
count = 0
try:
    while count < 200_000:
        open(f"/tmp/{count}", "w").close()
        count += 1
except OSError:
    pass
return count >= 200_000
"""
    ),
    "computes on every core": Attack(
        """
try:
    os.sched_setaffinity(0, range(os.cpu_count()))
except OSError:
    pass
return len(os.sched_getaffinity(0)) > 1
"""
    ),
    "computes for ever": Attack(cells=["while True: pass"], row="timeout: cell [2] took over 60 s"),
    "does not let itself be interrupted": Attack(
        cells=["import signal, time\nsignal.signal(2, signal.SIG_IGN)\nwhile True: time.sleep(1)"],
        row="timeout: cell [2] took over 60 s and could not be interrupted",
    ),
    "prints without end": Attack(cells=["for _ in range(200): print('x' * 10**7)"], row="ok"),
    # the way to the examiner
    "answers in the examiner's name": Attack(
        cells=[
            """
import json, os, threading, time
def lie():
    while True:
        for end in range(3, 12):
            try:
                for number in range(1, 60):
                    os.write(end, json.dumps({"id": number, "value": "passed", "marks": {"01.1": "passed"}}).encode() + b"\\n")
            except OSError:
                pass
        time.sleep(0.01)
threading.Thread(target=lie, daemon=True).start()
time.sleep(0.5)
"""
        ],
    ),
    "floods the examiner": Attack(
        """
while True:
    for end in range(3, 12):
        try:
            os.write(end, b"x" * 2**16)
        except OSError:
            pass
""",
        row="ok, but cell [2]",
    ),
    "floods the examiner with lines": Attack(
        """
while True:
    for end in range(3, 12):
        try:
            os.write(end, b"{}\\n" * 2**12)
        except OSError:
            pass
""",
        row="timeout: cell [2] took over 60 s",
    ),
    "steals the examiner's questions": Attack(
        """
import select, threading
def steal():
    while True:
        for end in range(3, 12):
            try:
                if select.select([end], [], [], 0)[0]:
                    os.read(end, 999)
            except OSError:
                pass
threading.Thread(target=steal, daemon=True).start()
""",
    ),
    "closes everything": Attack(cells=["import os\nos.closerange(0, 99)"], row="ok, but cell [2] ended its process"),
    "answers with a monster": Attack(
        cells=["my_ratio_limit = 10 ** 4000\nmy_drift = [[]]\nfor _ in range(3000): my_drift = [my_drift]"], row="ok"
    ),
    "answers with more than anyone can read": Attack(cells=["my_drift = ['x' * 1000] * 10**5"], row="ok"),
    "awards itself marks": Attack(
        cells=[
            """
import eigencourse.exercises as exercises, eigencourse.grading.wire as wire, eigencourse.grading.runner as runner
print("✔ Exercise 01.1 passed")
wire.serve = lambda *_: {"function": False, "value": "passed", "state": "passed", "marks": {"01.1": "passed"}}
exercises.check.first_light(10)
""",
            """
class Yes:
    __eq__ = __le__ = __lt__ = __ge__ = __gt__ = lambda *_: True
    __float__ = lambda self: 10.0
my_first_light = Yes()
""",
        ],
    ),
    "ends its process": Attack(cells=["import os; os._exit(0)"], row="ok, but cell [2] ended its process"),
    "crashes": Attack(cells=["import ctypes; ctypes.string_at(0)"], row="ok, but cell [2] ended its process"),
    "answers by ending its process": Attack(cells=["import os\ndef my_successor(T, gamma): os._exit(0)"], row="ok"),
}


def strange_files(folder: Path) -> dict[str, str]:
    """Things that lie where a notebook should, and how their rows must begin."""
    made = {}

    def make(name: str, status: str, content: str | bytes | None = None) -> Path:
        made[name] = status
        path = folder / name
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    os.mkfifo(make("fifo.ipynb", "broken: not an ordinary file"))
    make("link.ipynb", "broken: a link").symlink_to("/dev/zero")
    make("link_out.ipynb", "broken: a link").symlink_to(folder / "ada.ipynb")
    make("link_to_folder.ipynb", "broken: a link").symlink_to("/")
    make("loop.ipynb", "broken: a link").symlink_to("loop.ipynb")
    make("folder.ipynb", "broken: a folder").mkdir()
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(make("socket.ipynb", "broken: not an ordinary file")))
    if os.geteuid() == 0:
        os.mknod(make("device.ipynb", "broken: not an ordinary file"), 0o20666, os.makedev(1, 5))
    else:
        make("unreadable.ipynb", "broken: cannot be read", notebook(GOOD)).chmod(0)
    with open(make("huge.ipynb", "broken: larger than"), "wb") as file:
        file.truncate(10**12)
    make("empty.ipynb", "broken: not a notebook", "")
    make("binary.ipynb", "broken: not a notebook", bytes(range(256)))
    make("deep.ipynb", "broken: not a notebook", "[" * 10**6)
    make("list.ipynb", "broken: not a notebook", "[1, 2]")
    make("number.ipynb", "broken: not a notebook", "1e999")
    make("lesson.ipynb", "broken: neither", notebook(GOOD, lesson="../../etc"))
    make("no_cells.ipynb", "broken: not a notebook", '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}')
    make("\x1b[2J\x1b[31mred.ipynb", "ok", notebook(GOOD))
    make("two\nlines.ipynb", "ok", notebook(GOOD))
    make("=HYPERLINK(1).ipynb", "ok", notebook(GOOD))
    make("'; rm -rf $HOME; '.ipynb", "ok", notebook(GOOD))
    make("\u202egnp.ipynb", "ok", notebook(GOOD))
    make(os.fsdecode(b"M\xfcller.ipynb"), "ok", notebook(GOOD))
    make("x" * 240 + ".ipynb", "ok", notebook(GOOD))
    make("error.ipynb", "ok, but 1 cell stopped", notebook(GOOD, "type('\\x1b[2J=1+1', (Exception,), {})()\nraise _"))
    make("many.ipynb", "ok", notebook(GOOD, *["pass"] * 2000))
    return made


class World:
    """Everything that must not change, and what listens for those who come."""

    def __init__(self, folder: Path):
        self.folder, self.canary = folder, folder / "canary"
        self.mark, self.visits = f"{folder.name}.mark", []
        self.canary.mkdir()
        for name in ("secret", "file", "doomed"):
            (self.canary / name).write_text("years of work")
            (self.canary / name).chmod(0o666)
        for open_to_all in (folder, self.canary):  # nothing but the room is to keep anybody out
            open_to_all.chmod(0o777)
        os.mkfifo(self.canary / "fifo")
        (self.canary / "fifo").chmod(0o666)
        self.fifo = os.open(self.canary / "fifo", os.O_RDWR | os.O_NONBLOCK)
        self.ends = [socket.socket(kind) for kind in (socket.AF_UNIX, socket.AF_UNIX, socket.AF_INET)]
        for end, address in zip(
            self.ends, (str(self.canary / "socket"), f"\0{self.mark}", ("127.0.0.1", 0)), strict=True
        ):
            end.bind(address)
            end.listen()
        (self.canary / "socket").chmod(0o777)
        for end in self.ends:
            threading.Thread(target=self._listen, args=(end,), daemon=True).start()
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind(("127.0.0.1", 0))
        threading.Thread(target=self._listen, args=(self.datagrams,), daemon=True).start()
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10**5)", "canary-process"])
        self.names = {
            "canary": self.canary,
            "folder": folder,
            "root": ROOT,
            "mark": self.mark,
            "pid": self.process.pid,
            "host": socket.gethostname(),
            "tcp": self.ends[2].getsockname()[1],
            "udp": self.datagrams.getsockname()[1],
            "sleep": 70_000 + os.getpid(),
        }
        self.others = psutil.Process().children(recursive=True)  # a browser of other tests, say
        self.before = self.look()

    def _listen(self, end: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.visits.append(end.accept() if end.type == socket.SOCK_STREAM else end.recv(99))

    def look(self) -> dict[str, tuple]:
        """Every watched file: mode, owner, size, dates, content. Reading does not count as a change."""
        watched = [
            self.canary,
            ROOT / "eigenlib",
            ROOT / "eigencourse",
            ROOT / "tests",
            ROOT / "notebooks",
            *map(Path, ("/dev/null", "/dev/zero")),
        ]
        paths = [path for top in watched for path in (sorted(top.rglob("*")) if top.is_dir() else [top])]
        found = {}
        for path in [*paths, *(Path(f"/{shared}/{self.mark}") for shared in ("tmp", "dev/shm", "run", "var/tmp"))]:
            if path.is_relative_to(ROOT) and "__pycache__" in path.parts:
                continue  # which our own processes may write
            with contextlib.suppress(FileNotFoundError):
                about = path.lstat()
                if path.is_relative_to(ROOT) and path.is_dir():
                    found[str(path)] = (about.st_mode, about.st_uid)  # its dates move when Python first caches there
                    continue
                content = (
                    hashlib.sha256(path.read_bytes()).digest() if path.is_file() and about.st_size < 2**20 else b""
                )
                found[str(path)] = (
                    about.st_mode,
                    about.st_uid,
                    about.st_size,
                    about.st_mtime_ns,
                    about.st_ctime_ns,
                    content,
                )
        if "/dev/null" in found:
            found["/dev/null"] = found["/dev/null"][:2]  # every process on the machine moves its dates
            found["/dev/zero"] = found["/dev/zero"][:2]
        return found

    def damage(self) -> list[str]:
        """What is no longer as it was."""
        now, problems = self.look(), []
        problems += [
            f"{path} changed" for path in now.keys() | self.before.keys() if now.get(path) != self.before.get(path)
        ]
        problems += [f"{len(self.visits)} visits"] * bool(self.visits)
        if self.process.poll() is not None:
            problems.append("the canary process has ended")
        with contextlib.suppress(BlockingIOError):
            problems.append(f"the FIFO was written to: {os.read(self.fifo, 9)!r}")
        known = {self.process.pid}
        for other in self.others:
            with contextlib.suppress(psutil.NoSuchProcess):
                known |= {other.pid, *(child.pid for child in other.children(recursive=True))}
        left = [one for one in psutil.Process().children(recursive=True) if one.pid not in known and alive(one)]
        return problems + [f"left running: {one}" for one in left]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for end in (*self.ends, self.datagrams):
            end.close()
        os.close(self.fifo)


def alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


@contextlib.contextmanager
def world() -> Iterator[World]:
    sandbox.adopt_orphans()  # whatever is left running comes to us
    os.environ["CANARY"] = "canary-token"
    with tempfile.TemporaryDirectory(prefix="attacks-") as name:
        made = World(Path(name))
        for who, (source, _) in HONEST.items():
            (made.folder / f"{who}.ipynb").write_text(notebook(source))
            (made.folder / f"{who}.ipynb").chmod(0o666)
        try:
            yield made
        finally:
            made.close()


def graded(folder: Path, names: list[str], **settings) -> dict[str, dict[str, str]]:
    """Rows by file name, as the table on disk has them; what is printed meanwhile is nobody's."""
    target = folder / "marks.csv"
    target.unlink(missing_ok=True)
    with contextlib.redirect_stdout(io.StringIO()):
        grade([folder / name for name in names], target, **settings)
    with target.open(newline="", encoding="utf-8") as file:
        return {row["file"].rpartition("/")[2]: row for row in csv.DictReader(file)}


def honest_marks(rows: dict[str, dict[str, str]]) -> list[str]:
    found = {who: [rows[f"{who}.ipynb"][f"01.{k}"] for k in range(1, 6)] for who in HONEST}
    return [f"{who}: {found[who]}" for who, (_, right) in HONEST.items() if found[who] != right]


def attempt(made: World, attack: Attack) -> list[str]:
    """Grade an attack beside honest submissions, at default settings on two cores; what went wrong."""
    (made.folder / "attack.ipynb").write_text(attack.notebook(**made.names))
    began = time.monotonic()
    rows = graded(made.folder, ["attack.ipynb", *(f"{who}.ipynb" for who in HONEST)], jobs=2)
    seconds = time.monotonic() - began
    row = rows["attack.ipynb"]
    problems = honest_marks(rows) + made.damage()
    if row["01.1"] == "passed":
        problems.append("it got through")
    if not row["status"].startswith(attack.row):
        problems.append(f"its status: {row['status']}")
    if seconds > LONGEST:
        problems.append(f"it took {seconds:.0f} s")
    return problems


def weak_attacks(made: World) -> tuple[list[str], int]:
    """Of the harmless ones, those that do not get through without the sandbox, and how many there are."""
    armed = {f"attack{k}.ipynb": name for k, name in enumerate(ATTACKS) if ATTACKS[name].harmless}
    for file, name in armed.items():
        (made.folder / file).write_text(ATTACKS[name].notebook(**made.names))
    rows = graded(made.folder, ["ada.ipynb", *armed], jobs=2, unsafe=True)
    return [name for file, name in armed.items() if rows[file]["01.1"] != "passed"], len(armed)


def attempt_files(made: World) -> list[str]:
    folder = made.folder / "files"
    folder.mkdir()
    for who in HONEST:
        shutil.copy(made.folder / f"{who}.ipynb", folder)
    wanted = strange_files(folder)
    names = [*wanted, *(f"{who}.ipynb" for who in HONEST)]
    rows = graded(folder, names, jobs=2)
    problems = honest_marks(rows) + made.damage()
    if len(rows) != len(names):
        problems.append(f"{len(rows)} rows for {len(names)} files")
    for (name, status), row in zip(wanted.items(), rows.values(), strict=False):
        if not row["status"].startswith(status) or not row["status"].isprintable() or not row["file"].isprintable():
            problems.append(f"{name!r}: {row['status']!r}")
    return problems


def sample() -> Attack:
    """Many of them in one notebook, those that take no time; one that gets through is enough."""
    others = ("kills its keeper", "starves its keeper", "makes namespaces", "leaves processes behind", "becomes root")
    others += (
        "looks through the keeper's eyes",
        "makes strange sockets",
        "changes the dates of a device",
        "writes marks",
    )
    others += ("leaves a file in the shared folders", "changes the package", "hides memory in shared segments")
    chosen = [attack for name, attack in ATTACKS.items() if attack.harmless or name in others]
    return Attack(bodies=[attack.body for attack in chosen])


def run(words: list[str]) -> int:
    """All of them, or those whose name has one of the words in it, as whoever we are; how many did not hold."""
    who, failed = "root" if os.geteuid() == 0 else f"user {os.geteuid()}", 0
    if lack := sandbox.missing():
        print(f"There is no sandbox for {who} here: {lack}.")
        return 1
    if not words:
        with world() as made:
            weak, armed = weak_attacks(made)
        failed += len(weak)
        print(f"As {who}: {armed - len(weak)} of {armed} harmless attacks get through without the sandbox.", *weak)
    chosen = {name: attack for name, attack in ATTACKS.items() if not words or any(word in name for word in words)}
    for name in [*chosen, *(["strange files"] if not words or "files" in words else [])]:
        with world() as made:
            began = time.monotonic()
            problems = attempt(made, chosen[name]) if name in chosen else attempt_files(made)
        failed += bool(problems)
        line = f"{'BROKEN' if problems else 'held':7} {time.monotonic() - began:5.1f} s  {name}"
        print(line, *problems, sep="\n          ", flush=True)
    print(f"As {who}: {len(chosen)} classes of attack tried, {failed} did not hold.", flush=True)
    return failed


def as_user(arguments: list[str], user: int = 54321) -> list[str]:
    """A command that runs this file as an ordinary user, with a way to Python even where that lies in root's home."""
    needed = sorted({os.path.realpath(path) for path in (sys.base_prefix, sys.prefix, ROOT)})
    shut = next((top for path in needed for top in _above(path) if not os.stat(top).st_mode & 1), None)
    steps = ["set -e", "umask 022"]
    if shut:
        inside = [path for path in needed if Path(path).is_relative_to(shut)]
        steps += [
            f"mkdir -p /tmp/{os.getpid()}.{k} && mount --bind '{path}' /tmp/{os.getpid()}.{k}"
            for k, path in enumerate(inside)
        ]
        steps += [f"mount -t tmpfs -o mode=755 none '{shut}'"]
        steps += [
            f"mkdir -p '{path}' && mount --move /tmp/{os.getpid()}.{k} '{path}' && rmdir /tmp/{os.getpid()}.{k}"
            for k, path in enumerate(inside)
        ]
    # A copy that the user owns, as an owner's package is protected by nothing but its mount.
    copy, python = f"/tmp/attacks-{os.getpid()}.course", f"setpriv --reuid {user} --regid {user} --clear-groups"
    parts = " ".join(f"'{ROOT}/{name}'" for name in ("eigenlib", "eigencourse", "data", "tests", "notebooks"))
    steps += [f"mkdir {copy} && trap 'rm -rf {copy}' EXIT", f"cp -r {parts} {copy} && chown -R {user}:{user} {copy}"]
    steps += [f'PYTHONPATH={copy} HOME=/nonexistent {python} "$@"']
    return [
        "unshare",
        "--mount",
        "sh",
        "-c",
        "\n".join(steps),
        "sh",
        sys.executable,
        f"{copy}/tests/eigencourse/grading/attacks.py",
        *arguments,
    ]


def _above(path: str) -> list[str]:
    return [str(one) for one in reversed(Path(path).parents)]


def main() -> int:
    if sys.argv[1:] == ["--sample"]:
        with world() as made:
            problems = attempt(made, sample())
        print(*problems, sep="\n")
        return len(problems)
    failed = run(sys.argv[1:])
    if os.geteuid() == 0:
        print()
        failed += subprocess.run(as_user(sys.argv[1:])).returncode
    return min(failed, 99)


if __name__ == "__main__":
    sys.exit(main())
