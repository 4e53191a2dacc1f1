"""The `eigenlib` command: `eigenlib report | notebooks | reference | doctor`."""

from __future__ import annotations

import argparse
import ast
import os
import sys
from pathlib import Path
from typing import Any

from eigenlib import __version__

TIERS = ("quick", "paper")


class UsageProblem(ValueError):
    """Something on the command line that cannot be; shown as one sentence."""


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 2
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print("\neigenlib: stopped by you; nothing that existed before was changed.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output, such as `| head`, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as problem:
        print(f"eigenlib: {problem}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="eigenlib", description="Eigenoptions, from a maze to Atari: course and report."
    )
    parser.add_argument("--version", action="version", version=f"eigenlib {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands")

    report = commands.add_parser("report", help="execute the notebooks and write one offline HTML report")
    report.add_argument(
        "--tier", default="quick", help="quick (minutes on a CPU, default) or paper (the paper's numbers)"
    )
    report.add_argument("--only", help="notebooks by number or name, separated by commas: 02,05")
    report.add_argument(
        "-p", dest="parameters", action="append", default=[], metavar="NAME=VALUE", help="set a parameter"
    )
    report.add_argument("--params", metavar="FILE", help="parameters from a YAML or JSON file")
    report.add_argument("--out", default="report", metavar="DIR", help="where the report goes (default: report)")
    report.add_argument(
        "--jobs", type=int, default=min(os.cpu_count() or 1, 4), metavar="N", help="notebooks at a time"
    )
    report.set_defaults(run=_report)

    refresh = commands.add_parser("notebooks", help="execute the notebooks in place and store their outputs")
    refresh.add_argument("--only", help="notebooks by number or name, separated by commas: 02,05")
    refresh.set_defaults(run=_notebooks)

    reference = commands.add_parser(
        "reference", help="compute a stored full-scale experiment anew (minutes; resumable)"
    )
    reference.add_argument("name", help="control or control_2017")
    reference.set_defaults(run=_reference)

    doctor = commands.add_parser("doctor", help="is this machine ready for the course?")
    doctor.set_defaults(run=_doctor)
    return parser


def _report(options: argparse.Namespace) -> int:
    from eigenlib.notebooks import lessons, require_parameters
    from eigenlib.report import write_report

    if options.jobs < 1:
        raise UsageProblem(f"--jobs must be at least 1, got {options.jobs}.")
    chosen = lessons(_words(options.only))
    parameters = _parameters(options.parameters, options.params)
    require_parameters(chosen, parameters)
    if options.tier != "quick":
        parameters.setdefault("TIER", options.tier)
    if parameters.get("TIER", "quick") not in TIERS:
        raise UsageProblem(f"There is no tier {parameters['TIER']!r}; the tiers are {' and '.join(TIERS)}.")
    return write_report(chosen, Path(options.out), parameters, options.jobs)


def _notebooks(options: argparse.Namespace) -> int:
    from eigenlib.notebooks import lessons, refresh

    failed = 0
    for lesson in lessons(_words(options.only)):
        outcome = refresh(lesson)
        failed += outcome.failure is not None
        state = f"failed in cell [{outcome.failure.cell}]: {outcome.failure.error}" if outcome.failure else "stored"
        print(f"{lesson.name:32} {outcome.seconds:6.1f} s  {state}", flush=True)
    return int(failed > 0)


def _reference(options: argparse.Namespace) -> int:
    from eigenlib.experiments import stored_curves
    from eigenlib.paths import REFERENCE

    stored_curves(options.name, regenerate=True)
    print(f"Stored: {REFERENCE / options.name}.npz")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from eigenlib.doctor import examine

    worst = "ok"
    for finding in examine():
        advice = f"\n          → {finding.advice}" if finding.advice else ""
        print(f"{finding.status:8}  {finding.name}: {finding.what}{advice}", flush=True)
        worst = max(worst, finding.status, key=["ok", "warning", "error"].index)
    print({"ok": "Ready.", "warning": "Ready, with the warnings above."}.get(worst, "Not ready: see the errors above."))
    return int(worst == "error")


def _words(text: str | None) -> list[str] | None:
    return None if text is None else text.split(",")


def _parameters(pairs: list[str], file: str | None) -> dict[str, Any]:
    """Parameters from a file, then from -p, which wins."""
    found: dict[str, Any] = {}
    if file is not None:
        import yaml

        try:
            loaded = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
        except yaml.YAMLError as problem:
            raise UsageProblem(f"{file} is neither YAML nor JSON: {' '.join(str(problem).split())}") from None
        if not isinstance(loaded, dict):
            raise UsageProblem(f"{file} must hold names and values, such as 'GAMMA: 0.9'.")
        found.update(loaded)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageProblem(f"-p wants NAME=VALUE, such as -p GAMMA=0.95; got {pair!r}.")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value  # a plain word, as in -p MAP=four_rooms
    return found
