"""A world of bouncing balls with gravity, unequal balls, fixed balls and inner walls, and how it is drawn."""

# F fixed balls, G inner walls

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.config import above, between, check_fields, one_of, require
from s2rm_data.errors import UsageError
from s2rm_data.generators.bballs.config import (
    MAX_FRAMES,
    MAX_SEQUENCE_BYTES,
    MAX_SIZE_PX,
    MIN_SIZE_PX,
    PAPER_FRAMES,
    PAPER_SIZE_PX,
    PRESETS,
    BallsConfig,
    Speed,
    packed_width,
)
from s2rm_data.generators.bballs.packing import MAX_BALLS, MIN_RADIUS_PX

WALL_HALF_WIDTH_PX = 0.75  # a wall of 1.5 px has no gaps when drawn, whatever its slope
CHANNELS = {"binary": 0, "grey": 1, "colour": 3}
MAX_OBSTACLES = 100
MIN_GRAVITY = 1e-9  # px/frame²; less moves no ball by a visible distance in the longest sequence

Radius = Annotated[float, between(MIN_RADIUS_PX, MAX_SIZE_PX / 2)]
Place = Annotated[float, between(0, MAX_SIZE_PX)]
Acceleration = Annotated[float, between(-MAX_SIZE_PX, MAX_SIZE_PX)]
Mass = Annotated[float, above(0, at_most=1e6)]


@dataclass(frozen=True, kw_only=True)
class GeneralConfig:
    """One kind of sequence in a box of `size` px. Values that are not given are those of the preset.

    `radius_px` and `mass_range` (min, max) are drawn uniformly for each ball; `mass` is `equal` (all 1), `area` (pi r²)
    or `range`. `fixed` are balls (x, y, radius) that do not move, by default one in the centre that is as large as the
    largest ball. `walls` (x0, y0, x1, y1) are straight, 1.5 px wide and have round ends. `gravity` (x, y) is in
    px/frame², y down.
    """

    balls: Annotated[int, between(1, MAX_BALLS)]
    frames: Annotated[int, between(1, MAX_FRAMES)] = PAPER_FRAMES
    size: Annotated[int, between(MIN_SIZE_PX, MAX_SIZE_PX)] = PAPER_SIZE_PX
    preset: Annotated[str, one_of(*PRESETS)] = "kvae"
    # None is replaced on construction
    radius_px: tuple[Radius, Radius] = None  # type: ignore[assignment]
    speed_px_per_frame: tuple[Speed, Speed] | None = None
    system_speed_px_per_frame: float | None = None
    gravity: tuple[Acceleration, Acceleration] = (0.0, 0.0)
    mass: Annotated[str, one_of("equal", "area", "range")] = "area"
    mass_range: tuple[Mass, Mass] | None = None
    fixed: tuple[tuple[Place, Place, Radius], ...] = None  # type: ignore[assignment]
    walls: tuple[tuple[Place, Place, Place, Place], ...] = ()
    render: Annotated[str, one_of(*CHANNELS)] = "binary"

    def __post_init__(self) -> None:
        check_fields(self)
        plain = BallsConfig(
            balls=1,
            size=self.size,
            preset=self.preset,
            speed_px_per_frame=self.speed_px_per_frame,
            system_speed_px_per_frame=self.system_speed_px_per_frame,
        )
        self._set("speed_px_per_frame", plain.speed_px_per_frame)
        self._set("system_speed_px_per_frame", plain.system_speed_px_per_frame)
        if self.radius_px is None:
            self._set("radius_px", (plain.radius_px, plain.radius_px))
        if self.fixed is None:
            self._set("fixed", ((self.size / 2, self.size / 2, self.radius_px[1]),))
        self._check_balls()
        self._check_obstacles()
        self._check_bytes()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_balls(self) -> None:
        low, high = self.radius_px
        require(self, "radius_px", low <= high, "the smallest radius, then the largest")
        require(self, "radius_px", 2 * high < self.size, f"less than half of size ({self.size} px)")
        require(self, "gravity", max(map(abs, self.gravity)) <= self.size, f"at most size ({self.size}) px/frame²")
        weak = any(0 < abs(part) < MIN_GRAVITY for part in self.gravity)
        require(self, "gravity", not weak, f"0 or at least {MIN_GRAVITY:g} px/frame² along each axis")
        require(self, "mass_range", (self.mass == "range") == (self.mass_range is not None), "given with mass 'range'")
        if self.mass_range is not None:
            require(self, "mass_range", self.mass_range[0] <= self.mass_range[1], "the smallest mass, then the largest")

    def _check_obstacles(self) -> None:
        require(self, "fixed", len(self.fixed) <= MAX_OBSTACLES, f"at most {MAX_OBSTACLES} balls")
        require(self, "walls", len(self.walls) <= MAX_OBSTACLES, f"at most {MAX_OBSTACLES} walls")
        for number, (x, y, radius) in enumerate(self.fixed):
            if min(x, y) < radius or max(x, y) > self.size - radius:
                raise UsageError(
                    f"fixed ball {_ball(x, y, radius)} sticks out of the box of {self.size} px; its centre must be at "
                    "least its radius away from every side"
                )
            for other in self.fixed[:number]:
                if math.hypot(x - other[0], y - other[1]) < radius + other[2]:
                    raise UsageError(f"fixed balls {_ball(x, y, radius)} and {_ball(*other)} overlap; move them apart")
        for wall in self.walls:
            self._check_wall(wall)

    def _check_wall(self, wall: tuple[float, float, float, float]) -> None:
        shown = ",".join(f"{end:g}" for end in wall)
        if max(wall) > self.size:
            raise UsageError(f"wall {shown} ends outside the box; its ends lie between 0 and {self.size} px")
        if wall[:2] == wall[2:]:
            raise UsageError(f"wall {shown} has no length; give two different ends x0,y0,x1,y1")
        for x, y, radius in self.fixed:
            if _distance(x, y, wall) < radius + WALL_HALF_WIDTH_PX:
                raise UsageError(
                    f"wall {shown} runs through fixed ball {_ball(x, y, radius)}; keep it at least "
                    f"{radius + WALL_HALF_WIDTH_PX:g} px away from the ball's centre, or set fixed balls with --fixed"
                )

    def _check_bytes(self) -> None:
        channels = CHANNELS[self.render]
        frame_bytes = self.size * (self.size * channels or packed_width(self.size))
        if self.frames * frame_bytes > MAX_SEQUENCE_BYTES:
            raise UsageError(
                f"{self.frames} frames of {self.size} x {self.size} px in {self.render} are too many for one sequence; "
                f"at most {MAX_SEQUENCE_BYTES // frame_bytes} are allowed: make more sequences of fewer frames"
            )

    @property
    def discs(self) -> NDArray[np.float64]:
        """(F + 2 G, 3) x, y and radius of everything round that stands still: fixed balls, then the ends of walls."""
        ends = [(*wall[k : k + 2], WALL_HALF_WIDTH_PX) for wall in self.walls for k in (0, 2)]
        return np.array([*self.fixed, *ends], dtype=np.float64).reshape(-1, 3)

    @property
    def segments(self) -> NDArray[np.float64]:
        """(G, 4) the walls."""
        return np.array(self.walls, dtype=np.float64).reshape(-1, 4)


def _ball(x: float, y: float, radius: float) -> str:
    return f"{x:g},{y:g},{radius:g}"


def _distance(x: float, y: float, wall: tuple[float, float, float, float]) -> float:
    ex, ey = wall[2] - wall[0], wall[3] - wall[1]
    along = ((x - wall[0]) * ex + (y - wall[1]) * ey) / (ex * ex + ey * ey)
    along = min(max(along, 0.0), 1.0)
    return math.hypot(x - wall[0] - along * ex, y - wall[1] - along * ey)
