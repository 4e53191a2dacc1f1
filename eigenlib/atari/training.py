"""Training DeepSR on transitions of the random policy, so that it can be stopped (§4.2 of the paper; notebooks 08, 09).

Shuffled passes over the data with both losses (learning.py); then, if asked, φ is frozen, computed once for all frames,
and the SR estimator alone goes on (`refine_passes`). As its gradient never reached φ anyway, that is evaluation of a fixed
policy on fixed features, and costs a small part of a joint pass.

Everything random is a function of the seed and of the number of the pass, so a run that was killed and started again ends
with the same weights, bit for bit on a CPU with as many threads, as one that was not. What a measurement of the machine
decides, precision and threads, is decided when a run begins, is part of its description, and holds until its end.

A run's folder holds run.json, its description with the losses so far, and the tensors that run.json names.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import distributed, nn
from tqdm.auto import tqdm

from eigenlib import _require, storage
from eigenlib.atari import device as devices
from eigenlib.atari.batches import FeatureBatches, FrameBatches, image_statistics
from eigenlib.atari.dataset import require_dataset
from eigenlib.atari.learning import LOSSES, Learner, Objective, Refinement, choose_trained
from eigenlib.atari.network import DeepSR, Sizes, require_sizes

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")  # of torch.compile
PRECISIONS = ("auto", "fp32", "bf16")
EXPLOSION = 1e3  # times the median of the last entries of the history: no loss of a run that goes well comes near it


@dataclass(frozen=True)
class Config:
    """What is learned. What only changes the speed (device, threads) is said to `train` instead.

    sizes: "paper", "standard", "small", or Sizes(channels, features, factors).
    passes, refine_passes: shuffled passes over the data for both losses, then for ψ alone on frozen φ.
    step_size, decay, epsilon: of RMSProp. While refining, the step size falls linearly from refine_step_size to 0.
    target_period, refine_target_period: updates between two copies into the target network.
    normalisation: the network sees x/255 ("raw"), less the mean image ("mean"), and divided by each pixel's standard
        deviation, but at least `floor` ("deviation").
    life_ends: nothing follows the loss of a life, as nothing follows the end of an episode.
    losses: "both", or one alone; stop_gradient=False lets L_SR shape φ. To see why the paper does neither.
    log_every: updates in one entry of the history; checkpoints are written after whole entries.
    """

    sizes: str | Sizes = "small"
    gamma: float = 0.99
    passes: int = 10
    batch: int = 32
    step_size: float = 1e-4
    decay: float = 0.99
    epsilon: float = 1e-8
    target_period: int = 500
    normalisation: Literal["raw", "mean", "deviation"] = "deviation"
    floor: float = 0.02
    seed: int = 0
    refine_passes: int = 0
    refine_batch: int = 512
    refine_step_size: float = 1e-3
    refine_target_period: int = 20
    life_ends: bool = True
    losses: Literal["both", "sr", "reconstruction"] = "both"
    stop_gradient: bool = True
    log_every: int = 100

    def __post_init__(self) -> None:
        sizes = require_sizes(self.sizes)
        if not isinstance(self.sizes, str):
            object.__setattr__(self, "sizes", sizes)
        _require.discount(self.gamma)
        _require.real(self.decay, "decay", 0, 1, "[)")
        for name in ("life_ends", "stop_gradient"):
            _require.flag(getattr(self, name), name)
        for name in ("batch", "target_period", "refine_batch", "refine_target_period", "log_every"):
            _require.whole(getattr(self, name), name, 1)
        for name in ("passes", "refine_passes", "seed"):
            _require.whole(getattr(self, name), name, 0)
        for name in ("step_size", "refine_step_size", "epsilon", "floor"):
            _require.real(getattr(self, name), name, 0, ends="(]")
        _require.choice(self.normalisation, "normalisation", ("raw", "mean", "deviation"))
        _require.choice(self.losses, "losses", LOSSES)


@dataclass(frozen=True)
class Run:
    """A network and how it came about.

    history: arrays of one length: "update" (the last one that an entry averages over), "reconstruction" and "successor"
        (the losses; NaN for one that was not computed), "seconds" of training until then.
    finished: False for what a run that was stopped has left.
    """

    network: DeepSR
    config: Config
    history: dict[str, np.ndarray]
    finished: bool
    about: dict[str, Any]


def load_run(folder: Path | str, device: str = "cpu") -> Run:
    """What a folder holds, finished or not."""
    place, folder = devices.choose_device(device), _require.path(folder, "folder")
    tensors, about = storage.load_tensors(folder / "run")
    network = _network_of(about, _part_of(tensors, "network."), folder).to(place)
    return Run(network, _config_of(about, folder), _history_of(about, folder), about.get("finished") is True, about)


def export_weights(run: Run, path: Path | str) -> None:
    """path.safetensors, the network alone in float16, and path.json, what it is and how it was trained."""
    path = _require.path(path, "path")
    about = {name: value for name, value in _require.instance(run, "run", Run).about.items() if name != "file"}
    storage.save_tensors(path, exported(run.network), about)


def exported(network: DeepSR) -> dict[str, torch.Tensor]:
    """The tensors that `export_weights` stores: weights in float16, the images of the normalisation as they are."""
    images = ("mean", "scale")
    return {name: tensor if name in images else tensor.half() for name, tensor in network.state_dict().items()}


def load_network(path: Path | str, device: str = "cpu") -> DeepSR:
    """The network that `export_weights` wrote, in float32, after checking checksum, names and shapes."""
    place, path = devices.choose_device(device), _require.path(path, "path")
    tensors, about = storage.load_tensors(path)
    return _network_of(about, tensors, path).to(place)


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
        few updates in turns are device.PAYS times as fast with it. "auto", here and for threads, is decided once for each run.
    compile: whether torch.compile makes one program of the losses, or in which of its modes, such as "reduce-overhead";
        "auto" does so on CUDA only.
    checkpoint_seconds: how often to write a checkpoint, after the next whole entry of the history.
    until: stop before the end, with the first whole entry of the history by which the joint passes have seen so many
        samples; what is returned is then not finished, and another call goes on.
    Started by torchrun, each process takes its share of every batch, and the first one writes.
    """
    require_dataset(dataset)
    _require.instance(config, "config", Config)
    folder, progress = _require.path(folder, "folder"), _require.flag(progress, "progress")
    if folder.is_file():
        raise ValueError(f"{folder} is a file, so no run can be kept there: choose another folder.")
    compile = compile if isinstance(compile, bool) else _require.choice(compile, "compile", ("auto", *MODES))
    checkpoint_seconds = _require.real(checkpoint_seconds, "checkpoint_seconds", 0)
    place = devices.choose_device(device)
    _require.choice(precision, "precision", PRECISIONS)
    if until is not None:
        until = _require.whole(until, "until", 1)
    begun = storage.tensors_description(folder / "run") if (folder / "run.json").exists() else {}
    if isinstance(threads, str) and threads == "auto":
        threads = begun.get("threads") or devices.free_cores()
    with (
        devices.threads(threads),
        devices.kept_memory(),
        devices.processes(place) as (rank, world),
        storage.alone_in(folder) if rank == 0 else nullcontext(),
    ):
        trainer = _Trainer(dataset, config, folder, place, rank, world, compile)
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
                chosen = [devices.faster_precision(self.dataset.n_actions, self.config.sizes, self.config.batch)]
            if self.world > 1:
                distributed.broadcast_object_list(chosen)
        self.precision = chosen[0]

    def run(self, progress: bool, checkpoint_seconds: float, until: int | None = None) -> Run:
        saved, about = self._resume()
        if saved is None:
            mean, scale = image_statistics(self.dataset.frames, self.config.normalisation, self.config.floor)
            network = DeepSR(self.dataset.n_actions, self.config.sizes, mean, scale, seed=self.config.seed)
        else:
            network = _network_of(about, _part_of(saved, "network."), self.folder)
        network = devices.placed(network, self.device, self.precision)
        if saved is None:
            self._write({f"network.{name}": tensor for name, tensor in network.state_dict().items()})
        hidden = not progress or self.rank > 0
        stop = self.total if until is None else min(self._whole_entry(until), self.total)
        with tqdm(total=stop, initial=self.update, disable=hidden, desc="DeepSR", unit=" updates") as bar:
            for refine in (False, True):
                if self.update < min(stop, self.total if refine else self.joint):
                    saved = self._phase(network, saved, refine, bar, checkpoint_seconds, stop)
        network.requires_grad_(True)
        return Run(network.eval(), self.config, _columns(self.history), self.update == self.total, self._about())

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
        target = devices.placed(target, self.device, self.precision)
        target.requires_grad_(False)
        objective: nn.Module = (
            Refinement(network, target, config.gamma)
            if refine
            else Objective(network, target, config.gamma, config.losses, config.stop_gradient)
        )
        if self.compile:
            objective = devices.Compiled(objective, None if self.compile is True else str(self.compile))
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
            storage.save_tensors(self.folder / "run", tensors, self._about(), name)
            self._keep_only(name)

    def _keep_only(self, name: str) -> None:
        for old in (*self.folder.glob("checkpoint-*"), *self.folder.glob("*.part")):
            if old.name != name:
                old.unlink(missing_ok=True)

    def _resume(self) -> tuple[dict[str, torch.Tensor] | None, dict[str, Any]]:
        """The checkpoint in the folder, if there is one and it belongs to this run."""
        saved: dict[str, torch.Tensor] | None = None
        about: dict[str, Any] = {}
        if (self.folder / "run.json").exists():
            saved, about = storage.load_tensors(self.folder / "run")
            theirs = _config_of(about, self.folder)
            names = [f.name for f in fields(Config) if getattr(theirs, f.name) != getattr(self.config, f.name)]
            if names:
                differ = ", ".join(f"{n} {getattr(theirs, n)!r} there, {getattr(self.config, n)!r} here" for n in names)
                raise ValueError(f"{self.folder} holds a run with other settings ({differ}): choose another folder.")
            if about.get("dataset") != self.fingerprint or about.get("n_actions") != self.dataset.n_actions:
                raise ValueError(f"{self.folder} holds a run on another dataset: choose another folder.")
            _history_of(about, self.folder, self.total)
            self.update, self.history = about["update"], list(about["history"])
            self.seconds = float(self.history[-1][3] or 0.0) if self.history else 0.0
            if self.rank == 0:  # a kill may have come between a new checkpoint and the end of the old one
                self._keep_only(about.get("file", ""))
        if self.world > 1:
            distributed.barrier()  # nobody writes before everybody has read
        return saved, about


def _network_of(about: dict[str, Any], tensors: dict[str, torch.Tensor], where: Path) -> DeepSR:
    """The network that a description promises, if the tensors are its tensors."""
    try:
        with torch.device("meta"):
            network = DeepSR(about["n_actions"], require_sizes(Sizes(*about["sizes"])))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{where} does not describe a network of this kind ({error}): fetch or train it again."
        ) from None
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if found != expected:
        name = next(n for n in (*expected, *found) if found.get(n) != expected.get(n))
        raise ValueError(
            f"{where} is not the network that it is described as: {name} has shape {found.get(name)} instead of "
            f"{expected.get(name)}. Fetch or train it again."
        )
    network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
    return network.requires_grad_(True)


def _config_of(about: dict[str, Any], where: Path) -> Config:
    try:
        return Config(**about["config"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{where} holds settings that this version does not know ({error}): train it again.") from None


def _history_of(about: dict[str, Any], where: Path, most: int = _require.LARGEST) -> dict[str, np.ndarray]:
    """The losses so far, if so many updates can have been made: a checkpoint is written after a whole entry of them."""
    try:
        columns = _columns(about.get("history"))
        update = _require.whole(about.get("update"), "update", 0, most)
        if update != columns["update"].max(initial=0):
            raise ValueError(f"update is {update}, but its history ends at {columns['update'].max(initial=0)}.")
    except ValueError as error:
        raise ValueError(f"{where} cannot be taken up ({str(error).removesuffix('.')}): train it again.") from None
    return columns


def _columns(history: Any) -> dict[str, np.ndarray]:
    try:
        table = np.array(history, dtype=float).reshape(-1, 4)  # None becomes NaN
        updates = _require.numbers(table[:, 0], "update", ("N",), empty=True).astype(int)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("The history of this run is no table of four columns: fetch or train it again.") from None
    return {"update": updates, "reconstruction": table[:, 1], "successor": table[:, 2], "seconds": table[:, 3]}


def _part_of(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def fingerprint(dataset) -> str:
    """A checksum of all actions and ends and of up to 256 frames, evenly spaced: cheap, and other data will differ."""
    digest = hashlib.sha256(repr((dataset.frames.shape, int(dataset.n_actions))).encode())
    digest.update(np.asarray(dataset.actions).astype(np.uint8).tobytes())
    digest.update(np.asarray(dataset.ends).astype(np.uint8).tobytes())
    for row in np.unique(np.linspace(0, len(dataset.frames) - 1, 256).astype(int)):
        digest.update(np.ascontiguousarray(dataset.frames[row]).tobytes())
    return digest.hexdigest()
