"""The ledger: claims are complete, verdicts follow from numbers, text and metadata agree."""

import ast
import math
import re
from unittest.mock import patch

import nbformat
import pytest

from eigencourse import ledger
from eigencourse.lessons import lessons
from eigenlib.gridworld import GridWorld


def entered(function, *args, **kwargs):
    """The text and the metadata that one ledger call displays."""
    with patch("eigencourse.ledger.display") as display:
        function(*args, **kwargs)
    (data,), options = display.call_args
    return data["text/plain"], options["metadata"]["eigenlib"]


def test_claims_are_complete_and_well_formed():
    claims = ledger.claims()
    assert len(claims) >= 25
    for claim in claims.values():
        assert re.fullmatch(r"[a-z0-9-]+", claim.id)
        assert claim.says.endswith(".")
        assert "§" in claim.where or "ppendix" in claim.where
        assert re.fullmatch(r"0[1-9]|1[01]", claim.notebook)


def test_every_recorded_claim_stands_in_its_own_notebook():
    """A claim recorded elsewhere than claims.toml says would be linked to the wrong lesson."""
    for lesson in lessons():
        for entry in ledger.collect(lesson.notebook)["record"]:
            assert ledger.claims()[entry["claim"]].notebook == lesson.number


def test_every_lesson_records_all_its_claims():
    for lesson in lessons():
        recorded = {entry["claim"] for entry in ledger.collect(lesson.notebook)["record"]}
        assert recorded == {claim.id for claim in ledger.claims().values() if claim.notebook == lesson.number}


@pytest.mark.parametrize(
    ("holds", "partly", "verdict"),
    [(True, False, "holds"), (True, True, "holds"), (False, True, "holds partly"), (False, False, "does not hold")],
)
def test_verdict_follows_from_the_comparison(holds, partly, verdict):
    text, meta = entered(ledger.record, "corners", 1.5, holds=holds, partly=partly, criterion="x ≥ 1")
    assert meta["record"]["verdict"] == verdict
    assert text.startswith(f"{ledger.VERDICTS[verdict]} {verdict}: corners")


@pytest.mark.parametrize(
    ("digits", "shown"), [(1, "10 [9, 1,000] times"), (2, "11 [9.2, 1,200] times"), (3, "11.3 [9.21, 1,234] times")]
)
def test_fewer_digits_are_shown_where_machines_differ_in_them(digits, shown):
    text, meta = entered(
        ledger.record, "corners", 11.324, holds=True, criterion="c", spread=(9.21, 1234), unit="times", digits=digits
    )
    assert shown in text
    assert ledger.measured(meta["record"]) == shown
    assert meta["record"]["value"] == 11.324


def test_text_is_rounded_and_metadata_is_whole():
    text, meta = entered(
        ledger.record, "corners", math.pi, holds=True, criterion="c", spread=(2 / 3, 4.00001), unit="tiles"
    )
    assert "3.14 [0.667, 4] tiles" in text
    assert meta["record"]["value"] == math.pi
    assert meta["record"]["spread"] == [2 / 3, 4.00001]


def test_rounding_noise_never_reaches_the_text():
    """Digits of a residual differ between machines; nbval would then fail on a correct notebook."""
    for value in (3.1e-15, 8.8e-16):
        text, meta = entered(ledger.check, "residual", value, at_most=1e-10)
        assert text == "✔ residual: at most 1e-10"
        assert meta["check"]["value"] == value
    assert ledger.rounded(3e-15) == "under 1e-10"
    assert entered(ledger.check, "ratio", 0.25, at_most=1)[0] == "✔ ratio: 0.25 (at most 1)"


@pytest.mark.parametrize("value", [1.01, math.nan, math.inf])
def test_a_check_that_fails_stops_the_notebook(value):
    with pytest.raises(AssertionError, match="at most 1"):
        ledger.check("ratio", value, at_most=1.0)


def test_unknown_claims_and_non_numbers_are_refused():
    with pytest.raises(ValueError, match="theorem-values"):
        ledger.record("no-such-claim", 1.0, holds=True, criterion="c")
    with pytest.raises(ValueError, match="finite"):
        ledger.record("corners", math.nan, holds=True, criterion="c")


def test_summary_lists_every_claim_and_joins_parts():
    parts = [
        {"claim": "control-faster", "verdict": "holds"},
        {"claim": "control-faster", "verdict": "does not hold"},
        {"claim": "corners", "verdict": "holds"},
    ]
    verdicts = {row["id"]: row["verdict"] for row in ledger.summary(parts)}
    assert len(verdicts) == len(ledger.claims())
    assert verdicts["control-faster"] == "holds partly"
    assert verdicts["corners"] == "holds"
    assert verdicts["sr-collapse"] == "untested"


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_no_notebook_types_its_verdict(lesson):
    """`holds=True` would be an opinion; it must be a comparison of something measured."""
    for call in record_calls(lesson.notebook):
        verdicts = [word.value for word in call.keywords if word.arg in ("holds", "partly")]
        assert verdicts
        for verdict in verdicts:
            assert any(isinstance(node, (ast.Compare, ast.Call)) for node in ast.walk(verdict))


def test_a_typed_verdict_would_be_noticed():
    planted = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("ledger.record('corners', 1, holds=True)")])
    (call,) = record_calls(planted)
    assert not any(isinstance(node, (ast.Compare, ast.Call)) for node in ast.walk(call.keywords[0].value))


def record_calls(notebook):
    """All calls of ledger.record in a notebook, as syntax trees."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "ledger.record":
                    yield node


def test_numbers_just_below_a_thousand_are_not_powers_of_ten():
    assert [ledger.rounded(value) for value in (999.4, 999.7, -999.9, 1000.0)] == ["999", "1,000", "-1,000", "1,000"]


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_only_finite_numbers_are_results(value):
    with pytest.raises(ValueError, match="finite number"):
        ledger.result("a time", value)
    with pytest.raises(ValueError, match="finite number"):
        ledger.record("sr-value", 1.0, holds=True, criterion="", spread=(0.0, value))


def test_a_verdict_says_where_it_was_measured_unless_that_is_the_papers_own_map(monkeypatch, capsys):
    monkeypatch.setattr(ledger, "_elsewhere", "")
    for world, place in (
        (GridWorld.named("four_rooms"), ""),
        (GridWorld.named("nine_rooms"), "in nine_rooms, not in the paper's four_rooms"),
        (GridWorld.named("four_rooms", slip=0.1), "in four_rooms, not in the paper's four_rooms"),
        (GridWorld.from_text("..."), "in a map of your own, not in the paper's four_rooms"),
        (GridWorld.from_text(GridWorld.named("four_rooms").text), ""),
    ):
        ledger.measured_in(world, "four_rooms")
        assert capsys.readouterr().out.startswith(f"This run is {place}: " if place else "\n") == bool(place)
        for part in ("", "mean"):
            text, meta = entered(ledger.record, "corners", 1.0, holds=True, criterion="c", part=part)
            assert meta["record"]["part"] == ", ".join(filter(None, (part, place)))
            assert (f"({meta['record']['part']})" in text) == bool(part or place)
