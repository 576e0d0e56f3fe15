"""Splits of general worlds: what a store keeps of a sequence, and how any range of sequences is made."""

# N sequences, T frames, n balls, 2 coordinates (x, y), S size of the box, W bytes per row

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from s2rm_data.config import to_json
from s2rm_data.generators.bballs.config import BallsConfig
from s2rm_data.generators.bballs.general.config import GeneralConfig
from s2rm_data.generators.bballs.general.render import render_general
from s2rm_data.generators.bballs.general.simulate import simulate_general
from s2rm_data.generators.bballs.source import CITATION, CONVENTIONS, AnySplit, BallsSplit, decimal
from s2rm_data.schema import ArraySpec
from s2rm_data.seeding import sequence_seeds

GENERAL_VERSION = 1  # raised whenever the same config and seed would give other bytes
_IMAGES = {
    "binary": "Binary images, one bit a pixel: 1 inside a ball, a fixed ball or an inner wall",
    "grey": "Grey images: 255 times the share of the pixel inside a ball, a fixed ball or an inner wall",
    "colour": "Colour images by share of the pixel: each ball in its colour, fixed balls and inner walls grey",
}


@dataclass(frozen=True, kw_only=True)
class GeneralSplit(AnySplit):
    """The split `bballs/<split>` of a general world: a `s2rm_data.schema.SplitSource`."""

    config: GeneralConfig

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """Those of a plain split, with a description of the frames of its own, and the masses."""
        c = self.config
        plain = BallsSplit(config=BallsConfig(balls=1, frames=c.frames, size=c.size), split="test_1", count=1).arrays
        arrays = {spec.name: spec for spec in plain}
        frames = replace(arrays["frames"], description=_IMAGES[c.render])
        if c.render != "binary":
            colours = ((3,), ("colour",)) if c.render == "colour" else ((), ())
            frames = replace(
                frames,
                shape=(c.frames, c.size, c.size, *colours[0]),
                dims=("frame", "row", "column", *colours[1]),
                attributes={},
            )
        state = (c.frames, c.balls, 2)
        radius = replace(arrays["radius"], shape=(c.balls,), description="Radii of the moving balls")
        mass = replace(radius, name="mass", description="Masses of the moving balls", units="")
        moving = (replace(arrays["position"], shape=state), replace(arrays["velocity"], shape=state))
        return frames, *moving, radius, mass, arrays["seed"]

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "generator": "bballs",
            "generator_version": GENERAL_VERSION,
            "physics": "general",
            "config": to_json(self.config),
            "seed": self.seed,
            "split": self.split,
        }

    @property
    def attributes(self) -> dict[str, Any]:
        conventions = CONVENTIONS | {
            "fixed_ball": "config.fixed lists x, y and radius; drawn in the frames, not among the balls",
            "wall": "config.walls lists x0, y0, x1, y1; straight, 1.5 px wide, with round ends; drawn in the frames",
            "gravity": "config.gravity is the acceleration (x, y) of every ball in pixel/frame^2",
        }
        if self.config.render != "binary":
            conventions["on"] = "a level is the share of a pixel's 8 x 8 samples that is covered"
        return {"command": self.command, "citation": CITATION, "conventions": conventions}

    @property
    def command(self) -> str:
        """The shell command that makes this split and no other, whatever command it was made by."""
        c = self.config
        counts = {"train": 0, "val": 0, "test": 0, self.split.partition("_")[0]: self.count}
        options = {"balls": str(c.balls)} | {name: str(count) for name, count in counts.items()}
        options |= {"frames": str(c.frames), "size": str(c.size), "preset": c.preset, "radius": _range(c.radius_px)}
        if c.speed_px_per_frame is not None:
            options["speed"] = _range(c.speed_px_per_frame)
        options |= {
            "gravity": ",".join(map(decimal, c.gravity)),
            "mass": _range(c.mass_range) if c.mass_range else c.mass,
            "fixed": _lists(c.fixed),
            "walls": _lists(c.walls),
            "render": c.render,
            "seed": str(self.seed),
        }
        return shlex.join(["s2rm-data", "bballs", *(f"--{name}={value}" for name, value in options.items())])

    def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
        if not 0 <= start <= stop <= self.count:
            raise IndexError(f"sequences {start} to {stop} of {self.group}, which has {self.count}")
        seeds = sequence_seeds(self.seed, self.group, start, stop)
        position, velocity, radius, mass = simulate_general(seeds, self.config)
        stored = position.astype(np.float32)
        return {
            "frames": np.ascontiguousarray(render_general(stored, radius, self.config)),
            "position": stored,
            "velocity": velocity.astype(np.float32),
            "radius": radius,
            "mass": mass,
            "seed": seeds,
        }


def _range(values: tuple[float, float]) -> str:
    return "-".join(map(decimal, values))


def _lists(values: tuple[tuple[float, ...], ...]) -> str:
    return ";".join(",".join(map(decimal, value)) for value in values) or "none"
