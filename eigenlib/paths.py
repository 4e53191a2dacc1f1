"""Where the repository keeps what is not code. Nothing else in the package builds such a path."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent
DATA = ROOT / "data"
# An installed package carries its own maps; in the repository they stand with the other data.
MAPS = PACKAGE / "maps" if (PACKAGE / "maps").is_dir() else DATA / "maps"
REFERENCE = DATA / "reference"
PRETRAINED = DATA / "pretrained"
CACHE = ROOT / ".cache"
