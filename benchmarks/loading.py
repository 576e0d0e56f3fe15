"""How fast batches come from a store, on one core.

    python benchmarks/loading.py                       # makes small stores of its own in a temporary folder
    python benchmarks/loading.py --store data.zarr     # takes the training splits of yours

Balls: 32 sequences of 100 frames per batch, with 10 crops per frame in and 10 out. Target: 3,000 sequences per second.
StarCraft II: 8 episodes per batch; images rendered from the states in memory, against reading the stored images.
Speeds are given by the wall clock and by the processor time of the process (on a busy machine only the latter tells).
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch

from s2rm_data.generators.sc2.learning.battle_batches import BattleSource
from s2rm_data.learning import Prefetcher, TrainingBatches, groups_of, open_source, tasks_of
from s2rm_data.making.run import generate
from s2rm_data.store import Store
from s2rm_data.training.machine import tune_allocator


def speed(what: str, sequences: int, function: Callable[..., object], keys: Iterable[tuple[int, int]] = ((),)) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    for key in keys:
        function(*key)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:<66}{sequences / wall:>10,.0f}/s{sequences / cpu:>10,.0f}/s of processor time")


def keys_of(made: TrainingBatches, batches: int) -> list[tuple[int, int]]:
    return list(itertools.islice(made.keys_from(0, 0), batches))


def balls(store: Store, batches: int) -> None:
    sequences = len(store["bballs/train"])
    begun = time.process_time()
    source = open_source(store, "bballs", "train")
    seconds, megabytes = time.process_time() - begun, source.frames.nbytes / 1e6
    print(f"bballs: {sequences:,} sequences read and checked in {seconds:.2f} s of processor time, {megabytes:,.0f} MB")
    made = TrainingBatches(source, batch_size=32, seed=0)
    keys = keys_of(made, batches)
    made.batch(0, 0)
    speed("  batches, input and target crops", 32 * batches, made.batch, keys)

    def prefetched() -> None:
        with Prefetcher(source, keys, lambda key: made.request(*key)) as prefetcher:
            for _ in prefetcher:
                pass

    speed("  the same, through the prefetch thread", 32 * batches, prefetched)

    def from_store() -> None:
        epoch = TrainingBatches(open_source(store, "bballs", "train"), batch_size=32, seed=0)
        for step in range(epoch.steps_per_epoch):
            epoch.batch(0, step)

    speed("  one whole epoch, reading from the store included", sequences // 32 * 32, from_store)


def battles(store: Store, batches: int) -> None:
    for steps in (None, 20):
        rendered_battles(open_source(store, "sc2", "train", steps=steps), batches)
    groups = [store[path] for path in groups_of(store, "sc2", "train")]
    each = max(8 // len(groups), 1)
    random = np.random.default_rng(0)

    def read() -> None:
        for group in groups:
            rows = random.integers(0, len(group), each)
            for name in ("categories", "hecs", "height", "agent_position", "agent_alive"):
                group[name][rows]

    read()
    speed("  stored images read instead (whole episodes only)", each * len(groups) * batches, read, [()] * batches)


def rendered_battles(source: BattleSource, batches: int) -> None:
    made = TrainingBatches(source, batch_size=8, seed=0)
    keys = keys_of(made, batches)
    made.batch(0, 0)
    print(f"sc2: {', '.join(source.groups)}; windows of {source.steps} steps")
    speed("  images rendered from the states", 8 * batches, lambda *key: source._records(made.request(*key)), keys)
    speed("  whole batches (float views assembled)", 8 * batches, made.batch, keys)


def small_store(folder: str) -> Store:
    from s2rm_data.generators.bballs.making.ball_source import plan
    from s2rm_data.generators.sc2.making.battle_source import plan as plan_battles

    path = Path(folder) / "data.zarr"
    generate(plan(balls=[3], train=4000, val=0, test=0), path)
    generate(plan_battles(scenario=["1c3s5z", "3s5z", "2s3z", "2s5z"], train=50, val=0), path)
    return Store(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--batches", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(1)
    tune_allocator()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(options.store) if options.store else small_store(folder)
        if "bballs" in tasks_of(store):
            balls(store, options.batches)
        if "sc2" in tasks_of(store):
            battles(store, max(options.batches // 5, 1))


if __name__ == "__main__":
    main()
