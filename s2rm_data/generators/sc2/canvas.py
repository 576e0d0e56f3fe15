"""A canvas: room for the polar images of one episode, used again for the next.

Images are nearly all zeros: of the 12 MB of an episode of 3s5z, a few hundred kilobytes are drawn upon. A canvas wipes
out what was drawn and nothing else, and tells how far into each array the episode reaches.
"""

# T steps, N agents, U units of both sides, I radial cells, J angular cells

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.compiled import compiled
from s2rm_data.generators.sc2.polar import PolarGrid, check_on_map, ground, hecs_of, render_frames, tables


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


class Canvas:
    """`terrain`: (W, H) heights as the game's bytes, as for `polar.render`."""

    def __init__(self, *, steps: int, agents: int, units: int, grid: PolarGrid, terrain: NDArray[np.uint8]) -> None:
        shape = (steps, agents, grid.radial, grid.angular)
        self._images: dict[str, NDArray[Any]] = {
            "categories": np.zeros((*shape, 3), np.uint8),
            "hecs": np.zeros((*shape, 4), np.float32),
            "height": np.zeros(shape, np.uint8),
        }
        self._drawn = np.zeros(1 + steps * agents * units, np.int64)  # how many cells, and which
        self._grid, self._terrain = grid, terrain
        self._ground = ground(terrain, grid)

    def draw(self, states: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], dict[str, int]]:
        """What `polar.render` gives for the states of one episode, and how many bytes of each image were played; all
        after them are zero. The images are good until the next call.
        """
        categories, hecs, height = self._images.values()
        _wipe(self._drawn, categories.reshape(-1, 3), hecs.reshape(-1, 4))
        height[:] = 0
        length, (T, N), U = int(states["length"][0]), states["action"].shape[1:], states["unit_type"].shape[1]
        check_on_map(states, self._terrain)
        edges, points = tables(self._grid)
        in_view, lost = np.zeros(1, np.int32), np.zeros(1, np.int32)
        render_frames(
            np.array([length], dtype=np.int64),
            np.ascontiguousarray(states["unit_position"], dtype=np.float32).reshape(T, U, 2),
            hecs_of(states).reshape(T, U, 4),
            np.ascontiguousarray(states["unit_type"], dtype=np.uint8),
            np.ascontiguousarray(states["action"], dtype=np.int16).reshape(T, N),
            *self._ground,
            float(self._grid.radius),
            edges,
            points,
            (categories, hecs, height.reshape(T, N, -1), in_view, lost),
            self._drawn,
        )
        images = {name: image[None] for name, image in self._images.items()}
        used = {name: image[:length].nbytes for name, image in self._images.items()}
        return {**images, "units_in_view": in_view, "units_lost": lost}, used
