"""What is computed in README.md and the lecturer's guide: figures, tables, claims (`eigenlib readme`, after `make notebooks`).

Everything comes from the notebooks as stored, and from docs/minutes.json. The rest is written by hand: only what stands
between <!-- name --> and <!-- /name --> is replaced.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from pathlib import Path

from eigencourse import ledger, minutes
from eigencourse.exercises import all_exercises
from eigencourse.lessons import Lesson, NotebookProblem, lessons
from eigencourse.report.figures import Figure, best_figure, same_picture
from eigenlib.paths import ROOT
from eigenlib.storage import replace_file

README = ROOT / "README.md"
ARC = ROOT / "docs" / "arc.png"
GALLERY = ROOT / "docs" / "gallery"
GUIDE = ROOT / "docs" / "teaching.md"
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
    cores = sorted({entry["cores"] for entry in minutes.stored().values()})
    return f"runs, on {' or '.join(map(str, cores)) or 2} cores"


def _time(lesson: Lesson) -> str:
    entry = minutes.stored().get(lesson.name)
    return minutes.said(entry) if entry else f"within {lesson.budget:.0f} s"  # the tests hold it to its budget


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
