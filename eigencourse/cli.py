"""The `eigenlib` command: `eigenlib report | notebooks | portable | readme | student | grade | reference | atari | doctor`."""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import itertools
import math
import os
import re
import sys
from pathlib import Path
from typing import Any

from eigenlib import __version__

TIERS = ("quick", "paper")
EXPERIMENTS = (
    "control",
    "control_2017",
    "deep_rooms",
    "atari_normalisation",
    "atari_seeds",
    "atari_myopia",
    "atari_evidence",
)


class UsageProblem(ValueError):
    """Something on the command line that cannot be; shown as one sentence."""


class _Parser(argparse.ArgumentParser):
    """argparse, with what it has to say in one sentence of ours."""

    def error(self, message: str):
        name, _, said = message.removeprefix("argument ").partition(": ")
        unknown = re.match(r"invalid choice: '(.*)' \(choose from (.*)\)", said)
        if unknown:
            word, known = unknown[1], re.findall(r"[\w-]+", unknown[2])
            near = difflib.get_close_matches(word, known, n=1)
            raise UsageProblem(
                f"There is no {name} {word!r}: "
                + (f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}.")
            )
        if not message.startswith("argument "):
            name, said = "", message
        for theirs, ours in (
            ("invalid int value:", "must be a whole number, got"),
            ("invalid float value:", "must be a number, got"),
        ):
            said = said.replace(theirs, ours)
        sentence = f"{name.split('/')[-1]} {said}".strip().replace("\n", " ")
        raise UsageProblem(f"{sentence[0].upper()}{sentence[1:]}; see {self.prog} --help.")


def main(arguments: list[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows no φ shows a question mark, and goes on
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        parser = _parser()
        options = parser.parse_args(arguments)
        if options.command is None:
            parser.print_help()
            return 2
        _require_values(vars(options))
        return options.run(options)
    except KeyboardInterrupt:
        print("\neigenlib: stopped by you; what was finished is kept, and nothing is half-written.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output, such as `| head`, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as problem:
        said = str(problem)
        if isinstance(problem, OSError) and problem.strerror and problem.filename is not None:
            said = f"The path {os.fsdecode(problem.filename)[:200]!r} cannot be used: {problem.strerror.lower()}."
        print(f"eigenlib: {' '.join(said.split())}", file=sys.stderr)
        return 2


def _require_values(options: dict[str, Any]) -> None:
    """What no option may be: a number that is none, text that no file can have for a name."""
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            option = (
                name if name in ("step", "game", "name", "submissions", "old", "new") else f"--{name.replace('_', '-')}"
            )
            if isinstance(one, float) and not math.isfinite(one):
                raise UsageProblem(f"{option} must be a finite number, got {one}.")
            if isinstance(one, int) and abs(one) >= 2**63:
                raise UsageProblem(f"{option} must be a number of a sensible size, got one of {len(str(one))} digits.")
            if isinstance(one, str) and ("\0" in one or (not one and name != "only")):
                raise UsageProblem(f"{option} must be given something: {one!r} is no name.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="eigenlib", description="Eigenoptions, from a maze to Atari: course and report.")
    parser.add_argument("--version", action="version", version=f"eigenlib {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="command")

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

    portable = commands.add_parser("portable", help="execute the notebooks as on other CPUs and compare what they say")
    portable.add_argument("--only", help="notebooks by number or name, separated by commas: 02,05")
    portable.add_argument("--machines", help="machines by name, separated by commas: haswell,nehalem (default: all)")
    portable.add_argument(
        "--jobs", type=int, default=min(os.cpu_count() or 1, 4), metavar="N", help="notebooks at a time"
    )
    portable.set_defaults(run=_portable)

    readme = commands.add_parser("readme", help="bring the README's tables and pictures up to date with the notebooks")
    readme.add_argument("--check", action="store_true", help="change nothing; exit 1 if something is out of date")
    readme.set_defaults(run=_readme)

    student = commands.add_parser(
        "student", help="write the course without solutions, and with notes for the instructor"
    )
    student.add_argument(
        "--out", default="build", metavar="DIR", help="where student/ and instructor/ go (default: build)"
    )
    student.set_defaults(run=_student)

    carry = commands.add_parser("carry", help="take your answers from an old notebook, or a folder, into a new edition")
    carry.add_argument("old", metavar="OLD", help="where your answers are")
    carry.add_argument(
        "new", metavar="NEW", help="the new edition's notebook or folder, in which the blanks are filled"
    )
    carry.set_defaults(run=_carry)

    grade = commands.add_parser(
        "grade", help="run handed-in notebooks, check their answers anew, write a table of marks"
    )
    grade.add_argument("submissions", nargs="+", metavar="SUBMISSION.ipynb", help="notebooks, or folders of them")
    grade.add_argument("--csv", default="marks.csv", metavar="FILE", help="where the marks go (default: marks.csv)")
    grade.add_argument("--timeout", type=float, default=60, metavar="S", help="seconds a cell may take (default: 60)")
    grade.add_argument(
        "--total", type=float, default=600, metavar="S", help="seconds a notebook may take (default: 600)"
    )
    grade.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4), metavar="N", help="notebooks at a time")
    grade.add_argument("--again", action="store_true", help="also grade what has its mark already and has not changed")
    grade.add_argument("--stats", action="store_true", help="how each exercise went, with the mistakes by name")
    grade.add_argument("--gradebook", metavar="KIND", help="also write points to import: moodle or canvas")
    grade.add_argument("--students", metavar="FILE", help="for it: a table with the columns file, id and perhaps name")
    grade.add_argument("--unsafe", action="store_true", help="without a sandbox: submissions can do what you can do")
    grade.set_defaults(run=_grade)

    reference = commands.add_parser(
        "reference", help="compute a stored full-scale experiment anew (minutes; resumable)"
    )
    reference.add_argument("name", help=", ".join(EXPERIMENTS))
    reference.set_defaults(run=_reference)

    atari = commands.add_parser(
        "atari", help="eigenoptions of an Atari game: atari collect, train, discover, show, or run for all four"
    )
    atari.add_argument("step", help="collect, train, discover, show, or run for all four")
    atari.add_argument("game", help="montezuma_revenge, ms_pacman, bank_heist, freeway or any other of ale-py")
    atari.add_argument(
        "--preset", default="standard", help="quick (minutes), standard (default) or paper (wants a GPU)"
    )
    atari.add_argument("--device", default="auto", help="auto (default), cpu, cuda, cuda:1 or mps")
    atari.add_argument("--out", metavar="DIR", help="folder of this job (default: .cache/atari/GAME-PRESET)")
    atari.add_argument("--seed", type=int, default=0, metavar="N")
    atari.add_argument(
        "--precision", default="auto", help="of training: fp32, bf16, or auto, whichever is faster here (default)"
    )
    atari.add_argument("--threads", type=int, metavar="N", help="of training on a CPU (default: one a free core)")
    atari.add_argument(
        "--processes", type=int, default=min(os.cpu_count() or 1, 8), metavar="N", help="emulators at a time"
    )
    for amount, what in (
        ("samples", "transitions to learn from"),
        ("passes", "over them with both losses"),
        ("refine-passes", "over them for the SR alone"),
        ("rows", "frames of the walk whose SR gives the eigenpurposes"),
        ("purposes", "eigenpurposes, each followed in both directions"),
        ("steps", "decisions that an option is followed"),
    ):
        atari.add_argument(f"--{amount}", type=int, metavar="N", help=f"{what} (default: the preset's)")
    atari.set_defaults(run=_atari)

    doctor = commands.add_parser("doctor", help="is this machine ready for the course?")
    doctor.add_argument(
        "--course", action="store_true", help="also run every lesson and check every solution (minutes)"
    )
    doctor.add_argument("--gpu", action="store_true", help="also train on GPU and CPU and compare (a minute)")
    doctor.add_argument("--only", help="with --course: lessons by number or name, separated by commas: 02,05")
    doctor.add_argument(
        "--jobs", type=int, default=min(os.cpu_count() or 1, 4), metavar="N", help="with --course: lessons at a time"
    )
    doctor.set_defaults(run=_doctor)
    return parser


def _report(options: argparse.Namespace) -> int:
    from eigencourse.lessons import lessons, require_parameters
    from eigencourse.report import write_report

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
    from eigencourse import minutes
    from eigencourse.lessons import lessons, refresh

    failed, seconds, chosen = 0, {}, lessons(_words(options.only))
    try:
        for lesson in chosen:
            busy = minutes.busy()
            outcome = refresh(lesson)
            failed += outcome.failure is not None
            state = f"failed in cell [{outcome.failure.cell}]: {outcome.failure.error}" if outcome.failure else "stored"
            print(f"{lesson.name:32} {outcome.seconds:6.1f} s  {state}", flush=True)
            if outcome.failure is None and not busy:
                seconds[lesson.name] = outcome.seconds
    finally:
        minutes.note(seconds, [lesson.name for lesson in lessons()])
    return int(failed > 0)


def _portable(options: argparse.Namespace) -> int:
    from eigencourse import portable
    from eigencourse.lessons import lessons

    if options.jobs < 1:
        raise UsageProblem(f"--jobs must be at least 1, got {options.jobs}.")
    machines = _words(options.machines) or list(portable.MACHINES)
    same = portable.examine(lessons(_words(options.only)), machines, options.jobs, lambda line: print(line, flush=True))
    return int(not same)


def _readme(options: argparse.Namespace) -> int:
    from eigencourse import readme
    from eigenlib.paths import ROOT

    changed = readme.stale() if options.check else readme.write()
    for path in changed:
        print(f"{'Out of date' if options.check else 'Written'}: {path.relative_to(ROOT)}")
    if not changed:
        print("The README is up to date.")
    return int(options.check and bool(changed))


def _student(options: argparse.Namespace) -> int:
    from eigencourse.editions import write_editions

    for folder in write_editions(Path(options.out)):
        print(f"Written: {folder}")
    return 0


def _carry(options) -> int:
    from eigencourse.carry import carry

    print(*carry(options.old, options.new), sep="\n")
    return 0


def _grade(options: argparse.Namespace) -> int:
    if sys.platform == "win32":
        raise UsageProblem("Grading needs Linux, or macOS with --unsafe: on Windows run it in WSL.")
    from eigencourse.grading import marks
    from eigencourse.grading.grade import grade

    if not all(math.isfinite(limit) and limit > 0 for limit in (options.timeout, options.total, options.jobs)):
        raise UsageProblem("--timeout, --total and --jobs must be numbers above 0.")
    if options.gradebook not in (None, *marks.GRADEBOOKS):
        raise UsageProblem(f"--gradebook knows {' and '.join(marks.GRADEBOOKS)}; got {options.gradebook!r}.")
    if options.students and not options.gradebook:
        raise UsageProblem("--students says who is who in a gradebook: add --gradebook moodle or canvas.")
    target = Path(options.csv)
    rows = grade(
        options.submissions, target, options.timeout, options.total, options.jobs, options.again, options.unsafe
    )
    print(f"Marks of {len(rows)} notebook{'s' * (len(rows) != 1)}: {target}")
    if options.stats:
        print(marks.statistics(rows))
    if options.gradebook:
        book = target.with_name(f"{target.stem}-{options.gradebook}.csv")
        remarks = marks.gradebook(rows, options.gradebook, book, Path(options.students) if options.students else None)
        print(f"To import into {options.gradebook.title()}: {book}", *remarks, sep="\n  ")
    return int(any(row["status"].startswith("broken: cannot be read") for row in rows))  # such as a mistyped name


def _reference(options: argparse.Namespace) -> int:
    from eigenlib.paths import REFERENCE

    if options.name not in EXPERIMENTS:
        raise UsageProblem(f"There is no experiment {options.name!r}; there are {', '.join(EXPERIMENTS)}.")
    if options.name == "deep_rooms":
        from eigenlib.experiments.deep_rooms import make_reference

        make_reference()
    elif options.name == "atari_evidence":
        from eigenlib.experiments import atari_evidence

        atari_evidence.make_reference(threads="auto", precision="auto")
        print(f"Stored: {atari_evidence.RESULTS}")
        return 0
    elif options.name.startswith("atari_"):
        from eigenlib.experiments import atari_studies

        atari_studies.make_reference(options.name)
    else:
        from eigenlib.experiments.control import stored_curves

        stored_curves(options.name, regenerate=True)
    print(f"Stored: {REFERENCE / options.name}.npz")
    return 0


def _atari(options: argparse.Namespace) -> int:
    from eigenlib.atari import pipeline

    if options.step not in pipeline.STEPS:
        raise UsageProblem(f"There is no step {options.step!r}; the steps are {', '.join(pipeline.STEPS)}.")
    if options.processes < 1:
        raise UsageProblem(f"--processes must be at least 1, got {options.processes}.")
    if options.threads is not None and options.threads < 1:
        raise UsageProblem(f"--threads must be at least 1, got {options.threads}.")
    if options.precision not in ("auto", "fp32", "bf16"):
        raise UsageProblem(f"--precision must be auto, fp32 or bf16, got {options.precision!r}.")
    names = ("samples", "passes", "refine_passes", "rows", "purposes", "steps", "threads", "precision")
    amounts = {name: getattr(options, name) for name in names}
    job = pipeline.prepare(
        options.game, options.preset, seed=options.seed, device=options.device, out=options.out, **amounts
    )
    try:
        pipeline.STEPS[options.step](job, options.processes)
    except FloatingPointError as problem:  # training went astray
        raise UsageProblem(str(problem)) from None
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from eigencourse.doctor import examine
    from eigencourse.doctor.course import rehearse
    from eigencourse.lessons import lessons

    if options.jobs < 1:
        raise UsageProblem(f"--jobs must be at least 1, got {options.jobs}.")
    if options.only is not None and not options.course:
        raise UsageProblem("--only chooses lessons for --course: add --course.")
    chosen = lessons(_words(options.only)) if options.course else []
    findings = examine()
    if options.gpu:
        from eigencourse.doctor.gpu import examine_gpu

        findings = itertools.chain(findings, examine_gpu())
    worst = "ok"
    for finding in findings:
        advice = f"\n          → {finding.advice}" if finding.advice else ""
        print(f"{finding.status:8}  {finding.name}: {finding.what}{advice}", flush=True)
        worst = max(worst, finding.status, key=["ok", "warning", "error"].index)
    if chosen:
        print(f"\n{len(chosen)} lesson{'s' * (len(chosen) != 1)}, {options.jobs} at a time:", flush=True)
        lines = rehearse(chosen, options.jobs, lambda line: print(line, flush=True))
        ready = sum(not line.problem for line in lines)
        print(f"{ready} of {len(lines)} ready, {sum(line.passed for line in lines)} solutions pass.")
        worst = worst if ready == len(lines) else "error"
    print({"ok": "Ready.", "warning": "Ready, with the warnings above."}.get(worst, "Not ready: see the errors above."))
    return int(worst == "error")


def _words(text: str | None) -> list[str] | None:
    return None if text is None else text.split(",")


def _parameters(pairs: list[str], file: str | None) -> dict[str, Any]:
    """Parameters from a file, then from -p, which wins."""
    found: dict[str, Any] = {}
    if file is not None and Path(file).is_file() and Path(file).stat().st_size > 2**20:
        raise UsageProblem(f"{file} is larger than any list of parameters: it must have at most 1 MB.")
    if file is not None:
        import yaml

        try:
            loaded = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
        except (yaml.YAMLError, ValueError, RecursionError) as problem:
            said = " ".join(str(problem).split()).rstrip(".")
            raise UsageProblem(f"{file} is neither YAML nor JSON: {said}.") from None
        if not isinstance(loaded, dict):
            raise UsageProblem(f"{file} must hold names and values, such as 'GAMMA: 0.9'.")
        found.update(loaded)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageProblem(f"-p wants NAME=VALUE, such as -p GAMMA=0.95; got {pair!r}.")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            found[name] = value  # a plain word, as in -p MAP=four_rooms
    return found
