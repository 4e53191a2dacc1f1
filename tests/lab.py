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
        for _ in range(200):
            try:
                json.load(urllib.request.urlopen(f"{address}/api/status", timeout=1))
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=20)


def in_lab(browser, address: str, notebook: str, work) -> None:
    """work(lab) on an open notebook; after a time-out once more with a new kernel, as a busy lab may lose a click."""
    for last in (False, True):
        tabs = browser.contexts
        try:
            work(Lab(browser, address, notebook))
            return
        except TimeoutError:
            if last:
                raise
        finally:
            for context in [context for context in browser.contexts if context not in tabs]:
                context.close()
        for session in json.load(urllib.request.urlopen(f"{address}/api/sessions")):
            gone = urllib.request.Request(f"{address}/api/sessions/{session['id']}", method="DELETE")
            urllib.request.urlopen(gone).close()


class Lab:
    """One notebook open in one tab."""

    def __init__(self, browser, address: str, notebook: str) -> None:
        self.errors: list[str] = []
        self.tab = browser.new_page(viewport={"width": 1280, "height": 1000})
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.tab.goto(f"{address}/lab/tree/{notebook}?reset")
        self.tab.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        self.wait_idle()

    def wait_idle(self, timeout: int = 120_000) -> None:
        self.tab.wait_for_selector(".jp-NotebookPanel-toolbar [data-status='idle']", timeout=timeout)

    def run_all(self) -> None:
        """Run → Run All Cells; again if the menu was not yet alive, which happens in a lab that has just opened."""
        for _ in range(5):
            self.tab.locator(".lm-MenuBar-item", has_text="Run").first.click()
            self.tab.locator("li[data-command='runmenu:run-all']").click()
            try:
                self.tab.wait_for_selector(".jp-InputPrompt:text('[*]')", timeout=4_000)
                return
            except TimeoutError:
                self.tab.keyboard.press("Escape")
        raise AssertionError("Run All Cells did nothing")

    def wait_done(self, timeout: int = 180_000) -> None:
        """Until no cell waits or runs."""
        self.tab.wait_for_function(
            "() => ![...document.querySelectorAll('.jp-InputPrompt')].some(p => p.textContent.includes('[*]'))",
            timeout=timeout,
        )
        self.wait_idle(timeout)

    def busy(self) -> bool:
        return "[*]" in "".join(self.tab.locator(".jp-InputPrompt").all_text_contents())

    def explorer(self, which: int, timeout: int = 150_000):
        """The which-th explorer of the notebook, on screen with its picture."""
        found = self.tab.locator(".eigenlib-explorer").nth(which)
        found.locator("img").first.wait_for(timeout=timeout)
        found.scroll_into_view_if_needed()
        return found

    def move(self, explorer, key: str, slider: int = 0) -> None:
        explorer.locator(".noUi-handle").nth(slider).press(key)

    def picture(self, explorer) -> str:
        """The address of an explorer's image, which changes with every redraw."""
        return explorer.locator("img").first.get_attribute("src")

    def wait_for_new_picture(self, explorer, before: str, timeout: int = 30_000) -> None:
        image = explorer.locator("img").first.element_handle()
        self.tab.wait_for_function("([image, before]) => image.src !== before", arg=[image, before], timeout=timeout)
