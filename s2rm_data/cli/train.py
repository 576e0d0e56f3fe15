"""The command `s2rm-train`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from s2rm_data.cli.options import STORE_PATH, cache_options, named_option, program, with_world_options
from s2rm_data.cli.run import EXIT_STATUSES, run, say_json
from s2rm_data.cli.train_command import asked, requested, run_self_test, save, show_sweep
from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import LOGGERS, MODELS, PRESETS, WORLDS
from s2rm_data.display.progress import say

if TYPE_CHECKING:
    from s2rm_data.api import TrainedRun
    from s2rm_data.training.config_file import Command
    from s2rm_data.training.resolve import ResolvedRun

DIVERGED = "  7    training diverged: the loss is not finite or explodes; the last good checkpoint is kept"
EPILOG = EXIT_STATUSES.replace("  130 ", f"{DIVERGED}\n  130 ")


@program("s2rm-train", with_world_options(lambda world: world.training_options), EPILOG)
@click.argument("path", metavar="[STORE]", type=STORE_PATH, default=None, required=False)
@click.option(
    "--store", type=STORE_PATH, default=None, help="Store with the data, made by s2rm-data; the same as STORE."
)
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
@click.option(
    "--runs", type=click.IntRange(1, 1000), default=None, help="Train this many seeds, then fine-tune the best."
)
@click.option("-o", "--out", type=click.Path(path_type=Path), default=None, help="Run folder.  [default: runs/NAME]")
@click.option(
    "--resume",
    is_flag=True,
    help="Resume the run in --out, longer if --steps or --epochs say so; start it if there is none.",
)
@click.option("--overwrite", is_flag=True, help="Start again whatever run is in --out.")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any config field of run or model; several values, as in lr=1e-3,3e-3, are tried one after the other.",
)
@click.option("--config", type=click.Path(path_type=Path), default=None, help="TOML file with options and fields.")
@click.option(
    "--save-config", type=click.Path(path_type=Path), default=None, help="Write such a file and train nothing."
)
@named_option(
    "--log",
    names=lambda: [name for name in LOGGERS.names() if name != "tensorboard"],
    words=", beside TensorBoard; may be repeated.",
    multiple=True,
    metavar="WHERE",
)
@click.option(
    "--export",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FOLDER",
    help="Train nothing; write the finished run in --out to FOLDER, small and without what only training needs.",
)
@click.option("--dry-run", is_flag=True, help="Show config, parameters and estimated time; train nothing.")
@click.option(
    "--self-test",
    is_flag=True,
    help="Check compiling, CUDA graphs, precision, resuming and two processes on this machine; train nothing else.",
)
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
    from s2rm_data.core.amounts import duration
    from s2rm_data.core.check import to_json
    from s2rm_data.training.cost import estimate
    from s2rm_data.training.data import RunData

    config, runs = run.config, run.options.runs
    data = RunData(run.store, config, run.options.groups)
    found = estimate(config, data)
    times = runs + 1 if runs > 1 else 1
    if as_json:
        model = to_json(data.build_model().config)
        say_json(dry_run=True, config=to_json(config), model_config=model, **vars(found))
        return
    for name, value in to_json(config).items():
        if name != "model_fields":
            click.echo(f"{name:<24}{json.dumps(value)}")
    click.echo(f"model {config.model}:")
    for name, value in to_json(data.build_model().config).items():
        click.echo(f"  {name:<22}{json.dumps(value)}")
    click.echo(
        f"{found.parameters:,} parameters; {found.steps:,} steps of {found.seconds_per_step:.3g} s, "
        f"{found.steps_per_epoch:,} per epoch"
    )
    what = f"{runs} runs and the fine-tuning" if runs > 1 else "the run"
    click.echo(f"about {duration(found.seconds * times)} for {what} (nothing written)")


def list_models(*, as_json: bool) -> None:
    from s2rm_data.core.check import to_json
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


def main() -> NoReturn:
    run(train, "s2rm-train")


if __name__ == "__main__":
    main()
