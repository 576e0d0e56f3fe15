"""The command `s2rm-train`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

import s2rm_data
from s2rm_data.cli.options import STORE_PATH, cache_options, named_option, plugin_option, shard_cache
from s2rm_data.cli.run import EXIT_STATUSES, run
from s2rm_data.cli.train_command import asked, save, train_sweep
from s2rm_data.cli.world_options import with_world_options
from s2rm_data.errors import UsageError
from s2rm_data.registry import MODELS, WORLDS

if TYPE_CHECKING:
    from s2rm_data.training.config_file import Command
    from s2rm_data.training.resolve import Overrides, ResolvedRun

DIVERGED = "  7    training diverged: the loss is not finite or explodes; the last good checkpoint is kept"
EPILOG = EXIT_STATUSES.replace("  130 ", f"{DIVERGED}\n  130 ")


@click.command(
    cls=with_world_options(lambda world: world.training_options),
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option("--store", type=STORE_PATH, default=None, help="Store with the data, made by s2rm-data.")
@cache_options
@named_option("--task", WORLDS.names, "the first world of the store")
@named_option("--model", MODELS.names, "s2gru")
@named_option("--preset", lambda: ("paper", "laptop", "smoke"), "paper with a GPU, laptop without")
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
@click.option("--log", multiple=True, metavar="WHERE", help="wandb or mlflow, beside TensorBoard; may be repeated.")
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
@click.version_option(s2rm_data.__version__, prog_name="s2rm-train")
def train(**options: Any) -> None:
    """Train a world model on what is in a store.

    A run can be stopped at any moment, even by kill -9, and is resumed exactly with --resume. Its folder holds config,
    log, weights, learning curves and pictures of predictions.

    \b
    Examples:
      s2rm-train --store data.zarr                               # S2GRU on the store's bouncing balls
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
    if options["list_models"]:
        list_models(as_json=options["as_json"])
        return
    if options["export"] is not None:
        export(options["out"], options["export"], quiet=options["quiet"])
        return
    if options["self_test"]:
        from s2rm_data.cli.self_test import run_self_test

        run_self_test(options)
        return
    from s2rm_data.training.resolve import Overrides

    command = asked(options)
    options = options | command.options
    overrides = Overrides(
        **{name: options[name] for name in ("task", "model", "preset", "device")},
        fields=command.fields,
        options=options["given"],
    )
    train_run(overrides, command, options)


def export(run: Path | None, folder: Path, *, quiet: bool) -> None:
    from s2rm_data.training.export import export_run

    if run is None:
        raise UsageError("--export needs the run to export; name its folder, as in --out runs/NAME --export FOLDER")
    size = export_run(run, folder)
    if not quiet:
        click.echo(f"{folder}: {size / 1e6:.2f} MB; evaluate it with: s2rm-eval --run {folder} --store data.zarr")


def train_run(overrides: Overrides, command: Command, options: dict[str, Any]) -> None:
    from s2rm_data.cli.train_display import listener_for
    from s2rm_data.training.protocol import Session
    from s2rm_data.training.resolve import resolve_run
    from s2rm_data.training.trackers import check_trackers, tracked

    check_trackers(options["log"])
    listener = listener_for(quiet=options["quiet"])
    if command.sweep and not (options["dry_run"] or options["save_config"]):
        train_sweep(overrides, command, options, listener)
        return
    session = Session(listener)
    options["out"] = None if options["out"] is None else Path(options["out"])
    chosen = {name: options[name] for name in ("out", "runs", "resume", "overwrite")}
    cache = shard_cache(options["cache"], options["cache_size"])
    run = resolve_run(options["store"], overrides, cache=cache, say=session.listener.say, **chosen)
    if options["dry_run"]:
        if session.processes.is_first:
            show_estimate(run, as_json=options["as_json"])
        return
    if options["save_config"]:
        save(options["save_config"], command, run)
        return
    if session.processes.is_first:
        session.listener = tracked(listener, options["log"], run.options.out, vars(run.config))
    try:
        summary = session.train(run.config, run.store, run.options)
    finally:
        session.listener.stop()
    if session.processes.is_first:
        show_summary(summary, run.options.out, quiet=options["quiet"], as_json=options["as_json"])


def show_summary(summary: dict[str, Any], out: Path, *, quiet: bool, as_json: bool) -> None:
    from s2rm_data.cli.train_display import scores_line

    if as_json:
        click.echo(json.dumps({"run": str(out), **summary}))
    elif not quiet:
        titles = WORLDS.load(summary["task"]).learning().scores
        for name, found in summary["held_out"].items():
            scores = {key: value for key, value in found.items() if isinstance(value, float)}
            click.echo(f"{name}: loss {found['loss']:.4f}, {scores_line(scores, found['references'], titles)}")
        click.echo(f"best weights, of step {summary['best_step']:,}: {out / 'best.safetensors'}")


def show_estimate(run: ResolvedRun, *, as_json: bool) -> None:
    from s2rm_data.cli.train_display import duration
    from s2rm_data.config import to_json
    from s2rm_data.training.data import RunData
    from s2rm_data.training.estimate import estimate

    config, runs = run.config, run.options.runs
    data = RunData(run.store, config, run.options.groups)
    found = estimate(config, data)
    times = runs + 1 if runs > 1 else 1
    if as_json:
        model = to_json(data.build_model().config)
        click.echo(json.dumps({"dry_run": True, "config": to_json(config), "model_config": model, **vars(found)}))
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
    from s2rm_data.config import to_json
    from s2rm_data.models import summaries

    found = summaries()
    if as_json:
        click.echo(
            json.dumps(
                [
                    {"model": s.name, "task": s.task, "parameters": s.parameters, "config": to_json(s.config)}
                    for s in found
                ]
            )
        )
        return
    wide, wider = (2 + max(len(getattr(s, name)) for s in found) for name in ("name", "task"))
    for summary in found:
        click.echo(
            f"{summary.name:<{wide}}{summary.task:<{wider}}{summary.parameters:>12,} parameters  {summary.description}"
        )
        fields = {k: v for k, v in to_json(summary.config).items() if k != "task"}
        click.echo("       " + ", ".join(f"{name}={json.dumps(value)}" for name, value in fields.items()))


train.params.append(plugin_option())


def main() -> NoReturn:
    run(train, "s2rm-train")


if __name__ == "__main__":
    main()
