"""`s2rm-data WORLD`: one command per world, made of what the world says of itself."""

from __future__ import annotations

from typing import Any

import click

from s2rm_data.cli.generation import Run, run_generation
from s2rm_data.cli.options import completing, generation_options, metavar, plugin_option
from s2rm_data.cli.run import EXIT_STATUSES
from s2rm_data.errors import UsageError
from s2rm_data.options import Option
from s2rm_data.world import World


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
    words = option.help
    if option.default is None and option.shown:
        words += f"  [default: {option.shown}]"
    return click.Option(
        [option.flag],
        type=str if option.many else OptionType(option),
        default=() if option.many else option.default,
        show_default=option.default is not None,
        multiple=option.many,
        help=words,
        metavar=option.metavar or None,
        shell_complete=completing(option.choices) if option.choices else None,
    )


def world_command(world: World) -> click.Command:
    def make(**options: Any) -> None:
        if options.pop("listing", False):
            click.echo(world.listing())
            return
        own = ("unit", "world", "options")
        shared = {name: options.pop(name) for name in Run.__dataclass_fields__ if name not in own}
        run_generation(world.prepare(options), Run(unit=world.unit, world=world.name, options=options, **shared))

    command = click.command(world.name, help=world.help, epilog=EXIT_STATUSES)(generation_options(make))
    own = [click_option(option) for option in world.options]
    if type(world).listing is not World.listing:
        own.append(click.Option(["--list", "listing"], is_flag=True, help="Show every name that the options know."))
    command.params = [*own, *command.params, plugin_option()]
    return command
