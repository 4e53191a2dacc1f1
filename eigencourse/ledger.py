"""What the paper claims, what we measured (every notebook; the report's last page).

A claim has an id and stands in claims.toml. A notebook cell records a measurement; the verdict follows from it, never from
the author. The cell shows one line with rounded numbers (which nbval compares) and the output's metadata carries the whole
record at full precision (which the report and the tests read), so the two can never disagree.
"""

from __future__ import annotations

import html
import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from IPython.display import display

from eigenlib import _require
from eigenlib.gridworld import GridWorld

VERDICTS = {"holds": "✔", "holds partly": "◐", "does not hold": "✘", "untested": "·"}
_KEY = "eigenlib"  # where a record travels in an output's metadata
_elsewhere = ""  # in which world this notebook measures, if it is not the paper's


@dataclass(frozen=True)
class Claim:
    """One claim of the paper: `says` in our words, `where` in the paper, `notebook` that tests it."""

    id: str
    says: str
    where: str
    notebook: str


@cache
def claims() -> dict[str, Claim]:
    """All claims by id, in the paper's order."""
    entries = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))["claim"]
    return {entry["id"]: Claim(**entry) for entry in entries}


def measured_in(world: GridWorld, papers: str) -> None:
    """Say where all that follows is measured: outside the paper's own map, named `papers`, a line and every verdict say so."""
    global _elsewhere
    own = GridWorld.named(papers)
    same = (world.text, world.slip) == (own.text, own.slip)
    _elsewhere = "" if same else f"in {world.name or 'a map of your own'}, not in the paper's {papers}"
    if _elsewhere:
        print(f"This run is {_elsewhere}: every verdict says so; places and numbers in the text are not its own.")


def record(
    claim: str,
    value: float,
    *,
    holds: bool,
    criterion: str,
    partly: bool = False,
    spread: tuple[float, float] | None = None,
    part: str = "",
    unit: str = "",
    note: str = "",
    digits: int = 3,
) -> None:
    """Enter a measurement for a claim and show it as one line.

    holds, partly: comparisons made on the measurement; `partly` counts only where `holds` is false.
    criterion: that comparison in words.  spread: (low, high) over seeds or states.  part: which case, if a claim has several.
    digits: how many are shown; fewer where they differ between machines, as after a training in single precision.
    """
    if not isinstance(claim, str) or claim not in claims():
        raise ValueError(f"The ledger has no claim {claim!r}; it knows {', '.join(claims())}.")
    ends = [] if spread is None else _require.several(spread, "spread", "two numbers")
    if spread is not None and len(ends) != 2:
        raise ValueError(f"spread must be (low, high), got {_require.shown(spread)}.")
    for number in (value, *ends):
        _require_finite(number, claim)
    holds, partly = _require.flag(holds, "holds"), _require.flag(partly, "partly")
    digits = _require.whole(digits, "digits", 1, 3)
    for words, name in ((criterion, "criterion"), (part, "part"), (unit, "unit"), (note, "note")):
        _require.text(words, name)
    verdict = "holds" if bool(holds) else "holds partly" if bool(partly) else "does not hold"
    entry = {
        "claim": claim,
        "part": ", ".join(filter(None, (part, _elsewhere))),
        "value": float(value),
        "spread": [float(end) for end in ends] or None,
        "unit": unit,
        "criterion": criterion,
        "verdict": verdict,
        "note": note,
    } | ({"digits": digits} if digits < 3 else {})
    case = f" ({entry['part']})" if entry["part"] else ""
    line = f"{VERDICTS[verdict]} {verdict}: {claim}{case} · {measured(entry)} · {criterion}"
    _show(line + (f" · {note}" if note else ""), "record", entry, f"ledger {verdict.replace(' ', '-')}")


def check(what: str, value: float, at_most: float) -> None:
    """Show and enforce `value ≤ at_most`.

    Residuals near 1e-15 differ between machines, so their digits must not stand in the text that nbval compares: of a value
    under 1e-6 the line shows only the bound. The metadata has all digits.
    """
    _require.text(what, "what")
    value, at_most = _require.real(value, "value", finite=False), _require.real(at_most, "at_most")
    if not -float("inf") < value <= at_most:
        raise AssertionError(f"{what}: {value:.3g}, but it should be at most {at_most:g}.")
    entry = {"what": what, "value": float(value), "at_most": float(at_most)}
    shown = f"{rounded(value)} (at most {at_most:g})" if value >= 1e-6 else f"at most {at_most:g}"
    _show(f"✔ {what}: {shown}", "check", entry, "ledger check")


def result(what: str, value: float, unit: str = "") -> None:
    """Show a measured number, rounded in the text and whole in the metadata."""
    _require_finite(value, _require.text(what, "what"))
    entry = {"what": what, "value": float(value), "unit": _require.text(unit, "unit")}
    _show(f"{what}: {rounded(value)}{f' {unit}' if unit else ''}", "result", entry, "ledger result")


def _require_finite(value: float, what: str) -> None:
    try:
        _require.real(value, "value")
    except ValueError:
        raise ValueError(
            f"The value measured for {what!r} is {_require.shown(value)}: a measurement must be a finite number."
        ) from None


def rounded(value: float, digits: int = 3) -> str:
    """Three significant digits or fewer; below 1e-10 only the bound, because the digits there are rounding noise."""
    value, digits = _require.real(value, "value"), _require.whole(digits, "digits", 1, 3)
    if value and abs(value) < 1e-10:
        return "under 1e-10"
    if digits < 3:
        value = float(f"{value:.{digits}g}")
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def measured(entry: dict[str, Any]) -> str:
    """A record's value with spread and unit, as text."""
    value, *spread = (rounded(number, entry.get("digits", 3)) for number in (entry["value"], *(entry["spread"] or ())))
    text = value + (f" [{', '.join(spread)}]" if spread else "")
    return f"{text} {entry['unit']}".strip()


def collect(notebook) -> dict[str, list[dict[str, Any]]]:
    """All entries of an executed notebook: {"record": […], "check": […], "result": […]}, in order."""
    found: dict[str, list[dict[str, Any]]] = {"record": [], "check": [], "result": []}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            for kind, entry in output.get("metadata", {}).get(_KEY, {}).items():
                if kind in found:
                    found[kind].append(dict(entry))
    return found


def summary(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every claim with its records and one verdict: all parts must hold for it to hold; none recorded is untested."""
    rows = []
    for claim in claims().values():
        mine = [entry for entry in records if entry["claim"] == claim.id]
        verdicts = {entry["verdict"] for entry in mine}
        verdict = "untested" if not mine else verdicts.pop() if len(verdicts) == 1 else "holds partly"
        rows.append({**asdict(claim), "verdict": verdict, "records": mine})
    return rows


def _show(line: str, kind: str, entry: dict[str, Any], css: str) -> None:
    data = {"text/plain": line, "text/html": f'<div class="{css}">{html.escape(line)}</div>'}
    display(data, metadata={_KEY: {kind: entry}}, raw=True)
