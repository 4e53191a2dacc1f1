"""From the name of a game to its eigenoptions: collect, train, discover, show, ship (§4.2; notebooks 09 and 10).

A job owns a folder. Each step reads what the step before has left there, writes its own part, and passes over what is done;
a step that was killed goes on where it stopped.

    data/        transitions of the random policy       collect
    network/     the network and its losses             train
    walk/        frames of a fresh random walk          discover
    discovery/   options.npz and options.json           discover
    options.png  where the options went                 show

Discovery is done four times over, once with the paper's directions and three times with directions that a sceptic would try
(baselines.KINDS). Options are followed in batches of directions; each finished batch is stored until all are done. What
lessons need of a finished job is shipped to data/pretrained:

    GAME.safetensors, GAME.json         the network in float16, and how it was trained
    GAME-lesson.npz, GAME-lesson.json   everything else that lessons show: see `ship`
"""

from __future__ import annotations

import io
import shlex
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from eigenlib import _require, storage
from eigenlib.atari import baselines, metrics, options, pretrained, training
from eigenlib.atari import dataset as datasets
from eigenlib.atari.baselines import KINDS
from eigenlib.atari.device import choose_device
from eigenlib.atari.emulator import Emulator, game_name
from eigenlib.atari.training import Config
from eigenlib.paths import CACHE, PRETRAINED

WALK = 1_000_000  # added to the seed of a job for its walk: frames that the network has not seen
TOGETHER = 8  # directions followed at a time
LIMIT = 12_000_000  # bytes of weights that may be shipped


class Preset(NamedTuple):
    """How much of everything."""

    samples: int  # frames of random play to learn from
    config: Config  # of learning
    rows: int  # of the matrix T: frames of a fresh random walk
    purposes: int  # eigenpurposes, each followed in both directions
    steps: int  # decisions that an option is followed


_REFINED = Config(gamma=0.95, refine_passes=20, refine_target_period=20)
PRESETS = {
    "quick": Preset(10_000, replace(_REFINED, sizes="small", passes=3), rows=5_000, purposes=6, steps=60),
    "standard": Preset(100_000, replace(_REFINED, sizes="standard", passes=1), rows=20_000, purposes=20, steps=100),
    "paper": Preset(500_000, Config(sizes="paper", passes=10), rows=50_000, purposes=20, steps=100),
}
_LEAST = {"samples": 2, "rows": 2, "purposes": 1, "steps": 1, "passes": 0, "refine_passes": 0}


@dataclass(frozen=True)
class Job:
    """One game, one amount of work, one seed, one folder."""

    game: str
    preset: str
    amounts: Preset
    seed: int
    device: str
    out: Path
    threads: int | None = None  # of PyTorch on a CPU; None: as many as there are free cores
    precision: Any = "auto"

    def world(self) -> Emulator:
        return Emulator(self.game, seed=self.seed)

    def trained(self) -> training.Run:
        """The network of this job, if its training is finished."""
        if (self.out / "network" / "run.json").is_file():
            run = training.load_run(self.out / "network", str(choose_device(self.device)))
            if run.finished:
                return run
        raise FileNotFoundError(f"There is no trained network in {self.out}: first run {self.command('train')}.")

    def command(self, step: str) -> str:
        """What to type for a step of this job."""
        usual = _folder(self.game, self.preset, self.seed)
        out = "" if self.out == usual else f" --out {shlex.quote(str(self.out))}"
        return f"eigenlib atari {step} {self.game} {self.arguments}{out}"

    @property
    def arguments(self) -> str:
        """The part of the command that decides the results."""
        mine, usual = _flat(self.amounts), _flat(PRESETS[self.preset])
        changed = {name: amount for name, amount in mine.items() if amount != usual[name] and name != "seed"}
        changed |= {"seed": self.seed} if self.seed else {}
        return f"--preset {self.preset}" + "".join(
            f" --{n.replace('_', '-')} {amount}" for n, amount in changed.items()
        )


def prepare(
    game: str,
    preset: str = "standard",
    *,
    seed: int = 0,
    device: str = "auto",
    out: Path | str | None = None,
    threads: int | None = None,
    precision: str = "auto",
    **amounts,
) -> Job:
    """A job, or one sentence about what is wrong with it. amounts: entries of Preset or Config other than the preset's."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ValueError(f"There is no preset {preset!r}; the presets are {', '.join(PRESETS)}.")
    seed, out = _require.whole(seed, "seed", 0), None if out is None else _require.path(out, "out")
    changed: dict[str, Any] = {name: amount for name, amount in amounts.items() if amount is not None}
    learning = {field.name for field in fields(Config)} & set(changed)
    for name, amount in changed.items():
        if name in _LEAST:
            _require.whole(amount, name, _LEAST[name], 32_767 if name == "steps" else _require.LARGEST)
        elif name not in learning:
            raise ValueError(f"There is no amount {name!r}; there are {', '.join(_LEAST)} and the entries of Config.")
    chosen = PRESETS[preset]._replace(**{name: changed[name] for name in set(changed) - learning})
    config = replace(chosen.config, seed=seed, **{name: changed[name] for name in learning})
    choose_device(device)
    _require.choice(precision, "precision", training.PRECISIONS)
    if threads is not None:
        threads = _require.whole(threads, "threads", 1, 1024)
    game = game_name(game)
    folder = Path(out) if out is not None else _folder(game, preset, seed)
    return Job(game, preset, chosen._replace(config=config), seed, device, folder, threads, precision)


def collect_data(job: Job, processes: int = 1, progress: bool = True) -> datasets.Dataset:
    """The transitions to learn from."""
    return datasets.collect(
        job.game, job.amounts.samples, job.out / "data", processes=processes, seed=job.seed, progress=progress
    )


def train_network(job: Job, processes: int = 1, progress: bool = True) -> training.Run:
    """The network, trained on what `collect_data` has left."""
    if not (job.out / "data" / "about.json").is_file():
        raise FileNotFoundError(f"There is nothing to train on in {job.out}: first run {job.command('collect')}.")
    data = datasets.open_dataset(job.out / "data", verify=False)
    ways: Any = {"device": job.device, "threads": job.threads or "auto", "precision": job.precision}
    return training.train(data, job.amounts.config, job.out / "network", progress=progress, **ways)


class Discovery(NamedTuple):
    """kinds: for each of KINDS its arrays by name. One entry for each direction: "values", "vectors" (F, k), "r8"; one for each
    option, in the order e₁, −e₁, e₂, …: "big_basin" and those of options.Trajectories and metrics.behaviour.
    about: how it was made, and in "summary" the numbers of the table."""

    kinds: dict[str, dict[str, np.ndarray]]
    about: dict[str, Any]


def discover(
    job: Job,
    processes: int = 1,
    progress: bool = True,
    *,
    reward: Literal["phi", "psi"] = "phi",
    depth: int = 1,
    centre: bool = False,
) -> Discovery:
    """Eigenpurposes from ψ along a walk, followed in both directions and measured, and controls treated alike (Fig. 5).

    reward, depth, centre: as in options.follow_greedily and options.eigenpurposes_from_rows; the defaults are the paper's.
    """
    run = job.trained()
    walk = datasets.collect(
        job.game, job.amounts.rows, job.out / "walk", processes=processes, seed=job.seed + WALK, progress=progress
    )
    made_from = {"network": run.about["sha256"], "walk": walk.about["sha256"]["frames"]}
    made_from |= {"purposes": job.amounts.purposes, "steps": job.amounts.steps}
    made_from |= {"reward": reward, "depth": depth, "centre": centre}
    path = discovery_path(job, reward, depth, centre)
    with storage.alone_in(path.parent):
        if _stored(path, made_from) is None:
            _discover(job, run, walk, path, made_from, progress)
        # also those of a run that was killed when it had stored the whole
        for part in path.parent.glob(f"{path.name}-*.*"):
            if part.stem.removeprefix(f"{path.name}-").split("-")[0] in KINDS:
                part.unlink()
    return read_discovery(path)


def _discover(
    job: Job, run: training.Run, walk: datasets.Dataset, path: Path, made_from: dict[str, Any], progress: bool
) -> None:
    """Make what is not there yet and store it at `path`."""
    seen = lru_cache(maxsize=1)(lambda network: options.features_and_rows(network, walk.frames))
    world, positions = job.world(), np.asarray(walk.positions)
    arrays: dict[str, np.ndarray] = {}
    summary: dict[str, Any] = {}
    ways: Any = {"reward": made_from["reward"], "depth": made_from["depth"], "progress": progress}
    for kind in KINDS:
        network = run.network if kind != "untrained" else baselines.untrained_copy(run.network, run.config.seed)
        part = path.with_name(f"{path.name}-{kind}")
        found = _stored(part, made_from)
        if found is None:
            found = _directions(kind, *seen(network), positions, job, made_from["centre"])
            storage.save(part, found, made_from=made_from)
        vectors, logs = options.both_signs(found["vectors"]), []
        for first in range(0, vectors.shape[1], TOGETHER):
            part, some = path.with_name(f"{path.name}-{kind}-{first:03}"), vectors[:, first : first + TOGETHER]
            log = _stored(part, made_from)
            if log is None:
                log = options.follow_greedily(world, network, some, job.amounts.steps, **ways)._asdict()
                storage.save(part, log, made_from=made_from)
            logs.append(options.Trajectories(**log))
        tracks = options.Trajectories(*(np.concatenate(column) for column in zip(*logs, strict=True)))
        did = metrics.behaviour(tracks)
        arrays |= {f"{kind}.{name}": array for name, array in {**found, **tracks._asdict(), **did}.items()}
        summary[kind] = _summary(found, did)
    errors = metrics.prediction_errors(run.network, walk, walk.transitions[:2000], world.screen_size)
    about = {"game": job.game, "seed": job.seed, "made_from": made_from, "summary": summary}
    libraries = {name: version(name) for name in ("torch", "ale-py")}
    command = job.command("discover")
    storage.save(path, arrays, command=command, **about, prediction_errors=errors, libraries=libraries)


def discovery_path(job: Job, reward: str = "phi", depth: int = 1, centre: bool = False) -> Path:
    """Where `discover` stores what it finds, without suffix."""
    other = [f"-{reward}"] * (reward != "phi") + [f"-depth{depth}"] * (depth > 1) + ["-centred"] * centre
    return job.out / "discovery" / ("options" + "".join(other))


def read_discovery(path: Path) -> Discovery:
    """What `discover` stored."""
    path = _require.path(path, "path")
    if not path.with_name(path.name + ".json").is_file():
        raise FileNotFoundError(
            f"Nothing was discovered in {path.parent.parent} yet: first run eigenlib atari discover for it."
        )
    arrays, about = storage.load(path)
    kinds: dict[str, dict[str, np.ndarray]] = {kind: {} for kind in KINDS}
    for name, array in arrays.items():
        kind, _, field = name.partition(".")
        if kind not in kinds:
            raise ValueError(f"{path.name}.npz holds {name!r}, which discover never stores: run it again.")
        kinds[kind][field] = array
    return Discovery(kinds, about)


def _directions(kind: str, phi, psi, positions: np.ndarray, job: Job, centre: bool) -> dict[str, np.ndarray]:
    """Directions of one kind and how far their potential e·φ is a matter of the avatar's place; phi, psi: (N, F)."""
    which: Any = "sr" if kind == "untrained" else kind
    values, vectors = baselines.directions_of(which, phi, psi, job.amounts.purposes, centre, job.seed)
    found = {"values": values, "vectors": vectors.astype(np.float32)}
    if not np.isfinite(positions).all(axis=1).any():
        return found | {"r8": np.full(len(values), np.nan), "big_basin": np.full(2 * len(values), np.nan)}
    return found | place_shares(phi @ vectors, positions)


def place_shares(potentials: np.ndarray, positions: np.ndarray) -> dict[str, np.ndarray]:
    """How far potentials, (N, k), are a matter of place: "r8" (k,) of each, "big_basin" (2k,) of each and its negative."""
    basins = metrics.big_basin(options.both_signs(potentials), positions)
    return {"r8": metrics.r8(potentials, positions), "big_basin": basins}


def _summary(found: dict[str, np.ndarray], did: dict[str, np.ndarray]) -> dict[str, Any]:
    """One line of the table: means over directions, and counts over options."""
    goes = did["goes"]
    mean = {name: float(found[name].mean()) if np.isfinite(found[name]).all() else None for name in ("r8", "big_basin")}
    return mean | {
        "options": len(goes),
        "go_and_stay": int(goes.sum()),
        "distinct_ends": metrics.distinct_ends(did["ends"][goes]),
        "deaths": int(did["deaths"].sum()),
    }


def _stored(path: Path, made_from: dict[str, Any]) -> dict[str, np.ndarray] | None:
    """The arrays at path, if they are there, whole, and made from just this."""
    try:
        arrays, about = storage.load(path)
    except (OSError, ValueError):
        return None
    return arrays if about.get("made_from") == made_from else None


def show(job: Job, processes: int = 1) -> Path:
    """Print what was measured and draw where the options went."""
    from eigenlib.plots.atari import density_figure, summary_table

    found = read_discovery(discovery_path(job))
    print(summary_table(found.about))
    path = job.out / "options.png"
    kinds = {title: found.kinds[kind] for kind, title in KINDS.items()}
    picture = io.BytesIO()
    density_figure(job.world().screen(), kinds).savefig(picture, dpi=150)
    storage.replace_file(path, picture.getvalue())
    print(f"Figure: {path}")
    return path


def ship(job: Job, processes: int = 1, destination: Path | str = PRETRAINED) -> None:
    """Store what lessons need of a finished job among the data that come with the course.

    Arrays: "history.…" (losses), "frames" (65, 84, 84), "actions" (64,) and "positions" (65, 2) of transitions from the walk,
    which the network has not seen, "screen" (H, W, 3) at the start, and for each kind of direction KIND of `discover`
    "KIND.…": all it found but the vectors of controls and potentials along the way.
    """
    run, found = job.trained(), read_discovery(discovery_path(job))
    if found.about["made_from"]["network"] != run.about["sha256"]:
        raise ValueError(
            f"What was discovered in {job.out} belongs to another network: run {job.command('discover')} again."
        )
    walk = datasets.open_dataset(job.out / "walk")
    rows = pretrained.liveliest(walk, 64)
    arrays = {f"history.{name}": column for name, column in run.history.items()}
    arrays |= {"frames": np.array(walk.frames[rows]), "actions": np.array(walk.actions[rows][:-1])}
    arrays |= {"positions": np.array(walk.positions[rows]), "screen": job.world().screen()}
    for kind in KINDS:
        left_out = {"potentials", "gains"} | ({"vectors"} if kind != "sr" else set())
        arrays |= {f"{kind}.{name}": array for name, array in found.kinds[kind].items() if name not in left_out}
    size = sum(tensor.nbytes for tensor in training.exported(run.network).values())
    if size > LIMIT:
        raise ValueError(
            f"These weights take {size / 1e6:.1f} MB, more than the {LIMIT / 1e6:.0f} MB that may be shipped."
        )
    told = {name: found.about[name] for name in ("game", "seed", "summary", "prediction_errors", "libraries")}
    done = job.amounts._replace(
        config=run.config, samples=len(datasets.open_dataset(job.out / "data", verify=False)), rows=len(walk)
    )
    done = done._replace(**{name: found.about["made_from"][name] for name in ("purposes", "steps")})
    command = f"eigenlib atari run {job.game} {replace(job, amounts=done).arguments}"
    path = Path(destination) / job.game
    training.export_weights(run, path)
    storage.save(path.with_name(f"{job.game}-lesson"), arrays, command=command, **told, config=run.about["config"])
    print(f"Stored: {path}.safetensors")


def run_all(job: Job, processes: int = 1) -> None:
    """All steps."""
    collect_data(job, processes)
    train_network(job)
    discover(job, processes)
    show(job)


def _flat(amounts: Preset) -> dict[str, Any]:
    return asdict(amounts.config) | {name: value for name, value in amounts._asdict().items() if name != "config"}


def _folder(game: str, preset: str, seed: int) -> Path:
    return CACHE / "atari" / (f"{game}-{preset}" + (f"-seed{seed}" if seed else ""))


STEPS: dict[str, Any] = {
    "collect": collect_data,
    "train": train_network,
    "discover": discover,
    "show": show,
    "run": run_all,
    "ship": ship,
}
