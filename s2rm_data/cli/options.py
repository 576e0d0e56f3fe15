"""Options that several commands share, and how their values are spelled."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from s2rm_data.addresses import StorePath, store_path
from s2rm_data.cli.sizes import size_nbytes
from s2rm_data.cores import available_cores
from s2rm_data.errors import UsageError
from s2rm_data.options import Option
from s2rm_data.registry import load_plugin

if TYPE_CHECKING:
    from s2rm_data.store import ShardCache

MAX_SEED = 2**63 - 1  # that of s2rm_data.seeding, which imports numpy
MOST_WORKERS = 1024
CACHE_SIZE = "50GB"

F = TypeVar("F", bound=Callable[..., Any])


class StorePathType(click.ParamType):
    """A store: a folder, or an address in a bucket."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> StorePath:
        return store_path(value)


STORE_PATH = StorePathType()


class TakesPlugins(click.Command):
    """Modules named with --plugin anywhere on the line are loaded first, so that all that follows knows them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = [after for word, after in itertools.pairwise(args) if word == "--plugin"]
        named += [word.partition("=")[2] for word in args if word.startswith("--plugin=")]
        # The shell's completion parses a line that is not finished: it offers what can be loaded and says nothing.
        with contextlib.suppress(UsageError) if ctx.resilient_parsing else contextlib.nullcontext():
            for name in named:
                load_plugin(name)
        return super().parse_args(ctx, args)


def out_folder(default: str, words: str) -> Callable[[F], F]:
    """-o, --out: a folder to write to."""
    return click.option(
        "-o", "--out", type=click.Path(path_type=Path), default=Path(default), show_default=True, help=words
    )


def metavar(option: Option) -> str:
    """What help texts show for the value of a world's option."""
    kinds = {"str": "TEXT", "whole_number": "NUMBER", "integer": "NUMBER", "number": "NUMBER"}
    return option.metavar or kinds.get(getattr(option.parse, "__name__", ""), "VALUE")


def runs_option(words: str) -> Callable[[F], F]:
    """--run: run folders, as often as it is given."""
    return click.option("--run", "runs", type=click.Path(path_type=Path), multiple=True, help=words)


def plugin_option() -> click.Option:
    return click.Option(
        ["--plugin", "plugins"],
        multiple=True,
        expose_value=False,
        metavar="MODULE",
        help="Module or .py file that brings a model, policy or world of your own; may be repeated.",
    )


def generation_options(command: F) -> F:
    """The options that every generator has, in the same words."""
    options = [
        click.option(
            "--seed", type=click.IntRange(0, MAX_SEED), default=0, show_default=True, help="Seed of the whole run."
        ),
        click.option(
            "-j", "--workers", type=int, default=None, help="Shards made at once.  [default: one per core]"
        ),
        click.option(
            "-o", "--out", type=STORE_PATH, default=Path("data.zarr"), show_default=True,
            help="Store to write or add to: a folder, or s3://BUCKET/NAME (gs://, az://).",
        ),
        click.option("--shard-size", type=int, default=None, help="Sequences per shard file."),
        click.option(
            "--part", default=None, metavar="I/N",
            help="Make only part I of N, on any machine; `s2rm-data merge` puts them together.",
        ),
        click.option(
            "--dask", default=None, metavar="ADDRESS",
            help="Make the parts on the Dask cluster at ADDRESS, or `local` for processes of this machine.",
        ),
        click.option("--overwrite", is_flag=True, help="Make these splits again, whatever is there under their names."),
        click.option("--dry-run", is_flag=True, help="Say what would be made and how large it is; write nothing."),
        click.option("-q", "--quiet", is_flag=True, help="No progress, no summary."),
        click.option("--json", "as_json", is_flag=True, help="A summary as JSON on standard output."),
    ]  # fmt: skip
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


def cache_options(command: F) -> F:
    """Where and how large the local cache of a store is."""
    options = [
        click.option(
            "--cache", type=click.Path(path_type=Path), default=None,
            help="Folder for decoded shards: read the store through it instead of holding it in memory.",
        ),
        click.option("--cache-size", default=None, help=f"How large that folder may become.  [default: {CACHE_SIZE}]"),
    ]  # fmt: skip
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


def shard_cache(folder: Path | None, size: str | None) -> ShardCache | None:
    if folder is None:
        if size is not None:
            raise UsageError(f"--cache-size {size} says how large a cache may be; say with --cache where it is")
        return None
    from s2rm_data.store import ShardCache

    return ShardCache(folder, size_nbytes(size or CACHE_SIZE))


def completing(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """For `shell_complete`: the names that begin as typed, also the last of a list such as 3s5z,2s3z."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + name for name in names() if name.startswith(last)]

    return complete


class NamedOption(click.Option):
    """One of some names, which the help lists and the shell completes; plug-ins may add to them until the last moment.

    What a wrong one gets is left to the command, which knows more.
    """

    names: Callable[[], Sequence[str]]
    shown: str

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        names = self.names()
        self.help = f"{', '.join(names[:-1])} or {names[-1]}.  [default: {self.shown}]"
        return super().get_help_record(ctx)


def named_option(name: str, names: Callable[[], Sequence[str]], default: str) -> Callable[[F], F]:
    made = type("Named", (NamedOption,), {"names": staticmethod(names), "shown": default})
    return click.option(name, cls=made, default=None, shell_complete=completing(names), help=" ")


def worker_count(workers: int | None) -> int:
    if workers is None:
        return available_cores()
    if not 1 <= workers <= MOST_WORKERS:
        raise UsageError(
            f"--workers {workers} is not possible; allowed are 1 to {MOST_WORKERS} (leave it out for one per core)"
        )
    return workers
