"""What is computed in README.md and the lecturer's guide: figures, tables, claims (`eigenlib readme`, after `make notebooks`).

Everything comes from the notebooks as stored, and from docs/minutes.json. The rest is written by hand: only what stands
between <!-- name --> and <!-- /name --> is replaced.

docs/minutes.json says how long lessons take, in round minutes; `make notebooks` writes it. A file in the repository must not
change because a machine was a little slower today. So an entry stays as it is until a run on the same number of cores is more
than three quarters of a minute away from it, and a machine that was busy when a lesson began is not believed at all.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections import Counter
from pathlib import Path

from eigencourse import ledger
from eigencourse.exercises import all_exercises
from eigencourse.lessons import Lesson, NotebookProblem, lessons
from eigencourse.report.figures import Figure, best_figure, same_picture
from eigenlib.paths import ROOT
from eigenlib.storage import replace_file

README = ROOT / "README.md"
ARC = ROOT / "docs" / "arc.png"
GALLERY = ROOT / "docs" / "gallery"
GUIDE = ROOT / "docs" / "teaching.md"
MINUTES = ROOT / "docs" / "minutes.json"
_NEAR = 0.75  # minutes that a new run may differ before the entry is replaced
_COLUMNS = 2


def wanted() -> dict[Path, bytes]:
    """Every file that belongs to the README, and the README itself, as they should be now."""
    course = lessons()
    best = {lesson: figure for lesson in course if (figure := best_figure(lesson.notebook))}
    files = {
        GALLERY / f"{lesson.name}.png": figure.small() for lesson, figure in best.items() if lesson is not course[0]
    }
    blocks = {"gallery": _gallery(best, course[0]), "course": _course(course), "claims": _claims(course)}
    if course[0] in best:
        files[ARC] = best[course[0]].png
        blocks["arc"] = f"![{best[course[0]].alt}](docs/{ARC.name})"
    text = README.read_text(encoding="utf-8")
    for name, block in blocks.items():
        text = replaced(text, name, block)
    guide = replaced(GUIDE.read_text(encoding="utf-8"), "minutes", _minutes(course))
    return {README: text.encode(), GUIDE: guide.encode(), **files}


def stale() -> list[Path]:
    """Files that `write` would change, add or remove. Two PNGs with the same pixels are the same."""
    files = wanted()
    changed = [path for path, content in files.items() if not path.exists() or not _same(path, content)]
    return changed + [path for path in sorted(GALLERY.glob("*.png")) if path not in files]


def write() -> list[Path]:
    """Bring README.md, docs/arc.png and docs/gallery up to date; returns what was changed."""
    files, changed = wanted(), stale()
    GALLERY.mkdir(parents=True, exist_ok=True)
    for path in changed:
        if path not in files:
            path.unlink()
        else:
            replace_file(path, files[path])
    return changed


def replaced(text: str, name: str, block: str) -> str:
    """`text` with what stands between the two marks of `name` replaced by `block`."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise NotebookProblem(f"The page must hold {begin} and, below it, {end}, each once: put them back.")
    before, after = text[: text.index(begin)], text[text.index(end) :]
    return f"{before}{begin}\n{block}\n{after}"


def _same(path: Path, content: bytes) -> bool:
    there = path.read_bytes()
    return there == content or (path.suffix == ".png" and same_picture(there, content))


def _gallery(best: dict[Lesson, Figure], first: Lesson) -> str:
    """A table of pictures; HTML, because Markdown has no table without a head."""
    cells = [
        f'<td align="center" width="{100 // _COLUMNS}%"><a href="notebooks/{lesson.path.name}">'
        f'<img src="docs/gallery/{lesson.name}.png" alt="{html.escape(figure.alt)}" height="190"></a>'
        f"<br>{lesson.number} {html.escape(lesson.title)}</td>"
        for lesson, figure in best.items()
        if lesson is not first
    ]
    rows = ["\n".join(cells[start : start + _COLUMNS]) for start in range(0, len(cells), _COLUMNS)]
    return "<table>\n" + "\n".join(f"<tr>\n{row}\n</tr>" for row in rows) + "\n</table>"


def _course(course: list[Lesson]) -> str:
    lines = [
        f"| | lesson | the question | {_runs()} | exercises with a check | in the paper |",
        "|---|---|---|---|---|---|",
    ]
    for lesson in course:
        link = f"[{_cell(lesson.title)}](notebooks/{lesson.path.name})"
        takes = f"{_time(lesson)} | {_exercises(lesson)}"
        lines.append(f"| {lesson.number} | {link} | {_cell(lesson.question)} | {takes} | {_cell(_paper(lesson))} |")
    return "\n".join(lines)


def _minutes(course: list[Lesson]) -> str:
    """The lecturer's table: what each lesson takes, and what it wants known."""
    lines = [f"| | lesson | {_runs()} | exercises with a check | know before |", "|---|---|---|---|---|"]
    for lesson in course:
        before = re.search(r"\*Before you start:\*\s*(.+?)\.\s*\*Running time", lesson.notebook.cells[0].source)
        link = f"[{_cell(lesson.title)}](../notebooks/{lesson.path.name})"
        known = _cell(before.group(1)) if before else ""
        lines.append(f"| {lesson.number} | {link} | {_time(lesson)} | {_exercises(lesson)} | {known} |")
    return "\n".join(lines)


def _runs() -> str:
    cores = sorted({entry["cores"] for entry in stored_minutes().values()})
    return f"runs, on {' or '.join(map(str, cores)) or 2} cores"


def _time(lesson: Lesson) -> str:
    entry = stored_minutes().get(lesson.name)
    return (
        minutes_in_words(entry["minutes"]) if entry else f"within {lesson.budget:.0f} s"
    )  # which the tests hold it to


def _exercises(lesson: Lesson) -> str:
    mine = all_exercises(lesson.number)
    return f"{len(mine)}, {sum(one.minutes for one in mine)} min" if mine else "–"


def _paper(lesson: Lesson) -> str:
    """What a lesson's opening says about where the paper has it."""
    found = re.search(r"\*In the paper:\*\s*(.+?)\.?\s*$", lesson.notebook.cells[0].source, flags=re.MULTILINE)
    return found.group(1) if found else ""


def _claims(course: list[Lesson]) -> str:
    rows = ledger.summary([entry for lesson in course for entry in ledger.collect(lesson.notebook)["record"]])
    links = {lesson.number: f"[{lesson.number}](notebooks/{lesson.path.name})" for lesson in course}
    counts = Counter(row["verdict"] for row in rows)
    plural = {"holds": "hold", "holds partly": "hold partly", "does not hold": "do not hold"}
    tally = ", ".join(
        f"{counts[verdict]} {verdict if counts[verdict] == 1 else plural.get(verdict, verdict)}"
        for verdict in ledger.VERDICTS
    )
    lines = [f"Of {len(rows)} claims: {tally}.", "", "| | the paper says | we measured | lesson |", "|---|---|---|---|"]
    for row in rows:
        measured = "<br>".join(
            f"{ledger.VERDICTS[entry['verdict']] + ' ' if len(row['records']) > 1 else ''}"
            f"{_cell(entry['part']) + ': ' if entry['part'] else ''}{_cell(ledger.measured(entry))}"
            for entry in row["records"]
        )
        verdict = f"{ledger.VERDICTS[row['verdict']]}&nbsp;{row['verdict'].replace(' ', '&nbsp;')}"
        says, where = _cell(row["says"]), _cell(row["where"])
        lesson = links.get(row["notebook"], row["notebook"])
        lines.append(f"| {verdict} | {says} ({where}) | {measured or 'nothing yet'} | {lesson} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Text that cannot break out of a table's cell."""
    return " ".join(html.escape(text, quote=False).split()).replace("|", "\\|")


# --- docs/minutes.json --------------------------------------------------------------------------------------------------


def stored_minutes() -> dict[str, dict[str, int]]:
    """{lesson: {"minutes": 2, "cores": 2}}; 0 minutes is anything under half a minute or so."""
    return json.loads(MINUTES.read_text(encoding="utf-8")) if MINUTES.exists() else {}


def minutes_in_words(minutes: int) -> str:
    return {0: "under a minute", 1: "about a minute"}.get(minutes, f"about {minutes} minutes")


def note_minutes(name: str, seconds: float) -> None:
    """Enter how long a lesson took; lessons that are no more are dropped."""
    entries, cores = stored_minutes(), os.cpu_count() or 1
    old = entries.get(name)
    if old is None or old["cores"] != cores or abs(seconds / 60 - old["minutes"]) > _NEAR:
        entries[name] = {"minutes": round(seconds / 60), "cores": cores}
    text = json.dumps({one.name: entries[one.name] for one in lessons() if one.name in entries}, indent=2) + "\n"
    replace_file(MINUTES, text.encode())


def busy() -> bool:
    """Is so much going on here that a time measured now would say nothing about the lesson?"""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] >= (os.cpu_count() or 1)
