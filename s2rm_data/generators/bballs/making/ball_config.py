"""What a bouncing-ball sequence is made of: counts, box, and the physics of a preset or of the user's own numbers.

Presets are given at the paper's 48 px and scale with the box, so that another `size` shows the same world at another
resolution; a radius or speed given by hand is taken in px as it stands."""

# F fixed balls, G inner walls

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import above, between, check_fields, from_json, one_of, require
from s2rm_data.core.errors import UsageError
from s2rm_data.generators.bballs.making.ball_packing import MAX_BALLS, MIN_RADIUS_PX, check_fit

PAPER_SIZE_PX = 48  # "the t-th full video frame of size 48 x 48", section Video Prediction from Crops
PAPER_FRAMES = 100  # "20K video sequences with 100 frames of 3 balls", the same
MIN_SIZE_PX, MAX_SIZE_PX = 8, 1024
MAX_FRAMES = 1_000_000
MAX_SEQUENCE_BYTES = 1 << 28  # packed frames of one sequence, which is made and stored as a whole
WALL_HALF_WIDTH_PX = 0.75  # a wall of 1.5 px has no gaps when drawn, whatever its slope
CHANNELS = {"binary": 0, "grey": 1, "colour": 3}
MAX_OBSTACLES = 100
MIN_GRAVITY = 1e-9  # px/frame²; less moves no ball by a visible distance in the longest sequence


class Preset(NamedTuple):
    """Physics at 48 px: each ball's speed uniform in a range, or the velocities of all balls together of one norm."""

    radius_px: float
    speed_px_per_frame: tuple[float, float] | None = None
    system_speed_px_per_frame: float | None = None


# Assumption: the paper gives neither radius nor speed; both presets follow a public generator of its lineage.
PRESETS = {
    # Fraccaro et al. 2017, the ball-in-a-box data of the Kalman VAE: radius 3 px and 10 to 15 px/s at 0.2 s a frame in
    # a box of 32 px; times 48 / 32.
    "kvae": Preset(radius_px=4.5, speed_px_per_frame=(3.0, 4.5)),
    # Sutskever et al. 2008, the RTRBM script: radius 1.2 and a velocity vector of all balls of norm 0.5 per frame in a
    # box of 10; times 48 / 10. At three balls that is 2.4 / sqrt(3) = 1.39 px/frame, root mean square.
    "sutskever": Preset(radius_px=5.76, system_speed_px_per_frame=2.4),
}

Speed = Annotated[float, between(0, MAX_SIZE_PX)]
Radius = Annotated[float, between(MIN_RADIUS_PX, MAX_SIZE_PX / 2)]
Place = Annotated[float, between(0, MAX_SIZE_PX)]
Acceleration = Annotated[float, between(-MAX_SIZE_PX, MAX_SIZE_PX)]
Mass = Annotated[float, above(0, at_most=1e6)]


@dataclass(frozen=True, kw_only=True)
class _Box:
    """What all worlds have in common: `balls` moving balls in a box of `size` px. A value not given is the preset's.
    Each ball's speed is drawn uniformly from `speed_px_per_frame` (min, max). Where that is None, the velocities of all
    balls together are a random vector of norm `system_speed_px_per_frame`, which only presets set. A speed that is
    given is each ball's, whatever the preset."""

    balls: Annotated[int, between(1, MAX_BALLS)]
    frames: Annotated[int, between(1, MAX_FRAMES)] = PAPER_FRAMES
    size: Annotated[int, between(MIN_SIZE_PX, MAX_SIZE_PX)] = PAPER_SIZE_PX
    preset: Annotated[str, one_of(*PRESETS)] = "kvae"
    speed_px_per_frame: tuple[Speed, Speed] | None = None
    system_speed_px_per_frame: float | None = None

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _set_speed(self) -> None:
        preset = PRESETS[self.preset]
        system = preset.system_speed_px_per_frame and _scaled(preset.system_speed_px_per_frame, self.size)
        if self.system_speed_px_per_frame not in (None, system):
            raise UsageError(
                f"the speed of the whole system is {system} px/frame in preset {self.preset!r} at {self.size} px; it "
                f"cannot be {self.system_speed_px_per_frame!r}; give the speed of each ball instead"
            )
        if self.speed_px_per_frame is not None:
            low, high = self.speed_px_per_frame
            require(self, "speed_px_per_frame", low <= high, "the smallest speed, then the largest")
            # no ball may cross more than the box in a frame
            require(self, "speed_px_per_frame", high <= self.size, f"at most size ({self.size} px) per frame")
            self._set("system_speed_px_per_frame", None)
        elif preset.speed_px_per_frame is not None:
            self._set("speed_px_per_frame", tuple(_scaled(speed, self.size) for speed in preset.speed_px_per_frame))
        else:
            self._set("system_speed_px_per_frame", system)

    def _check_bytes(self, image: str) -> None:
        frame_bytes = self.size * (self.size * CHANNELS[image] or packed_width(self.size))
        if self.frames * frame_bytes > MAX_SEQUENCE_BYTES:
            raise UsageError(
                f"{self.frames} frames of {self.size} x {self.size} px in {image} are too many for one sequence; at "
                f"this size at most {MAX_SEQUENCE_BYTES // frame_bytes} are allowed: make more sequences of fewer "
                "frames"
            )


@dataclass(frozen=True, kw_only=True)
class BallsConfig(_Box):
    """A plain world: all balls are equal, and one more of their radius is fixed in the centre."""

    radius_px: Radius = None  # type: ignore[assignment] # replaced on construction

    def __post_init__(self) -> None:
        check_fields(self)
        if self.radius_px is None:
            self._set("radius_px", preset_radius_px(self.preset, self.size))
        require(self, "radius_px", self.radius_px <= self.size / 2, f"at most half of size ({self.size} px)")
        self._set_speed()
        self._check_bytes("binary")
        check_fit(self.size, self.radius_px, self.balls)

    @property
    def discs(self) -> NDArray[np.float64]:
        """(1, 3) x, y and radius of the fixed ball."""
        return np.array([(self.size / 2, self.size / 2, self.radius_px)])

    @property
    def segments(self) -> NDArray[np.float64]:
        """(0, 4) there are no inner walls."""
        return np.empty((0, 4))


@dataclass(frozen=True, kw_only=True)
class GeneralConfig(_Box):
    """A world with gravity, unequal balls, fixed balls and inner walls, and how it is drawn. `radius_px` and
    `mass_range` (min, max) are drawn uniformly for each ball; `mass` is `equal` (all 1), `area` (pi r²) or `range`.
    `fixed` are balls (x, y, radius) that do not move, by default one in the centre that is as large as the largest
    ball. `walls` (x0, y0, x1, y1) are straight, 1.5 px wide and have round ends. `gravity` (x, y) is in px/frame², y
    down."""

    # None is replaced on construction
    radius_px: tuple[Radius, Radius] = None  # type: ignore[assignment]
    gravity: tuple[Acceleration, Acceleration] = (0.0, 0.0)
    mass: Annotated[str, one_of("equal", "area", "range")] = "area"
    mass_range: tuple[Mass, Mass] | None = None
    fixed: tuple[tuple[Place, Place, Radius], ...] = None  # type: ignore[assignment]
    walls: tuple[tuple[Place, Place, Place, Place], ...] = ()
    render: Annotated[str, one_of(*CHANNELS)] = "binary"

    def __post_init__(self) -> None:
        check_fields(self)
        self._set_speed()
        if self.radius_px is None:
            self._set("radius_px", (preset_radius_px(self.preset, self.size),) * 2)
        if self.fixed is None:
            self._set("fixed", ((self.size / 2, self.size / 2, self.radius_px[1]),))
        self._check_balls()
        self._check_obstacles()
        self._check_bytes(self.render)

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
            shown = _words(x, y, radius)
            if min(x, y) < radius or max(x, y) > self.size - radius:
                raise UsageError(
                    f"fixed ball {shown} sticks out of the box of {self.size} px; its centre must be at least its "
                    "radius away from every side"
                )
            for other in self.fixed[:number]:
                if math.hypot(x - other[0], y - other[1]) < radius + other[2]:
                    raise UsageError(f"fixed balls {shown} and {_words(*other)} overlap; move them apart")
        for wall in self.walls:
            shown = _words(*wall)
            if max(wall) > self.size:
                raise UsageError(f"wall {shown} ends outside the box; its ends lie between 0 and {self.size} px")
            if wall[:2] == wall[2:]:
                raise UsageError(f"wall {shown} has no length; give two different ends x0,y0,x1,y1")
            for x, y, radius in self.fixed:
                if _distance(x, y, wall) < (least := radius + WALL_HALF_WIDTH_PX):
                    raise UsageError(
                        f"wall {shown} runs through fixed ball {_words(x, y, radius)}; keep it at least {least:g} px "
                        "away from the ball's centre, or set fixed balls with --fixed"
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


AnyConfig = BallsConfig | GeneralConfig


def config_of(settings: Mapping[str, Any]) -> AnyConfig:
    """The config in a split's stored settings."""
    general, config = settings.get("physics") == "general", settings["config"]
    return from_json(GeneralConfig, config) if general else from_json(BallsConfig, config)


def preset_radius_px(preset: str, size: int) -> float:
    return _scaled(PRESETS[preset].radius_px, size)


def packed_width(size: int) -> int:
    """Bytes of a row of `size` one-bit pixels."""
    return (size + 7) // 8


def _scaled(value_px: float, size: int) -> float:
    return value_px if size == PAPER_SIZE_PX else value_px * size / PAPER_SIZE_PX


def _words(*numbers: float) -> str:
    return ",".join(f"{number:g}" for number in numbers)


def _distance(x: float, y: float, wall: tuple[float, float, float, float]) -> float:
    ex, ey = wall[2] - wall[0], wall[3] - wall[1]
    along = min(max(((x - wall[0]) * ex + (y - wall[1]) * ey) / (ex * ex + ey * ey), 0.0), 1.0)
    return math.hypot(x - wall[0] - along * ex, y - wall[1] - along * ey)
