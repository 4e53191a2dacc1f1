"""Notebooks that were handed out from the first edition: every import of theirs still finds what it asks for."""

import subprocess
import sys
from pathlib import Path

import pytest

LINES = (Path(__file__).parents[1] / "helpers" / "first_edition.txt").read_text(encoding="utf-8").splitlines()


def test_every_import_of_the_first_edition_still_works():
    script = "\n".join(("import warnings", "warnings.simplefilter('ignore')", *LINES))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(LINES) > 60


def test_an_old_name_says_where_it_went_and_is_the_new_one():
    import eigencourse.exercises
    import eigenlib

    sys.modules.pop("eigenlib.exercises", None)
    vars(eigenlib).pop("exercises", None)
    with pytest.warns(DeprecationWarning, match=r"eigenlib\.exercises is now eigencourse\.exercises"):
        from eigenlib.exercises import check
    assert check is eigencourse.exercises.check
    with pytest.raises(ImportError):
        from eigenlib.experiments import nothing_of_the_kind  # noqa: F401
