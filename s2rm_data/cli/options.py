"""Options that several commands share, and how their values are spelled."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from s2rm_data.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class CountSet(click.ParamType):
    """`3`, `1-6` or `1,3-5` as a sorted tuple of distinct whole numbers from 1."""

    name = "NUMBERS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        numbers: set[int] = set()
        for part in str(value).split(","):
            match = re.fullmatch(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?", part)
            if not match:
                self.fail(f"{value!r} is not a set of numbers; write 3, 1-6 or 1,3-5", param, ctx)
            low, high = int(match[1]), int(match[2] or match[1])
            if low < 1:
                self.fail(f"{value!r} contains 0; the smallest number is 1", param, ctx)
            if high < low:
                self.fail(f"{part.strip()!r} runs backwards; write {high}-{low}", param, ctx)
            if high - low >= 1000:
                self.fail(f"{part.strip()!r} spans more than 1000 numbers", param, ctx)
            numbers |= set(range(low, high + 1))
        return tuple(sorted(numbers))


class Range(click.ParamType):
    """`2` or `2-4.5` as a pair of numbers."""

    name = "NUMBER[-NUMBER]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"\s*([0-9.]+(?:e-?\d+)?)\s*(?:-\s*([0-9.]+(?:e-?\d+)?)\s*)?", str(value))
        try:
            if not match:
                raise ValueError
            low, high = float(match[1]), float(match[2] or match[1])
        except ValueError:
            self.fail(f"{value!r} is neither a number nor a range; write 2 or 2-4.5", param, ctx)
        if high < low:
            self.fail(f"{value!r} runs backwards; write {high:g}-{low:g}", param, ctx)
        return low, high


def generation_options(command: F) -> F:
    """The options that every generator has, in the same words."""
    options = [
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the whole run."),
        click.option(
            "-j", "--workers", type=int, default=None, help="Shards made at once.  [default: one a core]"
        ),
        click.option(
            "-o", "--out", type=click.Path(path_type=Path), default=Path("data.zarr"), show_default=True,
            help="Store to write or add to.",
        ),
        click.option("--shard-size", type=int, default=None, help="Sequences a shard file."),
        click.option("--overwrite", is_flag=True, help="Make these splits again, whatever is there under their names."),
        click.option("--dry-run", is_flag=True, help="Say what would be made and how large it is; write nothing."),
        click.option("-q", "--quiet", is_flag=True, help="No progress, no summary."),
        click.option("--json", "as_json", is_flag=True, help="A summary as JSON on standard output."),
    ]  # fmt: skip
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


def completing(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """For `shell_complete`: the names that go on as typed, also the last of a list such as 3s5z,2s3z."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + name for name in names() if name.startswith(last)]

    return complete


def named_option(name: str, names: Sequence[str], default: str) -> Callable[[F], F]:
    """One of `names`, which the shell completes; what a wrong one gets is left to the command, which knows more."""
    listed = f"{', '.join(names[:-1])} or {names[-1]}.  [default: {default}]"
    return click.option(name, default=None, shell_complete=completing(lambda: names), help=listed)


def count_option(name: str, default: int | None, text: str) -> Callable[[F], F]:
    shown = {"show_default": True} if default is not None else {}
    return click.option(name, type=click.IntRange(0, 10**9), default=default, help=text, **shown)  # type: ignore[arg-type]


def worker_count(workers: int | None) -> int:
    if workers is None:
        return available_cores()
    if workers < 1:
        raise UsageError(f"--workers {workers} is not possible; allowed are 1 or more (leave it out for one a core)")
    return workers
