"""The command `s2rm-train`."""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from s2rm_data.cli.options import STORE_PATH, cache_options, named_option, path_option, program, with_world_options
from s2rm_data.cli.run import EXIT_STATUSES, aligned, run, say_json
from s2rm_data.core.amounts import duration
from s2rm_data.core.check import to_json
from s2rm_data.core.errors import S2RMError, UsageError
from s2rm_data.core.registry import LOGGERS, MODELS, PRESETS, WORLDS
from s2rm_data.display.progress import say

if TYPE_CHECKING:
    from s2rm_data.api import TrainedRun
    from s2rm_data.store import Store
    from s2rm_data.training.config_file import Command
    from s2rm_data.training.resolve import ResolvedRun, TrainingRequest

DIVERGED = "  7    training diverged: the loss is not finite or explodes; the last good checkpoint is kept"
EPILOG = EXIT_STATUSES.replace("  130 ", f"{DIVERGED}\n  130 ")
MOST_SEEDS = 1000
_SELF_TEST_SIZES = {"train": 8, "val": 2, "test": 0}  # of the store that is made, as far as the world has these options
_FIELDS = ("seed", "epochs", "steps", "batch_size", "lr")  # that have an option of their own


_RESUME = "Resume the run in --out, longer if --steps or --epochs say so; start it if there is none."
_SET = "Any config field of run or model; several values, as in lr=1e-3,3e-3, are tried one after the other."
_EXPORT = "Train nothing; write the finished run in --out to FOLDER, small and without what only training needs."
_SELF_TEST = "Check compiling, CUDA graphs, precision, resuming and two processes on this machine; train nothing else."


def _loggers() -> list[str]:
    return [name for name in LOGGERS.names() if name != "tensorboard"]


@program("s2rm-train", with_world_options(lambda world: world.training_options), EPILOG)
@click.argument("path", metavar="[STORE]", type=STORE_PATH, default=None, required=False)
@click.option("--store", type=STORE_PATH, help="Store with the data, made by s2rm-data; the same as STORE.")
@cache_options
@named_option("--task", names=WORLDS.names, words=".  [default: the first world of the store]")
@named_option("--model", names=MODELS.names, words=".  [default: s2gru]")
@named_option("--preset", names=PRESETS.names, words=".  [default: laptop]")
@click.option("--seed", default=None, help="Seed of weights and batches; 0-2 trains one after the other.  [default: 0]")
@click.option("--device", default=None, help="cpu, cuda or cuda:1.  [default: a GPU if there is one]")
@click.option("--epochs", type=int, default=None, help="Budget in passes over the training sequences.")
@click.option("--steps", type=int, default=None, help="Budget in optimiser steps.")
@click.option("--batch-size", type=int, default=None, help="Sequences per step, over all processes.")
@click.option("--lr", type=float, default=None, help="Learning rate.")
@click.option("--runs", type=click.IntRange(1, 1000), help="Train this many seeds, then fine-tune the best.")
@path_option("-o", "--out", words="Run folder.  [default: runs/NAME]")
@click.option("--resume", is_flag=True, help=_RESUME)
@click.option("--overwrite", is_flag=True, help="Start again whatever run is in --out.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help=_SET)
@path_option("--config", words="TOML file with options and fields.")
@path_option("--save-config", words="Write such a file and train nothing.")
@named_option("--log", names=_loggers, words=", beside TensorBoard; may be repeated.", multiple=True, metavar="WHERE")
@path_option("--export", words=_EXPORT, metavar="FOLDER")
@click.option("--dry-run", is_flag=True, help="Show config, parameters and estimated time; train nothing.")
@click.option("--self-test", is_flag=True, help=_SELF_TEST)
@click.option("--list-models", is_flag=True, help="List the models with their parameters and config fields.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing unless something is wrong.")
@click.option("--json", "as_json", is_flag=True, help="A summary as JSON on standard output.")
def train(**options: Any) -> None:
    """Train a world model on what is in a store.

    A run can be stopped at any moment, even by kill -9, and is resumed exactly with --resume. Its folder holds config,
    log, weights, learning curves and pictures of predictions.

    \b
    Examples:
      s2rm-train data.zarr                                       # S2GRU on the store's bouncing balls
      s2rm-train --store data.zarr --preset laptop --dry-run     # how long would that take?
      s2rm-train --store data.zarr --task sc2 --model rmc --out runs/rmc
      s2rm-train --resume --out runs/rmc                         # resume after an interruption
      s2rm-train --resume --out runs/rmc --steps 8000            # train it longer, even if it was finished
      s2rm-train --store data.zarr --scenario 3s5z,2s3z          # on some scenarios of the store
      s2rm-train --store data.zarr --runs 3                      # the paper's protocol: three seeds, best fine-tuned
      s2rm-train --store data.zarr --set hidden_size=64 --set clip_norm=1
      s2rm-train --store data.zarr --set lr=1e-3,3e-3 --seed 0-2 --out runs/rates   # six runs, one table
      s2rm-train --config train.toml --log wandb
      s2rm-train --out runs/rmc --export pretrained/sc2-rmc      # to keep or share it: s2rm-eval takes it as it is
      s2rm-train --self-test                                     # what works on this machine (docs/gpu.md)
      torchrun --nproc-per-node 2 -m s2rm_data.cli.train --store data.zarr   # two GPUs
    """
    if (path := options.pop("path")) is not None:
        if options["store"] not in (None, path):
            raise UsageError(f"two stores were given, {path} and {options['store']}; give one")
        options["store"] = path
    if options["list_models"]:
        list_models(as_json=options["as_json"])
        return
    if options["export"] is not None:
        export(options["out"], options["export"], quiet=options["quiet"])
        return
    if options["self_test"]:
        run_self_test(options)
        return
    if not options["quiet"] and "torch" not in sys.modules:
        say("loading PyTorch")  # which takes seconds from a cold disk
    command = asked(options)
    train_as_asked(command, options | command.options)


def export(run: Path | None, folder: Path, *, quiet: bool) -> None:
    from s2rm_data.training.folder import export_run

    if run is None:
        raise UsageError("--export needs the run to export; name its folder, as in --out runs/NAME --export FOLDER")
    size = export_run(run, folder)
    if not quiet:
        click.echo(f"{folder}: {size / 1e6:.2f} MB; evaluate it with: s2rm-eval --run {folder} --store data.zarr")


def train_as_asked(command: Command, options: dict[str, Any]) -> None:
    from s2rm_data import api
    from s2rm_data.display.training import listener_for
    from s2rm_data.training.processes import Processes

    request, listener = requested(command, options), listener_for(quiet=options["quiet"])
    shown = {"quiet": options["quiet"], "as_json": options["as_json"]}
    if options["dry_run"] or options["save_config"]:
        run = request.resolve(listener.say)
        if options["dry_run"] and Processes().is_first:
            show_estimate(run, as_json=options["as_json"])
        elif options["save_config"]:
            save(options["save_config"], command, run)
    elif command.sweep:
        show_sweep(api.train_sweep(request, command.sweep, listener), **shown)
    else:
        trained = api.train_request(request, listener)
        if Processes().is_first:
            show_summary(trained, **shown)


def show_summary(trained: TrainedRun, *, quiet: bool, as_json: bool) -> None:
    from s2rm_data.display.training import scores_line

    summary = trained.summary
    if as_json:
        say_json(run=str(trained.path), **summary)
    elif not quiet:
        titles = WORLDS.load(summary["task"]).learning().scores
        for name, found in summary["held_out"].items():
            scores = {key: value for key, value in found.items() if isinstance(value, float)}
            click.echo(f"{name}: loss {found['loss']:.4f}, {scores_line(scores, found['references'], titles)}")
        click.echo(f"best weights, of step {summary['best_step']:,}: {trained.path / 'best.safetensors'}")


def show_estimate(run: ResolvedRun, *, as_json: bool) -> None:
    from s2rm_data.training.cost import estimate
    from s2rm_data.training.data import RunData

    config, runs = run.config, run.options.runs
    data = RunData(run.store, config, run.options.groups)
    found, model = estimate(config, data), to_json(data.build_model().config)
    times = runs + 1 if runs > 1 else 1
    if as_json:
        say_json(dry_run=True, config=to_json(config), model_config=model, **vars(found))
        return
    for name, value in to_json(config).items():
        if name != "model_fields":
            click.echo(f"{name:<24}{json.dumps(value)}")
    click.echo(f"model {config.model}:")
    for name, value in model.items():
        click.echo(f"  {name:<22}{json.dumps(value)}")
    steps = f"{found.steps:,} steps of {found.seconds_per_step:.3g} s, {found.steps_per_epoch:,} per epoch"
    click.echo(f"{found.parameters:,} parameters; {steps}")
    what = f"{runs} runs and the fine-tuning" if runs > 1 else "the run"
    click.echo(f"about {duration(found.seconds * times)} for {what} (nothing written)")


def list_models(*, as_json: bool) -> None:
    from s2rm_data.models import summaries

    found = summaries()
    if as_json:
        keys = ("model", "task", "parameters", "config")
        values = [(s.name, s.task, s.parameters, to_json(s.config)) for s in found]
        click.echo(json.dumps([dict(zip(keys, of_one, strict=True)) for of_one in values]))
        return
    wide, wider = (2 + max(len(getattr(s, name)) for s in found) for name in ("name", "task"))
    for s in found:
        click.echo(f"{s.name:<{wide}}{s.task:<{wider}}{s.parameters:>12,} parameters  {s.description}")
        fields = {k: v for k, v in to_json(s.config).items() if k != "task"}
        click.echo("       " + ", ".join(f"{name}={json.dumps(value)}" for name, value in fields.items()))


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
            forms = "write a number, a range such as 0-2, or a list such as 0,4"
            raise UsageError(f"--seed {text} is not possible; {forms}")
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
            several[name] = [parse_assignments((f"{name}={part}",))[name] for part in value.split(",")]
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
    overrides = Overrides(**names, fields=command.fields, options=options["given"])
    out = None if options["out"] is None else Path(options["out"])
    cache = shard_cache(options["cache"], options["cache_size"])
    how = {name: options[name] for name in ("store", "runs", "resume", "overwrite")}
    return TrainingRequest(overrides=overrides, out=out, cache=cache, log=tuple(options["log"]), **how)


def show_sweep(found: Sequence[Mapping[str, Any]], *, quiet: bool, as_json: bool) -> None:
    from s2rm_data.training.sweep import rows

    if as_json:
        click.echo(json.dumps(found))
    if as_json or quiet:
        return
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
    for line in aligned(table, "<<<<"):
        click.echo(line)


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
        task = options["task"] if options["store"] else options["task"] or WORLDS.names()[0]
        store = Store(options["store"]) if options["store"] else _made(task, folder)
        checks = []
        for check in self_test(bench_for(store, folder, task, options["model"], options["device"])):
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


def main() -> NoReturn:
    run(train, "s2rm-train")


if __name__ == "__main__":
    main()
