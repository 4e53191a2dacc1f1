"""The `eigenlib` command: `eigenlib report | notebooks | portable | readme | student | grade | experiment | atari | doctor`."""

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
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from eigenlib import __version__
from eigenlib._extras import missing
from eigenlib.experiments import EXPERIMENTS

TIERS = ("quick", "paper")
AMOUNTS = {
    "samples": "transitions to learn from",
    "passes": "over them with both losses",
    "refine_passes": "over them for the SR alone",
    "rows": "frames of the walk whose SR gives the eigenpurposes",
    "purposes": "eigenpurposes, each followed in both directions",
    "steps": "decisions that an option is followed",
}


class UsageProblem(ValueError):
    """Something on the command line that cannot be; shown as one sentence."""


class _Parser(argparse.ArgumentParser):
    """argparse, with what it has to say in one sentence of ours."""

    def error(self, message: str):
        name, _, complaint = message.removeprefix("argument ").partition(": ")
        unknown = re.match(r"invalid choice: '(.*)' \(choose from (.*)\)", complaint)
        if unknown:
            word, known = unknown[1], re.findall(r"[\w-]+", unknown[2])
            near = difflib.get_close_matches(word, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}."
            raise UsageProblem(f"There is no {name} {word!r}: {hint}")
        if not message.startswith("argument "):
            name, complaint = "", message
        complaint = complaint.replace("invalid int value:", "must be a whole number, got")
        complaint = complaint.replace("invalid float value:", "must be a number, got")
        sentence = f"{name.split('/')[-1]} {complaint}".strip().replace("\n", " ")
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
        with _home():
            return options.run(options)
    except KeyboardInterrupt:
        print("\neigenlib: stopped by you; what was finished is kept, and nothing is half-written.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output, such as `| head`, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ModuleNotFoundError as problem:
        if problem.name is None or problem.name.startswith("eigen"):
            raise
        print(f"eigenlib: {missing(problem.name.partition('.')[0])}", file=sys.stderr)
        return 2
    except (ValueError, OSError, ImportError) as problem:
        sentence = str(problem)
        if isinstance(problem, OSError) and problem.strerror and problem.filename is not None:
            sentence = f"The path {os.fsdecode(problem.filename)[:200]!r} cannot be used: {problem.strerror.lower()}."
        print(f"eigenlib: {' '.join(sentence.split())}", file=sys.stderr)
        return 2


@contextlib.contextmanager
def _home() -> Iterator[None]:
    """IPython, Matplotlib and numba keep things at home; where nobody can write there, a folder stands in until we end."""
    if os.access(os.path.expanduser("~"), os.W_OK):
        yield
    else:
        with tempfile.TemporaryDirectory(prefix="eigenlib-", ignore_cleanup_errors=True) as folder:
            os.environ["HOME"] = folder
            yield


def _require_values(options: dict[str, Any]) -> None:
    """What no option may be: a number that is none or too small, text that no file can have for a name."""
    for name, value in options.items():
        option = (
            name if name in ("step", "game", "name", "submissions", "old", "new") else f"--{name.replace('_', '-')}"
        )
        if name in ("jobs", "processes", "threads") and isinstance(value, int) and value < 1:
            raise UsageProblem(f"{option} must be at least 1, got {value}.")
        for one in value if isinstance(value, list) else [value]:
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
    for name, (run, options) in COMMANDS.items():
        help = (run.__doc__ or name).rstrip(".")
        one = commands.add_parser(name, help=help[0].lower() + help[1:])
        one.set_defaults(run=run)
        for flag, settings in options:
            one.add_argument(flag, **settings)
    return parser


# --- commands, each with its options ------------------------------------------------------------------------------------

Option = tuple[str, dict[str, Any]]
COMMANDS: dict[str, tuple[Callable[[Namespace], int], tuple[Option, ...]]] = {}


def command(*options: Option) -> Callable[[Callable[[Namespace], int]], Callable[[Namespace], int]]:
    """`_name` becomes the command `name` with these options; its docstring is its line in the help."""

    def enter(run: Callable[[Namespace], int]) -> Callable[[Namespace], int]:
        COMMANDS[run.__name__[1:]] = run, options
        return run

    return enter


def option(flag: str, metavar: str, help: str, default: Any = None, **settings: Any) -> Option:
    """An option with a value; no metavar makes it a switch. A default that is a number asks for a number."""
    if not metavar:
        return flag, {"help": help, "action": "store_true"}
    if isinstance(default, int | float):
        settings["type"] = type(default)
    return flag, {"metavar": metavar, "help": help, "default": default, **settings}


CORES = os.cpu_count() or 1
ONLY = option("--only", "LESSONS", "notebooks by number or name, separated by commas: 02,05")
JOBS = option("--jobs", "N", "notebooks at a time", min(CORES, 4))


@command(
    option("--tier", "TIER", "quick (minutes on a CPU, default) or paper (the paper's numbers)", "quick"),
    ONLY,
    option("-p", "NAME=VALUE", "set a parameter", [], dest="parameters", action="append"),
    option("--params", "FILE", "parameters from a YAML or JSON file"),
    option("--out", "DIR", "where the report goes (default: report)", "report"),
    JOBS,
)
def _report(options: Namespace) -> int:
    """Execute the notebooks and write one offline HTML report."""
    from eigencourse.lessons import lessons, require_parameters
    from eigencourse.report import write_report

    chosen = lessons(_words(options.only))
    parameters = _parameters(options.parameters, options.params)
    require_parameters(chosen, parameters)
    if options.tier != "quick":
        parameters.setdefault("TIER", options.tier)
    if parameters.get("TIER", "quick") not in TIERS:
        raise UsageProblem(f"There is no tier {parameters['TIER']!r}; the tiers are {' and '.join(TIERS)}.")
    return write_report(chosen, Path(options.out), parameters, options.jobs)


@command(ONLY)
def _notebooks(options: Namespace) -> int:
    """Execute the notebooks in place and store their outputs."""
    from eigencourse import lessons, readme

    failed, busy = 0, readme.busy()
    for outcome in lessons.refresh_many(lessons.lessons(_words(options.only))):
        failed += outcome.failure is not None
        state = f"failed in {outcome.failure}" if outcome.failure else "stored"
        print(f"{outcome.name:32} {outcome.seconds:6.1f} s  {state}{', before' * outcome.kept}", flush=True)
        if not (outcome.failure or outcome.kept or busy):
            readme.note_minutes(outcome.name, outcome.seconds)
        busy = readme.busy()
    return int(failed > 0)


@command(
    ONLY,
    option("--machines", "NAMES", "machines by name, separated by commas: haswell,nehalem (default: all)"),
    JOBS,
)
def _portable(options: Namespace) -> int:
    """Execute the notebooks as on other CPUs and compare what they say."""
    from eigencourse import portable
    from eigencourse.lessons import lessons

    machines = _words(options.machines) or list(portable.MACHINES)
    same = portable.examine(lessons(_words(options.only)), machines, options.jobs, lambda line: print(line, flush=True))
    return int(not same)


@command(option("--check", "", "change nothing; exit 1 if something is out of date"))
def _readme(options: Namespace) -> int:
    """Bring the README's tables and pictures up to date with the notebooks."""
    from eigencourse import readme
    from eigenlib.paths import ROOT

    changed = readme.stale() if options.check else readme.write()
    for path in changed:
        print(f"{'Out of date' if options.check else 'Written'}: {path.relative_to(ROOT)}")
    if not changed:
        print("The README is up to date.")
    return int(options.check and bool(changed))


@command(option("--out", "DIR", "where student/ and instructor/ go (default: build)", "build"))
def _student(options: Namespace) -> int:
    """Write the course without solutions, and with notes for the instructor."""
    from eigencourse.editions import write_editions

    for folder in write_editions(Path(options.out)):
        print(f"Written: {folder}")
    return 0


@command(
    ("old", {"metavar": "OLD", "help": "where your answers are"}),
    ("new", {"metavar": "NEW", "help": "the new edition's notebook or folder, in which the blanks are filled"}),
)
def _carry(options: Namespace) -> int:
    """Take your answers from an old notebook, or a folder, into a new edition."""
    from eigencourse.carry import carry

    print(*carry(options.old, options.new), sep="\n")
    return 0


@command(
    ("submissions", {"nargs": "+", "metavar": "SUBMISSION.ipynb", "help": "notebooks, or folders of them"}),
    option("--csv", "FILE", "where the marks go (default: marks.csv)", "marks.csv"),
    option("--timeout", "S", "seconds a cell may take (default: 60)", 60.0),
    option("--total", "S", "seconds a notebook may take (default: 600)", 600.0),
    JOBS,
    option("--again", "", "also grade what has its mark already and has not changed"),
    option("--stats", "", "how each exercise went, with the mistakes by name"),
    option("--gradebook", "KIND", "also write points to import: moodle or canvas"),
    option("--students", "FILE", "for it: a table with the columns file, id and perhaps name"),
    option("--unsafe", "", "without a sandbox: submissions can do what you can do"),
)
def _grade(options: Namespace) -> int:
    """Run handed-in notebooks, check their answers anew, write a table of marks."""
    if sys.platform == "win32":
        raise UsageProblem("Grading needs Linux, or macOS with --unsafe: on Windows run it in WSL.")
    from eigencourse.grading import marks
    from eigencourse.grading.grade import grade

    if not all(math.isfinite(limit) and limit > 0 for limit in (options.timeout, options.total)):
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


@command(("name", {"help": ";  ".join(f"{name}: {it.question} ({it.takes})" for name, it in EXPERIMENTS.items())}))
def _experiment(options: Namespace) -> int:
    """Make the stored results of an experiment anew, and go on where that was stopped."""
    from eigenlib import experiments

    if options.name not in EXPERIMENTS:
        raise UsageProblem(f"There is no experiment {options.name!r}; there are {', '.join(EXPERIMENTS)}.")
    print(f"Stored: {experiments.make(options.name)}")
    print(*experiments.scored(options.name), sep="\n")
    return 0


# its name in the first edition
COMMANDS["reference"] = COMMANDS["experiment"]


@command(
    ("step", {"help": "collect, train, discover, show, or run for all four"}),
    ("game", {"help": "montezuma_revenge, ms_pacman, bank_heist, freeway or any other of ale-py"}),
    option("--preset", "NAME", "quick (minutes), standard (default) or paper (wants a GPU)", "standard"),
    option("--device", "DEVICE", "auto (default), cpu, cuda, cuda:1 or mps", "auto"),
    option("--out", "DIR", "folder of this job (default: .cache/atari/GAME-PRESET)"),
    option("--seed", "N", "of everything that is drawn (default: 0)", 0),
    option("--precision", "KIND", "of training: fp32, bf16, or auto, whichever is faster here (default)", "auto"),
    option("--threads", "N", "of training on a CPU (default: one for each free core)", type=int),
    option("--processes", "N", "emulators at a time", min(CORES, 8)),
    *(
        option(f"--{name.replace('_', '-')}", "N", f"{what} (default: the preset's)", type=int)
        for name, what in AMOUNTS.items()
    ),
)
def _atari(options: Namespace) -> int:
    """Eigenoptions of an Atari game: atari collect, train, discover, show, or run for all four."""
    from eigenlib.atari import pipeline

    if options.step not in pipeline.STEPS:
        raise UsageProblem(f"There is no step {options.step!r}; the steps are {', '.join(pipeline.STEPS)}.")
    if options.precision not in ("auto", "fp32", "bf16"):
        raise UsageProblem(f"--precision must be auto, fp32 or bf16, got {options.precision!r}.")
    amounts = {name: getattr(options, name) for name in (*AMOUNTS, "threads", "precision")}
    job = pipeline.prepare(
        options.game, options.preset, seed=options.seed, device=options.device, out=options.out, **amounts
    )
    try:
        pipeline.STEPS[options.step](job, options.processes)
    except FloatingPointError as problem:  # training went astray
        raise UsageProblem(str(problem)) from None
    return 0


@command(
    option("--course", "", "also run every lesson and check every solution (minutes)"),
    option("--gpu", "", "also train on GPU and CPU and compare (a minute)"),
    option("--only", "LESSONS", "with --course: lessons by number or name, separated by commas: 02,05"),
    option("--jobs", "N", "with --course: lessons at a time", min(CORES, 4)),
)
def _doctor(options: Namespace) -> int:
    """Is this machine ready for the course?"""
    from eigencourse import doctor
    from eigencourse.lessons import lessons

    if options.only is not None and not options.course:
        raise UsageProblem("--only chooses lessons for --course: add --course.")
    chosen = lessons(_words(options.only)) if options.course else []
    findings = doctor.examine()
    if options.gpu:
        from eigencourse.doctor_gpu import examine_gpu

        findings = itertools.chain(findings, examine_gpu())
    worst = "ok"
    for finding in findings:
        advice = f"\n          → {finding.advice}" if finding.advice else ""
        print(f"{finding.status:8}  {finding.name}: {finding.what}{advice}", flush=True)
        worst = max(worst, finding.status, key=["ok", "warning", "error"].index)
    if chosen:
        print(f"\n{len(chosen)} lesson{'s' * (len(chosen) != 1)}, {options.jobs} at a time:", flush=True)
        lines = doctor.rehearse(chosen, options.jobs, lambda line: print(line, flush=True))
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
            complaint = " ".join(str(problem).split()).rstrip(".")
            raise UsageProblem(f"{file} is neither YAML nor JSON: {complaint}.") from None
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
