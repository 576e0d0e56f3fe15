"""A canvas: room for the polar images of one episode, used again for the next.

Images are nearly all zeros: of the 12 MB of an episode of 3s5z, a few hundred kilobytes are drawn upon. A canvas wipes
out what was drawn and nothing else, and tells how far into each array the episode reaches.
"""

# T steps, N agents, U units of both sides, I radial cells, J angular cells

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from s2rm_data.compiled import compiled
from s2rm_data.generators.sc2.polar import HECS_STATES, PolarGrid, check_on_map, ground, render_frames, tables


@compiled()
def _wipe(drawn, categories, hecs):  # type: ignore[no-untyped-def]
    """Blanks the cells noted in `drawn`; categories (cells, 3), hecs (cells, 4)."""
    for k in range(1, drawn[0] + 1):
        cell = drawn[k]
        for channel in range(categories.shape[1]):
            categories[cell, channel] = 0
        for channel in range(hecs.shape[1]):
            hecs[cell, channel] = 0.0
    drawn[0] = 0


class Drawing(NamedTuple):
    """Images (1, T, N, ...) of an episode; how many bytes of each were played, all after them are zero; and the living
    units in the agents' views, and how many of them lost their cell to another, summed over agents and steps.
    """

    images: dict[str, NDArray[Any]]
    used_nbytes: dict[str, int]
    units_in_view: int
    units_lost: int


class Canvas:
    """`terrain`: (W, H) heights as the game's bytes, as for `polar.render`. States are those of a roll-out."""

    def __init__(self, *, steps: int, agents: int, units: int, grid: PolarGrid, terrain: NDArray[np.uint8]) -> None:
        shape = (steps, agents, grid.radial, grid.angular)
        self._images: dict[str, NDArray[Any]] = {
            "categories": np.zeros((*shape, 3), np.uint8),
            "hecs": np.zeros((*shape, 4), np.float32),
            "height": np.zeros(shape, np.uint8),
        }
        self._drawn = np.zeros(1 + steps * agents * units, np.int64)  # how many cells, and which
        self._length = 0  # of the episode that was drawn last
        self._counts = np.zeros((2, 1), np.int32)
        self._grid, self._terrain = grid, terrain
        self._tables = (*ground(terrain, grid), float(grid.radius), *tables(grid))
        categories, hecs, height = self._images.values()
        self._out = (categories, hecs, height.reshape(steps, agents, -1), *self._counts)

    def draw(self, states: Mapping[str, NDArray[Any]], row: int) -> Drawing:
        """What `polar.render` gives for episode `row` of some states. The images are good until the next call."""
        categories, hecs, height = self._images.values()
        _wipe(self._drawn, categories.reshape(-1, 3), hecs.reshape(-1, 4))
        height[: self._length] = 0
        self._counts[:] = 0
        self._length = int(states["length"][row])
        position = states["unit_position"][row]
        found = render_frames(
            np.array([self._length], dtype=np.int64),
            position,
            tuple(states[name][row] for name in HECS_STATES),
            states["unit_type"][row : row + 1],
            states["action"][row],
            *self._tables,
            self._out,
            self._drawn,
        )
        check_on_map(position, found, self._terrain)
        used = {name: image[: self._length].nbytes for name, image in self._images.items()}
        return Drawing({name: image[None] for name, image in self._images.items()}, used, *self._counts[:, 0].tolist())
