"""The smallest complete world: a dot walks over a torus, seen through 5 x 5 crops. Used with --plugin tiny_world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from s2rm_data.core.check import whole
from s2rm_data.core.schema import ArraySpec, SplitSource
from s2rm_data.making.world import Making, Option, World

__version__ = "1.2"
SIZE, FRAMES = 12, 8


@dataclass(frozen=True, kw_only=True)
class DotSplit(SplitSource):
    """The split `dots/<split>`."""

    split: str
    count: int
    seed: int = 0

    @property
    def group(self) -> str:
        return f"dots/{self.split}"

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        image = ("frame", "row", "column")
        return (
            ArraySpec(name="frames", dtype="uint8", shape=(FRAMES, SIZE, SIZE), dims=image, description="Dot: 1"),
            ArraySpec(name="speed", dtype="float32", shape=(2,), dims=("axis",), description="Velocity", units="pixel"),
        )

    @property
    def settings(self) -> dict[str, Any]:
        config = {"size": SIZE, "frames": FRAMES}
        return {"generator": "dots", "generator_version": 1, "config": config, "seed": self.seed, "split": self.split}

    @property
    def attributes(self) -> dict[str, Any]:
        return {"command": f"s2rm-data dots --{self.split} {self.count} --seed {self.seed}"}

    def produce(self, start: int, stop: int) -> dict[str, Any]:
        import numpy as np

        from s2rm_data.extend import sequence_seeds

        frames = np.zeros((stop - start, FRAMES, SIZE, SIZE), np.uint8)
        speed = np.zeros((stop - start, 2), np.float32)
        for n, seed in enumerate(sequence_seeds(self.seed, self.group, start, stop)):
            random = np.random.default_rng(int(seed))
            place, speed[n] = random.integers(0, SIZE, 2), random.integers(-2, 3, 2)
            for t in range(FRAMES):
                x, y = (place + t * speed[n]).astype(int)
                frames[n, t][np.ix_(np.arange(y, y + 3) % SIZE, np.arange(x, x + 3) % SIZE)] = 1
        return {"frames": frames, "speed": speed}


class Dots(World):
    name = "dots"
    title = "Walking dots"
    help = "Generate dots that walk over a torus."
    options = (
        Option(name="train", parse=whole(0), default=24, help="Training sequences."),
        Option(name="val", parse=whole(0), default=6, help="Validation sequences."),
        Option(name="test", parse=whole(0), default=6, help="Test sequences."),
    )

    def plan(self, *, seed: int, **counts: int) -> Making:
        splits = [DotSplit(split=name, count=count, seed=seed) for name, count in counts.items() if count]
        return Making(splits=splits, shard_size=8)

    def split_from(self, settings: dict[str, Any], count: int) -> SplitSource:
        return DotSplit(split=settings["split"], count=count, seed=settings["seed"])

    def learning(self) -> Any:
        from tiny_world.learning import LEARNING

        return LEARNING


WORLD = Dots()
