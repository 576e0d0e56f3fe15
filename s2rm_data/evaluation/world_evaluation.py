"""What evaluation asks of a world, answered for any world: scores one step ahead on every test group.

A world overrides what it does beyond that: other groups, dropped views, roll-outs, figures, the paper's numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import torch

from s2rm_data.core.errors import UsageError
from s2rm_data.core.progress import Progress
from s2rm_data.evaluation.blocks import Encoded, Piece, count, pieces
from s2rm_data.evaluation.candidates import Entry
from s2rm_data.evaluation.curves import draw_tables
from s2rm_data.evaluation.report import Page, Section
from s2rm_data.evaluation.reproduction import Reproduction
from s2rm_data.evaluation.runs import Run, view_of
from s2rm_data.evaluation.tables import Comparison, Reference, Table, compare
from s2rm_data.inspection.scene import Addition, Palette, Picture, Pictures
from s2rm_data.learning import groups_of
from s2rm_data.making.world import World
from s2rm_data.models import WorldModel
from s2rm_data.store import Group, Store

if TYPE_CHECKING:
    from s2rm_data.evaluation.evaluate import EvalConfig

Plan = Mapping[str, Sequence[Group]]  # groups by what they are for


@dataclass(frozen=True, kw_only=True)
class Context:
    """What is evaluated, on what and how; `options` are all of the world's own, checked."""

    store: Store
    runs: Sequence[Run]
    config: EvalConfig
    options: Mapping[str, Any]
    device: torch.device
    progress: Progress

    @property
    def view(self) -> dict[str, Any]:
        return view_of(self.runs)


class WorldResults(Protocol):
    """What a world has measured."""

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class OneStepResults:
    """Scores one step ahead by split, which is a group's path without the world."""

    sequences: Mapping[str, int]
    one_step: Mapping[str, Comparison]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class WorldEvaluation:
    """Of any world. `dropped_views`: fractions of the views that are left out, one after the other. `image_words`,
    `arena_words`: what messages call an image and an arena. `position_unit`: of positions in figures; `y_down`: rows of
    the arena are drawn downwards. `paper_note`: what the paper says of this world. `reproduction`: its part of
    `s2rm-reproduce`, None for no part. `shows_roll_outs`: `foresee` can be asked with a start."""

    dropped_views: ClassVar[tuple[float, ...]] = tuple(round(0.1 * n, 1) for n in range(10))
    image_words: ClassVar[str] = "images of (height, width)"
    arena_words: ClassVar[str] = "arenas of (width, height)"
    position_unit: ClassVar[str] = ""
    y_down: ClassVar[bool] = False
    paper_note: ClassVar[str] = ""
    reproduction: ClassVar[Reproduction | None] = None
    shows_roll_outs: ClassVar[bool] = False

    def __init__(self, world: World) -> None:
        self.world, self.learning = world, world.learning()

    @property
    def references(self) -> Mapping[str, Reference]:
        """By name: those of training, from below, and what a world adds from above."""
        return {
            name: Reference(title=title, share=0.0 if name == "copy_previous" else None)
            for name, title in self.learning.references.items()
        }

    # -- what to do

    def settings(self, context: Context) -> dict[str, Any]:
        """Fields of results.json that say how this world was evaluated."""
        return dict(context.options)

    def plan(self, context: Context) -> Plan:
        """The groups needed, checked against the models: those whose split begins with `test`, else `val`."""
        paths = [path for path in context.store.groups if path.startswith(f"{self.world.name}/")]
        tests = [path for path in paths if path.rsplit("/", 1)[-1].startswith("test")]
        chosen = tests or groups_of(context.store, self.world.name, "val")
        return self.checked(context.runs, {"test": [context.store[path] for path in chosen]})

    def checked(self, runs: Sequence[Run], plan: Plan) -> Plan:
        """The plan, if every model fits every group of it."""
        for group in (group for groups in plan.values() for group in groups):
            source = self.learning.open([group], limit=1, **view_of(runs))
            for run in (run for run in runs if isinstance(run.model, WorldModel)):
                for words, size in ((self.image_words, "image_size"), (self.arena_words, "arena_size")):
                    expected, found = (tuple(getattr(of, size)) for of in (run.model.config, source))
                    if expected != found:
                        raise UsageError(
                            f"{run.path} was trained on {words} {expected}, but {group.path} has {found}; evaluate it "
                            "on a store made with the same options"
                        )
        return plan

    def work(self, context: Context, plan: Plan) -> int:
        """Predicted sequences in all, by which `evaluate` will advance the progress."""
        return len(context.runs) * total(plan["test"], context.config.sequences)

    # -- measuring

    def evaluate(self, context: Context, plan: Plan) -> WorldResults:
        limit = context.config.sequences
        groups = {self.split(group): group for group in plan["test"]}
        one_step = {split: self.one_step(context, [group], (0.0,), limit)[0.0] for split, group in groups.items()}
        return OneStepResults(one_step=one_step, sequences={s: count(group, limit) for s, group in groups.items()})

    def split(self, group: Group) -> str:
        return group.path.removeprefix(f"{self.world.name}/")

    def one_step(
        self, context: Context, groups: Sequence[Group], fractions: Sequence[float], limit: int | None
    ) -> dict[float, Comparison]:
        """Scores one step ahead with each fraction of the views dropped, pooled over the groups. `limit` is of each
        group. The progress is advanced by sequences, runs and fractions."""
        counts: dict[tuple[float | str, ...], Any] = {}  # by fraction and name

        def add(*key: float | str, added: Any) -> None:
            counts[key] = counts[key].plus(added) if key in counts else added

        with torch.inference_mode():
            blocks = (pieces(group, limit=limit, device=context.device, view=context.view) for group in groups)
            for piece in itertools.chain.from_iterable(blocks):
                for fraction in fractions:
                    for name, found in self.reference_counts(piece, fraction).items():
                        add(fraction, name, added=found)
                for run in context.runs:
                    own = Encoded(run.model, piece.batch) if isinstance(run.model, WorldModel) else run
                    for fraction in fractions:
                        prediction = own.predict(piece.dropped(fraction))
                        add(fraction, run.name, added=self.learning.count(piece.source, prediction, piece.batch))
                        context.progress.advance(len(piece.requests))
        found = {}
        for f in fractions:
            known = [name for name in self.learning.references if (f, name) in counts]
            references = {name: self.reference_scores(counts[f, name]) for name in known}
            runs = {run.name: counts[f, run.name].scores() for run in context.runs}
            found[f] = Comparison(runs=runs, references=references)
        return found

    def reference_counts(self, piece: Piece, fraction: float) -> dict[str, Any]:
        """Counts of every reference, by name, when this fraction of the views is dropped."""
        return self.learning.reference_counts(piece.source, piece.dropped_request(fraction))

    def reference_scores(self, counts: Any) -> dict[str, float]:
        return self.learning.reference_scores(counts)

    # -- showing

    def tables(self, results: Any, entries: Sequence[Entry]) -> dict[str, list[Table]]:
        """By what they show. Of any world: one per score, test groups as columns."""
        found: OneStepResults = results
        tables = [
            Table(
                name=f"{self.world.name}_one_step_{score}",
                title=f"{title} one step ahead, by group",
                caption=f"Pooled over all sequences ({', '.join(map(str, found.sequences.values()))}), steps and "
                "queries; all views given.",
                corner="group",
                columns=tuple(found.one_step),
                rows=compare(entries, {split: c.column(score) for split, c in found.one_step.items()}, self.references),
                world=self.world.name,
                short=("one_step",) if number == 0 else (),
            )
            for number, (score, title) in enumerate(self.learning.scores.items())
        ]
        return {"one_step": tables}

    def sections(self, results: Any, tables: Mapping[str, list[Table]], page: Page) -> list[Section]:
        """Of the report; `page` saves figures and animations."""
        one_step, titles = tables["one_step"], list(self.learning.scores.values())
        section = Section(
            title=f"{self.world.title}: one step ahead",
            text="Predictions of the next frame from all views so far, beside references that need no model.",
            tables=one_step,
        )
        figure = draw_tables(one_step, xlabel="group", titles=titles, columns=min(3, len(one_step)))
        page.add_figure(section, f"{self.world.name}_one_step", figure)
        return [section]

    def foresee(self, run: Run, piece: Piece, *, start: int, dropped: float) -> Any:
        """What the viewer shows of one sequence that a run predicts, without a share of its views: one step ahead, or,
        with a `start`, rolled out from that frame on. Of any world: the images that training shows."""
        request = piece.dropped_request(dropped)
        return self.learning.pictures(run.model, piece.source, request, piece.batch.view_mask.shape[1])

    def shown(self, group: Group, piece: Piece, result: Any, *, index: int, start: int) -> Addition:
        """A result of `foresee` beside its scene; `index` is the thing that the user has selected."""
        rows, columns = result
        if not columns:
            return Addition(note="This world has no pictures of its predictions.")
        shown: dict[str, Any] = {"divisor": 255, "palette": Palette(colours=("#141414", "#ffffff"))}
        shown["first"] = piece.batch.view_mask.shape[1] - len(columns)
        pictures = []
        for title, images in rows.items():
            values = np.clip(np.stack([np.asarray(image, np.float32) for image in images]), 0, 1)
            pictures.append(Picture(title=title, values=np.rint(255 * values).astype(np.uint8), **shown))
        return Addition(panels=(Pictures(title="one step ahead", pictures=pictures),))

    def arena_note(self, store: Store) -> tuple[str, Callable[[Any], None] | None]:
        """Something to mark on every map of the arena: a sentence about it, and what draws it on matplotlib's axes."""
        return "", None


def evaluation_of(world: World) -> WorldEvaluation:
    return world.evaluation() or WorldEvaluation(world)


def total(groups: Sequence[Group], limit: int | None) -> int:
    """How many sequences of the groups are looked at, `limit` of each."""
    return sum(count(group, limit) for group in groups)
