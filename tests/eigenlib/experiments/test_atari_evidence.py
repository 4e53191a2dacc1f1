"""The Atari experiment: each number is right where the answer is known, and wrong where something was spoiled."""

from itertools import combinations

import numpy as np
import pytest
import torch

from eigenlib import experiments
from eigenlib.atari import metrics, options
from eigenlib.atari.dataset import CUT_OFF, EPISODE_ENDED, NO_ACTION, Dataset
from eigenlib.atari.network import DeepSR, Sizes
from eigenlib.atari.training import Config
from eigenlib.experiments import _atari_measures as measures
from eigenlib.experiments import atari_evidence, verdicts
from eigenlib.experiments.atari_evidence import Setting
from eigenlib.experiments.verdicts import FAILS, HOLDS, PARTLY, SMALL, UNTESTABLE

GAMMA = 0.8


def episodes(lengths: list[int], end: int = CUT_OFF) -> Dataset:
    """A walk of episodes of so many frames, without pictures; all end in the same way."""
    total = sum(lengths)
    actions, ends = np.zeros(total, np.uint8), np.zeros(total, np.uint8)
    last = np.cumsum(lengths) - 1
    actions[last], ends[last - 1] = NO_ACTION, end
    return Dataset.from_arrays(np.zeros((total, 84, 84), np.uint8), actions, ends, 1)


# --- ψ as a successor representation --------------------------------------------------------------------------------


def ring(steps: int = 3000, seed: int = 0) -> tuple[np.ndarray, Dataset, np.ndarray]:
    """Features, one for each of five places around a ring, along a random walk; and the frequencies of its moves."""
    rng = np.random.default_rng(seed)
    places = np.cumsum(rng.choice([-1, 1, 1], steps)) % 5
    counts = np.zeros((5, 5))
    np.add.at(counts, (places[:-1], places[1:]), 1)
    mix = rng.standard_normal((5, 5))  # any basis of the features has the same ψ
    return (
        np.eye(5, dtype=np.float32)[places] @ mix,
        episodes([steps]),
        np.linalg.solve(mix, np.eye(5))
        @ np.linalg.solve(np.eye(5) - GAMMA * counts / counts.sum(axis=1, keepdims=True), mix),
    )


def test_the_solved_sr_is_that_of_the_counted_chain():
    """On features that tell all places apart, LSTD is (I − γT)⁻¹ with the frequencies of the walk."""
    phi, walk, exact = ring()
    solved = measures.with_constant(phi) @ measures.solved_successors(phi, walk, GAMMA, ridge=1e-12)
    np.testing.assert_allclose(solved, phi @ exact, atol=1e-3)
    other = measures.with_constant(phi) @ measures.solved_successors(phi, walk, 0.5, ridge=1e-12)
    assert np.abs(other - phi @ exact).max() > 0.1


@pytest.mark.parametrize(("end", "follows"), [(EPISODE_ENDED, False), (CUT_OFF, True), (1, False)])
def test_a_solved_sr_counts_nothing_after_an_end(end, follows):
    """Two places, always 0 → 1: what follows a cut-off is estimated, what follows an end is nothing."""
    places = np.tile([0, 1, 1], 50)
    phi = np.eye(2)[places]
    walk = episodes([3] * 50, end)
    solved = measures.with_constant(phi) @ measures.solved_successors(phi, walk, GAMMA, ridge=1e-9)
    last = 1 / (1 - GAMMA) if follows else 1.0
    np.testing.assert_allclose(solved[1], [0, last], atol=1e-3)
    np.testing.assert_allclose(solved[0], [1, GAMMA * last], atol=1e-3)


def clock(period: int = 7, turns: int = 60) -> tuple[np.ndarray, np.ndarray, Dataset]:
    """φ and exact ψ of places that follow one another for certain."""
    step = np.roll(np.eye(period), 1, axis=1)
    places = np.arange(period * turns) % period
    exact = np.linalg.inv(np.eye(period) - GAMMA * step)
    return np.eye(period)[places], exact[places], episodes([period * turns])


def test_the_td_error_is_none_for_the_exact_sr_and_large_for_another():
    phi, psi, walk = clock()
    assert measures.td_error(phi, psi, walk, GAMMA) < 1e-12
    assert measures.td_error(phi, psi, walk, 0.5) > 0.05
    assert measures.td_error(phi, np.roll(psi, 1, axis=0), walk, GAMMA) > 0.5


def test_sums_of_the_future_are_those_of_the_exact_sr():
    phi, psi, walk = clock()
    assert measures.monte_carlo_r2(phi, psi, walk, GAMMA, horizon=60) > 1 - 1e-5
    assert abs(measures.monte_carlo_r2(phi, np.full_like(psi, psi.mean()), walk, GAMMA, horizon=60)) < 1e-3
    assert measures.monte_carlo_r2(phi, np.roll(psi, 3, axis=0), walk, GAMMA, horizon=60) < 0
    assert np.isnan(measures.monte_carlo_r2(phi, psi, episodes([7] * 60), GAMMA, horizon=60))  # no future is known


def test_an_end_is_a_known_future_and_a_cut_off_is_not():
    phi = np.tile(np.eye(3), (20, 1))
    exact = np.tile([[1, GAMMA, 0], [0, 1, 0], [0, 0, 1]], (20, 1))  # nothing follows the step out of place 1
    ended, cut = episodes([3] * 20, EPISODE_ENDED), episodes([3] * 20, CUT_OFF)
    assert measures.monte_carlo_r2(phi, exact, ended, GAMMA) == pytest.approx(1.0)
    assert np.isnan(measures.monte_carlo_r2(phi, exact, cut, GAMMA))


def test_autocorrelation_stays_within_episodes():
    """One level for each episode is perfectly steady; over the borders it would not be."""
    walk, rng = episodes([10] * 40), np.random.default_rng(0)
    steady = np.repeat(rng.standard_normal(40), 10)
    flips = steady * np.tile([1, -1], 200)
    found = measures.autocorrelation(np.column_stack([steady, flips, rng.standard_normal(400)]), walk, 3)
    np.testing.assert_allclose(found[:2], [1, -1], atol=1e-12)
    assert abs(found[2]) < 0.2
    across = np.corrcoef(steady[:-3], steady[3:])[0, 1]
    assert across < 0.9


# --- the avatar in φ ------------------------------------------------------------------------------------------------


def test_a_position_is_read_from_features_that_hold_it_and_not_from_noise():
    rng = np.random.default_rng(0)
    positions = rng.uniform(0, 160, (1200, 2))
    positions[::7] = np.nan
    mix, noise = rng.standard_normal((2, 30)), rng.standard_normal((1200, 30))
    seen = np.nan_to_num(positions) @ mix / 50 + 0.1 * noise
    half, rest = slice(0, 800), slice(800, None)
    assert measures.avatar_r2(seen[half], positions[half], seen[rest], positions[rest]).min() > 0.95
    assert measures.avatar_r2(noise[half], positions[half], noise[rest], positions[rest]).max() < 0.05
    assert (
        measures.avatar_r2(seen[half], positions[half], noise[rest], positions[rest]).max() < 0.1
    )  # not the fit's own R²
    shuffled = rng.permutation(positions[half])  # fitted on the wrong places
    assert measures.avatar_r2(seen[half], shuffled, seen[rest], positions[rest]).max() < 0.1
    positions[:, 0] = np.where(np.isnan(positions[:, 0]), np.nan, 46.5)
    found = measures.avatar_r2(seen[half], positions[half], seen[rest], positions[rest])
    assert np.isnan(found[0])
    assert found[1] > 0.9


# --- motion foreseen ------------------------------------------------------------------------------------------------

STEP = 6


def moving(count: int = 60, seed: int = 0) -> tuple[Dataset, np.ndarray]:
    """An avatar of 4 × 6 pixels that goes left or right by STEP, and another sprite that always goes down; and the next
    frames had the avatar gone the other way."""
    rng = np.random.default_rng(seed)
    frames, others, places = np.zeros((2, 2 * count, 84, 84), np.uint8), [], []
    for k in range(count):
        x, y, way = int(rng.integers(20, 60)), int(rng.integers(4, 40)), int(rng.choice([-1, 1]))
        for row, at, down in ((2 * k, x, y), (2 * k + 1, x + way * STEP, y + STEP)):
            frames[0, row, 70:76, at : at + 4] = 200
            frames[0, row, down : down + 11, 2:6] = 150
            places.append([at + 2.0, 73.0])
        frames[1, 2 * k, 70:76, x - way * STEP : x - way * STEP + 4] = 200
        frames[1, 2 * k, y + STEP : y + STEP + 11, 2:6] = 150
        others.append(2 * k)
    actions = np.tile([0, NO_ACTION], count).astype(np.uint8)
    ends = np.tile([CUT_OFF, 0], count).astype(np.uint8)
    return Dataset.from_arrays(frames[0], actions, ends, 1, np.array(places, np.float32)), frames[1, ::2]


class Foresight:
    """A network that predicts given frames, in their order."""

    def __init__(self, predicted: np.ndarray):
        self.mean, self.predicted, self.at = torch.zeros(84, 84), predicted.astype(np.float32), 0

    def phi(self, frames):
        return frames

    def predict(self, frames, actions):
        self.at += len(frames)
        return torch.from_numpy(self.predicted[self.at - len(frames) : self.at])

    def to_pixels(self, prediction):
        return prediction


def tracked(predicted: np.ndarray) -> dict[str, float]:
    walk, _ = moving()
    found = measures.tracking(Foresight(predicted), walk, walk.transitions, (84, 84))
    assert all(moved == 60 for _, moved in found.values()), found
    return {name: hits / moved for name, (hits, moved) in found.items()}


def test_the_truth_tracks_and_copies_smears_and_the_wrong_way_do_not():
    walk, mirrored = moving()
    now, after = walk.frames[::2].astype(float), walk.frames[1::2].astype(float)
    assert tracked(after) == {"avatar": 1, "others": 1}
    assert tracked(0.3 * after + 0.7 * now) == {"avatar": 1, "others": 1}  # faint but in place
    assert tracked(now) == {"avatar": 0, "others": 0}
    assert tracked(np.full_like(now, 90.0))["avatar"] == 0  # a smear over everything
    assert tracked((after + mirrored) / 2) == {"avatar": 0, "others": 1}  # left or right, undecided
    assert tracked(mirrored) == {"avatar": 0, "others": 1}
    assert tracked(np.roll(after, 6, axis=2))["avatar"] < 0.6


def test_places_are_compared_in_pixels_of_the_screen():
    """Two pixels of the frame aside are 2 of a small screen and 5 of a tall one."""
    walk, _ = moving()
    aside = np.roll(walk.frames[1::2], 2, axis=1)
    for height, expected in ((84, 1.0), (210, 0.0)):
        tall = Dataset.from_arrays(
            walk.frames, walk.actions, walk.ends, 1, walk.positions * np.array([1, height / 84], np.float32)
        )
        hits, moved = measures.tracking(Foresight(aside), tall, tall.transitions, (height, 84))["avatar"]
        assert moved == 60
        assert hits / moved == expected


def test_a_sprite_that_lights_up_where_it_is_has_not_moved():
    """Whoever guesses the middle of the region would be right there: such sprites do not count."""
    walk = episodes([2] * 5)
    walk.frames[1::2, 30:36, 40:44] = 200
    walk.frames[1::2, 60:66, 10:14] = 200
    walk.positions[:] = 42, 33
    found = measures.tracking(Foresight(walk.frames[1::2]), walk, walk.transitions, (84, 84))
    assert found == {"avatar": (0, 0), "others": (0, 0)}


def test_where_nothing_moves_there_is_nothing_to_track():
    walk = episodes([2] * 5)
    assert measures.tracking(Foresight(np.zeros((5, 84, 84))), walk, walk.transitions, (84, 84)) == {
        "avatar": (0, 0),
        "others": (0, 0),
    }


# --- what options did -----------------------------------------------------------------------------------------------


def tracks(ends: list[tuple[float, float]], lost: list[int | None], steps: int = 100) -> dict[str, np.ndarray]:
    """Options that walk from (80, 80) to an end within 20 decisions and stay; a life is lost at some step, or at none."""
    way = np.minimum(np.arange(steps + 1) / 20, 1)[None, :, None]
    positions = (80 + way * (np.array(ends, float)[:, None] - 80)).astype(np.float32)
    lives = np.array([[5 - (at is not None and t >= at) for t in range(steps + 1)] for at in lost], np.int16)
    return {"positions": positions, "rooms": np.ones((len(ends), steps + 1), np.int16), "lives": lives}


def test_who_loses_a_life_while_staying_does_not_stay():
    ends = [(20, 20), (20, 25), (140, 20), (140, 140), (82, 80)]
    log = tracks(ends, [None, 10, 60, 100, None])
    arrays, numbers = atari_evidence.outcome(log)
    assert arrays["goes"].tolist() == [True, True, False, False, False]  # the last went nowhere
    assert numbers == {"go_and_stay": 2, "ends": 1, "careless": 4, "deaths": 3}


@pytest.mark.parametrize(("at", "unharmed"), [(50, True), (51, False), (100, False), (1, True), (None, True)])
def test_the_last_half_is_the_one_that_is_looked_at(at, unharmed):
    """Of 101 states the last 50 count, and the step into the first of them."""
    lives = tracks([(0, 0)], [at])["lives"]
    log = options.Trajectories(*7 * [np.empty(0)])._replace(lives=lives)
    assert metrics.unharmed(log).tolist() == [unharmed]


def test_subgoals_are_counted_in_the_first_room_alone():
    names = list(measures.SUBGOALS)
    ends = [measures.SUBGOALS[names[0]], (measures.SUBGOALS["rope"][0] + 11.5, 105), (100, 20)]
    log, spots = tracks(ends, [None] * 3), np.array([[300.0, 300.0], *measures.SUBGOALS.values()])
    assert atari_evidence.outcome(log, spots)[1]["subgoals"] == 2
    log["rooms"][1, 1:] = 2
    assert atari_evidence.outcome(log, spots)[1]["subgoals"] == 1
    assert measures.subgoals_near(np.empty((0, 2))) == []


def test_chance_is_the_mean_over_all_choices():
    rng = np.random.default_rng(0)
    goals = np.array(list(measures.SUBGOALS.values()))
    spots = np.concatenate([goals[:4] + 3, rng.uniform(0, 160, (5, 2))])
    for count in (0, 1, 3, 9, 30):
        chosen = [len(measures.subgoals_near(spots[list(c)])) for c in combinations(range(9), min(count, 9))]
        assert measures.by_chance(spots, count) == pytest.approx(np.mean(chosen))


class Ledges:
    """A floor with a gap one can jump over or fall through, and below it another with spikes, which kill, and a place
    with a skull, which kills who waits."""

    n_actions = 5

    def __init__(self):
        self.x, self.y, self.lives, self.over = 20, 100, 3, False

    def room(self):
        return 1 if self.x < 90 else 2

    def position(self):
        return self.x, self.y

    def save(self):
        return self.x, self.y, self.lives

    def restore(self, state):
        self.x, self.y, self.lives = state

    def act(self, action):
        if self.y < 150 and (self.x == 52 or self.y > 100):
            self.y += 10
            return
        self.lives -= action == 0 and (self.x, self.y) == (12, 150)
        self.x = max(self.x + (0, 8, -8, 16, -16)[action], 4)
        self.lives -= self.y == 150 and self.x > 70


def test_reachable_places_are_those_one_can_stand_at():
    spots = measures.reachable(Ledges(), 8000, np.random.default_rng(0))
    upper, lower = (set(spots[spots[:, 1] == y][:, 0].tolist()) for y in (100, 150))
    assert upper == set(range(4, 90, 8)) - {52}  # neither over the gap nor in the next room
    assert lower == set(range(4, 70, 8)) - {12}  # neither on the spikes nor where the skull comes
    assert len(spots) == len(upper) + len(lower)  # nothing in the air


# --- verdicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "later", "verdict"),
    [
        ([3, 3.1, 2.9, 3, 3], None, HOLDS),
        ([3, 3.1, 2.9, 3, 3], -9, HOLDS),
        ([1, 1.1, 0.9, 1, 1], 0.5, FAILS),
        ([1, 1.1, 0.9, 1, 1], 2.5, SMALL),  # more training does it
        ([1, 1.1, 0.9, 1, 1], None, SMALL),  # nobody has looked at more training
        ([0, 5, 1, 6, 2], 0, SMALL),  # the margin lies inside the interval
        ([2, 2, 2, 2, 2], 0, SMALL),  # on the edge
        ([3, 3, 3, 3], None, UNTESTABLE),  # a network is missing
        ([3, 3, 3, 3, None], None, UNTESTABLE),
        ([], None, UNTESTABLE),
    ],
)
def test_what_counts_as_which_verdict(values, later, verdict):
    assert verdicts.judged("c", "p", values, 2.0, later).verdict == verdict
    assert verdicts.judged("c", "p", values, 2.0, later, obstacle="cannot be").verdict == UNTESTABLE


def test_the_interval_is_students():
    found = verdicts.judged("c", "p", [1.0, 2.0, 3.0, 4.0, 5.0], 0.0)
    assert (found.value, found.low, found.high) == pytest.approx((3.0, 3 - 1.96324, 3 + 1.96324), abs=1e-4)


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, FAILS, FAILS], PARTLY),
        ([FAILS, FAILS, SMALL], FAILS),
        ([FAILS, SMALL], SMALL),
        ([FAILS, UNTESTABLE, SMALL], UNTESTABLE),
        ([], UNTESTABLE),
    ],
)
def test_claims_of_several_parts(parts, whole):
    assert verdicts.combined(parts) == whole


def numbers(game: str, lead: float = 0.0, rng=None) -> dict:
    """What a network might have given: `lead` of the SR over all controls, in units of margins."""
    noise = (lambda: 0.0) if rng is None else (lambda: 0.1 * rng.standard_normal())
    arms = {}
    for arm in ("sr", "solved", "pca", "random", "untrained", "untrained_pca", "play"):
        more = (lead if arm == "sr" else 0.0) + noise()
        arms[arm] = {"go_and_stay": [5 + 2 * more] * 2, "ends": [4 + more] * 2, "r8": [0.5 + 0.02 * more] * 2}
        if game == "montezuma_revenge":
            arms[arm] |= {"subgoals": [2 + 0.5 * more], "subgoals_null": [2.0]}
        if arm == "play":
            del arms[arm]["r8"]
    level = 0.5 * (lead + noise())
    about = {"ridge": max(level, 0.3), "mc.sr": 0.5 + 0.2 * (lead - 1), "mc.solved": 0.6}
    about |= {"td.sr": 0.2 - 0.1 * (lead - 0.5), "td.solved": 0.1}  # both just right at 1
    about |= {"slow.phi": [0.5] * 6, "slow.psi": [0.5] * 3 + [0.5 + 0.02 * (lead + noise())] + [0.5] * 2}
    about |= {"tracking": {"avatar": [int(100 * level), 100], "others": [int(100 * level), 100]}}
    return arms | {"network": about}


def results(lead: float, later: float | None = None, last: int = 1_000_000, games=atari_evidence.GAMES) -> dict:
    """Five networks of each game, and one that had that lead at .3 million samples and another at the last mark."""
    rng = np.random.default_rng(0)
    found = {s: numbers(s.game, lead, rng) for s in atari_evidence.SETTINGS if not s.scale and s.game in games}
    if later is not None:
        stages = {300_000: lead, last: later}
        found |= {Setting(g, 5, seen): numbers(g, level) for seen, level in stages.items() for g in games}
    return found


def whole(found: dict) -> dict[str, str]:
    return {v.claim: v.verdict for v in atari_evidence.score(found) if not v.part}


def test_a_lead_holds_and_none_does_not():
    ahead = whole(results(1.8))
    assert ahead.pop("freeway") == FAILS  # its options lead too, which the paper denies
    assert set(ahead.values()) == {HOLDS}
    assert set(ahead) == {"purposeful", "distinct", "place", "subgoals", "tracks", "sees", "is_an_sr", "slower"}
    behind = whole(results(0.2, later=0.2))
    assert behind.pop("freeway") == HOLDS
    assert set(behind.values()) == {FAILS}
    for rising in (whole(results(0.2, later=1.8)), whole(results(0.2)), whole(results(0.2, later=0.2, last=300_000))):
        assert rising.pop("freeway") == HOLDS
        assert set(rising.values()) == {SMALL}


def test_one_control_that_is_as_good_makes_it_partly():
    found = results(1.8)
    for setting in found:
        found[setting]["pca"]["r8"] = [0.9]
    assert whole(found)["place"] == PARTLY
    parts = {v.part: v for v in atari_evidence.score(found) if v.claim == "place" and v.part}
    assert parts["ms_pacman: above pca"].verdict != HOLDS
    assert parts["ms_pacman: above random"].verdict == HOLDS
    assert len(parts) == 16


def test_what_cannot_be_tested_is_not():
    found = results(1.8)
    for setting, told in found.items():
        if setting.game == "freeway":
            told["network"]["ridge"] = 0.1  # it does not see the chicken
            told["network"]["tracking"]["avatar"] = [40, 49]  # and it hardly moved
        if setting.game == "bank_heist":
            told["random"]["r8"] = [0.99]
        if setting.game == "ms_pacman":
            for arm in ("sr", "random", "pca", "untrained", "untrained_pca"):
                told[arm]["r8"] = [None]
    parts = {(v.claim, v.part): v for v in atari_evidence.score(found)}
    assert whole(found)["freeway"] == UNTESTABLE
    assert parts["tracks", "freeway: avatar"].verdict == UNTESTABLE
    assert not any(claim == "place" and part.startswith("freeway") for claim, part in parts)
    assert parts["place", "bank_heist: above random"].note == "the control is at the best possible value"
    assert parts["place", "ms_pacman: above pca"].verdict == UNTESTABLE
    del found[Setting("ms_pacman", 3, 300_000)]
    assert {(v.claim, v.part): v for v in atari_evidence.score(found)}[
        "purposeful", "ms_pacman: above play"
    ].verdict == UNTESTABLE


def test_settings_are_those_of_the_protocol():
    assert len(atari_evidence.SETTINGS) == len(set(atari_evidence.SETTINGS)) == 4 * 5 + 4 * 5
    replicates = [s for s in atari_evidence.SETTINGS if not s.scale]
    assert [s.game for s in replicates[:4]] == list(atari_evidence.GAMES)  # number 0 of all games first
    assert {(s.frames, s.config.passes, s.config.refine_passes) for s in replicates} == {(100_000, 3, 20)}
    assert {s.config.seed for s in replicates} == set(range(5))
    assert {(s.frames, s.config.passes) for s in atari_evidence.SETTINGS if s.scale} == {(500_000, 10)}
    assert max(atari_evidence.MARKS) == 500_000 * 10


# --- one task of work -----------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch, tmp_path):
    """The same experiment, but tiny, and in a folder of its own."""
    sizes = {"WALK_ROWS": 300, "TEST_ROWS": 260, "DIRECTIONS": 3, "FOLLOWED": 1, "STEPS": 4, "PLAY_DRAWS": 2}
    for name, value in (sizes | {"WORK": tmp_path / "work", "RESULTS": tmp_path / "results"}).items():
        monkeypatch.setattr(atari_evidence, name, value)
    config = Config(Sizes(4, 16, 32), 0.9, passes=2, log_every=2)
    monkeypatch.setattr(Setting, "config", property(lambda s: Config(**(vars(config) | {"seed": s.number}))))
    monkeypatch.setattr(Setting, "frames", property(lambda _: 200))


WAYS = {"device": "cpu", "threads": 1, "precision": "fp32", "progress": False}


def test_a_network_is_measured_at_its_stages_and_goes_on_if_stopped(small, monkeypatch):
    """Stages share one training; a measurement that was stopped keeps its arms and ends with the same numbers."""
    early, late = Setting("freeway", 5, 100), Setting("freeway", 5, 300)
    numbers = atari_evidence.run(early, draws=2, **WAYS)[1]["numbers"]
    arms = {"sr", "solved", "pca", "random", "untrained", "untrained_pca", "play"}
    assert set(numbers) == arms | {"network", "untrained_network"}
    assert len(numbers["random"]["r8"]) == len(numbers["play"]["ends"]) == 2
    assert len({tuple(numbers[arm]["r8"]) for arm in arms - {"play"}}) == 6  # no arm is another one under a second name

    followed, original = [], options.follow_greedily

    def follow(*arguments, **ways):
        if len(followed) == 3:
            raise InterruptedError
        followed.append(1)
        return original(*arguments, **ways)

    for stage in (early.folder / "parts-100").iterdir():
        stage.unlink()
    monkeypatch.setattr(options, "follow_greedily", follow)
    with pytest.raises(InterruptedError):
        atari_evidence.run(early, draws=2, **WAYS)
    again = []
    monkeypatch.setattr(options, "follow_greedily", lambda *a, **w: again.append(1) or original(*a, **w))
    assert atari_evidence.run(early, draws=2, **WAYS)[1]["numbers"] == numbers
    assert len(again) == 7 - 3
    more = atari_evidence.run(early, draws=3, **WAYS)[1]["numbers"]  # for a network to ship: one draw more
    assert len(again) == 7 - 3 + 1
    assert more["random"]["r8"][:2] == numbers["random"]["r8"]
    assert len(more["random"]["r8"]) == 3
    other = atari_evidence.run(late, draws=2, **WAYS)[1]["numbers"]
    assert other["network"]["errors"]["frame"]["network"] < numbers["network"]["errors"]["frame"]["network"]


def test_the_whole_experiment_is_a_loop_over_its_settings(small, monkeypatch):
    some = [Setting("freeway", 0, 300_000), Setting("freeway", 5, 100)]
    monkeypatch.setattr(atari_evidence, "SETTINGS", some)
    for _ in range(2):  # the second time nothing is left to do
        assert experiments.make("atari_evidence", **WAYS) == atari_evidence.RESULTS
        monkeypatch.setattr(options, "follow_greedily", lambda *_, **__: pytest.fail("this was measured already"))
    found = atari_evidence.stored(atari_evidence.RESULTS)
    assert list(found) == some
    assert {v.verdict for v in atari_evidence.score(found)} == {UNTESTABLE}  # one network is not five


def test_results_of_networks_that_were_measured_are_read():
    """Those that the running experiment has left: their names and what they hold."""
    found = atari_evidence.stored()
    assert len(found) == len(list(atari_evidence.RESULTS.glob("*.json"))) >= 2
    assert set(found[Setting("montezuma_revenge", 0, 300_000)]) >= {"sr", "play", "network", "untrained_network"}
    assert all("untestable" in line for line in experiments.scored("atari_evidence") if "as a whole" in line)


def test_numbers_of_a_network_are_every_seed(small):
    """Weights, order and data all differ between two networks of one game; the stored setting is the one asked for."""
    about, data = [], []
    for number in (0, 1):
        setting = Setting("freeway", number, 300_000)
        atari_evidence.train(setting, **WAYS)
        about.append(atari_evidence.training.load_run(setting.folder / "run").about)
        data.append(np.load(setting.folder / "data" / "actions.npy"))
    assert about[0]["dataset"] != about[1]["dataset"]
    assert not np.array_equal(*data)
    assert [a["config"]["seed"] for a in about] == [0, 1]


def test_the_untrained_arm_sees_the_same_frames_with_the_first_weights(small, monkeypatch):
    """Its φ is that of the network before its first update, its SR is solved and not a random head."""
    seen, original = [], options.features_and_rows
    monkeypatch.setattr(options, "features_and_rows", lambda n, f: seen.append(n) or original(n, f))
    atari_evidence.run(Setting("freeway", 1, 300_000), draws=1, **WAYS)
    first = DeepSR(seen[0].n_actions, Sizes(4, 16, 32), seen[0].mean, seen[0].scale, seed=1)
    assert torch.equal(seen[2].features.weight, first.features.weight)
    assert not torch.equal(seen[0].features.weight, first.features.weight)
