"""Drawing a battle: the map from above beside one agent's polar images, in the same orientation and to the same scale.

Polar cells are drawn as the wedges of the map that they stand for, with the outlines of the living units over them, so
that one sees at a glance whether image and battle agree. Nothing here decides data; matplotlib is imported when used.
"""

# T steps, U units of both sides, N agents, I radial cells, J angular cells

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2.codes import Action
from s2rm_data.generators.sc2.polar import ACTION_CATEGORIES, HECS_CHANNELS, HECS_DIVISORS
from s2rm_data.generators.sc2.units import UNIT_TYPES

Episode = Mapping[str, NDArray[Any]]

_PANEL_GRID = {"wspace": 0.04, "hspace": 0.14, "top": 0.92, "bottom": 0.02, "left": 0.02, "right": 0.98}

FRIEND, ENEMY = "#2b6cb0", "#c53030"
HEALTH, SHIELD, CHOSEN = "#2f855a", "#63b3ed", "#d69e2e"
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
) -> Iterator[NDArray[np.uint8]]:
    """One RGB picture (height, width, 3) a step.

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
    """A figure that is drawn over and over again, one step at a time."""

    def __init__(self, episode: Episode, *, agent: int, radius: float, terrain: NDArray[Any], title: str) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self._episode, self._agent, self._radius, self._terrain = episode, agent, radius, terrain
        self._title = title
        self._figure = Figure(figsize=(17, 8.6), dpi=80, facecolor="white")
        self._canvas = FigureCanvasAgg(self._figure)
        left, right = self._figure.subfigures(1, 2, width_ratios=(1.0, 1.08), squeeze=False)[0]
        self._field = left.add_axes((0.02, 0.05, 0.96, 0.89))
        legend = (
            "blue: agents; red: enemies; bars: health (green), shields (light blue); arrows: moves; lines: targets\n"
            "yellow disc: what the outlined agent sees; dotted: its weapon's range"
        )
        left.text(0.5, 0.005, legend, ha="center", va="bottom", fontsize=9)
        self._panels = _Panels(right, episode, agent=agent, radius=radius)

    def draw(self, step: int) -> NDArray[np.uint8]:
        self._draw_field(step)
        self._panels.draw(step)
        self._canvas.draw()
        return np.asarray(self._canvas.buffer_rgba())[..., :3].copy()

    def _draw_field(self, step: int) -> None:
        axes, episode = self._field, self._episode
        axes.clear()
        axes.set(xticks=[], yticks=[], aspect="equal", **self._window())
        width, height = self._terrain.shape
        low, high = float(self._terrain.min()), max(float(self._terrain.max()), 1.0)
        shade = {
            "cmap": "Greys_r",
            "vmin": low - (high - low) - 1,
            "vmax": high + 0.4 * (high - low) + 0.4,
            "zorder": 0,
        }
        axes.imshow(self._terrain.T, origin="lower", extent=(0, width, 0, height), **shade)
        axes.set_title(f"{self._title}   step {step + 1} of {int(episode['length'])}", fontsize=12)
        if episode["agent_alive"][step, self._agent]:
            self._draw_view(step)
        for unit in np.flatnonzero(episode["unit_health"][step] > 0):
            self._draw_unit(step, int(unit))
            self._draw_order(step, int(unit))

    def _window(self) -> dict[str, tuple[float, float]]:
        length = int(self._episode["length"])
        health, position = self._episode["unit_health"][:length], self._episode["unit_position"][:length]
        left, low, right, high = battle_window(health, position, self._radius)
        return {"xlim": (left, right), "ylim": (low, high)}

    def _draw_view(self, step: int) -> None:
        """Sight and weapon range of the chosen agent, and the polar grid it is seen through."""
        from matplotlib.patches import Circle

        x, y = self._episode["unit_position"][step, self._agent]
        kind = UNIT_TYPES[int(self._episode["unit_type"][self._agent])]
        self._field.add_artist(Circle((x, y), self._radius, fill=True, fc="#fff3c4", ec=CHOSEN, lw=1.8, alpha=0.45))
        reach = max(kind.range, kind.heal_range) + kind.radius
        self._field.add_artist(Circle((x, y), reach, fill=False, ec=CHOSEN, lw=1.2, ls=":"))
        corners = self._panels.corners + np.array((x, y))
        for ring in corners[1:-1:3]:
            self._field.plot(ring[:, 0], ring[:, 1], color=CHOSEN, lw=0.3, alpha=0.5)
        for ray in range(0, corners.shape[1] - 1, 2):
            self._field.plot(corners[1:, ray, 0], corners[1:, ray, 1], color=CHOSEN, lw=0.3, alpha=0.5)

    def _draw_unit(self, step: int, unit: int) -> None:
        from matplotlib.patches import Circle, Rectangle

        episode, axes = self._episode, self._field
        kind = UNIT_TYPES[int(episode["unit_type"][unit])]
        x, y = episode["unit_position"][step, unit]
        friend = unit < episode["action"].shape[1]
        edge, width = (CHOSEN, 3.0) if unit == self._agent else ("black", 0.6)
        axes.add_artist(
            Circle((x, y), kind.radius, fc=FRIEND if friend else ENEMY, ec=edge, lw=width, zorder=4, alpha=0.9)
        )
        axes.text(x, y, kind.letters, color="white", ha="center", va="center", fontsize=8, weight="bold", zorder=8)
        bars = [("unit_health", kind.health, HEALTH), ("unit_shield", kind.shield, SHIELD)]
        for row, (name, full, colour) in enumerate(bar for bar in bars if bar[1] > 0):
            low = y + kind.radius + 0.06 + 0.14 * row
            share = float(episode[name][step, unit]) / full
            axes.add_artist(Rectangle((x - 0.45, low), 0.9, 0.12, fc="#dddddd", ec="none", zorder=6))
            axes.add_artist(Rectangle((x - 0.45, low), 0.9 * share, 0.12, fc=colour, ec="none", zorder=7))

    def _draw_order(self, step: int, unit: int) -> None:
        """An arrow along a move, a thin one to the target of an attack or a heal."""
        episode = self._episode
        start = episode["unit_position"][step, unit]
        friend = unit < episode["action"].shape[1]
        target = int(episode["unit_target"][step, unit])
        action = int(episode["action"][step, unit]) if friend else Action.ATTACK
        if action in MOVES:
            end, style = start + np.array(MOVES[action]), {"lw": 2.2, "alpha": 0.9}
        elif target >= 0 and action >= Action.ATTACK:
            end, style = episode["unit_position"][step, target], {"lw": 1.0, "alpha": 0.65}
        else:
            return
        colour = FRIEND if friend else ENEMY
        arrow = {"arrowstyle": "-|>", "color": colour, "shrinkA": 5, "shrinkB": 2, **style}
        self._field.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=arrow, zorder=3, annotation_clip=True)


class _Panels:
    """The channels of one agent's images, each as a disc of wedges."""

    def __init__(self, figure: Any, episode: Episode, *, agent: int, radius: float) -> None:
        self._episode, self._agent = episode, agent
        from matplotlib.patches import Circle

        radial, angular = episode["categories"].shape[2:4]
        self.corners = wedge_corners(radial, angular, radius)
        self._axes = figure.subplots(3, 3, gridspec_kw=_PANEL_GRID)
        self._axes.flat[-1].remove()  # the legends' place
        self._axes = self._axes.flat[:-1]
        self._banner = figure.suptitle("", fontsize=12)
        self._meshes: list[Any] = []
        self._outlines: list[list[Any]] = []
        for axes, (name, options) in zip(self._axes, self._channels(), strict=True):
            axes.set(xticks=[], yticks=[], aspect="equal", xlim=(-radius, radius), ylim=(-radius, radius))
            axes.set_title(name, fontsize=10)
            axes.set_frame_on(False)
            blank = np.zeros((radial, angular))
            x, y = self.corners[..., 0], self.corners[..., 1]
            axes.add_artist(Circle((0, 0), radius, fc="#f4f4f4", ec="#bbbbbb", lw=0.8, zorder=0))
            self._meshes.append(axes.pcolormesh(x, y, blank, **options))
            self._outlines.append([])
        self._legend(figure)

    def _channels(self) -> list[tuple[str, dict[str, Any]]]:
        from matplotlib.colors import ListedColormap

        def colours(names: tuple[str, ...]) -> dict[str, Any]:
            return {"cmap": ListedColormap(names), "vmin": -0.5, "vmax": len(names) - 0.5}

        heights = self._episode["height"]
        stats = [(name, {"cmap": "YlOrRd", "vmin": -0.3, "vmax": 1}) for name in HECS_CHANNELS]
        return [
            ("friendly marker", colours(("#ffffff", FRIEND))),
            ("unit type", colours(TYPE_COLOURS)),
            ("action", colours(ACTION_COLOURS)),
            ("terrain height", {"cmap": "Greys_r", "vmin": 0, "vmax": max(1.0, 1.15 * int(heights.max()))}),
            *(
                (f"{name} / {divisor:g}", options)
                for (name, options), divisor in zip(stats, HECS_DIVISORS, strict=True)
            ),
        ]

    def _legend(self, figure: Any) -> None:
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

    def draw(self, step: int) -> None:
        episode, agent = self._episode, self._agent
        alive = bool(episode["agent_alive"][step, agent])
        kind = UNIT_TYPES[int(episode["unit_type"][agent])].name
        state = "" if alive else " is dead: no image"
        self._banner.set_text(f"agent {agent} ({kind}){state}" + (" sees, channel by channel" if alive else ""))
        images = [*np.moveaxis(episode["categories"][step, agent], -1, 0), episode["height"][step, agent]]
        images += list(np.moveaxis(episode["hecs"][step, agent], -1, 0))
        for mesh, image in zip(self._meshes, images, strict=True):
            shown = image.astype(np.float64)
            if alive:
                shown[0] = shown[0, 0]  # ring 0 is one point
            mesh.set_array(np.ma.masked_equal(shown, 0))
        self._draw_outlines(step, alive)

    def _draw_outlines(self, step: int, alive: bool) -> None:
        from matplotlib.collections import EllipseCollection

        episode = self._episode
        offsets = episode["unit_position"][step] - episode["unit_position"][step, self._agent]
        living = (episode["unit_health"][step] > 0) & alive
        sizes = np.array([2 * UNIT_TYPES[int(kind)].radius for kind in episode["unit_type"][living]])
        friend = np.arange(len(living))[living] < episode["action"].shape[1]
        colours = np.where(friend, FRIEND, ENEMY)
        style: dict[str, Any] = {"facecolors": "none", "edgecolors": colours, "linewidths": 0.7}
        for axes, outlines in zip(self._axes, self._outlines, strict=True):
            while outlines:
                outlines.pop().remove()
            places: dict[str, Any] = {"units": "xy", "offsets": offsets[living], "offset_transform": axes.transData}
            circles = EllipseCollection(sizes, sizes, np.zeros_like(sizes), **places, **style)
            outlines.append(axes.add_collection(circles, autolim=False))


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
