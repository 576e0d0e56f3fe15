"""What stays the same in all pictures of a battle, drawn once: terrain, titles, legends, colour bars.

Places of what changes are told in pixels, from the top left corner of the picture. Pillow alone draws: importing
matplotlib and laying out one figure would take longer than all the rest of a preview.
"""

# P pixels along a side of a panel

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.generators.sc2.channels import ACTION_CATEGORIES, HECS_CHANNELS, HECS_DIVISORS
from s2rm_data.generators.sc2.draw import ACTION_COLOURS, FRIEND, TYPE_COLOURS
from s2rm_data.generators.sc2.units import UNIT_TYPES

_SIZE = (1360, 688)
_FIELD = (21, 41, 633, 653)  # left, top, right, bottom of the map
_COLUMNS, _ROWS = (691, 921, 1151), (55, 272, 488)  # left and top edges of the panels
_PANEL = 172  # P
_LEGENDS = ((1143, "unit type"), (1256, "action"))  # left edges and titles
_LEGEND = (
    "blue: agents; red: enemies; bars: health (green), shields (light blue); arrows: moves; lines: targets",
    "yellow disc: what the outlined agent sees; dotted: its weapon's range",
)
_GROUND, _RIM = (244, 244, 244), (187, 187, 187)  # of a panel
# ColorBrewer's Greys, dark first, and YlOrRd without its palest end, so that a small value differs from none.
_GREYS = ("#000000", "#252525", "#525252", "#737373", "#969696", "#bdbdbd", "#d9d9d9", "#f0f0f0", "#ffffff")
_HEAT = ("#fedc7c", "#feb24c", "#fd8d3c", "#fc4e2a", "#e31a1c", "#bd0026", "#800026")


@lru_cache
def font(pixels: float, bold: bool = False) -> Any:
    """DejaVu Sans, which matplotlib brings along; it is not imported for it."""
    from PIL import ImageFont

    found = find_spec("matplotlib")
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    path = Path(str(found.origin)).parent / "mpl-data" / "fonts" / "ttf" / name if found else None
    return ImageFont.truetype(str(path), pixels) if path and path.is_file() else ImageFont.load_default(pixels)


class Stage:
    """`picture` is all that stays; `window` is the part of the map (left, low, right, high), a square."""

    field_box = _FIELD
    panel_pixels = _PANEL
    panel_places = [(x, y) for y in _ROWS for x in _COLUMNS][: 4 + len(HECS_CHANNELS)]
    step_place = (_FIELD[2], _FIELD[1] - 8)
    banner_place = ((_COLUMNS[0] + _COLUMNS[2] + _PANEL) / 2, _ROWS[0] - 26)

    def __init__(
        self,
        episode: Mapping[str, NDArray[Any]],
        *,
        window: tuple[float, float, float, float],
        terrain: NDArray[Any],
        title: str,
    ) -> None:
        from PIL import Image, ImageDraw

        self._window = window
        self.scale = (_FIELD[2] - _FIELD[0]) / (window[2] - window[0])  # pixels per map unit
        self._channels = _channels(max(1.0, 1.15 * int(episode["height"].max())))
        self._tables = [_table(*channel[1:]) for channel in self._channels]
        ground = _panel_ground()
        self.panel_ground = pixel_numbers(np.asarray(ground))
        self.picture = Image.new("RGB", _SIZE, "white")
        pen = ImageDraw.Draw(self.picture)
        self._draw_field(pen, terrain, title)
        self._draw_panels(pen, ground)
        kinds = sorted({int(kind) for kind in episode["unit_type"]})
        actions = np.unique(episode["categories"][..., 2]).tolist()
        _draw_legend(pen, *_LEGENDS[0], [(TYPE_COLOURS[kind], UNIT_TYPES[kind].name) for kind in kinds])
        _draw_legend(pen, *_LEGENDS[1], [(ACTION_COLOURS[n], ACTION_CATEGORIES[n]) for n in actions])

    def _draw_field(self, pen: Any, terrain: NDArray[Any], title: str) -> None:
        left, top, right, bottom = _FIELD
        pen.text((left, top - 8), title, "black", font=font(13.3), anchor="ls")
        self.picture.paste(self._ground(terrain), (left, top))
        pen.rectangle((left - 1, top - 1, right, bottom), outline="black")
        for row, line in enumerate(_LEGEND):
            pen.text(((left + right) / 2, bottom + 5 + 12 * row), line, "black", font=font(10), anchor="ma")

    def _ground(self, terrain: NDArray[Any]) -> Any:
        """The terrain in greys, the lower the darker; white where the map ends."""
        from PIL import Image

        lowest, highest = float(terrain.min()), max(float(terrain.max()), 1.0)
        span = highest - lowest
        share = (terrain - (lowest - span - 1)) / (2.4 * span + 1.4)
        greys = _mixed(_GREYS)[np.rint(255 * share).astype(np.int64)]  # (W, H, 3)
        left, _, _, high = self._window
        centres = (np.arange(_FIELD[2] - _FIELD[0]) + 0.5) / self.scale
        x, y = np.floor(left + centres).astype(np.int64), np.floor(high - centres).astype(np.int64)
        width, height = terrain.shape
        shown = greys[np.clip(x, 0, width - 1)[None, :], np.clip(y, 0, height - 1)[:, None]]
        inside = ((x >= 0) & (x < width))[None, :] & ((y >= 0) & (y < height))[:, None]
        return Image.fromarray(np.where(inside[..., None], shown, np.uint8(255)))

    def _draw_panels(self, pen: Any, ground: Any) -> None:
        for (x, y), (name, colours, low, high), table in zip(
            self.panel_places, self._channels, self._tables, strict=True
        ):
            pen.text((x + _PANEL / 2, y - 7), name, "black", font=font(11.1), anchor="ms")
            self.picture.paste(ground, (x, y))
            if colours in (_GREYS, _HEAT):
                self._draw_bar(pen, x + _PANEL // 5, y + _PANEL + 6, table[0], low, high)

    def _draw_bar(self, pen: Any, x: int, y: int, table: NDArray[np.uint8], low: float, high: float) -> None:
        from PIL import Image

        width = _PANEL * 3 // 5
        bar = Image.fromarray(np.broadcast_to(table[np.linspace(0, 255, width).astype(int)], (6, width, 3)).copy())
        pen.rectangle((x - 1, y - 1, x + width, y + 6), outline="black")
        self.picture.paste(bar, (x, y))
        for place, value in ((x - 1, f"{low:g}"), (x + width, f"{high:.3g}")):
            pen.line((place, y, place, y + 8), fill="black")
            pen.text((place, y + 9), value, "black", font=font(7.8), anchor="ma")

    def field(self, enlargement: int) -> Any:
        """The empty map, enlarged."""
        from PIL import Image

        left, top, right, bottom = _FIELD
        size = ((right - left) * enlargement, (bottom - top) * enlargement)
        return self.picture.crop(_FIELD).resize(size, Image.Resampling.NEAREST)

    def in_field(self, place: NDArray[Any]) -> NDArray[np.float64]:
        """Map coordinates (..., 2) in pixels from the field's top left corner."""
        left, _, _, high = self._window
        return np.stack([place[..., 0] - left, high - place[..., 1]], axis=-1).astype(np.float64) * self.scale

    def colours(self, panel: int, values: NDArray[Any]) -> NDArray[np.uint32]:
        """Of a channel's values (n,), as `pixel_numbers`."""
        table, scale = self._tables[panel]
        return pixel_numbers(table)[np.clip(np.rint(values * scale).astype(np.int64), 0, len(table) - 1)]


def pixel_numbers(rgb: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Colours (..., 3) as one number each: red, green, blue and 255 in memory, so that none is 0."""
    opaque = np.concatenate([rgb, np.full_like(rgb[..., :1], 255)], axis=-1)
    return np.ascontiguousarray(opaque).view(np.uint32)[..., 0]


def _channels(highest: float) -> list[tuple[str, Sequence[str], float, float]]:
    """(title, colours by number or to mix, value of their low end, value of their high end)."""
    return [
        ("friendly marker", ("#ffffff", FRIEND), 0, 1),
        ("unit type", TYPE_COLOURS, 0, 1),
        ("action", ACTION_COLOURS, 0, 1),
        ("terrain height", _GREYS, 0, highest),
        *((f"{name} / {divisor:g}", _HEAT, 0, 1) for name, divisor in zip(HECS_CHANNELS, HECS_DIVISORS, strict=True)),
    ]


def _table(colours: Sequence[str], low: float, high: float) -> tuple[NDArray[np.uint8], float]:
    """Colours (n, 3), and the number that turns a value into the index of its colour."""
    if colours in (_GREYS, _HEAT):
        return _mixed(colours), 255 / (high - low)
    return np.array([_rgb(colour) for colour in colours], np.uint8), 1.0


def _mixed(colours: Sequence[str]) -> NDArray[np.uint8]:
    """(256, 3) from the first colour to the last."""
    rgb = np.array([_rgb(colour) for colour in colours], np.float64)
    places = np.linspace(0, len(colours) - 1, 256)
    return np.rint([np.interp(places, np.arange(len(colours)), part) for part in rgb.T]).T.astype(np.uint8)


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def _panel_ground() -> Any:
    """An empty disc with its rim, drawn large so that its edge is smooth."""
    from PIL import Image, ImageDraw

    large = Image.new("RGB", (8 * _PANEL, 8 * _PANEL), "white")
    ImageDraw.Draw(large).ellipse((0, 0, 8 * _PANEL - 1, 8 * _PANEL - 1), fill=_GROUND, outline=_RIM, width=8)
    return large.reduce(8)


def _draw_legend(pen: Any, x: int, title: str, entries: Sequence[tuple[str, str]]) -> None:
    pen.text((x + 4, _ROWS[2] - 6), title, "black", font=font(10), anchor="la")
    for row, (colour, name) in enumerate(entries):
        y = _ROWS[2] + 12 + round(15.4 * row)
        pen.rectangle((x, y, x + 12, y + 7), fill=colour, outline="grey")
        pen.text((x + 20, y + 3), name, "black", font=font(10), anchor="lm")
