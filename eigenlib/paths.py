"""Where the repository keeps what is not code. Nothing else in the package builds such a path."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
MAPS = DATA / "maps"
REFERENCE = DATA / "reference"
PRETRAINED = DATA / "pretrained"
CACHE = ROOT / ".cache"
ASSETS = Path(__file__).resolve().parent / "assets"
