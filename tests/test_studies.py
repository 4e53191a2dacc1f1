"""The studies behind lessons 09 and 10: small ones run to the end, stopped ones go on, stored ones are whole."""

import numpy as np
import pytest

from eigenlib import reference
from eigenlib.atari import metrics, studies
from eigenlib.atari.dataset import Dataset
from eigenlib.atari.network import DeepSR, Sizes

STORED = [name for name in studies.STUDIES if (studies.REFERENCE / f"{name}.json").is_file()]


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
        monkeypatch.setattr(studies, name, value)
    monkeypatch.setattr(studies, "UPDATES", (0, 2))
    studies.stored.cache_clear()
    yield tmp_path
    studies.stored.cache_clear()


def test_parts_are_kept_and_read_back(small, monkeypatch):
    made = []

    def make(game, seed):
        made.append((game, seed))
        if len(made) == 3:
            raise KeyboardInterrupt
        return {"r8": np.array([seed, len(made)])}

    monkeypatch.setitem(studies.STUDIES, "toy", ([("a", 1), ("a", 2), ("b", 1)], make))
    with pytest.raises(KeyboardInterrupt):
        studies.make_reference("toy")
    assert not (small / "toy.json").exists()
    studies.make_reference("toy")
    assert made == [("a", 1), ("a", 2), ("b", 1), ("b", 1)]
    found = studies.stored("toy")
    assert list(found) == [("a", "1"), ("a", "2"), ("b", "1")]
    assert found["a", "2"]["r8"].tolist() == [2, 2]
    assert reference.load(small / "toy")[1]["command"] == "eigenlib reference toy"


def test_a_learning_curve_is_measured_in_one_unit(small):
    """Before any update all three networks predict next to nothing in their own units, so their errors are known."""
    curves = {name: studies._learning_curve(name) for name in ("mean", "deviation")}
    for curve in curves.values():
        assert curve["errors"].shape == (2, 2)
        assert curve["predictions"].shape == (10, 84, 84)
        assert curve["frames"].shape == (11, 84, 84)
    np.testing.assert_allclose(curves["mean"]["others"], curves["deviation"]["others"], rtol=1e-4)
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


def test_what_is_compared_over_seeds(small):
    found = studies._trained_and_not("freeway", 1)
    assert found["errors"].shape == (2, 3)
    for kind in studies.KINDS:
        assert found[f"{kind}.r8"].shape == (20,)
        assert found[f"{kind}.big_basin"].shape == (40,)
    assert not np.allclose(found["sr.r8"], found["untrained.r8"])
    assert not np.allclose(found["untrained.r8"], found["untrained_pca.r8"])


@pytest.mark.parametrize("name", STORED)
def test_stored_studies_are_whole(name):
    found, (parts, _) = studies.stored(name), studies.STUDIES[name]
    assert list(found) == [tuple(map(str, part)) for part in parts]
    fields = {frozenset(arrays) for arrays in found.values()}
    assert len(fields) == 1
