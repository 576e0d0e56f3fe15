"""Options that several commands share, how their values are spelled, and options that worlds add to a command that
knows none of them, such as `preview --agent`."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

import s2rm_data
from s2rm_data.cli.run import EXIT_STATUSES
from s2rm_data.core.addresses import StorePath, store_path
from s2rm_data.core.check import Check
from s2rm_data.core.errors import S2RMError, UsageError
from s2rm_data.core.registry import WORLDS, load_plugin
from s2rm_data.making.world import Option, World

MAX_SEED = 2**63 - 1  # that of s2rm_data.core.seeding, which imports numpy

F = TypeVar("F", bound=Callable[..., Any])
OptionsOf = Callable[[World], Iterable[Option]]


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


def path_option(*flags: str, words: str, **settings: Any) -> Callable[[F], F]:
    return click.option(*flags, type=click.Path(path_type=Path), help=words, **settings)


def out_folder(default: str, words: str) -> Callable[[F], F]:
    return path_option("-o", "--out", words=words, default=Path(default), show_default=True)


def metavar(option: Option) -> str:
    is_number = isinstance(option.parse, Check) and option.parse.is_number
    return option.metavar or ("NUMBER" if is_number else "TEXT" if option.parse is str else "VALUE")


def runs_option(words: str) -> Callable[[F], F]:
    return path_option("--run", "runs", words=words, multiple=True)


def program(name: str, cls: type[click.Command], epilog: str = EXIT_STATUSES) -> Callable[[Callable[..., Any]], Any]:
    """One of the package's programs: `--help`, `-h`, `--version` and `--plugin`."""

    def made(function: Callable[..., Any]) -> Any:
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
        versioned = click.version_option(s2rm_data.__version__, prog_name=name)(function)
        command = click.command(name, cls=cls, epilog=epilog, context_settings=settings)(versioned)
        command.params.append(plugin_option())
        return command

    return made


def plugin_option() -> click.Option:
    return click.Option(
        ["--plugin", "plugins"],
        multiple=True,
        expose_value=False,
        metavar="MODULE",
        help="Module or .py file that brings a model, policy or world of your own; may be repeated.",
    )


def _together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    return lambda command: functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


# fmt: off
# The options that every generator has, in the same words.
generation_options = _together(
    click.option(
        "--seed", type=click.IntRange(0, MAX_SEED), default=0, show_default=True, help="Seed of the whole run."
    ),
    click.option("-j", "--workers", type=int, default=None, help="Shards made at once.  [default: one per core]"),
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
)
# Where and how large the local cache of a store is.
cache_options = _together(
    path_option(
        "--cache", words="Folder for decoded shards: read the store through it instead of holding it in memory."
    ),
    click.option("--cache-size", default=None, help="How large that folder may become.  [default: 50GB]"),
)
# fmt: on


def completing(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """For `shell_complete`: the names that begin as typed, also the last of a list such as 3s5z,2s3z."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + name for name in names() if name.startswith(last)]

    return complete


def complete_groups(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """For `shell_complete`: groups of the store that the line names."""
    from s2rm_data.store import Store

    with contextlib.suppress(S2RMError, OSError, IndexError):
        store = context.params.get("store") or context.args[0]  # an option without its value ends click's parsing
        return [path for path in Store(store).groups if path.startswith(incomplete)]
    return []


def group_argument(**settings: Any) -> Callable[[F], F]:
    return click.argument("group", shell_complete=complete_groups, **settings)


def named_option(*flags: str, names: Callable[[], Sequence[str]], words: str, **settings: Any) -> Callable[[F], F]:
    """One of some names, which the help lists and the shell completes; plug-ins may add to them until the last moment.
    What a wrong one gets is left to the command, which knows more. `words` follow the names in the help."""

    class NamedOption(click.Option):
        def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
            *others, last = names()
            self.help = f"{', '.join(others)} or {last}{words}"
            return super().get_help_record(ctx)

    return click.option(*flags, cls=NamedOption, shell_complete=completing(names), help=" ", **settings)


def with_world_options(options_of: OptionsOf) -> type[click.Command]:
    """A command with the options of all worlds; what is given of them reaches it as `given`, by name.
    Worlds are asked only when a command line is read, so that plug-ins are known. One that cannot be loaded is left
    out here: the message comes when it is needed."""

    class Command(TakesPlugins):
        def get_params(self, ctx: click.Context) -> list[click.Parameter]:
            own = super().get_params(ctx)
            return [*self.params, *_merged(options_of), *own[len(self.params) :]]

        def invoke(self, ctx: click.Context) -> Any:
            names = {parameter.name for parameter in _merged(options_of)}
            given = {name: ctx.params.pop(name) for name in [*ctx.params] if name in names}
            ctx.params["given"] = {name: value for name, value in given.items() if value not in (None, ())}
            return super().invoke(ctx)

    return Command


def _merged(options_of: OptionsOf) -> list[click.Parameter]:
    """One parameter per name; its help says for each world what it means there."""
    found: dict[str, list[tuple[World, Option]]] = {}
    for world in _loadable():
        for option in options_of(world):
            found.setdefault(option.name, []).append((world, option))
    return list(map(_parameter, found.values()))


def _loadable() -> Iterable[World]:
    for name in WORLDS.names():
        try:
            yield WORLDS.load(name)
        except UsageError:
            continue


def _parameter(meanings: list[tuple[World, Option]]) -> click.Option:
    first, words = meanings[0][1], []
    for world, option in meanings:
        shown = option.shown or option.default
        words.append(f"{world.name}: {option.help}" + ("" if shown in (None, "") else f"  [default: {shown}]"))
    shown_as: Any = {"metavar": metavar(first), "help": " ".join(words)}
    return click.Option([first.flag, first.name], default=None, multiple=first.many, **shown_as)


def world_values(worlds: Iterable[World], options_of: OptionsOf, given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of the worlds, given or by default; one that none of them has is refused."""
    worlds = list(worlds)
    known = {option.name: option for world in worlds for option in options_of(world)}
    for name in given:
        if name not in known:
            others = [world.name for world in _loadable() if any(o.name == name for o in options_of(world))]
            flags = ", ".join(option.flag for option in known.values()) or "none"
            own = f"{' or '.join(world.name for world in worlds)}, which has of its own: {flags}; leave it out"
            whose = " and ".join(others) or "no world"
            raise UsageError(f"--{name.replace('_', '-')} is an option of {whose}, not of {own}")
    return {name: option.value(given.get(name, option.default)) for name, option in known.items()}
