"""Shared by all tests: a place for scratch notebooks, and the rule for browser tests."""

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side: before anything imports a BLAS

from eigenlib.doctor import find_browser


def pytest_collection_modifyitems(items):
    """Without a browser its tests are skipped, and the last lines say so; where it must be there (CI) they fail."""
    if find_browser() or os.environ.get("EIGENLIB_REQUIRE_BROWSER"):
        return
    skip = pytest.mark.skip(
        reason="no Chrome or Chromium here: install one (Debian: apt install chromium), run make test again"
    )
    for item in items:
        if "browser" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium that makes no request of its own."""
    from playwright.sync_api import sync_playwright

    executable = find_browser()
    assert executable, "No Chrome or Chromium was found, and EIGENLIB_REQUIRE_BROWSER says there must be one."
    flags = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += " --disable-component-update --disable-sync"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=flags.split())
        yield chromium
        chromium.close()


def pytest_terminal_summary(terminalreporter):
    """Seconds of every notebook against its budget, gathered from all workers."""
    rows = [
        value
        for report in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])
        for name, value in getattr(report, "user_properties", [])
        if name == "notebook"
    ]
    if rows:
        terminalreporter.section("notebooks: seconds against budget")
        for name, seconds, budget in sorted(rows):
            terminalreporter.line(f"{name:32} {seconds:6.1f} of {budget:.0f} s")
