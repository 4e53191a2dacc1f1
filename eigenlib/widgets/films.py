"""The film explorer: what each option of a game did, frame by frame (notebook 10).

Everything that can be seen is in the widget's state and all of it is drawn in the browser, so that films also play in the
report. Only text and numbers may be in there: the report keeps what JSON keeps, so sheets travel as base64.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traitlets
from matplotlib.figure import Figure

from eigenlib import _require, plots
from eigenlib.widgets.base import Pictured

if TYPE_CHECKING:
    from eigenlib.atari.films import Film

COLOUR = plots.COLOURS["pvf"]  # orange: stands out on black and on grey roads, for every common colour blindness


class FilmExplorer(Pictured):
    """Choose a game, an eigenpurpose and a sign; play the option's film, or step through it.

    games: {title: {(number of the eigenpurpose, ±1): Film}}, as `atari.films.films` makes them.
    """

    _esm = (Path(__file__).with_name("films.js")).read_text(encoding="utf-8")
    games: traitlets.List = traitlets.List().tag(sync=True)
    colour = traitlets.Unicode(COLOUR).tag(sync=True)
    game = traitlets.Int(0).tag(sync=True)
    purpose = traitlets.Int(1).tag(sync=True)
    sign = traitlets.Int(1).tag(sync=True)

    def __init__(self, games: Mapping[str, Mapping[tuple[int, int], Film]]) -> None:
        for title, films in _require.mapping(games, "games", "titles and films").items():
            _require.text(title, "A title in games")
            for which, film in _require.mapping(films, f"games[{title!r}]", "films").items():
                _require_film(film, f"games[{title!r}][{which!r}]")
                if not isinstance(which, tuple) or len(which) != 2:
                    raise ValueError(
                        f"games[{title!r}] must name films as (eigenpurpose, ±1), not {_require.shown(which)}."
                    )
                option_name(*which)
        empty = [title for title, films in games.items() if not films]
        if empty or not games:
            raise ValueError(
                f"There is no film of {empty[0] if empty else 'any game'}: give at least one for each game."
            )
        self._title, films = next(iter(games.items()))
        (purpose, sign), self._film = next(iter(films.items()))
        told = [
            {"title": title, "films": [_told(*which, film) for which, film in films.items()]}
            for title, films in games.items()
        ]
        super().__init__(games=told, purpose=purpose, sign=sign)
        self._name = option_name(purpose, sign)

    def still(self) -> tuple[Figure, str, str]:
        alt = (
            f"Film of option {self._name} in {self._title}, as a still picture: {self._film.caption or 'the first screen'}. "
            "The avatar's whole way is drawn over the first screen, its start and end marked. Live, the film can be played."
        )
        return still(self._film, self._title, self._name), alt, f"game {self._title}, option {self._name}"


def _require_film(film: Any, name: str) -> None:
    from eigenlib.atari.films import Film  # here, not above: it imports torch

    _require.instance(film, name, Film, "make one with atari.films.films")


def option_name(purpose: int, sign: int) -> str:
    """(3, −1) → "−e₃"."""
    if _require.whole(sign, "sign") not in (1, -1):
        raise ValueError(f"sign must be 1 or −1, got {sign}.")
    purpose = _require.whole(purpose, "purpose", 1)
    return ("−" if sign < 0 else "+") + "e" + str(purpose).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def still(film: Film, title: str, name: str) -> Figure:
    """The first screen of a film with the whole way over it, as far as it was in that room."""
    _require_film(film, "film")
    title, name = _require.text(title, "title"), _require.text(name, "name")
    width, height = film.size
    fig = plots.figure(2.6 * film.shape + 2.0, 3.9)
    ax = fig.subplots()
    ax.imshow(film.frame(0), aspect=width / height / film.shape, interpolation="nearest")
    here = film.rooms == film.rooms[0]
    rims: tuple[tuple[str, float], ...] = (("white", 2.0), (COLOUR, 0.0))
    for colour, rim in rims:
        for first, last in film.trails:
            if here[first]:
                ax.plot(*film.path[first : last + 1].T, color=colour, linewidth=2.4 + rim, solid_capstyle="round")
    marks = [(before, "x", 8) for _, before in film.deaths]
    if film.trails:
        marks += [(film.trails[0][0], "o", 5), (film.trails[-1][1], "s", 26)]
    for step, mark, size in marks:
        for colour, rim in rims:
            if here[step]:
                filled = colour if mark == "o" else "none"
                style: dict[str, Any] = {"markersize": size, "color": colour, "markerfacecolor": filled}
                ax.plot(*film.path[step], mark, markeredgewidth=1.6 + rim, **style)
    ax.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    ax.set_axis_off()
    said = f"{title}, {name}" + (f": {film.caption}" if film.caption else "")
    ax.set_title(said.replace("$", r"\$"), fontsize=10, wrap=True)
    return fig


def _told(purpose: int, sign: int, film: Film) -> dict[str, Any]:
    """A film as JSON can hold it; a place that is not known is null."""
    path = [[round(x, 1), round(y, 1)] if x == x and y == y else None for x, y in film.path.tolist()]
    return {
        "purpose": purpose,
        "sign": sign,
        "name": option_name(purpose, sign),
        "caption": film.caption,
        "sheet": base64.b64encode(film.sheet).decode("ascii"),
        "size": list(film.size),
        "shape": film.shape,
        "rate": film.rate,
        "path": path,
        "rooms": film.rooms.tolist(),
        "trails": [list(trail) for trail in film.trails],
        "deaths": [list(death) for death in film.deaths],
    }
