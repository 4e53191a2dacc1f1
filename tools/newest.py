"""What breaks with the newest versions? `make newest`, or with words for pytest: `make newest ARGS="tests/eigenlib -x"`.

A scratch environment gets everything that pyproject.toml asks for, without our pins, and the tests run in it. It says which
packages are newer than the pinned ones, then what failed. Nothing here is changed; if all is well, raise the pins in
constraints.txt and run tools/lock.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from lock import ROOT, pins
from packaging.utils import canonicalize_name

TESTS = ["-n", "2", "--dist", "loadgroup", "-q"]


def newer(installed: dict[str, str]) -> list[str]:
    """Packages whose version is not the pinned one, in words."""
    pinned = {canonicalize_name(name): number for name, number in pins().items()}
    return [
        f"{name} {pinned.get(name, 'not there')} → {number}"
        for name, number in sorted(installed.items())
        if name in pinned and pinned[name] != number
    ]


def main(words: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="eigenlib-newest-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder, "Scripts" if sys.platform == "win32" else "bin", "python"))
        print("Installing the newest versions in a scratch environment ...", flush=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        extras = f"{ROOT}[atari,course,dev]"
        done = subprocess.run([*pip, "install", "--quiet", "--upgrade", "pip", "setuptools", "--editable", extras])
        if done.returncode:
            print("They cannot be installed together: see pip's words above.")
            return 1
        listed = subprocess.run([*pip, "list", "--format=json"], capture_output=True, text=True, check=True).stdout
        found = newer({canonicalize_name(one["name"]): one["version"] for one in json.loads(listed)})
        print("\n".join([f"{len(found)} packages are not the pinned ones:", *found]), flush=True)
        status = subprocess.run([python, "-m", "pytest", *TESTS, *words], cwd=ROOT).returncode
    print("Nothing breaks with these versions." if status == 0 else "With these versions the tests above fail.")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
