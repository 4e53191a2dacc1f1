"""All loops that are compiled (numba), each in a module named after the one it serves.

Functions import these modules when called, never at the top of a file: numba takes 0.6 s to import, and a reader who only
wants an exact Ψ should not wait for it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numba import config, njit

THREADS: int = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # the cores, or what that variable says


def in_threads(work: Callable[[Any], None], pieces: Iterable[Any]) -> None:
    """work(piece) for all pieces, on all cores.

    Threads around a kernel that releases the GIL, not prange: once a process has used prange (OpenMP), a forked child
    that uses it again is killed, and multiprocessing forks by default on Linux.
    """
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(work, pieces))


def _find_cache() -> None:
    """numba keeps what it compiled beside the source or at home; where it may write in neither, in a folder until we end."""
    try:
        njit(cache=True)(in_threads)  # only looks for the place
    except RuntimeError:
        os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="eigenlib-")  # processes that we start use it, too
        atexit.register(shutil.rmtree, os.environ["NUMBA_CACHE_DIR"], ignore_errors=True)
        config.reload_config()


_find_cache()
