"""The command `s2rm-data`, with one command per world, made of what the world says of itself.

What all worlds do alike once their splits are known: dry run, generation, summary."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from s2rm_data.cli.options import TakesPlugins, completing, generation_options, metavar, plugin_option, program
from s2rm_data.cli.run import run, say_json
from s2rm_data.core.addresses import StorePath
from s2rm_data.core.amounts import human
from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.core.registry import WORLDS
from s2rm_data.making.world import Option, World

if TYPE_CHECKING:
    from s2rm_data.making.run import Outcome, Plan

# Imported when they are asked for: name -> module in `cli`.
COMMANDS = {
    "get": "regroup", "info": "inspect", "verify": "inspect", "repair": "inspect", "remove": "regroup",
    "rename": "regroup", "merge": "regroup", "view": "view", "preview": "view", "stats": "inspect", "export": "export",
    "card": "export", "sc2-server": "sc2_server",
}  # fmt: skip
LISTED = "`s2rm-data --help` lists them; a world of your own may need --plugin"


class DataGroup(TakesPlugins, click.Group):
    """A command per world, plug-ins included, and those that work on stores."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise UsageError(f"there is no command {args[0]!r}{did_you_mean(args[0], known, LISTED)}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*WORLDS.names(), *COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            module = importlib.import_module(f"s2rm_data.cli.{COMMANDS[cmd_name]}")
            command: click.Command = getattr(module, cmd_name.replace("-", "_"))
            if not any(parameter.name == "plugins" for parameter in command.params):
                command.params.append(plugin_option())
            return command
        if cmd_name in WORLDS.names():
            try:
                return world_command(WORLDS.load(cmd_name))
            except UsageError as error:
                return broken_command(cmd_name, error)
        return None


def broken_command(name: str, error: UsageError) -> click.Command:
    """Stands in the list for a world whose plug-in cannot be loaded, and says why when it is asked for."""

    def fail(**options: object) -> None:
        raise error

    whatever = {"ignore_unknown_options": True, "allow_extra_args": True}
    words = "A plug-in that cannot be loaded."
    return click.Command(name, callback=fail, short_help=words, add_help_option=False, context_settings=whatever)


def show_plans(plans: Sequence[Plan], out: StorePath, unit: str, *, as_json: bool) -> None:
    sequences, nbytes = sum(p.sequences for p in plans), sum(p.nbytes for p in plans)
    if as_json:
        splits = [{"group": p.group, unit: p.sequences, "found": p.found, "bytes_estimated": p.nbytes} for p in plans]
        say_json(store=str(out), dry_run=True, splits=splits, bytes_estimated=nbytes)
        return
    width = max([len("in all"), *(len(p.group) for p in plans)])
    for plan in plans:
        found = f"  ({plan.found:,} there already)" if plan.found else ""
        click.echo(f"{plan.group:<{width}}  {plan.sequences:>9,} {unit}  about {human(plan.nbytes):>9}{found}")
    click.echo(f"{'in all':<{width}}  {sequences:>9,} {unit}  about {human(nbytes):>9}  (nothing written)")


def show_outcome(outcome: Outcome, out: StorePath, part: str | None, unit: str, seconds: float) -> None:
    size = f"{human(outcome.nbytes)} in {f'part {part} of ' if part else ''}{out}"
    if not outcome.made:
        click.echo(f"s2rm-data: everything is there already: {outcome.found:,} {unit}, {size}", err=True)
    else:
        found = f" ({outcome.found:,} were there already)" if outcome.found else ""
        click.echo(f"s2rm-data: {outcome.made:,} {unit} made{found} in {seconds:.1f} s, {size}", err=True)


class OptionType(click.ParamType):
    """A value as the world's option reads it."""

    def __init__(self, option: Option) -> None:
        self.option = option
        self.name = metavar(option)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.option.parse(value)
        except UsageError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


def click_option(option: Option) -> click.Option:
    """A world's option as click's; one that may be given several times is parsed when all of it is known."""
    shown = f"  [default: {option.shown}]" if option.default is None and option.shown else ""
    return click.Option(
        [option.flag],
        type=str if option.many else OptionType(option),
        default=() if option.many else option.default,
        show_default=option.default is not None,
        multiple=option.many,
        help=option.help + shown,
        metavar=option.metavar or None,
        shell_complete=completing(option.choices) if option.choices else None,
    )


def world_command(world: World) -> click.Command:
    def make(**options: Any) -> None:
        if options.pop("listing", False):
            click.echo(world.listing())
            return
        from s2rm_data import api

        as_json, dry_run = options.pop("as_json"), options.pop("dry_run")
        out, part = options["out"], options["part"]
        if dry_run:
            show_plans(api.plan(world.name, **options), out, world.unit, as_json=as_json)
            return
        begun = time.monotonic()
        made = api.generate(world.name, **options)
        seconds = time.monotonic() - begun
        if as_json:
            counts = {"made": made.made, "found": made.found, "bytes": made.nbytes, **({"part": part} if part else {})}
            say_json(store=str(out), groups=list(made.groups), **counts, seconds=round(seconds, 3))
        elif not options["quiet"]:
            show_outcome(made, out, part, world.unit, seconds)

    command = click.command(world.name, help=world.help)(generation_options(make))
    own = [click_option(option) for option in world.options]
    if type(world).listing is not World.listing:
        own.append(click.Option(["--list", "listing"], is_flag=True, help="Show every name that the options know."))
    command.params = [*own, *command.params, plugin_option()]
    return command


@program("s2rm-data", DataGroup)
def data() -> None:
    """Generate and inspect the partially observed worlds of Spatially Structured Recurrent Modules.

    \b
    Examples:
      s2rm-data bballs --balls 1-6          # bouncing balls, to data.zarr
      s2rm-data sc2 --scenario 3s5z         # StarCraft II battles, added to data.zarr
      s2rm-data info data.zarr              # what is in there
      s2rm-data view data.zarr              # look at it in the browser

    \b
    Shell completion (bash; zsh and fish likewise):
      eval "$(_S2RM_DATA_COMPLETE=bash_source s2rm-data)"
    """


def main() -> NoReturn:
    run(data, "s2rm-data")
