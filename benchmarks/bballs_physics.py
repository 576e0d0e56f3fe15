"""Frames per CPU-second of the ball simulator and renderer on one core, beside a memset of the same uint8 frames.

python benchmarks/bballs_physics.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from s2rm_data.generators.bballs import BallsConfig, BallsSplit
from s2rm_data.generators.bballs.render import render
from s2rm_data.generators.bballs.simulate import simulate_sequences
from s2rm_data.seeding import sequence_seeds

REPEATS = 9


def frames_per_second(work: Callable[[], object], frames: int) -> float:
    """Best of several runs after one that compiles, in frames per second of CPU time."""
    work()
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return frames / min(times)


def main() -> None:
    print("million frames per CPU-second    simulate  render  produce  memset  render/memset")
    for preset in ("kvae", "sutskever"):
        for balls in (1, 2, 3, 6, 12):
            config = BallsConfig(balls=balls, preset=preset)
            count = 500 if balls <= 6 else 50
            seeds = sequence_seeds(0, "benchmark", 0, count)
            position = simulate_sequences(seeds, config)[0].astype(np.float32)
            split = BallsSplit(config=config, split="train", count=count)
            images = np.empty((count, config.frames, config.size, config.size), dtype=np.uint8)
            works: tuple[Callable[[], object], ...] = (
                lambda seeds=seeds, config=config: simulate_sequences(seeds, config),
                lambda p=position, c=config: render(p, size=c.size, radius_px=c.radius_px),
                lambda split=split, count=count: split.produce(0, count),
                lambda images=images: images.fill(1),
            )
            rates = [frames_per_second(work, count * config.frames) / 1e6 for work in works]
            row = "  ".join(f"{rate:6.2f}" for rate in rates)
            print(f"{preset:10s} {balls:3d} balls             {row}   {rates[1] / rates[3]:6.2f}")


if __name__ == "__main__":
    main()
