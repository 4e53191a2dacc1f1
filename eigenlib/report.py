"""The report: every notebook executed through papermill, as one HTML site that opens offline (`make report`).

The site is built in a folder beside its final place and moved there when it is whole, so an interrupted run leaves the old
report as it was. Mathematics is typeset by a copy of MathJax inside the site; no page asks the network for anything.
"""

from __future__ import annotations

import html
import json
import platform
import shutil
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import nbformat

from eigenlib import ledger
from eigenlib.notebooks import WIDGET_STATE, WIDGET_VIEW, Lesson, NotebookProblem, Outcome, lessons, run_many
from eigenlib.paths import ASSETS

_MARKER = ".eigenlib-report"  # only a folder that holds this file is ever replaced
_SHOWN_VERSIONS = ("numpy", "scipy", "torch", "ale-py", "matplotlib", "papermill")


def write_report(chosen: list[Lesson], out: Path, parameters: Mapping[str, Any], jobs: int) -> int:
    """Execute, render, move into place, tell. Returns the exit status: 1 if any notebook failed."""
    out = out.resolve()
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / _MARKER).exists())):
        raise NotebookProblem(f"{out} exists and is not a report of ours: choose another --out or move it away.")
    begin = time.perf_counter()
    building = out.with_name(f"{out.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    try:
        (building / "assets").mkdir(parents=True)
        (building / _MARKER).touch()
        outcomes = run_many(chosen, building / "notebooks", parameters, jobs, _tell)
        _render(building, outcomes, parameters)
        _swap(building, out)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    failed = [outcome for outcome in outcomes if outcome.failure]
    print(f"\n{len(outcomes) - len(failed)} of {len(outcomes)} notebooks ran in {time.perf_counter() - begin:.0f} s.")
    for outcome in failed:
        print(f"failed: {outcome.name}, {_place(outcome)}", file=sys.stderr)
    print(f"Report: {out / 'index.html'}")
    return int(bool(failed))


def _tell(outcome: Outcome) -> None:
    print(f"{outcome.name:32} {outcome.seconds:6.1f} s  {'failed' if outcome.failure else 'ok'}", flush=True)


def _place(outcome: Outcome) -> str:
    assert outcome.failure is not None
    cell = f"cell [{outcome.failure.cell}]: " if outcome.failure.cell else ""
    return cell + outcome.failure.error


def _render(site: Path, outcomes: list[Outcome], parameters: Mapping[str, Any]) -> None:
    for asset in ("tex-svg.js", "site.js"):
        shutil.copyfile(ASSETS / asset, site / "assets" / asset)
    (site / "assets" / "style.css").write_text(_stylesheet(), encoding="utf-8")
    pages = jinja2.Environment(loader=jinja2.FileSystemLoader(ASSETS), autoescape=True, trim_blocks=True)
    course = lessons()
    done = {outcome.name: outcome for outcome in outcomes}
    executed = {name: nbformat.read(outcome.output, as_version=4) for name, outcome in done.items()}
    records = [entry for notebook in executed.values() for entry in ledger.collect(notebook)["record"]]
    claims = ledger.summary(records)
    common = {
        "course": course,
        "done": done,
        "tier": parameters.get("TIER", "quick"),
        "parameters": dict(parameters),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _SHOWN_VERSIONS},
        "marks": ledger.VERDICTS,
    }
    order = [lesson for lesson in course if lesson.name in done]
    for position, lesson in enumerate(order):
        outcome = done[lesson.name]
        page = pages.get_template("lesson.html.j2").render(
            common,
            lesson=lesson,
            outcome=outcome,
            problem=_place(outcome) if outcome.failure else "",
            body=_body(executed[lesson.name]),
            previous=order[position - 1] if position else None,
            following=order[position + 1] if position + 1 < len(order) else None,
        )
        (site / f"{lesson.name}.html").write_text(page, encoding="utf-8")
    counts = {verdict: sum(row["verdict"] == verdict for row in claims) for verdict in ledger.VERDICTS}
    hero = _first_figure(executed.get("00_start_here"))
    ends = {"claims": claims, "counts": counts, "hero": hero, "measured": ledger.measured}
    for name in ("index", "claims"):
        page = pages.get_template(f"{name}.html.j2").render(common, **ends)
        (site / f"{name}.html").write_text(page, encoding="utf-8")


def _body(notebook) -> str:
    """A notebook's cells as HTML. Anywidgets go on living; other explorers become their picture with the controls' values."""
    from nbconvert import HTMLExporter

    models = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [shown for output in cell.outputs for shown in _without_kernel(output, models)]
    exporter = HTMLExporter(template_name="basic", template_file=str(ASSETS / "cells.html.j2"))
    return exporter.from_notebook_node(notebook)[0]


def _without_kernel(output, models) -> list:
    """An output as it can be shown where no kernel runs."""
    view = output.get("data", {}).pop(WIDGET_VIEW, None)
    settings = output.get("metadata", {}).get("eigenlib", {}).get("explorer")
    if not settings:
        return [output]
    state = models.get((view or {}).get("model_id"), {}).get("state", {})
    if "_esm" in state:
        kept = {name: value for name, value in state.items() if name == "_esm" or not name.startswith("_")}
        saved = json.dumps(kept).replace("</", "<\\/")
        alt = html.escape(output.metadata["image/png"]["alt"])
        still = f'<noscript><img src="data:image/png;base64,{output.data["image/png"]}" alt="{alt}"></noscript>'
        living = f'<div class="anywidget"><script type="application/json">{saved}</script>{still}</div>'
        return [nbformat.v4.new_output("display_data", data={"text/html": living})]
    caption = f'<p class="explorer">Explorer, drawn at {html.escape(settings)}. Open the notebook to move it.</p>'
    return [output, nbformat.v4.new_output("display_data", data={"text/html": caption})]


def _first_figure(notebook) -> dict[str, str] | None:
    for cell in notebook.cells if notebook else []:
        for output in cell.get("outputs", []):
            picture = output.get("data", {}).get("image/png")
            if picture:
                return {"png": picture, "alt": output.metadata["image/png"]["alt"]}
    return None


def _stylesheet() -> str:
    from pygments.formatters import HtmlFormatter

    code = HtmlFormatter(style="default").get_style_defs(".highlight")
    return (ASSETS / "style.css").read_text(encoding="utf-8") + "\n" + code + "\n"


def _swap(building: Path, out: Path) -> None:
    old = out.with_name(f"{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    building.rename(out)
    shutil.rmtree(old, ignore_errors=True)
