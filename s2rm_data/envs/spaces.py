"""The observations of an environment as Gymnasium's spaces."""

from __future__ import annotations

import numpy as np

from s2rm_data.envs.vector import VectorEnv
from s2rm_data.errors import missing_component

try:
    from gymnasium import spaces
except ImportError:
    raise missing_component("gymnasium", "envs", "a space of observations") from None


def observation_space(env: VectorEnv, leading: tuple[int, ...] = ()) -> spaces.Space:
    """What one agent observes, or with `leading` dimensions several do."""
    if env.polar is None:
        return spaces.Box(-1, 1, (*leading, env.observation_size), np.float32)
    shapes = {name: (*leading, *shape) for name, shape in env.polar.shapes.items()}
    return spaces.Dict(
        {
            "categories": spaces.Box(0, 255, shapes["categories"], np.uint8),
            "hecs": spaces.Box(0, 2, shapes["hecs"], np.float32),
            "height": spaces.Box(0, 255, shapes["height"], np.uint8),
        }
    )
