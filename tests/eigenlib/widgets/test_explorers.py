"""Explorers computed in the browser, in pages of the report, offline, from disk: they follow every hand and are right."""

import re
import shutil
from pathlib import Path

import nbformat
import numpy as np
import pytest
from axe import objections
from explorers import (
    ROOMS,
    SR,
    STATE,
    agrees_with_td,
    agrees_with_the_library,
    check_editor,
    check_sr_explorer,
    click,
    flat,
    follows_twenty_moves,
    frames,
    learned,
    maze,
    message,
    point,
    rows,
    settled,
)
from lab import in_lab, jupyterlab

from eigencourse.lessons import Lesson, Outcome
from eigencourse.report import pages
from eigencourse.report.lesson_page import widget_json
from eigenlib import widgets
from eigenlib.comparing import alignment
from eigenlib.control import q_learning
from eigenlib.diffusion import diffusion_time
from eigenlib.eigenoptions import discover_eigenoptions, learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.experiments.deep_rooms import stored_runs
from eigenlib.gridworld import GridWorld
from eigenlib.options import subgoal_option
from eigenlib.representation import learn_successor_representation, successor_representation
from eigenlib.widgets import MazeEditor, explore_sr

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# One")]), folder / "90_one.ipynb")
    lesson = Lesson(folder / "90_one.ipynb")
    (folder / "out" / "notebooks").mkdir(parents=True)
    ran = Outcome(lesson.name, Path(shutil.copy(lesson.path, folder / "out" / "notebooks")), 1.0, None)
    pages.render(folder / "out", [lesson], [ran], {})
    return folder / "out" / "index.html"


@pytest.fixture
def visit(page, browser):
    """visit(hash, width=…, motion=…): a tab on the first page, or with a widget in place of its maze; none may complain."""
    contexts, errors = [], []

    def open_tab(anchor="", width=1280, motion="reduce", widgets=(), **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, offline=True, reduced_motion=motion, **options
        )
        context.set_default_timeout(20_000)
        contexts.append(context)
        tab = context.new_page()
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        tab.goto((holding(page, widgets) if widgets else page).as_uri() + anchor)
        tab.wait_for_function("document.querySelector('.anywidget').eigenlib")
        frames(tab)
        return tab

    yield open_tab
    for context in contexts:
        context.close()
    assert errors == []


def holding(page, widgets):
    """A copy of the page with these widgets in place of its maze."""
    before, after = re.split(r'<div class="anywidget".*?</div>', page.read_text(encoding="utf-8"), flags=re.DOTALL)
    living = [
        f'<div class="anywidget"><script type="application/json">{widget_json(one.get_state())}</script></div>'
        for one in widgets
    ]
    copy = page.with_name("widgets.html")
    copy.write_text(before + "".join(living) + after, encoding="utf-8")
    return copy


def test_everything_follows_the_hand_and_agrees_with_the_library(visit):
    check_editor(visit())


def test_walls_are_painted_where_they_are_seen_in_the_landscape_too(visit):
    """Every tile that can be seen from the side is the one that a click on it meets: the kernel's own map says so."""
    tab = visit()
    area = maze(tab).bounding_box()
    before = tab.evaluate(STATE)["text"]
    tab.mouse.click(area["x"] + area["width"] * 0.62, area["y"] + area["height"] * 0.5)
    frames(tab)
    after = tab.evaluate(STATE)["text"]
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    agrees_with_the_library(tab.evaluate(STATE))
    tab.mouse.click(area["x"] + 3, area["y"] + 3)  # the corner of the canvas is empty
    frames(tab)
    assert tab.evaluate(STATE)["text"] == after


def test_the_keyboard_stays_on_the_map_and_screen_readers_hear_where(visit):
    tab = visit()
    maze(tab).focus()
    for _ in range(20):
        maze(tab).press("ArrowLeft")
    assert message(tab) == "Row 2, column 1: wall."
    assert "The option ends in 1 tile; the longest way there takes 20 steps." in maze(tab).get_attribute("aria-label")
    tab.locator(".strip button").nth(4).press("Enter")
    assert tab.locator(".strip [aria-pressed=true]").inner_text() == "e₅"
    assert "ends in 3 tiles" in maze(tab).get_attribute("aria-label")


def test_a_finger_paints(visit):
    tab = visit(width=390, has_touch=True)
    flat(tab)
    session, cells = tab.context.new_cdp_session(tab), [(9, 9), (9, 10), (10, 10)]
    for kind, cell in (("touchStart", cells[0]), ("touchMove", cells[1]), ("touchMove", cells[2]), ("touchEnd", None)):
        x, y = point(tab, *cell) if cell else (0, 0)
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}] if cell else []})
    frames(tab)
    assert [rows(tab)[r][c] for r, c in cells] == ["X"] * 3
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_maze_is_shared_by_its_address_and_kept(visit):
    tab = visit()
    flat(tab)
    click(tab, 3, 3)
    tab.get_by_role("button", name="Share this maze").click()
    tab.wait_for_function("location.hash.startsWith('#maze=X')")
    tab.wait_for_function("document.querySelector('.eigenlib-maze-message').innerText.includes('holds your maze')")
    address = tab.evaluate("location.hash")
    other = visit(address)
    assert other.evaluate(STATE)["text"] == tab.evaluate(STATE)["text"]
    again = tab.context.new_page()  # the same browser, without the address
    again.goto(tab.url.split("#")[0])
    again.wait_for_function(STATE)
    assert again.evaluate(STATE)["text"] == ROOMS
    again.get_by_role("button", name="My maze").click()
    assert again.evaluate(STATE)["text"] == tab.evaluate(STATE)["text"]
    assert again.get_by_role("button", name="My maze").count() == 0  # it is on the screen


@pytest.mark.parametrize(
    ("maze_text", "words"),
    [("..?", "Unknown character"), (".X.", "no path"), (".>.", "one-way doors"), ("", "free cell"), (".%", "")],
)
def test_a_bad_address_is_answered_in_words(visit, maze_text, words):
    tab = visit("#maze=" + maze_text)
    assert tab.evaluate(STATE)["text"] == ROOMS
    assert words in message(tab)


@pytest.mark.parametrize("text", [".", "..", ".....", "\n".join(["." * 30] * 30), "\n".join(["." * 3] * 40)])
def test_any_size_can_be_shown_and_painted(visit, text):
    tab = visit("#maze=" + text.replace("\n", "/"))
    state = tab.evaluate(STATE)
    assert state["text"] == text
    agrees_with_the_library(state)
    flat(tab)
    click(tab, 0, 0)
    assert message(tab) == ("The last tile stays." if text == "." else "Wall built.")
    agrees_with_the_library(tab.evaluate(STATE))
    if text != ".":
        click(tab, 0, 0)  # no outer wall was here: it goes again
        assert tab.evaluate(STATE)["text"] == text


def picture(tab):
    return tab.evaluate("document.querySelector('.eigenlib-maze .ground canvas').toDataURL()")


def test_the_story_runs_to_its_end_and_can_be_stopped(visit):
    tab = visit(motion="no-preference")
    current = tab.locator(".eigenlib-maze ol [aria-current] b")
    assert current.inner_text() == "Wander"
    first = picture(tab)
    for name in ("Remember", "Find a direction", "Make it a skill", "Use it"):
        tab.wait_for_function(
            "(name) => document.querySelector('.eigenlib-maze ol [aria-current] b').innerText === name",
            arg=name,
            timeout=60_000,
        )
    assert tab.locator(".invite").is_visible()
    assert "by chance" in tab.locator(".eigenlib-maze ol [aria-current] small").inner_text()
    assert picture(tab) != first
    tab.get_by_role("button", name="Pause").click()
    tab.wait_for_timeout(2500)  # colours settle
    before = picture(tab)
    tab.wait_for_timeout(400)
    assert picture(tab) == before
    tab.get_by_role("button", name="Play").click()
    tab.wait_for_function(
        "(before) => document.querySelector('.eigenlib-maze .ground canvas').toDataURL() !== before", arg=before
    )


def test_nothing_moves_for_those_who_asked_for_rest(visit):
    tab = visit()
    assert tab.locator(".eigenlib-maze ol [aria-current] b").inner_text() == "Use it"
    tab.wait_for_timeout(1800)
    before = picture(tab)
    tab.wait_for_timeout(400)
    assert picture(tab) == before


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark"), (820, "dark")])
def test_it_fits_every_screen_and_axe_has_nothing_to_say(visit, width, scheme):
    tab = visit(width=width, color_scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert objections(tab) == []
    tab.set_viewport_size({"width": 500, "height": 700})
    frames(tab)
    assert maze(tab).bounding_box()["width"] <= 500
    flat(tab)
    click(tab, 3, 3)  # it was drawn anew: the hand still meets the right tile
    assert rows(tab)[3][3] == "X"


def test_colours_follow_the_page(visit):
    tab = visit(color_scheme="light")
    day = picture(tab)
    tab.locator("#theme").click()
    tab.wait_for_timeout(100)
    frames(tab)
    assert picture(tab) != day


def test_where_nothing_can_be_kept_it_still_works(visit, browser, page):
    context = browser.new_context(reduced_motion="reduce")
    context.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })")
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_function(STATE)
    frames(tab)
    flat(tab)
    click(tab, 3, 3)
    assert rows(tab)[3][3] == "X"
    context.close()


@pytest.mark.notebook
@pytest.mark.xdist_group("lab")
def test_python_sets_it_and_sees_what_was_painted(browser, tmp_path):
    cells = [
        "from eigenlib.gridworld import GridWorld\nfrom eigenlib.widgets import MazeEditor\n"
        "explorer = MazeEditor(GridWorld.named('four_rooms'))\nexplorer",
        "explorer.gamma, explorer.index = .95, 3",
        "print(explorer.world.text)\nexplorer.world = GridWorld.from_text('...\\n.X.')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}  # else the lab asks
    nbformat.write(notebook, tmp_path / "maze.ipynb")

    def work(lab):
        tab = lab.tab
        lab.run_cell(0)
        tab.wait_for_function(STATE)
        flat(tab)
        click(tab, 3, 3)
        lab.run_cell(1)
        tab.wait_for_function(f"{STATE}.gamma === 0.95 && {STATE}.index === 3")
        agrees_with_the_library(tab.evaluate(STATE))
        painted = tab.evaluate(STATE)["text"]
        assert painted.splitlines()[3][3] == "X"
        lab.run_cell(2)
        tab.wait_for_function(f"{STATE}.text === '...\\n.X.'")
        assert lab.tab.locator(".jp-OutputArea-output pre").last.inner_text().strip() == painted
        assert lab.errors == []

    with jupyterlab(tmp_path) as address:
        in_lab(browser, address, "maze.ipynb", work)


# --- the SR explorer of notebook 03 ---------------------------------------------------------------------------------------


def test_td_follows_every_control_and_agrees_with_the_library(visit):
    tab = visit(widgets=[explore_sr(GridWorld.named("four_rooms"))])
    check_sr_explorer(tab)
    assert objections(tab) == []


def test_td_plays_from_the_beginning_and_stops(visit):
    tab = visit(widgets=[explore_sr(GridWorld.named("four_rooms"), episodes=5000)])
    agrees_with_td(learned(tab))
    tab.get_by_role("button", name="Play").click()
    tab.wait_for_function(f"{SR}.episodes > 3 && {SR}.episodes < 100")
    tab.get_by_role("button", name="Pause").click()
    tab.wait_for_timeout(300)
    agrees_with_td(learned(tab))


@pytest.mark.parametrize("text", [".", "..", "...\n.Xv\n...", "\n".join(["." * 15] * 14)])
@pytest.mark.parametrize("gamma", [0.0, 0.999])
def test_td_in_any_world(visit, text, gamma):
    world = GridWorld.from_text(text)
    tab = visit(width=390, color_scheme="dark", widgets=[explore_sr(world, episodes=30, gamma=gamma)])
    state = learned(tab)
    np.testing.assert_allclose(
        state["row"], learn_successor_representation(world, 30, 100, 0.1, gamma, "fixed", 0)[0], atol=1e-12
    )
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert objections(tab) == []


def test_two_on_a_page_do_not_disturb_each_other(visit):
    tab = visit(
        widgets=[
            MazeEditor(GridWorld.named("four_rooms")),
            explore_sr(GridWorld.from_text("....")),
            MazeEditor(GridWorld.from_text("...")),
        ]
    )
    tab.wait_for_function("[...document.querySelectorAll('.anywidget')].every((one) => one.eigenlib)")
    texts = tab.evaluate("[...document.querySelectorAll('.anywidget')].map((one) => one.eigenlib.text)")
    assert texts == [ROOMS, "....", "..."]
    flat(tab)
    click(tab, 3, 3)
    assert tab.evaluate("[...document.querySelectorAll('.anywidget')].map((one) => one.eigenlib.text)")[1:] == texts[1:]
    assert rows(tab)[3][3] == "X"
    assert objections(tab) == []


# --- every explorer -------------------------------------------------------------------------------------------------------

WORLD = GridWorld.named("four_rooms")
EVERY = {
    "sums": lambda world: widgets.explore_sums(world, step=5),
    "spectra": widgets.explore_spectra,
    "sr": widgets.explore_sr,
    "diffusion": widgets.explore_diffusion,
    "reward": lambda world: widgets.explore_reward(world, 0, world.n_states - 1),
    "dynamics": lambda world: widgets.explore_dynamics(world, 0.3),
}
FIXED = {
    "eigenvectors": lambda _: widgets.explore_eigenvectors(),
    "deep": lambda world: widgets.explore_deep_sr(world, stored_runs(), 0.9),
}


@pytest.mark.parametrize("name", EVERY | FIXED)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_twenty_of_twenty_moves_are_followed(visit, name, width, scheme):
    tab = visit(width=width, color_scheme=scheme, widgets=[(EVERY | FIXED)[name](WORLD)])
    follows_twenty_moves(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert objections(tab) == []


@pytest.mark.parametrize("name", EVERY)
def test_any_map_and_any_discount_can_be_shown(visit, name):
    """One tile, two, a corridor, 30 × 30; γ from 0 to .999; then a map that falls apart, which changes nothing."""
    tab = visit(widgets=[EVERY[name](WORLD)])
    change = (
        "(values) => { for (const name in values) document.querySelector('.anywidget').model.set(name, values[name]); }"
    )
    for text in (".", "..", ".....", "\n".join(["." * 30] * 30)):
        for gamma in (0, 0.999):
            tab.evaluate(change, {"gamma": gamma, "text": text})
            if name == "dynamics" and len(text) > 500:  # solved densely, so up to 260 tiles
                frames(tab)
                assert "up to 260 tiles" in tab.locator(".said").first.inner_text()
            else:
                frames(tab)
                assert tab.evaluate("document.querySelector('.anywidget').eigenlib.text") == text
    tab.evaluate(change, {"text": "..", "gamma": 0.9})
    frames(tab)
    tab.evaluate(change, {"text": ".X."})
    frames(tab)
    assert "no path connects" in tab.locator(".said").first.inner_text()
    assert settled(tab)["text"] == ".."


def test_partial_sums_are_those_of_the_series(visit):
    state = settled(visit(widgets=[widgets.explore_sums(WORLD, 0.95, state=7, step=12)]))
    T = WORLD.transition_matrix()
    terms = [np.linalg.matrix_power(T, t)[7] for t in range(13)]
    np.testing.assert_allclose(state["chance"], terms[-1], atol=1e-12)
    np.testing.assert_allclose(state["sum"], sum(0.95**t * term for t, term in enumerate(terms)), atol=1e-12)
    np.testing.assert_allclose(state["whole"], successor_representation(T, 0.95)[7], atol=1e-10)


def test_spectra_and_what_noise_leaves_of_the_vectors(visit):
    tab = visit(widgets=[widgets.explore_spectra(WORLD, gamma=0.5)])
    exact, state = extract_eigenpurposes(successor_representation(WORLD.transition_matrix(), 0.5)), settled(tab)
    np.testing.assert_allclose(state["values"], exact.values, atol=1e-9)
    found = np.array(state["noisy"])
    assert state["scores"][3] == pytest.approx(alignment(found[:, None], extract_one(exact, 3))[0], abs=1e-9)
    mean = {}
    for gamma in (0.1, 0.9):
        tab.evaluate("(g) => document.querySelector('.anywidget').model.set('gamma', g)", gamma)
        mean[gamma] = np.mean(settled(tab)["scores"][1:6])
    assert mean[0.1] < mean[0.9]  # where the values crowd, the same share of noise mixes the vectors


def extract_one(purposes, k):
    """The k-th alone, as alignment compares by rank."""
    return type(purposes)(purposes.values[[k]], purposes.vectors[:, [k]])


@pytest.mark.filterwarnings("ignore::eigenlib.diffusion.DiffusionWarning")
def test_diffusion_times_are_the_librarys_and_options_are_placed_by_hand(visit):
    tab = visit(widgets=[widgets.explore_diffusion(WORLD, 8)])
    state = settled(tab)
    purposes = extract_eigenpurposes(successor_representation(WORLD.transition_matrix(), 0.9))
    exact = diffusion_time(WORLD, discover_eigenoptions(WORLD, purposes, 8), matrix=True)
    assert [state["mean"], state["median"]] == pytest.approx([exact.mean, exact.median], rel=1e-6)
    np.testing.assert_allclose(state["away"], exact.matrix.sum(axis=0) / 103, rtol=1e-6)
    canvas = tab.locator(".eigenlib-diffusion canvas").first
    canvas.press("ArrowRight")  # from tile 0
    canvas.press("Space")
    state = settled(tab)
    exact = diffusion_time(WORLD, [subgoal_option(WORLD, 1)])
    assert (state["count"], state["mean"]) == (1, pytest.approx(exact.mean, rel=1e-6))
    canvas.press("Space")  # and away again
    assert settled(tab)["count"] == 0


def test_learners_earn_what_the_librarys_earn(visit):
    """In distribution: eight learners' mean against that of two hundred."""
    state = settled(visit(widgets=[widgets.explore_reward(WORLD, 98, 4, 8)]))
    purposes = extract_eigenpurposes(successor_representation(WORLD.transition_matrix(), 0.9))
    for name, options in (("plain", []), ("helped", discover_eigenoptions(WORLD, purposes, 8))):
        exact = q_learning(WORLD, options, 98, 4, 100, 200).reached
        for episodes, reached, _ in state[name][5::10]:
            several = exact[:, episodes - 1]
            assert abs(reached - several.mean()) < 5 * several.std() / np.sqrt(8) + 0.02, (name, episodes)


def test_wind_slip_and_doors_are_the_librarys(visit):
    door = GridWorld.from_text(WORLD.text[:46] + ">" + WORLD.text[47:])

    class Windy(GridWorld):
        def outcomes(self):
            blown = np.tile((0.5 * self.cells[:, 1] / (self.free.shape[1] - 1))[:, None], self.n_actions)
            ways = super().outcomes()
            calm = [((1 - blown) * chance, to) for chance, to in ways]
            return calm + [(blown * chance, self.next_state[to, 0]) for chance, to in ways]

    explorer = widgets.explore_dynamics(door, 0.5, 0.2)
    state, windy = settled(visit(widgets=[explorer])), Windy.from_text(door.text, slip=0.2)
    np.testing.assert_allclose(explorer.chain(), windy.transition_matrix(), atol=1e-12)
    psi = successor_representation(windy.transition_matrix(), 0.9)
    np.testing.assert_allclose(state["row"], psi[0], atol=1e-9)
    vector = extract_eigenpurposes(psi, 2).vectors[:, 1]
    np.testing.assert_allclose(state["shown"], vector * np.sign(vector @ state["shown"]), atol=1e-7)
    assert state["policy"] == learn_eigenoption(windy, np.array(state["shown"]), 0.9).policy.tolist()


def test_doors_are_built_where_they_can_open(visit):
    tab = visit(widgets=[widgets.explore_dynamics(GridWorld.from_text("...\n..."))])
    tab.get_by_role("button", name="door ↑").click()
    canvas = tab.locator(".eigenlib-dynamics canvas").first
    canvas.press("Space")  # tile 0 lies at the upper edge
    frames(tab)
    assert "opens into a wall" in tab.locator(".said").first.inner_text()
    canvas.press("ArrowDown")
    canvas.press("Space")
    assert settled(tab)["text"] == "...\n^.."
