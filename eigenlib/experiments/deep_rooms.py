"""The deep SR where the right answer is known: a maze drawn as pixels (notebook 08), and the runs stored of it.

The network never learns that there are S states. We do, so all that it learned can be laid beside what is exact: its
features Φ and its ψ are two (S, F) tables, ψ should be (I − γT)⁻¹Φ, and a direction e in feature space is a potential
Φe or ψe over the states, on which options and diffusion times follow as in notebooks 04 and 05.

`data/reference/deep_rooms` holds Φ and ψ of the runs below; `eigenlib experiment deep_rooms` makes them anew.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import orth
from torch import nn

from eigenlib import _require, storage
from eigenlib.atari.batches import FeatureBatches, FrameBatches, image_statistics
from eigenlib.atari.dataset import Dataset, collect
from eigenlib.atari.learning import LOSSES, Learner, Objective, Refinement, choose_trained, successor_loss
from eigenlib.atari.network import DeepSR, Sizes, require_sizes
from eigenlib.atari.options import features_and_rows
from eigenlib.atari.pixels import PixelMaze
from eigenlib.atari.training import Config, Run, export_weights, load_network, train
from eigenlib.canonical import fix_signs
from eigenlib.eigenpurposes import Eigenpurposes
from eigenlib.experiments._tasks import Arrays, Found, name_of
from eigenlib.gridworld import GridWorld
from eigenlib.paths import CACHE, PRETRAINED, REFERENCE
from eigenlib.representation import successor_representation

SAMPLES = 30_000
GAMMA = 0.99
CONFIG = Config(
    sizes="small", gamma=GAMMA, passes=1, target_period=100, refine_passes=20, refine_batch=256, refine_target_period=10
)
WIDTHS = {"4 / 32": Sizes(4, 32, 64), "8 / 64": Sizes(8, 64, 128), "16 / 256": Sizes(16, 256, 512)}
GAMMAS = (0.5, 0.9, 0.97, 0.99)
SEEDS = range(5)
NAME, NO_STOP = "deep_rooms", "no stop"
Key = tuple[str, float, int]  # width, γ, seed
# A width, or NO_STOP, and a seed: one network. With seed 0 its φ serves every γ, as the SR's gradient never reaches it.
SETTINGS = [*((width, 0) for width in WIDTHS), *(("16 / 256", seed) for seed in SEEDS[1:]), (NO_STOP, 0)]


class Learned(NamedTuple):
    """What a network makes of every state.  phi, psi: (S, F).  reconstruction: its last loss L_RE, NaN if not trained."""

    phi: np.ndarray
    psi: np.ndarray
    reconstruction: float = float("nan")


def learned(network: DeepSR, maze: PixelMaze) -> Learned:
    """φ and ψ of all states of a drawn maze."""
    _require.instance(network, "network", DeepSR)
    phi, psi = features_and_rows(network, _require.instance(maze, "maze", PixelMaze).frames)
    return Learned(phi.astype(float), psi.astype(float))


def centred(values: np.ndarray) -> np.ndarray:
    """(S, F) with each column's mean over states removed: only differences between states can move anybody."""
    values = _require.numbers(values, "values", ("S", "F"))
    return values - values.mean(axis=0)


def successor_error(found: Learned, T: np.ndarray, gamma: float) -> float:
    """‖ψ − (I − γT)⁻¹Φ‖ / ‖(I − γT)⁻¹Φ‖, both centred."""
    phi, psi = _require.instance(found, "found", Learned).phi, successor_representation(T, gamma)
    if len(phi) != len(psi):
        raise ValueError(f"T has {len(psi)} states and found {len(phi)}: both must be of one world.")
    exact = centred(psi @ phi)
    return float(np.linalg.norm(centred(found.psi) - exact) / np.linalg.norm(exact))


def directions(rows: np.ndarray) -> np.ndarray:
    """(F, k) right singular vectors of centred rows, (S, F), the largest singular value first (§3.3)."""
    return fix_signs(np.linalg.svd(centred(rows), full_matrices=False)[2].T)


def potentials(table: np.ndarray, vectors: np.ndarray, count: int) -> Eigenpurposes:
    """Φe or ψe of the first `count` directions e, (F, k), as functions of the state: (S, count), unit length."""
    table, vectors = _require.numbers(table, "table", ("S", "F")), _require.numbers(vectors, "vectors", ("F", "k"))
    if table.shape[1] != len(vectors):
        raise ValueError(f"vectors must have as many rows as table has columns, {table.shape[1]}, got {len(vectors)}.")
    values = centred(table @ vectors[:, : _require.whole(count, "count", 1, vectors.shape[1])])
    size = np.linalg.norm(values, axis=0)
    return Eigenpurposes(size, values / np.where(size > 0, size, 1))


def canonical_correlations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(k,) correlations between the spans of two sets of potentials, (S, k) each; 1 where one contains the other."""
    a, b = _require.numbers(a, "a", ("S", "k")), _require.numbers(b, "b", ("S", "k"))
    if len(a) != len(b):
        raise ValueError(f"a and b must have one row for each state, got {len(a)} and {len(b)} rows.")
    cosines = np.linalg.svd(orth(centred(a)).T @ orth(centred(b)), compute_uv=False)
    return np.pad(cosines, (0, max(0, min(a.shape[1], b.shape[1]) - len(cosines))))


def four_rooms_dataset(seed: int, samples: int = SAMPLES) -> Dataset:
    """Random transitions of four rooms, collected once and kept in the cache."""
    samples, seed = _require.whole(samples, "samples", 2, 10**12), _require.whole(seed, "seed", 0)
    maze = PixelMaze(GridWorld.named("four_rooms"), seed=seed)
    return collect(maze, samples, CACHE / "deep_rooms" / f"data-{samples}-{seed}", seed=seed, progress=False)


def untrained(maze: PixelMaze, seed: int, sizes: Sizes | str = "small") -> Learned:
    """φ and ψ of a network that has not been trained, for comparison; it sees frames as a trained one does."""
    _require.instance(maze, "maze", PixelMaze)
    mean, scale = image_statistics(maze.frames, "deviation", Config().floor)
    return learned(DeepSR(maze.n_actions, sizes, mean, scale, seed=1_000 + _require.seed(seed)), maze)


def predictions(network: DeepSR, maze: PixelMaze, states) -> np.ndarray:
    """(A, n, 84, 84) the next frame in grey levels, for every action from each of n states."""
    _require.instance(network, "network", DeepSR)
    states = _require.wholes(states, "states", ("n",), 0, _require.instance(maze, "maze", PixelMaze).world.n_states - 1)
    frames = torch.from_numpy(np.array(maze.frames[states])).to(network.mean.device)
    with torch.inference_mode():
        phi = network.phi(frames)
        taken = [torch.full((len(frames),), action, device=phi.device) for action in range(maze.n_actions)]
        return np.stack([network.to_pixels(network.predict(phi, action)).cpu().numpy() for action in taken])


class AsWritten(nn.Module):
    """L_SR alone as §3.3 writes it, without the stop before ψ: (φ⁻(s) + γ ψ⁻(φ⁻(s′)) − ψ(φ(s)))², as Objective returns it."""

    def __init__(self, network: DeepSR, target: DeepSR, gamma: float):
        super().__init__()
        self.network, self.target, self.gamma = network, target, gamma

    def forward(self, frames, actions, next_frames, bootstrap):
        with torch.no_grad():
            first, future = self.target.phi(frames), self.target.psi(self.target.phi(next_frames))
        psi = self.network.psi(self.network.phi(frames), stop_gradient=False)
        loss = successor_loss(first, psi, future, bootstrap, self.gamma)
        return torch.stack([torch.zeros_like(loss), loss])


def watch_features(
    data: Dataset, losses: str, stop_gradient: bool, updates: int, sizes: Sizes, gamma: float, as_written: bool = False
) -> dict[str, list[float]]:
    """Train for some updates; after each, L_SR and the spread of φ over a fixed batch of frames (notebook 08's collapse)."""
    _require.instance(data, "data", Dataset)
    updates, as_written = _require.whole(updates, "updates", 1), _require.flag(as_written, "as_written")
    _require.choice(losses, "losses", LOSSES)
    sizes, stop_gradient = require_sizes(sizes), _require.flag(stop_gradient, "stop_gradient")
    gamma = _require.discount(gamma)
    mean, scale = image_statistics(data.frames, "deviation", Config().floor)
    network, target = (DeepSR(data.n_actions, sizes, mean, scale) for _ in range(2))
    choose_trained(network, losses, stop_gradient)
    usual = Objective(network, target, gamma, losses, stop_gradient)
    learner = Learner(AsWritten(network, target, gamma) if as_written else usual, network, target, step_size=1e-3)
    learner.renew_target()
    batches, rng = FrameBatches(data, True, network.mean.device), np.random.default_rng(0)
    probe = torch.from_numpy(np.array(data.frames[:64]))
    found: dict[str, list[float]] = {"successor": [], "spread": []}
    for update in range(updates):
        if update % 25 == 0:
            learner.renew_target()
        found["successor"].append(float(learner.update(*batches(rng.choice(data.transitions, 32)))[1]))
        with torch.no_grad():
            found["spread"].append(float(network.phi(probe).std(dim=0).mean()))
    return found


# --- the stored runs ----------------------------------------------------------------------------------------------------


def run(setting: tuple[str, int]) -> Found:
    """Of one network the tables "phi|γ" and "psi|γ", (S, F), and the last loss L_RE; minutes, and a stopped one goes on."""
    width, seed = setting
    maze, (found, data) = PixelMaze(GridWorld.named("four_rooms")), _trained(setting)
    networks = {GAMMA: found.network}
    if seed == 0 and width in WIDTHS:
        networks |= {gamma: _other_gamma(found, data, gamma) for gamma in GAMMAS if gamma != GAMMA}
    arrays: Arrays = {}
    for gamma, network in networks.items():
        phi, psi, _ = learned(network, maze)
        arrays |= {f"phi|{gamma}": phi.astype(np.float16), f"psi|{gamma}": psi.astype(np.float16)}
    joint = found.history["reconstruction"]
    return arrays, {"reconstruction": float(joint[np.isfinite(joint)][-1])}


def store(results: dict[tuple[str, int], Found]) -> None:
    """Φ and ψ of all networks in one file, and the weights of one of them: now that all is there, both belong together."""
    arrays: Arrays = {}
    losses: dict[str, float] = {}
    for (width, seed), (found, about) in results.items():
        for key, array in found.items():
            table, gamma = key.split("|")
            arrays[f"{table}|{width}|{gamma}|{seed}"] = array
            losses[f"{width}|{gamma}|{seed}"] = about["reconstruction"]
    export_weights(_trained(("16 / 256", 0))[0], PRETRAINED / "four_rooms")
    about = {"samples": SAMPLES, "config": asdict(CONFIG), "losses": losses}
    storage.save(REFERENCE / NAME, arrays, command=f"eigenlib experiment {NAME}", **about)


def score(results: dict[Key, Learned]) -> dict[str, float]:
    """How far each ψ is from the SR of its features."""
    T = GridWorld.named("four_rooms").transition_matrix()
    return {f"{width}, γ {g}, seed {n}": successor_error(run, T, g) for (width, g, n), run in results.items()}


@cache
def stored_runs() -> dict[Key, Learned]:
    """Φ and ψ of every stored run, by width, γ and seed; the run whose gradient was not stopped has NO_STOP for a width."""
    arrays, about = storage.load(REFERENCE / NAME)
    found = {}
    for name, loss in about["losses"].items():
        width, gamma, seed = name.split("|")
        phi, psi = (arrays[f"{table}|{name}"].astype(float) for table in ("phi", "psi"))
        found[width, float(gamma), int(seed)] = Learned(phi, psi, loss)
    return found


stored = stored_runs


def stored_about() -> dict[str, Any]:
    """How the stored runs were made."""
    return storage.load(REFERENCE / NAME)[1]


def stored_network() -> DeepSR:
    """The network of width 16 / 256, γ = 0.99 and seed 0, in half precision on disk."""
    return load_network(PRETRAINED / "four_rooms")


def _trained(setting: tuple[str, int]) -> tuple[Run, Dataset]:
    """A network and its own copy of the data, in folders that no other setting uses."""
    (width, seed), name = setting, name_of(setting)
    maze = PixelMaze(GridWorld.named("four_rooms"), seed=seed)
    data = collect(maze, SAMPLES, CACHE / NAME / f"data-{name}", seed=seed, progress=False)
    config = replace(CONFIG, sizes=WIDTHS.get(width, CONFIG.sizes), seed=seed, stop_gradient=width != NO_STOP)
    return train(data, config, CACHE / NAME / name, threads=1), data


def _other_gamma(run: Run, data: Dataset, gamma: float) -> DeepSR:
    """The same φ with a new SR estimator for another γ: the refinement of `train`, from the start."""
    network, target = (DeepSR(data.n_actions, run.network.sizes, seed=run.config.seed) for _ in range(2))
    for name, weights in run.network.state_dict().items():
        if not name.startswith("successor"):
            network.state_dict()[name].copy_(weights)
    choose_trained(network, "both", True, refine=True)
    learner = Learner(Refinement(network, target, gamma), network, target, run.config.refine_step_size)
    batches, size = FeatureBatches(data, network, True), run.config.refine_batch
    updates = run.config.refine_passes * (len(data.transitions) // size)
    rng = np.random.default_rng([run.config.seed, int(1000 * gamma)])
    for update in range(updates):
        learner.set_step_size(run.config.refine_step_size * (1 - update / updates))
        if update % run.config.refine_target_period == 0:
            learner.renew_target()
        learner.update(*batches(rng.choice(data.transitions, size, replace=False)))
    return network.eval()
