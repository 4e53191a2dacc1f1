"""Is this machine ready for the course? (`eigenlib doctor`, and the readiness check of notebook 00)

`examine` looks at the machine; `rehearse`, the evening before a class, at the lessons: does each run here, and does every
solution pass (`eigenlib doctor --course`)?
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import NamedTuple

import nbformat

from eigencourse import exercises
from eigencourse.lessons import Lesson, Outcome, run_many
from eigenlib._extras import needed
from eigenlib.paths import ROOT

_TITLES = {
    "bank_heist": "Bank Heist",
    "freeway": "Freeway",
    "montezuma_revenge": "Montezuma's Revenge",
    "ms_pacman": "Ms. Pac-Man",
}
_BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser", "chrome")
_ANEW = "Delete .venv and run make report."
LONGEST = 900.0  # seconds after which a single cell of a lesson counts as hanging


class Finding(NamedTuple):
    """One line of the examination: status is "ok", "warning" or "error"; advice says what to do, if anything."""

    status: str
    name: str
    what: str
    advice: str = ""


def examine() -> Iterator[Finding]:
    """All findings, one by one; a check that fails to run is a finding too."""
    for check in (_python, _packages, _device, _roms, _memory, _disk, _browser, _speed):
        try:
            yield check()
        except ImportError as problem:
            yield Finding("warning", check.__name__[1:], str(problem), "Lessons from 08 on need it.")
        except Exception as problem:
            yield Finding("error", check.__name__[1:], f"{type(problem).__name__}: {problem}", _ANEW)


def find_browser() -> str | None:
    """The Chrome or Chromium that browser tests use: $EIGENLIB_BROWSER, an installed one, or playwright's own."""
    chosen = os.environ.get("EIGENLIB_BROWSER")
    if chosen:
        return chosen if Path(chosen).exists() else None
    for name in _BROWSERS:
        if found := shutil.which(name):
            return found
    bundle = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
    if bundle.exists():
        return str(bundle)
    caches = (os.environ.get("PLAYWRIGHT_BROWSERS_PATH"), "~/.cache/ms-playwright", "~/Library/Caches/ms-playwright")
    for cache in filter(None, caches):
        for pattern in ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/*.app/Contents/MacOS/*"):
            for path in sorted(Path(cache).expanduser().glob(pattern)):
                return str(path)
    return None


def pins() -> dict[str, str]:
    """{package: version} as constraints.txt and pyproject.toml fix them."""
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("constraints.txt", "pyproject.toml"))
    return dict(re.findall(r'^ *"?([\w.-]+)==([\w.]+)', text, flags=re.MULTILINE))


def _python() -> Finding:
    return Finding("ok", "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def _packages() -> Finding:
    # Of the pinned packages some belong to other platforms; only what we ask for by name must be here.
    if not (ROOT / "constraints.txt").is_file():
        return Finding("warning", "packages", "not compared: eigenlib was installed without its repository")
    lines = [line for line in requires("eigenlib") or [] if "extra ==" not in line or "course" in line]
    wanted = {re.split(r"[^\w.-]", line)[0].lower() for line in lines}
    missing, other = [], []
    for name, pinned in pins().items():
        try:
            if version(name).split("+")[0] != pinned:
                other.append(f"{name} {version(name)} (pinned {pinned})")
        except PackageNotFoundError:
            missing += [name] * (name.lower() in wanted)
    if missing:
        return Finding("error", "packages", f"missing: {', '.join(missing[:6])}", _ANEW)
    if other:
        return Finding("warning", "packages", f"not the tested versions: {', '.join(other[:6])}", _ANEW)
    return Finding("ok", "packages", "all as pinned")


def _device() -> Finding:
    torch = needed("torch", "atari")
    kind = f"CPU only, {os.cpu_count()} cores (torch {torch.__version__}); enough for every lesson"
    if torch.cuda.is_available():
        kind = f"CUDA, {torch.cuda.get_device_name(0)} (torch {torch.__version__})"
    elif torch.backends.mps.is_available():
        kind = f"Apple MPS (torch {torch.__version__})"
    return Finding("ok", "device", kind)


def _roms() -> Finding:
    ale_py = needed("ale_py", "atari")
    ALEInterface, roms = ale_py.ALEInterface, needed("ale_py.roms", "atari")
    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    for rom in _TITLES:
        ale = ALEInterface()
        path = roms.get_rom_path(rom)
        if path is None:
            return Finding("error", "games", f"ale-py has no ROM for {_TITLES[rom]}", "Reinstall ale-py.")
        ale.loadROM(path)
        if ale.getScreenRGB().shape != (210, 160, 3):
            return Finding("error", "games", f"{_TITLES[rom]} loads but shows no screen", "Reinstall ale-py.")
    return Finding("ok", "games", f"{', '.join(_TITLES.values())} load")


def _memory() -> Finding:
    import psutil

    gib = psutil.virtual_memory().available / 2**30
    return _enough(gib >= 3, "memory", f"{gib:.1f} GiB free", "Close other programs: lessons need about 3 GiB.")


def _disk() -> Finding:
    gib = shutil.disk_usage(ROOT).free / 2**30
    advice = "Free some disk space: a report needs little, data sets more."
    return _enough(gib >= 2, "disk", f"{gib:.0f} GiB free", advice)


def _browser() -> Finding:
    found = find_browser()
    what = f"for the tests: {Path(found).name}" if found else "no Chrome or Chromium: browser tests cannot run"
    return _enough(found is not None, "browser", what, "make test installs one where it can.")


def _speed() -> Finding:
    from eigenlib.gridworld import GridWorld
    from eigenlib.representation import learn_successor_representation

    world = GridWorld.named("four_rooms")
    learn_successor_representation(world, episodes=1, rng=0)  # compiles, or loads the compiled kernel
    begin = time.perf_counter()
    learn_successor_representation(world, episodes=1000, rng=0)
    million = 0.1 / (time.perf_counter() - begin)
    what = f"{million:.1f} million TD steps a second"
    return _enough(million >= 1, "speed", what, "Sliders will feel slow: is something else running?")


def _enough(good: bool, name: str, what: str, advice: str) -> Finding:
    return Finding("ok", name, what) if good else Finding("warning", name, what, advice)


# --- the evening before a class -----------------------------------------------------------------------------------------


class Line(NamedTuple):
    """One lesson of the pass sheet; `problem` is empty where it is ready."""

    name: str
    seconds: float
    passed: int
    exercises: int
    problem: str

    def __str__(self) -> str:
        solutions = f"{self.passed} of {self.exercises} solutions pass"
        solutions = solutions if self.exercises else "no exercises with a check"
        state = f"failed  {self.problem}" if self.problem else "ok"
        return f"{self.name:34} {self.seconds:6.1f} s  {solutions:26}  {state}"


def rehearse(chosen: list[Lesson], jobs: int, tell: Callable[[Line], None]) -> list[Line]:
    """Run the lessons at their default numbers in a scratch folder, telling each line as it comes."""
    lines = {}

    def done(outcome: Outcome) -> None:
        lines[outcome.name] = pass_line(outcome)
        tell(lines[outcome.name])

    with tempfile.TemporaryDirectory(prefix="eigenlib-rehearsal-") as folder:
        run_many(chosen, Path(folder), {}, jobs, done, timeout=LONGEST)
    return [lines[lesson.name] for lesson in chosen]


def pass_line(outcome: Outcome) -> Line:
    """What an executed notebook says about itself: where it stopped, and which exercises a solution passes."""
    asked = {one.number for one in exercises.all_exercises(outcome.name[:2])}
    records = exercises.collect(nbformat.read(outcome.output, as_version=4))
    passed = asked & {entry["number"] for entry in records if entry["state"] == "passed"}
    problem = ""
    if outcome.failure:
        problem = f"in {outcome.failure}" if outcome.failure.cell else str(outcome.failure)
    elif asked - passed:
        problem = f"no solution passes for {', '.join(sorted(asked - passed))}"
    return Line(outcome.name, outcome.seconds, len(passed), len(asked), problem)
