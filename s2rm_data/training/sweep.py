"""Sweeps: the same training with several values of some fields, as one command that can be resumed.

runs/sweep/lr=0.001,seed=0/     one run folder per point
runs/sweep/sweep.json           the fields that were swept, and how each point ended"""

import hashlib
import itertools
import json
import math
import os
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from s2rm_data.core.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.core.read import read_inside
from s2rm_data.core.write import make_folder, write_whole
from s2rm_data.training.schedule import DivergedError

MOST_POINTS = 1000
MOST_NAME = 120  # characters of a folder's name
DOCUMENT = "sweep.json"
MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class Sweep:
    """`axes`: field -> its values. Points are all combinations; seeds change fastest."""

    axes: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        count = math.prod(len(values) for values in self.axes.values())
        if count > MOST_POINTS:
            raise UsageError(f"the sweep has {count:,} runs; at most {MOST_POINTS:,} are possible")

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        names = sorted(self.axes, key=lambda name: name == "seed")
        return [dict(zip(names, values, strict=True)) for values in itertools.product(*(self.axes[n] for n in names))]

    @cached_property
    def names(self) -> list[str]:
        """Of the points' folders; a digest tells those apart that would be too long, or the same."""
        texts = [",".join(f"{name}={_spelled(value)}" for name, value in point.items()) for point in self.points]
        short = ["".join(c if c.isalnum() or c in "=,._+-" else "_" for c in text) for text in texts]
        counts = Counter(name.casefold() for name in short)  # as file systems that do not know large from small
        digests = [hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16] for text in texts]
        return [
            name if len(name) <= MOST_NAME and counts[name.casefold()] == 1 else f"{name[: MOST_NAME - 17]}-{digest}"
            for name, digest in zip(short, digests, strict=True)
        ]


def _spelled(value: Any) -> str:
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return value if isinstance(value, str) else json.dumps(value)


def run_sweep(
    sweep: Sweep, folder: Path, train: Callable[[dict[str, Any], Path], Mapping[str, Any]], *, resume: bool
) -> list[dict[str, Any]]:
    """Train every point; returns each with its summary. One that diverged is kept as such and not tried again."""
    ended = _begin(sweep, folder, resume=resume)
    found: list[dict[str, Any]] = []
    summaries: dict[str, Mapping[str, Any]] = {}
    for name, point in zip(sweep.names, sweep.points, strict=True):
        if ended.get(name) != "diverged":
            try:
                summaries[name] = train(point, folder / name)
                ended[name] = "complete"
            except DivergedError:
                ended[name] = "diverged"
            _save(sweep, folder, ended)
        found.append({"run": str(folder / name), "fields": point, "summary": summaries.get(name)})
    return found


def _begin(sweep: Sweep, folder: Path, *, resume: bool) -> dict[str, str]:
    path = folder / DOCUMENT
    if not os.path.lexists(path):
        make_folder(folder)
        _save(sweep, folder, {})
        return {}
    if not resume:
        raise ConflictError(f"{folder} already holds a sweep; add --resume to continue it, or give --out another name")
    try:
        document = json.loads(read_inside(folder, DOCUMENT, MOST_BYTES))
        axes, ended = document["axes"], dict(document["ended"])
    except (ValueError, KeyError, TypeError, RecursionError, DamagedStoreError):
        raise ConflictError(f"{path} is damaged; start another sweep with another --out") from None
    if axes != {name: list(values) for name, values in sweep.axes.items()}:
        raise ConflictError(f"{folder} holds a sweep over {axes}; resume it with the same values, or use another --out")
    return ended


def _save(sweep: Sweep, folder: Path, ended: Mapping[str, str]) -> None:
    axes = {name: list(values) for name, values in sweep.axes.items()}
    write_whole(folder / DOCUMENT, [json.dumps({"axes": axes, "ended": ended}, indent=1).encode() + b"\n"])


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting over its seeds: (mean, lowest, highest) of the best validation loss and of the main score."""

    fields: dict[str, Any]
    seeds: int
    diverged: int
    loss: tuple[float, float, float] | None
    score: tuple[float, float, float] | None


def rows(found: Sequence[Mapping[str, Any]], score: str) -> list[Setting]:
    """One row per setting, the lowest loss first; `score` is that on the first held-out group."""
    by_setting: dict[str, list[Mapping[str, Any]]] = {}
    for entry in found:
        fields = {name: value for name, value in entry["fields"].items() if name != "seed"}
        by_setting.setdefault(json.dumps(fields), []).append(entry)
    made = []
    for setting, entries in by_setting.items():
        done = [entry["summary"] for entry in entries if entry["summary"]]
        scores = [next(iter(summary["held_out"].values())).get(score) for summary in done if summary["held_out"]]
        loss = _spread([summary["best_validation_loss"] for summary in done])
        spread = _spread([value for value in scores if value is not None])
        counts = {"seeds": len(entries), "diverged": len(entries) - len(done)}
        made.append(Setting(fields=json.loads(setting), **counts, loss=loss, score=spread))
    return sorted(made, key=lambda row: row.loss[0] if row.loss else math.inf)


def _spread(values: Sequence[float]) -> tuple[float, float, float] | None:
    return (statistics.fmean(values), min(values), max(values)) if values else None
