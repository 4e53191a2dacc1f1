"""`eigenlib doctor --gpu`: what it would say of a GPU that learns, of one that does not, and of none. Without a GPU."""

import numpy as np
import pytest

from eigencourse import doctor_gpu as gpu
from eigencourse.cli import main
from eigencourse.doctor import Finding
from eigenlib.atari.learning import Learner


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(gpu, "UPDATES", 6)
    monkeypatch.setattr(gpu, "_speed", lambda data, place: Finding("ok", "gpu speed", "fast"))
    monkeypatch.setattr(gpu.devices, "cores", lambda: 1)


def test_without_a_gpu_it_says_so_and_all_is_well(capsys, monkeypatch):
    monkeypatch.setattr("eigencourse.doctor.examine", lambda: iter([Finding("ok", "python", "3.11")]))
    monkeypatch.setattr(gpu.devices, "choose_device", lambda name: gpu.torch.device("cpu"))
    monkeypatch.setattr(gpu, "learned", lambda *_: pytest.fail("there is nothing to train on"))
    assert main(["doctor", "--gpu"]) == 0
    assert "gpu: none that this PyTorch can use" in capsys.readouterr().out


def test_a_device_that_learns_the_same_passes(quick):
    """The CPU in the place of a GPU: in fp32 the same bits, in bf16 within the tolerances."""
    fp32, bf16, speed = gpu.examine_gpu("cpu")
    assert (fp32.status, bf16.status, speed.status) == ("ok", "ok", "ok")
    assert "losses within 0.0% (allowed 1%), weights 0% of their way apart" in fp32.what
    assert "weights 0% of" not in bf16.what  # it was another precision


@pytest.mark.parametrize("spoil", ["gradients", "data", "still", "nan"])
def test_a_device_that_learns_something_else_is_found_out(quick, spoil, monkeypatch):
    """From the second training on, which is the first on the device: other steps, other frames, none, or NaN."""
    trainings, learned, update = [], gpu.learned, Learner.update

    def spoiled(self, *batch):
        if len(trainings) > 1 and spoil == "gradients":
            self.set_step_size(-1e-4)
        if len(trainings) > 1 and spoil == "still":
            self.set_step_size(0.0)
        if len(trainings) > 1 and spoil == "data":
            batch = (batch[0].flip(0), *batch[1:])
        losses = update(self, *batch)
        return losses * float("nan") if len(trainings) > 1 and spoil == "nan" else losses

    monkeypatch.setattr(gpu, "learned", lambda *a: trainings.append(1) or learned(*a))
    monkeypatch.setattr(Learner, "update", spoiled)
    if spoil == "nan":
        with pytest.raises(FloatingPointError, match="went astray"):
            list(gpu.examine_gpu("cpu"))
        return
    fp32, bf16, _ = gpu.examine_gpu("cpu")
    assert fp32.status == bf16.status == "error"
    assert "train with --device cpu" in fp32.advice


def test_losses_and_weights_are_judged_apart():
    rng = np.random.default_rng(0)
    first = gpu._weights(gpu.DeepSR(2, "small"))
    way = 0.01 * rng.standard_normal(len(first))
    truth = gpu.Learned(np.ones(5), first + way)
    for losses, share, status in ((1.0, 0.0, "ok"), (1.005, 0.2, "ok"), (1.02, 0.0, "error"), (1.0, 0.3, "error")):
        found = gpu.Learned(np.array([1, 1, losses, 1, 1]), first + way * (1 + share))
        assert gpu.compared(truth, found, "fp32", "cuda").status == status
    broken = gpu.Learned(np.ones(5), np.full_like(first, np.nan))
    assert gpu.compared(truth, broken, "bf16", "cuda").status == "error"


def test_hours_follow_from_samples_a_second(monkeypatch):
    """On a clock that charges half a second an update of 32: 64 a second, 21.7 h for 5 million."""
    now = [0.0]

    def update(self, *batch):
        now[0] += 0.5
        return gpu.torch.zeros(2)

    monkeypatch.setattr(Learner, "update", update)
    monkeypatch.setattr(gpu.time, "perf_counter", lambda: now[0])
    found = gpu._speed(gpu.drawn_frames(), gpu.torch.device("cpu"))
    assert found.what == "64 samples a second in fp32: --preset paper takes 21.7 h"
