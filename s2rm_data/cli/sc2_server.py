"""`s2rm-data sc2-server`."""

from pathlib import Path

import click


@click.group("sc2-server")
def sc2_server() -> None:
    """Let pysc2, SMAC and python-sc2 play the embedded engine in place of StarCraft II.

    \b
    Examples:
      s2rm-data sc2-server install sc2              # a folder that they take for the game
      SC2PATH=sc2 python -m smac.examples.random_agents
      s2rm-data sc2-server run --port 5000          # the API at ws://127.0.0.1:5000/sc2api
    """


@sc2_server.command
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--scenario", multiple=True, help="A map for this scenario as well, such as 7s4z_vs_3c; may be repeated.")
def install(folder: Path, scenario: tuple[str, ...]) -> None:
    """Lay out DIR as clients expect a StarCraft II: launcher, version, and a map file for every scenario.

    `Maps/SMAC_Maps/NAME` is a SMAC map: battle follows battle. `Maps/Battles/NAME_battle` ends with its one battle, in
    victory, defeat or a tie. DIR may be laid out again; a folder with anything else in it is left alone.
    """
    from s2rm_data.starcraft.api.protocol import require_protocol
    from s2rm_data.starcraft.api.server.install import install as lay_out

    require_protocol()
    files = lay_out(folder, scenario)
    maps = sum(path.suffix == ".SC2Map" for path in files)
    click.echo(f"s2rm-data: {maps} maps in {folder}; start clients with SC2PATH={folder.resolve()}", err=True)


@sc2_server.command
@click.option(
    "--port", type=click.IntRange(0, 65535), default=5000, show_default=True, help="Port; 0 takes any free one."
)
@click.option(
    "--listen", "host", default="127.0.0.1", show_default=True, help="Address; all but loopback are open to others."
)
def run(port: int, host: str) -> None:
    """Serve the StarCraft II API until interrupted; every client gets a game and a thread of its own.

    There is no password and no encryption: anybody who can reach the address can play.
    """
    from s2rm_data.starcraft.api.server.serve import is_open_to_others
    from s2rm_data.starcraft.api.server.serve import run as serve

    def ready(bound: int) -> None:
        if is_open_to_others(host):
            click.echo(
                f"s2rm-data: warning: --listen {host} lets in everybody who can reach this machine, without password; "
                "on a network that you do not trust, listen on 127.0.0.1 and use a tunnel",
                err=True,
            )
        click.echo(f"s2rm-data: serving the StarCraft II API at ws://{host}:{bound}/sc2api", err=True)

    serve(host=host, port=port, single=False, ready=ready)
