"""Evaluating ball models as the paper does: other numbers of balls, fewer views, roll-outs.

Counts are pooled over sequences, steps, queries and the 121 pixels of a crop, at a threshold of 0.5. Pixels of a crop
that lie outside the arena count, too (they are off). `moving` leaves out the pixels of the fixed ball, which is always
there: without that, F1 rewards remembering a constant."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from s2rm_data.core.errors import S2RMWarning
from s2rm_data.evaluation.blocks import Piece, count
from s2rm_data.evaluation.candidates import Entry
from s2rm_data.evaluation.curves import draw_tables
from s2rm_data.evaluation.report import Page, Section
from s2rm_data.evaluation.reproduction import DataCommand, Reproduction, WorldSize
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.tables import Comparison, Reference, Table
from s2rm_data.evaluation.world_evaluation import Context, Plan, WorldEvaluation, total
from s2rm_data.generators.bballs.evaluation import ball_ceiling, ball_probe, ball_results, ball_rollouts
from s2rm_data.generators.bballs.evaluation.ball_results import SCORES, BallResults, number_of
from s2rm_data.generators.bballs.evaluation.ball_rollouts import BallForesight, RollOuts, roll_outs, spans
from s2rm_data.generators.bballs.making.ball_config import BallsConfig, config_of
from s2rm_data.inspection.scene import Addition
from s2rm_data.learning import groups_of
from s2rm_data.store import Group, Store

GIF_MILLISECONDS = 160
FILTERED_FRACTIONS, MOST_FILTERED = (0.5, 0.8), 3  # of the views dropped; up to this number of balls: others cost hours
QUIET_SECONDS = 300.0
_HORIZONS = {  # score of a roll-out: label of its axis, caption
    "f1": (
        "F1",
        "F1 by step; bands: range over seeds. The references know nothing of motion: what the prompt's end showed is "
        "held.",
    ),
    "f1_moving": ("F1, fixed ball left out", ""),
    "area": (
        "pixels on / true",
        "Do balls stay balls? Pixels that are on, relative to the truth: below 1 balls fade, above 1 they smear.",
    ),
}


def balls_of(group: Group) -> int:
    return int(group.settings["config"]["balls"])


def _size(train: int, val: int, test: int, steps: int) -> WorldSize:
    words = ("--balls", "1-6", "--train", f"{train}", "--val", f"{val}", "--test", f"{test}")
    return WorldSize(steps=steps, data=(DataCommand(name="balls", words=words),))


class BallEvaluation(WorldEvaluation):
    # Assumption: the paper's heat maps name no fractions; `dropped_views` are those of any world.
    position_unit = "px"
    shows_roll_outs = True
    y_down = True
    paper_note = "The paper shows its bouncing-ball scores as figures only (4, 17 and 18); it gives no numbers."
    reproduction = Reproduction(
        models={"s2gru": 3, "lstm": 3, "rmc": 3, "rims": 3, "s2rmc": 1, "tto": 1, "no_memory": 3},
        sizes={"laptop": _size(4000, 200, 200, 3000), "smoke": _size(24, 8, 4, 6)},
    )

    @property
    def references(self) -> Mapping[str, Reference]:
        return {**super().references, "filter": ball_results.FILTER}

    def foresee(self, run: Run, piece: Piece, *, start: int, dropped: float) -> BallForesight:
        return ball_rollouts.foresee(run, piece, start=start, dropped=dropped)

    def shown(self, group: Group, piece: Piece, result: BallForesight, *, index: int, start: int) -> Addition:
        return ball_rollouts.shown(piece, result, start=start)

    def settings(self, context: Context) -> dict[str, Any]:
        return {"dropped_views": list(context.config.dropped_views or self.dropped_views)}

    def plan(self, context: Context) -> Plan:
        """All groups `test_N`, by number of balls."""
        store, name = context.store, self.world.name
        numbered = {path: re.fullmatch(rf"{name}/test_(\d+)", path) for path in store.groups}
        found = sorted((int(match[1]), path) for path, match in numbered.items() if match)
        if not found:
            groups_of(store, name, "test_3")  # says what is missing and how to make it
        return self.checked(context.runs, {"test": [store[path] for _, path in found]})

    def work(self, context: Context, plan: Plan) -> int:
        config, tests = context.config, plan["test"]
        fractions = len(self.settings(context)["dropped_views"])
        dropped = fractions * total(tests, config.dropped_sequences)
        rolled = total(tests, config.rollout_sequences)
        asked = self._asked(context, plan)
        filtered = sum(count(group, limit) * len(fractions) for group, limit, fractions in asked)
        again = 2 * sum(count(group, limit) for group, limit, _ in asked)
        return len(context.runs) * (dropped + total(tests, config.sequences) + rolled + again) + filtered

    def _asked(self, context: Context, plan: Plan) -> list[tuple[Group, int, list[float]]]:
        """What the exact filter is asked: groups, how many sequences of each, and fractions of the views dropped."""
        limit = context.options.get("filter_sequences")
        if limit is None:
            limit = max(1, (context.config.rollout_sequences or 50) // 10)
        fewer = [fraction for fraction in self.settings(context)["dropped_views"] if fraction in FILTERED_FRACTIONS]
        return [
            (group, count(group, limit), [0.0, *(fewer if balls_of(group) <= MOST_FILTERED else ())])
            for group in plan["test"]
            if limit and ball_ceiling.can_filter(config_of(group.settings))
        ]

    def evaluate(self, context: Context, plan: Plan) -> BallResults:
        config, fractions = context.config, self.settings(context)["dropped_views"]
        groups = {self.split(group): group for group in plan["test"]}
        one_step, dropped, rolled = {}, {}, {}
        for split, group in groups.items():
            one_step[split] = self.one_step(context, [group], (0.0,), config.sequences)[0.0]
            dropped[split] = self.one_step(context, [group], fractions, config.dropped_sequences)
            if found := self._rolled(context, group):
                rolled[split] = found
        asked = self._asked(context, plan)
        seconds = 0.0
        for group, limit, own in asked:
            cost = partial(ball_ceiling.estimated_seconds, balls_of(group), steps=group["frames"].shape[1])
            seconds += limit * sum(cost(10 * (1 - fraction)) for fraction in own)
        if seconds > QUIET_SECONDS:
            warnings.warn(
                f"the exact filter, where its answers are not kept yet, takes about {seconds / 60:.0f} CPU-minutes; "
                "--filter-sequences says how many sequences it is asked for, 0 none",
                S2RMWarning,
                stacklevel=1,
            )
        attainable, attained = {}, {}

        def beside(found: Comparison, fraction: float) -> Comparison:
            return replace(found, references={**found.references, "filter": scores[fraction]})

        for group, limit, own in asked:
            split = self.split(group)
            span = spans(group["frames"].shape[1])
            told = {f: ball_ceiling.filtered(group, limit, f, span, context.progress) for f in own}
            scores = {f: ball_ceiling.filter_counts(group, one).scores() for f, one in told.items()}
            attainable[split] = beside(self.one_step(context, [group], (0.0,), limit)[0.0], 0.0)
            one_step[split] = beside(one_step[split], 0.0)
            dropped[split] |= {f: beside(dropped[split][f], f) for f in dropped[split] if f in scores}
            if split in rolled and (made := self._rolled(context, group, limit, told[0.0])):
                attained[split] = made
                references = {**rolled[split].references, "filter": made.references["filter"]}
                rolled[split] = replace(rolled[split], references=references)
            else:
                context.progress.advance(len(context.runs) * limit)
        return BallResults(
            filtered=max((limit for _, limit, _ in asked), default=0),
            attainable=attainable,
            attainable_rollouts=attained,
            probed=self._probed(context, plan),
            balls={split: balls_of(group) for split, group in groups.items()},
            sequences={split: count(group, config.sequences) for split, group in groups.items()},
            dropped_sequences={split: count(group, config.dropped_sequences) for split, group in groups.items()},
            one_step=one_step,
            dropped_views=dropped,
            rollouts=rolled,
        )

    def _probed(self, context: Context, plan: Plan) -> dict[str, dict[str, float]]:
        """Of runs whose states can be looked at, if there is a group of one ball with enough sequences."""
        found = [group for group in plan["test"] if balls_of(group) == 1]
        limit = count(found[0], context.config.sequences) if found else 0
        if limit < ball_probe.LEAST_SEQUENCES or not {"position", "velocity"} <= set(found[0].arrays):
            return {}
        probed = [run for run in context.runs if ball_probe.can_be_probed(run)]
        return {run.name: ball_probe.probe(run, found[0], limit, context.device) for run in probed}

    def _rolled(
        self, context: Context, group: Any, limit: int | None = None, ceiling: Sequence[ball_ceiling.Filtered] = ()
    ) -> RollOuts | None:
        """Of the runs that can be; the others' share of the work is done at once."""
        rolling = [run for run in context.runs if run.rolls_out]
        limit = limit or context.config.rollout_sequences
        context.progress.advance((len(context.runs) - len(rolling)) * count(group, limit))
        if not rolling or not spans(group["frames"].shape[1])[1]:
            return None
        device, progress = context.device, context.progress
        return roll_outs(group, rolling, limit=limit, shown=1, device=device, progress=progress, ceiling=ceiling)

    def tables(self, results: BallResults, entries: Sequence[Entry]) -> dict[str, list[Table]]:
        name, references = self.world.name, self.references
        trained_on = self._trained_on(entries)
        return {
            "one_step": ball_results.one_step_tables(results, entries, references, trained_on, name),
            "dropped_views": ball_results.dropped_view_tables(results, entries, references, name),
            "rollouts": ball_results.rollout_tables(results, entries, name),
            "attainable": ball_results.attainable_tables(results, entries, references, name),
            "probe": ball_probe.probe_tables(results.probed, entries, name),
        }

    def _trained_on(self, entries: Sequence[Entry]) -> int | None:
        """The number of balls, if it is the same for all runs that say so."""
        group = f"{self.world.name}/train"
        found = {run.facts.get(group, {}).get("balls") for entry in entries for run in entry.runs if run.facts}
        return found.pop() if len(found) == 1 else None

    def sections(self, results: BallResults, tables: Mapping[str, list[Table]], page: Page) -> list[Section]:
        one_step = Section(
            title="Bouncing balls: one step ahead",
            text="After the paper's figure 4: trained on one number of balls, tested on others. The paper prints "
            "no numbers for the balls, so none stand beside ours. The last seen canvas is all that the views have "
            "shown so far, drawn where it was last seen; the copy of the whole previous frame is more than any model "
            "but the oracle TTO is ever given.",
            tables=tables["one_step"],
        )
        rolled = [self._rollout_section(results, tables["rollouts"], page)] if results.rollouts else []
        told = [self._attainable_section(results, tables, page)] if tables["attainable"] or tables["probe"] else []
        figure = draw_tables(one_step.tables[:3], xlabel="balls", titles=list(SCORES.values())[:3])
        page.add_figure(one_step, f"{self.world.name}_one_step", figure)
        return [one_step, *rolled, *told, self._view_section(results, tables, page)]

    def _view_section(self, results: BallResults, tables: Mapping[str, list[Table]], page: Page) -> Section:
        section = Section(
            title="Bouncing balls: fewer views",
            text="After the paper's heat maps, figures 17 and 18: the same predictions with a share of the "
            "views left out. One colour scale for all panels of a figure.",
            tables=tables["dropped_views"],
            folded=True,
        )
        dropped = {results.balls[split]: by_fraction for split, by_fraction in results.dropped_views.items()}
        for score in ("f1", "balanced_accuracy", "f1_moving"):
            reference = self.learning.references["last_seen"]
            figure = ball_results.draw_heat_maps(dropped, page.entries, score, SCORES[score], reference)
            page.add_figure(section, f"{self.world.name}_views_{score}", figure)
        return section

    def _rollout_section(self, results: BallResults, tables: list[Table], page: Page) -> Section:
        first, name = next(iter(results.rollouts.values())), self.world.name
        section = Section(
            title="Bouncing balls: roll-outs",
            text=f"After the paper's figure 3: {first.prompt_steps} frames are shown through crops, then each "
            f"model is fed its own predictions, thresholded at 0.5, for {first.horizon} steps. Pictures are stitched "
            "from crops that touch one another and cover all but a margin of the arena (44 of 48 pixels). The oracle "
            "TTO reads the frame it predicts and so cannot be rolled out.",
            tables=tables,
            folded=True,
        )
        by_balls = {results.balls[split]: rolled for split, rolled in results.rollouts.items()}
        for score, (label, caption) in _HORIZONS.items():
            figure = ball_results.draw_horizons(by_balls, page.entries, score, label)
            page.add_figure(section, f"{name}_rollout_{score}", figure, caption)
        for split, rolled in results.rollouts.items():
            heading = f"{number_of(results.balls[split])}, sequence 0 of {split}"
            page.add_figure(section, f"{name}_rollout_{split}", ball_results.draw_strip(rolled, page.drawn, heading))
            animation = ball_results.rollout_animation(rolled, page.drawn)
            caption = f"{heading}, rolled out, every step; {ball_results.KEY}"
            page.add_animation(section, split, animation, GIF_MILLISECONDS, caption)
            if section.lead is None or results.balls[split] == self._trained_on(page.entries):
                section.lead = section.figures[-1]
        return section

    def _attainable_section(self, results: BallResults, tables: Mapping[str, list[Table]], page: Page) -> Section:
        section = Section(
            title="Bouncing balls: what is attainable",
            text="The exact filter sees the crops that the models see, and knows what no model is told: the laws of "
            "motion, the radius, the box and its fixed ball, the range of the speeds, and how many balls there are. It "
            f"is asked for few sequences of each test set ({results.filtered}); models are scored on them. The exact "
            "simulator from true states with noise says what can be rolled out from a state known so well. What a "
            "model's own state knows is read off it by regression.",
            tables=[*tables["attainable"], *tables["probe"]],
            folded=True,
        )
        if by_balls := {results.balls[split]: found for split, found in results.attainable_rollouts.items()}:
            figure = ball_results.draw_horizons(by_balls, page.entries, "f1", "F1")
            page.add_figure(section, f"{self.world.name}_attainable", figure)
        return section

    def arena_note(self, store: Store) -> tuple[str, Callable[[Any], None] | None]:
        if (path := next((path for path in store.groups if path.startswith(f"{self.world.name}/")), None)) is None:
            return "", None
        config = config_of(store[path].settings)
        standing = config.discs[:1] if isinstance(config, BallsConfig) else config.fixed

        def circle(axes: Any) -> None:
            from matplotlib.patches import Circle

            for x, y, radius in standing:
                axes.add_patch(Circle((x, y), radius, fill=False, ec="white", lw=0.8, ls="--"))

        return f"White dashes: the fixed ball{'' if len(standing) == 1 else 's'}.", circle
