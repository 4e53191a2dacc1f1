"""Do eigenoptions of a learned SR go somewhere in Atari games, and is it the SR? Several networks a game (§4.2; notebook 10).

**Written before the first of these networks was trained.** What counts as which verdict stands here, not in a lesson. What
is looked at beyond it is a result without a verdict. The numbers of earlier, single networks were known when this was
written; margins are round numbers, not fitted to them. Two sentences were mended before any of the networks was measured:
gaps in regions of `others`, and what the scale network decides (its gain could not be set against every margin).

*Networks.* All `standard` (32 channels, 512 features), γ = .95, RMSProp 1e-4, batches of 32.
    replicates  4 games × networks 0–4: 100,000 frames × 3 joint passes, then ψ alone for 20 passes. Number n is the seed of
                the initial weights, of the order of the data and of the data themselves.
    scale       4 games × network 5: 500,000 frames × 10 joint passes, the paper's amount, ψ not refined; measured at
                MARKS samples seen. Montezuma's Revenge whole; the others to 1 million, then on as far as time allows.
All numbers are of the weights as they could be shipped, in float16.

*Walks.* Two of random play for each network, which neither training has seen: from `walk`, 20,000 frames, come directions,
the solved SR and the ridge fits; on `test`, 10,000 frames, everything is measured.

*Arms.* 20 directions each.
    sr              trained φ, the network's own ψ: the paper's, right singular vectors of the rows ψ, not centred
    solved          trained φ, an SR solved for it on the walk by LSTD (a constant feature added, ridge 1e-6 of the trace)
    pca             trained φ, principal components of φ
    random          trained φ, directions drawn uniformly: 5 draws, 20 for the networks that are shipped
    untrained       random φ of the same normalised frames, an SR solved for it like that of `solved`
    untrained_pca   random φ, principal components
    play            no direction: random play, as many tracks as there are options, 20 draws
Options: the first 10 directions with both signs, followed greedily by e·φ, one decision ahead, 100 decisions from the start.

*Metrics*, one number for each network and arm (means over draws where an arm has several):
    go_and_stay   options that end more than 16 px from the start, spend 80 % of the last 50 decisions within 8 px of one
                  place, and lose no life in these
    ends          different places, more than 16 px apart, among the ends of those
    r8            share of the variance of e·φ that the avatar's cell of 8 × 8 px explains (ε²), mean over 20 directions
    subgoals      Montezuma's Revenge: of SUBGOALS, those within 12 px of the end of an option that goes and stays; its null is
                  the mean over 10,000 draws of as many places as there are different ends, from REACHABLE places, 8 × 8 px
                  cells of the first room in which an archive (restore a cell, act at random, keep new cells) has stood and
                  survived the next 20 decisions of doing nothing, each equally likely
    tracking      share of moving sprites whose predicted appearance is within 4 px of the true one. Appearance is
                  (|s′ − m| − |s − m|)₊ with the mean image m, in grey levels, less 8; its centroid is taken inside a region:
                  16 × 16 pixels of the frame around where the avatar was (`avatar`), or the bounding box, 2 wider, of
                  changed pixels with gaps of at most 6, so that both edges of a sprite are in one (`others`). Only where
                  the true centroid is more than 4 px from the region's centre: a smear, or a guess of the middle, scores
                  0 there, and so does copying. Distances are in pixels of the screen.
    ridge         R² on `test` of the avatar's x and y by ridge regression on φ, mean over the coordinates that vary;
                  strength by the last quarter of the walk
    td            mean |φ + γψ(s′) − ψ(s)|² over the variance of ψ;  mc: R² of ψ for the discounted sums of φ that follow,
                  over rows whose next 100 decisions are known or end
    slow          mean over directions of the autocorrelation of e·ψ less that of e·φ, at lag 8

*Verdicts.* A comparison is the difference between `sr` and one control in each network, and the 95 % interval of Student's t
over the five replicates. Against a MARGIN:
    holds                          the interval lies above the margin
    does not hold                  it lies below, and so does the same number of the scale network at its last mark, if that
                                   is 1 million samples or more
    not reproduced at this size    it lies below, but the scale network's number does not, or there is none yet: more
                                   training may do it; or the margin lies inside: five networks cannot tell
    untestable here                the metric does not exist: no known positions, fewer than 50 cases, the control within the
                                   margin of the best possible value, or what is asked for presupposes what is not there
A claim about several games or controls holds if all parts hold, holds partly if some do, else has the verdict that most
parts have (ties: the weaker statement, in the order of this list from below).
    purposeful    go_and_stay of sr above random, untrained, pca, play; margin 2 of 20 options; not in Freeway, as in the paper
    distinct      ends of sr above the same controls; margin 1; not in Freeway
    place         r8 of sr above random, pca, untrained, untrained_pca; margin .02; all games with ridge ≥ .25
    subgoals      subgoals less their null; margin .5
    tracks        avatar and others in each game: the share itself, margin .5
    sees          ridge in each game: R² itself, margin .5
    is_an_sr      mc of sr less mc of solved above −.1, and td below .2, in each game
    slower        slow in each game; margin .02
    freeway       "one-step options fail in Freeway because crossing needs planning": untestable here if ridge of Freeway is
                  below .25 (the network then does not see the chicken); else holds if go_and_stay less play lies below 2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eigenlib import storage
from eigenlib.atari import baselines, metrics, options, training
from eigenlib.atari.dataset import Dataset, collect
from eigenlib.atari.emulator import GAMES, Emulator
from eigenlib.atari.network import DeepSR
from eigenlib.atari.training import Config, load_network
from eigenlib.experiments import _atari_measures as measures
from eigenlib.experiments._tasks import Arrays, Found, name_of, task
from eigenlib.experiments.verdicts import FAILS, SMALL, Verdict, combined, judged
from eigenlib.paths import CACHE, REFERENCE

MARKS = (100_000, 300_000, 1_000_000, 3_000_000, 5_000_000)  # samples seen; the paper's amount is the last
WALK_ROWS, TEST_ROWS = 20_000, 10_000
WALK_SEED, TEST_SEED = 1_000_000, 2_000_000  # added to the number of a network: frames that no training sees

DIRECTIONS, FOLLOWED, STEPS = 20, 10, 100
MARGINS = {"go_and_stay": 2, "ends": 1, "r8": 0.02, "subgoals": 0.5, "tracking": 0.5, "ridge": 0.5, "slow": 0.02}
ENOUGH = 1_000_000  # samples seen by the scale network before it can say that more training does not help
SEEN = 0.25  # of `ridge`: below it the network does not see the avatar
DRAWS, SHIPPED_DRAWS, PLAY_DRAWS = 5, 20, 20
LAGS = (1, 2, 4, 8, 16, 32)
CASES = 50  # sprites that must have moved before anything is said about tracking
RESULTS = REFERENCE / "atari_evidence"
WORK = CACHE / "evidence"


class Setting(NamedTuple):
    """One network at one stage: its game, its number, which is every seed, and how many samples it has seen."""

    game: str
    number: int
    seen: int

    @property
    def scale(self) -> bool:
        return self.number >= REPLICATES

    @property
    def frames(self) -> int:
        """Of random play to learn from."""
        return 500_000 if self.scale else 100_000

    @property
    def config(self) -> Config:
        passes, refine = (10, 0) if self.scale else (3, 20)
        return Config(sizes="standard", gamma=0.95, passes=passes, refine_passes=refine, seed=self.number)

    @property
    def folder(self) -> Path:
        """Where the stages of one network are at work, one after the other."""
        return WORK / f"{self.game}-{self.number}"


REPLICATES = 5
SETTINGS = [Setting(game, number, 300_000) for number in range(REPLICATES) for game in GAMES] + [
    Setting(game, REPLICATES, seen) for seen in MARKS for game in GAMES
]


# --- one task of work -----------------------------------------------------------------------------------------------------


def train(setting: Setting, **ways: Any) -> Path:
    """Collect and train as far as the setting says; goes on if stopped. Returns the path of the weights, without suffix.

    ways: device, threads, precision … of `training.train`.
    """
    path = setting.folder / f"network-{setting.seen}"
    if not path.with_name(path.name + ".json").is_file():
        data = collect(setting.game, setting.frames, setting.folder / "data", seed=setting.number, progress=False)
        until = setting.seen if setting.scale else None
        run = training.train(data, setting.config, setting.folder / "run", until=until, **ways)
        training.export_weights(run, path)
    return path


def run(setting: Setting, *, draws: int = DRAWS, device: str = "auto", **ways: Any) -> Found:
    """Train a network and measure everything that the module lists, for every arm.

    Each draw of an arm is stored as soon as it is there, so that a run that was stopped goes on, and one that is made
    again with more draws needs only these.
    """
    weights = train(setting, device=device, **{"threads": "auto", "precision": "auto"} | ways)
    network = load_network(weights, device)
    walk, test = (
        collect(setting.game, rows, setting.folder / name, seed=seed + setting.number, progress=False)
        for name, rows, seed in (("walk", WALK_ROWS, WALK_SEED), ("test", TEST_ROWS, TEST_SEED))
    )
    arrays, numbers = measure(setting, network, walk, test, draws)
    return arrays, {"setting": setting._asdict(), "draws": draws, "numbers": numbers}


def measure(
    setting: Setting, network: DeepSR, walk: Dataset, test: Dataset, draws: int
) -> tuple[Arrays, dict[str, Any]]:
    """Arrays "ARM.…" of what options did, and numbers: {arm: {metric: one value for each draw}}, and for "network" and
    "untrained_network" what `measures` find.

    Arrays, of the first draw of each arm: "ends" (K, 3), "goes" (K,), "actions" (K, T), "r8" (20,); and "sr.vectors" (F, 20).
    """
    world, gamma, seed = Emulator(setting.game), setting.config.gamma, setting.number
    arrays: Arrays = {}
    numbers: dict[str, Any] = {}
    spots = _reachable() if setting.game == GAMES[0] else None
    for fresh in (False, True):
        eyes = baselines.untrained_copy(network, seed) if fresh else network
        (phi, psi), (test_phi, test_psi) = (options.features_and_rows(eyes, data.frames) for data in (walk, test))
        solved = measures.solved_successors(phi, walk, gamma)
        solved_psi, test_solved = (measures.with_constant(x) @ solved for x in (phi, test_phi))
        for arm, vectors in _directions(fresh, phi, psi, solved_psi, draws, seed):
            part = setting.folder / f"parts-{setting.seen}" / arm
            found, numbers[arm] = _arm(part, world, eyes, vectors, test_phi, test, spots)
            arrays |= {f"{arm}.{name}": array for name, array in found.items() if arm == "sr" or name != "vectors"}
        about: dict[str, Any] = {"ridge": _ridge(phi, walk, test_phi, test)}
        successors = {"solved": test_solved} if fresh else {"solved": test_solved, "sr": test_psi}
        for name, rows in successors.items():
            about[f"td.{name}"] = measures.td_error(test_phi, rows, test, gamma)
            about[f"mc.{name}"] = _mean(np.array([measures.monte_carlo_r2(test_phi, rows, test, gamma)]))
        if not fresh:
            about |= _slowness(arrays["sr.vectors"], test_phi, test_psi, test)
            about["tracking"] = measures.tracking(network, test, test.transitions, world.screen_size)
            about["errors"] = metrics.prediction_errors(network, test, test.transitions, world.screen_size)
        numbers["untrained_network" if fresh else "network"] = about
    numbers["play"] = _play(world, seed, spots)
    return arrays, numbers


def _directions(fresh: bool, phi, psi, solved, draws: int, seed: int) -> Iterable[tuple[str, list[np.ndarray]]]:
    """(arm, its draws of directions, (F, 20) each); phi, psi, solved: φ, the network's ψ and the solved one of the walk."""
    name = "untrained" if fresh else "solved"
    yield name, [options.eigenpurposes_from_rows(solved, DIRECTIONS).vectors]
    yield "untrained_pca" if fresh else "pca", [baselines.directions_of("pca", phi, psi, DIRECTIONS).vectors]
    if not fresh:
        yield "sr", [options.eigenpurposes_from_rows(psi, DIRECTIONS).vectors]
        seeds = [1000 * seed + draw for draw in range(draws)]
        yield "random", [baselines.directions_of("random", phi, psi, DIRECTIONS, seed=s).vectors for s in seeds]


def _arm(
    part: Path, world: Emulator, network: DeepSR, draws: list[np.ndarray], phi: np.ndarray, test: Dataset, spots
) -> tuple[Arrays, dict[str, Any]]:
    """Directions of one arm, measured on the test walk and followed in the game; kept at `part` draw by draw."""
    told: dict[str, list] = {}
    first: Arrays = {}
    for number, vectors in enumerate(draws):
        here = part.with_name(f"{part.name}-{number}")
        try:
            log, _ = storage.load(here)
            if not np.allclose(log["vectors"], vectors, atol=1e-4):
                raise ValueError("of another network")
        except (OSError, ValueError):
            tracks = options.follow_greedily(world, network, options.both_signs(vectors[:, :FOLLOWED]), STEPS)
            log = {name: getattr(tracks, name) for name in ("positions", "rooms", "lives", "actions")}
            log["vectors"] = vectors.astype(np.float32)
            storage.save(here, log)
        log["r8"] = _place(phi @ log["vectors"], test.positions)
        did, numbers = outcome(log, spots)
        first = first or {"actions": log["actions"], "r8": log["r8"], "vectors": log["vectors"]} | did
        for name, value in (numbers | {"r8": _mean(log["r8"])}).items():
            told.setdefault(name, []).append(value)
    return first, told


def outcome(log: Mapping[str, np.ndarray], spots: np.ndarray | None = None) -> tuple[Arrays, dict[str, float]]:
    """What the options of one draw did: "ends" and "goes" of each, and the numbers of the module's list.

    log: positions, rooms, lives of K options as in options.Trajectories; spots: reachable places, (n, 2).
    """
    tracks = options.Trajectories(*(log.get(name, np.empty(0)) for name in options.Trajectories._fields))
    did = metrics.behaviour(tracks)
    goes = did["goes"] & metrics.unharmed(tracks)
    ends = did["ends"][goes]
    numbers: dict[str, float] = {"go_and_stay": int(goes.sum()), "ends": metrics.distinct_ends(ends)}
    numbers["careless"] = int(did["goes"].sum())  # with lives lost while staying, as the first edition counted
    numbers["deaths"] = int(did["deaths"].sum())
    if spots is not None:
        inside = ends[ends[:, 2] == tracks.rooms[0, 0], :2]
        numbers["subgoals"] = len(measures.subgoals_near(inside))
        numbers["subgoals_null"] = measures.by_chance(spots, metrics.distinct_ends(inside))
    return {"ends": did["ends"].astype(np.float32), "goes": goes}, numbers


def _reachable() -> np.ndarray:
    """REACHABLE places of Montezuma's first room, (n, 2), found once."""
    decisions, seed = 50_000, 0

    def explore(_: Any) -> Found:
        spots = measures.reachable(Emulator(GAMES[0]), decisions, np.random.default_rng(seed))
        return {"spots": spots}, {"decisions": decisions, "seed": seed}

    return task(explore, ("reachable",), WORK)[0]["spots"]


def _play(world: Emulator, seed: int, spots) -> dict[str, list]:
    told: dict[str, list] = {}
    for draw in range(PLAY_DRAWS):
        log = baselines.wander(world, 2 * FOLLOWED, STEPS, np.random.default_rng([seed, draw]))
        for name, value in outcome(log._asdict(), spots)[1].items():
            told.setdefault(name, []).append(value)
    return told


def _slowness(vectors: np.ndarray, phi: np.ndarray, psi: np.ndarray, test: Dataset) -> dict[str, Any]:
    """Autocorrelations of e·φ and e·ψ at LAGS, means over directions."""
    return {
        f"slow.{name}": [_mean(measures.autocorrelation(rows @ vectors, test, lag)) for lag in LAGS]
        for name, rows in (("phi", phi), ("psi", psi))
    }


def _place(potentials: np.ndarray, positions: np.ndarray) -> np.ndarray:
    known = np.isfinite(positions).all(axis=1).any()
    return metrics.r8(potentials, positions) if known else np.full(potentials.shape[1], np.nan)


def _mean(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _ridge(phi: np.ndarray, walk: Dataset, test_phi: np.ndarray, test: Dataset) -> float | None:
    """The mean R² of the avatar's coordinates that vary; None where its places are not known."""
    if not all(np.isfinite(data.positions).all(axis=1).any() for data in (walk, test)):
        return None
    return _mean(measures.avatar_r2(phi, walk.positions, test_phi, test.positions))


# --- verdicts -------------------------------------------------------------------------------------------------------------

Results = Mapping[Setting, Mapping[str, Any]]


def stored(results: Path = RESULTS) -> dict[Setting, dict[str, Any]]:
    """The numbers of every network that was measured so far."""
    paths = {setting: results / name_of(setting) for setting in SETTINGS}
    there = {setting: path for setting, path in paths.items() if path.with_name(f"{path.name}.json").is_file()}
    return {setting: storage.load(path)[1]["numbers"] for setting, path in there.items()}


def score(results: Results) -> list[Verdict]:
    """Every claim of the module's list: first the claim as a whole, then its parts."""
    told: list[Verdict] = []
    for claim, parts in _claims(results).items():
        told.append(Verdict(claim, "", combined([part.verdict for part in parts])))
        told += parts
    return told


def _claims(results: Results) -> dict[str, list[Verdict]]:
    games = [game for game in GAMES if any(s.game == game and not s.scale for s in results)]
    others = ("random", "untrained", "pca", "play")
    claims: dict[str, list[Verdict]] = {}
    for claim, metric, best in (("purposeful", "go_and_stay", 2 * FOLLOWED), ("distinct", "ends", 2 * FOLLOWED)):
        claims[claim] = [_against(results, claim, g, metric, c, best) for g in games if g != "freeway" for c in others]
    seen = {game: _average(results, game, lambda n: n["network"]["ridge"]) for game in games}
    others = ("random", "pca", "untrained", "untrained_pca")
    visible = [game for game in games if (seen[game] or 0) >= SEEN]
    claims["place"] = [_against(results, "place", g, "r8", c, 1.0) for g in visible for c in others]
    if GAMES[0] in games:
        lead = lambda n: _arm_mean(n, "sr", "subgoals") - _arm_mean(n, "sr", "subgoals_null")  # noqa: E731
        claims["subgoals"] = [_itself(results, "subgoals", GAMES[0], lead, MARGINS["subgoals"])]
    claims["tracks"] = [_tracks(results, game, sprite) for game in games for sprite in ("avatar", "others")]
    claims["sees"] = [_itself(results, "sees", g, lambda n: n["network"]["ridge"], MARGINS["ridge"]) for g in games]
    claims["is_an_sr"] = [
        _itself(results, "is_an_sr", game, value, margin, part)
        for game in games
        for part, value, margin in (
            ("mc, less that of solved", lambda n: _less(n["network"]["mc.sr"], n["network"]["mc.solved"]), -0.1),
            (".2 less td", lambda n: 0.2 - n["network"]["td.sr"], 0.0),
        )
    ]
    lag = LAGS.index(8)
    slow = lambda n: n["network"]["slow.psi"][lag] - n["network"]["slow.phi"][lag]  # noqa: E731
    claims["slower"] = [_itself(results, "slower", game, slow, MARGINS["slow"]) for game in games]
    if "freeway" in games:
        claims["freeway"] = [_freeway(results, seen["freeway"])]
    return claims


Number = Callable[[Mapping[str, Any]], float | None]


def _replicates(results: Results, game: str) -> list[Mapping[str, Any]]:
    return [numbers for setting, numbers in results.items() if setting.game == game and not setting.scale]


def _average(results: Results, game: str, value: Number) -> float | None:
    known = [v for v in map(value, _replicates(results, game)) if v is not None]
    return float(np.mean(known)) if known else None


def _later(results: Results, game: str, value: Number) -> float | None:
    """The same number of the scale network at its last mark, if that is a million samples or more."""
    stages = {setting.seen: numbers for setting, numbers in results.items() if setting.game == game and setting.scale}
    last = max(stages, default=0)
    return value(stages[last]) if last >= ENOUGH else None


def _itself(results: Results, claim: str, game: str, value: Number, margin: float, part: str = "") -> Verdict:
    named = f"{game}: {part}" if part else game
    return judged(claim, named, [value(n) for n in _replicates(results, game)], margin, _later(results, game, value))


def _against(results: Results, claim: str, game: str, metric: str, control: str, best: float) -> Verdict:
    """`sr` less one control, network by network."""

    def lead(numbers: Mapping[str, Any]) -> float | None:
        return _less(_arm_mean(numbers, "sr", metric), _arm_mean(numbers, control, metric))

    networks, margin = _replicates(results, game), MARGINS[metric]
    known = [value for n in networks if (value := _arm_mean(n, control, metric)) is not None]
    obstacle = "" if known else "the places of the avatar are not known"
    if known and np.mean(known) > best - margin:
        obstacle = "the control is at the best possible value"
    later = _later(results, game, lead)
    return judged(claim, f"{game}: above {control}", [lead(n) for n in networks], margin, later, obstacle)


def _tracks(results: Results, game: str, sprite: str) -> Verdict:
    def share(numbers: Mapping[str, Any]) -> float | None:
        hits, moved = numbers["network"]["tracking"][sprite]
        return hits / moved if moved >= CASES else None

    values = [share(n) for n in _replicates(results, game)]
    obstacle = f"fewer than {CASES} sprites moved" if None in values else ""
    return judged("tracks", f"{game}: {sprite}", values, MARGINS["tracking"], _later(results, game, share), obstacle)


def _freeway(results: Results, seen: float | None) -> Verdict:
    """Whether one-step options fail: their lead over random play lies *below* the margin, so its sign is turned."""
    margin = MARGINS["go_and_stay"]
    leads = [
        _arm_mean(n, "sr", "go_and_stay") - _arm_mean(n, "play", "go_and_stay") for n in _replicates(results, "freeway")
    ]
    blind = "" if (seen or 0) >= SEEN else "the network does not see the chicken"
    found = judged("freeway", "go_and_stay less play, sign turned", [-lead for lead in leads], -margin, None, blind)
    above = found.verdict == SMALL and found.high is not None and found.high < -margin
    return found._replace(verdict=FAILS) if above else found


def _less(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _arm_mean(numbers: Mapping[str, Any], arm: str, metric: str) -> Any:
    """The mean over the draws of an arm; None where it could not be measured."""
    draws = [value for value in numbers[arm].get(metric, []) if value is not None]
    return float(np.mean(draws)) if draws else None
