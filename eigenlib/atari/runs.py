"""What a training run is: its settings, its result, and both read back from disk (notebooks 08 and 09)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from eigenlib import _require, storage
from eigenlib.atari.machine import choose_device
from eigenlib.atari.network import DeepSR, Sizes, require_sizes

DESCRIPTION = "run"  # .json, in the folder of a run


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
        if not isinstance(self.sizes, str):
            object.__setattr__(self, "sizes", require_sizes(self.sizes))
        require_sizes(self.sizes)
        _require.discount(self.gamma)
        _require.real(self.decay, "decay", 0, 1, "[)")
        for name in ("life_ends", "stop_gradient"):
            _require.flag(getattr(self, name), name)
        for name in ("batch", "target_period", "refine_batch", "refine_target_period", "log_every"):
            require_count(getattr(self, name), name, 1)
        for name in ("passes", "refine_passes", "seed"):
            require_count(getattr(self, name), name, 0)
        for name in ("step_size", "refine_step_size", "epsilon", "floor"):
            _require.real(getattr(self, name), name, 0, ends="(]")
        choices = {"normalisation": ("raw", "mean", "deviation"), "losses": ("both", "sr", "reconstruction")}
        for name, allowed in choices.items():
            _require.choice(getattr(self, name), name, allowed)


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
    place, folder = choose_device(device), _require.path(folder, "folder")
    tensors, about = storage.load_tensors(folder / DESCRIPTION)
    update_of(about, folder)
    network = network_of(about, part_of(tensors, "network."), folder).to(place)
    return Run(
        network, config_of(about, folder), columns_of(about.get("history")), about.get("finished") is True, about
    )


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
    place, path = choose_device(device), _require.path(path, "path")
    tensors, about = storage.load_tensors(path)
    return network_of(about, tensors, path).to(place)


def network_of(about: dict[str, Any], tensors: dict[str, torch.Tensor], where) -> DeepSR:
    """The network that a description promises, if the tensors are its tensors."""
    try:
        sizes, n_actions = require_sizes(Sizes(*about["sizes"])), require_count(about["n_actions"], "n_actions", 1)
        with torch.device("meta"):
            network = DeepSR(n_actions, sizes)
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
    network.requires_grad_(True)
    return network


def config_of(about: dict[str, Any], where) -> Config:
    try:
        return Config(**about["config"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{where} holds settings that this version does not know ({error}): train it again.") from None


def update_of(about: dict[str, Any], where, most: int = _require.LARGEST) -> int:
    """How many updates were made, if that can be."""
    try:
        return _require.whole(about.get("update"), "update", 0, most)
    except ValueError as error:
        raise ValueError(f"{where} cannot be taken up ({str(error).removesuffix('.')}): train it again.") from None


def part_of(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def columns_of(history: Any) -> dict[str, np.ndarray]:
    try:
        table = np.array(history, dtype=float).reshape(-1, 4)  # None becomes NaN
    except (TypeError, ValueError):
        raise ValueError("The history of this run is no table of four columns: fetch or train it again.") from None
    names = ("update", "reconstruction", "successor", "seconds")
    return {name: table[:, k].astype(int) if name == "update" else table[:, k] for k, name in enumerate(names)}


def require_count(number: Any, name: str, least: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not least <= number <= _require.LARGEST:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {_require.shown(number)}.")
    return int(number)
