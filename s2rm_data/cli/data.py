"""The command `s2rm-data`."""

from __future__ import annotations

import importlib
from typing import NoReturn

import click

import s2rm_data
from s2rm_data.cli.options import TakesPlugins, plugin_option
from s2rm_data.cli.run import EXIT_STATUSES, run
from s2rm_data.errors import UsageError
from s2rm_data.registry import WORLDS

# Imported when they are asked for: name -> module in `cli`.
COMMANDS = {
    "info": "inspect",
    "verify": "inspect",
    "repair": "inspect",
    "remove": "regroup",
    "rename": "regroup",
    "merge": "merge",
    "view": "view",
    "preview": "preview",
    "stats": "stats",
    "export": "export",
    "card": "card",
    "sc2-server": "sc2_server",
}


class DataGroup(TakesPlugins, click.Group):
    """A command per world, plug-ins included, and those that work on stores."""

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
            from s2rm_data.cli.worlds import world_command

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


@click.group(
    cls=DataGroup,
    epilog=EXIT_STATUSES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(s2rm_data.__version__, prog_name="s2rm-data")
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


data.params.append(plugin_option())


def main() -> NoReturn:
    run(data, "s2rm-data")
