"""The lecturer's guide and the README name only what exists: lessons, cells, exercises, mistakes, commands, files, links."""

import argparse
import json
import re
import shlex
from functools import cache
from itertools import pairwise

import pytest

from eigencourse import cli
from eigencourse.exercises import all_exercises
from eigencourse.exercises.answers import GENERAL
from eigencourse.lessons import Lesson, lessons
from eigenlib.paths import ROOT

GUIDE, README = ROOT / "docs" / "teaching.md", ROOT / "README.md"
OTHERS = [ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
PAGES = pytest.mark.parametrize("page", [GUIDE, README, *OTHERS], ids=lambda page: page.name)
LESSONS = pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.number)
# What commands write, or a reader brings along: not in the repository, and rightly so.
GENERATED = re.compile(
    r"^(report|build|handed_in|wheels|my_report|\.venv|\.cache)(/|$)|^(marks\.csv|numbers\.yml|index\.html)$"
)
FILE = re.compile(r"[\w.*/-]+/[\w.*/-]*|[\w*-]+\.(md|py|toml|txt|yml|json|ipynb|html|csv|cff|js|css)")


@cache
def text(page) -> str:
    return page.read_text(encoding="utf-8")


def fenced(page) -> list[str]:
    """Lines of code blocks."""
    blocks = re.findall(r"^ *```(\w*)\n(.*?)^ *```", text(page), flags=re.MULTILINE | re.DOTALL)
    return [line.strip() for language, block in blocks if language != "python" for line in block.splitlines()]


def spans(words: str) -> list[str]:
    """`Code` in a text, code blocks left out."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```", "", words, flags=re.MULTILINE | re.DOTALL))


def section(number: str) -> str:
    """What the guide says of one lesson."""
    found = re.search(rf"^### {number} .*?(?=^##)", text(GUIDE), flags=re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


@cache
def headings(lesson: Lesson) -> set[str]:
    cells = json.loads(lesson.path.read_text(encoding="utf-8"))["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "markdown" for line in "".join(cell["source"]).splitlines()]
    return {line.lstrip("#").strip() for line in lines if line.startswith("#")}


def subcommands() -> dict[str, argparse.ArgumentParser]:
    (found,) = [a for a in cli._parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(found.choices)


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def problem_with(command: str) -> str:
    """Why `eigenlib …` would be refused; a command may be named without what it needs, such as `eigenlib grade`."""
    words = shlex.split(command, comments=True)[1:]
    if not words or words == ["--version"]:
        return ""
    known = subcommands()
    if words[0] not in known:
        return f"there is no command {words[0]}"
    flags = {flag for action in known[words[0]]._actions for flag in action.option_strings}
    unknown = [word for word in words[1:] if re.match(r"--?[a-z]", word) and word not in flags]
    if unknown:
        return f"{words[0]} has no {unknown[0]}"
    if len(words) == 1:
        return ""
    try:
        options = cli._parser().parse_args(words)
    except SystemExit:
        return "the arguments do not fit"
    chosen = {one.number for one in lessons()} | {one.name for one in lessons()} | {"09", "10"}
    wrong = set((getattr(options, "only", None) or "").split(",")) - chosen - {""}
    return f"there is no lesson {wrong}" if wrong else ""


@LESSONS
def test_every_lesson_has_its_section(lesson):
    words = section(lesson.number)
    assert words.startswith(f"### {lesson.number} {lesson.title}\n"), (
        f"Lesson {lesson.number} has no section in the guide."
    )
    assert lesson.question in " ".join(words.split())
    for part in ("Leave on the screen", "Ask ", "Misconceptions", "For the strong ones"):
        assert f"**{part}" in words, f"{lesson.number} lacks {part!r}"


@LESSONS
def test_every_widget_has_a_question(lesson):
    sources = "\n".join(cell.source for cell in lesson.notebook.cells if cell.cell_type == "code")
    for widget in set(re.findall(r"^(?:\w+ = )?(explore_\w+|MazeEditor)\(", sources, flags=re.MULTILINE)):
        assert f"`{widget}`" in section(lesson.number), f"{widget} of lesson {lesson.number} is not in the guide"


def test_quoted_cells_exist():
    """“…” is the heading of a cell, in the section's lesson, or else in the lesson whose number stands before it."""
    existing, own, number, seen = {lesson.number: lesson for lesson in lessons()}, "", "", 0
    for line in text(GUIDE).splitlines():
        at = re.match(r"### (\d\d) ", line)
        inside = at[1] if at else "" if line.startswith("## ") else None
        if inside is not None:
            own = number = inside
        for part, quoted in re.findall(r"\b(0\d|1[01])\b(?![.,]\d)|“([^”]+)”", line):
            number = own or part or number
            if quoted and number in existing:
                seen += 1
                assert quoted in headings(existing[number]), f"lesson {number} has no cell with the heading {quoted!r}"
    assert seen > 50, "the convention for headings has changed, so this test looks at nothing"


def test_exercises_and_mistakes_exist():
    """NN.k is an exercise; in the paragraphs `Stuck`, `words` after it are mistakes that its check knows, or code."""
    known = {one.number: one for one in all_exercises()}
    present = {lesson.number for lesson in lessons()}
    named = re.findall(r"(?<![\d.])((?:0\d|1[01])\.[1-9])(?![\d])", text(GUIDE))
    missing = {number for number in named if number[:2] in present and number not in known}
    assert not missing
    assert set(named) & set(known)
    for lesson in present:
        for stuck in re.findall(r"\*\*Stuck\.\*\*.*?(?=\n- |\n\n)", section(lesson), flags=re.DOTALL):
            for span in spans(re.sub(r"\([^()]*`[^()]*\)", "", stuck)):  # code in brackets explains
                if re.fullmatch(r"\d\d\.\d", span):
                    one = known[span]
                else:
                    assert span in {*one.mistakes, *GENERAL}, f"{one.number} knows no mistake {span!r}"


def test_the_graph_is_what_the_lessons_say():
    """Both forms of it, against `Before you start` in each lesson's first cell."""
    (graph,) = re.findall(r"```mermaid\n(.*?)```", text(GUIDE), flags=re.DOTALL)
    drawn: dict[str, set[str]] = {}
    for line in graph.splitlines()[1:]:
        groups = [re.findall(r"\d\d", group) for group in line.split("-->")]
        for sources, targets in pairwise(groups):
            for target in targets:
                drawn.setdefault(target, set()).update(sources)
    written = dict(re.findall(r"\b(\d\d)\s+needs\s+((?:\d\d,\s+)*\d\d|nothing)\.", text(GUIDE)))
    for lesson in lessons():
        opening = re.search(r"\*Before you start:\*(.*?)\*Running", lesson.notebook.cells[0].source, flags=re.DOTALL)
        said = re.search(r"lessons? ([\d, toand]+)", opening[1])
        numbers = re.findall(r"\d\d", said[1]) if said else []
        if said and " to " in said[1]:
            numbers = [f"{k:02}" for k in range(int(numbers[0]), int(numbers[-1]) + 1)]
        assert drawn.get(lesson.number, set()) == set(numbers), f"the graph, lesson {lesson.number}"
        assert set(re.findall(r"\d\d", written[lesson.number])) == set(numbers), f"the text, lesson {lesson.number}"


@PAGES
def test_commands_exist(page):
    """`eigenlib …` as the real parser sees it, flags that stand alone, and make's targets."""
    lines = fenced(page) + spans(text(page))
    commands = [found[0] for line in lines if (found := re.search(r"(?<![\w./])(\.venv/bin/)?eigenlib( .*|$)", line))]
    problems = {command: problem_with(command) for command in commands}
    assert not {command: problem for command, problem in problems.items() if problem}
    flags = {flag for parser in subcommands().values() for action in parser._actions for flag in action.option_strings}
    alone = {flag for span in spans(text(page)) if span.startswith("--") for flag in re.findall(r"--[a-z-]+", span)}
    assert alone <= flags
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    wanted = {name for line in lines for name in re.findall(r"(?:^|\s)make ([a-z]+)", line.split("#")[0])}
    assert wanted <= targets, f"no such target: {wanted - targets}"
    assert commands
    assert wanted


@PAGES
def test_files_exist(page):
    named = [span for span in spans(text(page)) if FILE.fullmatch(span) and not GENERATED.search(span)]
    missing = [name for name in named if not list(ROOT.glob(name.rstrip("/")))]
    assert not missing
    assert named


@PAGES
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)\s]+)\)", text(page)) + re.findall(r'(?:href|src)="([^"]+)"', text(page))
    here = {anchor(heading) for heading in re.findall(r"^#+ (.+)$", text(page), flags=re.MULTILINE)}
    local = [target for target in targets if not re.match(r"[a-z]+://", target)]
    broken = [
        target
        for target in local
        if (target[1:] not in here if target.startswith("#") else not (page.parent / target.split("#")[0]).exists())
    ]
    assert local
    assert not broken


def test_the_guide_keeps_its_marks_and_its_width():
    assert text(GUIDE).count("<!-- minutes -->") == text(GUIDE).count("<!-- /minutes -->") == 1
    computed = re.sub(r"<!-- minutes -->.*<!-- /minutes -->", "", text(GUIDE), flags=re.DOTALL)
    assert not [line for line in computed.splitlines() if len(line) > 128]
