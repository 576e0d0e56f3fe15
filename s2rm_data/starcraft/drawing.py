"""Pictures of a battle: the map from above beside one agent's polar images, in the same orientation and to scale.

Polar cells are drawn as the wedges of the map that they stand for, with the outlines of the living units over them, so
that one sees at a glance whether image and battle agree. What stays the same (terrain, titles, legends) is drawn once,
on the stage; of every step only what changes, in pictures that are used again. Pillow alone draws: to import matplotlib
and lay out one figure would take longer than all the rest of a preview."""

# T steps, U units of both sides, N agents, I radial cells, J angular cells, P pixels along a side of a panel

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft import battle_paint as paint
from s2rm_data.starcraft.battle_paint import CHOSEN
from s2rm_data.starcraft.codes import ACTION_CATEGORIES, HECS_CHANNELS, HECS_DIVISORS, Action
from s2rm_data.starcraft.rules import MOVES
from s2rm_data.starcraft.units import UNIT_TYPES

Episode = Mapping[str, NDArray[Any]]

_SHARPNESS = 2  # the map is drawn at so many times its size
_UPWARD = np.array((1.0, -1.0))  # y of the map points up, y of a picture down
_TURN = np.linspace(0, 2 * np.pi, 61)[:-1, None] + np.array((0.0, 0.04))
_DASHES = np.stack([np.cos(_TURN), np.sin(_TURN)], axis=-1)  # (60, 2, 2) pieces of a circle
_SIZE = (1360, 688)
_FIELD = (21, 41, 633, 653)  # left, top, right, bottom of the map
_COLUMNS, _ROWS = (691, 921, 1151), (55, 272, 488)  # left and top edges of the panels
PANEL_PIXELS = 172  # P
PANEL_PLACES = [(x, y) for y in _ROWS for x in _COLUMNS][: 4 + len(HECS_CHANNELS)]
_STEP_AT = (_FIELD[2], _FIELD[1] - 8)
_BANNER_AT = ((_COLUMNS[0] + _COLUMNS[2] + PANEL_PIXELS) / 2, _ROWS[0] - 26)
_LEGENDS = ((1143, "unit type"), (1256, "action"))  # left edges and titles
_LEGEND = (
    "blue: agents; red: enemies; bars: health (green), shields (light blue); arrows: moves; lines: targets",
    "yellow disc: what the outlined agent sees; dotted: its weapon's range",
)


def frames(
    episode: Episode,
    *,
    agent: int,
    radius: float,
    terrain: NDArray[Any],
    steps: Iterable[int] | None = None,
    title: str = "",
) -> Iterator[Image.Image]:
    """One RGB picture per step.

    episode: the stored arrays of one episode, without the episode dimension; terrain: (W, H), first index x;
    steps: all that were played unless given."""
    length = int(episode["length"])
    agents = episode["action"].shape[1]
    if not 0 <= agent < agents:
        raise UsageError(f"there is no agent {agent}; this scenario has agents 0 to {agents - 1}")
    picture = _Picture(episode, agent=agent, radius=radius, terrain=terrain, title=title)
    for step in range(length) if steps is None else steps:
        if not 0 <= step < length:
            raise UsageError(f"there is no step {step}; this episode was played for steps 0 to {length - 1}")
        yield picture.draw(step)


class _Picture:
    """What stays (`_stage`), and on it one step after the other. `_window`: left, low, right, high on the map."""

    def __init__(self, episode: Episode, *, agent: int, radius: float, terrain: NDArray[Any], title: str) -> None:
        length = int(episode["length"])
        self._episode, self._agent, self._radius, self._length = episode, agent, radius, length
        self._kind = UNIT_TYPES[int(episode["unit_type"][agent])]
        self._window = paint.battle_window(episode["unit_health"][:length], episode["unit_position"][:length], radius)
        left, top, right, bottom = _FIELD
        pixels_per_unit = (right - left) / (self._window[2] - self._window[0])
        self._channels = _channels(max(1.0, 1.15 * int(episode["height"].max())))
        self._tables = [_table(*channel[1:]) for channel in self._channels]
        ground = _panel_ground()
        self._panel_ground = pixel_numbers(np.asarray(ground))
        self._stage = Image.new("RGB", _SIZE, "white")
        self._draw_stage(terrain, title, ground, pixels_per_unit)
        enlarged = ((right - left) * _SHARPNESS, (bottom - top) * _SHARPNESS)
        self._empty = self._stage.crop(_FIELD).resize(enlarged, Image.Resampling.NEAREST)  # the map
        self._field = self._empty.copy()  # drawn upon anew at every step
        self._scale = pixels_per_unit * _SHARPNESS  # pixels of the enlarged map per map unit
        corner, place = (self._window[0], self._window[3]), episode["unit_position"].astype(np.float64)
        self._places = (place - corner) * _UPWARD * self._scale  # (T, U, 2)
        radial, angular = episode["categories"].shape[2:4]
        self._corners = paint.wedge_corners(radial, angular, radius) * self._scale * _UPWARD
        self._cells = paint.polar_cells(radial, angular, PANEL_PIXELS)
        self._cells[self._cells < 0] = radial * angular  # one more cell, always empty
        self._title, self._letters = paint.font(12 * 80 / 72), paint.font(_SHARPNESS * 8 * 80 / 72, bold=True)

    def draw(self, step: int) -> Image.Image:
        picture = self._stage.copy()
        picture.paste(self._draw_field(step), _FIELD[:2])
        alive = bool(self._episode["agent_alive"][step, self._agent])
        if alive:
            for panel, place in zip(self._panels(step), PANEL_PLACES, strict=True):
                picture.paste(panel, place)
        pen = ImageDraw.Draw(picture)
        pen.text(_STEP_AT, f"step {step + 1} of {self._length}", "black", font=self._title, anchor="rs")
        what = "sees, channel by channel" if alive else "is dead: no image"
        pen.text(_BANNER_AT, f"agent {self._agent} ({self._kind.name}) {what}", "black", font=self._title, anchor="ms")
        return picture

    # -- the map from above, drawn at twice its size so that edges are smooth

    def _draw_field(self, step: int) -> Image.Image:
        episode, picture = self._episode, self._field
        picture.paste(self._empty)
        pen = ImageDraw.Draw(picture, "RGBA")
        if episode["agent_alive"][step, self._agent]:
            self._draw_view(pen, step)
        living = np.flatnonzero(episode["unit_health"][step] > 0)
        for unit in living:
            self._draw_order(pen, step, int(unit))
        for unit in living:
            self._draw_unit(pen, step, int(unit))
        return picture.reduce(_SHARPNESS)

    def _draw_view(self, pen: Any, step: int) -> None:
        place = self._places[step, self._agent]
        kind = self._kind
        x, y = place.tolist()
        style = {"fill": f"{paint.SIGHT}73", "outline": CHOSEN, "width": 2 * _SHARPNESS}
        paint.draw_circle(pen, (x, y), self._radius * self._scale, **style)
        corners = place + self._corners
        for ring in corners[1:-1:3]:
            pen.line(ring.ravel().tolist(), fill=f"{CHOSEN}60")
        for ray in range(0, corners.shape[1] - 1, 2):
            pen.line(corners[[1, -1], ray].ravel().tolist(), fill=f"{CHOSEN}60")
        reach = (max(kind.range, kind.heal_range) + kind.radius) * self._scale
        for dash in (place + reach * _DASHES).reshape(-1, 4).tolist():
            pen.line(dash, fill=CHOSEN, width=2 * _SHARPNESS)

    def _draw_unit(self, pen: Any, step: int, unit: int) -> None:
        episode = self._episode
        edge, width = (CHOSEN, 3) if unit == self._agent else ("black", 1)
        paint.draw_unit(
            pen, int(episode["unit_type"][unit]), self._places[step, unit].tolist(), self._scale, self._letters,
            health=float(episode["unit_health"][step, unit]), shield=float(episode["unit_shield"][step, unit]),
            enemy=unit >= episode["action"].shape[1], edge=edge, width=width * _SHARPNESS,
        )  # fmt: skip

    def _side(self, unit: int) -> str:
        return paint.side_colour(unit, self._episode["action"].shape[1])

    def _draw_order(self, pen: Any, step: int, unit: int) -> None:
        """An arrow along a move, a thin one to the target of an attack or a heal."""
        episode = self._episode
        start = self._places[step, unit]
        target = int(episode["unit_target"][step, unit])
        friend = unit < episode["action"].shape[1]
        action = int(episode["action"][step, unit]) if friend else Action.ATTACK
        if action in MOVES:
            end, width, opacity = start + np.array(MOVES[action]) * self._scale * _UPWARD, 2, "e6"
        elif target >= 0 and action >= Action.ATTACK:
            end, width, opacity = self._places[step, target], 1, "a6"
        else:
            return
        paint.draw_arrow(pen, start, end, width * _SHARPNESS, 7 * _SHARPNESS, self._side(unit) + opacity)

    # -- the agent's images, channel by channel

    def _panels(self, step: int) -> Iterator[Image.Image]:
        """Pixels are single numbers here, red first in memory; 0 shows the empty panel."""
        side, ground = PANEL_PIXELS, self._panel_ground
        outlines = self._outlines(step)
        for number in range(len(PANEL_PLACES)):
            values = self._channel(step, number)
            cells = np.where(values != 0, self._colours(number, values), np.uint32(0))
            pixels = np.append(cells, np.uint32(0))[self._cells]  # (P, P)
            shown = np.where(outlines != 0, outlines, np.where(pixels != 0, pixels, ground))
            yield Image.frombuffer("RGB", (side, side), shown.tobytes(), "raw", "RGBX", 0, 1)

    def _channel(self, step: int, number: int) -> NDArray[Any]:
        episode, at = self._episode, (step, self._agent)
        if number < 3:
            return episode["categories"][at][..., number].ravel()
        return episode["height"][at].ravel() if number == 3 else episode["hecs"][at][..., number - 4].ravel()

    def _outlines(self, step: int) -> NDArray[np.uint32]:
        """(P, P) of the living units in sight, the same in all panels."""
        episode, side = self._episode, PANEL_PIXELS
        scale, middle = side / (2 * self._radius), side / 2
        offsets = episode["unit_position"][step] - episode["unit_position"][step, self._agent]
        drawn = Image.new("RGBA", (side, side))
        pen = ImageDraw.Draw(drawn)
        in_sight = np.hypot(offsets[:, 0], offsets[:, 1]) < self._radius
        for unit in np.flatnonzero(in_sight & (episode["unit_health"][step] > 0)):
            r = UNIT_TYPES[int(episode["unit_type"][unit])].radius * scale
            x, y = middle + offsets[unit, 0] * scale, middle - offsets[unit, 1] * scale
            pen.ellipse((x - r, y - r, x + r, y + r), outline=self._side(int(unit)))
        return np.frombuffer(drawn.tobytes(), np.uint32).reshape(side, side)

    # -- what stays

    def _draw_stage(self, terrain: NDArray[Any], title: str, ground: Image.Image, scale: float) -> None:
        pen, (left, top, right, bottom) = ImageDraw.Draw(self._stage), _FIELD
        pen.text((left, top - 8), title, "black", font=paint.font(13.3), anchor="ls")
        self._stage.paste(paint.ground_picture(paint.grey_heights(terrain), self._window, scale), (left, top))
        pen.rectangle((left - 1, top - 1, right, bottom), outline="black")
        for row, line in enumerate(_LEGEND):
            pen.text(((left + right) / 2, bottom + 5 + 12 * row), line, "black", font=paint.font(10), anchor="ma")
        for (x, y), (name, colours, low, high), table in zip(PANEL_PLACES, self._channels, self._tables, strict=True):
            pen.text((x + PANEL_PIXELS / 2, y - 7), name, "black", font=paint.font(11.1), anchor="ms")
            self._stage.paste(ground, (x, y))
            if colours in (paint.GREYS, paint.HEAT):
                self._draw_bar(pen, x + PANEL_PIXELS // 5, y + PANEL_PIXELS + 6, table[0], low, high)
        kinds = sorted({int(kind) for kind in self._episode["unit_type"]})
        actions = np.unique(self._episode["categories"][..., 2]).tolist()
        _draw_legend(pen, *_LEGENDS[0], [(paint.TYPE_COLOURS[kind], UNIT_TYPES[kind].name) for kind in kinds])
        _draw_legend(pen, *_LEGENDS[1], [(paint.ACTION_COLOURS[n], ACTION_CATEGORIES[n]) for n in actions])

    def _draw_bar(self, pen: Any, x: int, y: int, table: NDArray[np.uint8], low: float, high: float) -> None:
        width = PANEL_PIXELS * 3 // 5
        bar = Image.fromarray(np.broadcast_to(table[np.linspace(0, 255, width).astype(int)], (6, width, 3)).copy())
        pen.rectangle((x - 1, y - 1, x + width, y + 6), outline="black")
        self._stage.paste(bar, (x, y))
        for place, value in ((x - 1, f"{low:g}"), (x + width, f"{high:.3g}")):
            pen.line((place, y, place, y + 8), fill="black")
            pen.text((place, y + 9), value, "black", font=paint.font(7.8), anchor="ma")

    def _colours(self, panel: int, values: NDArray[Any]) -> NDArray[np.uint32]:
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
        ("friendly marker", ("#ffffff", paint.FRIEND), 0, 1),
        ("unit type", paint.TYPE_COLOURS, 0, 1),
        ("action", paint.ACTION_COLOURS, 0, 1),
        ("terrain height", paint.GREYS, 0, highest),
        *(
            (f"{name} / {divisor:g}", paint.HEAT, 0, 1)
            for name, divisor in zip(HECS_CHANNELS, HECS_DIVISORS, strict=True)
        ),
    ]


def _table(colours: Sequence[str], low: float, high: float) -> tuple[NDArray[np.uint8], float]:
    """Colours (n, 3), and the number that turns a value into the index of its colour."""
    if colours in (paint.GREYS, paint.HEAT):
        return paint.mixed(colours), 255 / (high - low)
    return np.array([paint.rgb(colour) for colour in colours], np.uint8), 1.0


def _panel_ground() -> Any:
    """An empty disc with its rim, drawn large so that its edge is smooth."""
    large = Image.new("RGB", (8 * PANEL_PIXELS, 8 * PANEL_PIXELS), "white")
    ImageDraw.Draw(large).ellipse(
        (0, 0, 8 * PANEL_PIXELS - 1, 8 * PANEL_PIXELS - 1), fill=paint.PANEL, outline=paint.RIM, width=8
    )
    return large.reduce(8)


def _draw_legend(pen: Any, x: int, title: str, entries: Sequence[tuple[str, str]]) -> None:
    pen.text((x + 4, _ROWS[2] - 6), title, "black", font=paint.font(10), anchor="la")
    for row, (colour, name) in enumerate(entries):
        y = _ROWS[2] + 12 + round(15.4 * row)
        pen.rectangle((x, y, x + 12, y + 7), fill=colour, outline="grey")
        pen.text((x + 20, y + 3), name, "black", font=paint.font(10), anchor="lm")
