"""Figures of executed notebooks: which one stands for a lesson, and how it becomes small (report, README)."""

from __future__ import annotations

import base64
import io
import struct
from dataclasses import dataclass
from math import prod
from typing import Any

from eigenlib import _require

TAG = "figure"  # the cell with this tag holds the figure that stands for its lesson


@dataclass(frozen=True)
class Figure:
    """A picture in an output: its bytes as PNG, and what it shows in words."""

    png: bytes
    alt: str

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels, from the PNG's header."""
        width, height = struct.unpack(">II", self.png[16:24])
        return width, height

    def small(self, width: int = 720, height: int = 480) -> bytes:
        """A copy on white that fits into width × height, in 256 colours: some tens of kilobytes."""
        from PIL import Image

        width, height = _require.whole(width, "width", 1, 10_000), _require.whole(height, "height", 1, 10_000)
        picture = Image.open(io.BytesIO(self.png)).convert("RGBA")
        paper = Image.new("RGBA", picture.size, "white")
        paper.alpha_composite(picture)
        copy = paper.convert("RGB")
        copy.thumbnail((width, height), Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        copy.quantize(256, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
        return buffer.getvalue()


def best_figure(notebook) -> Figure | None:
    """The figure of the cell tagged `figure`; where none is tagged the largest, explorers aside; None without figures."""
    outputs = [(cell, output) for cell in notebook.cells for output in cell.get("outputs", [])]
    found = [(cell, output) for cell, output in outputs if "image/png" in output.get("data", {})]
    tagged = [_figure(output) for cell, output in found if TAG in cell.metadata.get("tags", [])]
    if tagged:
        return tagged[0]
    still = [_figure(output) for _, output in found if not output.metadata.get("eigenlib", {}).get("explorer")]
    return max(still or [_figure(output) for _, output in found], key=lambda figure: prod(figure.size), default=None)


def same_picture(one: bytes, other: bytes) -> bool:
    """Do two PNGs show the same pixels? Their bytes may differ where another zlib wrote them."""
    from PIL import ImageChops

    pictures = [_opened(one, "one"), _opened(other, "other")]
    return pictures[0].size == pictures[1].size and ImageChops.difference(*pictures).getbbox(alpha_only=False) is None


def _opened(png: bytes, name: str) -> Any:
    from PIL import Image

    try:
        return Image.open(io.BytesIO(png)).convert("RGBA")
    except (TypeError, ValueError, OSError):
        raise ValueError(f"{name} must be the bytes of a picture, got {_require.shown(png)}.") from None


def _figure(output) -> Figure:
    alt = output.get("metadata", {}).get("image/png", {}).get("alt", "")
    return Figure(base64.b64decode(output.data["image/png"]), alt)
