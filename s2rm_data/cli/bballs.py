"""`s2rm-data bballs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from s2rm_data.cli.generation import Run, run_generation
from s2rm_data.cli.options import CountSet, Range, count_option, generation_options
from s2rm_data.cli.run import EXIT_STATUSES


@click.command(epilog=EXIT_STATUSES)
@click.option(
    "--balls", type=CountSet(), default="1-6", show_default=True, help="Ball counts of the test sets: 3, 1-6 or 1,3-5."
)
@click.option(
    "--train-balls",
    type=click.IntRange(1),
    default=None,
    help="Balls in training and validation.  [default: 3 if among --balls, else the smallest]",
)
@count_option("--train", 20_000, "Training sequences.")
@count_option("--val", 1_000, "Validation sequences.")
@count_option("--test", 1_000, "Test sequences for each ball count.")
@click.option("--frames", type=int, default=100, show_default=True, help="Frames a sequence.")
@click.option("--size", type=int, default=48, show_default=True, help="Side of the square arena in pixels.")
@click.option("--preset", default="kvae", show_default=True, help="Named physics: kvae or sutskever.")
@click.option("--radius", type=float, default=None, help="Ball radius in pixels.  [default: the preset's]")
@click.option(
    "--speed",
    type=Range(),
    default=None,
    help="Speed of a ball in pixels a frame: 2, or a range 2-4.  [default: the preset's]",
)
@generation_options
def bballs(balls: tuple[int, ...], out: Path, workers: int | None, shard_size: int | None, **options: Any) -> None:
    """Generate bouncing-ball videos: balls in a closed box with a fixed ball in its centre.

    The defaults make the paper's data set: 20,000 training and 1,000 validation sequences with 3 balls, and 1,000
    test sequences for each of 1 to 6 balls, 100 frames of 48x48 pixels each. A run that was interrupted goes on where
    it stopped when the same command is given again.

    \b
    Examples:
      s2rm-data bballs                               # the whole data set, to data.zarr
      s2rm-data bballs --balls 3 --train 100 --val 10 --test 10 -o small.zarr
      s2rm-data bballs --balls 1-6 --dry-run         # how much would that be?
      s2rm-data bballs --balls 7,8 --train 0 --val 0 # add two test sets
    """
    from s2rm_data.generators.bballs import plan
    from s2rm_data.store.layout import DEFAULT_SHARD_SIZE

    run = Run(
        out=out,
        workers=workers,
        shard_size=DEFAULT_SHARD_SIZE if shard_size is None else shard_size,
        unit="sequences",
        **{name: options.pop(name) for name in ("overwrite", "dry_run", "quiet", "as_json")},
    )
    run_generation(plan(balls=balls, **options), run)
