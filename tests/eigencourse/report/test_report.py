"""The report: complete, honest about failures, offline, and readable by everybody on a laptop, a phone and in the dark."""

import contextlib
import html
import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from axe import objections
from shared import executed, once

from eigencourse import ledger, report
from eigencourse.exercises import all_exercises
from eigencourse.lessons import Lesson, Outcome, lessons
from eigencourse.report import lesson_page, pages
from eigencourse.report.figures import best_figure

pytestmark = pytest.mark.notebook
SCREENS = {"laptop, light": (1280, "light"), "phone, dark": (390, "dark")}


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The whole report as `make report` writes it, from the runs that test_notebooks.py makes anyway; once for all workers."""

    def make(folder):
        def run_many(chosen, into, parameters, jobs, tell):
            outcomes = []
            for lesson in chosen:
                outcome = executed(tmp_path_factory, lesson)
                outcomes.append(replace(outcome, output=Path(shutil.copy(outcome.output, into))))
                tell(outcomes[-1])
            return outcomes

        told = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(told):
            patch.setattr(report, "run_many", run_many)
            assert report.write_report(lessons(), folder / "report", {}, jobs=1) == 0
        (folder / "told.txt").write_text(told.getvalue())

    return once(tmp_path_factory, "site", make) / "report"


@pytest.fixture(scope="module")
def names(site):
    return sorted(path.name for path in site.glob("*.html"))


def as_run(site, lesson):
    """A lesson as it was executed for the report."""
    return Lesson(site / "notebooks" / lesson.path.name).notebook


def notebook(path, *sources, outputs=None):
    """A small notebook whose last cell may hold outputs; a source that starts with '#' and a space is Markdown."""
    cells = [
        nbformat.v4.new_markdown_cell(source) if source.startswith("# ") else nbformat.v4.new_code_cell(source)
        for source in sources
    ]
    cells[-1].update(outputs=outputs) if outputs else None
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return Lesson(path)


def rendered(folder, *given):
    """A site from notebooks taken as executed already."""
    (folder / "notebooks").mkdir(parents=True)
    outcomes = [
        Outcome(one.name, Path(shutil.copy(one.path, folder / "notebooks")), 200.0 * position, None)
        for position, one in enumerate(given)
    ]
    pages.render(folder, list(given), outcomes, {})
    return folder


# --- what is written ----------------------------------------------------------------------------------------------------


def test_it_tells_a_line_per_notebook_a_summary_and_where_it_is(site):
    text = (site.parent / "told.txt").read_text()
    for lesson in lessons():
        assert re.search(rf"^{lesson.name}\s+[\d.]+ s  ok$", text, flags=re.MULTILINE)
    assert f"{len(lessons())} of {len(lessons())} notebooks ran" in text
    assert text.strip().endswith("report/index.html")


def test_every_lesson_and_the_claims_have_a_page_and_the_notebook_as_it_ran(site, names):
    assert names == sorted(["index.html", "claims.html", *(f"{lesson.name}.html" for lesson in lessons())])
    for lesson in lessons():
        assert f'href="notebooks/{lesson.path.name}"' in (site / f"{lesson.name}.html").read_text()
        assert (site / "notebooks" / lesson.path.name).exists()


def test_the_landing_page_has_a_card_per_lesson_with_figure_and_minutes(site):
    text = (site / "index.html").read_text()
    assert 'src="figures/arc.png"' in text
    for lesson in lessons():
        (card,) = re.findall(rf'<li class="whole">(?:(?!</li>).)*{lesson.name}\.html.*?</li>', text, flags=re.DOTALL)
        assert re.search(r"ran in \d+ (s|min)", card)
        minutes = sum(one.minutes for one in all_exercises(lesson.number))
        assert (f"exercises, {minutes} min" in card) == bool(minutes)
        figure = best_figure(as_run(site, lesson))
        assert f'src="figures/{lesson.name}.png" alt="{html.escape(figure.alt)}"' in card.replace("&#39;", "&#x27;")


def test_the_claims_page_shows_all_claims_and_the_measured_values(site):
    text = (site / "claims.html").read_text()
    for claim in ledger.claims():
        assert f'id="{claim}"' in text
    assert text.count("untested</span></td>") == sum(
        row["verdict"] == "untested"
        for row in ledger.summary([e for lesson in lessons() for e in ledger.collect(as_run(site, lesson))["record"]])
    )
    for entry in ledger.collect(as_run(site, lessons()[1]))["record"]:
        assert ledger.measured(entry) in html.unescape(text)
        assert entry["part"] in html.unescape(text)  # which says that this was measured elsewhere than in the paper


def anchors(text):
    return set(map(html.unescape, re.findall(r'\sid="([^"]+)"', text)))


def test_nothing_in_the_pages_points_outside_or_to_what_is_not_there(site, names):
    """No src, href or import may need a network, and every link within the site has its end."""
    texts = {name: re.sub(r"data:[a-z/+]+;base64,[A-Za-z0-9+/=]+", "", (site / name).read_text()) for name in names}
    ids = {name: anchors(text) for name, text in texts.items()}
    for name, text in texts.items():
        assert re.findall(r"(?:src|href)=[\"'](?:https?:)?//", text) == []
        for link in map(html.unescape, re.findall(r'\s(?:src|href)="([^"]+)"', text)):
            if not link.startswith("data:"):
                file, _, anchor = link.partition("#")
                assert not file or (site / file).exists(), f"{name} links to {link}"
                assert not anchor or anchor in ids[file or name], f"{name} links to {link}"


def test_every_entry_of_the_search_has_its_place_and_no_tex(site, names):
    script = (site / "assets" / "search-index.js").read_text()
    entries = json.loads(script.removeprefix("window.searchIndex = ").rstrip().removesuffix(";"))
    assert {entry["url"].split("#")[0] for entry in entries} == set(names) - {"index.html"}
    ids = {name: anchors((site / name).read_text()) for name in names}
    for entry in entries:
        file, _, anchor = entry["url"].partition("#")
        assert not anchor or anchor in ids[file]
        assert entry["heading"]
        assert "$" not in entry["heading"] + entry["text"]
    assert {"claims.html#" + claim for claim in ledger.claims()} <= {entry["url"] for entry in entries}


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


def test_headings_get_ids_of_their_own_and_words_lose_their_tex(tmp_path):
    source = "# A\n\nFirst $\\Psi$.\n\n## Twice\n\nOne $\\gamma^{2}$ & <b>two</b>.\n\n$$x_1$$\n\n## Twice\n\nThree."
    page = lesson_page.lesson_page(notebook(tmp_path / "90_a.ipynb", source).notebook)
    assert [(one.level, one.id, one.text) for one in page.headings] == [
        (2, "Twice", "Twice"),
        (2, "Twice-again", "Twice"),
    ]
    assert [(one.id, one.heading, one.text) for one in page.sections] == [
        ("", "A", "First Ψ."),
        ("Twice", "Twice", "One γ^2 & two."),
        ("Twice-again", "Twice", "Three."),
    ]


def test_the_figure_of_a_lesson_is_the_tagged_one_else_the_largest():
    from PIL import Image

    def cell(size, alt, **metadata):
        file = io.BytesIO()
        Image.new("RGB", size).save(file, "PNG")
        picture = nbformat.v4.new_output("display_data", data={"image/png": nbformat_bytes(file.getvalue())})
        picture.metadata = nbformat.from_dict({"image/png": {"alt": alt}, **metadata})
        return nbformat.v4.new_code_cell("", outputs=[picture])

    def nbformat_bytes(data):
        import base64

        return base64.b64encode(data).decode()

    cells = [cell((4, 4), "first"), cell((40, 40), "large"), cell((90, 90), "explorer", eigenlib={"explorer": "γ 1"})]
    assert best_figure(nbformat.v4.new_notebook(cells=cells)).alt == "large"
    cells[0].metadata["tags"] = ["figure"]
    assert best_figure(nbformat.v4.new_notebook(cells=cells)).alt == "first"
    assert best_figure(nbformat.v4.new_notebook(cells=cells[2:])).alt == "explorer"
    assert best_figure(nbformat.v4.new_notebook()) is None


# --- in a real browser --------------------------------------------------------------------------------------------------


# axe looks at every element: of the same code colours and formulas over and over again, one of each is enough.
def opened(browser, path, width=1280, scheme="light", **options):
    """A page, offline, with what it asked for and complained about; mathematics typeset."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, **options
    )
    tab, requests, errors = context.new_page(), [], []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(path.as_uri())
    tab.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
    tab.evaluate("MathJax.startup.promise")
    return tab, requests, errors


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), SCREENS.values(), ids=SCREENS.keys())
def test_pages_in_chromium(site, names, browser, width, scheme):
    """Mathematics typeset, figures shown with alt text, no request, no error, no sideways scroll, nothing axe objects to."""
    for page in names:
        tab, requests, errors = opened(browser, site / page, width, scheme)
        assert [url for url in requests if not url.startswith(("file:", "data:", "blob:null/"))] == []
        assert errors == []
        images = tab.evaluate("[...document.images].map(i => [i.alt, i.naturalWidth])")
        assert all(len(alt.split()) >= 4 and pixels > 0 for alt, pixels in images), page
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, f"{page} is wider than the screen"
        sources = tab.evaluate(
            "[...document.querySelectorAll('.text_cell_render, .toc')].map(e => e.innerText).join(' ')"
        )
        assert "$" not in sources, f"{page} shows raw mathematics"
        assert tab.evaluate("document.querySelectorAll('mjx-merror, [data-mjx-error]').length") == 0
        if page.startswith(("01", "02")):
            assert tab.evaluate("document.querySelectorAll('mjx-container svg').length") > 5
        if page[0].isdigit():
            assert tab.evaluate("document.querySelector('.toc').open") == (width > 1100)
        assert objections(tab) == [], f"{page}, {scheme}"
        tab.context.close()


@pytest.fixture
def small(tmp_path):
    """Two lessons with everything that needs a browser to be seen, and nothing that takes long to draw."""
    words = (
        "# Mazes & <rooms>\n\nWhere $\\Psi$ glows.\n\n## A door\n\nThe <b>door</b> is narrow.\n\n## Far away\n\n"
        + "Dust.\n\n" * 60
    )
    first = notebook(tmp_path / "90_mazes.ipynb", words, "print('a < b')\nx = 1")
    second = notebook(
        tmp_path / "91_doors.ipynb",
        "# Doors\n\nA door is a door.\n\n## Hinges\n\nOil them &lt;script&gt;alert(1)&lt;/script&gt;.",
    )
    return rendered(tmp_path / "out", first, second)


@pytest.mark.browser
def test_axe_would_object(small, browser):
    """The examination itself works: a page made worse is noticed."""
    tab, *_ = opened(browser, small / "91_doors.html")
    assert objections(tab) == []
    tab.evaluate("document.querySelector('article p').style.color = '#ccc'")
    assert [name for name, *_ in objections(tab)] == ["color-contrast"]


@pytest.mark.browser
def test_search_by_keyboard_is_ranked_escaped_and_leads_there(small, browser):
    tab, _, errors = opened(browser, small / "index.html")
    tab.keyboard.press("/")
    tab.keyboard.type("door")
    options = tab.locator("#found [role=option]")
    assert options.count() == 3
    # the whole word in a heading, then its beginning, then a section whose lesson has it
    assert [option.locator(".heading").inner_text() for option in options.all()] == ["A door", "Doors", "Hinges"]
    assert tab.locator("#search").get_attribute("aria-activedescendant") == "found-0"
    assert objections(tab) == []
    for key, heading in (("ArrowDown", "Doors"), ("ArrowUp", "A door"), ("ArrowUp", "Hinges"), ("ArrowDown", "A door")):
        tab.keyboard.press(key)
        assert tab.locator("#found [aria-selected=true] .heading").inner_text() == heading
    assert tab.locator("#found [aria-selected=true] .place").inner_text() == "90 Mazes & <rooms>"
    assert "The door is narrow." in tab.locator("#found [aria-selected=true] .snippet").inner_text()
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/90_mazes.html#A-door")
    tab.wait_for_function("document.querySelector('.copy')")  # site.js has run, search.js follows
    tab.wait_for_load_state()
    tab.keyboard.press("/")
    tab.keyboard.type("script oil")  # both words, in any order
    assert "<script>alert(1)</script>" in tab.locator("#found").inner_text()
    assert tab.locator("#found mark").all_inner_texts() == ["Oil", "script", "script"]
    tab.keyboard.press("Escape")
    assert tab.locator("#found").is_hidden()
    tab.keyboard.press("/")
    tab.keyboard.type("zebra")
    assert "Nothing found" in tab.locator("#found").inner_text()
    assert errors == []


@pytest.mark.browser
def test_dark_follows_the_system_until_the_reader_chooses_and_is_remembered(small, browser):
    def ground(tab):
        return tab.evaluate("getComputedStyle(document.body).backgroundColor")

    tab, _, errors = opened(browser, small / "index.html", scheme="dark")
    night = ground(tab)
    assert night != "rgb(255, 255, 255)"
    toggle = tab.locator("#theme")
    assert toggle.get_attribute("aria-pressed") == "true"
    toggle.press("Enter")
    assert ground(tab) == "rgb(255, 255, 255)"
    tab.goto((small / "claims.html").as_uri())
    assert ground(tab) == "rgb(255, 255, 255)"
    tab.emulate_media(color_scheme="light")
    tab.locator("#theme").press("Enter")
    assert ground(tab) == night
    tab.emulate_media(media="print")
    assert ground(tab) == "rgb(255, 255, 255)"  # paper is white
    assert errors == []


@pytest.mark.browser
def test_where_nothing_can_be_remembered_the_toggle_still_works(small, browser):
    context = browser.new_context()
    context.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })")
    tab, errors = context.new_page(), []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto((small / "index.html").as_uri())
    tab.locator("#theme").click()
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
    assert errors == []


@pytest.mark.browser
def test_a_lesson_by_keyboard(small, browser):
    """Skip link, contents, copying, previous and next: reached by Tab alone, and the focus can be seen."""
    tab, _, errors = opened(browser, small / "90_mazes.html")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"
    reached = []
    for _ in range(20):
        tab.keyboard.press("Tab")
        reached.append(tab.evaluate("document.activeElement.innerText") or "")
        if reached[-1].startswith("Copy"):
            assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            tab.keyboard.press("Enter")
            tab.wait_for_function("document.activeElement.innerText === 'Copied'")
    assert {"A door", "Far away", "Copy", "Doors →"} <= set(reached)
    tab.locator(".toc a", has_text="Far away").press("Enter")
    tab.wait_for_function("document.querySelector('.toc [aria-current]')?.innerText === 'Far away'")
    assert errors == []


@pytest.mark.browser
@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_claims_can_be_filtered_also_without_javascript(small, browser, script):
    context = browser.new_context(java_script_enabled=script)
    tab = context.new_page()
    tab.goto((small / "claims.html").as_uri())
    rows, untested = tab.locator(".claims tbody tr"), tab.locator(".claims tbody tr.untested")
    assert rows.count() == untested.count() > 0  # these two lessons test nothing
    tab.locator("#only-holds").check(force=True)
    assert [row.is_visible() for row in rows.all()] == [False] * rows.count()
    tab.locator("#only-untested").check(force=True)
    assert all(row.is_visible() for row in untested.all())
    if script:
        tab.goto((small / "index.html").as_uri())
        tab.locator("a.verdict.holds").click()
        tab.wait_for_function("document.getElementById('only-holds')?.checked")
    else:
        assert not tab.locator("#search").is_visible()  # what would not work is not shown


@pytest.mark.browser
def test_anywidgets_live_on_and_obey_the_keyboard(site, browser):
    living = [path for path in site.glob("[0-9]*.html") if 'class="anywidget"' in path.read_text()]
    assert living, "no lesson has an anywidget any more: this test and site.js can go"
    for path in living:
        tab, _, errors = opened(browser, path)
        tab.wait_for_selector(".anywidget canvas")
        focusable = tab.locator(".anywidget :is(button, input, select, canvas[tabindex])")
        assert focusable.count() > 0
        tab.evaluate("""() => {
            window.pixels = () => [...document.querySelectorAll('.anywidget canvas')].map(c => c.toDataURL()).join();
            window.before = window.pixels();
        }""")
        for control in focusable.all():  # until one has changed the picture: a later one may bring the old one back
            control.focus()
            for key in ("ArrowRight", "Enter"):
                tab.keyboard.press(key)
            tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            if tab.evaluate("() => window.pixels() !== window.before"):
                break
        else:
            pytest.fail(f"{path.name}: no key changes anything")
        assert errors == []
        tab.context.close()


def test_folders_of_the_user_beside_the_report_stay(tmp_path, monkeypatch):
    """report.old is how a user would call a copy; only what was made here is ever removed."""
    for name in ("report.old", "report.building"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("years of work")
    monkeypatch.setattr(report, "run_many", lambda *_: [])
    monkeypatch.setattr(report.pages, "render", lambda *_: None)
    for _ in range(2):  # the second one replaces the first
        assert report.write_report([], tmp_path / "report", {}, 1) == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["report", "report.building", "report.old"]
    assert (tmp_path / "report.old" / "thesis.txt").exists()
    assert (tmp_path / "report.building" / "thesis.txt").exists()
