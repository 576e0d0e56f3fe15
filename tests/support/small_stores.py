"""A store small enough for tests, with both tasks in it: 12 frames a sequence, 8 x 16 polar cells."""

from __future__ import annotations

from pathlib import Path

from s2rm_data.generators.bballs.making.ball_source import plan as plan_balls
from s2rm_data.generators.sc2.making.battle_source import plan as plan_battles
from s2rm_data.making.run import generate
from s2rm_data.store import Store

FRAMES = 12


def make_small_store(path: Path) -> Path:
    balls = plan_balls(balls=(1, 3), train=24, val=6, test=4, frames=FRAMES)
    battles = plan_battles(scenario=["1s2z", "2s3z"], train=6, val=3, steps=FRAMES, radial=8, angular=16)
    generate([*balls, *battles], path, shard_size=16)
    return path


def read_everything(path: Path) -> None:
    """Every array of every group."""
    store = Store(path)
    for group in store.manifest.groups:
        opened = store[group]
        for array in opened.arrays.values():
            array[:]
