"""Training DeepSR on transitions of the random policy, so that it can be stopped (§4.2 of the paper; notebooks 08, 09).

Shuffled passes over the data with both losses (learning.py); then, if asked, φ is frozen, computed once for all frames,
and the SR estimator alone goes on (`refine_passes`). As its gradient never reached φ anyway, that is evaluation of a fixed
policy on fixed features, and costs a small part of a joint pass.

Everything random is a function of the seed and of the number of the pass, so a run that was killed and started again ends
with the same weights, bit for bit on a CPU with as many threads, as one that was not. What a measurement of the machine
decides, precision and threads, is decided when a run begins, is part of its description, and holds until its end.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import distributed, nn
from tqdm.auto import tqdm

from eigenlib import _require, storage
from eigenlib.atari import machine, metrics
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
from eigenlib.atari.network import SIDE, DeepSR, require_sizes
from eigenlib.atari.runs import (
    DESCRIPTION,
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

__all__ = ["Config", "Run", "choose_device", "export_weights", "load_network", "load_run", "train"]

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")  # of torch.compile
PRECISIONS = ("auto", "fp32", "bf16")
PAYS = 1.1  # times as fast: what bfloat16 must be before "auto" takes it
EXPLOSION = 1e3  # times the median of the last entries of the history: no loss of a run that goes well comes near it


def train(
    dataset,
    config: Config,
    folder: Path | str,
    *,
    device: str = "auto",
    progress: bool = True,
    threads: int | Literal["auto"] | None = None,
    precision: Literal["auto", "fp32", "bf16"] = "fp32",
    compile: str | bool = "auto",
    checkpoint_seconds: float = 120.0,
    until: int | None = None,
) -> Run:
    """Train, or go on training what `folder` holds (Fig. 2, §4.2; notebook 09).

    dataset: frames (R, 84, 84) uint8, actions (R,), ends (R,), n_actions, transitions (N,): see eigenlib.atari.dataset.
    folder: keeps the checkpoint. A finished run is returned as it is; one of other settings or data is refused.
    threads: of PyTorch on a CPU, for the time of the call; None is one for each core, "auto" one for each that is free.
    precision: "bf16" multiplies in bfloat16 and keeps weights in float32; "auto" takes it on CUDA, and on a CPU where a
        few updates in turns are PAYS times as fast with it. "auto", here and for threads, is decided once for each run.
    compile: whether torch.compile makes one program of the losses, or in which of its modes, such as "reduce-overhead";
        "auto" does so on CUDA only.
    checkpoint_seconds: how often to write a checkpoint, after the next whole entry of the history.
    until: stop before the end, with the first whole entry of the history by which the joint passes have seen so many
        samples; what is returned is then not finished, and another call goes on.
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
    _require.choice(precision, "precision", PRECISIONS)
    if until is not None:
        until = _require.whole(until, "until", 1)
    begun = _begun(folder)
    if isinstance(threads, str) and threads == "auto":
        threads = begun.get("threads") or machine.free_cores()
    with (
        machine.threads(threads),
        machine.kept_memory(),
        machine.processes(place) as (rank, world),
        storage.alone_in(Path(folder)) if rank == 0 else nullcontext(),
    ):
        trainer = _Trainer(dataset, config, Path(folder), place, rank, world, compile)
        trainer.choose_precision(precision, begun)
        return trainer.run(progress, checkpoint_seconds, until)


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
        self.precision, self.threads = "fp32", torch.get_num_threads()

    def choose_precision(self, wanted: str, begun: dict[str, Any]) -> None:
        """What the run was begun with; for a new one what is wanted, or what pays."""
        # runs of the first edition do not say: they were in bfloat16 on CUDA
        kept = begun.get("precision", "bf16" if self.device.type == "cuda" else "fp32") if begun else None
        if kept not in (None, "fp32", "bf16"):
            raise ValueError(
                f"{self.folder} holds a run in a precision that this version does not know: train it again."
            )
        if kept and wanted not in ("auto", kept):
            raise ValueError(f"{self.folder} holds a run in {kept}, not in {wanted}: choose another folder.")
        chosen = [kept or wanted]
        if chosen == ["auto"]:
            chosen = ["bf16" if self.device.type == "cuda" else "fp32"]
            if self.device.type == "cpu" and self.rank == 0:
                chosen = [faster_precision(self.dataset.n_actions, self.config.sizes, self.config.batch)]
            if self.world > 1:
                distributed.broadcast_object_list(chosen)
        self.precision = chosen[0]

    def run(self, progress: bool, checkpoint_seconds: float, until: int | None = None) -> Run:
        saved, about = self._resume()
        if saved is None:
            mean, scale = image_statistics(self.dataset.frames, self.config.normalisation, self.config.floor)
            network = DeepSR(self.dataset.n_actions, self.config.sizes, mean, scale, seed=self.config.seed)
        else:
            network = network_of(about, part_of(saved, "network."), self.folder)
        network = machine.placed(network, self.device, self.precision)
        if saved is None:
            self._write({f"network.{name}": tensor for name, tensor in network.state_dict().items()})
        hidden = not progress or self.rank > 0
        stop = self.total if until is None else min(self._whole_entry(until), self.total)
        with tqdm(total=stop, initial=self.update, disable=hidden, desc="DeepSR", unit=" updates") as bar:
            for refine in (False, True):
                if self.update < min(stop, self.total if refine else self.joint):
                    saved = self._phase(network, saved, refine, bar, checkpoint_seconds, stop)
        network.requires_grad_(True)
        return Run(network.eval(), self.config, columns_of(self.history), self.update == self.total, self._about())

    def _whole_entry(self, samples: int) -> int:
        """The update that ends the first entry of the history by which so many samples were seen, or the joint passes."""
        entry = self.config.log_every * self.config.batch
        stop = -(-samples // entry) * self.config.log_every
        return stop if stop < self.joint else self.joint if samples <= self.joint * self.config.batch else self.total

    def _phase(
        self, network: DeepSR, saved, refine: bool, bar, checkpoint_seconds: float, stop: int
    ) -> dict[str, torch.Tensor]:
        """Updates with both losses, or those that refine ψ, up to `stop`, from and to all that the next one depends on."""
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
        while self.update < min(last, stop):
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
                if self.update in (last, stop) or time.perf_counter() - written >= checkpoint_seconds:
                    self._write(learner.tensors())
                    written = time.perf_counter()
        return learner.tensors()

    def _learner(self, network: DeepSR, refine: bool) -> Learner:
        config = self.config
        choose_trained(network, config.losses, config.stop_gradient, refine)
        target = DeepSR(network.n_actions, network.sizes, network.mean, network.scale)
        target = machine.placed(target, self.device, self.precision)
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
        return Learner(objective, network, target, config.step_size, config.decay, config.epsilon, self.precision)

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
        ways = {"precision": self.precision, "threads": self.threads}
        return {"format": 1, "torch": torch.__version__} | ways | world | {"config": asdict(self.config)} | state

    def _write(self, tensors: dict[str, torch.Tensor]) -> None:
        if self.rank == 0:
            name = f"checkpoint-{self.update:09d}.safetensors"
            storage.save_tensors(self.folder / DESCRIPTION, tensors, self._about(), name)
            for old in (*self.folder.glob("checkpoint-*"), *self.folder.glob("*.part")):
                if old.name != name:
                    old.unlink(missing_ok=True)

    def _resume(self) -> tuple[dict[str, torch.Tensor] | None, dict[str, Any]]:
        """The checkpoint in the folder, if there is one and it belongs to this run."""
        saved: dict[str, torch.Tensor] | None = None
        about: dict[str, Any] = {}
        if (self.folder / f"{DESCRIPTION}.json").exists():
            saved, about = storage.load_tensors(self.folder / DESCRIPTION)
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


def faster_precision(n_actions: int, sizes: Any, batch: int, rounds: int = 3) -> str:
    """ "bf16" where an update on this CPU is PAYS times as fast with it, else "fp32": timed in turns, best times count."""
    updates, best = {}, {"fp32": np.inf, "bf16": np.inf}
    for precision in best:
        network, target = (machine.placed(DeepSR(n_actions, sizes), torch.device("cpu"), precision) for _ in range(2))
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


def _begun(folder: Path) -> dict[str, Any]:
    """The description of the run that a folder holds; empty without one."""
    there = (folder / f"{DESCRIPTION}.json").exists()
    return storage.tensors_description(folder / DESCRIPTION) if there else {}


def fingerprint(dataset) -> str:
    """A checksum of all actions and ends and of up to 256 frames, evenly spaced: cheap, and other data will differ."""
    digest = hashlib.sha256(repr((dataset.frames.shape, int(dataset.n_actions))).encode())
    digest.update(np.asarray(dataset.actions).astype(np.uint8).tobytes())
    digest.update(np.asarray(dataset.ends).astype(np.uint8).tobytes())
    for row in np.unique(np.linspace(0, len(dataset.frames) - 1, 256).astype(int)):
        digest.update(np.ascontiguousarray(dataset.frames[row]).tobytes())
    return digest.hexdigest()
