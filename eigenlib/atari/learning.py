"""One step of learning: the two losses, RMSProp and the target network (§3.3; notebook 08).

    L = L_RE + L_SR          L_RE = (ζ(φ(s), a) − s′)²          L_SR = (φ(s) + γ ψ⁻(φ⁻(s′)) − ψ(φ(s)))²

averaged over the batch and over pixels or features. φ⁻ and ψ⁻ are the target network, an older copy. As L_SR does not
reach φ, the two losses move disjoint sets of weights, and RMSProp divides each weight's gradient by its own running size:
how the losses are weighted against each other, or whether they are summed or averaged, hardly matters.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import nn

from eigenlib import _moved, _require
from eigenlib.atari.network import DeepSR

LOSSES = ("both", "sr", "reconstruction")
__getattr__ = _moved.names_of(__name__)


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
