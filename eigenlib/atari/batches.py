"""Where batches come from: rows of a dataset as tensors on a device, and the statistics that frames are normalised by."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from eigenlib import _require
from eigenlib.atari.dataset import EPISODE_ENDED, LIFE_LOST, require_dataset
from eigenlib.atari.network import DeepSR
from eigenlib.atari.pixels import SIDE, require_frames


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
