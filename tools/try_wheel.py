"""Build the wheel and try it where nothing else is: `make wheel`.

A fresh environment in a temporary folder gets the wheel and what it needs, no extras, no repository. There the README's example
must run and every map must be there; what belongs to an extra must say so in one sentence.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("pyproject.toml", "README.md", "LICENSE", "eigenlib", "eigencourse", "data/maps")
MORE = """
from eigenlib.gridworld import map_names

assert len(options) == 4
assert {"four_rooms", "dayan", "maze"} <= set(map_names()), map_names()
for name in map_names():
    assert GridWorld.named(name).n_states > 1
try:
    import eigenlib.atari.network
except ImportError as problem:
    assert "pip install 'eigenlib[atari]'" in str(problem), problem
else:
    raise AssertionError("eigenlib.atari imports without its extra")
"""


def example() -> str:
    """The README's library example."""
    (block,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    return block


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="eigenlib-wheel-") as name:
        folder = Path(name)
        quiet = ["--quiet", "--disable-pip-version-check"]
        # from a copy, because a build leaves modules of yesterday behind that would end up in the wheel of tomorrow
        source = folder / "source"
        for part in PARTS:
            (source / part).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copyfile
            copy(ROOT / part, source / part)
        build = ["-m", "pip", "wheel", *quiet, "--no-deps", "--no-build-isolation", "--wheel-dir", str(ROOT / "dist")]
        subprocess.run([sys.executable, *build, str(source)], check=True)
        wheel = max((ROOT / "dist").glob("eigenlib-*.whl"), key=lambda path: path.stat().st_mtime)
        print(f"Built: {wheel.relative_to(ROOT)}, {wheel.stat().st_size / 1e6:.1f} MB. Trying it ...", flush=True)
        venv.create(folder / "venv", with_pip=True)
        inside = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        pins = ["--constraint", str(ROOT / "constraints.txt")]
        subprocess.run([inside / "python", "-m", "pip", "install", *quiet, *pins, str(wheel)], check=True)
        (folder / "trial.py").write_text(example() + MORE, encoding="utf-8")
        subprocess.run([inside / "python", "trial.py"], cwd=folder, check=True)
        told = subprocess.run([inside / "eigenlib", "report"], cwd=folder, capture_output=True, text=True)
        if told.returncode != 2 or "pip install 'eigenlib[course]'" not in told.stderr or told.stderr.count("\n") != 1:
            sys.exit(f"`eigenlib report` without the course says {told.stderr!r}, exit {told.returncode}.")
    print("It works on its own: the README's example, every map, and a sentence for each extra.")


if __name__ == "__main__":
    main()
