"""Speed of the StarCraft II data set, stage by stage, in environment steps per CPU-second of one core.

    python benchmarks/sc2.py [--scenario 3s5z] [--policy smac] [--episodes 400] [--batch 200]
    python benchmarks/sc2.py --policies       # win rates and episode lengths on the paper's scenarios, as a table
    python benchmarks/sc2.py --resolutions    # units lost and bytes per episode at several sizes of the images
    python benchmarks/sc2.py --generation     # end to end, with images lent and made whole; both to the same bytes

Stages: `engine` plays the steps; `sight` is what it tells (snapshot, masks, orders); `policy` chooses actions; `record`
keeps what was seen and done; `render` draws the polar images, one episode at a time as generation does; `write`
compresses, checksums and commits (all of a generation less the stages before). Compilation is timed apart, on a first
run of a few episodes: it is cached between processes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.sc2.making.battle_config import PAPER_TEST, PAPER_TRAINING, Sc2Config
from s2rm_data.generators.sc2.making.battle_source import Sc2Split
from s2rm_data.generators.sc2.making.battle_source import play as roll_out
from s2rm_data.making.run import generate
from s2rm_data.starcraft import rollout as team_module
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.codes import Outcome
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.polar import PolarGrid, render, terrain_height
from s2rm_data.starcraft.policies import POLICIES
from s2rm_data.starcraft.rollout import Record, rollout
from s2rm_data.store import Store

STAGES = ("engine", "sight", "policy", "record", "render", "write")


class Clock:
    """CPU seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[stage] += time.process_time() - start

        return wrapper


def play(config: Sc2Config, seeds: np.ndarray, clock: Clock) -> Record:
    scenario = scenarios.parse(config.scenario)
    battles: Any = Engine(scenario, seeds)
    battles.step = clock.timed("engine", battles.step)
    for name in ("snapshot", "available", "orders"):
        setattr(battles, name, clock.timed("sight", getattr(battles, name)))
    plain = team_module.Team.act
    team_module.Team.act = clock.timed("policy", plain)  # type: ignore[method-assign]
    start, before = time.process_time(), sum(clock.seconds.values())
    try:
        record = rollout(
            battles, scenario, policy=config.policy, epsilon=config.epsilon or 0.0, seeds=seeds, steps=config.steps
        )
    finally:
        team_module.Team.act = plain  # type: ignore[method-assign]
    clock.seconds["record"] += time.process_time() - start - (sum(clock.seconds.values()) - before)
    return record


def run(config: Sc2Config, episodes: int, batch: int, clock: Clock) -> int:
    """Plays and renders; returns the environment steps that were played."""
    terrain, steps = terrain_height(config.scenario), 0
    draw = clock.timed("render", render)
    for start in range(0, episodes, batch):
        seeds = sequence_seeds(0, "benchmark", start, min(start + batch, episodes))
        record = play(config, seeds, clock)
        steps += int(record["length"].sum())
        for row in range(len(seeds)):
            one = {name: values[row : row + 1] for name, values in record.items()}
            draw(one, grid=config.grid, terrain=terrain)
    return steps


def write_seconds(config: Sc2Config, episodes: int, made: float) -> tuple[float, float]:
    """CPU seconds of storing (all of generation less what `made` the arrays), and of a raw write of the same bytes."""
    split = Sc2Split(config=config, seed=0, split="train", count=episodes)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        outcome = generate([split], Path(folder) / "data.zarr", workers=1, shard_size=200)
        whole = time.process_time() - start
        data = os.urandom(outcome.nbytes)
        start = time.process_time()
        with (Path(folder) / "raw").open("wb") as file:
            file.write(data)
            os.fsync(file.fileno())
        return whole - made, time.process_time() - start


class Whole:
    """A split that makes its arrays whole instead of lending them."""

    def __init__(self, split: Sc2Split) -> None:
        self._split = split

    def __getattr__(self, name: str) -> Any:
        if name == "lend":
            raise AttributeError(name)
        return getattr(self.__dict__["_split"], name)


def print_generation(config: Sc2Config, episodes: int) -> None:
    """Steps per CPU-second from the seed to the committed store, and the digest of its content; in turns, best of 3."""
    split = Sc2Split(config=config, seed=0, split="train", count=episodes)
    best: dict[str, float] = {}
    digests, steps = set(), 0
    for _ in range(3):
        for name, source in (("lent", split), ("whole", Whole(split))):
            with tempfile.TemporaryDirectory() as folder:
                start = time.process_time()
                generate([source], Path(folder) / "data.zarr", workers=1, shard_size=200)
                best[name] = min(best.get(name, 1e9), time.process_time() - start)
                files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
                digests.add(hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest())
                steps = int(Store(Path(folder) / "data.zarr")[split.group]["length"][:].sum())
    for name, seconds in best.items():
        print(f"{name:>8} {steps / seconds:>12,.0f} steps/CPU-s, {1000 * seconds / episodes:.2f} ms per episode")
    print(f"content: {', '.join(sorted(digests))}")
    if len(digests) > 1:
        raise SystemExit("the bytes differ")


def print_policies(episodes: int) -> None:
    """Win rate in percent, its standard error, and the mean length in steps, played to SMAC's limit of the map."""
    names = PAPER_TRAINING + PAPER_TEST
    print("| policy | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for policy in POLICIES.names():
        cells = []
        for name in names:
            config = Sc2Config(scenario=name, policy=policy, steps=scenarios.parse(name).limit_steps)
            record = roll_out(config, sequence_seeds(0, "benchmark", 0, episodes))
            won = float((record["outcome"] == Outcome.WIN).mean())
            error = (won * (1 - won) / episodes) ** 0.5
            cells.append(f"{100 * won:.0f} ± {100 * error:.0f} %, {record['length'].mean():.1f}")
        print(f"| {policy} | " + " | ".join(cells) + " |")


def print_resolutions(episodes: int) -> None:
    """Share of units in view that lost their cell to another, and compressed bytes of the images per episode."""
    names = PAPER_TRAINING + PAPER_TEST
    records = {name: roll_out(Sc2Config(scenario=name), sequence_seeds(0, "benchmark", 0, episodes)) for name in names}
    compress = zstandard.ZstdCompressor(level=1).compress
    print("| I x J | " + " | ".join(names) + " | kB per episode of 3s5z |\n|---|" + "---|" * (len(names) + 1))
    for radial, angular in ((12, 32), (16, 32), (18, 36), (16, 48), (16, 64), (24, 48), (32, 64)):
        grid, cells, nbytes = PolarGrid(radial=radial, angular=angular, radius=9.0), [], 0
        for name, record in records.items():
            seen = lost = 0
            for row in range(episodes):
                one = {key: values[row : row + 1] for key, values in record.items()}
                images = render(one, grid=grid, terrain=terrain_height(name))
                seen, lost = seen + images["units_in_view"][0], lost + images["units_lost"][0]
                if name == "3s5z":
                    nbytes += sum(len(compress(images[key].tobytes())) for key in ("categories", "hecs", "height"))
            cells.append(f"{100 * lost / seen:.2f} %")
        print(f"| {radial} x {angular} | " + " | ".join(cells) + f" | {nbytes / episodes / 1000:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--scenario", default="3s5z")
    parser.add_argument("--policy", default="smac")
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--policies", action="store_true")
    parser.add_argument("--resolutions", action="store_true")
    parser.add_argument("--generation", action="store_true")
    options = parser.parse_args()
    if options.policies or options.resolutions:
        (print_policies if options.policies else print_resolutions)(options.episodes)
        return
    config = Sc2Config(scenario=options.scenario, policy=options.policy)
    if options.generation:
        print_generation(config, options.episodes)
        return
    start = time.perf_counter()
    run(config, 2, 2, Clock())
    print(f"first episodes, with compilation or loading of compiled code: {time.perf_counter() - start:.1f} s")
    clock = Clock()
    steps = run(config, options.episodes, options.batch, clock)
    clock.seconds["write"], raw = write_seconds(config, options.episodes, sum(clock.seconds.values()))
    total = sum(clock.seconds.values())
    print(f"{options.scenario}, {options.policy}: {steps} steps of {options.episodes} episodes")
    for stage in STAGES:
        print(
            f"{stage:>8} {steps / clock.seconds[stage]:>12,.0f} steps/CPU-s {100 * clock.seconds[stage] / total:5.1f} %"
        )
    played = sum(clock.seconds[stage] for stage in ("engine", "sight", "policy"))
    print(f"engine, sight and policy: {steps / played:,.0f} steps/CPU-s; end to end: {steps / total:,.0f} steps/CPU-s")
    print(f"a raw write of the same bytes takes {raw / clock.seconds['write']:.1%} of the write stage")


if __name__ == "__main__":
    main()
