"""What stays the same in all pictures of a battle, drawn once with matplotlib: terrain, titles, legends, colour bars.

Places of what changes are told in pixels, from the top left corner of the picture.
"""

# P pixels along a side of a panel

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.generators.sc2.draw import ACTION_COLOURS, FRIEND, TYPE_COLOURS
from s2rm_data.generators.sc2.polar import ACTION_CATEGORIES, HECS_CHANNELS, HECS_DIVISORS
from s2rm_data.generators.sc2.units import UNIT_TYPES

_INCHES, _DPI = (17, 8.6), 80
_PANEL_GRID = {"wspace": 0.06, "hspace": 0.26, "top": 0.92, "bottom": 0.04, "left": 0.02, "right": 0.98}
_LEGEND = (
    "blue: agents; red: enemies; bars: health (green), shields (light blue); arrows: moves; lines: targets\n"
    "yellow disc: what the outlined agent sees; dotted: its weapon's range"
)
_PALE = 0.23  # the colour map's share below 0, so that a small value differs from none


@lru_cache
def font(pixels: float, bold: bool = False) -> Any:
    """The letters of matplotlib, which brings them along."""
    from matplotlib import get_data_path
    from PIL import ImageFont

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / name), pixels)


class Stage:
    """`picture` is all that stays; `window` is the part of the map (left, low, right, high)."""

    def __init__(
        self,
        episode: Mapping[str, NDArray[Any]],
        *,
        window: tuple[float, float, float, float],
        radius: float,
        terrain: NDArray[Any],
        title: str,
    ) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from PIL import Image

        self._episode, self._window, self._terrain = episode, window, terrain
        figure = Figure(figsize=_INCHES, dpi=_DPI, facecolor="white")
        canvas = FigureCanvasAgg(figure)
        left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.08), squeeze=False)[0]
        field = self._add_field(left, title)
        self._tables = [_table(*channel[1:]) for channel in self._channels()]
        panels = self._add_panels(right, radius)
        canvas.draw()
        self.picture = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())
        self._measure(field, panels)

    def _add_field(self, figure: Any, title: str) -> Any:
        axes = figure.add_axes((0.02, 0.05, 0.96, 0.89))
        left, low, right, high = self._window
        axes.set(xticks=[], yticks=[], aspect="equal", xlim=(left, right), ylim=(low, high))
        width, height = self._terrain.shape
        lowest, highest = float(self._terrain.min()), max(float(self._terrain.max()), 1.0)
        span = highest - lowest
        shade = {"cmap": "Greys_r", "vmin": lowest - span - 1, "vmax": highest + 0.4 * span + 0.4}
        axes.imshow(self._terrain.T, origin="lower", extent=(0, width, 0, height), **shade)
        axes.set(xlim=(left, right), ylim=(low, high))
        axes.set_title(title, fontsize=12, loc="left")
        figure.text(0.5, 0.005, _LEGEND, ha="center", va="bottom", fontsize=9)
        return axes

    def _channels(self) -> list[tuple[str, Any, float, float]]:
        """(title, colours by number or the name of a colour map, value of its low end, value of its high end)."""
        highest = max(1.0, 1.15 * int(self._episode["height"].max()))
        return [
            ("friendly marker", ("#ffffff", FRIEND), 0, 1),
            ("unit type", TYPE_COLOURS, 0, 1),
            ("action", ACTION_COLOURS, 0, 1),
            ("terrain height", "Greys_r", 0, highest),
            *(
                (f"{name} / {divisor:g}", "YlOrRd", 0, 1)
                for name, divisor in zip(HECS_CHANNELS, HECS_DIVISORS, strict=True)
            ),
        ]

    def _add_panels(self, figure: Any, radius: float) -> list[Any]:
        from matplotlib.patches import Circle

        axes = figure.subplots(3, 3, gridspec_kw=_PANEL_GRID)
        axes.flat[-1].remove()  # the legends' place
        for panel, (name, colours, low, high), table in zip(axes.flat, self._channels(), self._tables, strict=False):
            panel.set(xticks=[], yticks=[], aspect="equal", xlim=(-radius, radius), ylim=(-radius, radius))
            panel.set_title(name, fontsize=10)
            panel.set_frame_on(False)
            panel.add_artist(Circle((0, 0), radius, fc="#f4f4f4", ec="#bbbbbb", lw=0.8))
            if isinstance(colours, str):
                _add_bar(panel, table[0], low, high)
        self._add_legend(figure)
        return list(axes.flat[:-1])

    def _add_legend(self, figure: Any) -> None:
        from matplotlib.patches import Patch

        kinds = sorted({int(kind) for kind in self._episode["unit_type"]})
        types = [Patch(fc=TYPE_COLOURS[kind], ec="grey", label=UNIT_TYPES[kind].name) for kind in kinds]
        seen = [int(value) for value in np.unique(self._episode["categories"][..., 2])]
        actions = [
            Patch(fc=ACTION_COLOURS[value], ec="grey", label=name)
            for value, name in enumerate(ACTION_CATEGORIES)
            if value in seen
        ]
        kwargs = {"fontsize": 9, "frameon": False, "handlelength": 1.2, "title_fontsize": 9, "loc": "upper left"}
        figure.legend(handles=types, bbox_to_anchor=(0.68, 0.31), title="unit type", **kwargs)
        figure.legend(handles=actions, bbox_to_anchor=(0.84, 0.31), title="action", **kwargs)

    def _measure(self, field: Any, panels: list[Any]) -> None:
        height = self.picture.height

        def box(axes: Any) -> tuple[int, int, int, int]:
            """(left, top, right, bottom)."""
            found = axes.get_window_extent()
            return round(found.x0), height - round(found.y1), round(found.x1), height - round(found.y0)

        self.field_box = box(field)
        boxes = [box(panel) for panel in panels]
        self.panel_pixels = min(min(right - left, bottom - top) for left, top, right, bottom in boxes)
        self.panel_places = [(left, top) for left, top, _, _ in boxes]
        left, top, right, _ = self.field_box
        self.scale = (right - left) / (self._window[2] - self._window[0])  # pixels per map unit
        self.step_place = (right, top - 8)
        middle = (boxes[0][0] + boxes[2][2]) / 2
        self.banner_place = (middle, boxes[0][1] - 26)
        x, y = self.panel_places[0]
        first = self.picture.crop((x, y, x + self.panel_pixels, y + self.panel_pixels))
        self.panel_ground: NDArray[np.uint8] = np.asarray(first)

    def field(self, enlargement: int) -> Any:
        """The empty map, enlarged."""
        from PIL import Image

        left, top, right, bottom = self.field_box
        size = ((right - left) * enlargement, (bottom - top) * enlargement)
        return self.picture.crop(self.field_box).resize(size, Image.Resampling.NEAREST)

    def in_field(self, place: NDArray[Any]) -> NDArray[np.float64]:
        """Map coordinates (..., 2) in pixels from the field's top left corner."""
        left, _, _, high = self._window
        return np.stack([place[..., 0] - left, high - place[..., 1]], axis=-1).astype(np.float64) * self.scale

    def colours(self, panel: int, values: NDArray[Any]) -> NDArray[np.uint8]:
        """(n, 3) of a channel's values (n,)."""
        table, scale = self._tables[panel]
        return table[np.clip(np.rint(values * scale).astype(np.int64), 0, len(table) - 1)]


def _table(colours: Any, low: float, high: float) -> tuple[NDArray[np.uint8], float]:
    """Colours (n, 3), and the number that turns a value into the index of its colour."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    if not isinstance(colours, str):
        return np.rint(255 * np.array([to_rgb(colour) for colour in colours])).astype(np.uint8), 1.0
    start = _PALE if colours != "Greys_r" else 0.0
    mixed = colormaps[colours](np.linspace(start, 1, 256))[:, :3]
    return np.rint(255 * mixed).astype(np.uint8), 255 / (high - low)


def _add_bar(panel: Any, table: NDArray[np.uint8], low: float, high: float) -> None:
    bar = panel.inset_axes((0.2, -0.07, 0.6, 0.035))
    bar.imshow(table[None], aspect="auto", extent=(low, high, 0, 1))
    bar.set(yticks=[], xticks=[low, high], xticklabels=[f"{low:g}", f"{high:.3g}"])
    bar.tick_params(labelsize=7, length=2, pad=1)
