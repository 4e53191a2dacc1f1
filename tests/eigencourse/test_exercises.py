"""The checks: right answers pass however they are written, each classic mistake is told from the others, blanks stay calm."""

import importlib
import inspect
import json

import numpy as np
import pytest
from shared import every

from eigencourse.exercises import all_exercises, check, collect, exercise
from eigencourse.exercises.answers import GENERAL, Mistake, array, call, scalar
from eigencourse.exercises.worlds import worlds
from eigencourse.grading import wire
from eigenlib.gridworld import GridWorld

EXERCISES = {one.name: one for one in all_exercises()}
ANSWERS = {
    number: importlib.import_module(f"answers.lesson{number}") for number in {e.lesson for e in EXERCISES.values()}
}
RIGHT = [(e, answer) for e in EXERCISES.values() for answer in ANSWERS[e.lesson].RIGHT[e.name]]
WRONG = [(e, *pair) for e in EXERCISES.values() for pair in ANSWERS[e.lesson].WRONG[e.name]]
# An exercise can be read from its arguments: does the learner hand over a function?
FUNCTIONS = [e for e in EXERCISES.values() if callable(ANSWERS[e.lesson].RIGHT[e.name][0])]


def numbered(cases):
    """Cases by the exercise they begin with: {"01.1, answer 0": (exercise, …)}."""
    return {f"{case[0].number}, case {k}": case for k, case in enumerate(cases)}


def test_right_answers_pass():
    def passes(one, answer):
        feedback = one.judge(answer)
        assert feedback.state == "passed", feedback.text
        assert feedback.text.endswith(".")

    every(numbered(RIGHT), passes)


def test_wrong_answers_are_told_what_is_wrong():
    def is_told(one, answer, mistake):
        feedback = one.judge(answer)
        assert (feedback.state, feedback.mistake) == ("wrong", mistake), feedback.text
        assert "{" not in feedback.text

    every(numbered(WRONG), is_told)


def test_each_check_is_tested_enough():
    """Two right answers, three wrong ones with messages of their own, and every mistake it claims to know."""

    def is_tested(one):
        answers = ANSWERS[one.lesson]
        assert len(answers.RIGHT[one.name]) >= 2
        told = {one.judge(answer).text for answer, _ in answers.WRONG[one.name]}
        named = {mistake for _, mistake in answers.WRONG[one.name]}
        assert len(told) >= 3
        assert len(set(one.mistakes.values())) == len(one.mistakes)
        assert set(one.mistakes) <= named <= set(one.mistakes) | set(GENERAL)
        assert 1 <= one.difficulty <= 3
        assert one.title

    every(numbered((one,) for one in EXERCISES.values()), is_tested)


def is_blank(one, answer):
    assert one.judge(answer).state == "blank"


def test_a_blank_is_not_attempted_yet():
    blanks = (None, ..., [None, ...], {"a": None}, [[None], [...]])
    every({f"{one.number}, {blank}": (one, blank) for one in EXERCISES.values() for blank in blanks}, is_blank)


def unfinished(*arguments):
    raise NotImplementedError


def test_a_function_that_does_nothing_is_not_attempted_yet():
    stubs = {"None": lambda *_: None, "...": lambda *_: ..., "raises": unfinished}
    every({f"{one.number}, {kind}": (one, stub) for one in FUNCTIONS for kind, stub in stubs.items()}, is_blank)


ODD = [
    "nonsense",
    b"bytes",
    object(),
    np.array([]),
    [[1, 2], [3]],
    {},
    {"a": 1},
    True,
    1j,
    np.nan,
    lambda: 1,
    int,
    GridWorld,
]


def test_no_answer_stops_a_notebook():
    """Nor does one that is not even of the right kind pass."""

    def is_wrong(one):
        for odd in ODD:
            for answer in (odd, lambda *_, odd=odd: odd):
                feedback = one.judge(answer)
                assert feedback.state == "wrong", answer
                assert feedback.text

    every(numbered((one,) for one in EXERCISES.values()), is_wrong)


def test_a_family_reports_all_its_failures_at_once():
    def is_even(number):
        assert number % 2 == 0

    every({"a": (2,), "b": (4,)}, is_even)
    with pytest.raises(AssertionError, match=r"2 of 3 do not hold:\na: AssertionError: .*\nc: TypeError: "):
        every({"a": (1,), "b": (2,), "c": ("x", 1)}, is_even)
    with pytest.raises(AssertionError, match="nothing to test"):
        every({}, is_even)


def test_messages_do_not_change_from_run_to_run():
    """nbval compares them."""
    for one, answer, _ in WRONG:
        assert one.judge(answer) == one.judge(answer)


def test_a_flipped_sign_passes_and_is_explained():
    smooth = EXERCISES["smooth"]
    flipped = {smooth.judge(answer).text for answer in ANSWERS["02"].RIGHT["smooth"]}
    assert any("sign flipped, which is equally valid" in text for text in flipped)


def test_an_exception_is_shown_with_what_the_function_was_given():
    def broken(T, gamma):
        return T[0] @ gamma.missing

    text = EXERCISES["successor"].judge(broken).text
    assert "AttributeError" in text
    assert "an array of shape (" in text
    assert "Traceback" not in text


def test_a_function_cannot_change_what_the_check_goes_on_to_use():
    """A learner who writes into an argument still gets a fair hearing."""

    def greedy(T, gamma):
        psi = np.linalg.inv(np.eye(len(T)) - gamma * T)
        T[:] = 0
        return psi

    assert EXERCISES["successor"].judge(greedy).state == "passed"


# --- the machinery ------------------------------------------------------------------------------------------------------


def shown(monkeypatch, answer):
    """What `check.first_light(answer)` displays."""
    seen = []
    monkeypatch.setattr("eigencourse.exercises.display", lambda data, metadata, raw: seen.append((data, metadata)))
    assert check.first_light(answer) is None
    ((data, metadata),) = seen
    return data, metadata["eigenlib"]["exercise"]


@pytest.mark.parametrize(
    ("answer", "line", "state"),
    [
        (10, "✔ Exercise 01.1 passed: ", "passed"),
        (2, "✘ Exercise 01.1, not yet: that is the way through the wall", "wrong"),
        (None, "· Exercise 01.1: not attempted yet.", "blank"),
    ],
)
def test_a_check_shows_one_line_and_keeps_a_record(monkeypatch, answer, line, state):
    data, record = shown(monkeypatch, answer)
    assert data["text/plain"].startswith(line)
    assert "\n" not in data["text/plain"]
    assert f'class="ledger exercise {state}"' in data["text/html"]
    assert record["state"] == state
    assert record["number"] == "01.1"


def test_what_a_learner_wrote_cannot_break_the_page(monkeypatch):
    data, _ = shown(monkeypatch, "<script>alert(1)</script>")
    assert "<script>" not in data["text/html"]


def test_check_lists_its_names_and_refuses_others():
    assert "td_update" in dir(check)
    with pytest.raises(AttributeError, match="td_update"):
        check.td_updat  # noqa: B018


def test_two_exercises_cannot_share_a_name_or_a_number(monkeypatch):
    words = {"number": "99.1", "difficulty": 1, "minutes": 1, "mistakes": {}}
    monkeypatch.setattr("eigencourse.exercises._words", lambda module: {"drift": words})
    with pytest.raises(ValueError, match="clashes"):
        exercise(EXERCISES["drift"].function)


def test_collect_finds_records_only():
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    record = {"number": "01.1", "state": "passed"}
    outputs = [
        new_output("display_data", metadata={"eigenlib": content}) for content in ({"check": {}}, {"exercise": record})
    ]
    assert collect(new_notebook(cells=[new_code_cell("", outputs=outputs)])) == [record]


def test_random_worlds_are_the_same_each_time_and_differ_from_each_other():
    texts = [world.text for world in worlds(6, seed=4)]
    assert texts == [world.text for world in worlds(6, seed=4)]
    assert len(set(texts)) == 6
    assert texts != [world.text for world in worlds(6, seed=5)]


def test_reading_answers():
    assert array([[1, 2]], (1, 2)).dtype == float
    assert array(np.array([1 + 0j])).tolist() == [1.0]
    assert scalar(np.array([[2]])) == 2
    for bad, mistake in (("x", "not numbers"), ([1j], "complex"), ([np.inf], "not finite"), ([None, 1], "not numbers")):
        with pytest.raises(Mistake, match=mistake):
            array(bad)
    with pytest.raises(Mistake, match="not a function"):
        call(np.eye(2), 1)


# --- what passes between processes --------------------------------------------------------------------------------------

PLAIN = [None, ..., True, 3, -0.5, np.inf, "Ψ", [1, "a"], (1, (2,)), {"a": 1, 2: None}, 1 + 2j, {1, 2}]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_data_survives_the_wire(value):
    assert wire.decode(json.loads(json.dumps(wire.encode(value)))) == value


@pytest.mark.parametrize("dtype", [float, np.float32, int, bool, complex, "<U3", ">f8"])
def test_arrays_survive_the_wire(dtype):
    value = np.arange(12).reshape(3, 4).T.astype(dtype)
    back = wire.decode(json.loads(json.dumps(wire.encode(value))))
    assert back.dtype == value.dtype
    assert np.array_equal(back, value)


def test_a_world_survives_the_wire():
    world = GridWorld.named("dayan", slip=0.2)
    back = wire.decode(wire.encode(world))
    assert np.array_equal(back.transition_matrix(), world.transition_matrix())


def test_what_is_not_plain_is_no_answer():
    assert "object" in str(wire.decode(wire.encode(object())))
    assert "ndarray" in str(wire.decode(wire.encode(np.array([object()]))))


@pytest.mark.parametrize("dtype", ["O", "V8", "M8[s]"])
def test_nothing_but_numbers_and_text_is_read_from_outside(dtype):
    with pytest.raises((ValueError, TypeError)):
        wire.decode({"array": [dtype, [1], "AAAAAAAAAAA="]})


def test_a_claimed_shape_allocates_nothing():
    with pytest.raises(ValueError, match="reshape"):
        wire.decode({"array": ["<f8", [10**12], "AAAAAAAAAAA="]})


def test_no_pickle_anywhere():
    assert "import pickle" not in inspect.getsource(wire)
