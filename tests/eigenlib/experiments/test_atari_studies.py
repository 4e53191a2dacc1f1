"""The studies behind lessons 09 and 10: small ones run to the end, stopped ones go on, stored ones are whole."""

import numpy as np
import pytest
import torch

from eigenlib import storage
from eigenlib.atari import metrics, options
from eigenlib.atari.dataset import Dataset, open_dataset
from eigenlib.atari.emulator import Emulator
from eigenlib.atari.network import DeepSR, Sizes
from eigenlib.experiments import atari_studies

STORED = [name for name in atari_studies.STUDIES if (atari_studies.REFERENCE / f"{name}.json").is_file()]


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Everything in a folder of its own, and little of it."""
    for name, value in {
        "CACHE": tmp_path / "cache",
        "REFERENCE": tmp_path,
        "SAMPLES": 200,
        "HELD": 120,
        "ROWS": 200,
    }.items():
        monkeypatch.setattr(atari_studies, name, value)
    monkeypatch.setattr(atari_studies, "UPDATES", (0, 2))
    atari_studies._stored.cache_clear()
    yield tmp_path
    atari_studies._stored.cache_clear()


@pytest.fixture
def screens(monkeypatch):
    """The sizes of the screens to which `prediction_errors` is told that positions refer."""
    original, told = metrics.prediction_errors, []

    def note(network, dataset, rows, screen, *others):
        told.append(tuple(screen))
        return original(network, dataset, rows, screen, *others)

    monkeypatch.setattr(metrics, "prediction_errors", note)
    return told


def test_parts_are_kept_and_read_back(small, monkeypatch):
    made = []

    def make(game, seed):
        made.append((game, seed))
        if len(made) == 3:
            raise KeyboardInterrupt
        return {"r8": np.array([seed, len(made)])}

    monkeypatch.setitem(atari_studies.STUDIES, "toy", ([("a", 1), ("a", 2), ("b", 1)], make))
    with pytest.raises(KeyboardInterrupt):
        atari_studies.make_reference("toy")
    assert not (small / "toy.json").exists()
    atari_studies.make_reference("toy")
    assert made == [("a", 1), ("a", 2), ("b", 1), ("b", 1)]
    found = atari_studies.stored("toy")
    assert list(found) == [("a", "1"), ("a", "2"), ("b", "1")]
    assert found["a", "2"]["r8"].tolist() == [2, 2]
    assert storage.load(small / "toy")[1]["command"] == "eigenlib reference toy"


def test_a_learning_curve_is_measured_in_one_unit(small, screens):
    """Before any update all three networks predict next to nothing in their own units, so their errors are known."""
    curves = {name: atari_studies._learning_curve(name) for name in ("mean", "deviation")}
    assert set(screens) == {Emulator("montezuma_revenge").screen_size}
    for curve in curves.values():
        assert curve["errors"].shape == (2, 2)
        assert curve["predictions"].shape == (10, 84, 84)
        assert curve["frames"].shape == (11, 84, 84)
    np.testing.assert_allclose(curves["mean"]["others"], curves["deviation"]["others"], rtol=1e-4)
    np.testing.assert_allclose(curves["deviation"]["errors"][0], curves["deviation"]["others"][:, 0], rtol=0.05)
    assert curves["deviation"]["errors"][1, 0] < curves["deviation"]["errors"][0, 0]


@pytest.mark.parametrize("known", [True, False])
def test_errors_in_other_units(known):
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (6, 84, 84), dtype=np.uint8)
    actions, ends = np.array([0, 1, 0, 1, 0, 255], np.uint8), np.zeros(6, np.uint8)
    positions = np.full((6, 2), 40.0 if known else np.nan, np.float32)
    data = Dataset.from_arrays(frames, actions, ends, 2, positions)
    network = DeepSR(2, Sizes(2, 8, 4), np.full((84, 84), 0.5), np.full((84, 84), 0.25))
    own = metrics.prediction_errors(network, data, data.transitions)
    double = metrics.prediction_errors(network, data, data.transitions, scale=np.full((84, 84), 0.5))
    assert set(own) == ({"frame", "avatar"} if known else {"frame"})
    for where, errors in own.items():
        for guess, error in errors.items():
            assert double[where][guess] == pytest.approx(error / 4, rel=1e-5)
    background = ((frames[1:] / 255 - 0.5) / 0.25) ** 2
    assert own["frame"]["background"] == pytest.approx(background.mean(), rel=1e-5)


def test_predictions_are_of_the_action_that_was_taken():
    rng = np.random.default_rng(0)
    frames, actions = rng.integers(0, 256, (6, 84, 84), dtype=np.uint8), np.array([0, 1, 0, 1, 0, 255], np.uint8)
    data = Dataset.from_arrays(frames, actions, np.zeros(6, np.uint8), 2, np.full((6, 2), 40.0, np.float32))
    network = DeepSR(2, Sizes(2, 8, 4), np.full((84, 84), 0.5), np.full((84, 84), 0.25))
    with torch.no_grad():
        for parameter in network.parameters():  # large enough to show in whole grey levels
            parameter.mul_(3)
        each = [network.predict(network.phi(torch.from_numpy(frames[:5])), torch.full((5,), a)) for a in range(2)]
        pixels = [network.to_pixels(guess).round().to(torch.uint8).numpy() for guess in each]
    assert (pixels[0] != pixels[1]).any()
    found = atari_studies.predictions(network, data, np.array([3, 0]))
    np.testing.assert_array_equal(found, [pixels[1][3], pixels[0][0]])


def test_options_that_look_further(small, monkeypatch):
    original, asked = options.follow, []

    def note(world, network, vectors, steps, **how):
        asked.append((vectors, how))
        return original(world, network, vectors, steps, **how)

    monkeypatch.setattr(options, "follow", note)
    monkeypatch.setattr(atari_studies, "PURPOSES", 2)
    monkeypatch.setattr(atari_studies, "STEPS", 3)
    found = atari_studies._looking_ahead("freeway", "psi", 2)
    ((vectors, how),) = asked
    assert how == {"reward": "psi", "depth": 2}
    assert sorted(vectors.T.tolist()) == sorted((-vectors.T).tolist())  # both signs of each
    assert found["positions"].shape == (4, 4, 2)


def test_what_is_compared_over_seeds(small, screens):
    found = atari_studies._trained_and_not("freeway", 1)
    assert screens == [Emulator("freeway").screen_size]
    learned, walked = (open_dataset(small / "cache" / "studies" / "freeway-1" / name) for name in ("data", "walk"))
    assert not np.array_equal(
        learned.frames[:100], walked.frames[:100]
    )  # compared on frames that were not learned from
    assert found["errors"].shape == (2, 3)
    for kind in atari_studies.KINDS:
        assert found[f"{kind}.r8"].shape == (20,)
        assert found[f"{kind}.big_basin"].shape == (40,)
    assert not np.allclose(found["sr.r8"], found["untrained.r8"])
    assert not np.allclose(found["untrained.r8"], found["untrained_pca.r8"])


@pytest.mark.parametrize("name", STORED)
def test_stored_studies_are_whole(name):
    found, (parts, _) = atari_studies.stored(name), atari_studies.STUDIES[name]
    assert list(found) == [tuple(map(str, part)) for part in parts]
    fields = {frozenset(arrays) for arrays in found.values()}
    assert len(fields) == 1
