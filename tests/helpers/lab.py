"""JupyterLab driven in a real browser, as a reader would use it."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import TimeoutError
from shared import free_port

from eigenlib.paths import ROOT


@contextmanager
def jupyterlab(folder: Path):
    """A server on loopback with the course's own settings, its notebooks in `folder`; gives its address."""
    port = free_port()
    environment = os.environ | {
        name: str(folder / f".{name}") for name in ("JUPYTERLAB_WORKSPACES_DIR", "JUPYTER_RUNTIME_DIR")
    }
    environment |= {"JUPYTER_CONFIG_DIR": str(folder / ".config"), "JUPYTERLAB_SETTINGS_DIR": str(folder / ".settings")}
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        f"--port={port}",
        "--IdentityProvider.token=",
        "--allow-root",
    ]
    command += [f"--LabApp.app_settings_dir={ROOT / 'tools' / 'lab'}", "--KernelManager.transport_encryption=auto"]
    command += [f"--ServerApp.root_dir={folder}", "--ServerApp.disable_check_xsrf=True"]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        while server.poll() is None:
            try:
                json.load(urllib.request.urlopen(f"{address}/api/status", timeout=60))
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait()


def in_lab(browser, address: str, notebook: str, work) -> None:
    """work(lab) on an open notebook; after a time-out once more with a new kernel, as a busy lab may lose a click."""
    for last in (False, True):
        lab = Lab(browser, address, notebook)
        try:
            work(lab)
        except TimeoutError:
            if last:
                raise
        else:
            return
        finally:
            lab.close()
        for session in json.load(urllib.request.urlopen(f"{address}/api/sessions")):
            gone = urllib.request.Request(f"{address}/api/sessions/{session['id']}", method="DELETE")
            urllib.request.urlopen(gone).close()


class Lab:
    """One notebook open in one tab.

    errors: what went wrong in the page and is ours to mend. JupyterLab has slips of its own while it opens and closes
    documents (a cell that is gone is asked for its model); they stand in `theirs`.
    """

    def __init__(self, browser, address: str, notebook: str) -> None:
        self.errors, self.theirs, self.closing = [], [], False
        self.tab = browser.new_page(viewport={"width": 1280, "height": 1000})
        self.tab.on("pageerror", lambda error: self.heard(error.message, error.stack or ""))
        self.tab.on("console", lambda m: self.heard(m.text, m.location["url"]) if m.type == "error" else None)
        self.tab.goto(f"{address}/lab/tree/{notebook}?reset")
        self.tab.wait_for_selector(".jp-Notebook .jp-Cell")
        self.wait_idle()

    def heard(self, message: str, source: str) -> None:
        """An error of the page: theirs if only JupyterLab's own files had a hand in it while documents came or went."""
        own_files = "/static/lab/" in source or "/lab/extensions/" in source or not source
        ours = "blob:" in source or "eigenlib" in source + message  # anywidget runs our scripts from a blob
        moving = self.closing or "(reading 'sharedModel')" in message
        (self.theirs if own_files and moving and not ours else self.errors).append(message)

    def close(self) -> None:
        """Close the tab; whatever it complains about that is ours fails the test, even now."""
        self.closing = True
        self.tab.context.close()
        assert self.errors == []

    def wait_idle(self) -> None:
        self.tab.wait_for_selector(".jp-NotebookPanel-toolbar [data-status='idle']")

    def run_all(self) -> None:
        """Run → Run All Cells; again if the menu was not yet alive, which happens in a lab that has just opened."""
        for _ in range(10):
            self.tab.locator(".lm-MenuBar-item", has_text="Run").first.click()
            self.tab.locator("li[data-command='runmenu:run-all']").click()
            try:
                self.tab.wait_for_selector(".jp-InputPrompt:text('[*]')", timeout=20_000)
                return
            except TimeoutError:
                self.tab.keyboard.press("Escape")
        raise AssertionError("Run All Cells did nothing")

    def run_cell(self, which: int) -> None:
        """Shift + Enter in one cell; again if a lab that has just opened did not hear it."""
        cell = self.tab.locator(".jp-CodeCell").nth(which)
        for _ in range(10):
            cell.locator(".cm-content").click()
            self.tab.keyboard.press("Shift+Enter")
            try:
                cell.locator(".jp-InputPrompt:not(:text('[ ]'))").wait_for(timeout=20_000)
                return
            except TimeoutError:
                self.tab.keyboard.press("Escape")
        raise AssertionError(f"cell {which} did not run")

    def wait_done(self) -> None:
        """Until no cell waits or runs."""
        self.tab.wait_for_function(
            "() => ![...document.querySelectorAll('.jp-InputPrompt')].some(p => p.textContent.includes('[*]'))"
        )
        self.wait_idle()

    def busy(self) -> bool:
        return "[*]" in "".join(self.tab.locator(".jp-InputPrompt").all_text_contents())
