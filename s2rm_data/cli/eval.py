"""The command `s2rm-eval`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

import s2rm_data
from s2rm_data.addresses import StorePath, store_path
from s2rm_data.cli.options import STORE_PATH, cache_options, plugin_option, runs_option, shard_cache
from s2rm_data.cli.progress import progress_for
from s2rm_data.cli.run import EXIT_STATUSES, run
from s2rm_data.cli.world_options import with_world_options
from s2rm_data.cores import available_threads
from s2rm_data.errors import UsageError, missing_component

if TYPE_CHECKING:
    import torch

    from s2rm_data.evaluation.evaluate import EvalConfig
    from s2rm_data.evaluation.runs import Run
    from s2rm_data.store import ShardCache, Store


@click.command(
    "s2rm-eval",
    cls=with_world_options(lambda world: world.evaluation_options),
    epilog=EXIT_STATUSES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(s2rm_data.__version__, prog_name="s2rm-eval")
@click.argument("paths", metavar="[RUN]...", type=click.Path(path_type=Path), nargs=-1)
@runs_option("Run folder of s2rm-train, or a folder of them; may be repeated. The same as RUN.")
@click.option("--store", type=STORE_PATH, default=None, help="Store.  [default: the runs' own]")
@cache_options
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder for the results.  [default: evaluation in the run folder; `evaluation` for several]",
)
@click.option("--quick", is_flag=True, help="A first look: few sequences of each group.")
@click.option("--sequences", type=int, default=None, help="Sequences of each test group.  [default: all; --quick: 20]")
@click.option(
    "--dropped-sequences",
    type=int,
    default=None,
    help="Sequences of each group for scores with views dropped.  [default: 50; --quick: 5]",
)
@click.option("--rollout-sequences", type=int, default=None, help="Sequences rolled out.  [default: 50; --quick: 5]")
@click.option("--device", default=None, help="cpu, cuda, cuda:1.  [default: a GPU if there is one]")
@click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    default=None,
    help="CPU threads.  [default: one per core that the process may use]",
)
@click.option("--overwrite", is_flag=True, help="Replace the results of an earlier evaluation in --out.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
@click.option("--json", "as_json", is_flag=True, help="All results as JSON on standard output.")
def evaluate(
    paths: tuple[Path, ...],
    runs: tuple[Path, ...],
    store: StorePath | None,
    cache: Path | None,
    cache_size: str | None,
    out: Path | None,
    device: str | None,
    threads: int | None,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
    given: dict[str, Any],
    **options: Any,
) -> None:
    """Evaluate trained runs: the paper's figures and tables, roll-outs, and an HTML report of it all.

    Runs of the same model that differ in their seed alone are one row with an interval. Models stand beside references
    that need no model, and beside the paper's own numbers where it prints any.

    \b
    Examples:
      s2rm-eval runs/s2gru --quick                             # a first look
      s2rm-eval --run runs/s2gru --run runs/lstm --store data.zarr --out compared
      s2rm-eval --run runs --out all                           # every run folder in runs/
      s2rm-eval --run runs/s2gru/seeds --sequences 200         # intervals over seeds
    """
    _need_torch()
    from s2rm_data.evaluation.artefacts import check_folder, write_artefacts
    from s2rm_data.evaluation.evaluate import evaluate as evaluate_runs
    from s2rm_data.evaluation.runs import load_runs

    if not (chosen := (*runs, *paths)):
        raise UsageError("no run given; name the folder of one, as in s2rm-eval runs/one (s2rm-train makes it)")
    config = _config(options, given)
    on = _set_up(device, threads)
    loaded = load_runs(chosen, on)
    opened = _open_store(loaded, store, shard_cache(cache, cache_size))
    folder = out or (loaded[0].path / "evaluation" if len(loaded) == 1 and loaded[0].path else Path("evaluation"))
    check_folder(folder, overwrite=overwrite)
    begun = time.monotonic()
    with progress_for("evaluating", "sequences", quiet=quiet) as progress:
        made = evaluate_runs(loaded, opened, config, device=on, progress=progress)
    if not quiet:
        click.echo("s2rm-eval: drawing figures", err=True)
    written = write_artefacts(made, folder)
    if as_json:
        click.echo(json.dumps(made.results))
    elif not quiet:
        count, seconds = len(written.files), time.monotonic() - begun
        click.echo(f"{written.report}\ns2rm-eval: {count} files in {folder}, {seconds:.0f} s", err=False)


def _need_torch() -> None:
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise missing_component("torch", "train", "evaluating a model") from None


def _config(options: dict[str, Any], given: dict[str, Any]) -> EvalConfig:
    from s2rm_data.evaluation.evaluate import EvalConfig

    chosen = {name: value for name, value in options.items() if value is not None}
    return EvalConfig.of(**chosen, options=given)


def _set_up(device: str | None, threads: int | None) -> torch.device:
    import torch

    from s2rm_data.models.device import choose_device

    torch.set_num_threads(threads or available_threads())
    return choose_device(device)


def _open_store(runs: list[Run], given: StorePath | None, cache: ShardCache | None) -> Store:
    """The store given, or the one the runs were trained on, if it is the same for all and still there."""
    from s2rm_data.store import Store

    if given is not None:
        return Store(given, cache=cache)
    paths = dict.fromkeys(entry.store for entry in runs)
    if len(paths) > 1:
        raise UsageError(f"the runs were trained on different stores ({', '.join(paths)}); name one with --store")
    (path,) = paths
    found = store_path(path) if path else None
    if found is None or (isinstance(found, Path) and not found.exists()):
        raise UsageError(
            f"the store the runs were trained on ({path or 'unknown'}) is not there; name one with --store"
        )
    return Store(found, cache=cache)


evaluate.params.append(plugin_option())


def main() -> NoReturn:
    run(evaluate, "s2rm-eval")


if __name__ == "__main__":
    main()
