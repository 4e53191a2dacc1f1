"""What several tests need and no two workers should make twice: executed lessons, folders made once for all, ports."""

import contextlib
import fcntl
import json
import os
import random
import shutil
import socket

from eigenlib.notebooks import Failure, Outcome, run


def once(tmp_path_factory, name, make):
    """The folder `name`, common to all workers: whoever asks first fills it with make(folder), the others wait."""
    base = tmp_path_factory.getbasetemp()
    place = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, building = place / name, place / f"{name}.building"
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            make(building)
            building.rename(folder)
    return folder


def executed(tmp_path_factory, lesson):
    """The outcome of a lesson at its default numbers, run once in a folder that holds nothing else."""

    def make(folder):
        outcome = run(lesson.path, folder / lesson.path.name, {})
        failure = outcome.failure and [outcome.failure.cell, outcome.failure.error]
        (folder / "outcome.json").write_text(json.dumps([outcome.seconds, failure]))

    folder = once(tmp_path_factory, f"executed-{lesson.name}", make)
    seconds, failure = json.loads((folder / "outcome.json").read_text())
    return Outcome(lesson.name, folder / lesson.path.name, seconds, Failure(*failure) if failure else None)


def free_port() -> int:
    """A port for a server that is about to start, below those that the system itself hands out, so that none is lost."""
    while True:
        with contextlib.suppress(OSError), socket.socket() as probe:
            port = random.SystemRandom().randrange(20_000, 32_000)
            probe.bind(("127.0.0.1", port))
            return port
