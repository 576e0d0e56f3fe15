"""Drawing a battle: the map from above beside one agent's polar images, in the same orientation and to the same scale.

Polar cells are drawn as the wedges of the map that they stand for, with the outlines of the living units over them, so
that one sees at a glance whether image and battle agree. What stays the same is drawn once (stage.py); of every step
only what changes, in pictures that are used again. Pillow is imported when used. Nothing here decides data.
"""

# T steps, U units of both sides, N agents, I radial cells, J angular cells

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2.codes import Action
from s2rm_data.generators.sc2.units import UNIT_TYPES

if TYPE_CHECKING:
    from PIL.Image import Image

Episode = Mapping[str, NDArray[Any]]

FRIEND, ENEMY = "#2b6cb0", "#c53030"
_SIGHT = "#fff3c4"
_SHARPNESS = 2  # the map is drawn at so many times its size
HEALTH, SHIELD, CHOSEN = "#2f855a", "#63b3ed", "#d69e2e"
_UPWARD = np.array((1.0, -1.0))  # y of the map points up, y of a picture down
_TURN = np.linspace(0, 2 * np.pi, 61)[:-1, None] + np.array((0.0, 0.04))
_DASHES = np.stack([np.cos(_TURN), np.sin(_TURN)], axis=-1)  # (60, 2, 2) pieces of a circle
MOVES: dict[int, tuple[int, int]] = {
    Action.NORTH: (0, 2),
    Action.SOUTH: (0, -2),
    Action.EAST: (2, 0),
    Action.WEST: (-2, 0),
}  # SMAC moves by 2
TYPE_COLOURS = (
    "#ffffff", "#4e79a7", "#59a14f", "#9c755f", "#f28e2b", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#ff9da7",
    "#79706e",
)  # fmt: skip
ACTION_COLOURS = (
    "#ffffff", "#e2b6b6", "#8d99ae", "#1b9e77", "#7570b3", "#e6ab02", "#66a61e", "#d7301f", "#e7298a",
)  # fmt: skip


def frames(
    episode: Episode,
    *,
    agent: int,
    radius: float,
    terrain: NDArray[Any],
    steps: Iterable[int] | None = None,
    title: str = "",
) -> Iterator[Image]:
    """One RGB picture per step.

    episode: the stored arrays of one episode, without the episode dimension; terrain: (W, H), first index x;
    steps: all that were played unless given.
    """
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
    """A stage on which one step after the other is drawn."""

    def __init__(self, episode: Episode, *, agent: int, radius: float, terrain: NDArray[Any], title: str) -> None:
        from s2rm_data.generators.sc2.stage import Stage, font

        length = int(episode["length"])
        window = battle_window(episode["unit_health"][:length], episode["unit_position"][:length], radius)
        self._episode, self._agent, self._radius, self._length = episode, agent, radius, length
        self._stage = Stage(episode, window=window, terrain=terrain, title=title)
        radial, angular = episode["categories"].shape[2:4]
        self._empty = self._stage.field(_SHARPNESS)
        self._field = self._empty.copy()  # drawn upon anew at every step
        self._scale = self._stage.scale * _SHARPNESS  # pixels of the enlarged map per map unit
        self._places = self._stage.in_field(episode["unit_position"]) * _SHARPNESS  # (T, U, 2)
        self._corners = wedge_corners(radial, angular, radius) * self._scale * _UPWARD
        self._cells = polar_cells(radial, angular, self._stage.panel_pixels)
        self._cells[self._cells < 0] = radial * angular  # one more cell, always empty
        self._title, self._letters = font(12 * 80 / 72), font(_SHARPNESS * 8 * 80 / 72, bold=True)

    def draw(self, step: int) -> Image:
        from PIL import ImageDraw

        picture = self._stage.picture.copy()
        left, top, *_ = self._stage.field_box
        picture.paste(self._draw_field(step), (left, top))
        alive = bool(self._episode["agent_alive"][step, self._agent])
        if alive:
            for panel, place in zip(self._panels(step), self._stage.panel_places, strict=True):
                picture.paste(panel, place)
        pen = ImageDraw.Draw(picture)
        pen.text(self._stage.step_place, f"step {step + 1} of {self._length}", "black", font=self._title, anchor="rs")
        pen.text(self._stage.banner_place, self._banner(alive), "black", font=self._title, anchor="ms")
        return picture

    def _banner(self, alive: bool) -> str:
        kind = UNIT_TYPES[int(self._episode["unit_type"][self._agent])].name
        return f"agent {self._agent} ({kind}) " + ("sees, channel by channel" if alive else "is dead: no image")

    # -- the map from above, drawn at twice its size so that edges are smooth

    def _draw_field(self, step: int) -> Image:
        from PIL import ImageDraw

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

    def _circle(self, pen: Any, x: float, y: float, radius: float, **style: Any) -> None:
        r = radius * self._scale
        pen.ellipse((x - r, y - r, x + r, y + r), **style)

    def _draw_view(self, pen: Any, step: int) -> None:
        """Sight and weapon range of the chosen agent, and the polar grid it is seen through."""
        place = self._places[step, self._agent]
        kind = UNIT_TYPES[int(self._episode["unit_type"][self._agent])]
        x, y = place.tolist()
        self._circle(pen, x, y, self._radius, fill=f"{_SIGHT}73", outline=CHOSEN, width=2 * _SHARPNESS)
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
        kind = UNIT_TYPES[int(episode["unit_type"][unit])]
        x, y = self._places[step, unit].tolist()
        edge, width = (CHOSEN, 3) if unit == self._agent else ("black", 1)
        self._circle(pen, x, y, kind.radius, fill=self._side(unit), outline=edge, width=width * _SHARPNESS)
        pen.text((x, y), kind.letters, "white", font=self._letters, anchor="mm")
        bars = [("unit_health", kind.health, HEALTH), ("unit_shield", kind.shield, SHIELD)]
        for row, (name, full, colour) in enumerate(bar for bar in bars if bar[1] > 0):
            low = y - (kind.radius + 0.06 + 0.14 * row) * self._scale
            share = min(float(episode[name][step, unit]) / full, 1.0)
            self._bar(pen, x - 0.45 * self._scale, low, 0.9, "#dddddd")
            self._bar(pen, x - 0.45 * self._scale, low, 0.9 * share, colour)

    def _bar(self, pen: Any, left: float, low: float, width: float, colour: str) -> None:
        if width > 0:
            pen.rectangle((left, low - 0.12 * self._scale, left + width * self._scale, low), fill=colour)

    def _side(self, unit: int) -> str:
        return FRIEND if unit < self._episode["action"].shape[1] else ENEMY

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
        self._arrow(pen, start, end, width * _SHARPNESS, self._side(unit) + opacity)

    def _arrow(self, pen: Any, start: NDArray[Any], end: NDArray[Any], width: int, colour: str) -> None:
        along = end - start
        along = along / max(float(np.hypot(*along)), 1e-9)
        across = np.array((-along[1], along[0]))
        neck, size = end - along * 7 * _SHARPNESS, 3 * _SHARPNESS
        pen.line([tuple(start), tuple(neck)], fill=colour, width=width)
        pen.polygon([tuple(end), tuple(neck + size * across), tuple(neck - size * across)], fill=colour)

    # -- the agent's images, channel by channel

    def _panels(self, step: int) -> Iterator[Image]:
        """Pixels are single numbers here, red first in memory; 0 shows the empty panel."""
        from PIL import Image

        side, ground = self._stage.panel_pixels, self._stage.panel_ground
        outlines = self._outlines(step)
        for number in range(len(self._stage.panel_places)):
            values = self._channel(step, number)
            cells = np.where(values != 0, self._stage.colours(number, values), np.uint32(0))
            pixels = np.append(cells, np.uint32(0))[self._cells]  # (P, P)
            shown = np.where(outlines != 0, outlines, np.where(pixels != 0, pixels, ground))
            yield Image.frombuffer("RGB", (side, side), shown.tobytes(), "raw", "RGBX", 0, 1)

    def _channel(self, step: int, number: int) -> NDArray[Any]:
        """(I * J,)."""
        episode, at = self._episode, (step, self._agent)
        if number < 3:
            return episode["categories"][at][..., number].ravel()
        return episode["height"][at].ravel() if number == 3 else episode["hecs"][at][..., number - 4].ravel()

    def _outlines(self, step: int) -> NDArray[np.uint32]:
        """(P, P) of the living units in sight, the same in all panels."""
        from PIL import Image, ImageDraw

        episode, side = self._episode, self._stage.panel_pixels
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


def polar_cells(radial: int, angular: int, pixels: int) -> NDArray[np.int64]:
    """(P, P) the cell i * J + j that each pixel of a square around an agent lies in, -1 outside its disc.

    As `wedge_corners` bounds them. Ring 0 is one point: its cell 0 stands for all of it.
    """
    line = (np.arange(pixels) + 0.5) / pixels * 2 - 1
    x, y = line[None, :], -line[:, None]
    r = np.hypot(x, y)
    ring = np.minimum(np.floor(r * radial + 0.5).astype(np.int64), radial - 1)
    sector = np.rint(np.arctan2(y, x) * (angular / (2 * np.pi))).astype(np.int64) % angular
    return np.where(r < 1, np.where(ring > 0, ring * angular + sector, 0), -1)


def battle_window(health: NDArray[Any], position: NDArray[Any], radius: float) -> tuple[float, float, float, float]:
    """(left, low, right, high) of the part of the map where the battle takes place, square."""
    places = position[health > 0]
    centre = (places.min(axis=0) + places.max(axis=0)) / 2
    half = max(float((places.max(axis=0) - places.min(axis=0)).max()) / 2 + 2, radius + 1)
    left, low, right, high = (float(v) for v in (*(centre - half), *(centre + half)))
    return left, low, right, high


def wedge_corners(radial: int, angular: int, radius: float) -> NDArray[np.float64]:
    """(I + 1, J + 1, 2) corners of the cells: ring i from (i - 1/2) rho to (i + 1/2) rho, the last one to the edge."""
    rho = radius / radial
    rings = np.concatenate([[0.0], (np.arange(radial - 1) + 0.5) * rho, [radius]])
    angles = (np.arange(angular + 1) - 0.5) * (2 * np.pi / angular)
    return rings[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)[None]
