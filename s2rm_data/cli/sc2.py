"""`s2rm-data sc2`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from s2rm_data.cli.generation import Run, run_generation
from s2rm_data.cli.options import completing, count_option, generation_options
from s2rm_data.cli.run import EXIT_STATUSES

SHARD_EPISODES = 200  # as many as are rolled out together, and about 15 MB of images
GAME_SHARD_EPISODES = 16  # an episode of the real game takes seconds: commit often


def _scenarios() -> list[str]:
    from s2rm_data.generators.sc2.scenarios import names

    return names()


def _policies() -> list[str]:
    from s2rm_data.generators.sc2.policies import POLICIES

    return POLICIES.names()


@click.command(epilog=EXIT_STATUSES)
@click.option(
    "--scenario",
    multiple=True,
    shell_complete=completing(_scenarios),
    help="Scenario to play, such as 3s5z; may be repeated or a list: 3s5z,2s3z.",
)
@click.option(
    "--preset",
    type=click.Choice(["paper"]),
    default=None,
    help="All scenarios of the paper: four to train on, two to test on.",
)
@click.option("--list", "listing", is_flag=True, help="Show every known scenario and policy.")
@count_option("--train", None, "Training episodes a scenario.  [default: 3000]")
@count_option("--val", None, "Validation episodes a scenario.  [default: 300]")
@count_option("--test", None, "Test episodes a scenario.  [default: 0; 1000 for the test scenarios of --preset paper]")
@click.option("--steps", type=int, default=100, show_default=True, help="Steps of an episode that are kept.")
@click.option(
    "--policy",
    default="mixed",
    show_default=True,
    shell_complete=completing(_policies),
    help="Who plays the agents; see --list.",
)
@click.option("--epsilon", type=float, default=None, help="Share of random actions.  [default: the policy's own]")
@click.option("--radial", type=int, default=None, help="Radial cells of a polar image.")
@click.option("--angular", type=int, default=None, help="Angular cells of a polar image.")
@click.option("--radius", type=float, default=None, help="Radius of the field of view.  [default: 9, SMAC's sight]")
@click.option(
    "--backend",
    type=click.Choice(["auto", "engine", "starcraft2"]),
    default="auto",
    show_default=True,
    help="What plays the battles: the embedded engine, or the StarCraft II at SC2PATH; auto: the game if there is one.",
)
@generation_options
def sc2(
    scenario: tuple[str, ...],
    listing: bool,
    out: Path,
    workers: int | None,
    shard_size: int | None,
    backend: str,
    **options: Any,
) -> None:
    """Generate StarCraft II battles, seen through each agent's polar images; no game needed.

    Scripted policies play the scenario on the embedded engine, or in StarCraft II itself. A scenario is one of SMAC's,
    or anything spelled like them: 1s2z, 5s3z, 7s4z_vs_3c.

    \b
    Examples:
      s2rm-data sc2 --scenario 3s5z                  # 3,000 + 300 episodes, added to data.zarr
      s2rm-data sc2 --preset paper                   # all scenarios of the paper
      s2rm-data sc2 --scenario 2s3z,1s2z --train 50 --val 10 --policy kite
      SC2PATH=~/StarCraftII s2rm-data sc2 --scenario 3s5z --train 100 --val 10 --backend starcraft2
      s2rm-data sc2 --list
    """
    if listing:
        _print_list()
        return
    from s2rm_data.generators.sc2.source import plan

    shared = {name: options.pop(name) for name in ("overwrite", "dry_run", "quiet", "as_json")}
    given = {name: value for name, value in options.items() if value is not None}
    names = [name.strip() for entry in scenario for name in entry.split(",")]
    splits = plan(scenario=names, **given)
    taken = _choose_backend(backend, quiet=shared["quiet"])
    default_size = SHARD_EPISODES if taken == "engine" else GAME_SHARD_EPISODES
    run = Run(
        out=out,
        workers=workers,
        shard_size=default_size if shard_size is None else shard_size,
        unit="episodes",
        **shared,
    )
    if taken == "engine":
        run_generation(splits, run)
        return
    from s2rm_data.generators.sc2.backends.process import Games
    from s2rm_data.generators.sc2.backends.split import played_by

    with Games() as games:
        run_generation(played_by(games, splits), run)


def _choose_backend(asked: str, *, quiet: bool) -> str:
    from s2rm_data.generators.sc2.backends.choice import choose

    choice = choose(asked)
    if not quiet and asked == "auto":
        click.echo(f"s2rm-data: --backend {choice.backend}: {choice.why}", err=True)
    return choice.backend


def _print_list() -> None:
    from s2rm_data.generators.sc2.policies import POLICIES
    from s2rm_data.generators.sc2.scenarios import parse

    click.echo("Scenarios (others by their spelling: counts and letters, `_vs_` between unequal sides)")
    for name in _scenarios():
        entry = parse(name)
        click.echo(f"  {name:<18} {entry.agent_count:>2} against {entry.enemy_count:>2}")
    click.echo("\nPolicies")
    for name in _policies():
        click.echo(f"  {name:<18} {POLICIES.load(name).description}")
