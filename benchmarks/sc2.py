"""Speed of the StarCraft II data set, stage by stage, in environment steps per CPU-second of one core.

    python benchmarks/sc2.py [--scenario 3s5z] [--policy smac] [--episodes 400] [--batch 200]

Stages: `engine` plays the steps; `sight` is what it tells (snapshot, masks, orders); `policy` chooses actions; `record`
keeps what was seen and done; `render` draws the polar images, one episode at a time as generation does. Compilation is
timed apart, on a first run of a few episodes: it is cached between processes.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from s2rm_data.generators.sc2 import scenarios
from s2rm_data.generators.sc2 import team as team_module
from s2rm_data.generators.sc2.config import Sc2Config
from s2rm_data.generators.sc2.engine import Engine
from s2rm_data.generators.sc2.polar import render
from s2rm_data.generators.sc2.rollout import Record, rollout
from s2rm_data.generators.sc2.source import terrain_height
from s2rm_data.seeding import sequence_seeds

STAGES = ("engine", "sight", "policy", "record", "render")


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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--scenario", default="3s5z")
    parser.add_argument("--policy", default="smac")
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--batch", type=int, default=200)
    options = parser.parse_args()
    config = Sc2Config(scenario=options.scenario, policy=options.policy)
    start = time.perf_counter()
    run(config, 2, 2, Clock())
    print(f"first episodes, with compilation or loading of compiled code: {time.perf_counter() - start:.1f} s")
    clock = Clock()
    steps = run(config, options.episodes, options.batch, clock)
    total = sum(clock.seconds.values())
    print(
        f"{config.scenario}, {config.policy}, {options.episodes} episodes in batches of {options.batch}: {steps} steps"
    )
    for stage in STAGES:
        seconds = clock.seconds[stage]
        print(f"{stage:8}{steps / seconds:12,.0f} steps/CPU-s{100 * seconds / total:7.1f} %")
    played = clock.seconds["engine"] + clock.seconds["policy"] + clock.seconds["sight"]
    print(f"engine with policy and sight: {steps / played:,.0f} steps/CPU-s; all stages: {steps / total:,.0f}")


if __name__ == "__main__":
    main()
