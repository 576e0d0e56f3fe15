"""Splits of the bouncing-ball data: what a store keeps of a sequence, and how any range of sequences is made.

Frames are rendered from the positions and the radius as they are stored, so that a reader can draw them again, bit for
bit, from the states beside them.
"""

# N sequences, T frames, n balls, 2 coordinates (x, y), S size of the box, W = ceil(S / 8) bytes per row

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from s2rm_data.config import between, check_fields, checked, from_json, to_json
from s2rm_data.errors import UsageError
from s2rm_data.generators.bballs.config import PAPER_FRAMES, PAPER_SIZE_PX, BallsConfig, packed_width
from s2rm_data.generators.bballs.render import render
from s2rm_data.generators.bballs.simulate import simulate_sequences
from s2rm_data.schema import ArraySpec
from s2rm_data.seeding import MAX_SEED, sequence_seeds

if TYPE_CHECKING:
    from s2rm_data.generators.bballs.general.source import GeneralSplit

GENERATOR_VERSION = 1  # raised whenever the same config and seed would give other bytes
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


@dataclass(frozen=True, kw_only=True)
class AnySplit:
    """What the splits `bballs/<split>` of all physics have in common."""

    config: Any
    split: str  # `train`, `val` or `test_<n>`
    count: Annotated[int, between(1, MAX_SEQUENCES)]
    seed: Annotated[int, between(0, MAX_SEED)] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.split not in ("train", "val", f"test_{self.config.balls}"):
            raise UsageError(
                f"no split {self.split!r} with {self.config.balls} balls; "
                f"the choices are train, val and test_{self.config.balls}"
            )

    @property
    def group(self) -> str:
        return f"bballs/{self.split}"

    @property
    def first_dim(self) -> str:
        return "sequence"


@dataclass(frozen=True, kw_only=True)
class BallsSplit(AnySplit):
    """The split `bballs/<split>` with `count` sequences: a `s2rm_data.schema.SplitSource`."""

    config: BallsConfig

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        c = self.config
        width = packed_width(c.size)
        state = {"shape": (c.frames, c.balls, 2), "dims": ("frame", "ball", "axis"), "chunk": _STATE_CHUNK}
        return (
            ArraySpec(
                name="frames",
                dtype="uint8",
                shape=(c.frames, c.size, width),
                dims=("frame", "row", "packed_column"),
                description="Binary images, one bit a pixel: 1 inside a ball, the fixed one included",
                attributes={
                    "packed_bits": c.size,
                    "bit_order": "big",
                    "unpack": f"numpy.unpackbits(frames, axis=-1, count={c.size}, bitorder='big')",
                },
            ),
            ArraySpec(
                name="position",
                dtype="float32",
                description="Centres of the moving balls, (x, y)",
                units="pixel",
                level=1,
                **state,  # type: ignore[arg-type]
            ),
            ArraySpec(
                name="velocity",
                dtype="float32",
                description="Velocities of the moving balls, (x, y)",
                units="pixel/frame",
                **state,  # type: ignore[arg-type]
            ),
            ArraySpec(
                name="radius",
                dtype="float64",
                shape=(c.balls,),
                dims=("ball",),
                description="Radii of the moving balls, and of the fixed one",
                units="pixel",
                chunk=_STATE_CHUNK,
            ),
            ArraySpec(
                name="seed",
                dtype="uint64",
                shape=(),
                dims=(),
                description="Seed of the sequence, from which the config makes it again",
                chunk=_STATE_CHUNK,
            ),
        )

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "generator": "bballs",
            "generator_version": GENERATOR_VERSION,
            "config": to_json(self.config),
            "seed": self.seed,
            "split": self.split,
        }

    @property
    def attributes(self) -> dict[str, Any]:
        return {"command": self.command, "citation": CITATION, "conventions": dict(CONVENTIONS)}

    @property
    def command(self) -> str:
        """The shell command that makes this split and no other, whatever command it was made by."""
        c = self.config
        counts = {"train": 0, "val": 0, "test": 0, self.split.partition("_")[0]: self.count}
        words = ["s2rm-data", "bballs", "--balls", str(c.balls)]
        for name, count in counts.items():
            words += [f"--{name}", str(count)]
        words += ["--frames", str(c.frames), "--size", str(c.size), "--preset", c.preset]
        plain = BallsConfig(balls=1, size=c.size, preset=c.preset)
        if c.radius_px != plain.radius_px:
            words += ["--radius", decimal(c.radius_px)]
        if c.speed_px_per_frame is not None and c.speed_px_per_frame != plain.speed_px_per_frame:
            words += ["--speed", "-".join(decimal(speed) for speed in c.speed_px_per_frame)]
        return shlex.join([*words, "--seed", str(self.seed)])

    def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
        if not 0 <= start <= stop <= self.count:
            raise IndexError(f"sequences {start} to {stop} of {self.group}, which has {self.count}")
        seeds = sequence_seeds(self.seed, self.group, start, stop)
        states = simulate_sequences(seeds, self.config)
        position, velocity = (state.astype(np.float32) for state in states)
        return {
            "frames": render(position, size=self.config.size, radius_px=self.config.radius_px),
            "position": position,
            "velocity": velocity,
            "radius": np.full((stop - start, self.config.balls), self.config.radius_px),
            "seed": seeds,
        }


def split_from_settings(settings: dict[str, Any], count: int) -> BallsSplit | GeneralSplit:
    """The split that was stored with these settings."""
    if settings.get("physics") == "general":
        from s2rm_data.generators.bballs.general.config import GeneralConfig
        from s2rm_data.generators.bballs.general.source import GeneralSplit

        general = from_json(GeneralConfig, settings["config"])
        return GeneralSplit(config=general, split=settings["split"], count=count, seed=settings["seed"])
    config = from_json(BallsConfig, settings["config"])
    return BallsSplit(config=config, split=settings["split"], count=count, seed=settings["seed"])


def plan(
    *,
    balls: Iterable[int],
    train: int = PAPER_TRAIN,
    val: int = PAPER_VAL,
    test: int = PAPER_TEST,
    train_balls: int | None = None,
    frames: int = PAPER_FRAMES,
    size: int = PAPER_SIZE_PX,
    preset: str = "kvae",
    radius: float | tuple[float, float] | None = None,
    speed: tuple[float, float] | None = None,
    gravity: tuple[float, float] | None = None,
    mass: str | tuple[float, float] | None = None,
    fixed: int | Sequence[Sequence[float]] | None = None,
    walls: Sequence[Sequence[float]] | None = None,
    render: str | None = None,
    seed: int = 0,
) -> list[BallsSplit] | list[GeneralSplit]:
    """The splits of a data set: train and val with `train_balls` balls, and `test_<n>` for each n of `balls`.

    `train_balls` is 3 where that is among `balls`, else the smallest of them. A count of 0 leaves a split out.
    `radius` in px and `speed` (min, max) in px/frame replace those of the preset. A range of radii, or any of the
    options from `gravity` to `render`, makes a general world, see `general.config`.
    """
    counts = sorted(set(balls))
    if not counts:
        raise UsageError("no number of balls given; give at least one, such as 3 or 1-6")
    for name, count in (("train", train), ("val", val), ("test", test)):
        checked(name, count, Annotated[int, between(0, MAX_SEQUENCES)])
    train_balls = train_balls if train_balls is not None else _training_count(counts)
    wanted = [("train", train_balls, train), ("val", train_balls, val)] + [(f"test_{n}", n, test) for n in counts]
    wanted = [entry for entry in wanted if entry[2]]
    if not wanted:
        raise UsageError("all splits are left out: the numbers of training, validation and test sequences are 0")
    shared = {"frames": frames, "size": size, "preset": preset, "radius_px": radius, "speed_px_per_frame": speed}
    more = {"gravity": gravity, "mass": mass, "fixed": fixed, "walls": walls, "render": render}
    more = {name: value for name, value in more.items() if value is not None}
    if more or isinstance(radius, tuple):
        return _general_plan(wanted, shared | more, seed)
    return [
        BallsSplit(config=BallsConfig(balls=n, **shared), split=split, count=count, seed=seed)  # type: ignore[arg-type]
        for split, n, count in wanted
    ]


def _general_plan(wanted: list[tuple[str, int, int]], options: dict[str, Any], seed: int) -> list[GeneralSplit]:
    from s2rm_data.generators.bballs.general.config import GeneralConfig
    from s2rm_data.generators.bballs.general.source import GeneralSplit
    from s2rm_data.generators.bballs.general.start import check_room, scattered

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
    configs = {balls: GeneralConfig(balls=balls, **options) for _, balls, _ in wanted}
    for config in configs.values():
        check_room(config)
    return [GeneralSplit(config=configs[balls], split=split, count=n, seed=seed) for split, balls, n in wanted]


def _training_count(balls: Sequence[int]) -> int:
    return PAPER_TRAIN_BALLS if PAPER_TRAIN_BALLS in balls else balls[0]


def decimal(value: float) -> str:
    """The shortest decimal that reads back as this float, without an exponent, whose sign would look like a range."""
    return np.format_float_positional(value, trim="-")
