"""The README's computed parts: as the stored notebooks say, written by one command, the rest left alone."""

import io
import json

import pytest
from PIL import Image

from eigencourse import ledger, readme
from eigencourse.cli import main
from eigencourse.lessons import NotebookProblem, Outcome, lessons


def test_the_readme_is_up_to_date():
    assert [str(path) for path in readme.stale()] == [], "run: .venv/bin/eigenlib readme"


def test_it_names_every_lesson_and_claim():
    text = readme.wanted()[readme.README].decode()
    for lesson in lessons():
        assert f"](notebooks/{lesson.path.name})" in text
    for claim in ledger.claims().values():
        assert claim.where in text


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The README and its pictures in a folder of their own."""
    monkeypatch.setattr(readme, "README", tmp_path / "README.md")
    monkeypatch.setattr(readme, "ARC", tmp_path / "arc.png")
    monkeypatch.setattr(readme, "GALLERY", tmp_path / "gallery")
    monkeypatch.setattr("eigenlib.paths.ROOT", tmp_path)
    marks = "".join(f"<!-- {name} -->old<!-- /{name} -->\n" for name in ("arc", "gallery", "course", "claims"))
    (tmp_path / "README.md").write_text(f"before\n{marks}after\n")
    return tmp_path


def test_one_command_writes_what_is_stale_and_nothing_else(copy, capsys):
    (copy / "gallery").mkdir()
    (copy / "gallery" / "77_gone.png").write_bytes(b"old")
    assert main(["readme", "--check"]) == 1
    assert "Out of date: README.md" in capsys.readouterr().out
    assert main(["readme"]) == 0
    text = (copy / "README.md").read_text()
    assert text.startswith("before\n<!-- arc -->\n![Five panels")
    assert text.endswith("<!-- /claims -->\nafter\n")
    assert "old" not in text.split("\n")
    assert sorted(path.stem for path in (copy / "gallery").iterdir()) == [one.name for one in lessons()[1:]]
    assert main(["readme", "--check"]) == 0
    # the same picture in other bytes, as another zlib writes it, is not out of date; other pixels are
    picture = copy / "gallery" / f"{lessons()[1].name}.png"
    Image.open(picture).save(picture, "PNG", compress_level=0)
    assert main(["readme", "--check"]) == 0
    image = Image.open(io.BytesIO(picture.read_bytes())).convert("RGB")
    image.putpixel((3, 3), (1, 2, 3))
    image.save(picture, "PNG")
    assert readme.stale() == [picture]


def test_pictures_are_small():
    for path, content in readme.wanted().items():
        if path.parent == readme.GALLERY:
            assert len(content) < 200_000, path.name


@pytest.mark.parametrize("text", ["", "<!-- a -->", "<!-- /a --> <!-- a -->", "<!-- a --><!-- a --><!-- /a -->"])
def test_a_readme_without_its_marks_is_refused(text):
    with pytest.raises(NotebookProblem, match="put them back"):
        readme.replaced(text, "a", "new")


def test_nothing_breaks_out_of_a_cell():
    assert readme._cell("a | b\n<script>") == "a \\| b &lt;script&gt;"


@pytest.fixture
def minutes(tmp_path, monkeypatch):
    """A file of minutes in a folder of its own, and a machine of two cores."""
    monkeypatch.setattr(readme, "MINUTES", tmp_path / "docs" / "minutes.json")
    monkeypatch.setattr("eigencourse.lessons.PROGRESS", tmp_path / "progress" / "stored.json")
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    return readme.MINUTES


def test_minutes_stay_until_a_run_is_really_different(minutes, monkeypatch):
    one, two, three = (lesson.name for lesson in lessons()[1:4])
    minutes.parent.mkdir()
    old = {one: {"minutes": 0, "cores": 2}, two: {"minutes": 2, "cores": 2}}
    minutes.write_text(json.dumps({**old, "77_gone": {"minutes": 1, "cores": 2}}))
    readme.note_minutes(one, 44.0)
    readme.note_minutes(two, 95.0)
    assert readme.stored_minutes() == old  # a lesson that is no more is dropped
    for name, seconds in ((one, 50.0), (two, 200.0), (three, 20.0)):
        readme.note_minutes(name, seconds)
    assert [readme.stored_minutes()[name]["minutes"] for name in (one, two, three)] == [1, 3, 0]
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    readme.note_minutes(two, 170.0)
    assert readme.stored_minutes()[two] == {"minutes": 3, "cores": 8}
    words = [readme.minutes_in_words(number) for number in (0, 1, 4)]
    assert words == ["under a minute", "about a minute", "about 4 minutes"]


@pytest.mark.parametrize(("load", "noted"), [(0.4, True), (7.0, False)])
def test_a_refresh_notes_minutes_unless_the_machine_is_busy(minutes, monkeypatch, load, noted):
    one = lessons()[1]
    monkeypatch.setattr("os.getloadavg", lambda: (load, load, load), raising=False)
    monkeypatch.setattr("eigencourse.lessons.refresh", lambda lesson: Outcome(lesson.name, lesson.path, 125.0, None))
    assert main(["notebooks", "--only", one.number]) == 0
    assert readme.stored_minutes() == ({one.name: {"minutes": 2, "cores": 2}} if noted else {})
