"""Is this machine ready for the course? (`eigenlib doctor`, and the readiness check of notebook 00)"""

from __future__ import annotations

import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import NamedTuple

from eigenlib.paths import ROOT

_BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser", "chrome")


class Finding(NamedTuple):
    """One line of the examination: status is "ok", "warning" or "error"; advice says what to do, if anything."""

    status: str
    name: str
    what: str
    advice: str = ""


def examine() -> Iterator[Finding]:
    """All findings, one by one; a check that fails to run is a finding too."""
    checks: list[Callable[[], Finding]] = [_python, _packages, _device, _roms, _memory, _disk, _browser, _speed]
    for check in checks:
        try:
            yield check()
        except Exception as problem:
            yield Finding(
                "error", check.__name__[1:], f"{type(problem).__name__}: {problem}", "Delete .venv, run make report."
            )


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
    caches = [
        os.environ.get("PLAYWRIGHT_BROWSERS_PATH", ""),
        "~/.cache/ms-playwright",
        "~/Library/Caches/ms-playwright",
    ]
    for cache in filter(None, caches):
        for pattern in ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/*.app/Contents/MacOS/*"):
            for path in sorted(Path(cache).expanduser().glob(pattern)):
                return str(path)
    return None


def pins() -> dict[str, str]:
    """{package: version} as constraints.txt and pyproject.toml fix them."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if "==" in line and not line.startswith("#")]
    torch = next(
        line for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines() if '"torch==' in line
    )
    return {name.strip(): number.strip() for name, number in pairs} | {"torch": torch.split("==")[1].strip(' ",')}


def _python() -> Finding:
    return Finding("ok", "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def _packages() -> Finding:
    # Of the pinned packages some belong to other platforms; only what we ask for by name must be here.
    if not (ROOT / "constraints.txt").is_file():
        return Finding("warning", "packages", "not compared: eigenlib was installed without its repository")
    needed = {re.split(r"[^\w.-]", line)[0].lower() for line in requires("eigenlib") or []}
    missing, other = [], []
    for name, pinned in pins().items():
        try:
            if version(name).split("+")[0] != pinned:
                other.append(f"{name} {version(name)} (pinned {pinned})")
        except PackageNotFoundError:
            missing += [name] * (name.lower() in needed)
    if missing:
        return Finding("error", "packages", f"missing: {', '.join(missing[:6])}", "Delete .venv and run make report.")
    if other:
        return Finding(
            "warning",
            "packages",
            f"not the tested versions: {', '.join(other[:6])}",
            "Delete .venv and run make report.",
        )
    return Finding("ok", "packages", "all as pinned")


def _device() -> Finding:
    import torch

    if torch.cuda.is_available():
        return Finding("ok", "device", f"CUDA, {torch.cuda.get_device_name(0)} (torch {torch.__version__})")
    if torch.backends.mps.is_available():
        return Finding("ok", "device", f"Apple MPS (torch {torch.__version__})")
    return Finding(
        "ok", "device", f"CPU only, {os.cpu_count()} cores (torch {torch.__version__}); enough for every lesson"
    )


def _roms() -> Finding:
    from ale_py import ALEInterface, LoggerMode, roms

    from eigenlib.atari.emulator import TITLES

    ALEInterface.setLoggerMode(LoggerMode.Error)
    for rom in TITLES:
        ale = ALEInterface()
        path = roms.get_rom_path(rom)
        if path is None:
            return Finding("error", "games", f"ale-py has no ROM for {TITLES[rom]}", "Reinstall ale-py.")
        ale.loadROM(path)
        if ale.getScreenRGB().shape != (210, 160, 3):
            return Finding("error", "games", f"{TITLES[rom]} loads but shows no screen", "Reinstall ale-py.")
    return Finding("ok", "games", f"{', '.join(sorted(TITLES.values()))} load")


def _memory() -> Finding:
    import psutil

    gib = psutil.virtual_memory().available / 2**30
    status, advice = ("ok", "") if gib >= 3 else ("warning", "Close other programs: lessons need about 3 GiB.")
    return Finding(status, "memory", f"{gib:.1f} GiB free", advice)


def _disk() -> Finding:
    gib = shutil.disk_usage(ROOT).free / 2**30
    status, advice = (
        ("ok", "") if gib >= 2 else ("warning", "Free some disk space: a report needs little, data sets more.")
    )
    return Finding(status, "disk", f"{gib:.0f} GiB free", advice)


def _browser() -> Finding:
    found = find_browser()
    if found:
        return Finding("ok", "browser", f"for the tests: {Path(found).name}")
    return Finding(
        "warning", "browser", "no Chrome or Chromium: browser tests cannot run", "make test installs one where it can."
    )


def _speed() -> Finding:
    from eigenlib.gridworld import GridWorld
    from eigenlib.representation import learn_successor_representation

    world = GridWorld.named("four_rooms")
    learn_successor_representation(world, episodes=1, rng=0)  # compiles, or loads the compiled kernel
    begin = time.perf_counter()
    learn_successor_representation(world, episodes=1000, rng=0)
    million = 0.1 / (time.perf_counter() - begin)
    status, advice = ("ok", "") if million >= 1 else ("warning", "Sliders will feel slow: is something else running?")
    return Finding(status, "speed", f"{million:.1f} million TD steps a second", advice)
