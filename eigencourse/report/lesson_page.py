"""One executed notebook as the inside of a page: its cells as HTML, its headings, its words for the search."""

from __future__ import annotations

import copy
import html
import json
import re
import unicodedata
from typing import NamedTuple

import nbformat
from bs4 import BeautifulSoup, Tag

from eigencourse.execution import WIDGET_STATE, WIDGET_VIEW
from eigencourse.paths import TEMPLATES


class Heading(NamedTuple):
    """A heading under the title: `level` 2 or 3, `id` to link to, `text` with its mathematics as TeX."""

    level: int
    id: str
    text: str


class Section(NamedTuple):
    """What the search knows of the words below a heading."""

    id: str
    heading: str
    words: list[str]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


class LessonPage(NamedTuple):
    body: str
    headings: list[Heading]
    sections: list[Section]


def lesson_page(notebook) -> LessonPage:
    """The page of an executed notebook, which itself is left as it is."""
    soup = BeautifulSoup(_cells(copy.deepcopy(notebook)), "html.parser")
    headings = _anchored(soup)
    return LessonPage(str(soup), headings, _sections(soup))


def plain(text: str) -> str:
    """Markdown's words without TeX: display formulas left out, \\gamma written γ, the rest of the markup dropped."""
    text = re.sub(r"\$\$.*?\$\$|\\\[.*?\\\]", " ", text, flags=re.DOTALL)
    return re.sub(r"\$([^$]+)\$", lambda found: _spoken(found.group(1)), text)


def _spoken(tex: str) -> str:
    """A short formula as readable characters; what has no character of its own keeps its name."""
    tex = re.sub(r"\\(mathbf|mathrm|operatorname|text|boldsymbol|mathcal|left|right)\b", "", tex)
    tex = re.sub(r"\^\{?\\top\}?", "ᵀ", tex)
    tex = re.sub(r"\\([A-Za-z]+)", lambda found: _letter(found.group(1)), tex)
    return re.sub(r"[\\{}]", "", tex).strip()


def _letter(name: str) -> str:
    case = "CAPITAL" if name[0].isupper() else "SMALL"
    known = {"to": "→", "cdot": "·", "times": "×", "le": "≤", "ge": "≥", "infty": "∞", "approx": "≈", "sum": "Σ"}
    try:
        return known.get(name) or unicodedata.lookup(f"GREEK {case} LETTER {name.removeprefix('var').upper()}")
    except KeyError:
        return f" {name} "


def _anchored(soup: BeautifulSoup) -> list[Heading]:
    """Give every heading an id of its own and a link that a keyboard reaches; returns those of level 2 and 3."""
    seen: set[str] = set()
    found = []
    for tag in soup.select(".text_cell_render :is(h1, h2, h3, h4)[id]"):
        link = tag.find("a", class_="anchor-link")
        if link:
            link.extract()
        text, name = tag.get_text().strip(), str(tag["id"])
        while name in seen:
            name += "-again"
        seen.add(name)
        tag["id"] = name
        anchor = soup.new_tag(
            "a", href=f"#{name}", attrs={"class": "anchor-link", "aria-label": "Link to this section"}
        )
        anchor.string = "#"
        tag.append(anchor)
        if tag.name in ("h2", "h3"):
            found.append(Heading(int(tag.name[1]), name, text))
    return found


def _sections(soup: BeautifulSoup) -> list[Section]:
    sections = [Section("", "", [])]
    for part in soup.select(".text_cell_render"):
        for child in part.children:
            if isinstance(child, Tag) and re.fullmatch("h[1-4]", child.name) and child.get("id"):
                heading = plain(child.get_text()).removesuffix("#").strip()
                sections.append(Section("" if child.name == "h1" else str(child["id"]), heading, []))
            else:
                apart = " " if isinstance(child, Tag) and child.name in ("ul", "ol", "table") else ""
                sections[-1].words.append(plain(child.get_text(apart)))
    return [section for section in sections if section.heading or section.text]


def _cells(notebook) -> str:
    """The cells as HTML. Anywidgets go on living; other explorers become their picture with the controls' values."""
    from nbconvert import HTMLExporter

    models = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [shown for output in cell.outputs for shown in _without_kernel(output, models)]
    exporter = HTMLExporter(template_name="basic", template_file=str(TEMPLATES / "cells.html.j2"))
    return exporter.from_notebook_node(notebook)[0]


def widget_json(state) -> str:
    """What site.js needs of an anywidget's state to run it without a kernel, as JSON that may stand inside a page."""
    kept = {name: value for name, value in state.items() if name == "_esm" or not name.startswith("_")}
    kept = {name: value for name, value in kept.items() if name not in ("layout", "tooltip", "tabbable")}
    return json.dumps(kept).replace("<", "\\u003c")


def _without_kernel(output, models) -> list:
    """An output as it can be shown where no kernel runs."""
    view = output.get("data", {}).pop(WIDGET_VIEW, None)
    settings = output.get("metadata", {}).get("eigenlib", {}).get("explorer")
    if not settings:
        return [output]
    state = models.get((view or {}).get("model_id"), {}).get("state", {})
    if "_esm" in state:
        alt = html.escape(output.metadata["image/png"]["alt"])
        still = f'<noscript><img src="data:image/png;base64,{output.data["image/png"]}" alt="{alt}"></noscript>'
        living = f'<div class="anywidget"><script type="application/json">{widget_json(state)}</script>{still}</div>'
        return [nbformat.v4.new_output("display_data", data={"text/html": living})]
    caption = f'<p class="explorer">Explorer, drawn at {html.escape(settings)}. Open the notebook to move it.</p>'
    return [output, nbformat.v4.new_output("display_data", data={"text/html": caption})]
