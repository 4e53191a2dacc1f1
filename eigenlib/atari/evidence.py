"""Do eigenoptions of a learned SR go somewhere in Atari games, and is it the SR? Several networks a game (§4.2; notebook 10).

**Written before the first of these networks was trained.** What counts as which verdict stands here, not in a lesson. What
is looked at beyond it is a result without a verdict. The numbers of earlier, single networks were known when this was
written; margins are round numbers, not fitted to them.

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
                  changed pixels that touch (`others`). Only where the true centroid is more than 4 px from the region's
                  centre: a smear, or a guess of the middle, scores 0 there, and so does copying. Pixels are the screen's.
    ridge         R² on `test` of the avatar's x and y by ridge regression on φ, mean over the coordinates that vary;
                  strength by the last quarter of the walk
    td            mean |φ + γψ(s′) − ψ(s)|² over the variance of ψ;  mc: R² of ψ for the discounted sums of φ that follow,
                  over rows whose next 100 decisions are known or end
    slow          mean over directions of the autocorrelation of e·ψ less that of e·φ, at lag 8

*Verdicts.* A comparison is the difference between `sr` and one control in each network, and the 95 % interval of Student's t
over the five replicates. Against a MARGIN:
    holds                          the interval lies above the margin
    does not hold                  it lies below, and so does the gain of `sr` from .3 million samples to the last mark
    not reproduced at this size    it lies below, but that gain is above the margin: more training may yet do it;
                                   or the margin lies inside: five networks cannot tell
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

from typing import NamedTuple

from eigenlib.atari.runs import Config

GAMES = ("montezuma_revenge", "ms_pacman", "bank_heist", "freeway")
MARKS = (100_000, 300_000, 1_000_000, 3_000_000, 5_000_000)  # samples seen; the paper's amount is the last
WALK_ROWS, TEST_ROWS = 20_000, 10_000
WALK_SEED, TEST_SEED = 1_000_000, 2_000_000  # added to the number of a network: frames that no training sees

DIRECTIONS, FOLLOWED, STEPS = 20, 10, 100
MARGINS = {"go_and_stay": 2, "ends": 1, "r8": 0.02, "subgoals": 0.5, "tracking": 0.5, "ridge": 0.5, "slow": 0.02}
SEEN = 0.25  # of `ridge`: below it the network does not see the avatar
SUBGOALS = {  # x, y of the avatar's middle on arrival, Kulkarni et al. (2016); written down from the screen
    "foot of the middle ladder": (80, 127),
    "rope": (112, 105),
    "left door": (21, 83),
    "right door": (137, 83),
    "top of the right ladder": (136, 127),
    "foot of the right ladder": (136, 170),
    "foot of the left ladder": (21, 170),
    "top of the left ladder": (21, 127),
    "key": (15, 105),
}


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


REPLICATES = 5
SETTINGS = [Setting(game, number, 300_000) for number in range(REPLICATES) for game in GAMES] + [
    Setting(game, REPLICATES, seen) for seen in MARKS for game in GAMES
]
