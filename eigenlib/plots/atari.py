"""Where options went, as a table and as the paper's picture (Fig. 5; notebook 10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from eigenlib import _require
from eigenlib.atari.baselines import KINDS
from eigenlib.atari.metrics import CELL, distinct_ends

# Okabe and Ito's colours, which colour-blind readers can tell apart; black and yellow are left out, as they vanish on screens.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7b3294", "#8c510a")


def summary_table(about: Mapping[str, Any]) -> str:
    """What `discover` measured, a line for each kind of direction, and how well the network predicts."""
    summary = _require.mapping(about, "about", "what discover measured").get("summary")
    wanted = {"r8", "big_basin", "go_and_stay", "options", "distinct_ends", "deaths"}
    if not isinstance(summary, Mapping) or any(wanted - set(summary.get(kind) or ()) for kind in KINDS):
        raise ValueError("about must be what `discover` stored of a game: its summary is missing or not whole.")
    lines = [f"{'':20}{'R8':>6}{'basin':>7}{'go and stay':>15}{'ends':>6}{'deaths':>8}"]
    for kind, title in KINDS.items():
        row = about["summary"][kind]
        places = "".join(
            f"{'–' if row[n] is None else format(row[n], '.2f'):>{w}}" for n, w in (("r8", 6), ("big_basin", 7))
        )
        share = f"{row['go_and_stay']} of {row['options']}"
        lines.append(f"{title:20}{places}{share:>15}{row['distinct_ends']:>6}{row['deaths']:>8}")
    for what, errors in about.get("prediction_errors", {}).items():
        said = ", ".join(f"{name} {error:.3f}" for name, error in errors.items())
        lines.append(
            f"squared error of the next frame, {'whole frame' if what == 'frame' else 'around the avatar'}: {said}"
        )
    return "\n".join(lines)


def _telling_options(ends: np.ndarray, goes: np.ndarray) -> list[int]:
    """Numbers of the first options that go somewhere and stay, each elsewhere than those before it."""
    chosen: list[int] = []
    for option in np.flatnonzero(goes).tolist():
        if len(chosen) < len(COLOURS) and distinct_ends(ends[[*chosen, option]]) > len(chosen):
            chosen.append(option)
    return chosen


def _density(screen: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Options as stains on a faded screen, one colour each and darker where it was more often: (H, W, 3) float.

    screen: (H, W, 3) uint8; positions: (K, T+1, 2), K at most as many as COLOURS.
    """
    picture = 1 - 0.35 * (1 - screen.astype(float).mean(axis=2, keepdims=True).repeat(3, axis=2) / 255)
    height, width = screen.shape[:2]
    for track, colour in zip(positions, COLOURS, strict=False):
        visits = np.zeros((height, width))
        for x, y in np.round(track[np.isfinite(track).all(axis=1)] - CELL / 2).astype(int):
            visits[max(y, 0) : max(y + CELL, 0), max(x, 0) : max(x + CELL, 0)] += 1
        ink = np.where(visits > 0, 0.15 + 0.85 * np.sqrt(visits / max(visits.max(), 1)), 0)[:, :, None]
        rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        picture = (1 - ink) * picture + ink * rgb
    return picture


def draw_options(ax: Axes, screen: np.ndarray, arrays: Mapping[str, np.ndarray]) -> list[int]:
    """The options that go somewhere and stay, up to eight with different ends, over a faded screen; returns their numbers.

    arrays: "positions" (K, T+1, 2), "rooms" (K, T+1), "ends" (K, 3), "goes" (K,), as `discover` finds them.
    """
    _require.instance(ax, "ax", Axes)
    screen = _require.wholes(screen, "screen", ("H", "W", 3), 0, 255)
    arrays = _require_arrays(arrays, "arrays")
    chosen = _telling_options(arrays["ends"], arrays["goes"])
    here = arrays["rooms"][chosen] == arrays["rooms"][:1, :1]  # other rooms are not on this screen
    tracks = np.where(here[:, :, None], arrays["positions"][chosen], np.nan)
    # An ALE pixel is wider than high: the screen of 160 × 210 was shown as 4 : 3.
    ax.imshow(_density(screen, tracks), aspect=0.75 * screen.shape[1] / screen.shape[0])
    taken: list[np.ndarray] = []
    for option, colour in zip(chosen, COLOURS, strict=False):
        x, y, room = arrays["ends"][option]
        if room == arrays["rooms"][option, 0]:
            label = f"{'−' if option % 2 else '+'}e{option // 2 + 1}"
            text = ax.annotate(
                label, (x, y), _beside((x, y), screen.shape, taken), textcoords="offset points", color=colour
            )
            text.set(fontsize=8, weight="bold", path_effects=[withStroke(linewidth=2, foreground="white")])
    ax.set_axis_off()
    return chosen


def _require_arrays(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """positions (K, T+1, 2), rooms (K, T+1), ends (K, 3), goes (K,)."""
    missing = {"positions", "rooms", "ends", "goes"} - set(_require.mapping(arrays, name, "arrays"))
    if missing:
        raise ValueError(f"{name} must hold positions, rooms, ends and goes, but {min(missing)} is missing.")
    goes = _require.truths(arrays["goes"], f"{name}['goes']", ("K",))
    positions = _require.numbers(arrays["positions"], f"{name}['positions']", (len(goes), "T+1", 2), finite=False)
    rooms = _require.numbers(arrays["rooms"], f"{name}['rooms']", positions.shape[:2])
    ends = _require.numbers(arrays["ends"], f"{name}['ends']", (len(goes), 3), finite=False)
    return {"positions": positions, "rooms": rooms, "ends": ends, "goes": goes}


def _beside(end: tuple[float, float], shape: tuple[int, ...], taken: list[np.ndarray]) -> tuple[int, int]:
    """Where to put a label, in points from its option's end: the first place that no earlier label has, noted in `taken`."""
    at = np.array(end) * (200 / shape[1], -150 / shape[0])  # in points, about: a picture is 200 wide and 150 high
    for offset in ((6, 5), (6, -11), (-24, 5), (-24, -11), (6, 16), (6, -22), (-24, 16), (-24, -22)):
        if all((np.abs(at + offset - other) > (22, 9)).any() for other in taken):
            break
    taken.append(at + offset)
    return offset


def density_figure(screen: np.ndarray, kinds: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """One picture for each kind of direction: title → arrays, as `draw_options` takes them."""
    kinds = {
        _require.text(title, "A title in kinds"): _require_arrays(arrays, f"kinds[{title!r}]")
        for title, arrays in _require.mapping(kinds, "kinds", "titles and arrays").items()
    }
    if not kinds:
        raise ValueError("kinds must hold at least one kind of direction.")
    screen = _require.wholes(screen, "screen", ("H", "W", 3), 0, 255)
    figure = Figure(figsize=(3.2 * len(kinds), 3.1), layout="constrained")
    axes = figure.subplots(1, len(kinds), squeeze=False)[0]
    for ax, (title, arrays) in zip(axes, kinds.items(), strict=True):
        draw_options(ax, screen, arrays)
        ax.set_title(f"{title}\n{int(arrays['goes'].sum())} of {len(arrays['goes'])} go somewhere and stay", fontsize=9)
    return figure
