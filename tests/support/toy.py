"""A tiny source of sequences, so that store and generation are tested without a simulator."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from s2rm_data.core import write
from s2rm_data.core.schema import ArraySpec, SplitSource
from s2rm_data.core.seeding import sequence_seeds


@dataclass(frozen=True)
class ToySplit(SplitSource):
    """Arrays of every kind the generators use: packed bits, floats, booleans, scalars; one with chunks of 4."""

    group: str = "toy/train"
    count: int = 10
    seed: int = 0

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        return (
            ArraySpec(
                name="frames",
                dtype="uint8",
                shape=(3, 2),
                dims=("time", "byte"),
                description="bits",
                attributes={"packed_bits": 12},
            ),
            ArraySpec(
                name="position", dtype="float32", shape=(3, 2), dims=("time", "axis"), description="x, y", chunk=4
            ),
            ArraySpec(name="alive", dtype="bool", shape=(3,), dims=("time",), description="mask", level=1),
            ArraySpec(name="seed", dtype="uint64", shape=(), dims=(), description="seed", chunk=4),
        )

    @property
    def settings(self) -> dict[str, Any]:
        return {"generator": "toy", "generator_version": 1, "config": {"size": 12}, "seed": self.seed}

    @property
    def attributes(self) -> dict[str, Any]:
        return {"command": "toy"}

    def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
        seeds = sequence_seeds(self.seed, self.group, start, stop)
        values = np.stack([np.random.default_rng(int(s)).integers(0, 256, (3, 2)) for s in seeds])
        frames = values.astype(np.uint8)
        frames[..., -1] &= 0xF0  # 12 bits in two bytes
        return {
            "frames": frames,
            "position": values.astype(np.float32) / 7,
            "alive": values[..., 0] > 100,
            "seed": seeds,
        }


def tree(path: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


class Killed(BaseException):
    """In place of SIGKILL: from then on nothing changes any more."""


def killed_at(moment: int, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the work was ended before its change number `moment`."""
    left = moment

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            nonlocal left
            if left <= 0:
                raise Killed
            left -= 1
            return function(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("rename", "replace", "mkdir", "rmdir", "unlink", "fsync"):
            patch.setattr(os, name, counted(getattr(os, name)))
        patch.setattr(write, "_exchanged", counted(write._exchanged))
        try:
            work()
        except Killed:
            return True
    return False
