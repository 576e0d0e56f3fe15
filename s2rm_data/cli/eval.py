"""The command `s2rm-eval`."""

import json
import time
from pathlib import Path
from typing import Any, NoReturn

import click

from s2rm_data.cli.options import STORE_PATH, cache_options, path_option, program, runs_option, with_world_options
from s2rm_data.cli.run import run
from s2rm_data.core.errors import UsageError
from s2rm_data.core.optional import needed

_DROPPED = "Sequences of each group for scores with views dropped.  [default: 50; --quick: 5]"
_THREADS = "CPU threads.  [default: one per core that the process may use]"


@program("s2rm-eval", with_world_options(lambda world: world.evaluation_options))
@click.argument("paths", metavar="[RUN]...", type=click.Path(path_type=Path), nargs=-1)
@runs_option("Run folder of s2rm-train, or a folder of them; may be repeated. The same as RUN.")
@click.option("--store", type=STORE_PATH, default=None, help="Store.  [default: the runs' own]")
@cache_options
@path_option(
    "-o", "--out", words="Folder for the results.  [default: evaluation in the run folder; `evaluation` for several]"
)
@click.option("--quick", is_flag=True, help="A first look: few sequences of each group.")
@click.option("--sequences", type=int, default=None, help="Sequences of each test group.  [default: all; --quick: 20]")
@click.option("--dropped-sequences", type=int, help=_DROPPED)
@click.option("--rollout-sequences", type=int, default=None, help="Sequences rolled out.  [default: 50; --quick: 5]")
@click.option("--device", default=None, help="cpu, cuda, cuda:1.  [default: a GPU if there is one]")
@click.option("--threads", type=click.IntRange(1, 1024), help=_THREADS)
@click.option("--overwrite", is_flag=True, help="Replace the results of an earlier evaluation in --out.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
@click.option("--json", "as_json", is_flag=True, help="All results as JSON on standard output.")
def evaluate(
    paths: tuple[Path, ...], runs: tuple[Path, ...], out: Path | None, given: dict[str, Any], **options: Any
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
    needed("torch", "train", "evaluating a model")
    from s2rm_data import api
    from s2rm_data.evaluation.runs import load_runs
    from s2rm_data.models.device import choose_device

    if not (chosen := (*runs, *paths)):
        raise UsageError("no run given; name the folder of one, as in s2rm-eval runs/one (s2rm-train makes it)")
    loaded = load_runs(chosen, choose_device(options["device"]))
    folder = out or (loaded[0].path / "evaluation" if len(loaded) == 1 and loaded[0].path else Path("evaluation"))
    begun, as_json = time.monotonic(), options.pop("as_json")
    named = {name: value for name, value in options.items() if value is not None}
    made = api.evaluate(loaded, out=folder, options=given, **named)
    if as_json:
        click.echo(json.dumps(made.results))
    elif not options["quiet"]:
        count, seconds = sum(path.is_file() for path in folder.rglob("*")), time.monotonic() - begun
        click.echo(f"{folder / 'report.html'}\ns2rm-eval: {count} files in {folder}, {seconds:.0f} s", err=False)


def main() -> NoReturn:
    run(evaluate, "s2rm-eval")


if __name__ == "__main__":
    main()
