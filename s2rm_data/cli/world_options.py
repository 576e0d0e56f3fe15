"""Options that worlds add to a command that knows none of them, such as `preview --agent`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from s2rm_data.cli.options import TakesPlugins, metavar
from s2rm_data.errors import UsageError
from s2rm_data.options import Option
from s2rm_data.registry import WORLDS
from s2rm_data.world import World

OptionsOf = Callable[[World], Iterable[Option]]


class WithWorldOptions(TakesPlugins):
    """A command with the options of all worlds; what is given of them reaches it as `given`, by name.

    Worlds are asked only when a command line is read, so that plug-ins are known. One that cannot be loaded is left
    out here: the message comes when it is needed.
    """

    options_of: OptionsOf

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = super().get_params(ctx)
        return [*self.params, *_merged(self.options_of), *own[len(self.params) :]]

    def invoke(self, ctx: click.Context) -> Any:
        names = {parameter.name for parameter in _merged(self.options_of)}
        given = {name: ctx.params.pop(name) for name in [*ctx.params] if name in names}
        ctx.params["given"] = {name: value for name, value in given.items() if value not in (None, ())}
        return super().invoke(ctx)


def with_world_options(options_of: OptionsOf) -> type[click.Command]:
    return type("Command", (WithWorldOptions,), {"options_of": staticmethod(options_of)})


def _merged(options_of: OptionsOf) -> list[click.Parameter]:
    """One parameter per name; its help says for each world what it means there."""
    found: dict[str, list[tuple[World, Option]]] = {}
    for world in _loadable():
        for option in options_of(world):
            found.setdefault(option.name, []).append((world, option))
    return [_parameter(meanings) for meanings in found.values()]


def _loadable() -> Iterable[World]:
    for name in WORLDS.names():
        try:
            yield WORLDS.load(name)
        except UsageError:
            continue


def _parameter(meanings: list[tuple[World, Option]]) -> click.Option:
    first = meanings[0][1]
    return click.Option(
        [first.flag, first.name],
        default=None,
        multiple=first.many,
        metavar=metavar(first),
        help=" ".join(f"{world.name}: {_help(option)}" for world, option in meanings),
    )


def _help(option: Option) -> str:
    shown = option.shown or option.default
    return option.help if shown in (None, "") else f"{option.help}  [default: {shown}]"


def world_values(worlds: Iterable[World], options_of: OptionsOf, given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of the worlds, given or by default; one that none of them has is refused."""
    worlds = list(worlds)
    known = {option.name: option for world in worlds for option in options_of(world)}
    for name in given:
        if name not in known:
            others = [world.name for world in _loadable() if any(o.name == name for o in options_of(world))]
            flags = ", ".join(option.flag for option in known.values()) or "none"
            raise UsageError(
                f"--{name.replace('_', '-')} is an option of {' and '.join(others) or 'no world'}, not of "
                f"{' or '.join(world.name for world in worlds)}, which has of its own: {flags}; leave it out"
            )
    return {name: option.value(given.get(name, option.default)) for name, option in known.items()}
