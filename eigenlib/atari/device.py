"""What training runs on: device, precision, cores, memory, processes. None of it changes what is learned, rounding aside."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import psutil
import torch
from torch import distributed, nn

from eigenlib import _require
from eigenlib.atari.learning import Learner, Objective
from eigenlib.atari.network import DeepSR
from eigenlib.atari.pixels import SIDE

PAYS = 1.1  # times as fast: what bfloat16 must be before "auto" takes it


def choose_device(name: str = "auto") -> torch.device:
    """The device of this name; "auto" is CUDA where there is one, else Apple's MPS, else the CPU."""
    _require.text(name, "device")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    kind, _, number = name.partition(":")
    if kind == "cuda" and (not number or number.isdecimal()):
        index = int(number or os.environ.get("LOCAL_RANK", "0"))  # under torchrun each process has a GPU of its own
        if index >= torch.cuda.device_count():
            raise ValueError(
                f"This PyTorch sees {torch.cuda.device_count()} CUDA devices, so {name!r} cannot be used: take "
                "device='cpu', or install a PyTorch built for CUDA."
            )
        return torch.device("cuda", index)
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ValueError("This PyTorch sees no Apple GPU (MPS): take device='cpu'.")
    if name not in ("cpu", "mps"):
        raise ValueError(f"There is no device {name!r}: take 'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'.")
    return torch.device(kind)


def placed(network: DeepSR, device: torch.device, precision: str) -> DeepSR:
    """On the device, and for bf16 with channels last, which convolutions in bfloat16 want; the weights stay float32."""
    network = network.to(device)
    if precision == "bf16":
        for weights in network.parameters():
            if weights.dim() == 4:
                weights.data = weights.data.contiguous(memory_format=torch.channels_last)
    return network


def faster_precision(n_actions: int, sizes: Any, batch: int, rounds: int = 3) -> str:
    """ "bf16" where an update on this CPU is PAYS times as fast with it, else "fp32": timed in turns, best times count."""
    updates, best = {}, {"fp32": float("inf"), "bf16": float("inf")}
    for precision in best:
        network, target = (placed(DeepSR(n_actions, sizes), torch.device("cpu"), precision) for _ in range(2))
        objective = Objective(network, target.requires_grad_(False), 0.9)
        updates[precision] = Learner(objective, network, target, precision=precision).update
    noise = torch.randint(256, (2, batch, SIDE, SIDE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    transitions = noise[0], torch.arange(batch) % n_actions, noise[1], torch.ones(batch)
    for number in range(rounds + 1):
        taken = {}
        for precision, update in updates.items():
            before = time.perf_counter()
            update(*transitions)
            taken[precision] = time.perf_counter() - before
        if taken["bf16"] > 2 * taken["fp32"]:  # a processor that only imitates bfloat16: do not wait for more of it
            return "fp32"
        if number:  # the first turn warms up
            best = {precision: min(best[precision], taken[precision]) for precision in best}
    return "bf16" if best["fp32"] >= PAYS * best["bf16"] else "fp32"


class Compiled(nn.Module):
    """torch.compile of a module, or, with a warning, the module itself where compiling fails."""

    def __init__(self, module: nn.Module, mode: str | None = None):
        super().__init__()
        self.module, self.mode = module, mode
        self._program: list = []  # a list, so that the compiled module is not registered a second time

    def forward(self, *batch):
        if self._program:
            return self._program[0](*batch)
        try:
            program = torch.compile(self.module, mode=self.mode)
            result = program(*batch)
        except Exception as error:
            warnings.warn(f"torch.compile failed, so training goes on without it: {error}", stacklevel=2)
            program, result = self.module, self.module(*batch)
        self._program.append(program)
        return result


@contextlib.contextmanager
def kept_memory() -> Iterator[None]:
    """Let the process keep memory that it frees, while training.

    Every update asks for the same large blocks again. glibc would hand them back to the system in between and take them
    anew, page by page: a tenth to a seventh of the time of an update. Elsewhere than on Linux with glibc nothing happens.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    trim_threshold, mmap_threshold = -1, -3  # as <malloc.h> numbers them
    if libc is None or not hasattr(libc, "mallopt") or not hasattr(libc, "malloc_trim"):
        yield
        return
    libc.mallopt(mmap_threshold, 2**25)  # the largest that glibc takes
    libc.mallopt(trim_threshold, 2**31 - 1)
    try:
        yield
    finally:
        libc.mallopt(mmap_threshold, 2**17)  # glibc's own
        libc.mallopt(trim_threshold, 2**17)
        libc.malloc_trim(0)


@contextlib.contextmanager
def threads(count: int | None = None) -> Iterator[None]:
    """PyTorch with this many threads on the CPU, None for one a core; with as many as before afterwards."""
    count = None if count is None else _require.whole(count, "threads", 1, 1024)
    before = torch.get_num_threads()
    torch.set_num_threads(count or cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)


def free_cores() -> int:
    """Cores that no other program keeps busy, at least one: threads that wait for a core wait for one another."""
    return max(1, cores() - round(psutil.getloadavg()[0]))


def cores() -> int:
    """Physical cores that this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, psutil.cpu_count(logical=False) or usable))


@contextlib.contextmanager
def processes(device: torch.device) -> Iterator[tuple[int, int]]:
    """(rank, number of processes) as torchrun set them; (0, 1) without it."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield 0, 1
        return
    own = not distributed.is_initialized()
    if own:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield distributed.get_rank(), world
    finally:
        if own:
            distributed.destroy_process_group()
