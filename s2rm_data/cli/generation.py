"""What all worlds do alike once their splits are known: dry run, generation, summary."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from s2rm_data.cli.options import worker_count
from s2rm_data.cli.progress import progress_for
from s2rm_data.cli.sizes import human
from s2rm_data.errors import UsageError

if TYPE_CHECKING:
    from s2rm_data.schema import SplitSource
    from s2rm_data.world import Making


@dataclass(frozen=True, kw_only=True)
class Run:
    """The shared options as given."""

    out: Path
    workers: int | None
    shard_size: int | None  # None: the world's own
    overwrite: bool
    dry_run: bool
    quiet: bool
    as_json: bool
    unit: str


def run_generation(making: Making, run: Run) -> None:
    from s2rm_data.store.layout import DEFAULT_SHARD_SIZE

    workers = worker_count(run.workers)
    shard_size = run.shard_size if run.shard_size is not None else making.shard_size or DEFAULT_SHARD_SIZE
    if shard_size < 1:
        raise UsageError(f"--shard-size {run.shard_size} is not possible; allowed are 1 or more")
    for note in () if run.quiet else making.notes:
        click.echo(f"s2rm-data: {note}", err=True)
    with making.open() as splits:
        if run.dry_run:
            _dry_run(splits, run, shard_size)
        else:
            _generate(splits, run, workers, shard_size)


def _dry_run(sources: Sequence[SplitSource], run: Run, shard_size: int) -> None:
    from s2rm_data.making import plan_splits

    plans = plan_splits(sources, run.out, shard_size=shard_size, overwrite=run.overwrite)
    sequences, nbytes = sum(p.sequences for p in plans), sum(p.nbytes for p in plans)
    if run.as_json:
        splits = [
            {"group": p.group, run.unit: p.sequences, "found": p.found, "bytes_estimated": p.nbytes} for p in plans
        ]
        click.echo(json.dumps({"store": str(run.out), "dry_run": True, "splits": splits, "bytes_estimated": nbytes}))
        return
    width = max(len(p.group) for p in plans)
    for plan in plans:
        found = f"  ({plan.found:,} there already)" if plan.found else ""
        click.echo(f"{plan.group:<{width}}  {plan.sequences:>9,} {run.unit}  about {human(plan.nbytes):>9}{found}")
    click.echo(f"{'in all':<{width}}  {sequences:>9,} {run.unit}  about {human(nbytes):>9}  (nothing written)")


def _generate(sources: Sequence[SplitSource], run: Run, workers: int, shard_size: int) -> None:
    from s2rm_data.making import generate

    begun = time.monotonic()
    with progress_for("generating", run.unit, quiet=run.quiet) as progress:
        outcome = generate(
            sources,
            run.out,
            workers=workers,
            shard_size=shard_size,
            overwrite=run.overwrite,
            progress=progress,
        )
    seconds = time.monotonic() - begun
    if run.as_json:
        summary = {
            "store": str(run.out),
            "groups": list(outcome.groups),
            "made": outcome.made,
            "found": outcome.found,
            "bytes": outcome.nbytes,
            "seconds": round(seconds, 3),
        }
        click.echo(json.dumps(summary))
    elif not run.quiet:
        size = f"{human(outcome.nbytes)} in {run.out}"
        if not outcome.made:
            click.echo(f"s2rm-data: everything is there already: {outcome.found:,} {run.unit}, {size}", err=True)
        else:
            found = f" ({outcome.found:,} were there already)" if outcome.found else ""
            click.echo(f"s2rm-data: {outcome.made:,} {run.unit} made{found} in {seconds:.1f} s, {size}", err=True)
