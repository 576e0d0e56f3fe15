"""What looking at a group needs to know of its world, plain or general."""

# T frames, K balls, S side of the arena in pixels

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from s2rm_data.store import Group

TURN_PX_PER_FRAME = 1e-3  # a smaller change of velocity is the rounding of float32
_HALF_ON = {"grey": 128, "colour": 64}  # about the level of a pixel that is half covered


@dataclass(frozen=True, kw_only=True)
class Physics:
    config: dict[str, Any]
    mass: NDArray[np.float64] | float = 1.0  # (K,)

    @classmethod
    def of(cls, group: Group, number: int | None = None) -> Physics:
        """Of a group or, with the masses, of one of its sequences."""
        config = group.settings["config"]
        if number is None or "mass" not in config:
            return cls(config=config)
        return cls(config=config, mass=np.asarray(group["mass"][number]))

    @property
    def gravity(self) -> NDArray[np.float64]:
        return np.array(self.config.get("gravity", (0.0, 0.0)))

    @property
    def energy_unit(self) -> str:
        return "px²/frame²" if "mass" not in self.config else "mass px²/frame²"

    @property
    def speed_limit(self) -> float:
        """Px/frame, somewhat above what a ball can reach: collisions hand all energy to one of them, the lightest."""
        c = self.config
        speeds = c["speed_px_per_frame"]
        fastest = c["system_speed_px_per_frame"] if speeds is None else speeds[1] * math.sqrt(c["balls"])
        if "mass" not in c:
            return 1.02 * float(fastest)
        light, heavy = {"equal": (1.0, 1.0), "area": [r * r for r in c["radius_px"]]}.get(c["mass"], c["mass_range"])
        fall = 2 * np.abs(self.gravity).sum() * c["size"] * c["balls"]
        return 1.02 * math.sqrt((float(fastest) ** 2 + fall) * heavy / light)

    def pixels_on(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """(..., S, S) of 0 and 1: binary frames as they are, in others what is at least about half covered."""
        render = self.config.get("render", "binary")
        if render == "binary":
            return frames
        return ((frames.max(-1) if render == "colour" else frames) >= _HALF_ON[render]).astype(np.uint8)

    def collisions(self, velocity: NDArray[Any]) -> NDArray[np.bool_]:
        """(..., T - 1, K): the velocity has changed since the frame before by other than gravity."""
        turn = np.diff(velocity, axis=-3) - self.gravity.astype(velocity.dtype)
        return np.asarray((np.abs(turn) > TURN_PX_PER_FRAME).any(-1))

    def potential(self, position: NDArray[Any]) -> NDArray[np.float64]:
        """(..., K) energy of the balls' heights over the sides that gravity points to."""
        height = np.where(self.gravity > 0, self.config["size"] - position.astype(np.float64), position)
        return np.asarray(self.mass * (height @ np.abs(self.gravity)))
