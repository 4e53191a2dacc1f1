"""Training: what is learned, and that neither kills, nor wrong files, nor several processes change it."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from shared import free_port

from eigenlib import storage
from eigenlib.atari import device as devices
from eigenlib.atari.batches import FeatureBatches, FrameBatches, image_statistics
from eigenlib.atari.dataset import Dataset, collect
from eigenlib.atari.device import Compiled, choose_device, cores
from eigenlib.atari.learning import Learner, Objective, Refinement, choose_trained
from eigenlib.atari.network import DeepSR, Sizes
from eigenlib.atari.training import Config, export_weights, load_network, load_run, train
from eigenlib.storage import alone_in

TINY = Sizes(4, 16, 32)
SMALL_RUN = Config(TINY, gamma=0.9, passes=2, batch=8, target_period=7, refine_passes=3, refine_batch=16, log_every=1)
SMALL_RUN = replace(SMALL_RUN, refine_target_period=3, step_size=1e-3)


def corridor(rows: int = 64, seed: int = 0) -> Dataset:
    """A block that two actions push left and right over seven places, in episodes of sixteen frames."""
    rng = np.random.default_rng(seed)
    pictures = np.full((7, 84, 84), 30, np.uint8)
    for place in range(7):
        pictures[place, 36:48, 12 * place : 12 * place + 12] = 220
    actions, ends, places = rng.integers(0, 2, rows).astype(np.uint8), np.zeros(rows, np.uint8), np.zeros(rows, int)
    for t in range(rows - 1):
        places[t + 1] = np.clip(places[t] + 2 * int(actions[t]) - 1, 0, 6) if t % 16 < 15 else rng.integers(7)
    actions[15::16] = 255
    ends[14::16] = rng.choice([1, 2, 3], len(ends[14::16]))
    return Dataset.from_arrays(pictures[places], actions, ends, 2)


def quiet(dataset, config: Config, folder, **options):
    return train(dataset, config, folder, device="cpu", progress=False, threads=1, **options)


def same(one, two) -> bool:
    a, b = one.network.state_dict(), two.network.state_dict()
    return all(torch.equal(a[name], b[name]) for name in a)


def subprocess_of(call: str, **environment: str) -> subprocess.Popen:
    """Python, with this file imported as `t`, doing `call`."""
    places = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "helpers")]
    code = f"import sys; sys.path[:0] = {places!r}; import test_training as t; {call}"
    return subprocess.Popen([sys.executable, "-c", code], env=os.environ | environment)


# --- what is learned ------------------------------------------------------------------------------------------------


def chain(end: int) -> Dataset:
    """0 → 1 → 2, then 2 → 2 for ever; `end` marks the step 1 → 2. One action, three pictures."""
    pictures = np.random.default_rng(0).integers(0, 256, (3, 84, 84), dtype=np.uint8)
    places, actions, ends = [0, 1, 2, 2, 2, 2], [0, 0, 255, 0, 0, 255], [0, end, 0, 0, 3, 0]
    repeated = np.tile(places, 8), np.tile(actions, 8).astype(np.uint8), np.tile(ends, 8).astype(np.uint8)
    return Dataset.from_arrays(pictures[repeated[0]], repeated[1], repeated[2], 1)


def exact_chain(phi: np.ndarray, follows: bool, gamma: float) -> np.ndarray:
    """ψ of the three states by hand; `follows`: whether state 2 comes after 1, or nothing."""
    last = phi[2] / (1 - gamma)
    middle = phi[1] + (gamma * last if follows else 0)
    return np.array([phi[0] + gamma * middle, middle, last])


def errors_on_chain(folder, config: Config, end: int) -> dict[bool, float]:
    """Relative error of ψ against the answer in which state 2 follows (True) and the one in which nothing does (False)."""
    dataset = chain(end)
    network = quiet(dataset, config, folder).network
    with torch.no_grad():
        phi = network.phi(torch.from_numpy(dataset.frames[:3]))
        psi = network.psi(phi).numpy()
    exact = {answer: exact_chain(phi.numpy(), answer, config.gamma) for answer in (True, False)}
    return {answer: float(np.linalg.norm(psi - exact[answer]) / np.linalg.norm(exact[answer])) for answer in exact}


@pytest.mark.parametrize(
    ("end", "life_ends", "follows"),
    [(0, True, True), (1, True, False), (1, False, True), (2, True, False), (2, False, False), (3, True, True)],
)
def test_nothing_follows_an_end_and_all_follows_a_cut_off(tmp_path, end, life_ends, follows):
    """ψ learned on frozen random features is the one computed by hand, and far from the other answer."""
    refining = {"refine_passes": 400, "refine_batch": 32, "refine_step_size": 3e-3, "refine_target_period": 15}
    config = Config(TINY, 0.5, passes=0, batch=32, decay=0.9, life_ends=life_ends, normalisation="raw", **refining)
    error = errors_on_chain(tmp_path, config, end)
    assert error[follows] < 0.02
    assert error[not follows] > 0.2


@pytest.mark.parametrize(("end", "follows"), [(2, False), (3, True)])
def test_the_joint_passes_treat_ends_alike(tmp_path, end, follows):
    joint = {"losses": "sr", "step_size": 3e-3, "target_period": 10}  # φ stays as it was: the answer is known
    error = errors_on_chain(
        tmp_path, Config(TINY, 0.5, passes=150, batch=32, decay=0.9, normalisation="raw", **joint), end
    )
    assert error[follows] < 0.08
    assert error[not follows] > 0.2


def test_l_sr_collapses_phi_unless_it_is_stopped(tmp_path):
    """Why the paper has the wall and the reconstruction: φ = ψ = 0 is the best L_SR can ask for, and training finds it.

    Once L_SR reaches φ, it also wins against L_RE here.
    """
    dataset = corridor()
    frames = torch.from_numpy(dataset.frames)
    config = Config(TINY, 0.9, passes=20, batch=16, step_size=1e-3, target_period=10, log_every=5)
    with torch.no_grad():
        before = DeepSR(2, TINY, *image_statistics(dataset.frames, "deviation", 0.02)).phi(frames).norm(dim=1).mean()
        sizes, losses = {}, {}
        for name, stop in (("sr", False), ("both", False), ("both", True)):
            with torch.enable_grad():
                run = quiet(dataset, replace(config, losses=name, stop_gradient=stop), tmp_path / f"{name}{stop}")
            sizes[name, stop] = run.network.phi(frames).norm(dim=1).mean()
            losses[name, stop] = run.history["successor"]
    assert losses["sr", False][-1] < 0.01 * losses["sr", False][0]
    assert sizes["sr", False] < 0.05 * before
    assert sizes["both", False] < 0.05 * before
    assert sizes["both", True] > before


def test_psi_alone_leaves_phi_and_the_prediction_alone(tmp_path):
    """With the gradient stopped, L_SR moves the estimator and nothing else; L_RE moves everything but the estimator."""
    dataset, config = corridor(), replace(SMALL_RUN, passes=1, refine_passes=0)
    start = DeepSR(2, TINY, *image_statistics(dataset.frames, "deviation", 0.02), seed=0).state_dict()
    for losses in ("sr", "reconstruction", "both"):
        after = quiet(dataset, replace(config, losses=losses), tmp_path / losses).network.state_dict()
        for name, tensor in after.items():
            part = "sr" if name.startswith("successor") else "reconstruction"
            moves = losses in (part, "both") and name not in ("mean", "scale")
            assert torch.equal(tensor, start[name]) != moves, (losses, name)


def test_losses_do_not_meddle(tmp_path):
    """Joint training is the two trainings side by side: φ and ζ come out the same with and without L_SR."""
    dataset, config = corridor(), replace(SMALL_RUN, passes=1, refine_passes=0)
    both = quiet(dataset, config, tmp_path / "both").network.state_dict()
    alone = quiet(dataset, replace(config, losses="reconstruction"), tmp_path / "alone").network.state_dict()
    assert all(torch.equal(both[name], alone[name]) for name in both if not name.startswith("successor"))


@pytest.mark.parametrize("refine", [False, True], ids=["joint", "refine"])
def test_the_target_is_the_network_of_the_last_renewal(tmp_path, refine, monkeypatch):
    """Renewed at update 0, 7, 14 …: the target is neither older nor newer than that."""
    seen = []

    def update(self, *batch):
        state = self.network.state_dict()
        seen.append((state["successor2.weight"].clone(), self.target.state_dict()["successor2.weight"].clone()))
        return original(self, *batch)

    original = Learner.update
    monkeypatch.setattr(Learner, "update", update)
    phases = {"passes": 0, "refine_passes": 4} if refine else {"passes": 4, "refine_passes": 0}
    config = replace(SMALL_RUN, batch=16, **phases, target_period=5, refine_target_period=5)
    quiet(corridor(), config, tmp_path)
    assert len(seen) == 12
    for number, (_network, target) in enumerate(seen):
        assert torch.equal(target, seen[number // 5 * 5][0])
    assert not torch.equal(seen[4][0], seen[4][1])


def test_each_pass_meets_every_transition_once_in_another_order(tmp_path, monkeypatch):
    dataset, met = corridor(), []
    for source in (FrameBatches, FeatureBatches):

        def record(self, rows, original=source.__call__):
            met.append(rows)
            return original(self, rows)

        monkeypatch.setattr(source, "__call__", record)
    quiet(dataset, replace(SMALL_RUN, batch=20, refine_batch=30, refine_passes=2), tmp_path)
    assert [len(rows) for rows in met] == 6 * [20] + 4 * [30]  # 60 transitions
    passes = np.concatenate(met).reshape(4, 60)
    assert (np.sort(passes) == dataset.transitions).all()
    assert len({tuple(order) for order in passes}) == 4


@pytest.mark.parametrize("normalisation", ["raw", "mean", "deviation"])
def test_image_statistics(normalisation):
    frames = np.random.default_rng(0).integers(0, 256, (600, 84, 84), dtype=np.uint8)
    frames[:, :40] = 7  # pixels that never change
    mean, scale = image_statistics(frames, normalisation, 0.02)
    exact = {"raw": (0, 1), "mean": (frames.mean(axis=0) / 255, 1)}
    exact["deviation"] = (frames.mean(axis=0) / 255, np.maximum(frames.std(axis=0) / 255, 0.02))
    np.testing.assert_allclose(mean, np.broadcast_to(exact[normalisation][0], (84, 84)), atol=1e-12)
    np.testing.assert_allclose(scale, np.broadcast_to(exact[normalisation][1], (84, 84)), atol=1e-12)


# --- stopped and started again --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The small run, never stopped."""
    return quiet(corridor(), SMALL_RUN, tmp_path_factory.mktemp("whole"))


def keep_training(folder: str) -> None:
    """What the killed processes do: train the small run, with a checkpoint after every update."""
    quiet(corridor(), SMALL_RUN, folder, checkpoint_seconds=0.0)


def progress_of(folder: Path) -> int:
    try:
        return int(json.loads((folder / "run.json").read_text())["update"])
    except FileNotFoundError:
        return -1


def test_killed_at_any_moment_the_run_ends_the_same(tmp_path, whole):
    """SIGKILL in the joint passes and in the refining ones, then resume: the same weights and losses, bit for bit."""
    total, joint = 2 * 7 + 3 * 3, 2 * 7  # 60 transitions: 7 batches of 8, 3 of 16
    assert whole.history["update"].tolist() == list(range(1, total + 1))
    chance, folder, kills = random.Random(0), tmp_path / "killed", []
    for after in (-1, 4, joint - 2, joint + 2):  # the first before or at the very first checkpoint
        process = subprocess_of(f"t.keep_training({str(folder)!r})")
        while progress_of(folder) <= after and process.poll() is None:
            time.sleep(0.0005)
        time.sleep(chance.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills.append(progress_of(folder))
        if kills[-1] >= 0:
            assert load_run(folder).finished == (kills[-1] == total)  # what a kill leaves can always be read
    assert any(0 < update < joint for update in kills), kills
    assert any(joint <= update < total for update in kills), kills
    resumed = quiet(corridor(), SMALL_RUN, folder)
    assert same(resumed, whole)
    for name in ("update", "reconstruction", "successor"):
        np.testing.assert_array_equal(resumed.history[name], whole.history[name])
    assert sorted(path.name for path in folder.iterdir()) == [f"checkpoint-{total:09d}.safetensors", "run.json"]


class Stop(Exception):
    pass


def stop_before(moment: int, patch) -> None:
    """Raise Stop instead of the update after `moment` of them."""
    done, original = [], Learner.update

    def update(self, *batch):
        if len(done) == moment:
            raise Stop
        done.append(1)
        return original(self, *batch)

    patch.setattr(Learner, "update", update)


@pytest.mark.parametrize("moment", [0, 1, 5, 7, 13, 14, 15, 17, 22])
def test_stopped_before_any_update_the_run_ends_the_same(tmp_path, whole, moment, monkeypatch):
    """The same at chosen moments, before and after a renewal of the target, a pass, and the change of phase."""
    with monkeypatch.context() as patch:
        stop_before(moment, patch)
        with pytest.raises(Stop):
            quiet(corridor(), SMALL_RUN, tmp_path / "stopped", checkpoint_seconds=0.0)
    assert progress_of(tmp_path / "stopped") == moment
    assert same(quiet(corridor(), SMALL_RUN, tmp_path / "stopped"), whole)


def test_a_kill_between_the_two_renames_leaves_the_old_checkpoint(tmp_path, whole, monkeypatch):
    """New tensors are there, run.json still names the old ones: those are kept, and load."""
    original, written = storage.replace_file, []

    def replace_file(path, data):
        written.append(path.name)
        if written.count("run.json") == 6:
            raise Stop
        original(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "replace_file", replace_file)
        with pytest.raises(Stop):
            quiet(corridor(), SMALL_RUN, tmp_path / "cut", checkpoint_seconds=0.0)
    names = {path.name for path in (tmp_path / "cut").iterdir()}
    assert {"checkpoint-000000004.safetensors", "checkpoint-000000005.safetensors", "run.json"} <= names
    assert load_run(tmp_path / "cut").about["update"] == 4
    assert same(quiet(corridor(), SMALL_RUN, tmp_path / "cut"), whole)


def test_a_finished_run_is_returned_as_it_is(tmp_path, monkeypatch):
    whole = quiet(corridor(), SMALL_RUN, tmp_path)
    monkeypatch.setattr(Learner, "update", lambda *_: pytest.fail("a finished run was trained on"))
    again = quiet(corridor(), SMALL_RUN, tmp_path)
    assert same(again, whole)
    assert again.finished
    assert load_run(tmp_path).config == SMALL_RUN


@pytest.mark.parametrize("change", [{"gamma": 0.8}, {"seed": 1}, {"passes": 3}, {"sizes": Sizes(4, 16, 33)}])
def test_other_settings_are_refused(tmp_path, change):
    quiet(corridor(), SMALL_RUN, tmp_path)
    name = next(iter(change))
    with pytest.raises(ValueError, match=f"other settings .*{name}.* choose another folder"):
        quiet(corridor(), replace(SMALL_RUN, **change), tmp_path)


def test_other_data_are_refused(tmp_path):
    quiet(corridor(), SMALL_RUN, tmp_path)
    with pytest.raises(ValueError, match="another dataset: choose another folder"):
        quiet(corridor(seed=1), SMALL_RUN, tmp_path)


def test_the_same_seed_is_the_same_run_and_another_is_not(tmp_path, whole):
    assert same(quiet(corridor(), SMALL_RUN, tmp_path / "same"), whole)
    assert not same(quiet(corridor(), replace(SMALL_RUN, seed=1), tmp_path / "other"), whole)


# --- faster, and the same --------------------------------------------------------------------------------------------


def plain_loop(dataset, config: Config) -> DeepSR:
    """The joint passes written out: no autocast, no layout, no bookkeeping."""
    network = DeepSR(dataset.n_actions, config.sizes, *image_statistics(dataset.frames, "deviation", config.floor))
    target = DeepSR(dataset.n_actions, config.sizes, network.mean, network.scale).requires_grad_(False)
    optimiser = torch.optim.RMSprop(network.parameters(), lr=config.step_size, alpha=config.decay, eps=config.epsilon)
    update, objective = 0, Objective(network, target, config.gamma)
    for number in range(config.passes):
        order = np.random.default_rng([config.seed, 0, number]).permutation(dataset.transitions)
        for k in range(len(order) // config.batch):
            if update % config.target_period == 0:
                target.load_state_dict(network.state_dict())
            rows = order[k * config.batch : (k + 1) * config.batch]
            now, then = (torch.from_numpy(dataset.frames[r]) for r in (rows, rows + 1))
            actions = torch.from_numpy(dataset.actions[rows].astype(np.int64))
            follows = torch.from_numpy(1.0 - np.isin(dataset.ends[rows], (1, 2)).astype(np.float32))
            optimiser.zero_grad()
            objective(now, actions, then, follows).sum().backward()
            optimiser.step()
            update += 1
    return network


def test_fp32_is_the_plain_loop_bit_for_bit(tmp_path):
    config = replace(SMALL_RUN, refine_passes=0)
    trained = quiet(corridor(), config, tmp_path, precision="fp32").network.state_dict()
    with devices.threads(1):
        plain = plain_loop(corridor(), config).state_dict()
    assert all(torch.equal(trained[name], plain[name]) for name in plain)


def test_bf16_is_another_rounding_of_the_same_learning(tmp_path, monkeypatch):
    """Weights stay float32; after a pass over a game's frames the prediction of unseen ones is as good within 1 %."""
    losses, game, kinds, predict = {}, "montezuma_revenge", set(), DeepSR.predict
    monkeypatch.setattr(
        DeepSR, "predict", lambda self, phi, actions: kinds.add(phi.dtype) or predict(self, phi, actions)
    )
    data = collect(game, 1500, tmp_path / "data", progress=False)
    unseen = collect(game, 400, tmp_path / "unseen", seed=1, progress=False)
    config = Config(Sizes(8, 64, 128), 0.9, passes=1, target_period=20, log_every=10)
    batch = FrameBatches(unseen, True, torch.device("cpu"))(unseen.transitions)
    for precision in ("fp32", "bf16"):
        network = quiet(data, config, tmp_path / precision, precision=precision).network
        assert kinds == {torch.bfloat16 if precision == "bf16" else torch.float32}
        kinds.clear()
        assert all(tensor.dtype == torch.float32 for tensor in network.state_dict().values())
        assert network.conv2.weight.is_contiguous(memory_format=torch.channels_last) == (precision == "bf16")
        with torch.no_grad():
            losses[precision] = Objective(network, network, 0.9, "reconstruction")(*batch).sum().item()
        kinds.clear()
    assert losses["bf16"] != losses["fp32"]
    assert abs(losses["bf16"] / losses["fp32"] - 1) < 0.01


STEADY_RUN = replace(SMALL_RUN, step_size=1e-4)  # with larger steps L_SR of so small a run grows without limit


@pytest.mark.parametrize("moment", [1, 13, 17])
def test_in_bf16_a_stopped_run_ends_the_same(tmp_path, moment, monkeypatch):
    """In both phases; and the precision of a run is kept without being asked for again."""
    whole = quiet(corridor(), STEADY_RUN, tmp_path / "whole", precision="bf16")
    with monkeypatch.context() as patch:
        stop_before(moment, patch)
        with pytest.raises(Stop):
            quiet(corridor(), STEADY_RUN, tmp_path / "stopped", checkpoint_seconds=0.0, precision="bf16")
    assert progress_of(tmp_path / "stopped") == moment
    monkeypatch.setattr(devices, "faster_precision", lambda *_: pytest.fail("the precision was decided again"))
    resumed = quiet(corridor(), STEADY_RUN, tmp_path / "stopped", precision="auto")
    assert same(resumed, whole)
    assert resumed.about["precision"] == "bf16"


def test_the_precision_is_decided_once_and_recorded(tmp_path, monkeypatch):
    for precision in ("fp32", "bf16"):
        asked = []
        monkeypatch.setattr(devices, "faster_precision", lambda *sizes, p=precision, a=asked: a.append(sizes) or p)
        run = quiet(corridor(), STEADY_RUN, tmp_path / precision, precision="auto")
        assert run.about["precision"] == load_run(tmp_path / precision).about["precision"] == precision
        assert same(run, quiet(corridor(), STEADY_RUN, tmp_path / f"{precision} by name", precision=precision))
        quiet(corridor(), STEADY_RUN, tmp_path / precision, precision="auto")
        assert asked == [(2, TINY, 8)]
    with pytest.raises(ValueError, match=r"holds a run in bf16, not in fp32: choose another folder"):
        quiet(corridor(), STEADY_RUN, tmp_path / "bf16", precision="fp32")
    with pytest.raises(ValueError, match=r"precision must be one of 'auto', 'fp32', 'bf16', got 'half'"):
        quiet(corridor(), STEADY_RUN, tmp_path / "half", precision="half")


@pytest.mark.parametrize(
    ("fp32", "bf16", "chosen"), [(1.0, 0.5, "bf16"), (1.0, 0.95, "fp32"), (1.0, 1.5, "fp32"), (1.0, 9.0, "fp32")]
)
def test_bf16_is_taken_where_it_pays(fp32, bf16, chosen, monkeypatch):
    """On a clock that charges each update what it is told to; a slow imitation is tried once only."""
    clock, updates = [0.0], []

    def update(self, *batch):
        updates.append(self.bfloat16)
        clock[0] += bf16 if self.bfloat16 else fp32

    monkeypatch.setattr(Learner, "update", update)
    monkeypatch.setattr(devices.time, "perf_counter", lambda: clock[0])
    assert devices.faster_precision(2, TINY, 8) == chosen
    assert len(updates) == (2 if bf16 > 2 * fp32 else 8)


def test_threads_are_those_of_free_cores_and_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "cores", lambda: 4)
    for load, free in ((0.2, 4), (2.6, 1), (1.4, 3), (40.0, 1)):
        monkeypatch.setattr(devices.psutil, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert devices.free_cores() == free
    config = replace(SMALL_RUN, passes=1, refine_passes=0)
    run = train(corridor(), config, tmp_path, device="cpu", progress=False, threads="auto", until=8)
    assert run.about["threads"] == 1
    monkeypatch.setattr(devices.psutil, "getloadavg", lambda: (0.0, 0.0, 0.0))
    assert train(corridor(), config, tmp_path, device="cpu", progress=False, threads="auto").about["threads"] == 1


def test_a_run_can_be_taken_in_stages(tmp_path, whole):
    """`until` stops after a whole entry of the history, and what goes on from there is the whole run."""
    for until, update, finished in ((1, 1, False), (8, 1, False), (9, 2, False), (112, 14, False), (113, 23, True)):
        run = quiet(corridor(), SMALL_RUN, tmp_path, until=until)
        assert (run.about["update"], run.finished) == (update, finished)
        assert load_run(tmp_path).finished == finished
    assert same(run, whole)
    np.testing.assert_array_equal(run.history["successor"], whole.history["successor"])
    coarse = quiet(corridor(), replace(SMALL_RUN, log_every=5), tmp_path / "coarse", until=9)
    assert coarse.about["update"] == 5
    with pytest.raises(ValueError, match="until must be at least 1, got 0"):
        quiet(corridor(), SMALL_RUN, tmp_path, until=0)


# --- training that goes astray --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_a_senseless_loss_stops_and_leaves_the_last_good_checkpoint(tmp_path, whole, value, monkeypatch):
    original, done = Objective.forward, 0

    def forward(self, *batch):
        nonlocal done
        done += 1
        return original(self, *batch) + (torch.tensor([0.0, value]) if done == 13 else 0)

    monkeypatch.setattr(Objective, "forward", forward)
    with pytest.raises(FloatingPointError, match=r"L_SR was (nan|inf|1e\+30) at update 13.*last good checkpoint"):
        quiet(corridor(), SMALL_RUN, tmp_path, checkpoint_seconds=0.0)
    left = load_run(tmp_path)
    assert left.about["update"] == 12
    assert not left.finished
    monkeypatch.undo()
    assert same(quiet(corridor(), SMALL_RUN, tmp_path), whole)


# --- files that lie -------------------------------------------------------------------------------------------------


class Hostile:
    def __reduce__(self):
        return os.mkdir, (os.environ["HOSTILE"],)


def disturb(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif how == "a bit flipped":
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif how == "a pickle":
        path.write_bytes(pickle.dumps(Hostile()))
    elif how == "missing":
        path.unlink()
    else:
        raise AssertionError(how)


@pytest.mark.parametrize(
    ("how", "described"),
    [
        ("truncated", False),
        ("a bit flipped", False),
        ("a pickle", False),
        ("missing", False),
        ("truncated", True),  # True: the description was changed with the file
        ("a pickle", True),
    ],
)
def test_wrong_tensors_give_one_clear_error(tmp_path, how, described, monkeypatch):
    """And nothing inside a file is ever run."""
    monkeypatch.setenv("HOSTILE", str(tmp_path / "ran"))
    run = quiet(corridor(), replace(SMALL_RUN, passes=1, refine_passes=0), tmp_path / "run")
    export_weights(run, tmp_path / "weights")
    for folder, description in ((tmp_path / "run", "run.json"), (tmp_path, "weights.json")):
        tensors = next(folder.glob("*.safetensors"))
        disturb(tensors, how)
        if described:
            about = json.loads((folder / description).read_text())
            about["sha256"] = storage.sha256(tensors.read_bytes())
            (folder / description).write_text(json.dumps(about))
    message = {False: "checksums differ|is missing", True: "is not a safetensors file"}[described]
    with pytest.raises(ValueError, match=message):
        load_run(tmp_path / "run")
    with pytest.raises(ValueError, match=message):
        quiet(corridor(), replace(SMALL_RUN, passes=1, refine_passes=0), tmp_path / "run")
    with pytest.raises(ValueError, match=message):
        load_network(tmp_path / "weights")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": [4, 16, 64]}, "factor.weight has shape"),
        ({"sizes": [10**6, 10**6, 10**6]}, "has shape"),
        ({"sizes": [4, 16]}, "does not describe a network"),
        ({"n_actions": "two"}, "does not describe a network"),
        ({"file": "../other.safetensors"}, "does not name its tensors"),
        ({"file": None}, "does not name its tensors"),
        ({"config": {"speed": 1}}, "settings that this version does not know"),
        ({"history": "long"}, "history"),
        ({"history": [[None, 1.0, 1.0, 1.0]]}, "history"),
        ({"update": -5}, "cannot be taken up .update must be at least 0, got -5"),
        ({"update": 10**9}, "cannot be taken up .update is 1000000000, but its history ends at 7"),
        ({"update": None}, "cannot be taken up .update must be a whole number"),
    ],
)
def test_wrong_descriptions_give_one_clear_error(tmp_path, change, message):
    quiet(corridor(), replace(SMALL_RUN, passes=1, refine_passes=0), tmp_path)
    about = json.loads((tmp_path / "run.json").read_text()) | change
    (tmp_path / "run.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match=message):
        load_run(tmp_path)


@pytest.mark.parametrize("update", [-5, 10**9, 3])
def test_a_run_that_lies_about_its_updates_is_not_taken_up(tmp_path, update):
    quiet(corridor(), SMALL_RUN, tmp_path, until=50)
    about = json.loads((tmp_path / "run.json").read_text()) | {"update": update}
    (tmp_path / "run.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match="cannot be taken up"):
        quiet(corridor(), SMALL_RUN, tmp_path)


@pytest.mark.parametrize("part", ["squares", "target"])
def test_a_checkpoint_of_other_shapes_is_refused(tmp_path, part):
    """A single number would be spread over all weights without a word."""
    quiet(corridor(), SMALL_RUN, tmp_path, until=50)
    tensors, about = storage.load_tensors(tmp_path / "run")
    name = f"{part}.successor1.weight"
    storage.save_tensors(tmp_path / "run", tensors | {name: torch.ones(1)}, about, about["file"])
    with pytest.raises(ValueError, match=f"The checkpoint's {name} is not of this network's shape"):
        quiet(corridor(), SMALL_RUN, tmp_path)


@pytest.mark.parametrize("until", [50, None], ids=["unfinished", "finished"])
def test_what_a_killed_writer_left_goes_with_the_next_run(tmp_path, until):
    """Also what one of the first edition left, whose names were others; and where nothing is left to be trained."""
    quiet(corridor(), SMALL_RUN, tmp_path, until=until)
    for name in ("run.json.part", "checkpoint-000000003.safetensors", "checkpoint-000000003.safetensors.part"):
        (tmp_path / name).write_bytes(b"half")
    quiet(corridor(), SMALL_RUN, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-000000023.safetensors", "run.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "\x80", "[" * 100_000])
def test_descriptions_that_are_none(tmp_path, text):
    (tmp_path / "run.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="is not a description of a network"):
        load_run(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing was trained or saved there"):
        load_run(tmp_path / "nowhere")


def test_weights_in_half_precision_come_back(tmp_path, whole):
    run = whole
    export_weights(run, tmp_path / "weights")
    network = load_network(tmp_path / "weights")
    assert (tmp_path / "weights.safetensors").stat().st_size < 2.2 * sum(
        w.numel() for w in network.parameters()
    ) + 70_000
    frames = torch.from_numpy(corridor().frames[:8])
    with torch.no_grad():
        torch.testing.assert_close(network.phi(frames), run.network.phi(frames), rtol=0.02, atol=0.02)
    assert torch.equal(network.mean, run.network.mean)
    about = json.loads((tmp_path / "weights.json").read_text())
    assert about["config"]["gamma"] == SMALL_RUN.gamma
    assert len(about["history"]) == len(run.history["update"])


# --- devices and processes ------------------------------------------------------------------------------------------


def one_step_on_meta(spoil: str = "") -> None:
    """Normalisation, both losses, the target, RMSProp, and refining, with every tensor on the meta device."""
    from torch._subclasses.fake_tensor import FakeTensorMode  # here: slow to import, and the killed processes need none

    meta, dataset = torch.device("meta"), corridor(16)
    with FakeTensorMode(allow_non_fake_inputs=False), meta:
        network, target = DeepSR(2, TINY), DeepSR(2, TINY)
        target.requires_grad_(False)
        if spoil == "mean":
            network.mean = torch.zeros(84, 84, device="cpu")
        frames = torch.empty(len(dataset), 84, 84, dtype=torch.uint8)
        actions, bootstrap = torch.zeros(8, dtype=torch.long), torch.ones(8)
        if spoil == "bootstrap":
            bootstrap = torch.ones(8, device="cpu")
        if spoil == "actions":
            actions = torch.zeros(8, dtype=torch.long, device="cpu")
        if spoil == "target":
            target.successor1.weight = torch.nn.Parameter(torch.zeros(32, 16, device="cpu"), requires_grad=False)
        choose_trained(network, "both", stop_gradient=True)
        learner = Learner(Objective(network, target, 0.9), network, target)
        learner.renew_target()
        losses = learner.update(frames[:8], actions, frames[8:], bootstrap)
        choose_trained(network, "both", stop_gradient=True, refine=True)
        learner = Learner(Refinement(network, target, 0.9), network, target)
        losses += learner.update(network.phi(frames[:8]), network.phi(frames[8:]), bootstrap)
        assert losses.device.type == "meta"
        assert all(tensor.device.type == "meta" for tensor in learner.tensors().values())


def test_a_step_leaves_nothing_on_another_device():
    one_step_on_meta()


@pytest.mark.parametrize("spoil", ["mean", "bootstrap", "actions", "target"])
def test_a_tensor_left_on_the_cpu_is_noticed(spoil):
    """The test above would fail for a device mistake: here are some."""
    with pytest.raises(RuntimeError, match="device"):
        one_step_on_meta(spoil)


def test_batches_are_sent_to_the_device():
    dataset, meta = corridor(16), torch.device("meta")
    rows = dataset.transitions[:8]
    for batch in (
        FrameBatches(dataset, True, meta)(rows),
        FeatureBatches(dataset, DeepSR(2, TINY).to(meta), True)(rows),
    ):
        assert {tensor.device.type for tensor in batch} == {"meta"}
        assert all(len(tensor) == 8 for tensor in batch)


def test_batches_hold_the_right_rows():
    dataset = corridor()
    rows = dataset.transitions[::7].copy()
    frames, actions, following, bootstrap = FrameBatches(dataset, False, torch.device("cpu"))(rows)
    np.testing.assert_array_equal(frames.numpy(), dataset.frames[rows])
    np.testing.assert_array_equal(following.numpy(), dataset.frames[rows + 1])
    np.testing.assert_array_equal(actions.numpy(), dataset.actions[rows])
    np.testing.assert_array_equal(bootstrap.numpy(), dataset.ends[rows] != 2)
    resident = FrameBatches(dataset, False, torch.device("cpu"))
    resident.resident = torch.from_numpy(dataset.frames)  # as on a GPU
    assert all(torch.equal(*pair) for pair in zip(resident(rows), (frames, actions, following, bootstrap), strict=True))
    network = DeepSR(2, TINY)
    phi, next_phi, same_bootstrap = FeatureBatches(dataset, network, False)(rows)
    with torch.no_grad():
        torch.testing.assert_close(phi, network.phi(frames))
        torch.testing.assert_close(next_phi, network.phi(following))
    assert torch.equal(bootstrap, same_bootstrap)


def test_two_processes_learn_what_one_does(tmp_path, whole):
    """The same global batch, each process with half of it: equal up to the order of sums."""
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    call = f"t.keep_training({str(tmp_path / 'two')!r})"
    processes = [subprocess_of(call, RANK=str(rank), LOCAL_RANK=str(rank), **shared) for rank in range(2)]
    assert [process.wait(timeout=900) for process in processes] == [0, 0]
    two = load_run(tmp_path / "two")
    assert two.finished
    for name in ("reconstruction", "successor"):
        np.testing.assert_allclose(two.history[name], whole.history[name], rtol=1e-4)
    for name, tensor in whole.network.state_dict().items():
        torch.testing.assert_close(two.network.state_dict()[name], tensor, rtol=0, atol=1e-4, msg=name)


def test_a_batch_that_cannot_be_shared_is_refused(tmp_path):
    from eigenlib.atari.training import _Trainer

    with pytest.raises(ValueError, match="batch = 8 cannot be shared equally by 3 processes"):
        _Trainer(corridor(), SMALL_RUN, tmp_path, torch.device("cpu"), 0, 3, False)


def test_devices_that_are_not_there():
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(ValueError, match="There is no device 'gpu'"):
        choose_device("gpu")
    with pytest.raises(ValueError, match="There is no device 'cuda:first'"):
        choose_device("cuda:first")
    with pytest.raises(ValueError, match="CUDA devices, so 'cuda:99' cannot be used"):
        choose_device("cuda:99")


def test_a_failure_to_compile_is_a_warning(tmp_path, monkeypatch):
    def broken(module, **options):
        def program(*batch):
            raise RuntimeError("no compiler here")

        return program

    config = replace(SMALL_RUN, passes=1, refine_passes=0)
    monkeypatch.setattr(torch, "compile", broken)
    with pytest.warns(UserWarning, match="torch.compile failed, so training goes on without it: no compiler here"):
        run = quiet(corridor(), config, tmp_path / "compiled", compile=True)
    assert same(run, quiet(corridor(), config, tmp_path / "plain"))


def test_a_compiled_module_is_compiled_once(monkeypatch):
    """And its parameters count once: DistributedDataParallel would otherwise meet them twice."""
    made = []
    monkeypatch.setattr(torch, "compile", lambda module, **options: made.append(options) or module)
    compiled = Compiled(torch.nn.Linear(2, 2), "reduce-overhead")
    for _ in range(3):
        compiled(torch.ones(1, 2))
    assert made == [{"mode": "reduce-overhead"}]
    assert [name for name, _ in compiled.named_parameters(remove_duplicate=False)] == ["module.weight", "module.bias"]


def test_threads_are_given_back(tmp_path):
    before = torch.get_num_threads()
    train(corridor(), replace(SMALL_RUN, passes=1, refine_passes=0), tmp_path, device="cpu", progress=False)
    assert torch.get_num_threads() == before
    assert cores() >= 1


# --- settings that make no sense ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 1.0},
        {"batch": 0},
        {"passes": -1},
        {"step_size": 0.0},
        {"losses": "all"},
        {"normalisation": "std"},
        {"sizes": "big"},
        {"decay": 1.0},
        {"target_period": 1.5},
        {"floor": float("inf")},
        {"seed": True},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValueError, match=r"must|There is no network size"):
        Config(**wrong)


def test_less_data_than_a_batch(tmp_path):
    with pytest.raises(ValueError, match="60 transitions, fewer than one batch of 61"):
        quiet(corridor(), replace(SMALL_RUN, batch=61), tmp_path)
    assert not tmp_path.exists() or not list(tmp_path.iterdir())


def test_two_runs_in_one_folder_are_refused(tmp_path):
    with alone_in(tmp_path / "run"), pytest.raises(ValueError, match="Another process is at work in"):
        quiet(corridor(), SMALL_RUN, tmp_path / "run")
    assert not (tmp_path / "run").exists()
