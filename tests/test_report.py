"""The report: complete, honest about failures, offline, and readable on a laptop and on a phone."""

import html
import re
import subprocess
import sys

import nbformat
import pytest

from eigenlib import ledger, report
from eigenlib.notebooks import Lesson, lessons

WIDTHS = {"laptop": 1280, "phone": 390}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole report, as `make report` writes it."""
    out = tmp_path_factory.mktemp("site") / "report"
    done = subprocess.run(
        [sys.executable, "-m", "eigenlib", "report", "--out", str(out)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def pages(site):
    return sorted(path.name for path in site[0].glob("*.html"))


pytestmark = [pytest.mark.notebook, pytest.mark.xdist_group("report")]


def test_it_tells_a_line_per_notebook_a_summary_and_where_it_is(site):
    out, text = site
    for lesson in lessons():
        assert re.search(rf"^{lesson.name}\s+[\d.]+ s  ok$", text, flags=re.MULTILINE)
    assert f"{len(lessons())} of {len(lessons())} notebooks ran" in text
    assert text.strip().endswith(str(out / "index.html"))


def test_every_lesson_and_the_claims_have_a_page(site):
    assert pages(site) == sorted(["index.html", "claims.html", *(f"{lesson.name}.html" for lesson in lessons())])


def test_the_claims_page_shows_all_claims_and_the_measured_values(site):
    text = (site[0] / "claims.html").read_text()
    for claim in ledger.claims():
        assert f'id="{claim}"' in text
    assert text.count("untested</span></td>") == sum(
        row["verdict"] == "untested"
        for row in ledger.summary([e for lesson in lessons() for e in ledger.collect(lesson.notebook)["record"]])
    )
    for entry in ledger.collect(Lesson(lessons()[1].path).notebook)["record"]:
        assert ledger.measured(entry) in html.unescape(text)


def test_nothing_in_the_pages_points_outside(site):
    """No src, href or import may need a network; links that a reader may follow are none at present."""
    for page in pages(site):
        text = re.sub(r"data:[a-z/+]+;base64,[A-Za-z0-9+/=]+", "", (site[0] / page).read_text())
        assert re.findall(r"(?:src|href)=[\"'](?:https?:)?//", text) == []


def test_a_failing_notebook_is_marked_and_the_others_still_appear(tmp_path, monkeypatch, capsys):
    good, bad = tmp_path / "90_good.ipynb", tmp_path / "91_bad.ipynb"
    for path, last in ((good, "1 + 1"), (bad, "raise ValueError('planted <b>')")):
        code = [nbformat.v4.new_code_cell(source) for source in ("TIER = 'quick'", last)]
        cells = [nbformat.v4.new_markdown_cell(f"# {path.stem}"), *code]
        cells[1].metadata["tags"] = ["parameters"]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    monkeypatch.setattr(report, "lessons", lambda: [Lesson(good), Lesson(bad)])
    assert report.write_report([Lesson(good), Lesson(bad)], tmp_path / "out", {}, jobs=2) == 1
    told = capsys.readouterr()
    assert "failed: 91_bad, cell [2]: ValueError: planted <b>" in told.err
    assert "1 of 2 notebooks ran" in told.out
    page = (tmp_path / "out" / "91_bad.html").read_text()
    assert "stopped before its end" in page
    assert "planted &lt;b&gt;" in page
    assert "stopped before its end" not in (tmp_path / "out" / "90_good.html").read_text()
    assert 'class="failed"' in (tmp_path / "out" / "index.html").read_text()


# --- in a real browser --------------------------------------------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
def test_pages_in_chromium(site, browser, width):
    """Mathematics typeset, every figure with alt text and really shown, no request, no console error, no sideways scroll."""
    for page in pages(site):
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
        tab, requests, errors = context.new_page(), [], []
        tab.on("request", lambda request, log=requests: log.append(request.url))
        tab.on("console", lambda message, log=errors: log.append(message.text) if message.type == "error" else None)
        tab.on("pageerror", lambda error, log=errors: log.append(str(error)))
        tab.goto((site[0] / page).as_uri())
        tab.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
        tab.evaluate("MathJax.startup.promise")
        assert [url for url in requests if not url.startswith(("file:", "data:", "blob:null/"))] == []
        assert errors == []
        images = tab.evaluate("[...document.images].map(i => [i.alt, i.naturalWidth])")
        assert all(len(alt.split()) >= 4 and pixels > 0 for alt, pixels in images), page
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, f"{page} is wider than the screen"
        sources = tab.evaluate("[...document.querySelectorAll('.text_cell_render')].map(e => e.innerText).join(' ')")
        assert "$" not in sources, f"{page} shows raw mathematics"
        assert tab.evaluate("document.querySelectorAll('mjx-merror, [data-mjx-error]').length") == 0
        if page.startswith(("01", "02")):
            assert tab.evaluate("document.querySelectorAll('mjx-container svg').length") > 5
        context.close()
