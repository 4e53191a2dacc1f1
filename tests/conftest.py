"""Shared by all tests: a place for scratch notebooks, and the rule for browser tests."""

import os
import sys

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side: before anything imports a BLAS

from eigencourse.doctor import find_browser

PATIENCE = 600_000  # milliseconds after which a page is given up; only what never comes costs so much


def _haste(item):
    """First the runs of lessons, by their budget, then what else executes a notebook, then everything else."""
    lesson = getattr(item, "callspec", None) and item.callspec.params.get("lesson")
    runs = "notebook" in item.keywords
    return not runs, -lesson.budget if runs and lesson else 0


def pytest_collection_modifyitems(items):
    """What takes long comes first, so that no worker is left alone with it at the end.

    Without a browser its tests are skipped, and the last lines say so; where it must be there (CI) they fail.
    """
    items.sort(key=_haste)
    if find_browser() or os.environ.get("EIGENLIB_REQUIRE_BROWSER"):
        return
    skip = pytest.mark.skip(
        reason="no Chrome or Chromium here: install one (Debian: apt install chromium), run make test again"
    )
    for item in items:
        if "browser" in item.keywords:
            item.add_marker(skip)


def _patient(make):
    """make(…) → a tab or its context, in which every wait lasts until what it waits for, however busy the machine is."""

    def made(**settings):
        new = make(**settings)
        new.set_default_timeout(PATIENCE)
        return new

    return made


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium that makes no request of its own."""
    from playwright.sync_api import sync_playwright

    executable = find_browser()
    assert executable, "No Chrome or Chromium was found, and EIGENLIB_REQUIRE_BROWSER says there must be one."
    flags = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += " --disable-component-update --disable-sync"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=flags.split(), timeout=PATIENCE)
        chromium.new_context, chromium.new_page = map(_patient, (chromium.new_context, chromium.new_page))
        yield chromium
        chromium.close()


@pytest.fixture(autouse=True)
def one_thread():
    """Two torch threads beside a busy neighbour wait for each other, spinning: forty CPU seconds where one takes two."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def pytest_terminal_summary(terminalreporter):
    """Seconds against budgets, gathered from all workers: a table to read, for a busy machine is slow and not wrong."""
    told = [
        (name, value)
        for report in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])
        for name, value in getattr(report, "user_properties", [])
        if report.when == "call"
    ]
    if rows := [value for name, value in told if name == "budget"]:
        terminalreporter.section("seconds against budgets (no test depends on them)")
        for what, seconds, budget in sorted(rows):
            over = "  OVER" if seconds > budget else ""
            terminalreporter.line(f"{what:40} {seconds:6.1f} of {budget:4.0f} s{over}")
    if rows := [value for name, value in told if name == "fuzz"]:
        terminalreporter.section(f"fuzz: {sum(count for _, count, _ in rows)} cases")
        for what, count, faults in sorted(rows):
            terminalreporter.line(f"{what:40} {count:6} cases, {faults} faults")
