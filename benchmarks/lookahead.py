"""Where the time goes while options are followed, from a profile: `python benchmarks/lookahead.py`.

Montezuma's Revenge (18 actions), the network of the standard preset, untrained: its speed does not depend on its weights.
Emulating cannot be made cheaper here, so the emulator's share is the mark. Then, as ratios, the same options followed one
at a time, so that none shares a future or a batch with another, and as one would first write it, one frame at a time. All
on one thread: on a busy machine the threads of a small batch mostly wait for each other.
"""

from __future__ import annotations

import cProfile
import pstats
import time

import numpy as np
import torch

from eigenlib.atari import options
from eigenlib.atari.emulator import Emulator
from eigenlib.atari.network import SIZES, DeepSR

COUNT, STEPS, FEW = 16, 12, 4
OURS = ("act", "frame", "restore", "save", "position", "room", "lives", "over", "screen")  # the emulator's methods


def one_by_one(world: Emulator, network: DeepSR, vectors: np.ndarray, steps: int) -> np.ndarray:
    """(K, T) actions."""
    start, actions = world.save(), np.zeros((vectors.shape[1], steps), int)
    for k in range(vectors.shape[1]):
        state = start
        for t in range(steps):
            ahead = np.zeros(world.n_actions)
            for action in range(world.n_actions):
                world.restore(state)
                world.act(action)
                with torch.inference_mode():
                    phi = network.phi(torch.from_numpy(np.array(world.frame()))[None])[0].numpy()
                ahead[action] = phi @ vectors[:, k]
            actions[k, t] = ahead.argmax()
            world.restore(state)
            world.act(int(actions[k, t]))
            state = world.save()
    world.restore(start)
    return actions


def one_option_at_a_time(world: Emulator, network: DeepSR, vectors: np.ndarray, steps: int) -> np.ndarray:
    """Batches, but nothing shared between options."""
    logs = [options.follow_greedily(world, network, vectors[:, [k]], steps) for k in range(vectors.shape[1])]
    return np.concatenate([log.actions for log in logs])


def shares(profile: cProfile.Profile) -> dict[str, float]:
    """Seconds in the emulator, in the network and in the rest."""
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    inside = {key for key in stats if key[0].endswith("emulator.py") and key[2] in OURS}
    emulator = forward = 0.0
    for key, (*_, callers) in stats.items():
        if key in inside:  # called from outside: save() itself calls frame()
            emulator += sum(entry[3] for caller, entry in callers.items() if not caller[0].endswith("emulator.py"))
        if key[2] == "_forward" and key[0].endswith("options.py"):
            forward += sum(entry[3] for entry in callers.values())
    whole = sum(entry[2] for entry in stats.values())
    return {"emulator": emulator, "network": forward, "the rest": whole - emulator - forward}


def main() -> None:
    torch.set_num_threads(1)
    world, rng = Emulator("montezuma_revenge"), np.random.default_rng(0)
    network = DeepSR(world.n_actions, SIZES["standard"])
    vectors = options.both_signs(rng.normal(size=(network.sizes.features, COUNT // 2))).astype(np.float32)
    options.follow_greedily(world, network, vectors, 1)  # compile and warm up

    profile, begin = cProfile.Profile(), time.perf_counter()
    profile.enable()
    options.follow_greedily(world, network, vectors, STEPS)
    profile.disable()
    taken = time.perf_counter() - begin
    frames = COUNT * STEPS * world.n_actions
    print(f"{COUNT} options, {STEPS} decisions, {frames} futures: {taken:.1f} s")
    for name, seconds in shares(profile).items():
        print(f"  {name:10} {100 * seconds / taken:5.1f} %")

    few, results = vectors[:, :FEW], {}
    for name, way in (
        ("together", lambda *given: options.follow_greedily(*given).actions),
        ("one option at a time", one_option_at_a_time),
        ("one frame at a time", one_by_one),
    ):
        begin = time.perf_counter()
        actions = way(world, network, few, STEPS // 2)
        results[name] = time.perf_counter() - begin, actions
    print(f"{FEW} options, {STEPS // 2} decisions")
    for name, (seconds, actions) in results.items():
        same = (actions == results["together"][1]).mean()
        print(
            f"  {name:22} {seconds:5.2f} s   {seconds / results['together'][0]:4.1f} ×   same actions {100 * same:.0f} %"
        )


if __name__ == "__main__":
    main()
