"""Set the course up in its own virtual environment: `python3 tools/bootstrap.py .venv` (make calls it).

Written for any Python 3, so that a Python that is too old still gets a sentence instead of a syntax error.
"""

import os
import re
import shutil
import subprocess
import sys

OLDEST = (3, 11)
ROOM = 3 * 2**30  # the environment measures 2.0 GiB with the CPU build of torch; pip needs some air
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

NETWORK = re.compile(
    "NewConnectionError|Failed to establish|name resolution|Temporary failure|Network is unreachable|ProxyError|ConnectTimeout"
    "|Connection refused|Read timed out|getaddrinfo failed|nodename nor servname",
    re.IGNORECASE,
)


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


def main(folder):
    folder = os.path.abspath(folder)
    python = os.path.join(folder, "bin", "python")
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
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location",
               "--constraint", os.path.join(ROOT, "constraints.txt"), "--editable", ROOT + "[dev]"]  # fmt: skip
    log_path = os.path.join(folder, "setup.log")
    with open(log_path, "w") as log:
        status = subprocess.call(command, stdout=log, stderr=subprocess.STDOUT)
    if status:
        with open(log_path) as log:
            fail("%s (pip's own words: %s)" % (why_pip_failed(log.read()), os.path.relpath(log_path)))
    with open(os.path.join(folder, ".ready"), "w") as stamp:
        stamp.write("set up by tools/bootstrap.py\n")
    print("Ready.")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".venv")
