"""A snapshot: all that a back end tells about battles at one moment, and the orders that go back to it.

Policies and the polar renderer read snapshots and nothing else, so that the embedded engine, the served API and the
real game can stand in for each other: they differ in where the snapshot comes from and where the orders go.

Units of a battle stand in fixed slots: the agents (team 1) first, in SMAC's order (unit type, x, y), then the enemies.
A slot keeps its unit for the whole episode; a dead unit keeps its slot with `health` 0 and is seen by nobody.
"""

# B battles, U units of both sides, N agents = the first units of a battle, E = U - N enemies

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Game values as the SC2 API gives them, in float32; positions are map coordinates, x east, y north."""

    agents: int  # N
    unit_type: NDArray[np.uint8]  # (U,), or (B, U) if armies differ; 1..9, spine crawler 10; see units.py
    position: NDArray[np.float32]  # (B, U, 2)
    health: NDArray[np.float32]  # (B, U) 0 = dead
    shield: NDArray[np.float32]  # (B, U)
    energy: NDArray[np.float32]  # (B, U)
    cooldown_loops: NDArray[np.float32]  # (B, U) loops until the weapon is ready
