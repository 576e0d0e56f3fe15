"""Evaluating battle models as the paper does: fewer active agents, scenarios never trained on, predicted images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from s2rm_data.core.errors import UsageError
from s2rm_data.evaluation.blocks import Piece, count
from s2rm_data.evaluation.candidates import Entry
from s2rm_data.evaluation.curves import draw_tables
from s2rm_data.evaluation.report import Page, Section
from s2rm_data.evaluation.reproduction import DataCommand, Reproduction, WorldSize
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.tables import Table
from s2rm_data.evaluation.world_evaluation import Context, Plan, WorldEvaluation, total
from s2rm_data.generators.sc2.evaluation.battle_predictions import BattleForesight, roll_out, shown
from s2rm_data.generators.sc2.evaluation.battle_tables import (
    MEANINGS,
    BattleResults,
    paper_tables,
    robustness_tables,
    unseen_tables,
)
from s2rm_data.generators.sc2.evaluation.example_images import Choice, draw_polar_example, polar_example, why_not
from s2rm_data.generators.sc2.learning import battle_scores as polar
from s2rm_data.inspection.scene import Addition
from s2rm_data.learning import groups_of
from s2rm_data.store import Group


def _size(train: int, val: int, test: int, steps: int) -> WorldSize:
    """The paper's scenarios (2s3z is its figure's, where its text has 2s5z), at a quarter of the default's cells."""
    cells = ("--radial", "8", "--angular", "24")
    known = ("--scenario", "1c3s5z,3s5z,2s3z", "--train", f"{train}", "--val", f"{val}", *cells)
    unseen = ("--scenario", "1s2z,5s3z", "--train", "0", "--val", "0", "--test", f"{test}", *cells)
    return WorldSize(
        steps=steps,
        data=(
            DataCommand(name="battles to train on", words=known),
            DataCommand(name="battles never trained on", words=unseen),
        ),
    )


_SEEDS = {"s2gru": 3, "lstm": 3, "rmc": 3, "rims": 3, "s2rmc": 1, "tto": 1}


class BattleEvaluation(WorldEvaluation):
    dropped_views = tuple(round(1 - percent / 100, 2) for percent in range(20, 101, 10))  # tables 4 to 7
    image_words = "polar images of (radial, angular)"
    position_unit = "map units"
    shows_roll_outs = True
    paper_note = f"StarCraft II: {paper_tables()['notes']}"
    reproduction = Reproduction(
        models={**_SEEDS, **{f"{name}+skip": seeds for name, seeds in _SEEDS.items()}, "no_memory": 3},
        sizes={"laptop": _size(900, 40, 40, 3000), "smoke": _size(6, 3, 2, 6)},
    )

    def foresee(self, run: Run, piece: Piece, *, start: int, dropped: float) -> BattleForesight:
        batch = piece.dropped(dropped)
        prediction = roll_out(run.model, batch, start) if start else run.predict(batch)
        return BattleForesight(first=start or 1, batch=batch, prediction=prediction)

    def shown(self, group: Group, piece: Piece, result: BattleForesight, *, index: int, start: int) -> Addition:
        return shown(group, piece.first, result, agent=index, start=start)

    def settings(self, context: Context) -> dict[str, Any]:
        return {"active_percent": list(self._fractions(context)), **context.options}

    def _fractions(self, context: Context) -> dict[int, float]:
        """Fraction of the views dropped, by percent of the agents that are active, the fewest first."""
        fractions = context.config.dropped_views or self.dropped_views
        return {round(100 * (1 - fraction)): fraction for fraction in sorted(fractions, reverse=True)}

    def plan(self, context: Context) -> Plan:
        """`val`: of the scenarios that all runs were trained on, if there are any; `test`; `drawn` of both."""
        store, name = context.store, self.world.name
        found = groups_of(store, name, "val")
        trained = [run for run in context.runs if run.groups]
        known = [path for path in found if all(path in run.groups for run in trained)] or found
        tests = [path for path in store.groups if path.startswith(f"{name}/") and path.endswith("/test")]
        plan = self.checked(context.runs, {"val": [store[p] for p in known], "test": [store[p] for p in tests]})
        missing = {
            group: why_not(group, Choice(**context.options), context) for group in [*plan["val"][:1], *plan["test"]]
        }
        if all(missing.values()):
            raise UsageError("; ".join(dict.fromkeys(missing.values())))
        return {**plan, "drawn": [group for group, reason in missing.items() if not reason]}

    def work(self, context: Context, plan: Plan) -> int:
        shares = len(self._fractions(context))
        tested = total(plan["test"], context.config.sequences)
        return len(context.runs) * (shares * total(plan["val"], context.config.dropped_sequences) + tested)

    def evaluate(self, context: Context, plan: Plan) -> BattleResults:
        config, fractions = context.config, self._fractions(context)
        tests = {group.settings["config"]["scenario"]: group for group in plan["test"]}
        episodes = {group.path: count(group, config.dropped_sequences) for group in plan["val"]}
        episodes |= {group.path: count(group, config.sequences) for group in plan["test"]}
        robust = self.one_step(context, plan["val"], list(fractions.values()), config.dropped_sequences)
        return BattleResults(
            val_groups=[group.path for group in plan["val"]],
            test_groups={scenario: group.path for scenario, group in tests.items()},
            episodes=episodes,
            robustness={percent: robust[fraction] for percent, fraction in fractions.items()},
            unseen={
                scenario: self.one_step(context, [group], (0.0,), config.sequences)[0.0]
                for scenario, group in tests.items()
            },
            examples={group.path: polar_example(group, Choice(**context.options), context) for group in plan["drawn"]},
        )

    def reference_counts(self, piece: Piece, fraction: float) -> dict[str, polar.PolarCounts]:
        images, targets = polar.reference_images(piece.dropped(fraction)), piece.batch.targets
        assert targets is not None
        mask = piece.batch.query_mask
        return {name: polar.PolarCounts.of_images(image, targets, mask) for name, image in images.items()}

    def reference_scores(self, counts: polar.PolarCounts) -> dict[str, float]:
        return polar.reference_scores(counts)

    def tables(self, results: BattleResults, entries: Sequence[Entry]) -> dict[str, list[Table]]:
        name, references = self.world.name, self.references
        return {
            "robustness": robustness_tables(results, entries, references, name),
            "unseen": unseen_tables(results, entries, references, name),
        }

    def sections(self, results: BattleResults, tables: Mapping[str, list[Table]], page: Page) -> list[Section]:
        robust = tables["robustness"]
        agents = Section(
            title="StarCraft II: fewer active agents",
            text="After the paper's figure 6 and tables 4 to 7: each agent supplies its view with the given "
            f"probability at every step, and is asked for its next image in any case. {MEANINGS} The paper's numbers "
            "come from other episodes, of the real game, at a resolution that it does not state. They are drawn on "
            "axes of their own: compare orders, not values. TTO is asked where the views it is given stand: it sees "
            "its targets.",
            tables=robust,
        )
        titles = [table.title.partition(" by ")[0] for table in robust]
        figure = draw_tables(robust, xlabel="active agents", titles=titles, columns=3)
        page.add_figure(agents, f"{self.world.name}_robustness", figure)
        scenarios = Section(
            title="StarCraft II: test scenarios",
            text="After the paper's table 1, all agents active. LL of a reference is at the best confidence it could "
            "have.",
            tables=tables["unseen"],
        )
        images = Section(
            title="StarCraft II: predicted images",
            text="One agent's image one step ahead, all agents active. Other episodes, agents and steps: --episode, "
            "--agent, --step.",
        )
        for path, example in results.examples.items():
            name = f"{self.world.name}_example_{path.split('/')[1]}"
            caption = f"{path}: one agent's image one step ahead, and what each model says it will be"
            page.add_figure(images, name, draw_polar_example(example, page.drawn), caption)
            images.lead = images.lead or images.figures[-1]
        return [agents, *([scenarios] if tables["unseen"] else []), images]
