"""Discovery in a game: eigenpurposes along a walk, options that follow them, numbers, and controls (§4.2; notebook 10).

Everything is done four times over, once with the paper's directions and three times with directions that a sceptic would
try (KINDS). Options are followed in batches of directions; each finished batch is stored until all are done, so that a run
that was killed goes on with the batch it was at.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from eigenlib import _require, storage
from eigenlib.atari import dataset as datasets
from eigenlib.atari import metrics, options

if TYPE_CHECKING:
    from eigenlib.atari.pipeline import Job
    from eigenlib.atari.training import Run

# What is followed: the paper's directions, and three controls, of which the last is the same network before it learned.
KINDS = {"sr": "eigenpurposes", "pca": "PCA of φ", "random": "random directions", "untrained": "untrained network"}
WALK = 1_000_000  # added to the seed of a job for its walk: frames that the network has not seen
TOGETHER = 8  # directions followed at a time


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

    reward, depth, centre: as in options.follow and options.eigenpurposes_from_rows; the defaults are the paper's.
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
    return read_discovery(path)


def _discover(
    job: Job, run: Run, walk: datasets.Dataset, path: Path, made_from: dict[str, Any], progress: bool
) -> None:
    """Make what is not there yet and store it at `path`."""
    seen = lru_cache(maxsize=1)(lambda network: options.features_and_rows(network, walk.frames))
    world, positions = job.world(), np.asarray(walk.positions)
    arrays: dict[str, np.ndarray] = {}
    summary: dict[str, Any] = {}
    for kind in KINDS:
        network = run.network if kind != "untrained" else options.untrained(run.network, run.config.seed)
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
                ways: Any = {"reward": made_from["reward"], "depth": made_from["depth"], "progress": progress}
                log = options.follow(world, network, some, job.amounts.steps, **ways)._asdict()
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
    for part in path.parent.glob(f"{path.name}-*.*"):
        if part.stem.removeprefix(f"{path.name}-").split("-")[0] in KINDS:
            part.unlink()


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
    values, vectors = options.directions(which, phi, psi, job.amounts.purposes, centre, job.seed)
    found = {"values": values, "vectors": vectors.astype(np.float32)}
    known = np.isfinite(positions).all(axis=1).any()
    if known:
        potentials = phi @ vectors
        found["r8"] = metrics.r8(potentials, positions)
        found["big_basin"] = metrics.big_basin(options.both_signs(potentials), positions)
    else:
        found["r8"], found["big_basin"] = np.full(len(values), np.nan), np.full(2 * len(values), np.nan)
    return found


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
