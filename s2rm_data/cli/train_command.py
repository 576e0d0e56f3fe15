"""What a user asks of `s2rm-train`, from the command line and from a file, and the sweep that may come of it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from s2rm_data.cli.options import shard_cache
from s2rm_data.errors import UsageError
from s2rm_data.registry import WORLDS

if TYPE_CHECKING:
    from s2rm_data.training.config_file import Command
    from s2rm_data.training.listener import Listener
    from s2rm_data.training.resolve import Overrides, ResolvedRun

MOST_SEEDS = 1000
_FIELDS = ("seed", "epochs", "steps", "batch_size", "lr")  # that have an option of their own


def asked(options: Mapping[str, Any]) -> Command:
    """The command as typed, over that of the file named with --config."""
    from s2rm_data.training.config_file import OPTIONS, Command, read_command

    named = {name: options[name] for name in _FIELDS if options[name] is not None}
    assigned, swept = _assignments(options["assignments"])
    for name in named.keys() & (assigned.keys() | swept.keys()):
        raise UsageError(f"{name} was given twice, by its option and by --set; give it once")
    if "seed" in named:
        seeds = parse_seeds(named.pop("seed"))
        if len(seeds) == 1:
            assigned["seed"] = seeds[0]
        else:
            swept["seed"] = seeds
    chosen = {name: options[name] for name in OPTIONS if options[name] not in (None, ())}
    command = Command(options=chosen, fields=named | assigned, sweep=swept)
    return command.over(read_command(options["config"])) if options["config"] else command


def parse_seeds(text: str) -> list[int]:
    """`3`, `0-2` or `0,4`."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UsageError(
                f"--seed {text} is not possible; write a number, a range such as 0-2, or a list such as 0,4"
            )
        seeds += range(int(first), int(last if dash else first) + 1)[: MOST_SEEDS + 1]
    if not seeds or len(seeds) > MOST_SEEDS:
        raise UsageError(f"--seed {text} names {len(seeds) or 'no'} seeds; allowed are 1 to {MOST_SEEDS:,}")
    return seeds


def _assignments(assignments: Sequence[str]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Fields with one value, and fields with several: `lr=1e-3,3e-3` (but `size=[8, 16]` is one)."""
    from s2rm_data.training.config import parse_assignments

    single: dict[str, Any] = {}
    several: dict[str, list[Any]] = {}
    for assignment in assignments:
        ((name, value),) = parse_assignments((assignment,)).items()
        if isinstance(value, str) and "," in value and not _is_json(assignment.partition("=")[2]):
            parts = [parse_assignments((f"{name}={part}",))[name] for part in value.split(",")]
            several[name] = parts
        else:
            single[name] = value
    return single, several


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def save(path: Path, command: Command, run: ResolvedRun) -> None:
    """What was asked for, resolved, as a file for --config."""
    from s2rm_data.training.config_file import write_command
    from s2rm_data.training.resolve import Overrides, resolve

    config = run.config
    usual = resolve(run.store, Overrides(task=config.task, model=config.model, preset=config.preset), lambda text: None)
    options = {"store": str(run.store.path)} | command.options
    write_command(path, config, usual, dataclasses.replace(command, options=options))
    click.echo(f"s2rm-train: {path} written; run it with: s2rm-train --config {path}", err=True)


def train_sweep(overrides: Overrides, command: Command, options: Mapping[str, Any], listener: Listener) -> None:
    """All points one after the other, then one table."""
    from s2rm_data.training.protocol import Session
    from s2rm_data.training.resolve import resolve_run
    from s2rm_data.training.sweep import Sweep, run_sweep
    from s2rm_data.training.trackers import tracked

    if options["runs"]:
        raise UsageError("--runs chooses a seed by itself; leave it out, or give --seed 0-2 to train several")
    sweep = Sweep(command.sweep)
    folder = Path(options["out"] or "runs/sweep")
    count = len(sweep.points)
    cache = shard_cache(options["cache"], options["cache_size"])

    def train(point: dict[str, Any], out: Path) -> dict[str, Any]:
        listener.say(f"run {sweep.points.index(point) + 1} of {count}: {sweep.name(point)}")
        own = dataclasses.replace(overrides, fields=overrides.fields | point)
        run = resolve_run(options["store"], own, out=out, resume=True, cache=cache, say=lambda text: None)
        session = Session(tracked(listener, options["log"], out, vars(run.config)))
        try:
            return session.train(run.config, run.store, run.options)
        finally:
            session.listener.stop()

    # What cannot be resolved is refused before anything is trained.
    for point in sweep.points:
        checked = dataclasses.replace(overrides, fields=overrides.fields | point)
        resolve_run(options["store"], checked, out=folder / sweep.name(point), resume=True, say=lambda text: None)
    found = run_sweep(sweep, folder, train, resume=options["resume"])
    if options["as_json"]:
        click.echo(json.dumps(found))
    elif not options["quiet"]:
        _print_table(found)


def _print_table(found: Sequence[Mapping[str, Any]]) -> None:
    from s2rm_data.training.sweep import rows

    done = next((entry["summary"] for entry in found if entry["summary"]), None)
    if done is None:
        click.echo("every run diverged")
        return
    score, title = next(iter(WORLDS.load(done["task"]).learning().scores.items()))
    where = next(iter(done["held_out"]), "val")
    table = [["setting", "seeds", "validation loss", f"{title} on {where}"]]
    for row in rows(found, score):
        setting = ", ".join(f"{name}={json.dumps(value)}" for name, value in row.fields.items()) or "as given"
        diverged = f" ({row.diverged} diverged)" if row.diverged else ""
        table.append([setting, f"{row.seeds}{diverged}", _spread(row.loss, 4), _spread(row.score, 3)])
    widths = [max(len(line[column]) for line in table) for column in range(4)]
    for line in table:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _spread(values: tuple[float, float, float] | None, digits: int) -> str:
    if values is None:
        return "-"
    mean, low, high = (f"{value:.{digits}f}" for value in values)
    return mean if low == high else f"{mean} ({low} to {high})"
