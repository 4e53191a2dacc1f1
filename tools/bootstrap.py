"""Set the course up in its own virtual environment: `python3 tools/bootstrap.py .venv` (make calls it).

Where there is no make, it also runs what was set up: `python tools/bootstrap.py .venv report`, or `test`, or any other command
of eigenlib. Packages come with the versions and checksums of requirements-lock.txt, by a pip of a fixed version; torch, whose
builds differ from place to place, comes first and by its version alone.

Written for any Python 3, so that a Python that is too old still gets a sentence instead of a syntax error.
"""

import os
import re
import shutil
import subprocess
import sys

OLDEST = (3, 11)
ROOM = 3 * 2**30  # the environment measures 2.0 GiB with the CPU build of torch; pip needs some air
EXTRAS = "[atari,course,dev]"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

NETWORK = re.compile(
    "NewConnectionError|Failed to establish|name resolution|Temporary failure|Network is unreachable|ProxyError|ConnectTimeout"
    "|Connection refused|Read timed out|getaddrinfo failed|nodename nor servname",
    re.IGNORECASE,
)
SOURCES = ("pyproject.toml", "constraints.txt", "requirements-lock.txt", "tools/bootstrap.py")


def problem_with(version, has_venv, free_bytes):
    """The one sentence that says why this machine cannot be set up, or None."""
    if tuple(version[:2]) < OLDEST:
        return "This is Python %d.%d, but Python %d.%d or newer is needed: install one and run make again." % (
            tuple(version[:2]) + OLDEST
        )
    if not has_venv:
        return "This Python has no venv module: install it (on Debian and Ubuntu: apt install python3-venv) and run make again."
    if free_bytes < ROOM:
        return "Only %.1f GiB of disk are free here, but the set-up needs about %.0f: free some and run make again." % (
            free_bytes / 2.0**30,
            ROOM / 2.0**30,
        )
    return None


def why_pip_failed(log):
    """pip's pages of output in one sentence."""
    if "No space left on device" in log or "Errno 28" in log:
        return "The disk filled up while installing: free some space and run make again."
    if NETWORK.search(log) or "from versions: none" in log:  # an index that lists nothing is one that did not answer
        return "The packages could not be downloaded because the network did not answer: check the connection, then run make again."
    if "DO NOT MATCH THE HASHES" in log:
        return "A downloaded package is not the one that was tested (its checksum differs): try again from another network or index."
    if "No matching distribution" in log or "ResolutionImpossible" in log:
        return "pip found no release of a pinned package for this Python and platform; Python 3.11 on Linux is tested."
    last = [line.strip() for line in log.splitlines() if line.strip()]
    return "pip stopped with: %s" % (last[-1] if last else "no message")


def has_venv():
    try:
        import ensurepip
        import venv
    except ImportError:
        return False
    return bool(ensurepip and venv)


def fail(sentence):
    sys.stderr.write(sentence + "\n")
    sys.exit(1)


def interpreter(folder):
    return os.path.join(folder, "Scripts", "python.exe") if os.name == "nt" else os.path.join(folder, "bin", "python")


def is_ready(folder):
    """Was it set up, and has nothing changed since that says how?"""
    stamp = os.path.join(folder, ".ready")
    return os.path.exists(stamp) and all(
        os.path.getmtime(os.path.join(ROOT, name)) <= os.path.getmtime(stamp) for name in SOURCES
    )


def pinned_tools():
    """The lines of requirements-lock.txt for pip and setuptools, with which everything else is installed."""
    with open(os.path.join(ROOT, "requirements-lock.txt"), encoding="utf-8") as lock:
        entries = re.findall(r"^(?:pip|setuptools)==.*(?:\n .*)*", lock.read(), re.MULTILINE)
    return "\n".join(entries) + "\n"


def torch_pin():
    with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as project:
        return re.search(r'"(torch==[^"]+)"', project.read()).group(1)


def steps(folder):
    """What pip is asked for, in this order."""
    tools = os.path.join(folder, "pip.txt")
    with open(tools, "w") as file:
        file.write(pinned_tools())
    return [
        ["--require-hashes", "--no-deps", "--requirement", tools],
        ["--no-deps", torch_pin()],
        ["--require-hashes", "--no-deps", "--requirement", os.path.join(ROOT, "requirements-lock.txt")],
        # ourselves, and what a torch with CUDA wants besides
        ["--no-build-isolation", "--constraint", os.path.join(ROOT, "constraints.txt"), "--editable", ROOT + EXTRAS],
    ]


def set_up(folder):
    python = interpreter(folder)
    usable = os.path.exists(python) and subprocess.call([python, "-m", "pip", "--version"], stdout=subprocess.DEVNULL,
                                                        stderr=subprocess.DEVNULL) == 0  # fmt: skip
    free = shutil.disk_usage(ROOT).free
    problem = problem_with(sys.version_info, has_venv(), free if not usable else ROOM)
    if problem:
        fail(problem)
    print("Setting up in %s (once; a few minutes, mostly downloading) ..." % os.path.relpath(folder))
    sys.stdout.flush()
    if not usable:
        made = subprocess.run(
            [sys.executable, "-m", "venv", "--clear", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if made.returncode:
            fail(
                "The virtual environment could not be made: %s" % why_pip_failed(made.stdout.decode("utf-8", "replace"))
            )
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location"]
    log_path = os.path.join(folder, "setup.log")
    with open(log_path, "w") as log:
        failed = any(subprocess.call(install + step, stdout=log, stderr=subprocess.STDOUT) for step in steps(folder))
    if failed:
        with open(log_path) as log:
            fail("%s (pip's own words: %s)" % (why_pip_failed(log.read()), os.path.relpath(log_path)))
    with open(os.path.join(folder, ".ready"), "w") as stamp:
        stamp.write("set up by tools/bootstrap.py\n")
    print("Ready.")


def main(folder=".venv", *command):
    """Set up where that is needed, then run a command there; its exit status is returned."""
    folder = os.path.abspath(folder)
    if not (command and is_ready(folder)):
        set_up(folder)
    if not command:
        return 0
    python = interpreter(folder)
    if command[0] != "test":
        return subprocess.call([python, "-m", "eigenlib"] + list(command))
    subprocess.call([python, os.path.join(ROOT, "tools", "get_browser.py")])
    return subprocess.call([python, "-m", "pytest", "-n", "2", "--dist", "loadgroup"] + list(command[1:]), cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
