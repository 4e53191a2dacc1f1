"""`python small_command.py FAULT AT COUNT WORDS…`: a command of eigenlib, small, in the current folder, with a fault.

The fault (none, full, KILL, TERM, INT) comes when the command is about to change a file below this folder for the AT-th
time; full stays so. COUNT is where the number of changes is written when nothing happened, or "-".
"""

import atexit
import errno
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

fault, at, count, *words = sys.argv[1:]
here, seen = os.getcwd(), 0
CHANGES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir")


def hook(event, arguments):
    """Python tells of a change before it makes it (PEP 578); what is raised here is raised there."""
    global seen
    if event not in CHANGES or not isinstance(arguments[0], str | bytes):
        return
    if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return
    path = os.path.abspath(os.fsdecode(arguments[0]))
    if not path.startswith(here + os.sep):
        return
    seen += 1
    if fault == "full" and seen >= int(at) and event in CHANGES[:2]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    if seen == int(at) and fault not in ("none", "full"):
        os.kill(os.getpid(), getattr(signal, f"SIG{fault}"))


def shrink():
    """Everything that is not in the folder of a command goes to this one, and is as small as it can be."""
    import eigencourse.paths
    import eigenlib.paths

    eigencourse.paths.NOTEBOOKS = Path("course").resolve()
    eigenlib.paths.CACHE, eigenlib.paths.REFERENCE = Path("cache").resolve(), Path("reference").resolve()
    if words[0] == "notebooks":
        from eigencourse import readme

        readme.busy = lambda: True  # else minutes are noted
    if words[0] == "experiment":
        from eigenlib.experiments import control

        small = control.ControlExperiment(
            tasks=control.TASKS[:1], representations=(5, "exact"), counts=(0, 2), sr_runs=2, runs=2, episodes=3, steps=9
        )
        control.SETTINGS = control.settings(small)
    if words[0] == "atari":
        from eigenlib.atari import dataset, pipeline, training

        dataset.collect.__kwdefaults__["shard"] = 30
        training.train.__kwdefaults__["checkpoint_seconds"] = 0.0
        quick = pipeline.PRESETS["quick"]
        pipeline.PRESETS["quick"] = quick._replace(config=replace(quick.config, log_every=2))


def run():
    from eigencourse.cli import main

    return main(words)


# what a shell starts in the background ignores Ctrl-C, and so would we
signal.signal(signal.SIGINT, signal.default_int_handler)
shrink()
sys.addaudithook(hook)
if count != "-":
    atexit.register(lambda: Path(count).write_text(str(seen)))
sys.exit(run())
