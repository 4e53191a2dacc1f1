"""The pages of the report from executed notebooks: landing page, lessons, claims, and a search that needs no server."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import nbformat

from eigencourse import ledger
from eigencourse.exercises import all_exercises
from eigencourse.lessons import Lesson, Outcome
from eigencourse.paths import STATIC, TEMPLATES
from eigencourse.report.figures import best_figure
from eigencourse.report.lesson_page import LessonPage, lesson_page, plain, widget_json
from eigenlib.paths import ROOT
from eigenlib.storage import replace_file

_SHOWN_VERSIONS = ("numpy", "scipy", "torch", "ale-py", "matplotlib", "papermill")
_COPIED = ("tex-svg.js", "MATHJAX-LICENSE", "site.js", "search.js")


def render(site: Path, course: list[Lesson], outcomes: Iterable[Outcome], parameters: Mapping[str, Any]) -> None:
    """Write every page into the folder `site`, and the executed notebooks of `outcomes` into its notebooks/."""
    done = {outcome.name: outcome for outcome in outcomes}
    executed = {name: nbformat.read(outcome.output, as_version=4) for name, outcome in done.items()}
    order = [lesson for lesson in course if lesson.name in done]
    pages = {lesson.name: lesson_page(executed[lesson.name]) for lesson in order}
    claims = ledger.summary([entry for one in executed.values() for entry in ledger.collect(one)["record"]])
    common = {
        "course": course,
        "done": done,
        "tier": parameters.get("TIER", "quick"),
        "parameters": dict(parameters),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _SHOWN_VERSIONS},
        "marks": ledger.VERDICTS,
        "claims": claims,
        "counts": {verdict: sum(row["verdict"] == verdict for row in claims) for verdict in ledger.VERDICTS},
        "measured": ledger.measured,
        "duration": duration,
        "maze": _living_maze(),
    }
    _assets(site, order, pages, claims)
    common["figures"] = _figures(site, order, executed)
    common["exercises"] = {lesson.name: all_exercises(lesson.number) for lesson in course}
    _pages(site, order, pages, common)


def _living_maze() -> str:
    """The first page's maze as site.js starts it: the state of a widget, as JSON that may stand in a page."""
    from eigenlib.gridworld import GridWorld
    from eigenlib.widgets import MazeEditor

    state = MazeEditor(GridWorld.named("four_rooms"), story=True).get_state()
    return widget_json(state | {"share": True})


def duration(seconds: float) -> str:
    """Seconds below two minutes, minutes above."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _pages(site: Path, order: list[Lesson], pages: dict[str, LessonPage], common: dict[str, Any]) -> None:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    for position, lesson in enumerate(order):
        page = environment.get_template("lesson.html.j2").render(
            common,
            lesson=lesson,
            outcome=common["done"][lesson.name],
            page=pages[lesson.name],
            previous=order[position - 1] if position else None,
            following=order[position + 1] if position + 1 < len(order) else None,
        )
        replace_file(site / f"{lesson.name}.html", page.encode())
        replace_file(site / "notebooks" / lesson.path.name, common["done"][lesson.name].output.read_bytes())
    for name in ("index", "claims"):
        page = environment.get_template(f"{name}.html.j2").render(common)
        replace_file(site / f"{name}.html", page.encode())


def _figures(site: Path, order: list[Lesson], executed: Mapping[str, Any]) -> dict[str, str]:
    """Write each lesson's best figure, small, and that of the first lesson whole; {lesson: alt text}."""
    shown = {}
    for lesson in order:
        figure = best_figure(executed[lesson.name])
        if figure is None:
            continue
        shown[lesson.name] = figure.alt
        replace_file(site / "figures" / f"{lesson.name}.png", figure.small())
        if lesson.number == "00":
            replace_file(site / "figures" / "arc.png", figure.png)
    return shown


def _assets(site: Path, order: list[Lesson], pages: dict[str, LessonPage], claims: list[dict[str, Any]]) -> None:
    for asset in _COPIED:
        replace_file(site / "assets" / asset, (STATIC / asset).read_bytes())
    replace_file(site / "LICENSE", (ROOT / "LICENSE").read_bytes())
    replace_file(site / "assets" / "style.css", stylesheet().encode())
    entries = json.dumps(_index(order, pages, claims), ensure_ascii=False, separators=(",", ":"))
    replace_file(site / "assets" / "search-index.js", f"window.searchIndex = {entries};\n".encode())


def _index(order: list[Lesson], pages: dict[str, LessonPage], claims: list[dict[str, Any]]) -> list[dict[str, str]]:
    """What can be found: a script and not a JSON file, because a page opened from disk may not fetch anything."""
    entries = []
    for lesson in order:
        for section in pages[lesson.name].sections:
            anchor = f"#{section.id}" if section.id else ""
            entries.append(
                {
                    "url": f"{lesson.name}.html{anchor}",
                    "place": f"{lesson.number} {plain(lesson.title)}",
                    "heading": section.heading or plain(lesson.title),
                    "text": section.text,
                }
            )
    for row in claims:
        measured = " ".join(f"{entry['part']} {ledger.measured(entry)}. {entry['note']}" for entry in row["records"])
        entries.append(
            {
                "url": f"claims.html#{row['id']}",
                "place": f"Claim, {row['verdict']}",
                "heading": row["says"],
                "text": f"{row['where']}. {row['id']}. {measured}".strip(),
            }
        )
    return entries


def stylesheet() -> str:
    """Our rules, then code in colour; the dark ones twice, for a dark system and for a reader who asked, never on paper."""
    from pygments.formatters import HtmlFormatter

    def code(style: str, *scopes: str) -> str:
        return HtmlFormatter(style=style, nobackground=True).get_style_defs([f"{scope} .highlight" for scope in scopes])

    dark = (STATIC / "dark.css").read_text(encoding="utf-8")
    system, asked = ':root:not([data-theme="light"])', ':root[data-theme="dark"]'
    return "\n".join(
        [
            code("default", ":root"),
            (STATIC / "style.css").read_text(encoding="utf-8"),
            f"@media screen and (prefers-color-scheme: dark) {{\n{dark.replace(':root', system)}",
            f"{code('github-dark', system)}\n}}",
            f"@media screen {{\n{dark.replace(':root', asked)}\n{code('github-dark', asked)}\n}}\n",
        ]
    )
