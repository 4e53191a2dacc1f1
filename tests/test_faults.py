"""A sample of `make faults`: commands that are really killed, interrupted, starved of disk and started twice."""

import os
import re
import subprocess
import sys

import pytest

from eigenlib.paths import ROOT

TABLE = re.compile(r"^(\w+) +(.+?) +(\d+)  (held|\d+ FAILED)$", re.MULTILINE)


def faults(*arguments, **environment):
    command = [sys.executable, str(ROOT / "tests" / "helpers" / "faults.py"), *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=1200)


@pytest.mark.parametrize(
    ("arguments", "sorts"),
    [
        (["experiment", "--tries", "1", "--only", "change|two"], 5),
        (["collect", "--tries", "1", "--only", "SIGKILL at a change"], 1),
        (["report", "--tries", "1", "--only", "SIGKILL at a moment"], 1),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_fault_costs_nothing_that_was_done(arguments, sorts):
    done = faults(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [outcome for *_, outcome in TABLE.findall(done.stdout)] == ["held"] * sorts


def test_faults_notices_results_that_differ(tmp_path):
    """An experiment whose results depend on more than its settings: if the script were content, it would prove nothing."""
    spoilt = "import os, eigenlib.storage as storage\nwrite = storage.write_description\n"
    spoilt += "storage.write_description = lambda path, about: write(path, {**about, 'process': os.getpid()})\n"
    (tmp_path / "sitecustomize.py").write_text(spoilt, encoding="utf-8")
    done = faults("experiment", "--tries", "1", "--only", "full", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert [outcome for *_, outcome in TABLE.findall(done.stdout)] == ["1 FAILED"]
    assert "other files than undisturbed" in done.stdout
