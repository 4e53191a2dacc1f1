"""The command line: what cannot be is refused before anything runs, in one sentence that names what is valid."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from eigencourse.cli import EXPERIMENTS, main
from eigencourse.doctor import Finding
from eigencourse.lessons import Outcome, lessons


def refused(capsys, *arguments):
    """Run, expect exit 2, return the one line on stderr."""
    assert main(list(arguments)) == 2
    text = capsys.readouterr().err.strip()
    assert text.count("\n") == 0
    return text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--tier", "fast"], ["'fast'", "quick and paper"]),
        (["--only", "02,77"], ["'77'", *(lesson.name for lesson in lessons())]),
        (["--only", ""], ["empty list"]),
        (["-p", "GAMA=0.9"], ["'GAMA'", "GAMMA", "SEED"]),
        (["-p", "GAMMA"], ["NAME=VALUE"]),
        (["-p", "TIER=huge"], ["'huge'"]),
        (["--jobs", "0"], ["--jobs", "at least 1"]),
        (["--params", "no-such-file.yml"], ["no-such-file.yml"]),
    ],
)
def test_report_refuses_before_it_runs(capsys, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    text = refused(capsys, "report", *arguments)
    assert all(word in text for word in says)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("content", "says"), [("[1, 2]", "names and values"), ("{x: [", "neither YAML nor JSON")])
def test_bad_parameter_files(capsys, tmp_path, content, says):
    file = tmp_path / "parameters.yml"
    file.write_text(content)
    assert says in refused(capsys, "report", "--params", str(file))


def test_a_folder_that_is_not_ours_is_never_replaced(capsys, tmp_path):
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter.txt").write_text("years of work")
    assert "not a report of ours" in refused(capsys, "report", "--only", "01", "--out", str(precious))
    assert (precious / "chapter.txt").read_text() == "years of work"


def test_parameters_come_from_file_and_line_and_the_line_wins(monkeypatch, tmp_path):
    seen = {}
    monkeypatch.setattr(
        "eigencourse.report.write_report", lambda chosen, out, parameters, jobs: seen.update(parameters) or 0
    )
    file = tmp_path / "p.json"
    file.write_text(json.dumps({"GAMMA": 0.8, "SEED": 4}))
    assert main(["report", "--params", str(file), "-p", "GAMMA=0.95", "-p", "MAP=open_room", "--tier", "paper"]) == 0
    assert seen == {"GAMMA": 0.95, "SEED": 4, "MAP": "open_room", "TIER": "paper"}


def test_an_unknown_reference_is_refused_and_the_known_ones_named(capsys):
    assert "control, control_2017" in refused(capsys, "reference", "everything")


def test_no_command_shows_the_help(capsys):
    assert main([]) == 2
    assert "report" in capsys.readouterr().out


def test_python_m_eigenlib_is_the_same_command():
    done = subprocess.run([sys.executable, "-m", "eigenlib", "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("eigenlib ")


def test_doctor_says_what_to_do_and_fails_only_on_errors(capsys, monkeypatch):
    findings = [Finding("ok", "python", "3.11"), Finding("warning", "disk", "1 GiB free", "Free some disk space.")]
    monkeypatch.setattr("eigencourse.doctor.examine", lambda: iter(findings))
    assert main(["doctor"]) == 0
    assert "→ Free some disk space." in capsys.readouterr().out
    findings.append(Finding("error", "games", "no ROM", "Reinstall ale-py."))
    assert main(["doctor"]) == 1


def test_doctor_finds_this_machine_healthy(capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[1].strip(":") for line in lines if not line.startswith((" ", "Ready"))} == {
        *("python", "packages", "device", "games", "memory", "disk", "browser", "speed")
    }


def test_a_missing_package_is_an_error_and_another_platforms_is_not(monkeypatch):
    from eigencourse import doctor

    monkeypatch.setattr(doctor, "pins", lambda: {"colorama-of-windows": "1.0"})
    assert doctor._packages().status == "ok"
    monkeypatch.setattr(doctor, "requires", lambda name: ["colorama-of-windows>=1"])
    assert doctor._packages().status == "error"


def test_doctor_survives_a_check_that_breaks(monkeypatch):
    from eigencourse import doctor

    def broken():
        raise OSError("no such ROM")

    broken.__name__ = "_roms"
    monkeypatch.setattr(doctor, "_roms", broken)
    (finding,) = [finding for finding in doctor.examine() if finding.name == "roms"]
    assert finding.status == "error"
    assert "no such ROM" in finding.what


def test_interrupted_report_leaves_the_old_one(tmp_path):
    """Ctrl-C in the middle: exit 130, one sentence, the old report untouched, nothing half-built beside it."""
    out = tmp_path / "report"
    out.mkdir()
    (out / ".eigenlib-report").touch()
    (out / "index.html").write_text("the old report")
    command = [sys.executable, "-m", "eigenlib", "report", "--only", "01", "--out", str(out)]
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a test run in the background may ignore it, and pass that on
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    while not list(tmp_path.glob(".report.unfinished")):
        time.sleep(0.05)
    time.sleep(2)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "stopped by you" in errors
    assert (out / "index.html").read_text() == "the old report"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report"]


def test_an_unknown_experiment_names_all_there_are(capsys):
    for command in ("experiment", "reference"):
        assert main([command, "nonsense"]) == 2
        told = capsys.readouterr().err
        assert all(name in told for name in EXPERIMENTS)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"{"])
def test_parameters_that_cannot_be_read_name_their_file(tmp_path, capsys, content):
    (tmp_path / "numbers.yml").write_bytes(content)
    assert main(["report", "--params", str(tmp_path / "numbers.yml")]) == 2
    assert "numbers.yml is neither YAML nor JSON" in capsys.readouterr().err


def test_a_parameter_that_is_no_value_is_a_word(capsys):
    assert main(["report", "--only", "02", "-p", "NOBODY={[]:1}"]) == 2
    assert "NOBODY" in capsys.readouterr().err


def test_stopping_a_refresh_keeps_what_was_measured(monkeypatch, capsys, tmp_path):
    """The second lesson is interrupted: the first one's seconds are noted, and the sentence claims no more than is true."""
    done, noted = [], []

    def refresh(lesson):
        if done:
            raise KeyboardInterrupt
        done.append(lesson.name)
        return Outcome(lesson.name, lesson.path, 3.0, None)

    monkeypatch.setattr("eigencourse.lessons.refresh", refresh)
    monkeypatch.setattr("eigencourse.lessons.PROGRESS", tmp_path / "progress" / "stored.json")
    monkeypatch.setattr("eigencourse.readme.busy", lambda: False)
    monkeypatch.setattr("eigencourse.readme.note_minutes", lambda *measured: noted.append(measured))
    assert main(["notebooks", "--only", "00,01"]) == 130
    assert noted == [(done[0], 3.0)]
    assert "what was finished is kept" in capsys.readouterr().err
