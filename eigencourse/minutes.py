"""How long lessons take, in round minutes (docs/minutes.json): written by `make notebooks`, told in the README.

A file in the repository must not change because a machine was a little slower today. So a lesson's entry stays as it is
until a run on the same number of cores is more than three quarters of a minute away from it, and a machine that was busy with
something else when a lesson began is not believed at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from eigenlib.paths import ROOT
from eigenlib.storage import replace_file

FILE = ROOT / "docs" / "minutes.json"
_NEAR = 0.75  # minutes that a new run may differ before the entry is replaced


def stored() -> dict[str, dict[str, int]]:
    """{lesson: {"minutes": 2, "cores": 2}}; 0 minutes is anything under half a minute or so."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def updated(
    old: Mapping[str, dict[str, int]], seconds: Mapping[str, float], names: list[str], cores: int
) -> dict[str, dict[str, int]]:
    """The entries after a run: seconds by lesson that were measured now; `names` are the lessons that exist."""
    new = {name: dict(entry) for name, entry in old.items()}
    for name, value in seconds.items():
        entry = old.get(name)
        near = entry and entry["cores"] == cores and abs(value / 60 - entry["minutes"]) <= _NEAR
        if not near:
            new[name] = {"minutes": round(value / 60), "cores": cores}
    return {name: new[name] for name in names if name in new}


def note(seconds: Mapping[str, float], names: list[str]) -> None:
    """Enter what a run has measured."""
    text = json.dumps(updated(stored(), seconds, names, os.cpu_count() or 1), indent=2) + "\n"
    replace_file(FILE, text.encode())


def busy() -> bool:
    """Is so much going on here that a time measured now would say nothing about the lesson?"""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] >= (os.cpu_count() or 1)


def said(entry: Mapping[str, int]) -> str:
    """An entry in words."""
    return {0: "under a minute", 1: "about a minute"}.get(entry["minutes"], f"about {entry['minutes']} minutes")
