"""How well training uses the processor, as ratios measured in one run: `python benchmarks/training.py`.

1. The loop of `train`, with its shuffling, gathering from a file, bookkeeping and checkpoint, against the bare update on one
   batch that is already in memory: at least 90 %.
2. The floating-point operations a second of the paper's network against those of a large matrix product with as many
   threads: at least 50 %. Operations are counted from the shapes of the layers.
3. The loop in the precision that `precision="auto"` chooses against the same loop in float32, at every size: on a CPU with
   avx512_bf16 at least 1.3 times as fast, elsewhere never slower (5 % are the noise of such a measurement).
4. The loss on unseen frames of a game after 500 updates in bfloat16 against float32: within 1 %.

Whatever is compared is timed in turns, and best times count: another program then slows neither side alone. Even so, leave
the machine alone meanwhile, above all with several threads, which wait for one another.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import torch

from eigenlib.atari import device as devices
from eigenlib.atari.batches import FrameBatches
from eigenlib.atari.dataset import Dataset, collect
from eigenlib.atari.learning import Learner, Objective
from eigenlib.atari.network import SIZES, DeepSR
from eigenlib.atari.pixels import SIDE
from eigenlib.atari.training import Config, train

N_ACTIONS = 18


def best_times(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Best seconds of each work, all of them in turns, after one unmeasured turn."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            before = time.perf_counter()
            work()
            if number:
                times[name].append(time.perf_counter() - before)
    return {name: min(taken) for name, taken in times.items()}


def some_frames(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, SIDE, SIDE), dtype=np.uint8)


def bare_update(sizes: str, batch: int, channels_last: bool = False) -> Callable[[], object]:
    """One update on a batch that stays where it is."""
    network, target = (DeepSR(N_ACTIONS, sizes) for _ in range(2))
    for weights in (*network.parameters(), *target.parameters()):
        if channels_last and weights.dim() == 4:
            weights.data = weights.data.contiguous(memory_format=torch.channels_last)
    learner = Learner(Objective(network, target.requires_grad_(False), 0.99), network, target)
    frames = torch.from_numpy(some_frames(2 * batch))
    actions = torch.arange(batch) % N_ACTIONS
    return lambda: learner.update(frames[:batch], actions, frames[batch:], torch.ones(batch))


def operations(sizes: str, batch: int) -> float:
    """Floating-point operations of one update: two for each multiplication and addition of a convolution or linear layer.

    Backwards a layer costs twice its forward pass, once for its weights and once for its input; the first layers of φ and
    of ψ need no gradient of their input. The target network goes forwards through φ and ψ.
    """
    with torch.device("meta"):
        layers = {layer.name: layer for layer in DeepSR(N_ACTIONS, sizes).layers()}
    channels = SIZES[sizes].channels
    forward = {}
    for name, layer in layers.items():
        bias = layer.shape[0] if name != "action" else 0
        # each weight of a convolution meets every output place, of a transposed one every input place
        side = {"Conv2d": layer.shape[-1], "ConvTranspose2d": layer.shape[-1] // 2 - (layer.shape[-1] == SIDE) * 2}
        places = side.get(layer.kind, 1) ** 2
        forward[name] = 2 * (layer.parameters - bias) * places if name != "action" else 0
    assert forward["deconv3"] == 2 * 36 * channels * 40**2
    target = sum(count for name, count in forward.items() if name.startswith(("conv", "features", "successor")))
    backward = 2 * sum(forward.values()) - forward["conv1"] - forward["successor1"]
    return batch * (sum(forward.values()) + backward + target)


def a_loop(
    folder: Path, sizes: str, threads: int, batch: int, updates: int, precision: str = "fp32"
) -> tuple[Callable[[], object], list[float]]:
    """One pass of `train` over frames in a file, and where each call of it notes its seconds."""
    frames = np.lib.format.open_memmap(folder / f"{precision}.npy", "w+", np.uint8, (batch * updates + 1, SIDE, SIDE))
    frames[:] = some_frames(len(frames))
    actions = (np.arange(len(frames)) % N_ACTIONS).astype(np.uint8)
    actions[-1] = 255
    dataset = Dataset.from_arrays(frames, actions, np.zeros_like(actions), N_ACTIONS)
    seconds: list[float] = []

    def loop() -> None:
        """Its own clock leaves out what happens once: the network, the first checkpoint."""
        config = Config(sizes, passes=1, batch=batch, normalisation="raw", log_every=updates, seed=len(seconds))
        ways = {"progress": False, "device": "cpu", "threads": threads, "precision": precision}
        run = train(dataset, config, folder / f"{precision}{len(seconds)}", **ways)  # type: ignore[arg-type]
        seconds.append(run.history["seconds"][-1])

    return loop, seconds


def chosen_against_fp32(sizes: str, threads: int, batch: int = 32, updates: int = 8, rounds: int = 4) -> float:
    """How many times as fast the loop is in the precision that "auto" chooses as in float32."""
    with devices.threads(threads), devices.kept_memory():
        chosen = devices.faster_precision(N_ACTIONS, sizes, batch)
    with tempfile.TemporaryDirectory() as folder:
        loops = {name: a_loop(Path(folder), sizes, threads, batch, updates, name) for name in ("fp32", "bf16")}
        best_times({name: loop for name, (loop, _) in loops.items()}, rounds)
        rates = {name: batch * updates / min(seconds) for name, (_, seconds) in loops.items()}
    ratio = rates[chosen] / rates["fp32"]
    print(f"{sizes:10}{threads:8}{rates['fp32']:11,.0f}{rates['bf16']:11,.0f}{chosen:>9}{ratio:9.2f}")
    return ratio


def unseen_losses(updates: int = 500, batch: int = 32) -> dict[str, float]:
    """L_RE of a small network on frames it has not seen, in each precision."""
    losses, game = {}, "montezuma_revenge"
    with tempfile.TemporaryDirectory() as folder:
        data = collect(game, updates * batch + 5 * batch, Path(folder, "data"), progress=False)
        unseen = collect(game, 1000, Path(folder, "unseen"), seed=1, progress=False)
        some = FrameBatches(unseen, True, torch.device("cpu"))(unseen.transitions)
        for precision in ("fp32", "bf16"):
            ways = {"progress": False, "device": "cpu", "precision": precision, "until": updates * batch}
            network = train(data, Config("small", passes=1), Path(folder, precision), **ways).network  # type: ignore[arg-type]
            with torch.no_grad():
                losses[precision] = Objective(network, network, 0.9, "reconstruction")(*some).sum().item()
    return losses


def loop_against_bare_update(sizes: str, threads: int, batch: int = 32, updates: int = 12, rounds: int = 3) -> float:
    """Samples a second of the loop as a share of those of the bare update."""
    with tempfile.TemporaryDirectory() as folder:
        loop, seconds = a_loop(Path(folder), sizes, threads, batch, updates)
        update = bare_update(sizes, batch)

        def bare() -> None:
            with devices.threads(threads), devices.kept_memory():  # as in train
                for _ in range(updates):
                    update()

        fastest = best_times({"loop": loop, "bare": bare}, rounds)["bare"]
    rates = [batch * updates / fastest, batch * updates / min(seconds)]
    share = rates[1] / rates[0]
    print(f"{sizes:10}{threads:8}{rates[0]:14,.0f}{rates[1]:14,.0f}{share:13.0%}")
    return share


def update_against_matrix_product(threads: int, rounds: int = 2, side: int = 2048) -> float:
    """The largest share of a matrix product's operations a second that an update of the paper's network reaches."""
    a, b = torch.ones(side, side), torch.ones(side, side)
    settings = [(batch, last) for batch in (32, 64) for last in (False, True)]
    works: dict[str, Callable[[], object]] = {}
    for batch, last in settings:  # a product before each, so that its best time is as well found as theirs
        works |= {f"product {batch} {last}": lambda: a @ b, f"{batch} {last}": bare_update("paper", batch, last)}
    with devices.threads(threads), devices.kept_memory():
        taken = best_times(works, rounds)
    fastest = min(seconds for name, seconds in taken.items() if name.startswith("product"))
    peak, shares = 2 * side**3 / fastest, []
    for batch, last in settings:
        rate = operations("paper", batch) / taken[f"{batch} {last}"]
        shares.append(rate / peak)
        samples = batch / taken[f"{batch} {last}"]
        print(
            f"{threads:7}{batch:7}{'last' if last else 'first':>10}{samples:11,.0f}{rate / 1e9:10.0f}{shares[-1]:11.0%}"
        )
    print(f"{threads:7}{'a matrix product':>17}{'':11}{peak / 1e9:10.0f}")
    return max(shares)


def busy_seconds() -> tuple[float, float]:
    """Processor seconds so far: of all programs, of this one."""
    everybody = psutil.cpu_times()
    return everybody.user + everybody.system + getattr(everybody, "nice", 0.0), time.process_time()


def main() -> None:
    threads, began, before = sorted({1, devices.cores()}), time.perf_counter(), busy_seconds()
    print("The loop of train against the bare update, samples a second")
    print(f"{'network':10}{'threads':>8}{'bare update':>14}{'loop':>14}{'loop / bare':>13}")
    loop = min(loop_against_bare_update(sizes, threads[-1]) for sizes in ("small", "standard"))
    print(f"at least 90 %: {'yes' if loop >= 0.9 else 'NO'}\n")
    print(f"The paper's network, {operations('paper', 1) / 1e9:.2f} GFLOP a sample, against a matrix product")
    print(f"{'threads':>7}{'batch':>7}{'channels':>10}{'samples/s':>11}{'GFLOP/s':>10}{'of product':>11}")
    shares = [update_against_matrix_product(count) for count in threads]
    print(f"at least 50 %: {'yes' if min(shares) >= 0.5 else 'NO'} (best setting of each number of threads)")
    print("\nThe loop in the precision that auto chooses against float32, samples a second")
    print(f"{'network':10}{'threads':>8}{'fp32':>11}{'bf16':>11}{'chosen':>9}{'ratio':>9}")
    ratio = min(chosen_against_fp32(sizes, count) for sizes in SIZES for count in threads)
    wanted, has = (1.3, "has") if torch.cpu._is_avx512_bf16_supported() else (0.95, "does not have")
    print(f"at least {wanted} (this CPU {has} avx512_bf16): {'yes' if ratio >= wanted else 'NO'}\n")
    losses = unseen_losses()
    apart = abs(losses["bf16"] / losses["fp32"] - 1)
    print(f"L_RE on unseen frames after 500 updates: fp32 {losses['fp32']:.4f}, bf16 {losses['bf16']:.4f}")
    print(f"within 1 %: {'yes' if apart <= 0.01 else 'NO'} ({apart:.2%})")
    everybody, mine = (after - at_first for after, at_first in zip(busy_seconds(), before, strict=True))
    others = max(0.0, everybody - mine) / (time.perf_counter() - began) / (os.cpu_count() or 1)
    print(
        f"\nOther programs used {others:.0%} of the machine meanwhile{': run this again when it is idle.' * (others > 0.1)}"
    )


if __name__ == "__main__":
    main()
