"""The deep SR beside the exact one: the measures have known answers, and what is stored meets what the lesson says of it."""

import numpy as np
import pytest

from eigenlib import plots
from eigenlib.atari.network import DeepSR, Sizes
from eigenlib.atari.pixels import PixelMaze
from eigenlib.comparing import principal_cosines
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.experiments import deep_rooms
from eigenlib.experiments.deep_rooms import (
    Learned,
    canonical_correlations,
    centred,
    directions,
    potentials,
    successor_error,
)
from eigenlib.gridworld import GridWorld
from eigenlib.plots import deep
from eigenlib.representation import successor_representation

WORLD = GridWorld.named("four_rooms")
T = WORLD.transition_matrix()
EXACT = extract_eigenpurposes(successor_representation(T, 0.9)).vectors[:, 1:5]


def perfect(gamma, features=None):
    phi = np.eye(WORLD.n_states) if features is None else features
    return Learned(phi, successor_representation(T, gamma) @ phi)


def test_exact_successor_features_have_no_error():
    rng = np.random.default_rng(0)
    found = perfect(0.9, rng.normal(size=(WORLD.n_states, 7)))
    assert successor_error(found, T, 0.9) < 1e-12
    assert successor_error(found._replace(psi=found.psi + 3.0), T, 0.9) < 1e-12  # a constant moves nobody
    assert successor_error(found, T, 0.5) > 0.1
    assert successor_error(found._replace(psi=np.zeros_like(found.psi)), T, 0.9) == pytest.approx(1.0)


def test_one_hot_features_give_back_the_eigenvectors():
    found = perfect(0.9)
    vectors = directions(found.psi)
    for table in (found.phi, found.psi):
        assert principal_cosines(potentials(table, vectors, 4).vectors, EXACT).min() > 1 - 1e-9


def test_canonical_correlations_compare_spaces_not_vectors():
    rng = np.random.default_rng(1)
    mixed = EXACT @ rng.normal(size=(4, 4)) + 2.0  # another basis, another mean
    assert canonical_correlations(mixed, EXACT).min() > 1 - 1e-9
    twice = np.repeat(EXACT[:, :1], 4, axis=1)  # one direction four times
    assert canonical_correlations(twice, EXACT) == pytest.approx([1, 0, 0, 0], abs=1e-6)
    assert canonical_correlations(rng.normal(size=EXACT.shape), EXACT).mean() < 0.5


def test_every_state_is_looked_at():
    maze = PixelMaze(WORLD)
    network = DeepSR(4, Sizes(4, 16, 32))
    found = deep_rooms.learned(network, maze)
    assert found.phi.shape == found.psi.shape == (WORLD.n_states, 16)
    assert len(np.unique(found.phi.round(6), axis=0)) == WORLD.n_states
    assert deep_rooms.predictions(network, maze, [0, 5]).shape == (4, 2, 84, 84)


def test_stored_runs_are_what_the_lesson_promises():
    """Also that they are networks' tables: not exact, not blank, different for every seed."""
    runs = deep_rooms.stored_runs()
    wanted = {(width, gamma, 0) for width in deep_rooms.WIDTHS for gamma in deep_rooms.GAMMAS}
    wanted |= {("16 / 256", deep_rooms.GAMMA, seed) for seed in deep_rooms.SEEDS}
    assert set(runs) == wanted | {(deep_rooms.NO_STOP, deep_rooms.GAMMA, 0)}
    for (width, gamma, _), run in runs.items():
        assert np.isfinite(run.phi).all()
        assert np.isfinite(run.psi).all()
        assert np.linalg.norm(centred(run.phi)) > 0
        if width in deep_rooms.WIDTHS:
            assert 1e-3 < successor_error(run, T, gamma) < 1.0
    tables = [runs["16 / 256", deep_rooms.GAMMA, seed].phi for seed in deep_rooms.SEEDS]
    assert all(np.abs(a - b).max() > 0.1 for k, a in enumerate(tables) for b in tables[:k])


def test_the_shipped_network_is_the_stored_run():
    found = deep_rooms.learned(deep_rooms.stored_network(), PixelMaze(WORLD))
    stored = deep_rooms.stored_runs()["16 / 256", deep_rooms.GAMMA, 0]
    for mine, theirs in zip(found[:2], stored[:2], strict=True):
        assert np.linalg.norm(mine - theirs) < 0.01 * np.linalg.norm(theirs)  # both in half precision


def test_the_network_is_drawn_from_its_own_sizes():
    for sizes in (Sizes(4, 16, 32), "paper"):
        network = DeepSR(6, sizes)
        fig = deep.network(network.layers(), 6)
        text = " ".join(label.get_text() for label in fig.axes[0].texts)
        assert str(network.sizes.features) in text
        assert str(network.sizes.factors) in text
        assert plots.png(fig).startswith(b"\x89PNG")
