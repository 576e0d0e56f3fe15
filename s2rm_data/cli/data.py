"""The command `s2rm-data`."""

from __future__ import annotations

from typing import NoReturn

import click

import s2rm_data
from s2rm_data.cli.bballs import bballs
from s2rm_data.cli.export import export
from s2rm_data.cli.inspect import info, repair, verify
from s2rm_data.cli.preview import preview
from s2rm_data.cli.run import EXIT_STATUSES, run
from s2rm_data.cli.sc2 import sc2
from s2rm_data.cli.sc2_server import sc2_server
from s2rm_data.cli.stats import stats


@click.group(epilog=EXIT_STATUSES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(s2rm_data.__version__, prog_name="s2rm-data")
def data() -> None:
    """Generate and inspect the partially observed worlds of Spatially Structured Recurrent Modules.

    \b
    Examples:
      s2rm-data bballs --balls 1-6          # bouncing balls, to data.zarr
      s2rm-data sc2 --scenario 3s5z         # StarCraft II battles, added to data.zarr
      s2rm-data info data.zarr              # what is in there
      s2rm-data preview data.zarr           # look at it

    \b
    Shell completion (bash; zsh and fish likewise):
      eval "$(_S2RM_DATA_COMPLETE=bash_source s2rm-data)"
    """


for _command in (bballs, sc2, info, verify, repair, preview, stats, export, sc2_server):
    data.add_command(_command)


def main() -> NoReturn:
    run(data, "s2rm-data")
