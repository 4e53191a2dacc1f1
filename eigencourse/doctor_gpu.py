"""Does the GPU learn what the CPU learns, and how fast? A minute's self-test (`eigenlib doctor --gpu`).

One small network is trained from one seed on the CPU in float32 and on the GPU in each precision, on drawn frames. The first
losses must agree, since little has been amplified yet, and so must the way that the weights have gone. Tolerances are a few
times what other kernels and bfloat16 change on a CPU (losses .2 % and 2 %, weights 7 % and 32 %); no GPU was at hand when they
were set. From another seed the weights are sixty times their way apart.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from eigencourse.doctor import Finding
from eigenlib.atari import device as devices
from eigenlib.atari.batches import FrameBatches
from eigenlib.atari.dataset import NO_ACTION, Dataset
from eigenlib.atari.learning import Learner, Objective
from eigenlib.atari.network import SIDE, DeepSR
from eigenlib.atari.pipeline import PRESETS
from eigenlib.atari.training import Config, train

UPDATES, BATCH = 20, 32
# precision → how far losses may be apart, as a share; and final weights, as a share of the way from the first ones
TOLERANCES = {"fp32": (0.01, 0.25), "bf16": (0.05, 0.8)}


class Learned(NamedTuple):
    """losses: (UPDATES,) L_RE of each update; weights: all of them in one row, in the end."""

    losses: np.ndarray
    weights: np.ndarray


def examine_gpu(device: str = "auto") -> Iterator[Finding]:
    """Findings about one device; "auto" is the one that training would take."""
    chosen = devices.choose_device(device)
    if device == "auto" and chosen.type == "cpu":
        yield Finding(
            "ok", "gpu", "none that this PyTorch can use, so nothing was tested; every lesson runs on the CPU"
        )
        return
    data = drawn_frames()
    with devices.threads():
        truth = learned(data, "cpu", "fp32")
    for precision in TOLERANCES:
        yield compared(truth, learned(data, str(chosen), precision), precision, chosen.type)
    yield _speed(data, chosen)


def compared(truth: Learned, found: Learned, precision: str, name: str) -> Finding:
    """Losses and weights of a device against those of the CPU in float32."""
    loss_limit, way_limit = TOLERANCES[precision]
    losses = np.abs(found.losses / truth.losses - 1).max()
    first = _weights(DeepSR(2, "small"))
    way = np.linalg.norm(found.weights - truth.weights) / np.linalg.norm(truth.weights - first)
    what = f"{name} against the CPU in fp32: losses within {losses:.1%} (allowed {loss_limit:.0%}), "
    what += f"weights {way:.0%} of their way apart (allowed {way_limit:.0%})"
    good = losses <= loss_limit and way <= way_limit  # NaN is not
    advice = "" if good else "Update the GPU's driver and PyTorch; until then train with --device cpu."
    return Finding("ok" if good else "error", f"gpu {precision}", what, advice)


def learned(data: Dataset, device: str, precision: str) -> Learned:
    """One pass of `train` on a device, without compiling."""
    config = Config("small", passes=1, batch=BATCH, log_every=1, target_period=20)
    with tempfile.TemporaryDirectory() as folder:
        ways = {"precision": precision, "compile": False, "progress": False}
        run = train(data, config, Path(folder) / "run", device=device, threads=None, **ways)  # type: ignore[arg-type]
    return Learned(run.history["reconstruction"], _weights(run.network))


def drawn_frames() -> Dataset:
    """A block that two actions push left and right over a grained floor: enough transitions for UPDATES."""
    rng, rows = np.random.default_rng(0), UPDATES * BATCH + 1
    actions = rng.integers(0, 2, rows).astype(np.uint8)
    places = 36 + np.cumsum(np.concatenate([[0], 4 * (2 * actions[:-1].astype(int) - 1)]))
    frames = np.repeat(rng.integers(0, 60, (1, SIDE, SIDE), dtype=np.uint8), rows, axis=0)
    for frame, place in zip(frames, places % (SIDE - 12), strict=True):
        frame[36:48, place : place + 12] = 220
    actions[-1] = NO_ACTION
    return Dataset.from_arrays(frames, actions, np.zeros(rows, np.uint8), 2)


def _speed(data: Dataset, place: torch.device, seconds: float = 10.0) -> Finding:
    """Samples a second of the paper's network in the precision that training would take, and what its preset then needs."""
    preset, precision = PRESETS["paper"], "bf16" if place.type == "cuda" else "fp32"
    network, target = (devices.placed(DeepSR(2, preset.config.sizes), place, precision) for _ in range(2))
    learner = Learner(Objective(network, target.requires_grad_(False), 0.99), network, target, precision=precision)
    batch = FrameBatches(data, True, place)(np.arange(preset.config.batch))
    learner.update(*batch).sum().item()  # the first one sets up
    done, before = 0, time.perf_counter()
    while time.perf_counter() - before < seconds:
        learner.update(*batch).sum().item()  # asking for the loss waits for the device
        done += preset.config.batch
    rate = done / (time.perf_counter() - before)
    hours = preset.samples * preset.config.passes / rate / 3600
    return Finding(
        "ok", "gpu speed", f"{rate:,.0f} samples a second in {precision}: --preset paper takes {hours:.1f} h"
    )


def _weights(network: DeepSR) -> np.ndarray:
    return torch.cat([w.detach().float().cpu().contiguous().flatten() for w in network.parameters()]).double().numpy()
