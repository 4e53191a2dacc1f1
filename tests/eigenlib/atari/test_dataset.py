"""Datasets: rows mean what they say, files do not depend on processes or on being killed, damage is noticed."""

import errno
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import psutil
import pytest

from eigenlib import storage
from eigenlib.atari import dataset as datasets
from eigenlib.atari.dataset import (
    COLUMNS,
    CUT_OFF,
    EPISODE_ENDED,
    LIFE_LOST,
    NO_ACTION,
    ORDINARY,
    Dataset,
    DatasetError,
    collect,
    open_dataset,
    play,
)
from eigenlib.atari.emulator import Emulator
from eigenlib.atari.pixels import PixelMaze
from eigenlib.gridworld import GridWorld


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def maze(**options) -> PixelMaze:
    return PixelMaze(GridWorld.named("four_rooms", slip=0.2), **options)


@pytest.fixture
def small(tmp_path):
    """A whole dataset of a maze, in no time."""
    collect(maze(steps=15), 100, tmp_path / "small", shard=30, progress=False)
    return tmp_path / "small"


# --- what a row means -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["ms_pacman", "montezuma_revenge"])
def test_replaying_the_actions_gives_the_rows(game):
    """Every frame once, in order; every code where it belongs."""
    rows, world = 1100, Emulator(game, seed=5)
    table, earned = play(world, rows, np.random.default_rng(1))
    frames, actions, ends, positions = table.values()
    again, total, t = Emulator(game, seed=5), 0.0, 0
    while t < rows:
        again.reset()
        start = t
        assert (frames[t] == again.frame()).all()
        while actions[t] != NO_ACTION:
            lives, room = again.lives, again.room()
            total += again.act(int(actions[t]))
            assert (frames[t + 1] == again.frame()).all()
            assert tuple(positions[t + 1]) == again.position()
            assert again.room() == room
            if again.over:
                assert ends[t] == EPISODE_ENDED
            elif t + 1 == rows - 1:
                assert ends[t] in (CUT_OFF, LIFE_LOST)
            else:
                assert ends[t] == (LIFE_LOST if again.lives < lives else ORDINARY)
            t += 1
        assert again.over or t == rows - 1, "an episode stops only at its end or at the shard's"
        assert t > start
        t += 1
    assert total == earned
    assert {ORDINARY, LIFE_LOST, EPISODE_ENDED} <= set(ends.tolist())
    counts = np.bincount(actions[actions != NO_ACTION], minlength=world.n_actions)
    share = 1 / world.n_actions
    assert np.abs(counts / counts.sum() - share).max() < 5 * np.sqrt(share / counts.sum())


def test_a_maze_s_rows_follow_its_moves_and_are_cut_off(small):
    data, world = open_dataset(small), maze()
    state = {frame.tobytes(): s for s, frame in enumerate(world.frames)}
    states = np.array([state[frame.tobytes()] for frame in data.frames])
    T = world.world.transition_matrix()
    assert (T[states[data.transitions], states[data.transitions + 1]] > 0).all()
    last = np.flatnonzero(data.actions == NO_ACTION)
    assert last.tolist() == [15, 29, 45, 59, 75, 89, 99]  # after 15 decisions, or where a shard of 30 rows is full
    assert np.flatnonzero(data.ends).tolist() == (last - 1).tolist()
    assert set(data.ends[last - 1]) == {CUT_OFF}
    assert len(data) == 100
    assert data.about["transitions"] == len(data.transitions) == 93
    assert data.n_actions == 4
    assert isinstance(data.frames, np.memmap)
    for row in (0, 50):
        world.state = states[row]
        assert tuple(data.positions[row]) == world.position()


def test_a_town_that_is_left_is_left_out():
    """Bank Heist: no stored frame and no transition lies beyond the first town; without that rule some do."""

    class Watched(Emulator):
        def position(self):
            return float(self.room()), 0.0

    for one_room in (True, False):
        table, _ = play(Watched("bank_heist"), 800, np.random.default_rng(0), one_room=one_room)
        towns = table["positions"][:, 0]
        if one_room:
            assert (towns == 0).all()
            last = np.flatnonzero(table["actions"] == NO_ACTION)
            assert len(last) > 5
            before = table["ends"][last[last > 0] - 1]
            assert (before != ORDINARY).all()
        else:
            assert (towns > 0).any()


def test_episodes_can_be_cut_off_sooner():
    table, _ = play(Emulator("freeway"), 50, np.random.default_rng(0), episode_steps=12)
    assert np.flatnonzero(table["actions"] == NO_ACTION).tolist() == [12, 25, 38, 49]
    assert np.flatnonzero(table["ends"]).tolist() == [11, 24, 37, 48]


def test_arrays_in_memory_are_checked():
    frames = np.zeros((3, 84, 84), np.uint8)
    actions, ends = np.array([0, 1, NO_ACTION], np.uint8), np.zeros(3, np.uint8)
    data = Dataset.from_arrays(frames, actions, ends, 2)
    assert data.transitions.tolist() == [0, 1]
    assert np.isnan(data.positions).all()
    with pytest.raises(DatasetError, match="frames should be uint8"):
        Dataset.from_arrays(frames.astype(float), actions, ends, 2)
    with pytest.raises(DatasetError, match=r"ends should be uint8 of shape \(3,\)"):
        Dataset.from_arrays(frames, actions, ends[:2], 2)
    with pytest.raises(DatasetError, match="below 1, or 255"):
        Dataset.from_arrays(frames, actions, ends, 1)
    with pytest.raises(DatasetError, match="in the last row"):
        Dataset.from_arrays(frames, ends, ends, 2)


# --- the same files, whatever happens ---------------------------------------------------------------------------------

GAME: dict = {"samples": 2500, "seed": 9, "shard": 130, "progress": False, "frame_skip": 2, "sticky": 0.25}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("collected") / "bank_heist"
    collect("bank_heist", path=path, **GAME)
    return path


def test_two_processes_write_the_same_files_as_one(undisturbed, tmp_path):
    data = collect("Bank Heist", path=tmp_path / "two", processes=2, **GAME)
    assert contents(tmp_path / "two") == contents(undisturbed)
    assert sorted(contents(undisturbed)) == sorted(["about.json", *(f"{name}.npy" for name in COLUMNS)])
    assert data.about["parameters"]["sticky"] == 0.25
    open_dataset(undisturbed)


def test_shards_and_seeds_differ(undisturbed, tmp_path):
    data = open_dataset(undisturbed)
    assert (data.actions[:129] != data.actions[130:259]).any()
    other = collect("bank_heist", path=tmp_path / "other", **(GAME | {"seed": 10, "samples": 130}))
    assert (other.actions[:129] != data.actions[:129]).any()


def collecting(path: Path, processes: int, **task) -> subprocess.Popen:
    code = "import sys, json; from eigenlib.atari.dataset import collect; collect(**json.loads(sys.argv[1]))"
    task |= {"world": "bank_heist", "path": str(path), "processes": processes}
    return subprocess.Popen([sys.executable, "-c", code, json.dumps(task)])


def marks(path: Path) -> dict[str, int]:
    """When each finished shard was finished."""
    return {file.name: file.stat().st_mtime_ns for file in path.glob("shards/?????.json")}


def kill_after(process: subprocess.Popen, path: Path, shards: int, delay: float = 0.0) -> None:
    """Kill -9 when so many shards are there; helpers must follow soon."""
    while process.poll() is None and len(marks(path)) < shards:
        time.sleep(0.005)
    time.sleep(delay)
    helpers = psutil.Process(process.pid).children() if process.poll() is None else []
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(helpers, timeout=600)
    assert not alive


def test_killed_at_any_moment_it_goes_on(undisturbed, tmp_path):
    """Real processes, really killed: while starting, between shards, in the middle of shards, with helpers."""
    rng, path = random.Random(4), tmp_path / "killed"
    done: dict[str, int] = {}
    for round_, wanted in enumerate([0, 1, 4, 8, 11]):
        delay = rng.uniform(0, 0.04 if wanted else 1.5)
        kill_after(collecting(path, round_ % 2 + 1, **GAME), path, wanted, delay)
        assert not (path / "about.json").exists()
        with pytest.raises(DatasetError, match="no whole dataset"):
            open_dataset(path)
        assert done.items() <= marks(path).items(), "what was finished must not be collected again"
        done = marks(path)
    assert len(done) >= 11
    collect("bank_heist", path=path, **GAME)
    assert contents(path) == contents(undisturbed)


def test_helpers_stop_when_the_collection_is_killed(tmp_path):
    kill_after(collecting(tmp_path, 2, samples=10_000, shard=100, frame_skip=10, progress=False), tmp_path, 2)
    assert 2 <= len(marks(tmp_path)) < 50  # of 100


class Killed(BaseException):
    pass


def test_stopped_at_every_single_step_it_goes_on(tmp_path, monkeypatch):
    """The same without luck: die at the first write, rename, flush or deletion, then at the second, and so on."""
    task = {"samples": 70, "shard": 30, "progress": False}
    collect(maze(), path=tmp_path / "whole", **task)
    wanted = contents(tmp_path / "whole")
    steps = 0

    def dies_at(limit):
        count = 0

        def wrap(function):
            def step(*arguments, **options):
                nonlocal count
                count += 1
                if count == limit:
                    raise Killed
                return function(*arguments, **options)

            return step

        return wrap

    while True:
        steps += 1
        path, wrap = tmp_path / str(steps), dies_at(steps)
        with monkeypatch.context() as patch:
            for owner, name in (
                (Path, "replace"), (os, "replace"), (os, "open"), (Path, "unlink"), (Path, "mkdir"), (os, "fsync"),
                (np.lib.format, "write_array_header_1_0"), (shutil, "rmtree"),
            ):  # fmt: skip
                if hasattr(owner, name):
                    patch.setattr(owner, name, wrap(getattr(owner, name)))
            try:
                collect(maze(), path=path, **task)
                break
            except Killed:
                pass
        collect(maze(), path=path, **task)
        left = contents(path)
        left.pop(".lock", None)
        assert left == wanted, f"after dying at step {steps}"
    assert steps > 40


def test_rows_that_were_damaged_meanwhile_are_collected_again(tmp_path, monkeypatch):
    path, task = tmp_path / "d", {"samples": 70, "shard": 30, "progress": False}
    with monkeypatch.context() as patch:
        patch.setattr(datasets, "_finish", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            collect(maze(), path=path, **task)
    damaged = bytearray((path / "shards" / "00001.npz").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (path / "shards" / "00001.npz").write_bytes(damaged)
    collect(maze(), path=path, **task)
    collect(maze(), path=tmp_path / "whole", **task)
    assert contents(path) == contents(tmp_path / "whole")


def test_a_whole_dataset_is_not_collected_again(small):
    before = {file: file.stat().st_mtime_ns for file in small.iterdir()}
    collect(maze(steps=15), 100, small, shard=30, progress=False)
    assert {file: file.stat().st_mtime_ns for file in small.iterdir()} == before


@pytest.mark.parametrize("change", [{"samples": 101}, {"seed": 1}, {"shard": 31}, {"episode_steps": 5}, {"world": 14}])
def test_another_collection_in_the_same_folder_is_refused(small, change):
    task = {"samples": 100, "seed": 0, "shard": 30, "episode_steps": None, "progress": False} | change
    world = maze(steps=task.pop("world", 15))
    before = contents(small)
    with pytest.raises(DatasetError, match=r"holds another collection .* instead of .*choose another folder"):
        collect(world, path=small, **task)
    assert contents(small) == before


def test_two_collections_do_not_share_a_folder(small):
    pytest.importorskip("fcntl")
    with storage.alone_in(small), pytest.raises(ValueError, match="Another process is at work in"):
        collect(maze(steps=15), 100, small, shard=30, progress=False)


# --- what can go wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COLUMNS)
def test_damage_is_noticed(small, name):
    file = small / f"{name}.npy"
    whole = file.read_bytes()
    for damage, message in (
        (whole[:-1], "cut short"),
        (whole[:100], "cut short"),
        (b"", "cut short"),
        (whole[:-1] + bytes([whole[-1] ^ 1]), "not the file that about.json describes"),
        (whole + b"x", "not the file that about.json describes"),
    ):
        file.write_bytes(damage)
        with pytest.raises(DatasetError, match=f"{name}.npy .*{message}.*again"):
            open_dataset(small)
    file.unlink()
    with pytest.raises(DatasetError, match=f"{name}.npy is missing"):
        open_dataset(small)
    file.write_bytes(whole)
    open_dataset(small)


def test_a_folder_without_a_dataset_says_so(small, tmp_path):
    with pytest.raises(DatasetError, match=r"no whole dataset.*collect one first"):
        open_dataset(tmp_path / "nowhere")
    (small / "about.json").write_text("[1, 2", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"about.json .* does not describe a dataset"):
        open_dataset(small)


class Trap:
    """Unpickling this writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "gotcha")


@pytest.mark.parametrize("verify", [True, False])
def test_a_planted_pickle_is_not_opened(small, tmp_path, verify):
    bait = tmp_path / "gotcha"
    np.save(small / "actions.npy", np.array([Trap(bait)] * 100, dtype=object), allow_pickle=True)
    about = json.loads((small / "about.json").read_text(encoding="utf-8"))
    about["sha256"]["actions"] = sha256((small / "actions.npy").read_bytes()).hexdigest()
    (small / "about.json").write_text(json.dumps(about), encoding="utf-8")
    with pytest.raises(DatasetError, match="not a plain array"):
        open_dataset(small, verify=verify)
    (small / "actions.npy").write_bytes(pickle.dumps(Trap(bait)))
    with pytest.raises(DatasetError, match="not a plain array"):
        open_dataset(small, verify=verify)
    assert not bait.exists()
    np.load(small / "actions.npy", allow_pickle=True)
    assert bait.exists(), "the trap must be able to spring, or this test tests nothing"


def test_too_little_disk_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 5 * 10**6})())
    with pytest.raises(DatasetError, match=r"1000 samples need 8\d{6} bytes .* only 5000000 bytes .* fewer, or into"):
        collect(maze(), 1000, tmp_path / "d", progress=False)
    assert not (tmp_path / "d").exists()
    collect(maze(), 100, tmp_path / "d", progress=False)


def test_what_cannot_be_collected_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="frame_skip: such options go with a game's name"):
        collect(maze(), 100, tmp_path, frame_skip=4)
    for task in ({"samples": 1}, {"shard": 1}, {"processes": 0}, {"episode_steps": 0}):
        with pytest.raises(ValueError, match=rf"^{next(iter(task))} must be at least"):
            collect(maze(), path=tmp_path, **({"samples": 100} | task))
    with pytest.raises(ValueError, match="did you mean freeway"):
        collect("freway", 100, tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_a_failing_helper_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "not a number")  # no interpreter starts with this
    with pytest.raises(DatasetError, match=r"collecting process failed.*taken up again"):
        collect("freeway", 80, tmp_path / "d", shard=20, processes=2, progress=False)


def test_progress_is_shown_when_asked(tmp_path, capsys):
    collect(maze(), 100, tmp_path / "a", shard=30)
    assert "collecting four_rooms" in capsys.readouterr().err
    collect(lambda seed: maze(seed=seed), 100, tmp_path / "b", shard=30, progress=False)
    assert capsys.readouterr().err == ""
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_disk_that_fills_up_at_the_end_is_one_sentence_and_leaves_no_half(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    collect(maze(), 100, tmp_path / "whole", progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format, "write_array_header_1_0", full)
        with pytest.raises(DatasetError, match=r"cannot take its 100 samples \(No space left .* need 17\d{5} bytes"):
            collect(maze(), 100, tmp_path / "d", progress=False)
    assert not list((tmp_path / "d").glob("*.npy*"))
    collect(maze(), 100, tmp_path / "d", progress=False)
    assert contents(tmp_path / "d") == contents(tmp_path / "whole")


@pytest.mark.parametrize("planted", ["frames.npy.part", "shards"])
def test_a_received_folder_cannot_have_other_files_written(tmp_path, planted, monkeypatch):
    """A collection half done, in which an array or the folder of marks is a link to somebody else's."""
    task = {"samples": 70, "shard": 30, "progress": False}
    with monkeypatch.context() as patch:
        patch.setattr(datasets, "_finish", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            collect(maze(), path=tmp_path / "received", **task)
    link, victim = tmp_path / "received" / planted, tmp_path / "victim"
    if planted == "shards":
        shutil.rmtree(link)
        victim.mkdir()
    else:
        victim.write_bytes(b"precious")
    link.symlink_to(victim)
    before = contents(victim) if victim.is_dir() else victim.read_bytes()
    collect(maze(), path=tmp_path / "received", **task)
    assert (contents(victim) if victim.is_dir() else victim.read_bytes()) == before
    collect(maze(), path=tmp_path / "whole", **task)
    assert contents(tmp_path / "received") == contents(tmp_path / "whole")
