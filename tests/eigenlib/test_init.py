"""The map in eigenlib/__init__.py: every public name is there, lazily, and every module it names exists."""

import re
import subprocess
import sys

import pytest

import eigenlib
from eigenlib.paths import PACKAGE


def test_every_public_name_is_what_its_module_defines():
    for name in eigenlib.__all__:
        assert getattr(eigenlib, name).__module__.startswith("eigenlib."), name
        assert getattr(eigenlib, name).__name__ == name
    assert set(eigenlib.__all__) <= set(dir(eigenlib))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_thing'"):
        eigenlib.no_such_thing  # noqa: B018


def test_every_module_on_the_map_exists():
    told = re.findall(r"^    (\w+(?:\.\w+)?) {2,}\S", eigenlib.__doc__, re.MULTILINE)
    told += re.findall(r"`(\w+)`", eigenlib.__doc__.partition("Beside the path:")[2])
    assert len(told) > 20
    for name in told:
        path = PACKAGE / name.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), name


def test_the_example_on_the_map_runs():
    lines = [line.strip() for line in eigenlib.__doc__.splitlines() if "  # " in line]
    assert len(lines) == 6
    subprocess.run([sys.executable, "-c", "\n".join(["from eigenlib import *", *lines])], check=True)


def test_nothing_is_imported_before_it_is_asked_for():
    code = "import sys, eigenlib; assert not {'numpy', 'scipy', 'eigenlib.worlds'} & set(sys.modules), sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
