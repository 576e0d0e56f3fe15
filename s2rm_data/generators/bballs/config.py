"""What a bouncing-ball sequence is made of: counts, box, and the physics of a preset or of the user's own numbers.

Presets are given at the paper's 48 px and scale with the box, so that another `size` shows the same world at another
resolution; a radius or speed given by hand is taken in px as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from s2rm_data.config import between, check_fields, one_of, require
from s2rm_data.errors import UsageError
from s2rm_data.generators.bballs.packing import MAX_BALLS, MIN_RADIUS_PX, check_fit

PAPER_SIZE_PX = 48  # "the t-th full video frame of size 48 x 48", section Video Prediction from Crops
PAPER_FRAMES = 100  # "20K video sequences with 100 frames of 3 balls", the same
MIN_SIZE_PX, MAX_SIZE_PX = 8, 1024
MAX_FRAMES = 1_000_000
MAX_SEQUENCE_BYTES = 1 << 28  # packed frames of one sequence, which is made and stored as a whole


@dataclass(frozen=True, kw_only=True)
class Preset:
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


@dataclass(frozen=True, kw_only=True)
class BallsConfig:
    """One kind of sequence: `balls` moving balls and a fixed one, all of radius `radius_px`, in a box of `size` px.

    Each ball's speed is drawn uniformly from `speed_px_per_frame` (min, max). Where that is None, the velocities of all
    balls together are a random vector of norm `system_speed_px_per_frame`, which only presets set. A value that is not
    given is the preset's; a speed that is given is each ball's, whatever the preset.
    """

    balls: Annotated[int, between(1, MAX_BALLS)]
    frames: Annotated[int, between(1, MAX_FRAMES)] = PAPER_FRAMES
    size: Annotated[int, between(MIN_SIZE_PX, MAX_SIZE_PX)] = PAPER_SIZE_PX
    preset: Annotated[str, one_of(*PRESETS)] = "kvae"
    # None is replaced on construction
    radius_px: Annotated[float, between(MIN_RADIUS_PX, MAX_SIZE_PX / 2)] = None  # type: ignore[assignment]
    speed_px_per_frame: tuple[Speed, Speed] | None = None
    system_speed_px_per_frame: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        preset = PRESETS[self.preset]
        if self.radius_px is None:
            self._set("radius_px", _scaled(preset.radius_px, self.size))
        require(self, "radius_px", self.radius_px <= self.size / 2, f"at most half of size ({self.size} px)")
        self._set_speed(preset)
        self._check_bytes()
        check_fit(self.size, self.radius_px, self.balls)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _set_speed(self, preset: Preset) -> None:
        system = preset.system_speed_px_per_frame
        system = None if system is None else _scaled(system, self.size)
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
            low, high = preset.speed_px_per_frame
            self._set("speed_px_per_frame", (_scaled(low, self.size), _scaled(high, self.size)))
        else:
            self._set("system_speed_px_per_frame", system)

    def _check_bytes(self) -> None:
        frame_bytes = self.size * packed_width(self.size)
        if self.frames * frame_bytes > MAX_SEQUENCE_BYTES:
            raise UsageError(
                f"{self.frames} frames of {self.size} x {self.size} px are too many for one sequence; at this size "
                f"at most {MAX_SEQUENCE_BYTES // frame_bytes} are allowed: make more sequences of fewer frames"
            )


def packed_width(size: int) -> int:
    """Bytes of a row of `size` one-bit pixels."""
    return (size + 7) // 8


def _scaled(value_px: float, size: int) -> float:
    return value_px if size == PAPER_SIZE_PX else value_px * size / PAPER_SIZE_PX
