"""The world of StarCraft II battles, as the stages see it. Cheap to import."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from s2rm_data.core.check import integer, named, number, whole
from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.core.schema import SplitSource
from s2rm_data.making.world import Making, Option, World

if TYPE_CHECKING:
    from s2rm_data.evaluation.world_evaluation import WorldEvaluation
    from s2rm_data.generators.sc2.making.battle_source import Sc2Split
    from s2rm_data.inspection.world_inspection import Inspection
    from s2rm_data.learning.world_learning import Learning

SHARD_EPISODES = 200  # as many as are rolled out together, and about 15 MB of images
GAME_SHARD_EPISODES = 16  # an episode of the real game takes seconds: commit often


def _scenarios() -> list[str]:
    from s2rm_data.starcraft.scenarios import names

    return names()


def _policies() -> list[str]:
    from s2rm_data.starcraft.policies import POLICIES

    return POLICIES.names()


def _description(policy: str) -> str:
    from s2rm_data.starcraft.policies import POLICIES

    try:
        return str(POLICIES.load(policy).description)
    except UsageError as error:
        return f"cannot be used: {error}"


OPTIONS = (
    Option(
        name="scenario",
        many=True,
        choices=_scenarios,
        help="Scenario to play, such as 3s5z; may be repeated or a list: 3s5z,2s3z.",
    ),
    Option(
        name="preset",
        parse=named("paper"),
        metavar="paper",
        choices=lambda: ("paper",),
        help="paper: all scenarios of the paper, four to train on, two to test on.",
    ),
    Option(name="train", parse=whole(0), help="Training episodes per scenario.", shown="3000"),
    Option(name="val", parse=whole(0), help="Validation episodes per scenario.", shown="300"),
    Option(
        name="test",
        parse=whole(0),
        help="Test episodes per scenario.",
        shown="0; 1000 for the test scenarios of --preset paper",
    ),
    Option(name="steps", parse=integer, default=100, help="Steps of an episode that are kept."),
    Option(
        name="policy",
        default="mixed",
        choices=_policies,
        help="Who plays the agents: a name of --list, or the file of a trained policy.",
    ),
    Option(name="epsilon", parse=number, help="Share of random actions.", shown="the policy's own"),
    Option(
        name="enemy_order",
        parse=named("random", "created"),
        metavar="random|created",
        choices=lambda: ("random", "created"),
        help="How enemies are numbered: at random in every battle, as in the game, or as they are created.",
        shown="random",
    ),
    Option(name="radial", parse=integer, help="Radial cells of the stored images; models draw their own.", shown="16"),
    Option(name="angular", parse=integer, help="Angular cells of the stored images.", shown="48"),
    Option(name="radius", parse=number, help="Radius of the field of view.", shown="9, SMAC's sight"),
    Option(
        name="backend",
        parse=named("auto", "engine", "starcraft2"),
        metavar="auto|engine|starcraft2",
        choices=lambda: ("auto", "engine", "starcraft2"),
        default="auto",
        help="What plays the battles: the embedded engine, or the StarCraft II at SC2PATH; auto: the game if there is "
        "one.",
    ),
)


class Battles(World):
    name = "sc2"
    title = "StarCraft II"
    unit = "episodes"
    options = OPTIONS
    evaluation_options = (
        Option(name="episode", parse=integer, default=0, help="Episode whose images are drawn."),
        Option(name="agent", parse=integer, default=0, help="Agent whose images are drawn."),
        Option(name="step", parse=integer, help="Step drawn.", shown="the middle of the agent's life"),
    )
    training_options = (
        Option(
            name="scenario",
            many=True,
            choices=_scenarios,
            help="Scenarios of the store to learn from; may be repeated or a list: 3s5z,2s3z.",
            shown="all",
        ),
    )
    help = """Generate StarCraft II battles, seen through each agent's polar images; no game needed.

    Scripted policies play the scenario on the embedded engine, or in StarCraft II itself. A scenario is one of SMAC's,
    or anything spelled like them: 1s2z, 5s3z, 7s4z_vs_3c. In SMACv2's scenarios, such as 10gen_terran_5_vs_5, every
    episode draws its own armies and places.

    \b
    Examples:
      s2rm-data sc2 --scenario 3s5z                  # 3,000 + 300 episodes, added to data.zarr
      s2rm-data sc2 --preset paper                   # all scenarios of the paper
      s2rm-data sc2 --scenario 2s3z,1s2z --train 50 --val 10 --policy kite
      SC2PATH=~/StarCraftII s2rm-data sc2 --scenario 3s5z --train 100 --val 10 --backend starcraft2
      s2rm-data sc2 --list
    """

    def plan(self, *, backend: str = "auto", **options: Any) -> Making:
        from s2rm_data.generators.sc2.making.battle_source import plan
        from s2rm_data.starcraft.api.client.process import AUTO, ENGINE, Choice, choose
        from s2rm_data.starcraft.scenarios import parse

        splits = plan(**{name: value for name, value in options.items() if value is not None})
        choice = choose(backend)
        drawn = [split.config.scenario for split in splits if parse(split.config.scenario).generated]
        if drawn and choice.backend != ENGINE:
            if backend != AUTO:
                raise UsageError(f"scenario {drawn[0]!r} is played on the embedded engine only; use --backend engine")
            choice = Choice(ENGINE, f"the embedded engine, the only one that plays {drawn[0]}")
        notes = (f"--backend {choice.backend}: {choice.why}",) if backend == AUTO else ()
        if choice.backend == ENGINE:
            return Making(splits=splits, shard_size=SHARD_EPISODES, notes=notes)
        if options.get("enemy_order") == "created":
            raise UsageError(
                "StarCraft II numbers the enemies itself, at random; leave out --enemy-order created, or use --backend "
                "engine"
            )
        return Making(splits=splits, shard_size=GAME_SHARD_EPISODES, notes=notes, opened=lambda: _in_the_game(splits))

    def listing(self) -> str:
        from s2rm_data.starcraft.scenarios import parse

        lines = [
            "Scenarios (others by their spelling: counts and letters, `_vs_` between unequal sides;",
            "           10gen_RACE_N_vs_M draws armies of protoss, terran or zerg)",
        ]
        for name in _scenarios():
            entry = parse(name)
            lines.append(f"  {name:<22} {entry.agent_count:>2} against {entry.enemy_count:>2}")
        lines += ["", "Policies"]
        lines += [f"  {name:<18} {_description(name)}" for name in _policies()]
        return "\n".join(lines)

    def split_from(self, settings: dict[str, Any], count: int) -> SplitSource:
        from s2rm_data.generators.sc2.making.battle_source import split_from_settings

        return split_from_settings(settings, count)

    def choose_groups(self, paths: Sequence[str], options: Mapping[str, Any]) -> Sequence[str]:
        """Of `sc2/SCENARIO/SPLIT`, those of the scenarios named."""
        there = {path.split("/")[1] for path in paths}
        for name in options["scenario"]:
            if name not in there:
                it_has = f"it has {', '.join(sorted(there))}"
                raise UsageError(
                    f"the store has no scenario {name!r}{did_you_mean(name, there, it_has)}. "
                    f"Make it with: s2rm-data sc2 --scenario {name}"
                )
        return [path for path in paths if path.split("/")[1] in options["scenario"]]

    def learning(self) -> Learning:
        from s2rm_data.generators.sc2.learning.battle_learning import LEARNING

        return LEARNING

    def inspection(self) -> Inspection:
        from s2rm_data.generators.sc2.inspection.battle_inspection import BattleInspection

        return BattleInspection()

    def evaluation(self) -> WorldEvaluation:
        from s2rm_data.generators.sc2.evaluation.battle_evaluation import BattleEvaluation

        return BattleEvaluation(self)


@contextlib.contextmanager
def _in_the_game(splits: Sequence[Sc2Split]) -> Iterator[Sequence[SplitSource]]:
    from s2rm_data.generators.sc2.making.game_split import played_by
    from s2rm_data.starcraft.api.client.process import Games

    with Games() as games:
        yield played_by(games, splits)


WORLD = Battles()
