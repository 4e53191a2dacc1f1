"""A student's answers carried into a new edition: `eigenlib carry OLD NEW`, two notebooks or two folders of them.

An answer is a cell that gives a name `my_…` something; it goes into the cell of the new notebook that has a blank for that
name. What is blank in the old one stays blank, what is filled in the new one already stays as it is, and functions of the
student's own that an answer calls come along in a cell before it. The old notebook is only read.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat

from eigencourse.lessons import NotebookProblem
from eigenlib import _require
from eigenlib.storage import replace_file

_ANSWER = re.compile(r"^(?:def\s+)?(my_\w+)\s*[(=:]", flags=re.MULTILINE)  # also in a cell that does not run yet
_OWN = re.compile(r"^(?:def|class)\s+(\w+)|^(\w+)\s*=[^=]", flags=re.MULTILINE)


def carry(old: Path | str, new: Path | str) -> list[str]:
    """Carry the answers over, and give a line for each notebook that says which."""
    old, new = _require.path(old, "old"), _require.path(new, "new")
    if not old.exists() or not new.exists():
        raise NotebookProblem(f"There is no {old if not old.exists() else new}: name your notebook, then the new one.")
    if old.samefile(new):
        raise NotebookProblem(f"{old} and {new} are the same: the new edition must be another file or folder.")
    if old.is_dir() != new.is_dir():
        raise NotebookProblem(f"{old} and {new} must both be notebooks, or both be folders of them.")
    if not old.is_dir():
        return [_carry(old, new)]
    pairs = [(path, new / path.name) for path in sorted(old.glob("*.ipynb")) if (new / path.name).exists()]
    if not pairs:
        raise NotebookProblem(f"No notebook of {old} has the name of one in {new}: carry them over one by one.")
    return [_carry(*pair) for pair in pairs]


def _carry(old: Path, new: Path) -> str:
    mine, theirs = [cell.source for cell in _read(old).cells if cell.cell_type == "code"], _read(new)
    answers = {name: cell for cell in mine for name in _ANSWER.findall(cell) if not _is_blank(cell, name)}
    defined = {name for cell in theirs.cells if cell.cell_type == "code" for name in _names(cell.source)}
    carried: list[str] = []
    cells = []
    for cell in theirs.cells:
        blanks = _ANSWER.findall(cell.source) if cell.cell_type == "code" else []
        if name := next((one for one in blanks if one in answers and _is_blank(cell.source, one)), ""):
            for helper in _helpers(answers[name], mine, defined):
                defined |= _names(helper)
                cells.append(nbformat.v4.new_code_cell(helper))
            cell.source, cell.outputs, cell.execution_count = answers[name], [], None
            carried.append(name)
        cells.append(cell)
    theirs.cells = cells
    if carried:
        replace_file(new, nbformat.writes(theirs).encode())
    filled = {name for cell in theirs.cells if cell.cell_type == "code" for name in _ANSWER.findall(cell.source)}
    lost = sorted(set(answers) - filled)
    kept = sorted(set(answers) & filled - set(carried))
    parts = [f"{len(carried)} answers carried over" + (f" ({', '.join(carried)})" if carried else "")]
    parts += [f"already there: {', '.join(kept)}"] * bool(kept)
    parts += [f"no exercise any more, so only in your old notebook: {', '.join(lost)}"] * bool(lost)
    return f"{new.name}: {'; '.join(parts)}."


def _read(path: Path):
    try:
        return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as problem:
        raise NotebookProblem(f"{path} cannot be read as a notebook ({type(problem).__name__}).") from None


def _is_blank(source: str, name: str) -> bool:
    """Whether the name is still given nothing but `...` or None, by itself, in brackets, or returned."""
    try:
        nodes = ast.parse(source).body
    except SyntaxError:  # somebody is at work here
        return False
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            return all(isinstance(line, ast.Pass) or _is_empty(getattr(line, "value", line)) for line in body)
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
            return _is_empty(node.value)
    return False


def _is_empty(node: ast.AST | None) -> bool:
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict)):
        return all(map(_is_empty, node.values if isinstance(node, ast.Dict) else node.elts))
    return node is None or (isinstance(node, ast.Constant) and node.value in (None, ...))


def _names(source: str) -> set[str]:
    return {one or other for one, other in _OWN.findall(source)}


def _helpers(answer: str, mine: list[str], defined: set[str]) -> list[str]:
    """The student's own cells that define what an answer uses and the new notebook does not have."""
    used = set(re.findall(r"\w+", answer)) - defined
    return [cell for cell in mine if cell != answer and not _ANSWER.search(cell) and _names(cell) & used]
