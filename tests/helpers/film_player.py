"""The film explorer of notebook 10, driven in a page."""


def shown(player):
    """What the player shows: game, purpose, sign, step, last, playing, ready."""
    return player.evaluate("box => box.parentElement.eigenlib")


def wait_until(player, condition):
    """condition: JavaScript over `now`, what the player shows."""
    player.page.wait_for_function(
        f"box => {{ const now = box.parentElement.eigenlib; return {condition}; }}", arg=player.element_handle()
    )


def picture(player):
    return player.locator("canvas").evaluate("canvas => canvas.toDataURL()")


def check_player(player):
    """All controls, by mouse and by keyboard; for any explorer with at least two games. JupyterLab is tested with it too."""
    player.scroll_into_view_if_needed()
    wait_until(player, "now.ready")
    slider, button = player.get_by_label("step"), player.get_by_role("button")
    now = shown(player)
    assert (now["playing"], now["step"]) == (False, now["last"])  # nothing moves unasked; the whole way is there
    pictures = {picture(player)}
    for key, step in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)):
        slider.press(key)
        assert shown(player)["step"] == step
        assert slider.get_attribute("aria-valuetext") == f"step {step} of {now['last']}"
        pictures.add(picture(player))
    assert len(pictures) == 4  # the end, and the steps 0, 1 and 2
    player.get_by_label("speed").select_option("¼ ×")  # what is stopped below must not have come to its end: no race
    slider.press("Space")
    assert button.inner_text() == "Pause"
    wait_until(player, "now.playing && now.step >= 4")
    slider.press("Space")
    held = shown(player)
    assert (held["playing"], button.inner_text()) == (False, "Play")
    player.page.wait_for_timeout(400)
    assert shown(player)["step"] == held["step"]
    player.get_by_label("speed").select_option("2 ×")
    button.click()
    wait_until(player, "!now.playing && now.step === now.last")  # it stops by itself
    player.get_by_label("speed").select_option("¼ ×")
    button.press("Space")  # from the end it begins again
    wait_until(player, "now.playing && now.step > 0 && now.step < now.last")
    player.locator("canvas").click()
    assert not shown(player)["playing"]
    check_choices(player, slider)


def check_choices(player, slider):
    """Another sign, another game, and back: another film each time, which starts; the same film is the same picture."""
    slider.press("Home")
    slider.press("ArrowRight")
    first, seen = shown(player), {picture(player)}
    for choose, name in (
        (lambda: player.get_by_label("plus" if first["sign"] < 0 else "minus").press("Space"), "sign"),
        (lambda: player.get_by_label("game").select_option(index=1), "game"),
    ):
        choose()
        wait_until(player, "now.ready && now.playing && now.step > 0 && now.step < now.last")
        assert shown(player)[name] != first[name]
        slider.press("Home")
        slider.press("ArrowRight")
        assert not shown(player)["playing"]
        seen.add(picture(player))
    assert len(seen) == 3
    player.get_by_label("game").select_option(index=0)
    player.get_by_label("plus").check()
    same = " && ".join(f"now.{name} === {first[name]}" for name in ("game", "purpose", "sign"))
    wait_until(player, f"now.ready && now.playing && now.step > 0 && {same}")
    slider.press("Home")
    slider.press("ArrowRight")
    assert picture(player) in seen
