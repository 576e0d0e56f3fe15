"""How fast bouncing balls are made: simulate, render, write, end to end, in frames per CPU-second on one core.

Every figure stands beside its limit, measured in the same run: the memset of the same frames for making them, a raw
write of the same bytes for storing them; and beside a plain sub-stepped NumPy simulator in the style of the field's
earlier generators (fixed sub-steps, pairwise loops in Python, one sequence at a time). Read the ratios.

    python benchmarks/bballs.py [--sequences 2000] [--balls 3]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.bballs.making.ball_config import BallsConfig
from s2rm_data.generators.bballs.making.ball_render import render
from s2rm_data.generators.bballs.making.ball_simulate import simulate_sequences
from s2rm_data.generators.bballs.making.ball_source import BallsSplit
from s2rm_data.making.run import generate

SUBSTEPS = 10  # per frame, as the RTRBM script takes them


def cpu_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Best of several runs, CPU time of all threads."""
    work()
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def substepped(config: BallsConfig, start: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """(T, S, S) frames of one sequence by fixed sub-steps, every pixel tested."""
    x, v, r, size = start.copy(), velocity.copy(), config.radius_px, config.size
    centre = np.array([size / 2, size / 2])
    grid = np.stack(np.meshgrid(np.arange(size) + 0.5, np.arange(size) + 0.5), axis=-1)
    frames = np.zeros((config.frames, size, size), dtype=np.uint8)
    for t in range(config.frames):
        for ball in (*x, centre):
            frames[t] |= ((grid - ball) ** 2).sum(-1) <= r * r
        for _ in range(SUBSTEPS):
            x += v / SUBSTEPS
            v[x < r] = abs(v[x < r])
            v[x > size - r] = -abs(v[x > size - r])
            for i in range(len(x)):
                offset = x[i] - centre
                if offset @ offset < 4 * r * r and v[i] @ offset < 0:
                    v[i] -= 2 * (v[i] @ offset) / (offset @ offset) * offset
                for j in range(i):
                    offset = x[i] - x[j]
                    if offset @ offset < 4 * r * r:
                        push = ((v[i] - v[j]) @ offset) / (offset @ offset) * offset
                        v[i] -= push
                        v[j] += push
    return frames


def raw_write(folder: Path, nbytes: int) -> None:
    """The same number of bytes in one file, with fsync: what the disk and the system take alone."""
    with (folder / "raw").open("wb") as file:
        file.write(os.urandom(1 << 20) * (nbytes >> 20) + bytes(nbytes & 0xFFFFF))
        os.fsync(file.fileno())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=2000)
    parser.add_argument("--balls", type=int, default=3)
    options = parser.parse_args()
    config = BallsConfig(balls=options.balls)
    frames = options.sequences * config.frames
    seeds = sequence_seeds(0, "benchmark", 0, options.sequences)
    position, velocity, radius, _ = simulate_sequences(seeds, config)
    stored = position.astype(np.float32)
    packed = render(stored, radius, config)
    split = BallsSplit(config=config, split="train", count=options.sequences)
    batch = 60  # sequences; fits the cache, as generation does it

    def in_batches(work: Callable[[slice], object]) -> Callable[[], None]:
        return lambda: [work(slice(i, i + batch)) for i in range(0, options.sequences, batch)] and None

    def make() -> None:
        for start in range(0, split.count, batch):
            split.produce(start, min(start + batch, split.count))

    unpacked = np.empty((batch, config.frames, config.size, config.size), np.uint8)
    seconds = {
        "memset of the packed frames": cpu_seconds(in_batches(lambda s: packed[s].fill(0))),
        "memset of the frames as bytes": cpu_seconds(in_batches(lambda s: unpacked.fill(0))),
        "simulate": cpu_seconds(in_batches(lambda s: simulate_sequences(seeds[s], config))),
        "render": cpu_seconds(in_batches(lambda s: render(stored[s], radius[s], config))),
        "make (simulate, render, convert)": cpu_seconds(make),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        number = iter(range(1000))
        outcomes = []
        seconds["end to end (make, compress, write)"] = cpu_seconds(
            lambda: outcomes.append(generate([split], folder / f"{next(number)}.zarr", workers=1)), repeats=3
        )
        nbytes = outcomes[0].nbytes
        seconds["raw write of the same bytes"] = cpu_seconds(lambda: raw_write(folder, nbytes), repeats=3)
    seconds["write (compress, checksum, commit)"] = (
        seconds["end to end (make, compress, write)"] - seconds["make (simulate, render, convert)"]
    )
    plain = cpu_seconds(lambda: substepped(config, position[0, 0], velocity[0, 0]), repeats=3) * options.sequences
    seconds["plain sub-stepped NumPy simulator"] = plain

    limits = {
        "simulate": "memset of the frames as bytes",
        "render": "memset of the packed frames",
        "make (simulate, render, convert)": "memset of the frames as bytes",
        "write (compress, checksum, commit)": "raw write of the same bytes",
        "end to end (make, compress, write)": "raw write of the same bytes",
    }
    print(f"{options.sequences} sequences of {config.frames} frames, {options.balls} balls: {nbytes / 1e6:.1f} MB\n")
    print(f"{'stage':<36} {'frames/CPU-s':>13} {'x plain':>9}  of its limit")
    for stage, value in seconds.items():
        limit = f"{seconds[limits[stage]] / value:6.1%} of {limits[stage]}" if stage in limits else ""
        print(f"{stage:<36} {frames / value:>13,.0f} {plain / value:>8.1f}x  {limit}")


if __name__ == "__main__":
    main()
