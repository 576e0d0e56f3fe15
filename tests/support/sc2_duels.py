"""Battles with units put where a test wants them."""

from __future__ import annotations

import numpy as np

from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.scenarios import parse


def duel(name: str, *points: tuple[float, float], seed: int = 0, jitter: bool = False, mirror: bool = False) -> Engine:
    """One battle of a scenario with its units at the given map points, in slot order."""
    return Engine(parse(name), [seed], jitter=jitter, mirror=mirror, position=np.array(points, dtype=np.float64))


def loops_until(engine: Engine, slot: int, *, most: int = 3000) -> int:
    """Game loops until the unit of a slot is dead."""
    for loop in range(1, most + 1):
        engine.run_loops(1)
        if engine.snapshot().health[0, slot] == 0:
            return loop
    raise AssertionError(f"unit {slot} outlived {most} loops")
