"""From the name of a game to its eigenoptions: collect, train, discover, show (§4.2; notebooks 09 and 10).

A job owns a folder. Each step reads what the step before has left there, writes its own part, and passes over what is done;
a step that was killed goes on where it stopped.

    data/        transitions of the random policy       collect
    network/     the network and its losses             train
    walk/        frames of a fresh random walk          discover
    discovery/   options.npz and options.json           discover
    options.png  where the options went                 show
"""

from __future__ import annotations

import io
import shlex
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from eigenlib import _require, storage
from eigenlib.atari import dataset as datasets
from eigenlib.atari import training
from eigenlib.atari.device import choose_device
from eigenlib.atari.discovery import KINDS, discover, discovery_path, read_discovery
from eigenlib.atari.emulator import Emulator, game_name
from eigenlib.atari.training import Config
from eigenlib.paths import CACHE


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


def collect(job: Job, processes: int = 1, progress: bool = True) -> datasets.Dataset:
    """The transitions to learn from."""
    return datasets.collect(
        job.game, job.amounts.samples, job.out / "data", processes=processes, seed=job.seed, progress=progress
    )


def train(job: Job, processes: int = 1, progress: bool = True) -> training.Run:
    """The network, trained on what `collect` has left."""
    if not (job.out / "data" / "about.json").is_file():
        raise FileNotFoundError(f"There is nothing to train on in {job.out}: first run {job.command('collect')}.")
    data = datasets.open_dataset(job.out / "data", verify=False)
    return training.train(
        data,
        job.amounts.config,
        job.out / "network",
        device=job.device,
        progress=progress,
        threads=job.threads or "auto",
        precision=job.precision,
    )


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


def ship(job: Job, processes: int = 1) -> None:
    """Store what lessons need of this job among the data that come with the course."""
    from eigenlib.atari import pretrained

    print(f"Stored: {pretrained.ship(job)}.safetensors")


def run(job: Job, processes: int = 1) -> None:
    """All steps."""
    collect(job, processes)
    train(job)
    discover(job, processes)
    show(job)


def _flat(amounts: Preset) -> dict[str, Any]:
    return asdict(amounts.config) | {name: value for name, value in amounts._asdict().items() if name != "config"}


def _folder(game: str, preset: str, seed: int) -> Path:
    return CACHE / "atari" / (f"{game}-{preset}" + (f"-seed{seed}" if seed else ""))


STEPS: dict[str, Any] = {
    "collect": collect,
    "train": train,
    "discover": discover,
    "show": show,
    "run": run,
    "ship": ship,
}
