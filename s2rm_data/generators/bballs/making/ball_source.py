"""Splits of the bouncing-ball data: what a store keeps of a sequence, and how any range of sequences is made.

Frames are rendered from the positions and the radius as they are stored, so that a reader can draw them again, bit for
bit, from the states beside them."""

# N sequences, T frames, n balls, 2 coordinates (x, y), S size of the box, W = ceil(S / 8) bytes per row

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from s2rm_data.core.check import between, check_fields, checked, to_json
from s2rm_data.core.errors import UsageError
from s2rm_data.core.schema import ArraySpec, SplitSource
from s2rm_data.core.seeding import MAX_SEED, sequence_seeds
from s2rm_data.generators.bballs.making import ball_config
from s2rm_data.generators.bballs.making.ball_config import AnyConfig, BallsConfig, GeneralConfig, config_of
from s2rm_data.generators.bballs.making.ball_render import render as render_frames
from s2rm_data.generators.bballs.making.ball_simulate import simulate_sequences
from s2rm_data.generators.bballs.making.ball_start import check_room, scattered

# raised whenever the same config and seed would give other bytes, of plain and of general worlds
GENERATOR_VERSION = GENERAL_VERSION = 1
PAPER_TRAIN, PAPER_VAL, PAPER_TEST = 20_000, 1_000, 1_000  # section Video Prediction from Crops
PAPER_TRAIN_BALLS = 3  # the same
MAX_SEQUENCES = 100_000_000

# Measured at n = 3 with zstd: frames 4.1 kB per sequence, positions 2.1 kB (levels gain nothing), velocities 0.43 kB
# (0.51 when compressed one by one); about 190 MB for the paper's whole data set.
_STATE_CHUNK = 10

CITATION = (
    "Rahaman, N., Goyal, A., Gondal, M. W., Wuthrich, M., Bauer, S., Sharma, Y., Bengio, Y., Schoelkopf, B.: "
    "S2RMs: Spatially Structured Recurrent Modules. arXiv:2007.06533, 2020"
)
CONVENTIONS = {
    "coordinates": "x to the right, y down, in pixels; the box is [0, size] x [0, size]",
    "pixel": "row i, column j has its centre at (x, y) = (j + 0.5, i + 0.5)",
    "on": "a pixel is 1 when (j + 0.5 - x)^2 + (i + 0.5 - y)^2 <= radius^2 in float64 for a ball or the fixed ball",
    "fixed_ball": "at (size / 2, size / 2), of the same radius as the others; drawn in the frames, not among the balls",
    "time": "one unit is one frame; frame 0 is the start; a velocity is the one after a collision at that instant",
}
GENERAL_CONVENTIONS = CONVENTIONS | {
    "fixed_ball": "config.fixed lists x, y and radius; drawn in the frames, not among the balls",
    "wall": "config.walls lists x0, y0, x1, y1; straight, 1.5 px wide, with round ends; drawn in the frames",
    "gravity": "config.gravity is the acceleration (x, y) of every ball in pixel/frame^2",
}
_IMAGES = {
    "binary": "Binary images, one bit a pixel: 1 inside a ball, a fixed ball or an inner wall",
    "grey": "Grey images: 255 times the share of the pixel inside a ball, a fixed ball or an inner wall",
    "colour": "Colour images by share of the pixel: each ball in its colour, fixed balls and inner walls grey",
}


@dataclass(frozen=True, kw_only=True)
class BallsSplit(SplitSource):
    """The split `bballs/<split>` with `count` sequences."""

    config: AnyConfig
    split: str  # `train`, `val` or `test_<n>`
    count: Annotated[int, between(1, MAX_SEQUENCES)]
    seed: Annotated[int, between(0, MAX_SEED)] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.split not in ("train", "val", f"test_{self.config.balls}"):
            n = self.config.balls
            raise UsageError(f"no split {self.split!r} with {n} balls; the choices are train, val and test_{n}")

    @property
    def group(self) -> str:
        return f"bballs/{self.split}"

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        plain = isinstance(self.config, BallsConfig)
        radii = f"Radii of the moving balls{', and of the fixed one' if plain else ''}"
        return (
            self._frames,
            self._state("position", "float32", "Centres of the moving balls, (x, y)", "pixel", level=1),
            self._state("velocity", "float32", "Velocities of the moving balls, (x, y)", "pixel/frame"),
            self._state("radius", "float64", radii, "pixel"),
            *(() if plain else (self._state("mass", "float64", "Masses of the moving balls"),)),
            self._state("seed", "uint64", "Seed of the sequence, from which the config makes it again"),
        )

    @property
    def _frames(self) -> ArraySpec:
        c = self.config
        plain = "Binary images, one bit a pixel: 1 inside a ball, the fixed one included"
        text, render = (plain, "binary") if isinstance(c, BallsConfig) else (_IMAGES[c.render], c.render)
        if render == "binary":
            shape, dims = (c.frames, c.size, ball_config.packed_width(c.size)), ("frame", "row", "packed_column")
            unpack = f"numpy.unpackbits(frames, axis=-1, count={c.size}, bitorder='big')"
            how: dict[str, Any] = {"packed_bits": c.size, "bit_order": "big", "unpack": unpack}
        else:
            colours: tuple[Any, Any] = ((3,), ("colour",)) if render == "colour" else ((), ())
            shape, dims, how = (c.frames, c.size, c.size, *colours[0]), ("frame", "row", "column", *colours[1]), {}
        return ArraySpec(name="frames", dtype="uint8", shape=shape, dims=dims, description=text, attributes=how)

    def _state(self, name: str, dtype: str, description: str, units: str = "", level: int = 3) -> ArraySpec:
        c = self.config
        moving = ((c.frames, c.balls, 2), ("frame", "ball", "axis"))
        shape, dims = {"position": moving, "velocity": moving, "seed": ((), ())}.get(name, ((c.balls,), ("ball",)))
        told: dict[str, Any] = {"description": description, "units": units, "level": level, "chunk": _STATE_CHUNK}
        return ArraySpec(name=name, dtype=dtype, shape=shape, dims=dims, **told)

    @property
    def settings(self) -> dict[str, Any]:
        plain = isinstance(self.config, BallsConfig)
        kind = {"generator": "bballs", "generator_version": GENERATOR_VERSION if plain else GENERAL_VERSION}
        kind |= {} if plain else {"physics": "general"}
        return {**kind, "config": to_json(self.config), "seed": self.seed, "split": self.split}

    @property
    def attributes(self) -> dict[str, Any]:
        plain = isinstance(self.config, BallsConfig)
        conventions = dict(CONVENTIONS if plain else GENERAL_CONVENTIONS)
        if isinstance(self.config, GeneralConfig) and self.config.render != "binary":
            conventions["on"] = "a level is the share of a pixel's 8 x 8 samples that is covered"
        return {"command": self.command, "citation": CITATION, "conventions": conventions}

    @property
    def command(self) -> str:
        """The shell command that makes this split and no other, whatever command it was made by."""
        c = self.config
        counts = {"train": 0, "val": 0, "test": 0, self.split.partition("_")[0]: self.count}
        options = {"balls": c.balls, **counts, "frames": c.frames, "size": c.size, "preset": c.preset}
        if isinstance(c, BallsConfig):
            preset = BallsConfig(balls=1, size=c.size, preset=c.preset)
            if c.radius_px != preset.radius_px:
                options["radius"] = decimal(c.radius_px)
            if c.speed_px_per_frame and c.speed_px_per_frame != preset.speed_px_per_frame:
                options["speed"] = _range(c.speed_px_per_frame)
            words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
            return shlex.join(["s2rm-data", "bballs", *words, "--seed", str(self.seed)])
        options["radius"] = _range(c.radius_px)
        if c.speed_px_per_frame is not None:
            options["speed"] = _range(c.speed_px_per_frame)
        mass = _range(c.mass_range) if c.mass_range else c.mass
        options |= {"gravity": ",".join(map(decimal, c.gravity)), "mass": mass, "fixed": _lists(c.fixed)}
        options |= {"walls": _lists(c.walls), "render": c.render, "seed": self.seed}
        return shlex.join(["s2rm-data", "bballs", *(f"--{name}={value}" for name, value in options.items())])

    def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
        if not 0 <= start <= stop <= self.count:
            raise IndexError(f"sequences {start} to {stop} of {self.group}, which has {self.count}")
        seeds = sequence_seeds(self.seed, self.group, start, stop)
        position, velocity, radius, mass = simulate_sequences(seeds, self.config)
        stored = position.astype(np.float32)
        frames = np.ascontiguousarray(render_frames(stored, radius, self.config))
        more = {"mass": mass} if isinstance(self.config, GeneralConfig) else {}
        states: dict[str, np.ndarray] = {"position": stored, "velocity": velocity.astype(np.float32)}
        return {"frames": frames, **states, "radius": radius, **more, "seed": seeds}


def split_from_settings(settings: dict[str, Any], count: int) -> BallsSplit:
    """The split that was stored with these settings."""
    return BallsSplit(config=config_of(settings), split=settings["split"], count=count, seed=settings["seed"])


def plan(
    *,
    balls: Iterable[int],
    train: int = PAPER_TRAIN,
    val: int = PAPER_VAL,
    test: int = PAPER_TEST,
    train_balls: int | None = None,
    frames: int = ball_config.PAPER_FRAMES,
    size: int = ball_config.PAPER_SIZE_PX,
    preset: str = "kvae",
    radius: float | tuple[float, float] | None = None,
    speed: tuple[float, float] | None = None,
    gravity: tuple[float, float] | None = None,
    mass: str | tuple[float, float] | None = None,
    fixed: int | Sequence[Sequence[float]] | None = None,
    walls: Sequence[Sequence[float]] | None = None,
    render: str | None = None,
    seed: int = 0,
) -> list[BallsSplit]:
    """The splits of a data set: train and val with `train_balls` balls, and `test_<n>` for each n of `balls`.
    `train_balls` is 3 where that is among `balls`, else the smallest of them. A count of 0 leaves a split out. `radius`
    in px and `speed` (min, max) in px/frame replace those of the preset. A range of radii, or any of the options from
    `gravity` to `render`, makes a general world, see `GeneralConfig`."""
    counts = sorted(set(balls))
    if not counts:
        raise UsageError("no number of balls given; give at least one, such as 3 or 1-6")
    for name, count in (("train", train), ("val", val), ("test", test)):
        checked(name, count, Annotated[int, between(0, MAX_SEQUENCES)])
    if train_balls is None:
        train_balls = PAPER_TRAIN_BALLS if PAPER_TRAIN_BALLS in counts else counts[0]
    wanted = [("train", train_balls, train), ("val", train_balls, val), *((f"test_{n}", n, test) for n in counts)]
    if not (wanted := [entry for entry in wanted if entry[2]]):
        raise UsageError("all splits are left out: the numbers of training, validation and test sequences are 0")
    shared: dict[str, Any] = {"frames": frames, "size": size, "preset": preset, "radius_px": radius}
    shared["speed_px_per_frame"] = speed
    more = {"gravity": gravity, "mass": mass, "fixed": fixed, "walls": walls, "render": render}
    more = {name: value for name, value in more.items() if value is not None}
    make: type[AnyConfig] = BallsConfig
    if more or isinstance(radius, tuple):
        make, shared = GeneralConfig, _general_options(shared | more, seed)
    configs: dict[int, AnyConfig] = {n: make(balls=n, **shared) for _, n, _ in wanted}
    for config in (config for config in configs.values() if isinstance(config, GeneralConfig)):
        check_room(config)
    return [BallsSplit(config=configs[n], split=split, count=count, seed=seed) for split, n, count in wanted]


def _general_options(options: dict[str, Any], seed: int) -> dict[str, Any]:
    """Fields of a `GeneralConfig` from what was asked for."""
    radius, fixed = options["radius_px"], options.get("fixed")
    if radius is not None and not isinstance(radius, tuple):
        radius = options["radius_px"] = (radius, radius)
    if isinstance(options.get("mass"), tuple):
        options |= {"mass": "range", "mass_range": options["mass"]}
    if fixed is not None:  # a ball without a radius is as large as the largest that moves
        shape = {"size": options["size"], "preset": options["preset"], "radius_px": radius}
        empty = GeneralConfig(balls=1, **shape, fixed=(), walls=options.get("walls") or ())
        places = scattered(fixed, empty, seed) if isinstance(fixed, int) else fixed
        options["fixed"] = tuple(tuple(ball) if len(ball) == 3 else (*ball, empty.radius_px[1]) for ball in places)
    return options


def decimal(value: float) -> str:
    """The shortest decimal that reads back as this float, without an exponent, whose sign would look like a range."""
    return np.format_float_positional(value, trim="-")


def _range(values: tuple[float, float]) -> str:
    return "-".join(map(decimal, values))


def _lists(values: tuple[tuple[float, ...], ...]) -> str:
    return ";".join(",".join(map(decimal, value)) for value in values) or "none"
