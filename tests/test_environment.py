"""Set-up: the files that describe the environment agree, and a machine that cannot be set up gets one sentence."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from eigencourse.doctor import pins
from eigenlib.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import bootstrap

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIREMENTS = [Requirement(line) for line in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"]]


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


def test_environment_yml_agrees_with_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    plain = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    (python,) = [entry for entry in plain if entry.startswith("python")]
    assert SpecifierSet(PROJECT["requires-python"]).contains(python.removeprefix("python="))
    assert "pip" in plain
    assert pip == ["--constraint constraints.txt", "--editable .[dev]"]
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
