"""What is stored is whole or not there: writers that are killed, planted links, full disks, files that lie, two at once."""

import errno
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from eigenlib import storage

ARRAYS = {"numbers": np.arange(50.0), "more": np.eye(3, dtype=np.float32)}
TENSORS = {"weights": torch.arange(6.0).reshape(2, 3), "bias": torch.ones(2, dtype=torch.float16)}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def python(code: str) -> subprocess.CompletedProcess:
    """Run a few lines in another process, with what the tests here use."""
    begin = "import os, sys; from pathlib import Path; from eigenlib import storage; here = Path(sys.argv[1])\n"
    return subprocess.run([sys.executable, "-c", begin + code, os.getcwd()], capture_output=True, text=True)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- killed -----------------------------------------------------------------------------------------------------------

DIE = {  # where the process ends, as kill -9 would end it
    "while writing": "os.fsync = lambda *_: os._exit(9)",
    "between write and rename": "os.replace = lambda *_: os._exit(9)",
}


@pytest.mark.parametrize("moment", DIE)
def test_a_killed_writer_leaves_the_old_file_and_the_next_one_tidies(here, moment):
    storage.replace_file(here / "file", b"old")
    assert python(f"{DIE[moment]}\nstorage.replace_file(here / 'file', b'new')").returncode == 9
    assert (here / "file").read_bytes() == b"old"
    assert len(names(here)) == 2, "the kill came too early to test anything"
    storage.replace_file(here / "other", b"")
    assert names(here) == ["file", "other"]


def test_a_writer_that_is_still_at_work_is_left_alone(here):
    theirs = here / f".file.{os.getppid()}-{'0' * 16}.part"
    users = [here / ".video.2023.part", here / "file.part", here / f".x.{10**30}-{'0' * 16}.part"]
    for path in (theirs, *users):
        path.write_bytes(b"")
    storage.replace_file(here / "file", b"data")
    assert all(path.exists() for path in (theirs, *users))


def test_an_interrupted_writer_leaves_nothing(here, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        storage.replace_file(here / "file", b"data")
    assert names(here) == []


@pytest.mark.parametrize("cut", ["data", "description"])
def test_a_pair_that_a_kill_has_torn_is_refused(here, cut):
    """After the arrays, before their description: it is still the old one's, and says so."""
    storage.save("pair", ARRAYS)
    once = "real = storage.replace_file\n"
    once += "storage.replace_file = lambda path, data: os._exit(9) if path.suffix == '.json' else real(path, data)\n"
    if cut == "description":
        assert python(f"import numpy as np\n{once}storage.save('pair', {{'numbers': np.zeros(3)}})").returncode == 9
        with pytest.raises(ValueError, match=r"pair.npz is not the file that pair.json describes"):
            storage.load("pair")
    else:
        assert python(f"import numpy as np\n{DIE['while writing']}\nstorage.save('pair', {{}})").returncode == 9
        np.testing.assert_array_equal(storage.load("pair")[0]["numbers"], ARRAYS["numbers"])


def test_a_checkpoint_is_the_old_or_the_new_one(here):
    storage.save_tensors("run", TENSORS, {"update": 1}, "checkpoint-1.safetensors")
    code = "import torch\nreal = storage.write_description\nstorage.write_description = lambda *_: os._exit(9)\n"
    code += "storage.save_tensors('run', {'weights': torch.zeros(1)}, {'update': 2}, 'checkpoint-2.safetensors')"
    assert python(code).returncode == 9
    assert "checkpoint-2.safetensors" in names(here)
    tensors, about = storage.load_tensors("run")
    assert about["update"] == 1
    assert torch.equal(tensors["weights"], TENSORS["weights"])


SWAP = """
real = Path.rename
def rename(self, target):
    if self.suffix == ".{kind}" or Path(target).suffix == ".{kind}":
        os._exit(9)
    return real(self, target)
Path.rename = rename
with storage.whole_folder(here / "folder") as building:
    (building / "new").touch()
"""


@pytest.mark.parametrize("kind", ["old", "building"])
def test_a_killed_swap_of_folders_loses_nothing(here, kind):
    """Before the old folder is moved away, and between the two renames: the next one in puts it back."""
    (here / "folder").mkdir()
    (here / "folder" / "old").touch()
    assert python(SWAP.format(kind=kind)).returncode == 9
    assert (here / "folder").exists() == (kind == "old")
    with pytest.raises(FileNotFoundError), storage.whole_folder(here / "folder") as building:
        (building / "missing" / "half").touch()
    assert names(here) == ["folder"]
    assert names(here / "folder") == ["old"]
    with storage.whole_folder(here / "folder") as building:
        (building / "new").touch()
    assert names(here) == ["folder"]
    assert names(here / "folder") == ["new"]


# --- planted links ----------------------------------------------------------------------------------------------------


@pytest.fixture
def victim(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("elsewhere") / "precious"
    path.write_bytes(b"precious")
    return path


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(here, victim):
    (here / "file").symlink_to(victim)
    storage.replace_file(here / "file", b"ours")
    assert victim.read_bytes() == b"precious"
    assert not (here / "file").is_symlink()
    assert (here / "file").read_bytes() == b"ours"


def test_a_link_under_the_temporary_name_is_refused(here, victim, monkeypatch):
    """Nobody can guess the name; whoever could would gain nothing."""
    monkeypatch.setattr(storage.secrets, "token_hex", lambda _: "0" * 16)
    planted = here / f".file.{os.getpid()}-{'0' * 16}.part"
    planted.symlink_to(victim)
    with pytest.raises(OSError, match=r"file cannot be written \(File exists\)"):
        storage.replace_file(here / "file", b"ours")
    assert victim.read_bytes() == b"precious"


def test_a_link_in_the_place_of_the_lock_is_refused(here, victim):
    (here / ".lock").symlink_to(victim)
    with pytest.raises(OSError, match=r"\.lock cannot be locked .* remove it"), storage.alone_in(here):
        pytest.fail("the link was followed")
    assert victim.read_bytes() == b"precious"
    (here / ".lock").unlink()
    (here / ".lock").symlink_to(victim.with_name("new"))
    with pytest.raises(OSError, match=r"\.lock cannot be locked"), storage.alone_in(here):
        pytest.fail("the link was followed")
    assert not victim.with_name("new").exists()


def test_leftovers_that_are_links_are_removed_and_not_followed(here, victim):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for kind in ("part", "building"):
        (here / f".file.{dead.pid}-{'0' * 16}.{kind}").symlink_to(victim.parent)
    storage.remove_leftovers(here)
    assert names(here) == []
    assert victim.read_bytes() == b"precious"


def test_names_of_temporary_files_differ_and_modes_are_the_usual_ones(here):
    assert len({storage._own_name(here / "file", "part").name for _ in range(100)}) == 100
    before = os.umask(0o027)
    storage.replace_file(here / "file", b"")
    os.umask(before)
    assert (here / "file").stat().st_mode & 0o777 == 0o640


# --- a full disk --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "open"])
def test_a_full_disk_names_the_file_and_the_room_and_leaves_no_half(here, step, monkeypatch):
    storage.replace_file(here / "file", b"old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    expected = r"file cannot be written \(No space left on device; it takes 3 bytes\): make room"
    with pytest.raises(OSError, match=expected) as raised:
        storage.replace_file(here / "file", b"new")
    monkeypatch.undo()
    assert "it takes 3 bytes" in raised.value.strerror
    assert names(here) == ["file"]
    assert (here / "file").read_bytes() == b"old"


def test_a_disk_that_fills_up_in_the_middle_of_a_write(here):
    """Really: the kernel lets no file of this process grow beyond 4 kB."""
    code = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    code += "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
    code += "try: storage.replace_file(here / 'file', bytes(10_000))\nexcept OSError as problem: print(problem)"
    (here / "file").write_bytes(b"old")
    assert "file cannot be written (File too large): make room" in python(code).stdout
    assert names(here) == ["file"]
    assert (here / "file").read_bytes() == b"old"


def test_a_folder_is_synced_after_the_rename(here, monkeypatch):
    """Or a power cut could take the new name back."""
    done, sync, rename = [], os.fsync, os.replace

    def synced(handle):
        done.append(os.readlink(f"/proc/self/fd/{handle}"))
        sync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda part, path: done.append("rename") or rename(part, path))
    storage.replace_file(here / "file", b"data")
    assert done[0].endswith(".part")
    assert done[1:] == ["rename", str(here)]


# --- what is read -------------------------------------------------------------------------------------------------------


def test_arrays_and_tensors_come_back(here):
    storage.save("some.arrays", ARRAYS, command="none", count=np.int64(3))
    arrays, about = storage.load("some.arrays")
    assert all(
        np.array_equal(arrays[name], array) and arrays[name].dtype == array.dtype for name, array in ARRAYS.items()
    )
    assert (about["command"], about["count"]) == ("none", 3)
    storage.save_tensors("some tensors", TENSORS, {"sizes": [1, 2]})
    tensors, about = storage.load_tensors("some tensors")
    assert all(
        torch.equal(tensors[name], tensor) and tensors[name].dtype == tensor.dtype for name, tensor in TENSORS.items()
    )
    assert about["sizes"] == [1, 2]
    assert names(here) == ["some tensors.json", "some tensors.safetensors", "some.arrays.json", "some.arrays.npz"]


def vouch(path: Path, data: bytes) -> None:
    """An archive, whatever it is, with a description that vouches for it."""
    path.with_name(path.name + ".npz").write_bytes(data)
    path.with_name(path.name + ".json").write_text(json.dumps({"sha256": storage.sha256(data)}))


def test_a_torn_archive_is_refused(here):
    storage.save("whole", ARRAYS)
    data = (here / "whole.npz").read_bytes()
    for length in (0, 1, 30, len(data) // 2, len(data) - 1):
        vouch(here / "torn", data[:length])
        with pytest.raises(ValueError, match=r"torn.npz is torn or is no archive of arrays: fetch it"):
            storage.load("torn")


def test_a_small_archive_of_a_huge_array_is_refused_before_it_is_unpacked(here, monkeypatch):
    monkeypatch.setattr(storage, "LARGEST", 2**20)
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("it was unpacked"))
    member, buffer = io.BytesIO(), io.BytesIO()
    np.save(member, np.zeros(2**20))
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("numbers.npy", member.getvalue())
    assert len(buffer.getvalue()) < 20_000
    vouch(here / "bomb", buffer.getvalue())
    with pytest.raises(ValueError, match="would take more than 1048576 bytes of memory"):
        storage.load("bomb")


@pytest.mark.parametrize("suffix", [".json", ".npz", ".safetensors"])
def test_a_huge_file_is_refused_unread(here, suffix):
    """A terabyte of nothing takes no room on the disk."""
    storage.save("pair", ARRAYS)
    storage.save_tensors("weights", TENSORS, {})
    with open(here / f"{'weights' if suffix == '.safetensors' else 'pair'}{suffix}", "r+b") as file:
        file.truncate(2**40)
    with pytest.raises(ValueError, match=r"has 1099511627776 bytes, more than the \d+ that can be right"):
        (storage.load_tensors if suffix == ".safetensors" else storage.load)(
            "weights" if suffix == ".safetensors" else "pair"
        )


def test_pipes_devices_and_folders_are_not_read(here):
    os.mkfifo(here / "pipe.json")
    (here / "endless.json").symlink_to("/dev/zero")
    (here / "folder.json").mkdir()
    for name in ("pipe", "endless", "folder"):
        with pytest.raises(OSError, match=r"cannot be read \((it is no ordinary file|Is a directory)\)"):
            storage.load(name)


def test_tensors_of_another_folder_are_not_read(here):
    storage.save_tensors("run", TENSORS, {}, "checkpoint-1.safetensors")
    about = json.loads((here / "run.json").read_text())
    for name in ("../other.safetensors", "/etc/passwd", "a/b.safetensors", "", None, 3, "run.json", ".safetensors"):
        (here / "run.json").write_text(json.dumps(about | {"file": name}))
        with pytest.raises(ValueError, match="does not name its tensors"):
            storage.load_tensors("run")


def test_numbers_that_are_none_are_refused(here):
    storage.save_tensors("weights", TENSORS | {"bad": torch.tensor([1.0, float("nan")])}, {})
    with pytest.raises(ValueError, match="holds entries in 'bad' that are not finite"):
        storage.load_tensors("weights")


def test_objects_are_neither_stored_nor_read(here):
    with pytest.raises(ValueError, match="must hold plain arrays under names, but 'a' holds"):
        storage.save("objects", {"a": np.array([{}], dtype=object)})
    buffer = io.BytesIO()
    np.savez(buffer, a=np.array([{}], dtype=object))
    vouch(here / "objects", buffer.getvalue())
    with pytest.raises(ValueError, match="no plain array"):
        storage.load("objects")


# --- two at once --------------------------------------------------------------------------------------------------------


def test_a_folder_is_not_shared_and_is_free_again_afterwards(here):
    code = "\nwith storage.alone_in(here / 'folder'): print('in')"
    with storage.alone_in(here / "folder"):
        assert "Another process is at work in" in python(code).stderr
        with pytest.raises(ValueError, match="Another process is at work in"), storage.alone_in(here / "folder"):
            pytest.fail("two in one folder")
        (here / "folder" / "result").touch()
    assert python(code).stdout == "in\n"
    assert names(here / "folder") == ["result"]


def test_a_killed_holder_frees_the_folder(here):
    assert python("with storage.alone_in(here / 'folder'): os._exit(9)").returncode == 9
    assert names(here / "folder") == [".lock"]
    with storage.alone_in(here / "folder"):
        pass
    assert names(here) == []


def test_a_lock_that_was_just_given_back_is_not_taken_for_ones_own(here, monkeypatch):
    """A removes its lock after B has opened the file and before B locks it; a third one could lock a new file."""
    fcntl = pytest.importorskip("fcntl")
    original = fcntl.flock

    def late(file, how):
        (here / ".lock").unlink()
        (here / ".lock").touch()
        original(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(ValueError, match="Another process is at work in"), storage.alone_in(here):
        pytest.fail("the lock of a file that is gone was taken")
