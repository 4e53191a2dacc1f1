"""The experiments behind lessons 09 and 10: small ones run to the end, stopped ones go on, stored ones are whole."""

from types import SimpleNamespace

import numpy as np
import pytest

from eigenlib import experiments, storage
from eigenlib.atari import metrics, options
from eigenlib.atari.dataset import open_dataset
from eigenlib.atari.emulator import Emulator
from eigenlib.experiments import _tasks, atari_myopia, atari_normalisation, atari_seeds


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Everything in a folder of its own, and little of it."""
    for module in (atari_normalisation, atari_seeds):
        monkeypatch.setattr(module, "CACHE", tmp_path)
        monkeypatch.setattr(module, "SAMPLES", 200)
    monkeypatch.setattr(atari_normalisation, "HELD", 120)
    monkeypatch.setattr(atari_normalisation, "UPDATES", (0, 2))
    monkeypatch.setattr(atari_seeds, "ROWS", 200)
    return tmp_path / "experiments"


@pytest.fixture
def screens(monkeypatch):
    """The sizes of the screens to which `prediction_errors` is told that positions refer."""
    original, told = metrics.prediction_errors, []

    def note(network, dataset, rows, screen, *others):
        told.append(tuple(screen))
        return original(network, dataset, rows, screen, *others)

    monkeypatch.setattr(metrics, "prediction_errors", note)
    return told


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """An experiment of three tasks that notes what it was asked for."""
    made = []

    def run(setting, stop=False):
        if stop and len(made) == 2:
            raise KeyboardInterrupt
        made.append(setting)
        return {"r8": np.array([setting[1], 0.1 * len(setting[0])])}, {"note": setting[0]}

    module = SimpleNamespace(
        SETTINGS=[("a", 1), ("a / b", 2), ("b", 1)], run=run, score=lambda found: {"all": len(found)}
    )
    monkeypatch.setattr(experiments, "module_of", lambda _: module)
    monkeypatch.setattr(experiments, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(experiments, "REFERENCE", tmp_path)
    experiments._stored.cache_clear()
    yield module, made
    experiments._stored.cache_clear()


def test_tasks_are_kept_and_results_read_back(toy, tmp_path):
    _, made = toy
    with pytest.raises(KeyboardInterrupt):
        experiments.make("toy", progress=False, stop=True)
    assert not (tmp_path / "toy.json").exists()
    assert experiments.make("toy", progress=False) == tmp_path / "toy.npz"
    assert made == [("a", 1), ("a / b", 2), ("b", 1)]  # none twice
    found = experiments.stored("toy")
    assert list(found) == [("a", "1"), ("a / b", "2"), ("b", "1")]
    assert found["a / b", "2"]["r8"].tolist() == [2, 0.5]
    assert storage.load(tmp_path / "toy")[1]["command"] == "eigenlib experiment toy"
    assert experiments.scored("toy") == ["    3.000  all"]


def test_tasks_done_in_any_order_end_in_the_same_file(toy, tmp_path):
    module, made = toy
    experiments.make("toy", progress=False)
    serial = (tmp_path / "toy.npz").read_bytes()
    for part in (tmp_path / "cache" / "experiments" / "toy").iterdir():
        part.unlink()
    for setting in reversed(module.SETTINGS):  # as workers might
        _tasks.task(module.run, setting, tmp_path / "cache" / "experiments" / "toy")
    experiments.make("toy", progress=False)
    assert len(made) == 6
    assert (tmp_path / "toy.npz").read_bytes() == serial


def test_a_task_that_is_damaged_or_asked_for_again_is_done_again(toy, tmp_path):
    module, made = toy
    for again, count in ((False, 1), (False, 1), (True, 2)):
        arrays, about = _tasks.task(module.run, ("a", 1), tmp_path, again)
        assert (arrays["r8"].tolist(), about["note"], len(made)) == ([1, 0.1], "a", count)
    (tmp_path / "a-1.npz").write_bytes(b"cut short")
    assert _tasks.task(module.run, ("a", 1), tmp_path)[0]["r8"].tolist() == [1, 0.1]
    assert len(made) == 3


def test_every_experiment_has_its_three_names():
    for name in experiments.EXPERIMENTS:
        module = experiments.module_of(name)
        assert len(set(module.SETTINGS)) == len(module.SETTINGS) > 1
        assert len({_tasks.name_of(setting) for setting in module.SETTINGS}) == len(module.SETTINGS)
        assert callable(module.run)
        assert experiments.scored(name)


def test_a_learning_curve_is_measured_in_one_unit(small, screens):
    """Before any update all three networks predict next to nothing in their own units, so their errors are known."""
    curves = {name: atari_normalisation.run((name,))[0] for name in ("mean", "deviation")}
    assert set(screens) == {Emulator("montezuma_revenge").screen_size}
    for curve in curves.values():
        assert curve["errors"].shape == (2, 2)
        assert curve["predictions"].shape == (10, 84, 84)
        assert curve["frames"].shape == (11, 84, 84)
    np.testing.assert_allclose(curves["mean"]["others"], curves["deviation"]["others"], rtol=1e-4)
    np.testing.assert_allclose(curves["deviation"]["errors"][0], curves["deviation"]["others"][:, 0], rtol=0.05)
    assert curves["deviation"]["errors"][1, 0] < curves["deviation"]["errors"][0, 0]


def test_options_that_look_further(monkeypatch):
    original, asked = options.follow_greedily, []

    def note(world, network, vectors, steps, **how):
        asked.append((vectors, how))
        return original(world, network, vectors, steps, **how)

    monkeypatch.setattr(options, "follow_greedily", note)
    monkeypatch.setattr(atari_myopia, "PURPOSES", 2)
    monkeypatch.setattr(atari_myopia, "STEPS", 3)
    found = atari_myopia.run(("freeway", "psi", 2))[0]
    ((vectors, how),) = asked
    assert how == {"reward": "psi", "depth": 2}
    assert sorted(vectors.T.tolist()) == sorted((-vectors.T).tolist())  # both signs of each
    assert found["positions"].shape == (4, 4, 2)


def test_what_is_compared_over_seeds(small, screens):
    found = atari_seeds.run(("freeway", 1))[0]
    assert screens == [Emulator("freeway").screen_size]
    learned, walked = (open_dataset(small / "atari_seeds" / "freeway-1" / name) for name in ("data", "walk"))
    assert not np.array_equal(
        learned.frames[:100], walked.frames[:100]
    )  # compared on frames that were not learned from
    assert found["errors"].shape == (2, 3)
    for kind in atari_seeds.KINDS:
        assert found[f"{kind}.r8"].shape == (20,)
        assert found[f"{kind}.big_basin"].shape == (40,)
    assert not np.allclose(found["sr.r8"], found["untrained.r8"])
    assert not np.allclose(found["untrained.r8"], found["untrained_pca.r8"])


@pytest.mark.parametrize("name", ["atari_normalisation", "atari_seeds", "atari_myopia"])
def test_stored_results_are_whole(name):
    found = experiments.stored(name)
    assert list(found) == [tuple(map(str, setting)) for setting in experiments.module_of(name).SETTINGS]
    assert len({frozenset(arrays) for arrays in found.values()}) == 1
