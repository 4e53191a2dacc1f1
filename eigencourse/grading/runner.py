"""What runs inside the room (`eigencourse.grading.sandbox`): the submission's cells, then calls of its functions.

A request is a line of JSON, {"id": 7, "source": "…"} or {"id": 8, "name": "my_…", "arguments": …}; so is its reply. What a
notebook prints goes nowhere. All of this is in the submission's hands, so the examiner believes nothing but plain data.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

LARGEST = 16 * 2**20  # bytes of a reply


def main() -> None:
    requests, replies, mine = os.fdopen(os.dup(0), "rb", 0), os.dup(1), os.getpid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    shell = _shell()
    sys.path.insert(0, "")  # a notebook may import what it has written beside itself
    while line := requests.readline():
        request = json.loads(line)
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # only now is there something to interrupt
            reply = _answer(shell, request)
            data = json.dumps(reply | {"id": request["id"]}).encode()
        except BaseException as error:
            data = json.dumps({"id": request["id"], "failed": type(error).__name__}).encode()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if os.getpid() != mine:  # a fork that came back from its cell
            os._exit(0)
        if len(data) > LARGEST:
            data = json.dumps({"id": request["id"], "failed": "too large"}).encode()
        data += b"\n"
        while data:
            data = data[os.write(replies, data) :]


def _shell():
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    quiet: Any = shell
    quiet.system = shell.system_raw  # `!ls` without a terminal
    quiet.showtraceback = quiet.showsyntaxerror = lambda *_, **__: None  # nobody reads it, and it takes its time
    return shell


def _answer(shell, request: dict[str, Any]) -> dict[str, Any]:
    if "source" in request:
        result = shell.run_cell(request["source"], store_history=False)
        error = result.error_before_exec or result.error_in_exec
        return {"error": type(error).__name__ if error else ""}
    from eigencourse.grading import wire

    return wire.serve(shell.user_ns, request)


if __name__ == "__main__":
    main()
