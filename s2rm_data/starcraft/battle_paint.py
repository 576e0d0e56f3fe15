"""How battles look, wherever they are drawn: colours, units with their bars, orders, the ground, polar cells.

Shared by the frames of environments, by previews and animations (`drawing`), and by the viewer's scenes. Places are in
pixels from the top left corner, sizes in map units times `scale`, pixels per map unit."""

# T steps, U units of both sides, I radial cells, J angular cells, P pixels

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFont

from s2rm_data.starcraft.units import UNIT_TYPES

FRIEND, ENEMY = "#2b6cb0", "#c53030"
HEALTH, SHIELD, BAR = "#2f855a", "#63b3ed", "#dddddd"
CHOSEN, SIGHT = "#d69e2e", "#fff3c4"  # the chosen agent, and what it sees
PANEL, RIM = "#f4f4f4", "#bbbbbb"  # of an empty polar image
GROUND, WALL = "#ebe7de", "#78746e"
TYPE_COLOURS = (
    "#ffffff", "#4e79a7", "#59a14f", "#9c755f", "#f28e2b", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#ff9da7",
    "#79706e",
)  # fmt: skip
ACTION_COLOURS = (
    "#ffffff", "#e2b6b6", "#8d99ae", "#1b9e77", "#7570b3", "#e6ab02", "#66a61e", "#d7301f", "#e7298a",
)  # fmt: skip
# ColorBrewer's Greys, dark first, and YlOrRd without its palest end, so that a small value differs from none.
GREYS = ("#000000", "#252525", "#525252", "#737373", "#969696", "#bdbdbd", "#d9d9d9", "#f0f0f0", "#ffffff")
HEAT = ("#fedc7c", "#feb24c", "#fd8d3c", "#fc4e2a", "#e31a1c", "#bd0026", "#800026")
Window = tuple[float, float, float, float]  # left, low, right, high of a part of the map


@lru_cache
def font(pixels: float, bold: bool = False) -> Any:
    """DejaVu Sans, which matplotlib brings along; it is not imported for it."""
    found = find_spec("matplotlib")
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    path = Path(str(found.origin)).parent / "mpl-data" / "fonts" / "ttf" / name if found else None
    return ImageFont.truetype(str(path), pixels) if path and path.is_file() else ImageFont.load_default(pixels)


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def mixed(colours: Sequence[str]) -> NDArray[np.uint8]:
    """(256, 3) from the first colour to the last."""
    parts = np.array([rgb(colour) for colour in colours], np.float64).T
    places = np.linspace(0, len(colours) - 1, 256)
    return np.rint([np.interp(places, np.arange(len(colours)), part) for part in parts]).T.astype(np.uint8)


def side_colour(unit: int, agents: int) -> str:
    return FRIEND if unit < agents else ENEMY


# -- the ground


def grey_heights(terrain: NDArray[Any]) -> NDArray[np.uint8]:
    """(W, H, 3) heights in greys, the lower the darker."""
    lowest, highest = float(terrain.min()), max(float(terrain.max()), 1.0)
    span = highest - lowest
    share = (terrain - (lowest - span - 1)) / (2.4 * span + 1.4)
    return mixed(GREYS)[np.rint(255 * share).astype(np.int64)]


def shaded_ground(walkable: NDArray[np.bool_], height: NDArray[np.float64]) -> NDArray[np.uint8]:
    """(W, H, 3) ground and walls, the lower the darker."""
    shade = 0.85 + 0.15 * (height - height.min()) / max(float(np.ptp(height)), 1e-9)
    colour = np.where(walkable[..., None], rgb(GROUND), rgb(WALL)) * shade[..., None]
    return colour.astype(np.uint8)


def ground_picture(cells: NDArray[np.uint8], window: Window, scale: float) -> Any:
    """Colours of cells (W, H, 3), first index x, as a picture of the window; white where the map ends."""
    left, low, right, high = window
    x, y = (
        np.floor(np.minimum(first, last) + (np.arange(round((last - first) * scale)) + 0.5) / scale).astype(np.int64)
        for first, last in ((left, right), (low, high))
    )
    y = y[::-1]
    width, height = cells.shape[:2]
    shown = cells[np.clip(x, 0, width - 1)[None, :], np.clip(y, 0, height - 1)[:, None]]
    inside = ((x >= 0) & (x < width))[None, :] & ((y >= 0) & (y < height))[:, None]
    return Image.fromarray(np.where(inside[..., None], shown, np.uint8(255)))


# -- units and orders


def draw_circle(pen: Any, place: Sequence[float], radius_px: float, **style: Any) -> None:
    x, y = place
    pen.ellipse((x - radius_px, y - radius_px, x + radius_px, y + radius_px), **style)


def draw_unit(
    pen: Any, unit_type: int, place: Sequence[float], scale: float, letters: Any, *, health: float, shield: float,
    enemy: bool, edge: str = "black", width: int = 1,
) -> None:  # fmt: skip
    """A disc with the unit's letters, of the font `letters`, and bars of what is left of health and shield."""
    kind, colour = UNIT_TYPES[unit_type], ENEMY if enemy else FRIEND
    x, y = place
    draw_circle(pen, place, kind.radius * scale, fill=colour, outline=edge, width=width)
    pen.text((x, y), kind.letters, "white", font=letters, anchor="mm")
    bars = [(health, kind.most_health(enemy=enemy), HEALTH), (shield, kind.shield, SHIELD)]
    for row, (value, full, filled) in enumerate(bar for bar in bars if bar[1] > 0):
        left, low = x - 0.45 * scale, y - (kind.radius + 0.06 + 0.14 * row) * scale
        for share, shade in ((1.0, BAR), (min(value / full, 1.0), filled)):
            if share > 0:
                pen.rectangle((left, low - 0.12 * scale, left + 0.9 * share * scale, low), fill=shade)


def draw_arrow(pen: Any, start: NDArray[Any], end: NDArray[Any], width: int, head_px: float, colour: str) -> None:
    along = end - start
    along = along / max(float(np.hypot(*along)), 1e-9)
    across = np.array((-along[1], along[0])) * head_px * 3 / 7
    neck = end - along * head_px
    pen.line([tuple(start), tuple(neck)], fill=colour, width=width)
    pen.polygon([tuple(end), tuple(neck + across), tuple(neck - across)], fill=colour)


def battle_window(health: NDArray[Any], position: NDArray[Any], radius: float) -> Window:
    """The part of the map where the battle takes place, square."""
    places = position[health > 0]
    centre = (places.min(axis=0) + places.max(axis=0)) / 2
    half = max(float((places.max(axis=0) - places.min(axis=0)).max()) / 2 + 2, radius + 1)
    left, low, right, high = (float(v) for v in (*(centre - half), *(centre + half)))
    return left, low, right, high


# -- polar cells


def polar_cells(radial: int, angular: int, pixels: int) -> NDArray[np.int64]:
    """(P, P) the cell i * J + j that each pixel of a square around an agent lies in, -1 outside its disc.

    As `wedge_corners` bounds them. Ring 0 is one point: its cell 0 stands for all of it."""
    line = (np.arange(pixels) + 0.5) / pixels * 2 - 1
    x, y = line[None, :], -line[:, None]
    r = np.hypot(x, y)
    ring = np.minimum(np.floor(r * radial + 0.5).astype(np.int64), radial - 1)
    sector = np.rint(np.arctan2(y, x) * (angular / (2 * np.pi))).astype(np.int64) % angular
    return np.where(r < 1, np.where(ring > 0, ring * angular + sector, 0), -1)


def wedge_corners(radial: int, angular: int, radius: float) -> NDArray[np.float64]:
    """(I + 1, J + 1, 2) corners of the cells: ring i from (i - 1/2) rho to (i + 1/2) rho, the last one to the edge."""
    rho = radius / radial
    rings = np.concatenate([[0.0], (np.arange(radial - 1) + 0.5) * rho, [radius]])
    angles = (np.arange(angular + 1) - 0.5) * (2 * np.pi / angular)
    return rings[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)[None]
