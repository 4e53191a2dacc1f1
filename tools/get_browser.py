"""Find a Chrome or Chromium for the browser tests, or install one by the platform's means (`make test` calls it).

It never fails the build: without a browser the tests that need one say so in their last lines.
"""

import os
import shutil
import subprocess
import sys

from eigencourse.doctor import find_browser


def attempts() -> list[list[list[str]]]:
    """Ways to get a browser, best first; each is a list of commands."""
    ways = []
    if shutil.which("apt-get") and os.geteuid() == 0:
        ways.append(
            [["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]]
        )
    ways.append([[sys.executable, "-m", "playwright", "install", "chromium"]])
    return ways


def main() -> None:
    if find_browser():
        return
    print("No Chrome or Chromium here: installing one for the browser tests ...", flush=True)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 600}
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for commands in attempts():
        try:
            worked = all(subprocess.run(command, env=environment, **quiet).returncode == 0 for command in commands)
        except (OSError, subprocess.TimeoutExpired):
            worked = False
        if worked and find_browser():
            return
    print(
        "No browser could be installed: the tests marked 'browser' will be skipped. Install Chromium and run make test again."
    )


if __name__ == "__main__":
    main()
