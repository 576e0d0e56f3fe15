"""Balls from a start of one's own."""

from __future__ import annotations

import numpy as np

from s2rm_data.generators.bballs.making.ball_simulate import move_on


def simulate_from(position, velocity, radius, config, *, mass=1.0):
    """Position and velocity (T, n, 2) from (n, 2), in the world of a config; or with a leading N.

    Radius and mass are one number for all balls, or (n,), or (N, n).
    """
    x, v = (np.array(a, dtype=np.float64, order="C") for a in (position, velocity))
    batch = x.reshape(-1, *x.shape[-2:])
    r, m = (np.broadcast_to(np.asarray(a, np.float64), batch.shape[:2]).copy() for a in (radius, mass))
    moved = move_on(batch, v.reshape(batch.shape), r, m, config)
    return moved if x.ndim == 3 else (moved[0][0], moved[1][0])
