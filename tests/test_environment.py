"""Set-up: the files that describe the environment agree, and a machine that cannot be set up gets one sentence."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from eigencourse.doctor import pins
from eigencourse.report import pages
from eigenlib.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import bootstrap
import lock
import newest

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, SETUPTOOLS = PYPROJECT["project"], PYPROJECT["tool"]["setuptools"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [Requirement(line) for line in sum(EXTRAS.values(), PROJECT["dependencies"])]


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_requirement_is_pinned_and_the_pin_fits():
    pinned = {canonical(name): number for name, number in pins().items()}
    for requirement in REQUIREMENTS:
        assert requirement.specifier.contains(pinned[canonical(requirement.name)]), requirement


def test_the_packages_the_course_promises_are_required():
    promised = ["jupyterlab", "numpy", "scipy", "torch", "ale-py", "matplotlib", "ipywidgets", "nbval", "papermill"]
    assert set(promised) <= {requirement.name for requirement in REQUIREMENTS}


def test_torch_is_pinned_exactly():
    """Any range may pull a newer build and with it gigabytes of CUDA packages."""
    (torch,) = [requirement for requirement in REQUIREMENTS if requirement.name == "torch"]
    assert str(torch.specifier).startswith("==")


def test_the_library_alone_asks_for_little():
    """Neither torch nor notebooks; and each part has its extra, which set-up and conda install all."""
    heavy = {Requirement(line).name for extra in EXTRAS.values() for line in extra}
    assert {Requirement(line).name for line in PROJECT["dependencies"]}.isdisjoint(heavy)
    assert list(EXTRAS) == ["atari", "course", "dev"]
    assert f"[{','.join(EXTRAS)}]" == bootstrap.EXTRAS


def test_every_pin_can_be_installed_by_the_oldest_python():
    """soupsieve 4.1 wanted 3.11.5, and Debian 12 has 3.11.2. Packages of other platforms are looked at by tools/lock.py."""
    looked_at, wrong = 0, []
    for name, number in pins().items():
        try:
            if version(name).split("+")[0] != number:
                continue  # doctor says so
        except PackageNotFoundError:
            continue
        looked_at += 1
        wants = metadata(name)["Requires-Python"] or ""
        if not SpecifierSet(wants).contains(lock.OLDEST):
            wrong.append(f"{name} {number} wants Python {wants}")
    assert not wrong
    assert looked_at > 100
    assert tuple(map(int, lock.OLDEST.split(".")))[:2] == bootstrap.OLDEST


def test_the_lock_has_checksums_for_every_pin_and_nothing_else():
    entries = re.findall(
        r"^([\w.-]+)==([\w.]+)( ;[^\\\n]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", lock.LOCK.read_text(), re.M
    )
    assert [[name, number, marker.rstrip()] for name, number, marker, _ in entries] == lock.entries(), (
        "run tools/lock.py"
    )
    assert len(lock.LOCK.read_text().splitlines()) == 1 + sum(1 + hashes.count("--hash") for *_, hashes in entries)
    assert max(hashes.count("--hash") for *_, hashes in entries) > 40  # all platforms of numpy
    assert "torch" not in lock.pins()
    tools = bootstrap.pinned_tools()
    assert tools.count("pip==") == tools.count("setuptools==") == 1
    assert tools.count("--hash") >= 4
    assert "pluggy" not in tools


def test_a_file_with_another_checksum_is_refused(tmp_path):
    """Really, by pip: a package of the lock whose file was changed on its way."""
    forged = tmp_path / "six-1.17.0-py2.py3-none-any.whl"
    forged.write_bytes(b"not six")
    (entry,) = re.findall(r"^six==.*(?:\n .*)*", lock.LOCK.read_text(), re.M)
    (tmp_path / "lock.txt").write_text(entry)
    command = [sys.executable, "-m", "pip", "download", "--no-index", "--find-links", str(tmp_path), "--require-hashes"]
    quiet = os.environ | {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
    done = subprocess.run(
        [*command, "--no-deps", "-r", str(tmp_path / "lock.txt"), "-d", str(tmp_path / "got")],
        env=quiet, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "DO NOT MATCH THE HASHES" in done.stdout + done.stderr
    assert "checksum differs" in bootstrap.why_pip_failed(done.stdout + done.stderr)


def test_without_make_one_line_sets_up_and_runs(monkeypatch, capfd):
    """`python tools/bootstrap.py .venv report --only 77`: what is set up is not set up again, and the command runs."""
    monkeypatch.setattr(bootstrap, "is_ready", lambda folder: True)
    monkeypatch.setattr(bootstrap, "set_up", lambda folder: pytest.fail("it was ready"))
    assert bootstrap.main(sys.prefix, "report", "--only", "77") == 2
    assert "No notebook '77'" in capfd.readouterr().err
    assert bootstrap.main(sys.prefix, "test", "--version") == 0
    assert "pytest" in capfd.readouterr().out


def test_a_change_of_the_pins_sets_up_again(tmp_path, monkeypatch):
    assert not bootstrap.is_ready(str(tmp_path))
    (tmp_path / ".ready").touch()
    assert bootstrap.is_ready(str(tmp_path))
    os.utime(tmp_path / ".ready", (0, 0))
    assert not bootstrap.is_ready(str(tmp_path))
    rule = re.search(r"^\$\(READY\): (.+)$", (ROOT / "Makefile").read_text(), re.M)
    assert rule[1].split() == list(bootstrap.SOURCES)
    done = []
    monkeypatch.setattr(bootstrap, "set_up", done.append)
    assert bootstrap.main(str(tmp_path)) == 0
    assert done == [str(tmp_path)]


def test_the_newest_versions_are_told_from_the_pinned_ones():
    pinned = lock.pins()
    assert newest.newer({"numpy": "99.0", "scipy": pinned["scipy"], "stranger": "1.0"}) == [
        f"numpy {pinned['numpy']} → 99.0"
    ]


def test_no_file_names_a_registry():
    """Pins and set-up must work behind any mirror."""
    files = [
        *(ROOT / "tools").glob("*.py"),
        *map(ROOT.joinpath, bootstrap.SOURCES),
        ROOT / "environment.yml",
        ROOT / "Makefile",
    ]
    assert not [file.name for file in files if re.search(r"https?://|pypi\.org|pythonhosted", file.read_text())]


def test_every_package_and_every_file_beside_its_modules_is_in_the_wheel():
    listed = SETUPTOOLS["packages"]
    found = [path.parent for name in ("eigenlib", "eigencourse") for path in (ROOT / name).rglob("__init__.py")]
    assert sorted(listed) == sorted([".".join(folder.relative_to(ROOT).parts) for folder in found] + ["eigenlib.maps"])
    for name in ("eigenlib", "eigencourse"):
        others = {path for path in (ROOT / name).rglob("*.*") if path.is_file() and path.suffix not in (".py", ".pyc")}
        carried = {path for pattern in SETUPTOOLS["package-data"][name] for path in (ROOT / name).glob(pattern)}
        assert {path for path in others if "__pycache__" not in path.parts} <= carried


def test_what_is_passed_on_has_its_licence_beside_it():
    assert PROJECT["license"] == "MIT AND Apache-2.0"
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])
    assert "Apache License" in (ROOT / PROJECT["license-files"][1]).read_text()
    assert {"tex-svg.js", "MATHJAX-LICENSE"} <= set(pages._COPIED)
    assert "ROMs" in (ROOT / "README.md").read_text()


def test_environment_yml_agrees_with_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    plain = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    (python,) = [entry for entry in plain if entry.startswith("python")]
    assert SpecifierSet(PROJECT["requires-python"]).contains(python.removeprefix("python="))
    assert f"pip={pins()['pip']}" in plain
    assert pip == ["--constraint constraints.txt", f"--editable .[{','.join(EXTRAS)}]"]
    assert environment["name"] == PROJECT["name"]


def test_bootstrap_and_pyproject_want_the_same_python():
    assert PROJECT["requires-python"] == f">={bootstrap.OLDEST[0]}.{bootstrap.OLDEST[1]}"


@pytest.mark.parametrize(
    ("version", "venv", "free", "says"),
    [
        ((3, 8, 1), True, 2**40, "Python 3.8, but Python 3.11"),
        ((3, 11, 0), False, 2**40, "no venv module"),
        ((3, 12, 0), True, 2**28, "GiB of disk"),
        ((3, 11, 0), True, 2**40, None),
    ],
)
def test_one_sentence_before_setting_up(version, venv, free, says):
    problem = bootstrap.problem_with(version, venv, free)
    assert problem is None if says is None else says in problem and problem.count("\n") == 0


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ("OSError: [Errno 28] No space left on device", "disk filled up"),
        ("NewConnectionError: Failed to establish a new connection\nERROR: No matching distribution found", "network"),
        ("ERROR: No matching distribution found for torch==2.13.0", "no release"),
        ("error: something else", "something else"),
        ("", "no message"),
    ],
)
def test_pip_failures_become_one_sentence(log, says):
    assert says in bootstrap.why_pip_failed(log)
    assert "\n" not in bootstrap.why_pip_failed(log)


def test_bootstrap_without_network_really_says_so(tmp_path):
    """The whole way: a fresh folder, an index that does not answer, one sentence, exit 1, no stamp."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}
    environment |= {"PIP_RETRIES": "0", "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_CACHE_DIR": "1"}
    command = [sys.executable, str(ROOT / "tools" / "bootstrap.py"), str(tmp_path / "venv")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert "network did not answer" in done.stderr
    assert done.stderr.strip().count("\n") == 0
    assert not (tmp_path / "venv" / ".ready").exists()


def test_bootstrap_parses_on_old_pythons():
    """f-strings, annotations or walrus would be a SyntaxError exactly where the sentence is needed."""
    import ast

    tree = ast.parse((ROOT / "tools" / "bootstrap.py").read_text(), feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr))]


def test_make_help_lists_every_target():
    text = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.+)$", text, flags=re.MULTILINE)
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    assert all(f"make {target} " in listed for target in phony.split())


def test_shipped_files_match_their_checksums():
    manifest = (ROOT / "data" / "CHECKSUMS.sha256").read_text().splitlines()
    import hashlib

    listed = {}
    for line in manifest:
        digest, name = line.split(maxsplit=1)
        listed[name] = digest
    shipped = {str(path.relative_to(ROOT)) for path in (ROOT / "data").rglob("*") if path.is_file()}
    shipped -= {"data/CHECKSUMS.sha256", "data/README.md"}
    assert set(listed) == shipped | {"eigencourse/report/static/tex-svg.js"}
    for name, digest in listed.items():
        assert hashlib.sha256(Path(ROOT / name).read_bytes()).hexdigest() == digest, name
