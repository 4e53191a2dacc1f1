"""The keeper of a room (see `eigencourse.grading.sandbox`), run as a script: only the standard library, nothing of eigenlib.

    keeper.py JOB CONTROL      JOB: what to run and what to show, as JSON;  CONTROL: the pipe on which "i" means interrupt

It makes namespaces; their first process assembles a root and becomes the keeper; a child of it gives up what is left and
turns into the submission. The keeper reaps orphans, adds up memory ten times a second, and goes when the submission has
gone, takes too much, or nobody holds the other end of CONTROL any more: then the kernel ends everything in the room.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import resource
import select
import signal
import socket
import struct
import sys
from pathlib import Path

MEMORY = 4 * 2**30  # bytes that a submission may use in all
SCRATCH = 2**30  # bytes that it may write; in memory, and beside the above
PROCESSES = 64  # and threads
SOCKET = 2 * 212_992  # bytes that a pair of sockets can hold, unseen by any other count
TOO_MUCH, REFUSED = 3, 4  # exit statuses: over the memory; the system does not allow such a room

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/sys/devices/system/cpu")
_DEVICES = ("null", "zero", "full", "random", "urandom")

# Namespaces: of users; of processes, network, IPC, host name, control groups and mounts.
_USER, _ROOM = 0x10000000, 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000 | 0x02000000 | 0x00020000
_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_READ_ONLY = 1  # as an attribute of a mount, where nosuid and nodev are 2 and 4 as well

# System calls that no lesson needs, with their numbers on x86_64 and aarch64. They reach memory that nobody counts, other
# cores, the keeper, kernel keys, or much kernel code.
_DENIED = """
    memfd_create 319 279, memfd_secret 447 447, shmget 29 194, semget 64 190, msgget 68 186, mq_open 240 180,
    io_uring_setup 425 425, userfaultfd 323 282, bpf 321 280, perf_event_open 298 241, add_key 248 217, request_key 249 218,
    keyctl 250 219, ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272, pidfd_getfd 438 438,
    sched_setaffinity 203 122, sched_setscheduler 144 119, sched_setparam 142 118, sched_setattr 314 274, ioprio_set 251 30,
    setpriority 141 140, unshare 272 97, setns 308 268, mount 165 40, umount2 166 39, pivot_root 155 41, open_tree 428 428,
    move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432, mount_setattr 442 442, fanotify_init 300 262
"""
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above and below; name in a filter
_SOCKET, _PRLIMIT, _PIVOT_ROOT = (41, 198), (302, 261), (155, 41)


def limit(processes: int | None = None) -> None:
    """Limits that a process hands on to those it starts: each has these. What all of them really use, the keeper counts."""
    limits = {"AS": 2 * MEMORY, "FSIZE": SCRATCH, "CORE": 0, "NOFILE": 512, "MEMLOCK": 2**16, "SIGPENDING": 512}
    for name, most in (limits | ({"NPROC": processes} if processes else {})).items():
        with contextlib.suppress(ValueError, OSError, AttributeError):  # macOS does not know or keep all of them
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


def prctl(option: int, *values: int) -> None:
    if sys.platform.startswith("linux"):
        _call("prctl", option, *[ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]])


def _call(name: str, *arguments) -> None:
    """A function of the C library; what it refuses is an OSError that names it."""
    bytes_or_numbers = [one.encode() if isinstance(one, str) else one for one in arguments]
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*bytes_or_numbers) < 0:
        number = ctypes.get_errno()
        what = {_USER: "user namespace", _ROOM: "other namespaces"}.get(arguments[0], arguments[:2])
        raise OSError(number, f"{name} {what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str | None = None, flags: int = 0, options: str = "") -> None:
    os.makedirs(target, exist_ok=True) if kind or os.path.isdir(source) else _touch(target)
    _call("mount", source, target, kind, ctypes.c_ulong(flags), options)


def _touch(path: str, text: str = "") -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def _restrict(target: str, attributes: int) -> None:
    """Attributes for a mount and all below it: mount_setattr, which the C library of many systems has no name for."""
    values = struct.pack("=QQQQ", attributes, 0, 0, 0)
    _call("syscall", 442, -100, target, 0x8000, values, ctypes.c_size_t(len(values)))


def _enter(job: dict, control: int) -> int:
    """Make the namespaces, and wait for the keeper, who is the first process in them."""
    user, group = os.geteuid(), os.getegid()
    first, _, count = map(int, Path("/proc/self/uid_map").read_text().split()[-3:])
    if user == 0 and first + count > 2**16:  # root, not only called so in a namespace of one
        os.setgroups([])
        user = group = min(2**28 + os.getpid(), first + count - 1)  # owns nothing; another one for each submission
    else:
        _call("unshare", _USER)
        _map("self", user, user, group, group)
    _call("unshare", _ROOM)
    keeper = os.fork()
    if keeper == 0:
        os._exit(_refusing(_keep, job, control, user, group))
    os.close(control)
    return os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])


def _map(process: str, inner_user: int, user: int, inner_group: int, group: int) -> None:
    maps = {"setgroups": "deny", "uid_map": f"{inner_user} {user} 1", "gid_map": f"{inner_group} {group} 1"}
    for name, text in maps.items():
        Path(f"/proc/{process}/{name}").write_text(text)


def _keep(job: dict, control: int, user: int, group: int) -> int:
    """Assemble the room, let the submission in, and stay until it has gone, takes too much, or nobody waits for it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # which a first process does not get from within
    socket.sethostname("room")
    _assemble(job, user, group)
    (ready, tell), (go, start) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        for end in (control, ready, start):
            os.close(end)
        os._exit(_refusing(_become, job, tell, go))
    os.close(tell)
    if os.read(ready, 1):
        _map(str(child), 1000, user, 1000, group)
        # PR_SET_DUMPABLE: what /proc has about the keeper is not the submission's, even where both have one number.
        prctl(4, 0)
        os.write(start, b"!")
    for end in (0, 1, ready, go, start):
        os.close(end)
    while True:
        if select.select([control], [], [], 0.1)[0]:
            if not os.read(control, 1):
                return 0
            os.kill(child, signal.SIGINT)
        with contextlib.suppress(ChildProcessError):
            while (gone := os.waitpid(-1, os.WNOHANG))[0]:
                if gone[0] == child:
                    code = os.waitstatus_to_exitcode(gone[1])
                    return code if code in (0, REFUSED) else 1
        if _used() > MEMORY:
            return TOO_MUCH


def _assemble(job: dict, user: int, group: int) -> None:
    """A new root in memory, beside the old one, then without it."""
    real = {place: os.path.realpath(place) for place in job["places"] if os.path.exists(place)}
    links = {place: os.readlink(place) for place in real if os.path.islink(place)}
    _call("mount", "none", "/", None, ctypes.c_ulong(_REC | _PRIVATE), None)
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, "mode=755,size=64m")
    os.mkdir("/tmp/old")
    os.chdir("/tmp")
    _call("syscall", _PIVOT_ROOT[_MACHINES[platform.machine()][0]], ".", "old")
    os.chdir("/")
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    _mount("tmpfs", "/scratch", "tmpfs", _NOSUID | _NODEV, f"mode=700,size={SCRATCH},nr_inodes=50k")
    os.chown("/scratch", user, group)
    for inside, outside in (("tmp", "/tmp"), ("run", "/run"), ("shm", "/dev/shm"), ("home", "/home")):
        _scratch(inside, outside, user, group)
    for place, source in real.items():
        if place in links and place in SYSTEM:  # as /bin often is
            os.symlink(links[place], place)
        elif not os.path.lexists(place):  # else it came with one above it
            _mount("/old" + source, place, None, _BIND | _REC)
            _restrict(place, _READ_ONLY | _NOSUID | _NODEV)
    for name in _DEVICES:
        _mount(f"/old/dev/{name}", f"/dev/{name}", None, _BIND)
        _restrict(f"/dev/{name}", _READ_ONLY | _NOSUID | _NOEXEC)  # a device can be written to, its dates cannot
    if job["files"]:
        # Over what is there: an installed package lies among Python's own, which were mounted as a whole.
        top = os.path.commonpath(list(map(os.path.dirname, job["files"])))
        _mount("tmpfs", top, "tmpfs", _NOSUID | _NODEV, "mode=755,size=4m")
        for path, text in job["files"].items():
            _touch(path, text)
        _restrict(top, _READ_ONLY)
    _touch("/etc/passwd", "student:x:1000:1000::/scratch/home:/bin/sh\n")
    _scratch("cache", job["cache"], user, group)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"/dev/{name}")
    _call("umount2", "/old", 2)  # MNT_DETACH
    os.rmdir("/old")
    _call("mount", "none", "/", None, ctypes.c_ulong(32 | _BIND | 1 | _NOSUID | _NODEV), None)  # remount, read-only


def _scratch(inside: str, outside: str, user: int, group: int) -> None:
    """A part of the scratch folder, under the name by which programs look for it."""
    os.mkdir(f"/scratch/{inside}")
    os.chown(f"/scratch/{inside}", user, group)
    with contextlib.suppress(OSError):  # a package among others has no place for a cache beside it
        os.makedirs(os.path.dirname(outside), exist_ok=True)
        os.symlink(f"/scratch/{inside}", outside)


def _become(job: dict, tell: int, go: int) -> int:
    """In the submission's process: give up what is left, then turn into its command."""
    os.setsid()
    if job["core"] is not None:
        os.sched_setaffinity(0, {job["core"]})
    Path("/proc/self/oom_score_adj").write_text("1000")  # the first to go where memory is short
    _call("unshare", _USER)
    os.write(tell, b"?")
    os.read(go, 1)  # until the keeper has said who we are
    os.setresgid(1000, 1000, 1000)
    os.setresuid(1000, 1000, 1000)
    # No namespaces, in one of which it would be mighty again, nor what else is counted there and shared outside.
    for name in os.listdir("/proc/sys/user"):
        Path("/proc/sys/user", name).write_text("0")
    limit(PROCESSES)
    os.chdir("/scratch/home")
    prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
    _filter_system_calls()
    os.execve(job["command"][0], job["command"], job["environment"])


def _filter_system_calls() -> None:
    """A seccomp filter: refused are the calls above, limits for other processes, and sockets but Unix and internet ones."""
    column, name = _MACHINES[platform.machine()]
    load, equal, at_least, end, allow, refuse = 0x20, 0x15, 0x35, 0x06, 0x7FFF0000, 0x00050000 | 1  # EPERM
    code = [(load, 0, 0, 4), (equal, 1, 0, name), (end, 0, 0, 0x80000000)]  # killed: a call of another processor
    code += [(load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (end, 0, 0, refuse)]  # x32
    for call in _DENIED.split(","):
        code += [(equal, 0, 1, int(call.split()[1 + column])), (end, 0, 0, refuse)]
    code += [(equal, 0, 3, _PRLIMIT[column]), (load, 0, 0, 16), (equal, 7, 0, 0), (end, 0, 0, refuse)]
    code += [(equal, 0, 5, _SOCKET[column]), (load, 0, 0, 16), (equal, 3, 0, 1), (equal, 2, 0, 2), (equal, 1, 0, 10)]
    code += [(end, 0, 0, refuse), (end, 0, 0, allow)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in code))
    whole = ctypes.create_string_buffer(struct.pack("HP", len(code), ctypes.addressof(program)))
    prctl(22, 2, ctypes.addressof(whole))  # PR_SET_SECCOMP


def _used() -> int:
    """Bytes of all processes but the keeper, shared ones once, and what sockets can hold."""
    pids = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    sockets = int(Path("/proc/net/sockstat").read_text().split()[2])
    used = sum(_kilobytes(pid, "status", ("VmRSS:", "VmSwap:")) for pid in pids)
    if used * 1024 > MEMORY:  # counted more than once what they share
        used = sum(_kilobytes(pid, "smaps_rollup", ("Pss:", "SwapPss:")) for pid in pids)
    return used * 1024 + sockets * SOCKET


def _kilobytes(pid: str, file: str, names: tuple[str, ...]) -> int:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended; any other trouble ends the room
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(names))
    return 0


def _refusing(function, *arguments) -> int:
    """Its exit status; where the system refuses, that and the reason in one line."""
    try:
        return function(*arguments)
    except OSError as error:
        os.write(2, f"{error.filename or ''} {error.strerror}\n".encode())
    except KeyError as error:
        os.write(2, f"the system calls of {error} are not known here\n".encode())
    return REFUSED


if __name__ == "__main__":
    sys.exit(_refusing(_enter, json.loads(sys.argv[1]), int(sys.argv[2])))
