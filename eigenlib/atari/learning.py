"""One step of learning: the two losses, RMSProp, the target network, and where batches come from (§3.3; notebook 08).

    L = L_RE + L_SR          L_RE = (ζ(φ(s), a) − s′)²          L_SR = (φ(s) + γ ψ⁻(φ⁻(s′)) − ψ(φ(s)))²

averaged over the batch and over pixels or features. φ⁻ and ψ⁻ are the target network, an older copy. As L_SR does not
reach φ, the two losses move disjoint sets of weights, and RMSProp divides each weight's gradient by its own running size:
how the losses are weighted against each other, or whether they are summed or averaged, hardly matters.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn

from eigenlib import _require
from eigenlib.atari.dataset import EPISODE_ENDED, LIFE_LOST, require_dataset
from eigenlib.atari.network import DeepSR
from eigenlib.atari.pixels import SIDE, require_frames

LOSSES = ("both", "sr", "reconstruction")


def successor_loss(phi, psi, future, bootstrap, gamma: float) -> torch.Tensor:
    """(φ(s) + γ ψ⁻(φ⁻(s′)) − ψ(φ(s)))², averaged; bootstrap is 0 where nothing follows, so that ψ⁻ counts 0 there.

    phi, psi, future: (B, F), of s, s and s′; bootstrap: (B,) of 0 and 1.
    """
    return (phi.float() + gamma * bootstrap[:, None] * future.float() - psi.float()).square().mean()


class Objective(nn.Module):
    """Both losses of a batch, (2,): L_RE, L_SR. A module, so that torch can compile or distribute it whole.

    losses: "both", or "reconstruction" or "sr" alone.
    stop_gradient=False lets L_SR reach φ, in both places where φ(s) stands. It then shrinks φ to 0, where L_SR is 0 too,
    unless L_RE holds against it. (With the wall before ψ removed alone, and the first φ(s) still a constant, nothing sets
    the scale of φ: each target is larger than what it was made from, and φ grows without limit instead.)
    """

    def __init__(self, network: DeepSR, target: DeepSR, gamma: float, losses: str = "both", stop_gradient: bool = True):
        super().__init__()
        self.network = _require.instance(network, "network", DeepSR)
        self.target, self.gamma = _require.instance(target, "target", DeepSR), _require.discount(gamma)
        self.losses = _require.choice(losses, "losses", LOSSES)
        self.stop_gradient = _require.flag(stop_gradient, "stop_gradient")

    def forward(self, frames, actions, next_frames, bootstrap):  # (B, 84, 84) uint8, (B,), (B, 84, 84) uint8, (B,)
        phi = self.network.phi(frames)
        reconstruction = successor = torch.zeros((), device=phi.device)
        if self.losses != "sr":
            predicted = self.network.predict(phi, actions).float()
            reconstruction = (predicted - self.network.normalise(next_frames)).square().mean()
        if self.losses != "reconstruction":
            with torch.no_grad():
                future = self.target.psi(self.target.phi(next_frames))
            psi = self.network.psi(phi, self.stop_gradient)
            successor = successor_loss(phi.detach() if self.stop_gradient else phi, psi, future, bootstrap, self.gamma)
        return torch.stack([reconstruction, successor])


class Refinement(nn.Module):
    """L_SR alone, on features that no longer change; returns (2,) as Objective does."""

    def __init__(self, network: DeepSR, target: DeepSR, gamma: float):
        super().__init__()
        self.network, self.target, self.gamma = network, target, gamma

    def forward(self, phi, next_phi, bootstrap):  # (B, F), (B, F), (B,)
        with torch.no_grad():
            future = self.target.psi(next_phi)
        loss = successor_loss(phi, self.network.psi(phi), future, bootstrap, self.gamma)
        return torch.stack([torch.zeros_like(loss), loss])


class Learner:
    """RMSProp on an objective: `update` is one step on one batch, `tensors` all that the next step depends on.

    objective: Objective or Refinement, possibly compiled or distributed; network and target: the two inside it.
    precision: "fp32", or "bf16" for products in bfloat16; weights, losses and RMSProp are float32 either way.
    """

    def __init__(
        self,
        objective: nn.Module,
        network: DeepSR,
        target: DeepSR,
        step_size: float = 1e-4,
        decay: float = 0.99,
        epsilon: float = 1e-8,
        precision: str = "fp32",
    ):
        self.objective, self.network, self.target = objective, network, target
        self.device, self.bfloat16 = network.mean.device.type, precision == "bf16"
        self.trained = {name: weights for name, weights in network.named_parameters() if weights.requires_grad}
        parameters = list(self.trained.values())
        self.optimiser = torch.optim.RMSprop(parameters, lr=step_size, alpha=decay, eps=epsilon, foreach=True)

    def update(self, *batch: torch.Tensor) -> torch.Tensor:
        """One step down L = L_RE + L_SR; returns the two losses before it, (2,)."""
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast(self.device, torch.bfloat16) if self.bfloat16 else nullcontext():
            losses = self.objective(*batch)
        losses.sum().backward()
        self.optimiser.step()
        return losses.detach().clone()

    def set_step_size(self, step_size: float) -> None:
        self.optimiser.param_groups[0]["lr"] = step_size

    @torch.no_grad()
    def renew_target(self) -> None:
        """φ⁻, ψ⁻ ← φ, ψ."""
        for old, new in zip(self.target.parameters(), self.network.parameters(), strict=True):
            old.copy_(new)

    def tensors(self) -> dict[str, torch.Tensor]:
        kept = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        kept |= {f"target.{name}": tensor for name, tensor in self.target.named_parameters() if in_target(name)}
        for name, weights in self.trained.items():
            kept[f"squares.{name}"] = self.optimiser.state[weights]["square_avg"]
        return kept

    @torch.no_grad()
    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Target and RMSProp's running squares, as far as there are any; the network has its weights already."""
        kept: dict[str, torch.Tensor] = {f"target.{name}": w for name, w in self.target.named_parameters()}
        for name, weights in self.trained.items():
            if f"squares.{name}" in tensors:
                kept[f"squares.{name}"] = torch.empty_like(weights)
                state = {"step": torch.tensor(0.0), "square_avg": kept[f"squares.{name}"]}
                self.optimiser.state[weights] = state
        for name in kept.keys() & tensors.keys():
            if tensors[name].shape != kept[name].shape:
                raise ValueError(f"The checkpoint's {name} is not of this network's shape: train it again.")
            kept[name].copy_(tensors[name])


def in_target(name: str) -> bool:
    """Whether this parameter belongs to φ⁻ or ψ⁻: the target never predicts frames."""
    return name.startswith(("conv", "features", "successor"))


def choose_trained(network: DeepSR, losses: str, stop_gradient: bool, refine: bool = False) -> None:
    """Mark which weights an objective moves (requires_grad)."""
    _require.instance(network, "network", DeepSR)
    _require.choice(losses, "losses", LOSSES)
    stop_gradient, refine = _require.flag(stop_gradient, "stop_gradient"), _require.flag(refine, "refine")
    for name, weights in network.named_parameters():
        if name.startswith("successor"):
            moves = refine or losses != "reconstruction"
        elif in_target(name):  # φ
            moves = not refine and (losses != "sr" or not stop_gradient)
        else:  # ζ
            moves = not refine and losses != "sr"
        weights.requires_grad_(moves)


def image_statistics(frames: np.ndarray, normalisation: str, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean image and scale, each (84, 84), in units of [0, 1]: from exact sums of whole numbers, chunk by chunk."""
    _require.choice(normalisation, "normalisation", ("raw", "mean", "deviation"))
    frames, floor = require_frames(frames), _require.real(floor, "floor", 0, ends="(]")
    if normalisation == "raw":
        return np.zeros((SIDE, SIDE)), np.ones((SIDE, SIDE))
    total, squares = np.zeros((SIDE, SIDE), np.int64), np.zeros((SIDE, SIDE), np.int64)
    for start in range(0, len(frames), 256):
        chunk = np.asarray(frames[start : start + 256]).astype(np.uint16)
        total += chunk.sum(axis=0, dtype=np.uint32)
        squares += np.square(chunk, out=chunk).sum(axis=0, dtype=np.uint32)
    mean = total / len(frames)
    if normalisation == "mean":
        return mean / 255, np.ones((SIDE, SIDE))
    deviation = np.sqrt(np.maximum(squares / len(frames) - mean**2, 0.0))
    return mean / 255, np.maximum(deviation / 255, floor)


class FrameBatches:
    """Batches of transitions on a device. On CUDA all frames live there if they fit; else each batch is sent."""

    def __init__(self, dataset, life_ends: bool, device: torch.device):
        require_dataset(dataset)
        _require.instance(device, "device", torch.device, "take device.choose_device(name)")
        life_ends = _require.flag(life_ends, "life_ends")
        self.device, self.frames = device, dataset.frames
        self.actions = torch.from_numpy(np.asarray(dataset.actions).astype(np.int64)).to(device)
        self.bootstrap = bootstraps(dataset.ends, life_ends).to(device)
        self.resident: torch.Tensor | None = None
        if device.type == "cuda" and dataset.frames.nbytes + 2**31 < torch.cuda.mem_get_info(device)[0]:
            self.resident = torch.empty(dataset.frames.shape, dtype=torch.uint8, device=device)
            for start in range(0, len(dataset.frames), 4096):
                part = torch.from_numpy(np.array(dataset.frames[start : start + 4096]))
                self.resident[start : start + 4096] = part.to(device)

    def __call__(self, rows: np.ndarray) -> tuple[torch.Tensor, ...]:
        """rows: (B,) → frames, actions, next frames, bootstrap."""
        where = torch.from_numpy(rows).to(self.device, non_blocking=True)
        if self.resident is not None:
            return self.resident[where], self.actions[where], self.resident[where + 1], self.bootstrap[where]
        frames, following = self._send(self.frames[rows]), self._send(self.frames[rows + 1])
        return frames, self.actions[where], following, self.bootstrap[where]

    def _send(self, frames: np.ndarray) -> torch.Tensor:
        batch = torch.from_numpy(np.ascontiguousarray(frames))
        batch = batch.pin_memory() if self.device.type == "cuda" else batch
        return batch.to(self.device, non_blocking=self.device.type == "cuda")


class FeatureBatches:
    """Batches of φ(s), φ(s′) and bootstrap, with φ of all frames computed once: (R, F) float32."""

    @torch.no_grad()
    def __init__(self, dataset, network: DeepSR, life_ends: bool):
        self.device = network.mean.device
        rows = len(dataset.frames)
        self.phi = torch.empty(rows, network.sizes.features, device=self.device)
        for start in range(0, rows, 512):
            part = torch.from_numpy(np.array(dataset.frames[start : start + 512])).to(self.device)
            self.phi[start : start + 512] = network.phi(part)
        self.bootstrap = bootstraps(dataset.ends, life_ends).to(self.device)

    def __call__(self, rows: np.ndarray) -> tuple[torch.Tensor, ...]:
        where = torch.from_numpy(rows).to(self.device, non_blocking=True)
        return self.phi[where], self.phi[where + 1], self.bootstrap[where]


def bootstraps(ends: Any, life_ends: bool) -> torch.Tensor:
    """(R,) of 1, and 0 where nothing follows the transition: the episode ended in it, or a life did and that counts."""
    final = np.isin(ends, (LIFE_LOST, EPISODE_ENDED) if life_ends else (EPISODE_ENDED,))
    return torch.from_numpy(1.0 - final.astype(np.float32))
