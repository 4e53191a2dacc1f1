"""Write requirements-lock.txt: every pin of constraints.txt with the checksums of all its files, for all platforms.

`.venv/bin/python tools/lock.py` after a change of constraints.txt. It asks the index that pip itself would ask. torch is not
in it: its builds differ from place to place (with and without CUDA), so it is pinned in pyproject.toml by its version alone.
"""

from __future__ import annotations

import os
import re
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote
from urllib.request import Request, urlopen

from packaging.specifiers import SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version
from pip._internal.models.index import PyPI

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-lock.txt"
OLDEST = "3.11.0"
HEAD = "# Written by tools/lock.py from constraints.txt: pip refuses files of other checksums. torch is in pyproject.toml.\n"


def pins() -> dict[str, str]:
    """{package: version} of constraints.txt."""
    return {name: number for name, number, _ in entries()}


def entries() -> list[list[str]]:
    """[package, version, " ; marker" or ""] of each line."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return [list(found) for found in re.findall(r"^([\w.-]+)==([\w.]+)( ;.+)?$", text, flags=re.MULTILINE)]


def checksums(name: str, number: str) -> list[str]:
    """SHA-256 of every file of a release; SystemExit if there is none, or none for the oldest Python."""
    index = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")
    with urlopen(
        Request(f"{index}/{canonicalize_name(name)}/", headers={"Accept": "text/html"}), timeout=180
    ) as answer:
        page = answer.read().decode()
    found, fits = set(), False
    for link in re.findall(r"<a\s[^>]*>", page):
        file = re.search(r'href="[^"]*?([^/"]+)#sha256=([0-9a-f]{64})"', link)
        if file is None or version_of(unquote(file[1])) != Version(number):
            continue
        found.add(file[2])
        wanted = re.search(r'data-requires-python="([^"]*)"', link)
        fits |= SpecifierSet(unescape(wanted[1]) if wanted else "").contains(OLDEST)
    if not found or not fits:
        sys.exit(
            f"{name} {number} has no file with a checksum that Python {OLDEST} may install: choose another version."
        )
    return sorted(found)


def version_of(file: str) -> Version | None:
    try:
        return parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None


def main() -> None:
    lines = []
    for name, number, marker in entries():
        hashes = [f"--hash=sha256:{one}" for one in checksums(name, number)]
        lines.append(" \\\n    ".join([f"{name}=={number}{marker}", *hashes]))
        print(f"{name} {number}: {len(hashes)} files", flush=True)
    LOCK.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
