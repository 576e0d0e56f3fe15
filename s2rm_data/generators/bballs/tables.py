"""Results of the ball models, and their tables: one step ahead, with fewer views, and rolled out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from s2rm_data.evaluation.entrants import Entry
from s2rm_data.evaluation.tables import Column, Comparison, Table, compare
from s2rm_data.generators.bballs.figures import number_of
from s2rm_data.generators.bballs.rollouts import REFERENCES as HELD
from s2rm_data.generators.bballs.rollouts import RollOuts

SCORES = {
    "f1": "F1",
    "balanced_accuracy": "Balanced accuracy",
    "f1_moving": "F1 without the fixed ball",
    "balanced_accuracy_moving": "Balanced accuracy without the fixed ball",
}
_SHOWN_STEPS = (1, 5, 10, 15, 20, 25)  # of a roll-out, and its last


@dataclass(frozen=True, kw_only=True)
class BallResults:
    """All by split (`test_3`); `dropped_views` also by the fraction left out.

    `balls`: how many there are. `sequences`, `dropped_sequences`: how many were looked at.
    """

    balls: Mapping[str, int]
    sequences: Mapping[str, int]
    dropped_sequences: Mapping[str, int]
    one_step: Mapping[str, Comparison]
    dropped_views: Mapping[str, Mapping[float, Comparison]]
    rollouts: Mapping[str, RollOuts]

    def to_json(self) -> dict[str, Any]:
        return {
            "one_step": {split: found.to_json() for split, found in self.one_step.items()},
            "dropped_views": {
                split: {f"{fraction:g}": found.to_json() for fraction, found in by_fraction.items()}
                for split, by_fraction in self.dropped_views.items()
            },
            "rollouts": {split: found.to_json() for split, found in self.rollouts.items()},
            "balls": dict(self.balls),
            "sequences": dict(self.sequences),
        }


def one_step_tables(
    results: BallResults, entries: Sequence[Entry], references: Mapping[str, str], trained_on: int | None, world: str
) -> list[Table]:
    """Scores by number of balls, one table per score."""
    splits = {str(results.balls[split]): found for split, found in results.one_step.items()}
    count = next(iter(results.sequences.values()))
    return [
        Table(
            name=f"{world}_one_step_{score}",
            title=f"{title} one step ahead, by number of balls",
            caption=f"Pooled over {count} sequences per number of balls, all steps, queries and pixels; all views "
            "given.",
            corner="balls",
            columns=tuple(splits),
            rows=compare(entries, {balls: found.column(score) for balls, found in splits.items()}, references),
            in_distribution=(str(trained_on),) if str(trained_on) in splits else (),
            world=world,
            short=("one_step",) if score == "f1" else (),
        )
        for score, title in SCORES.items()
    ]


def dropped_view_tables(
    results: BallResults, entries: Sequence[Entry], references: Mapping[str, str], world: str
) -> list[Table]:
    """F1 by share of the views, one table per number of balls."""
    tables = []
    for split, by_fraction in results.dropped_views.items():
        columns = {f"{100 * (1 - fraction):.0f}%": found.column("f1") for fraction, found in by_fraction.items()}
        tables.append(
            Table(
                name=f"{world}_views_f1_{split}",
                title=f"F1 by share of the views that is left: {number_of(results.balls[split])}",
                caption=f"The first {results.dropped_sequences[split]} sequences; an exact share of the views of every "
                "frame.",
                corner="views left",
                columns=tuple(columns),
                rows=compare(entries, columns, references),
                world=world,
            )
        )
    return tables


def rollout_tables(results: BallResults, entries: Sequence[Entry], world: str) -> list[Table]:
    """F1 at some steps of the horizon, one table per number of balls."""
    rolling = [entry for entry in entries if entry.runs[0].rolls_out]
    tables = []
    for split, rolled in results.rollouts.items():
        steps = [step for step in sorted({*_SHOWN_STEPS, rolled.horizon}) if step <= rolled.horizon]
        columns = {str(step): _at(rolled, step) for step in steps}
        tables.append(
            Table(
                name=f"{world}_rollout_f1_{split}",
                title=f"F1 of roll-outs by steps fed back: {number_of(results.balls[split])}",
                caption=f"{rolled.sequences} sequences, {rolled.prompt_steps} prompt steps; stitched pictures.",
                corner="step of the roll-out",
                columns=tuple(columns),
                rows=compare(rolling, columns, HELD),
                world=world,
            )
        )
    return tables


def _at(rolled: RollOuts, step: int) -> Column:
    """F1 at a step, counted from 1."""
    return Column(
        runs={name: horizon.f1[step - 1] for name, horizon in rolled.runs.items()},
        references={name: horizon.f1[step - 1] for name, horizon in rolled.references.items()},
    )
