"""All loops that are compiled (numba), each in a module named after the one it serves.

Functions import these modules when called, never at the top of a file: numba takes 0.6 s to import, and a reader who only
wants an exact Ψ should not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numba import config

THREADS: int = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # the cores, or what that variable says


def in_threads(work: Callable[[Any], None], pieces: Iterable[Any]) -> None:
    """work(piece) for all pieces, on all cores.

    Threads around a kernel that releases the GIL, not prange: once a process has used prange (OpenMP), a forked child
    that uses it again is killed, and multiprocessing forks by default on Linux.
    """
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(work, pieces))
