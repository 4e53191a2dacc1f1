"""DeepSR: the network that learns successor features from pixels (Fig. 2 and §3.3 of the paper; notebook 08).

One frame goes in, and three things come out:

    φ(s)         features: three convolutions and a layer of F rectified units                     representation
    ζ(φ(s), a)   the next frame, from φ(s) and the action, which multiply: W (Uφ ⊙ V a)           reconstruction
    ψ(φ(s))      successor features, ψ ≈ E[Σ γᵗ φ(Sₜ) | S₀ = s], by a small network on φ          SR estimator

The action enters by a product, as in Oh et al. (2015), because it does not add something to the picture: it selects which
of the possible changes happens. ψ looks at φ through a wall (`detach`, the ø of Fig. 2): φ is shaped by prediction alone,
since ψ = φ = 0 satisfies the equation ψ(s) = φ(s) + γ E ψ(s′) better than anything learned could.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from eigenlib import _require
from eigenlib.atari.pixels import SIDE

# Every choice that the paper leaves open, or that is made otherwise here: (choice, ours, why).
DEVIATIONS: tuple[tuple[str, str, str], ...] = tuple(
    (one["choice"], one["ours"], one["why"])
    for one in tomllib.loads(Path(__file__).with_name("deviations.toml").read_text(encoding="utf-8"))["deviation"]
)


class Sizes(NamedTuple):
    """How wide the network is: channels of each convolution, features F of φ and ψ, factors of the action product."""

    channels: int
    features: int
    factors: int


SIZES = {"paper": Sizes(64, 1024, 2048), "standard": Sizes(32, 512, 1024), "small": Sizes(16, 256, 512)}


class Layer(NamedTuple):
    """A layer as a drawing needs it: its name in the module, what it is, its output without the batch, its parameters."""

    name: str
    kind: str
    shape: tuple[int, ...]
    parameters: int


class DeepSR(nn.Module):
    """φ, ζ and ψ over uint8 frames (B, 84, 84).

    mean, scale: (84, 84), in units of [0, 1]; the network sees (x/255 − mean) / scale. Without them it sees x/255.
    seed: of the initial weights; torch's own random state is neither used nor moved.
    """

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, n_actions: int, sizes: Sizes | str = "small", mean=None, scale=None, seed: int = 0):
        super().__init__()
        self.n_actions, self.sizes = _require.whole(n_actions, "n_actions", 1, 10_000), require_sizes(sizes)
        seed = _require.whole(seed, "seed", 0)  # torch wants 64 bits
        channels, features, factors = self.sizes
        with torch.random.fork_rng(devices=[]):
            self.conv1 = nn.Conv2d(1, channels, 6, stride=2)
            self.conv2 = nn.Conv2d(channels, channels, 6, stride=2, padding=2)
            self.conv3 = nn.Conv2d(channels, channels, 6, stride=2, padding=2)
            self.features = nn.Linear(100 * channels, features)

            self.factor = nn.Linear(features, factors)
            self.action = nn.Embedding(n_actions, factors)  # row a is V a: a linear layer of the one-hot action
            self.merge = nn.Linear(factors, features)
            self.expand = nn.Linear(features, 100 * channels)
            self.deconv1 = nn.ConvTranspose2d(channels, channels, 6, stride=2, padding=2)
            self.deconv2 = nn.ConvTranspose2d(channels, channels, 6, stride=2, padding=2)
            self.deconv3 = nn.ConvTranspose2d(channels, 1, 6, stride=2)

            self.successor1 = nn.Linear(features, 2 * features)
            self.successor2 = nn.Linear(2 * features, features)
        self.register_buffer("mean", _image(mean, 0.0, "mean"))
        self.register_buffer("scale", _image(scale, 1.0, "scale"))
        if not self.scale.is_meta and not (self.scale > 0).all():
            raise ValueError("scale must be above 0 in every pixel: it is divided by.")
        self._initialise(seed)

    def normalise(self, frames: torch.Tensor) -> torch.Tensor:
        """uint8 (B, 84, 84) → float (B, 84, 84): what the network sees and predicts."""
        _require_tensor(frames, "frames", (SIDE, SIDE), torch.uint8)
        return (frames.float() / 255 - self.mean) / self.scale

    def to_pixels(self, prediction: torch.Tensor) -> torch.Tensor:
        """A prediction, (B, 84, 84) in normalised units, as grey levels: float, clipped to [0, 255]."""
        _require_tensor(prediction, "prediction", (SIDE, SIDE))
        return ((prediction * self.scale + self.mean) * 255).clamp(0, 255)

    def phi(self, frames: torch.Tensor) -> torch.Tensor:
        """Features φ(s) ≥ 0: uint8 (B, 84, 84) → (B, F)."""
        x = self.normalise(frames)[:, None]
        for layer in (self.conv1, self.conv2, self.conv3):
            x = F.relu(layer(x))
        return F.relu(self.features(x.flatten(1)))

    def predict(self, phi: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """The next frame ζ(φ(s), a) in normalised units: (B, F) and (B,) whole numbers → (B, 84, 84)."""
        _require_tensor(phi, "phi", (self.sizes.features,))
        _require_tensor(actions, "actions", (), torch.long)
        if len(actions) != len(phi):
            raise ValueError(f"actions must have one entry for each of the {len(phi)} rows of phi, got {len(actions)}.")
        try:
            x = self.merge(self.factor(phi) * self.action(actions))
        except IndexError:
            raise ValueError(
                f"actions must lie between 0 and {self.n_actions - 1}, the actions of this network."
            ) from None
        x = F.relu(self.expand(x)).unflatten(1, (self.sizes.channels, 10, 10))
        x = F.relu(self.deconv2(F.relu(self.deconv1(x))))
        return self.deconv3(x)[:, 0]

    def psi(self, phi: torch.Tensor, stop_gradient: bool = True) -> torch.Tensor:
        """Successor features ψ(φ(s)): (B, F) → (B, F). Its gradient ends here unless stop_gradient is False."""
        _require_tensor(phi, "phi", (self.sizes.features,))
        phi = phi.detach() if _require.flag(stop_gradient, "stop_gradient") else phi
        return self.successor2(F.relu(self.successor1(phi)))

    def forward(self, frames: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """φ(s), ζ(φ(s), a) and ψ(φ(s)) at once."""
        phi = self.phi(frames)
        return phi, self.predict(phi, actions), self.psi(phi)

    @torch.no_grad()
    def layers(self) -> list[Layer]:
        """Every layer in the order it is passed, as measured by sending one black frame through (for Fig. 2)."""
        found: list[Layer] = []
        names = {layer: name for name, layer in self.named_children()}

        def record(layer: nn.Module, _inputs, output: torch.Tensor) -> None:
            count = sum(weights.numel() for weights in layer.parameters())
            found.append(Layer(names[layer], type(layer).__name__, tuple(output.shape[1:]), count))

        hooks = [layer.register_forward_hook(record) for layer in names]
        black = torch.zeros(1, SIDE, SIDE, dtype=torch.uint8, device=self.mean.device)
        self(black, torch.zeros(1, dtype=torch.long, device=self.mean.device))
        for hook in hooks:
            hook.remove()
        return found

    @torch.no_grad()
    def _initialise(self, seed: int) -> None:
        """Xavier, biases zero; the two layers whose outputs multiply are uniform, as in Oh et al. (2015)."""
        if self.conv1.weight.is_meta:  # shapes only, nothing to fill
            return
        generator = torch.Generator().manual_seed(seed)
        for name, weights in self.named_parameters():
            if name == "factor.weight":
                nn.init.uniform_(weights, -1.0, 1.0, generator=generator)
            elif name == "action.weight":
                nn.init.uniform_(weights, -0.1, 0.1, generator=generator)
            elif name.endswith("bias"):
                nn.init.zeros_(weights)
            else:
                nn.init.xavier_uniform_(weights, generator=generator)


def require_sizes(sizes: Sizes | str) -> Sizes:
    """Sizes by name, or as three whole numbers."""
    if isinstance(sizes, str):
        if sizes not in SIZES:
            raise ValueError(
                f"There is no network size {sizes!r}; choose one of {', '.join(SIZES)}, or give Sizes(...)."
            )
        return SIZES[sizes]
    numbers = tuple(sizes) if isinstance(sizes, tuple | list) else ()
    if len(numbers) != 3 or not all(isinstance(n, int) and not isinstance(n, bool) and 0 < n < 2**20 for n in numbers):
        raise ValueError(
            f"Sizes are three positive whole numbers (channels, features, factors), got {_require.shown(sizes)}."
        )
    return Sizes(*numbers)


def _image(values, default: float, name: str) -> torch.Tensor:
    if values is None:
        return torch.full((SIDE, SIDE), default)
    if torch.is_tensor(values) and values.shape == (SIDE, SIDE):
        return values.float().clone()
    return torch.from_numpy(_require.numbers(values, name, (SIDE, SIDE)).astype(np.float32))


def _require_tensor(tensor, name: str, inner: tuple[int, ...], kind: torch.dtype | None = None) -> None:
    """(B, *inner) of the kind, a floating one if none is given: frames in [0, 1] instead of bytes would look all black."""
    fits = torch.is_tensor(tensor) and tensor.dim() == 1 + len(inner) and tuple(tensor.shape[1:]) == inner
    if not fits or (tensor.dtype != kind if kind is not None else not tensor.is_floating_point()):
        expected = f"({', '.join(map(str, ('B', *inner)))}{',' * (not inner)})"
        got = f"{tensor.dtype} of shape {tuple(tensor.shape)}" if torch.is_tensor(tensor) else _require.shown(tensor)
        raise ValueError(f"{name} must be a tensor of {kind or 'floats'} of shape {expected}, got {got}.")
