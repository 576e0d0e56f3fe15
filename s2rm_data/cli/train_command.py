"""What a user asks of `s2rm-train`, from the command line and from a file; the table of a sweep; `--self-test`."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from s2rm_data.core.errors import S2RMError, UsageError
from s2rm_data.core.registry import WORLDS

if TYPE_CHECKING:
    from s2rm_data.store import Store
    from s2rm_data.training.config_file import Command
    from s2rm_data.training.resolve import ResolvedRun, TrainingRequest

MOST_SEEDS = 1000
_SELF_TEST_SIZES = {"train": 8, "val": 2, "test": 0}  # of the store that is made, as far as the world has these options
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
        if isinstance(value, str) and "," in value and value == assignment.partition("=")[2].strip():  # not JSON
            parts = [parse_assignments((f"{name}={part}",))[name] for part in value.split(",")]
            several[name] = parts
        else:
            single[name] = value
    return single, several


def save(path: Path, command: Command, run: ResolvedRun) -> None:
    """What was asked for, resolved, as a file for --config."""
    from s2rm_data.training.config_file import write_command
    from s2rm_data.training.resolve import Overrides, resolve

    config = run.config
    usual = resolve(run.store, Overrides(task=config.task, model=config.model, preset=config.preset), lambda text: None)
    options = {"store": str(run.store.path)} | command.options
    write_command(path, config, usual, dataclasses.replace(command, options=options))
    click.echo(f"s2rm-train: {path} written; run it with: s2rm-train --config {path}", err=True)


def requested(command: Command, options: Mapping[str, Any]) -> TrainingRequest:
    from s2rm_data.api import shard_cache
    from s2rm_data.training.resolve import Overrides, TrainingRequest

    names = {name: options[name] for name in ("task", "model", "preset", "device")}
    return TrainingRequest(
        store=options["store"],
        overrides=Overrides(**names, fields=command.fields, options=options["given"]),
        out=None if options["out"] is None else Path(options["out"]),
        cache=shard_cache(options["cache"], options["cache_size"]),
        log=tuple(options["log"]),
        **{name: options[name] for name in ("runs", "resume", "overwrite")},
    )


def show_sweep(found: Sequence[Mapping[str, Any]], *, quiet: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found))
    elif not quiet:
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


def run_self_test(options: dict[str, Any]) -> None:
    """On the store given, or on a small one of the world's; fails if a check does."""
    from s2rm_data.store import Store
    from s2rm_data.training.self_test import FAILED, SKIPPED, bench_for, self_test

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task = options["task"] or WORLDS.names()[0]
        store = Store(options["store"]) if options["store"] else _made(task, folder)
        chosen = options["task"] if options["store"] else task
        checks = []
        for check in self_test(bench_for(store, folder, chosen, options["model"], options["device"])):
            checks.append(check)
            if not options["as_json"] and not options["quiet"]:
                click.echo(f"{check.verdict:<8}{check.name:<18}{check.detail}")
    if options["as_json"]:
        click.echo(json.dumps([vars(check) for check in checks]))
    failed = [check.name for check in checks if check.verdict == FAILED]
    skipped = [check.name for check in checks if check.verdict == SKIPPED]
    if failed:
        raise S2RMError(f"self-test: {', '.join(failed)} failed; see docs/gpu.md")
    if not options["quiet"] and not options["as_json"]:
        rest = f"; not checked here: {', '.join(skipped)}" if skipped else ""
        click.echo(f"verdict: {len(checks) - len(skipped)} of {len(checks)} checks hold, none failed{rest}")


def _made(task: str, folder: Path) -> Store:
    from s2rm_data.making.run import generate
    from s2rm_data.store import Store

    world = WORLDS.load(task)
    known = {option.name for option in world.options}
    making = world.prepare({name: value for name, value in _SELF_TEST_SIZES.items() if name in known})
    with making.open() as splits:
        generate(list(splits), folder / "data.zarr")
    return Store(folder / "data.zarr")
