"""The polar images of this project as observations: what an agent sees now, and what it saw its team do last."""

# n battles, N agents, I radial cells, J angular cells

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.envs.battles import BattleBatch, taken
from s2rm_data.generators.sc2.codes import Action
from s2rm_data.generators.sc2.polar import PolarGrid, render
from s2rm_data.generators.sc2.source import terrain_height

IMAGES = ("categories", "hecs", "height")


class PolarView:
    """Images of a batch: `categories` (n, N, I, J, 3) uint8, `hecs` (n, N, I, J, 4) float32, `height` (n, N, I, J)
    uint8, with the channels of a stored split (docs/data_format.md).

    A stored image shows the actions that were chosen on it; here these are not chosen yet, and the last ones show.
    """

    def __init__(self, battles: BattleBatch, radial: int, angular: int, radius: float) -> None:
        self._battles = battles
        self.grid = PolarGrid(radial=radial, angular=angular, radius=radius)
        self._terrain = terrain_height(battles.options.map_name)

    def observe(self, rows: NDArray[np.int64] | None = None) -> dict[str, NDArray[Any]]:
        battles = self._battles
        seen = battles.snapshot if rows is None else taken(battles.snapshot, rows)
        orders = battles.orders(battles.last_actions)
        last = np.maximum(orders if rows is None else orders[rows], Action.NO_OP)
        n = len(seen.health)
        states: dict[str, NDArray[Any]] = {
            "unit_type": np.broadcast_to(seen.unit_type, (n, battles.units)),
            "unit_position": seen.position[:, None],
            "unit_health": seen.health[:, None],
            "unit_energy": seen.energy[:, None],
            "unit_cooldown": seen.cooldown_loops[:, None],
            "unit_shield": seen.shield[:, None],
            "action": last[:, None],
            "length": np.ones(n, dtype=np.int64),
        }
        images = render(states, grid=self.grid, terrain=self._terrain)
        return {name: images[name][:, 0] for name in IMAGES}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of one agent's images."""
        cells = (self.grid.radial, self.grid.angular)
        return {"categories": (*cells, 3), "hecs": (*cells, 4), "height": cells}
