"""One notebook in one kernel: papermill's way of running it, and what can go wrong with kernels, ports and widgets."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def execute(path: Path, output: Path, parameters: dict[str, Any], timeout: float | None, starts: int = 3) -> str:
    """Have papermill run a notebook and return what went wrong, "" for nothing; a kernel gets so many chances to start."""
    # papermill and its imports cost a second, which `eigenlib --help` should not pay.
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    logging.getLogger("papermill").setLevel(logging.ERROR)
    try:
        papermill.execute_notebook(
            literally(path),
            literally(output),
            parameters=parameters,
            kernel_name="python3",
            progress_bar=False,
            execution_timeout=timeout,
            # how the kernel cuts what is printed into messages is a matter of timing
            coalesce_streams=True,
            # where the kernel runs; papermill's own `cwd` would move this process, with all its threads
            resources={"metadata": {"path": str(output.parent)}},
            extra_arguments=["--log-level=CRITICAL", *_ends_with_us()],
        )
    except PapermillExecutionError as error:
        return f"{error.ename}: {error.evalue}"
    except DeadKernelError:
        return "its kernel was killed: is there enough memory?"
    except Exception as error:  # such as a cell that never ends: still a failed page, not a failed report
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):  # which is no notebook's fault
            why = f"{error.strerror}; it takes about {2 * path.stat().st_size} bytes"
            raise OSError(
                f"{error.filename or output} cannot be written ({why}): make room and run it again."
            ) from None
        # A plain RuntimeError means that no cell has run: the kernel did not start. Its ports are chosen before it
        # binds them, and on a busy machine another program may take one in between. So, with new ports, again.
        if type(error) is RuntimeError and starts > 1:
            return execute(path, output, parameters, timeout, starts - 1)
        return f"{type(error).__name__}: {str(error).strip() or 'the kernel stopped'}"
    return ""


def _ends_with_us() -> list[str]:
    """Arguments of a kernel that Linux ends as soon as the thread that started it is gone, even while it is starting.

    Elsewhere ipykernel itself looks every second whether its parent is alive.
    """
    if sys.platform != "linux":
        return []
    line = "__import__('ctypes').CDLL(None).prctl(1, 9)"  # PR_SET_PDEATHSIG, SIGKILL
    return [
        f"--IPKernelApp.exec_lines={line}; __import__('os').getppid() == {os.getpid()} or __import__('os')._exit(1);"
    ]


def literally(path: Path) -> str:
    """A path for papermill, which fills in what stands in braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def kill_kernels() -> None:
    """End every kernel that this process has started."""
    import psutil

    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if "ipykernel_launcher" in child.cmdline():
                child.kill()


def hidden_errors(notebook) -> list[str]:
    """Errors that hide in widgets: a callback that raises does not fail papermill, its traceback lands in widget state."""
    state = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    found = []
    for model in state.values():
        content = model.get("state", {})
        for output in content.get("outputs") or []:
            if output.get("output_type") == "error":
                found.append(f"in a widget: {output.get('ename')}: {output.get('evalue')}")
        if "eigenlib-bug" in str(content.get("value", "")):
            found.append(f"in an explorer: {re.sub('<[^>]+>', '', content['value'])}")
    return found


def stopped_at(executed) -> int:
    """The In [n] of the cell that did not complete."""
    count = 0
    for cell in executed.cells:
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        count += 1
        if cell.metadata.get("papermill", {}).get("status") != "completed":
            return cell.execution_count or count
    return count
