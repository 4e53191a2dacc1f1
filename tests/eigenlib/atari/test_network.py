"""DeepSR: the layers of Fig. 2, what the action does, and where the gradient of ψ stops."""

import inspect

import numpy as np
import pytest
import torch

from eigenlib.atari import pipeline, training
from eigenlib.atari.emulator import Emulator
from eigenlib.atari.learning import Learner, Objective
from eigenlib.atari.network import DEVIATIONS, SIZES, DeepSR, Sizes
from eigenlib.experiments import deep_rooms

TINY = Sizes(4, 16, 32)


def some_frames(count: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (count, 84, 84), dtype=np.uint8))


def test_layers_are_those_of_the_paper():
    """Three convolutions 84 → 40 → 20 → 10, F features, the way back 10 → 20 → 40 → 84, and 2F → F for ψ."""
    with torch.device("meta"):
        network = DeepSR(18, "paper")
    layers = {layer.name: layer for layer in network.layers()}
    shapes = {name: layer.shape for name, layer in layers.items()}
    assert shapes == {
        "conv1": (64, 40, 40),
        "conv2": (64, 20, 20),
        "conv3": (64, 10, 10),
        "features": (1024,),
        "factor": (2048,),
        "action": (2048,),
        "merge": (1024,),
        "expand": (6400,),
        "deconv1": (64, 20, 20),
        "deconv2": (64, 40, 40),
        "deconv3": (1, 84, 84),
        "successor1": (2048,),
        "successor2": (1024,),
    }
    assert sum(layer.parameters for layer in layers.values()) == sum(w.numel() for w in network.parameters())
    assert layers["conv2"].parameters == 64 * 64 * 36 + 64
    assert layers["action"].parameters == 18 * 2048


@pytest.mark.parametrize("name", SIZES)
def test_shapes(name):
    network, frames = DeepSR(7, name), some_frames(2)
    phi, prediction, psi = network(frames, torch.tensor([0, 6]))
    assert phi.shape == psi.shape == (2, SIZES[name].features)
    assert prediction.shape == (2, 84, 84)
    assert phi.min() == 0  # rectified


def test_an_action_is_a_row_that_multiplies():
    """ζ = decode(W (Uφ ⊙ V a)): with the row of an action doubled, the product is doubled, and nothing else is."""
    network = DeepSR(3, TINY)
    seen = []
    network.merge.register_forward_hook(lambda _layer, inputs, _output: seen.append(inputs[0].clone()))
    phi = network.phi(some_frames(2)).detach()
    network.predict(phi, torch.tensor([1, 2]))
    with torch.no_grad():
        network.action.weight[1] *= 2
    network.predict(phi, torch.tensor([1, 2]))
    torch.testing.assert_close(seen[1], seen[0] * torch.tensor([[2.0], [1.0]]))
    torch.testing.assert_close(seen[0][1], network.factor(phi)[1] * network.action.weight[2])


def test_normalisation_and_its_inverse():
    rng = np.random.default_rng(0)
    mean, scale = rng.random((84, 84)), rng.uniform(0.02, 1, (84, 84))
    network, frames = DeepSR(4, TINY, mean, scale), some_frames(3)
    seen = network.normalise(frames)
    np.testing.assert_allclose(seen.numpy(), (frames.numpy() / 255 - mean) / scale, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(network.to_pixels(seen), frames.float(), rtol=0, atol=1e-2)
    assert network.to_pixels(seen + 1000).max() == 255
    assert network.to_pixels(seen - 1000).min() == 0


def gradients(network: DeepSR, stop_gradient: bool) -> dict[str, float]:
    network.zero_grad()
    network.psi(network.phi(some_frames(4)), stop_gradient).square().sum().backward()
    return {name: 0.0 if w.grad is None else float(w.grad.abs().sum()) for name, w in network.named_parameters()}


def test_the_gradient_of_psi_stops_at_phi():
    """The ø of Fig. 2: ψ's loss moves the SR estimator and nothing else."""
    stopped = gradients(DeepSR(4, TINY), stop_gradient=True)
    assert all((size > 0) == name.startswith("successor") for name, size in stopped.items())


def test_the_gradient_of_psi_reaches_phi_when_asked():
    flowing = gradients(DeepSR(4, TINY), stop_gradient=False)
    assert all((size > 0) == name.startswith(("successor", "conv", "features")) for name, size in flowing.items())


def test_initial_weights_depend_on_the_seed_alone():
    state = torch.random.get_rng_state()
    first, again, other = DeepSR(4, TINY, seed=3), DeepSR(4, TINY, seed=3), DeepSR(4, TINY, seed=4)
    assert torch.equal(torch.random.get_rng_state(), state), "building a network must not move torch's random state"
    for (name, a), b, c in zip(first.named_parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        assert name.endswith("bias") or not torch.equal(a, c)


def test_prediction_learns_what_the_action_does():
    """One block that action 0 moves left and action 1 right: after training, both futures of one frame are predicted."""
    frames = np.zeros((3, 84, 84), np.uint8)
    for place in range(3):
        frames[place, 36:48, 12 + 24 * place : 24 + 24 * place] = 255
    everything = torch.from_numpy(frames)
    network = DeepSR(2, TINY, frames.mean(axis=0) / 255, np.maximum(frames.std(axis=0) / 255, 0.02))
    target = DeepSR(2, TINY).requires_grad_(False)
    learner = Learner(Objective(network, target, 0.9, "reconstruction"), network, target, step_size=1e-3)
    middle, actions, after = torch.tensor([1, 1]), torch.tensor([0, 1]), torch.tensor([0, 2])
    for _ in range(300):
        learner.update(everything[middle], actions, everything[after], torch.ones(2))
    with torch.no_grad():
        predicted = network.to_pixels(network.predict(network.phi(everything[middle]), actions))
    error = (
        (predicted[:, None] - everything[None].float()).square().mean(dim=(2, 3))
    )  # of each prediction to each place
    assert error.argmin(dim=1).tolist() == [0, 2], "the prediction ignores the action"
    assert error[0, 0] < 0.1 * error[0, 1]
    assert error[1, 2] < 0.1 * error[1, 1]


@pytest.mark.parametrize("sizes", ["huge", (4, 16), (4, 16, 0), (4, 16, 2.5)])
def test_wrong_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match=r"size|Sizes"):
        DeepSR(4, sizes)


def test_wrong_images_are_refused():
    with pytest.raises(ValueError, match=r"mean must be an array of numbers of shape \(84, 84\)"):
        DeepSR(4, TINY, mean=np.zeros((84, 83)))


def test_every_open_choice_is_listed():
    """The notebook prints this table: three filled cells a row, no choice twice."""
    assert len({choice for choice, _ours, _why in DEVIATIONS}) == len(DEVIATIONS) >= 11
    assert all(isinstance(cell, str) and cell for row in DEVIATIONS for cell in row)


def test_the_numbers_in_the_list_are_those_of_the_code():
    ours = {choice: numbers for choice, numbers, _why in DEVIATIONS}
    usual, rooms, games = training.Config(), deep_rooms.CONFIG, pipeline.PRESETS["standard"].config
    assert f"every {usual.target_period} updates (every {rooms.target_period} for the drawn" in ours["target network"]
    assert games.target_period == usual.target_period
    assert f"batches of {games.refine_batch}, " in ours["refining"]
    assert f"a target every {games.refine_target_period} updates" in ours["refining"]
    assert f"batches of {rooms.refine_batch} and a target every {rooms.refine_target_period};" in ours["refining"]
    assert games.refine_step_size == rooms.refine_step_size == 1e-3
    assert pipeline.PRESETS["paper"].config.refine_passes == 0
    assert ours["batch"] == f"{usual.batch} transitions" == f"{games.batch} transitions"
    assert ours["γ"].startswith(f"{usual.gamma}, ")
    assert f"at least {usual.floor}" in ours["normalisation"]
    assert (usual.step_size, usual.decay, usual.epsilon) == (1e-4, 0.99, 1e-8)
    for name, words in (
        ("paper", "64 channels, 1024 features, 2048 factors"),
        ("standard", "half"),
        ("small", "a quarter"),
    ):
        divisor = {"half": 2, "a quarter": 4}.get(words, 1)
        assert f"{words}" in ours["layer sizes"]
        assert SIZES[name] == tuple(size // divisor for size in (64, 1024, 2048))
    assert ours["frame skip"].startswith(f"{inspect.signature(Emulator).parameters['frame_skip'].default}: ")
