"""Films of options: every frame as it was, ways that break where the avatar was moved, and a player that needs no kernel."""

import base64
import io
import json
from functools import cache

import nbformat
import numpy as np
import pytest
from film_player import check_player, shown, wait_until
from PIL import Image

from eigencourse import report
from eigencourse.lessons import Lesson
from eigenlib import plots
from eigenlib.atari import films, metrics, options
from eigenlib.atari.emulator import Emulator
from eigenlib.atari.pixels import PixelMaze
from eigenlib.gridworld import GridWorld
from eigenlib.widgets import explore_films
from eigenlib.widgets.films import option_name

BUDGET = 4_000_000  # bytes of state: four games, twelve films each
HOSTILE = "</script><img src=x onerror='window.harmed = 1'><b>$\\frac"

# Run here and in the notebook of the browser tests: a small explorer of two games.
SOURCE = f'''
import numpy as np
from eigenlib.atari.emulator import Emulator
from eigenlib.atari.films import film
from eigenlib.widgets import explore_films

def walked(world, actions):
    """positions (T+1, 2), rooms (T+1,), lives (T+1,) of a world that takes these actions, and is then put back."""
    here, log = world.save(), []
    for action in (None, *actions):
        if action is not None:
            world.act(int(action))
        room = getattr(world, "room", lambda: None)()
        log.append((*(world.position() or (np.nan, np.nan)), -1 if room is None else room, world.lives))
    world.restore(here)
    x, y, rooms, lives = np.array(log, dtype=float).T
    return np.stack([x, y], axis=1), rooms.astype(int), lives.astype(int)

def made(world, actions, caption):
    return film(world, np.array(actions), *walked(world, actions), caption=caption)

road, temple = Emulator("freeway"), Emulator("montezuma_revenge")
up = made(road, [1] * 24, "goes up")
games = {{
    "Freeway": {{
        (1, 1): up,
        (1, -1): made(road, [0] * 24, "waits"),
        (3, 1): up._replace(trails=[(0, 3), (10, 24)], caption="goes up, with a gap"),
    }},
    {HOSTILE!r}: {{(2, -1): made(temple, [temple.action_names.index("RIGHT")] * 21, "falls <i>down</i>")}},
}}
explorer = explore_films(games)
'''


@cache
def small():
    """What SOURCE makes."""
    made = {}
    exec(SOURCE, made)
    return made


def filmed(world, actions):
    return films.film(world, np.array(actions), *small()["walked"](world, actions))


# --- the film ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["freeway", "montezuma_revenge", "ms_pacman", "bank_heist"])
def test_every_frame_is_what_replay_shows_and_films_fit_into_the_budget(game):
    """A hundred decisions of the restless kind: options that go somewhere and stay take less."""
    world = Emulator(game)
    actions = np.repeat(np.random.default_rng(0).integers(world.n_actions, size=20), 5)
    before = world.screen()
    film = filmed(world, actions)
    assert np.array_equal(world.screen(), before)  # the world is where it was
    shown, _ = films.replay(world, actions)
    assert len(film.path) == len(shown) == 101
    for step in (0, 1, 9, 10, 57, 100):
        np.testing.assert_array_equal(film.frame(step), shown[step])
    state = explore_films({game: {(1, 1): film}}).get_state()
    assert len(json.dumps(state["games"])) < BUDGET / 48


def test_the_sheet_holds_the_frames_in_reading_order_in_a_palette():
    film = small()["up"]
    sheet = Image.open(io.BytesIO(film.sheet))
    assert (sheet.mode, sheet.size) == ("P", (10 * 160, 3 * 210))  # 25 frames, ten in a row
    pixels = np.asarray(sheet.convert("RGB"))
    np.testing.assert_array_equal(pixels[210:420, 480:640], film.frame(13))
    assert film.size == (160, 210)
    assert film.shape == pytest.approx(4 / 3)
    assert film.rate == 12  # decisions of five frames, sixty frames a second
    with pytest.raises(ValueError, match="steps 0 to 24"):
        film.frame(25)


def test_a_maze_of_greys_has_films_too_and_they_end_with_the_episode():
    maze = PixelMaze(GridWorld.named("four_rooms"), seed=1, steps=7)
    positions, rooms, lives = small()["walked"](maze, [0, 1, 1, 2, 3, 1, 1])
    actions = np.array([0, 1, 1, 2, 3, 1, 1, -1, -1])  # as `follow` notes an episode of seven decisions
    positions = np.concatenate([positions, np.full((2, 2), np.nan)])
    film = films.film(maze, actions, positions, np.append(rooms, [-1, -1]), np.append(lives, [0, 0]))
    assert len(film.path) == len(film.rooms) == 8
    np.testing.assert_array_equal(film.frame(7), films.replay(maze, actions)[0][7][..., None].repeat(3, axis=2))
    assert film.shape == 1


def test_a_film_of_another_world_is_refused():
    """Else the way would be drawn beside the avatar, and nobody would know."""
    up, road = small()["up"], small()["road"]
    with pytest.raises(ValueError, match=r"not the world .* after 1 decisions"):
        films.film(road, np.zeros(24, int), up.path)
    with pytest.raises(ValueError, match=r"positions must be an array of numbers of shape \(25, 2\)"):
        films.film(road, np.ones(24, int), up.path[:-1])
    with pytest.raises(ValueError, match="at most 256 colours"):
        films._sheet(np.random.default_rng(0).integers(0, 256, (2, 30, 30, 3), dtype=np.uint8))


# --- the way ----------------------------------------------------------------------------------------------------------


def test_trails_break_at_deaths_rooms_jumps_and_where_nobody_is():
    path = np.array(
        [[5, 5], [8, 5], [11, 5], [14, 5], [17, 5], [20, 5], [23, 5], [60, 5], [63, 5], [66, 5]], dtype=float
    )
    rooms, lives = np.zeros(10, int), np.full(10, 3)
    assert films._trails(path, rooms, lives) == [(0, 6), (7, 9)]  # put elsewhere between 6 and 7
    lives[2:] = 2
    assert films._trails(path, rooms, lives) == [(0, 1), (2, 6), (7, 9)]
    rooms[4:] = 1
    assert films._trails(path, rooms, lives) == [(0, 1), (2, 3), (4, 6), (7, 9)]
    path[5] = np.nan
    assert films._trails(path, rooms, lives) == [(0, 1), (2, 3), (4, 4), (6, 6), (7, 9)]
    assert films._trails(np.full((4, 2), np.nan), np.zeros(4, int), np.zeros(4, int)) == []


def test_a_life_gained_breaks_nothing():
    path = np.arange(8.0).reshape(4, 2)
    assert films._trails(path, np.zeros(4, int), np.array([3, 3, 4, 4])) == [(0, 3)]


def test_who_falls_in_the_temple_leaves_a_trail_that_ends_and_begins_again_at_the_start():
    """Right over the edge: a life is lost, and some decisions later the avatar stands where it stood first."""
    (film,) = small()["games"][HOSTILE].values()
    ((step, before),) = film.deaths
    assert before == step - 1
    (_, at_the_edge), (dying, _), (again, _) = film.trails
    assert (at_the_edge, dying) == (before, step)
    assert np.hypot(*(film.path[again] - film.path[0])) < films.JUMP < np.hypot(*(film.path[again] - film.path[dying]))


# --- in words ---------------------------------------------------------------------------------------------------------


def tracks(**changed):
    """Numbers of one option that goes somewhere and stays, as `discover` finds them."""
    told = {
        "actions": np.ones(40, int),
        "positions": np.zeros((41, 2)),
        "goes": True,
        "stays": 0.9,
        "deaths": 0,
        "stops": -1,
    }
    return {name: np.array([value]) for name, value in (told | changed).items()}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "goes somewhere and stays"),
        ({"deaths": 1}, "goes somewhere and stays, 1 life lost"),
        ({"goes": False, "deaths": 2}, "stays near its start, 2 lives lost"),
        ({"goes": False, "stays": 0.5, "stops": 0}, "does not settle, would end at once"),
        ({"stops": 1}, "goes somewhere and stays, would end after 1 decision"),
        ({"stops": 12}, "goes somewhere and stays, would end after 12 decisions"),
        (
            {"actions": np.repeat([1, -1], [30, 10]), "goes": False, "stays": 0.0},
            "does not settle, the game was over after 30 decisions",
        ),
        ({"positions": np.full((41, 2), np.nan), "goes": False, "stays": 0.0}, "nobody knows where its avatar is"),
    ],
)
def test_what_an_option_did_in_words(changed, said):
    assert films._what_it_did(tracks(**changed), 0) == said


def test_films_of_a_game_come_by_number_and_sign():
    """e₁, −e₁, e₂, …: the second eigenpurpose's are options 2 and 3."""
    road = Emulator("freeway")
    actions = np.array([[0] * 6, [1] * 6, [1, 0] * 3, [0, 1] * 3])
    log = [small()["walked"](road, row) for row in actions]
    positions, rooms, lives = (np.stack(column) for column in zip(*log, strict=True))
    track = options.Trajectories(positions, rooms, lives, np.zeros((4, 7)), np.zeros((4, 6)), actions, np.full(4, -1))
    did = track._asdict() | metrics.behaviour(track)
    found = films.films(road, did, [2])
    assert list(found) == [(2, 1), (2, -1)]
    np.testing.assert_array_equal(found[2, -1].path, positions[3])
    assert found[2, 1].caption == "stays near its start"
    with pytest.raises(ValueError, match="eigenpurposes 1 to 2, not of 3"):
        films.films(road, did, [3])
    assert [option_name(*which) for which in ((1, 1), (12, -1))] == ["+e₁", "−e₁₂"]


# --- the widget without a browser ---------------------------------------------------------------------------------------


def test_the_state_is_text_and_numbers_and_small():
    """The report keeps what JSON keeps: bytes would be lost there."""
    state = json.loads(json.dumps(small()["explorer"].get_state()["games"], allow_nan=False))
    assert [game["title"] for game in state] == ["Freeway", HOSTILE]
    up = small()["up"]
    told = state[0]["films"][0]
    assert base64.b64decode(told["sheet"]) == up.sheet
    np.testing.assert_allclose(told["path"], up.path, atol=0.05)
    assert told["name"] == "+e₁"


def test_places_that_are_not_known_are_null():
    gone = small()["up"]._replace(path=np.full((25, 2), np.nan), trails=[])
    explorer = explore_films({"Freeway": {(1, 1): gone}})
    assert explorer.games[0]["films"][0]["path"] == [None] * 25
    assert explorer._repr_mimebundle_()[0]["image/png"].startswith(b"\x89PNG")


def test_without_a_kernel_there_is_a_picture_with_words():
    data, metadata = small()["explorer"]._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["image/png"] == small()["explorer"]._repr_mimebundle_()[0]["image/png"]  # a refresh changes no byte
    assert "option +e₁ in Freeway" in metadata["image/png"]["alt"]
    assert "goes up" in metadata["image/png"]["alt"]
    assert metadata["eigenlib"]["explorer"] == "game Freeway, option +e₁"
    picture = np.asarray(Image.open(io.BytesIO(data["image/png"])).convert("RGB")).reshape(-1, 3)
    ink = [int(plots.COLOURS["pvf"][at : at + 2], 16) for at in (1, 3, 5)]
    assert (np.abs(picture.astype(int) - ink).sum(axis=1) < 6).sum() > 100  # the way is really drawn


def test_a_title_is_only_a_title():
    falls = small()["games"][HOSTILE]
    data, _ = explore_films({HOSTILE: falls})._repr_mimebundle_()  # $\frac would not parse as mathematics
    assert data["image/png"].startswith(b"\x89PNG")


def test_no_films_no_explorer():
    with pytest.raises(ValueError, match="no film of any game"):
        explore_films({})
    with pytest.raises(ValueError, match="no film of Freeway"):
        explore_films({"Freeway": {}})


# --- the player, in a real browser --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page_without_kernel(tmp_path_factory):
    """The page that the report makes of a notebook with SOURCE."""
    folder = tmp_path_factory.mktemp("films")
    code = [nbformat.v4.new_code_cell(source) for source in ("TIER = 'quick'", SOURCE + "explorer")]
    code[0].metadata["tags"] = ["parameters"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Films"), *code])
    path = folder / "90_films.ipynb"
    nbformat.write(notebook, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "lessons", lambda: [Lesson(path)])
        assert report.write_report([Lesson(path)], folder / "report", {}, jobs=1) == 0
    return (folder / "report" / "90_films.html").as_uri()


@pytest.fixture
def opened(browser, page_without_kernel):
    """opened(…settings of a browser context) → the player; whatever the page complains about fails the test."""
    contexts, errors = [], []

    def open_page(**settings):
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 1000}, offline=True, **settings))
        tab = contexts[-1].new_page()
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        tab.goto(page_without_kernel)
        player = tab.locator(".eigenlib-films")
        player.wait_for()
        wait_until(player, "now.ready")
        return player

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []


def go_to(player, step):
    player.get_by_label("step").fill(str(step))
    assert shown(player)["step"] == step


def pixels(player):
    """(H, W, 3): the canvas, looked at in the middle of every pixel of the game's screen, 160 × 210."""
    address = player.locator("canvas").evaluate(
        """canvas => {
            const small = Object.assign(document.createElement("canvas"), { width: 160, height: 210 });
            const brush = small.getContext("2d");
            brush.imageSmoothingEnabled = false;
            brush.drawImage(canvas, 0, 0, 160, 210);
            return small.toDataURL();
        }"""
    )
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).convert("RGB"))


@pytest.mark.browser
@pytest.mark.notebook
@pytest.mark.xdist_group("films")
class TestOffline:
    def test_everything_works(self, opened):
        check_player(opened())

    def test_the_canvas_shows_the_frame_and_the_way_so_far(self, opened):
        player, film = opened(), small()["up"]
        away = np.abs(np.arange(160) - film.path[0, 0]) > 20  # the way goes straight up: the rest is the game alone
        for step in (0, 7, 13, 24):
            go_to(player, step)
            seen, frame = pixels(player), film.frame(step)
            np.testing.assert_array_equal(seen[:, away], frame[:, away])
            x, y = (int(part) for part in film.path[step])
            np.testing.assert_array_equal(seen[y - 2 : y + 3, x - 2 : x + 3], frame[y - 2 : y + 3, x - 2 : x + 3])
        for step, drawn in ((8, True), (13, False)):
            go_to(player, step)
            where = film.path[5] if drawn else film.path[20]  # where it has been, and where it will be
            x, y = (int(part) for part in where)
            red, green, blue = pixels(player)[y, x].astype(int)
            assert (red > green > blue) == drawn

    def test_a_trail_that_breaks_leaves_a_gap(self, opened):
        player = opened()
        player.get_by_role("combobox", name="option").select_option("e₃")
        wait_until(player, "now.ready && now.purpose === 3")
        film = small()["up"]
        go_to(player, 20)
        seen, frame = pixels(player), film.frame(20)
        (x, gap), (_, way) = (film.path[k].astype(int) for k in (7, 15))
        np.testing.assert_array_equal(seen[gap, x], frame[gap, x])
        assert not np.array_equal(seen[way, x], frame[way, x])

    def test_a_hostile_title_is_shown_and_harms_nothing(self, opened):
        player = opened()
        player.get_by_label("game").select_option(index=1)
        wait_until(player, "now.ready && now.game === 1")
        assert player.get_by_label("game").evaluate("list => list.selectedOptions[0].textContent") == HOSTILE
        assert player.get_by_role("status").inner_text() == "−e₂: falls <i>down</i>"
        assert player.page.evaluate("window.harmed") is None
        assert player.locator("img, b, i").count() == 0
        assert player.get_by_label("plus").is_disabled()  # there is no such film

    def test_nothing_starts_by_itself_for_readers_who_want_less_motion(self, opened):
        player = opened(reduced_motion="reduce")
        player.get_by_label("minus").check()
        wait_until(player, "now.ready && now.sign === -1")
        player.page.wait_for_timeout(400)
        assert (shown(player)["playing"], shown(player)["step"]) == (False, 24)
        player.get_by_role("button").click()  # who asks for it gets it
        wait_until(player, "now.playing && now.step > 0")

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_axe_finds_nothing_to_complain_about(self, opened, scheme):
        axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
        player = opened(color_scheme=scheme)
        found = axe.run(player.page, ".eigenlib-films", {"preload": False}).response["violations"]  # no requests
        assert [rule["id"] for rule in found] == []

    def test_it_fits_a_phone(self, opened):
        player = opened()
        player.page.set_viewport_size({"width": 390, "height": 800})
        assert player.page.evaluate("document.documentElement.scrollWidth") <= 390
