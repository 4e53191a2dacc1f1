"""Films of options: what the screen showed while an option was followed, and the avatar's way over it (notebook 10).

A film is one picture, a sheet with the frames in reading order, COLUMNS in a row. An Atari screen has few colours, so the
sheet keeps them all in a palette; and as each frame stands beside the one before it, PNG finds nearly all of it said
already: a hundred full screens take some 25 kB. The way is kept as numbers and drawn where the film is shown.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from eigenlib import _require
from eigenlib.atari.metrics import places
from eigenlib.atari.options import visit
from eigenlib.atari.pixels import PixelWorld, require_pixel_world

COLUMNS = 10
# In pixels: in one decision no avatar walks or falls further than 16, and one that is put elsewhere goes over 30.
JUMP = 24.0


class Film(NamedTuple):
    """One option, T decisions long: fewer than were asked for if the game ended.

    sheet: PNG of T+1 frames, each `size` = (width, height) pixels, to be shown width : height = `shape`.
    path: (T+1, 2) x, y in pixels of a frame, NaN where unknown; rooms: (T+1,).
    trails: stretches (first, last) of steps that a line may join.  deaths: (step, the last step before it with a place).
    rate: decisions a second when the game is played.
    """

    sheet: bytes
    size: tuple[int, int]
    shape: float
    path: np.ndarray
    rooms: np.ndarray
    trails: list[tuple[int, int]]
    deaths: list[tuple[int, int]]
    rate: float
    caption: str = ""

    def frame(self, step: int) -> np.ndarray:
        """(H, W, 3) uint8: the screen after so many decisions."""
        from PIL import Image

        if not 0 <= _require.whole(step, "step") < len(self.path):
            raise ValueError(f"This film has the steps 0 to {len(self.path) - 1}, not {step!r}.")
        (width, height), (row, column) = self.size, divmod(step, COLUMNS)
        box = (column * width, row * height, (column + 1) * width, (row + 1) * height)
        return np.asarray(Image.open(io.BytesIO(self.sheet)).crop(box).convert("RGB"))


def film(
    world: PixelWorld,
    actions: np.ndarray,
    positions: np.ndarray,
    rooms: np.ndarray | None = None,
    lives: np.ndarray | None = None,
    *,
    start: Any = None,
    caption: str = "",
) -> Film:
    """The film of one option: actions (T,) taken again; positions (T+1, 2), rooms and lives (T+1,) as noted then.

    start: the saved state from which the option was followed; None is the state that the world is in, and stays in.
    """
    require_pixel_world(world)
    actions = _require.wholes(actions, "actions", ("T",), -1, world.n_actions - 1, empty=True)
    steps = len(actions) + 1
    positions, rooms, lives = _track(
        positions,
        np.full(steps, -1) if rooms is None else rooms,
        np.zeros(steps, int) if lives is None else lives,
        steps,
    )
    _require.text(caption, "caption")
    frames, seen = replay(world, actions, start)
    positions, rooms, lives = positions[: len(frames)], rooms[: len(frames)], lives[: len(frames)]
    known = np.isfinite(positions).all(axis=1)
    wrong = np.flatnonzero(known & ~np.isclose(seen, positions, atol=0.01).all(axis=1))
    if len(wrong):
        raise ValueError(
            f"This {world.name} is not the world in which the option was followed: after {wrong[0]} decisions the avatar "
            f"should be at {positions[wrong[0]]}, not at {seen[wrong[0]]}. Give the same game, seed and start."
        )
    height, width = frames.shape[1:3]
    # An ALE pixel is wider than high: the screen of 160 × 210 was shown as 4 : 3.
    shape = 4 / 3 if frames.ndim == 4 else width / height
    return Film(
        sheet=_sheet(frames),
        size=(width, height),
        shape=shape,
        path=positions,
        rooms=rooms,
        trails=_trails(positions, rooms, lives),
        deaths=_deaths(lives, known),
        rate=60 / getattr(world, "frame_skip", 5),
        caption=caption,
    )


def replay(world: PixelWorld, actions: np.ndarray, start: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """An option's actions, (T,), taken again from the same state → (T+1, …) screens, and where its avatar was, (T+1, 2)."""
    require_pixel_world(world)
    actions = _require.wholes(actions, "actions", ("T",), -1, world.n_actions - 1, empty=True)
    look, nowhere = getattr(world, "screen", world.frame), (np.nan, np.nan)
    with visit(world, start):
        frames, seen = [look()], [world.position() or nowhere]
        for action in actions[actions >= 0]:
            world.act(int(action))
            frames.append(look())
            seen.append(world.position() or nowhere)
    return np.stack(frames), np.array(seen)


def films(
    world: PixelWorld, did: Mapping[str, np.ndarray], purposes: Iterable[int] = range(1, 7), *, start: Any = None
) -> dict[tuple[int, int], Film]:
    """{(number of the eigenpurpose, ±1): its film}, numbers from 1 on as in e₁.

    did: arrays of one kind of direction, as `discover` finds them: "actions" (K, T), "positions" (K, T+1, 2), "rooms", "lives"
    (K, T+1), "goes", "stays", "deaths", "stops" (K,), options in the order e₁, −e₁, e₂, …
    """
    require_pixel_world(world)
    did = _require_did(did)
    there, found = len(did["actions"]) // 2, {}
    for purpose in _require.several(purposes, "purposes", "numbers of eigenpurposes"):
        if not 1 <= _require.whole(purpose, "purposes") <= there:
            raise ValueError(f"There are films of the eigenpurposes 1 to {there}, not of {purpose!r}.")
        for sign in (1, -1):
            option = 2 * (purpose - 1) + (sign < 0)
            track = (did[name][option] for name in ("actions", "positions", "rooms", "lives"))
            found[purpose, sign] = film(world, *track, start=start, caption=_what_it_did(did, option))
    return found


def _what_it_did(did: Mapping[str, np.ndarray], option: int) -> str:
    """One option in words, from the numbers that `discover` found: "goes somewhere and stays, 1 life lost"."""
    actions, deaths, stop = did["actions"][option], int(did["deaths"][option]), int(did["stops"][option])
    taken = int((actions >= 0).sum())
    if not np.isfinite(did["positions"][option]).any():
        said = ["nobody knows where its avatar is"]
    elif did["goes"][option]:
        said = ["goes somewhere and stays"]
    else:  # 0.8 is the share of late steps that `metrics.behaviour` calls staying
        said = ["stays near its start" if did["stays"][option] >= 0.8 else "does not settle"]
    if deaths:
        said.append(f"{deaths} {'life' if deaths == 1 else 'lives'} lost")
    if stop >= 0:
        said.append(f"would end after {stop} decision{'s' * (stop != 1)}" if stop else "would end at once")
    if taken < len(actions):
        said.append(f"the game was over after {taken} decisions")
    return ", ".join(said)


def _trails(positions: np.ndarray, rooms: np.ndarray, lives: np.ndarray) -> list[tuple[int, int]]:
    """Stretches (first, last) of steps in which the avatar itself moved: (T+1, 2), (T+1,), (T+1,) → list.

    A stretch ends where the avatar changes rooms, loses a life, is nowhere, or is put elsewhere by the game: at the start
    again, or at the other mouth of a tunnel.
    """
    known = np.isfinite(positions).all(axis=1)
    far = np.hypot(*np.diff(positions, axis=0).T) > JUMP  # False for NaN
    cut = far | (rooms[1:] != rooms[:-1]) | (lives[1:] < lives[:-1])
    found: list[tuple[int, int]] = []
    for t in np.flatnonzero(known).tolist():
        if found and found[-1][1] == t - 1 and not cut[t - 1]:
            found[-1] = found[-1][0], t
        else:
            found.append((t, t))
    return found


def _track(positions, rooms, lives, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """positions (steps, 2), rooms and lives (steps,): one entry more than there are decisions."""
    positions = places(positions, (steps, 2))
    return positions, _require.wholes(rooms, "rooms", (steps,)), _require.wholes(lives, "lives", (steps,))


def _require_did(did: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of `discover` for K options of T decisions each."""
    given = _require.mapping(did, "did", "arrays")
    names = ("actions", "positions", "rooms", "lives", "goes", "stays", "deaths", "stops")
    missing = [name for name in names if name not in given]
    if missing:
        raise ValueError(f"did must hold {', '.join(names)}, as `discover` finds them, but {missing[0]} is missing.")
    found = {"actions": _require.wholes(given["actions"], "did['actions']", ("K", "T"), -1)}
    count, steps = found["actions"].shape
    for name in ("rooms", "lives", "deaths", "stops"):
        shape = (count, steps + 1) if name in ("rooms", "lives") else (count,)
        found[name] = _require.wholes(given[name], f"did[{name!r}]", shape)
    found["goes"] = _require.truths(given["goes"], "did['goes']", (count,))
    found["stays"] = _require.numbers(given["stays"], "did['stays']", (count,))
    found["positions"] = _require.numbers(given["positions"], "did['positions']", (count, steps + 1, 2), finite=False)
    return found


def _deaths(lives: np.ndarray, known: np.ndarray) -> list[tuple[int, int]]:
    """(step, last step before it at which the avatar was somewhere) of every life lost."""
    before = ((t, np.flatnonzero(known[:t])) for t in (np.flatnonzero(np.diff(lives) < 0) + 1).tolist())
    return [(t, int(steps[-1])) for t, steps in before if len(steps)]


def _sheet(frames: np.ndarray) -> bytes:
    """Frames (N, H, W) in grey or (N, H, W, 3) in colour as one PNG with a palette, every pixel as it was."""
    from PIL import Image

    wide = frames.astype(np.uint32)
    packed = (wide[..., 0] << 16) | (wide[..., 1] << 8) | wide[..., 2] if frames.ndim == 4 else wide * 0x010101
    table = np.zeros(1 << 24, np.uint8)  # a colour's number, by a look-up: sorting millions of pixels takes seconds
    table[packed.ravel()] = 1
    colours = np.flatnonzero(table)
    if len(colours) > 256:
        raise ValueError(f"A film has at most 256 colours, as Atari's all have; these frames have {len(colours)}.")
    table[colours] = np.arange(len(colours))
    count, height, width = packed.shape
    rows = -(-count // COLUMNS)
    cells = np.zeros((rows * COLUMNS, height, width), np.uint8)
    cells[:count] = table[packed]
    sheet = cells.reshape(rows, COLUMNS, height, width).swapaxes(1, 2).reshape(rows * height, COLUMNS * width)
    picture = Image.fromarray(sheet)
    picture.putpalette(np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1).astype(np.uint8).tobytes())
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
