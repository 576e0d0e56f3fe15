"""What all worlds do alike once their splits are known: dry run, generation, summary."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from s2rm_data.addresses import StorePath
from s2rm_data.cli.options import worker_count
from s2rm_data.cli.progress import progress_for
from s2rm_data.cli.sizes import human
from s2rm_data.errors import UsageError
from s2rm_data.registry import plugins_loaded

if TYPE_CHECKING:
    from s2rm_data.making import Outcome, ShardSize
    from s2rm_data.progress import Progress
    from s2rm_data.schema import SplitSource
    from s2rm_data.store.parts import Part
    from s2rm_data.world import Making


@dataclass(frozen=True, kw_only=True)
class Run:
    """The shared options as given."""

    out: StorePath
    workers: int | None
    shard_size: int | None  # None: the world's own
    part: str | None  # I/N
    dask: str | None  # address of a cluster
    overwrite: bool
    dry_run: bool
    quiet: bool
    as_json: bool
    unit: str
    world: str
    options: Mapping[str, Any]  # the world's own, as given


def run_generation(making: Making, run: Run) -> None:
    from s2rm_data.making import ShardSize
    from s2rm_data.store.layout import DEFAULT_SHARD_SIZE

    workers = worker_count(run.workers)
    if run.shard_size is not None and run.shard_size < 1:
        raise UsageError(f"--shard-size {run.shard_size} is not possible; allowed are 1 or more")
    shard_size = ShardSize(asked=run.shard_size, usual=making.shard_size or DEFAULT_SHARD_SIZE)
    part = _part(run)
    for note in () if run.quiet else making.notes:
        click.echo(f"s2rm-data: {note}", err=True)
    with making.open() as splits:
        if run.dry_run:
            _dry_run(splits, run, shard_size, part)
        else:
            _generate(splits, run, workers, shard_size, part)


def _on_dask(run: Run, workers: int, shard_size: ShardSize, progress: Progress) -> Outcome:
    from s2rm_data.making.cluster import Job, generate_on_dask

    out = str(run.out.absolute())
    job = Job(world=run.world, options=run.options, path=out, shard_size=shard_size, plugins=plugins_loaded())
    return generate_on_dask(job, run.dask or "", workers=workers, progress=progress)


def _part(run: Run) -> Part | None:
    from s2rm_data.store.parts import Part

    if run.part is not None and run.dask is not None:
        raise UsageError("--part and --dask exclude each other: Dask makes all parts, and merges them")
    if run.overwrite and run.dask is not None:
        raise UsageError("--overwrite does not go with --dask: parts are made beside what is there; use a new --out")
    if run.part is None:
        return None
    if run.overwrite:
        raise UsageError("--overwrite does not go with --part: parts are made beside what is there; use a new --out")
    return Part.parse(run.part)


def _dry_run(sources: Sequence[SplitSource], run: Run, shard_size: ShardSize, part: Part | None) -> None:
    from s2rm_data.making import plan_splits

    plans = plan_splits(sources, run.out, shard_size=shard_size, overwrite=run.overwrite, part=part)
    sequences, nbytes = sum(p.sequences for p in plans), sum(p.nbytes for p in plans)
    if run.as_json:
        splits = [
            {"group": p.group, run.unit: p.sequences, "found": p.found, "bytes_estimated": p.nbytes} for p in plans
        ]
        click.echo(json.dumps({"store": str(run.out), "dry_run": True, "splits": splits, "bytes_estimated": nbytes}))
        return
    width = max([len("in all"), *(len(p.group) for p in plans)])
    for plan in plans:
        found = f"  ({plan.found:,} there already)" if plan.found else ""
        click.echo(f"{plan.group:<{width}}  {plan.sequences:>9,} {run.unit}  about {human(plan.nbytes):>9}{found}")
    click.echo(f"{'in all':<{width}}  {sequences:>9,} {run.unit}  about {human(nbytes):>9}  (nothing written)")


def _generate(sources: Sequence[SplitSource], run: Run, workers: int, shard_size: ShardSize, part: Part | None) -> None:
    from s2rm_data.making import generate, generate_part

    begun = time.monotonic()
    with progress_for("generating", run.unit, quiet=run.quiet) as progress:
        shared: dict[str, Any] = {"workers": workers, "shard_size": shard_size, "progress": progress}
        if run.dask is not None:
            outcome = _on_dask(run, workers, shard_size, progress)
        elif part is not None:
            outcome = generate_part(sources, run.out, part, **shared)
        else:
            outcome = generate(sources, run.out, overwrite=run.overwrite, **shared)
    seconds = time.monotonic() - begun
    if run.as_json:
        summary = {
            "store": str(run.out),
            "groups": list(outcome.groups),
            "made": outcome.made,
            "found": outcome.found,
            "bytes": outcome.nbytes,
            **({"part": str(part)} if part else {}),
            "seconds": round(seconds, 3),
        }
        click.echo(json.dumps(summary))
    elif not run.quiet:
        where = f"part {part} of {run.out}" if part else f"{run.out}"
        size = f"{human(outcome.nbytes)} in {where}"
        if not outcome.made:
            click.echo(f"s2rm-data: everything is there already: {outcome.found:,} {run.unit}, {size}", err=True)
        else:
            found = f" ({outcome.found:,} were there already)" if outcome.found else ""
            click.echo(f"s2rm-data: {outcome.made:,} {run.unit} made{found} in {seconds:.1f} s, {size}", err=True)
