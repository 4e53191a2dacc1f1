"""Explorers driven in a page, be it the report's or JupyterLab's, and what they show compared with the library."""

import numpy as np
import pytest

from eigenlib.comparing import alignment, relative_error
from eigenlib.eigenoptions import learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.representation import learn_successor_representation, successor_representation

ROOMS = GridWorld.named("four_rooms").text
STATE = "document.querySelector('.eigenlib-maze')?.parentElement.eigenlib"
SR = "document.querySelector('.eigenlib-sr')?.parentElement.eigenlib"


def frames(tab):
    """Until what was asked for is on the screen."""
    tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def maze(tab):
    return tab.locator(".eigenlib-maze .ground canvas").first


def flat(tab):
    """The map from above, at once: what glides there would not be where the hand is."""
    tab.emulate_media(reduced_motion="reduce")
    if tab.get_by_role("button", name="Flat", exact=True).count():
        tab.get_by_role("button", name="Flat", exact=True).first.click()
        tab.wait_for_timeout(50)
        frames(tab)


def point(tab, row, col):
    """The middle of a cell on the page, the maze seen from above: it is as high as the canvas, or as wide."""
    maze(tab).scroll_into_view_if_needed()
    area, rows = maze(tab).bounding_box(), tab.evaluate(STATE)["text"].splitlines()
    size = min(area["width"] / len(rows[0]), area["height"] / len(rows))
    left, top = (area["width"] - size * len(rows[0])) / 2, (area["height"] - size * len(rows)) / 2
    return area["x"] + left + (col + 0.5) * size, area["y"] + top + (row + 0.5) * size


def click(tab, row, col):
    tab.mouse.click(*point(tab, row, col))
    frames(tab)


def drag(tab, *cells):
    tab.mouse.move(*point(tab, *cells[0]))
    tab.mouse.down()
    for cell in cells[1:]:
        tab.mouse.move(*point(tab, *cell), steps=2)
    tab.mouse.up()
    frames(tab)


def message(tab):
    return tab.locator(".eigenlib-maze-message").first.inner_text()


def rows(tab):
    return tab.evaluate(STATE)["text"].splitlines()


def agrees_with_the_library(state):
    """Eigenvalues, the vector itself (its basis and sign too) and its option."""
    world, index = GridWorld.from_text(state["text"]), state["index"]
    exact = extract_eigenpurposes(world.transition_matrix(), len(state["values"]))
    np.testing.assert_allclose(state["values"], exact.values, atol=1e-12)
    sign = np.sign(np.dot(state["vector"], exact.vectors[:, index]))
    np.testing.assert_allclose(state["vector"], sign * exact.vectors[:, index], atol=1e-9)
    assert state["policy"] == learn_eigenoption(world, np.array(state["vector"]), state["gamma"]).policy.tolist()


def check_editor(tab):
    """Walls come and go by mouse and keyboard, the maze is never cut, and the numbers are the library's."""
    agrees_with_the_library(tab.evaluate(STATE))
    flat(tab)
    click(tab, 3, 3)
    assert rows(tab)[3][3] == "X"
    assert message(tab) == "Wall built."
    agrees_with_the_library(tab.evaluate(STATE))
    drag(tab, (9, 2), (9, 4))  # three tiles in one go, those between too
    assert rows(tab)[9][1:6] == ".XXX."
    drag(tab, (9, 4), (9, 2))  # begun on a wall, so it takes walls away
    assert rows(tab)[9] == ROOMS.splitlines()[9]
    agrees_with_the_library(tab.evaluate(STATE))
    click(tab, 6, 2)
    click(tab, 3, 6)  # would cut a room off
    assert "cut the maze in two" in message(tab)
    assert rows(tab)[3][6] == "."
    click(tab, 0, 0)
    assert message(tab) == "The outer wall stays."
    drag(tab, (10, 8), (10, 20), (30, 8))  # out of the map and away
    assert rows(tab)[10].endswith("X")
    agrees_with_the_library(tab.evaluate(STATE))
    maze(tab).press("ArrowDown")  # from row 1, column 1
    assert message(tab) == "Row 3, column 2: free."
    maze(tab).press("Space")
    assert rows(tab)[2][1] == "X"
    for number in (2, 5, 8):
        tab.locator(".eigenlib-maze .strip button").nth(number - 1).press("Enter")
        assert tab.evaluate(STATE)["index"] == number
        agrees_with_the_library(tab.evaluate(STATE))
    before = tab.evaluate(STATE)["vector"]
    tab.get_by_role("button", name="Flip sign").press("Enter")
    assert tab.evaluate(STATE)["vector"] == [-entry for entry in before]
    agrees_with_the_library(tab.evaluate(STATE))
    slider = tab.get_by_role("slider", name="Discount γ")
    for key, gamma in (("Home", 0.0), ("End", 0.999)):
        slider.press(key)
        assert tab.evaluate(STATE)["gamma"] == gamma
        agrees_with_the_library(tab.evaluate(STATE))
    tab.get_by_role("button", name="Original maze").click()
    assert tab.evaluate(STATE)["text"] == ROOMS


def learned(tab):
    """What it shows when it has done what was asked."""
    frames(tab)
    tab.wait_for_function(f"{SR}?.done && {SR}.learned")
    return tab.evaluate(SR)


def agrees_with_td(state, step_size=0.1, start="fixed", seed=0):
    """The same Ψ̂, errors, eigenvector and alignment as the library finds with this seed."""
    world, k = GridWorld.from_text(state["text"]), state["vector"]
    exact = successor_representation(world.transition_matrix(), state["gamma"])
    psi = learn_successor_representation(world, state["episodes"], 100, step_size, state["gamma"], start, seed)
    np.testing.assert_allclose(state["row"], psi[state["state"]], atol=1e-12)
    assert state["errors"][-1] == [state["episodes"], pytest.approx(float(relative_error(psi, exact)))]
    vectors = extract_eigenpurposes(psi, k + 1).vectors
    assert abs(np.dot(state["learned"], vectors[:, k])) == pytest.approx(1, abs=1e-9)
    assert state["score"] == pytest.approx(alignment(vectors, extract_eigenpurposes(exact))[k], abs=1e-9)


def check_sr_explorer(tab):
    """Every control moves it, twenty moves are followed, and the numbers are the library's."""
    box = tab.locator(".eigenlib-sr")
    box.scroll_into_view_if_needed()
    assert learned(tab)["episodes"] == 100
    agrees_with_td(learned(tab))
    slider = {name: box.get_by_role("slider", name=name) for name in ("episodes", "γ", "step size η", "eigenvector")}
    for move in range(20):
        before = learned(tab)
        slider["episodes"].press("ArrowRight" if move < 5 else "ArrowLeft")
        assert learned(tab)["episodes"] != before["episodes"]
    agrees_with_td(learned(tab))
    slider["γ"].press("ArrowRight")
    assert learned(tab)["gamma"] == 0.91
    slider["step size η"].press("ArrowRight")
    box.get_by_role("button", name="random").click()
    slider["eigenvector"].press("ArrowRight")
    agrees_with_td(learned(tab), 0.2, "random")
    assert learned(tab)["vector"] == 2
    box.get_by_role("button", name="Another walk").click()
    agrees_with_td(learned(tab), 0.2, "random", seed=1)
    area = box.locator("canvas").first.bounding_box()
    size = area["width"] / 13
    tab.mouse.click(area["x"] + 2.5 * size, area["y"] + 3.5 * size)  # row 3, column 2
    frames(tab)
    assert learned(tab)["state"] == GridWorld.named("four_rooms").state_at[3, 2]
    assert "Row 4, column 3: Ψ̂" in box.locator(".said").inner_text()
    box.locator("canvas").first.press("ArrowDown")
    assert learned(tab)["state"] == GridWorld.named("four_rooms").state_at[4, 2]
    agrees_with_td(learned(tab), 0.2, "random", seed=1)


# --- every explorer -------------------------------------------------------------------------------------------------------


def settled(tab, which=0):
    """What the which-th explorer of the page shows, when it has done what was asked."""
    frames(tab)
    tab.wait_for_function(
        "(k) => document.querySelectorAll('.eigenlib-live')[k]?.parentElement.eigenlib?.done", arg=which
    )
    return tab.evaluate("(k) => document.querySelectorAll('.eigenlib-live')[k].parentElement.eigenlib", which)


def pictures(tab, which=0):
    canvases = "[...document.querySelectorAll('.eigenlib-live')[k].querySelectorAll('canvas')]"
    return tab.evaluate(f"(k) => {canvases}.map((one) => one.toDataURL()).join()", which)


def follows_twenty_moves(tab, which=0):
    """Twenty moves by keyboard over all its sliders, then its buttons: each is seen, and none is lost."""
    box = tab.locator(".eigenlib-live").nth(which)
    box.scroll_into_view_if_needed()
    sliders, done = box.locator("input[type=range]:visible"), 0
    while done < 20:
        for slider in sliders.all():
            before, value = (settled(tab, which), pictures(tab, which)), slider.input_value()
            back = value == slider.get_attribute("max") or (done % 3 == 2 and value != "0")
            slider.press("ArrowLeft" if back else "ArrowRight")
            assert slider.input_value() != value, slider.get_attribute("aria-valuetext")
            frames(tab)
            assert (settled(tab, which), pictures(tab, which)) != before, slider.get_attribute("aria-valuetext")
            done += 1
    for button in box.locator(".choice button:visible").all():
        button.press("Enter")
        settled(tab, which)
        assert button.get_attribute("aria-pressed") == "true"
