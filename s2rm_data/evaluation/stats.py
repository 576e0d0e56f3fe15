"""What is in a group, in numbers: one pass over its arrays, block by block, so that memory does not grow with it."""

# N sequences or episodes, T steps, n balls, U units of both sides, A agents, S side of the arena in pixels

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.errors import UsageError
from s2rm_data.progress import Progress
from s2rm_data.store import Group

BLOCK = 200  # sequences read at once
SPEED_BINS = 40
MAP_SIDE = 32  # map units; all SMAC maps are 32 x 32
TURN_PX_PER_FRAME = 1e-3  # a smaller change of velocity is the rounding of float32


@dataclass(frozen=True, kw_only=True)
class GroupStats:
    """`row` is the group's line of the table. Maps are (side, side) arrays; histograms (edges, counts)."""

    group: str
    generator: str
    row: dict[str, Any]
    maps: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    histograms: dict[str, tuple[NDArray[Any], NDArray[Any]]] = field(default_factory=dict)
    curves: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    shares: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "generator": self.generator,
            **self.row,
            "maps": {name: np.round(values, 6).tolist() for name, values in self.maps.items()},
            "histograms": {
                name: {"edges": edges.tolist(), "counts": counts.tolist()}
                for name, (edges, counts) in self.histograms.items()
            },
            "curves": {name: np.round(values, 6).tolist() for name, values in self.curves.items()},
            "shares": self.shares,
        }


def stats_of(group: Group, progress: Progress | None = None) -> GroupStats:
    """`progress` is advanced by sequences."""
    generator = group.settings["generator"]
    if generator not in _COUNTERS:
        raise UsageError(f"{group.path} was made by {generator!r}; statistics are known for {', '.join(_COUNTERS)}")
    return _COUNTERS[generator](group, progress or Progress())


def wilson(hits: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """95% interval of a share (Wilson 1927), which stays within 0 and 1 for few or extreme counts."""
    if not total:
        return 0.0, 1.0
    share, spread = hits / total, z * z / total
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def _blocks(group: Group, names: tuple[str, ...], progress: Progress) -> Iterator[dict[str, NDArray[Any]]]:
    for start in range(0, len(group), BLOCK):
        stop = min(start + BLOCK, len(group))
        yield {name: group[name][start:stop] for name in names}
        progress.advance(stop - start)


class _Moments:
    """Mean, spread and range of values that come in blocks."""

    def __init__(self) -> None:
        self.count, self.sum, self.squares, self.low, self.high = 0, 0.0, 0.0, math.inf, -math.inf

    def add(self, values: NDArray[Any]) -> None:
        if values.size:
            self.count += values.size
            self.sum += float(values.sum(dtype=np.float64))
            self.squares += float(np.square(values, dtype=np.float64).sum())
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    @property
    def mean(self) -> float:
        return self.sum / max(self.count, 1)

    @property
    def deviation(self) -> float:
        return math.sqrt(max(self.squares / max(self.count, 1) - self.mean**2, 0.0))


def _ball_stats(group: Group, progress: Progress) -> GroupStats:
    config = group.settings["config"]
    frames = group["frames"].shape[1]
    speed, turns, on = _Moments(), _Moments(), np.zeros((config["size"], config["size"]))
    top = _speed_limit(config)
    edges, counts = np.linspace(0.0, top, SPEED_BINS + 1), np.zeros(SPEED_BINS, np.int64)
    for block in _blocks(group, ("frames", "velocity"), progress):
        velocity = block["velocity"]
        found = np.linalg.norm(velocity, axis=-1)
        speed.add(found)
        counts += np.histogram(np.minimum(found, np.nextafter(top, 0)), edges)[0]
        turns.add(np.asarray((np.abs(np.diff(velocity, axis=1)) > TURN_PX_PER_FRAME).any(-1)))
        on += block["frames"].sum((0, 1), dtype=np.int64)
    density = on / (len(group) * frames)
    row = {
        "sequences": len(group),
        "frames": frames,
        "balls": config["balls"],
        "radius_px": round(float(config["radius_px"]), 3),
        "speed_mean_px_per_frame": round(speed.mean, 4),
        "speed_sd_px_per_frame": round(speed.deviation, 4),
        "speed_min_px_per_frame": round(speed.low, 4),
        "speed_max_px_per_frame": round(speed.high, 4),
        "collisions_per_ball_and_frame": round(turns.mean, 4),
        "pixels_on_share": round(float(density.mean()), 4),
    }
    return GroupStats(
        group=group.path,
        generator="bballs",
        row=row,
        maps={"density": density},
        histograms={"speed": (edges, counts)},
    )


def _speed_limit(config: dict[str, Any]) -> float:
    """Px/frame, somewhat above what the balls of a group can reach: collisions hand all energy to one of them."""
    speeds = config["speed_px_per_frame"]
    fastest = config["system_speed_px_per_frame"] if speeds is None else speeds[1] * math.sqrt(config["balls"])
    return 1.02 * float(fastest)


_EPISODE = ("length", "outcome", "policy", "reward", "units_in_view", "units_lost", "agent_alive")


def _battle_stats(group: Group, progress: Progress) -> GroupStats:
    outcomes, policies = group.attributes["outcomes"], group.attributes["policies"]
    steps, agents = group["action"].shape[1:]
    ended = np.zeros((len(policies), len(outcomes)), np.int64)
    lengths = np.zeros((len(outcomes), steps + 1), np.int64)
    density, alive = np.zeros((2, MAP_SIDE, MAP_SIDE)), np.zeros((2, steps))
    earned, in_view, lost, images = _Moments(), 0, 0, 0
    for block in _blocks(group, (*_EPISODE, "unit_position", "unit_alive"), progress):
        np.add.at(ended, (block["policy"], block["outcome"]), 1)
        np.add.at(lengths, (block["outcome"], block["length"]), 1)
        earned.add(block["reward"].sum(1))
        in_view += int(block["units_in_view"].sum())
        lost += int(block["units_lost"].sum())
        images += int(block["agent_alive"].sum())
        for side, units in enumerate((slice(0, agents), slice(agents, None))):
            living = block["unit_alive"][..., units]
            alive[side] += living.sum((0, 2))
            density[side] += _density(block["unit_position"][..., units, :][living])
    played = np.maximum(lengths.sum(0)[::-1].cumsum()[::-1][1:], 1)  # episodes that reach each step
    row = _battle_row(group, ended.sum(0), lengths.sum(0)) | {
        "return_mean": round(earned.mean, 3),
        "units_per_image": round(in_view / max(images, 1), 3),
        "units_lost_share": round(lost / max(in_view, 1), 5),
    }
    return GroupStats(
        group=group.path,
        generator="sc2",
        row=row,
        maps={side: density[i] / max(density[i].sum(), 1) for i, side in enumerate(("agents", "enemies"))},
        histograms={
            f"length, {name}": (np.arange(steps + 2) - 0.5, lengths[i])
            for i, name in enumerate(outcomes)
            if lengths[i].any()
        },
        curves={side: alive[i] / played for i, side in enumerate(("agents alive", "enemies alive"))},
        shares={"outcome by policy": _by_policy(ended, policies, outcomes)},
    )


def _density(position: NDArray[Any]) -> NDArray[np.float64]:
    """(K, 2) -> (side, side) counts, [y, x]."""
    line = np.arange(MAP_SIDE + 1)
    return np.histogram2d(position[:, 1], position[:, 0], bins=(line, line))[0]


def _battle_row(group: Group, ended: NDArray[np.int64], lengths: NDArray[np.int64]) -> dict[str, Any]:
    outcomes, total = group.attributes["outcomes"], int(ended.sum())
    agents = group["action"].shape[2]
    units = group["unit_type"][0]
    low, high = wilson(int(ended[outcomes.index("win")]), total)
    steps, reached = np.flatnonzero(lengths), lengths.cumsum()
    return {
        "episodes": total,
        "agents": _army(group, units[:agents]),
        "enemies": _army(group, units[agents:]),
        **{
            f"{name}_share": round(float(count) / max(total, 1), 4) for name, count in zip(outcomes, ended, strict=True)
        },
        "win_share_interval": [round(low, 4), round(high, 4)],
        "length_mean_steps": round(float(lengths @ np.arange(len(lengths))) / max(total, 1), 2),
        "length_median_steps": int(np.searchsorted(reached, (total + 1) // 2)),
        "length_90_percent_steps": int(np.searchsorted(reached, 0.9 * total)),
        "length_min_steps": int(steps[0]),
        "length_max_steps": int(steps[-1]),
    }


def _army(group: Group, unit_types: NDArray[Any]) -> str:
    """`3 stalker, 5 zealot`."""
    names = group.attributes["unit_types"]
    kinds, counts = np.unique(unit_types, return_counts=True)
    return ", ".join(f"{count} {names[kind]}" for kind, count in zip(kinds, counts, strict=True))


def _by_policy(ended: NDArray[np.int64], policies: list[str], outcomes: list[str]) -> dict[str, dict[str, float]]:
    """policy -> outcome -> share of its episodes, and how many they are."""
    found = {}
    for policy, counts in zip(policies, ended, strict=True):
        if total := int(counts.sum()):
            shares = {name: round(float(count) / total, 4) for name, count in zip(outcomes, counts, strict=True)}
            found[policy] = {"episodes": total, **shares}
    return found


_COUNTERS: dict[str, Callable[[Group, Progress], GroupStats]] = {"bballs": _ball_stats, "sc2": _battle_stats}
