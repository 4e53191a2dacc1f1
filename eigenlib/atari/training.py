"""Training DeepSR on transitions of the random policy, so that it can be stopped (§4.2 of the paper; notebooks 08, 09).

Shuffled passes over the data with both losses (learning.py); then, if asked, φ is frozen, computed once for all frames,
and the SR estimator alone goes on (`refine_passes`). As its gradient never reached φ anyway, that is evaluation of a fixed
policy on fixed features, and costs a small part of a joint pass.

Everything random is a function of the seed and of the number of the pass, so a run that was killed and started again ends
with the same weights, bit for bit on a CPU with as many threads, as one that was not.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed, nn
from tqdm.auto import tqdm

from eigenlib import _require
from eigenlib.atari import checkpoints, machine, metrics
from eigenlib.atari.learning import (
    FeatureBatches,
    FrameBatches,
    Learner,
    Objective,
    Refinement,
    choose_trained,
    image_statistics,
)
from eigenlib.atari.machine import choose_device
from eigenlib.atari.network import DeepSR, require_sizes
from eigenlib.atari.runs import (
    Config,
    Run,
    columns_of,
    config_of,
    export_weights,
    load_network,
    load_run,
    network_of,
    part_of,
    update_of,
)
from eigenlib.reference import alone_in

__all__ = ["Config", "Run", "choose_device", "export_weights", "load_network", "load_run", "train"]

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")  # of torch.compile
EXPLOSION = 1e3  # times the median of the last entries of the history: no loss of a run that goes well comes near it


def train(
    dataset,
    config: Config,
    folder: Path | str,
    *,
    device: str = "auto",
    progress: bool = True,
    threads: int | None = None,
    compile: str | bool = "auto",
    checkpoint_seconds: float = 120.0,
) -> Run:
    """Train, or go on training what `folder` holds (Fig. 2, §4.2; notebook 09).

    dataset: frames (R, 84, 84) uint8, actions (R,), ends (R,), n_actions, transitions (N,): see eigenlib.atari.dataset.
    folder: keeps the checkpoint. A finished run is returned as it is; one of other settings or data is refused.
    threads: of PyTorch on a CPU, for the time of the call; None is one for each core.
    compile: whether torch.compile makes one program of the losses, or in which of its modes, such as "reduce-overhead";
        "auto" does so on CUDA only.
    checkpoint_seconds: how often to write a checkpoint, after the next whole entry of the history.
    Started by torchrun, each process takes its share of every batch, and the first one writes.
    """
    metrics.require_dataset(dataset)
    _require.instance(config, "config", Config)
    folder, progress = _require.path(folder, "folder"), _require.flag(progress, "progress")
    if folder.is_file():
        raise ValueError(f"{folder} is a file, so no run can be kept there: choose another folder.")
    compile = compile if isinstance(compile, bool) else _require.choice(compile, "compile", ("auto", *MODES))
    checkpoint_seconds = _require.real(checkpoint_seconds, "checkpoint_seconds", 0)
    place = choose_device(device)
    with (
        machine.threads(threads),
        machine.kept_memory(),
        machine.processes(place) as (rank, world),
        alone_in(Path(folder)) if rank == 0 else nullcontext(),
    ):
        return _Trainer(dataset, config, Path(folder), place, rank, world, compile).run(progress, checkpoint_seconds)


class _Trainer:
    """The loop: which rows when, what is written when, and how to go on after a stop."""

    def __init__(self, dataset, config: Config, folder: Path, device: torch.device, rank: int, world: int, compile):
        self.dataset, self.config, self.folder = dataset, config, folder
        self.device, self.rank, self.world = device, rank, world
        self.compile = device.type == "cuda" if compile == "auto" else compile
        self.rows = np.asarray(dataset.transitions)
        if config.batch > len(self.rows):
            raise ValueError(f"The dataset has {len(self.rows)} transitions, fewer than one batch of {config.batch}.")
        for name in ("batch", "refine_batch"):
            if getattr(config, name) % world:
                raise ValueError(f"{name} = {getattr(config, name)} cannot be shared equally by {world} processes.")
        self.refine_batch = min(config.refine_batch, len(self.rows) // world * world)
        self.joint = config.passes * (len(self.rows) // config.batch)
        self.total = self.joint + config.refine_passes * (len(self.rows) // self.refine_batch)
        self.update, self.seconds = 0, 0.0
        self.history: list[list[float | None]] = []
        self.fingerprint = fingerprint(dataset)

    def run(self, progress: bool, checkpoint_seconds: float) -> Run:
        saved, about = self._resume()
        if saved is None:
            mean, scale = image_statistics(self.dataset.frames, self.config.normalisation, self.config.floor)
            network = DeepSR(self.dataset.n_actions, self.config.sizes, mean, scale, seed=self.config.seed)
        else:
            network = network_of(about, part_of(saved, "network."), self.folder)
        network = machine.placed(network, self.device)
        if saved is None:
            self._write({f"network.{name}": tensor for name, tensor in network.state_dict().items()})
        hidden = not progress or self.rank > 0
        with tqdm(total=self.total, initial=self.update, disable=hidden, desc="DeepSR", unit=" updates") as bar:
            for refine in (False, True):
                if self.update < (self.total if refine else self.joint):
                    saved = self._phase(network, saved, refine, bar, checkpoint_seconds)
        network.requires_grad_(True)
        return Run(network.eval(), self.config, columns_of(self.history), True, self._about())

    def _phase(self, network: DeepSR, saved, refine: bool, bar, checkpoint_seconds: float) -> dict[str, torch.Tensor]:
        """All updates with both losses, or all that refine ψ, from and to all that the next update depends on."""
        config = self.config
        first, last = (self.joint, self.total) if refine else (0, self.joint)
        size = self.refine_batch if refine else config.batch
        period = config.refine_target_period if refine else config.target_period
        learner = self._learner(network, refine)
        if saved is not None:
            learner.restore(saved)
        batches: Callable[[np.ndarray], tuple[torch.Tensor, ...]] = (
            FeatureBatches(self.dataset, network, config.life_ends)
            if refine
            else FrameBatches(self.dataset, config.life_ends, self.device)
        )
        share = slice(self.rank * size // self.world, (self.rank + 1) * size // self.world)
        losses, shuffled, per_pass = [], -1, len(self.rows) // size
        before, written = time.perf_counter() - self.seconds, time.perf_counter()
        while self.update < last:
            number, k = divmod(self.update - first, per_pass)
            if number != shuffled:
                order = np.random.default_rng([config.seed, refine, number]).permutation(self.rows)
                shuffled = number
            if (self.update - first) % period == 0:
                learner.renew_target()
            if refine:
                learner.set_step_size(config.refine_step_size * (1 - (self.update - first) / (last - first)))
            losses.append(learner.update(*batches(order[k * size : (k + 1) * size][share])))
            self.update += 1
            bar.update()
            if (self.update - first) % config.log_every == 0 or self.update == last:
                self.seconds = time.perf_counter() - before
                self._log(torch.stack(losses), refine, bar)
                losses = []
                if self.update == last or time.perf_counter() - written >= checkpoint_seconds:
                    self._write(learner.tensors())
                    written = time.perf_counter()
        return learner.tensors()

    def _learner(self, network: DeepSR, refine: bool) -> Learner:
        config = self.config
        choose_trained(network, config.losses, config.stop_gradient, refine)
        target = machine.placed(DeepSR(network.n_actions, network.sizes, network.mean, network.scale), self.device)
        target.requires_grad_(False)
        objective: nn.Module = (
            Refinement(network, target, config.gamma)
            if refine
            else Objective(network, target, config.gamma, config.losses, config.stop_gradient)
        )
        if self.compile:
            objective = machine.Compiled(objective, None if self.compile is True else str(self.compile))
        if self.world > 1:  # averages the gradients of all processes
            ids = [self.device.index] if self.device.type == "cuda" else None
            objective = nn.parallel.DistributedDataParallel(objective, device_ids=ids, forward_sync_buffers=False)
        return Learner(objective, network, target, config.step_size, config.decay, config.epsilon)

    def _log(self, losses: torch.Tensor, refine: bool, bar) -> None:
        """Enter the mean losses of the last updates, (K, 2), into the history; stop where they make no sense."""
        if self.world > 1:  # equal shares: the mean over processes is the mean over the batch
            distributed.all_reduce(losses)
            losses = losses / self.world
        values = losses.cpu().double().numpy()
        used = [not refine and self.config.losses != "sr", refine or self.config.losses != "reconstruction"]
        for column, name in enumerate(("L_RE", "L_SR")):
            recent = np.array([row[1 + column] for row in self.history[-20:]], dtype=float)  # None becomes NaN
            recent = recent[np.isfinite(recent)]
            limit = EXPLOSION * max(np.median(recent), 1e-6) if len(recent) >= 10 else np.inf
            strange = np.flatnonzero(~np.isfinite(values[:, column]))
            if strange.size or values[:, column].mean() > limit:
                worst = int(strange[0]) if strange.size else int(values[:, column].argmax())
                raise FloatingPointError(
                    f"{name} was {values[worst, column]:g} at update {self.update - len(values) + worst + 1}: training "
                    f"went astray and was stopped. {self.folder} keeps the last good checkpoint; try a smaller step_size."
                )
        means = [float(mean) if use else None for mean, use in zip(values.mean(axis=0), used, strict=True)]
        self.history.append([self.update, *means, round(self.seconds, 3)])
        shown = {name: f"{mean:.4f}" for name, mean in zip(("L_RE", "L_SR"), means, strict=True) if mean is not None}
        bar.set_postfix(shown, refresh=False)

    def _about(self) -> dict[str, Any]:
        sizes = list(require_sizes(self.config.sizes))
        world = {"n_actions": int(self.dataset.n_actions), "sizes": sizes, "dataset": self.fingerprint}
        state = {"update": self.update, "finished": self.update == self.total, "history": self.history}
        return {"format": 1, "torch": torch.__version__} | world | {"config": asdict(self.config)} | state

    def _write(self, tensors: dict[str, torch.Tensor]) -> None:
        if self.rank == 0:
            checkpoints.write(self.folder, f"checkpoint-{self.update:09d}", tensors, self._about())

    def _resume(self) -> tuple[dict[str, torch.Tensor] | None, dict[str, Any]]:
        """The checkpoint in the folder, if there is one and it belongs to this run."""
        saved: dict[str, torch.Tensor] | None = None
        about: dict[str, Any] = {}
        if (self.folder / checkpoints.DESCRIPTION).exists():
            saved, about = checkpoints.read(self.folder)
            theirs = config_of(about, self.folder)
            names = [f.name for f in fields(Config) if getattr(theirs, f.name) != getattr(self.config, f.name)]
            if names:
                differ = ", ".join(f"{n} {getattr(theirs, n)!r} there, {getattr(self.config, n)!r} here" for n in names)
                raise ValueError(f"{self.folder} holds a run with other settings ({differ}): choose another folder.")
            if about.get("dataset") != self.fingerprint or about.get("n_actions") != self.dataset.n_actions:
                raise ValueError(f"{self.folder} holds a run on another dataset: choose another folder.")
            self.update = update_of(about, self.folder, self.total)
            columns_of(about.get("history"))
            self.history = list(about["history"])
            self.seconds = float(self.history[-1][3] or 0.0) if self.history else 0.0
        if self.world > 1:
            distributed.barrier()  # nobody writes before everybody has read
        return saved, about


def fingerprint(dataset) -> str:
    """A checksum of all actions and ends and of up to 256 frames, evenly spaced: cheap, and other data will differ."""
    digest = hashlib.sha256(repr((dataset.frames.shape, int(dataset.n_actions))).encode())
    digest.update(np.asarray(dataset.actions).astype(np.uint8).tobytes())
    digest.update(np.asarray(dataset.ends).astype(np.uint8).tobytes())
    for row in np.unique(np.linspace(0, len(dataset.frames) - 1, 256).astype(int)):
        digest.update(np.ascontiguousarray(dataset.frames[row]).tobytes())
    return digest.hexdigest()
