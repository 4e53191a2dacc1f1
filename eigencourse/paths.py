"""Where the repository keeps what only the course needs; `eigenlib.paths` has the rest."""

from pathlib import Path

from eigenlib.paths import ROOT

NOTEBOOKS = ROOT / "notebooks"
STATIC = Path(__file__).parent / "report" / "static"
TEMPLATES = Path(__file__).parent / "report" / "templates"
