"""A whole evaluation: what is measured in every world that the runs are of, as typed results and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Annotated, Any

import torch

import s2rm_data
from s2rm_data.config import at_least, check_fields
from s2rm_data.errors import UsageError, did_you_mean
from s2rm_data.evaluation.enclaves import Enclaves, enclave_table, enclaves_of
from s2rm_data.evaluation.entrants import Entrant, as_runs, entries_of, evaluating
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.tables import Table, Tables
from s2rm_data.evaluation.world import Context, WorldEvaluation, WorldResults, evaluation_of
from s2rm_data.models.device import choose_device
from s2rm_data.progress import Progress
from s2rm_data.registry import WORLDS
from s2rm_data.store import Store

FORMAT = "s2rm-data results 2"


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """Sequences of each group that are looked at; None is all of them.

    `sequences`: for the scores with all views. `dropped_sequences`: for those with views dropped, which cost as much
    again for every fraction. `rollout_sequences`: for roll-outs. `dropped_views`: the fractions of the views that are
    left out; None for the world's own. `options`: those that worlds add, by name.
    """

    sequences: Annotated[int, at_least(1)] | None = None
    dropped_sequences: Annotated[int, at_least(1)] | None = 50
    rollout_sequences: Annotated[int, at_least(1)] | None = 50
    dropped_views: tuple[float, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def of(cls, *, quick: bool = False, **given: Any) -> EvalConfig:
        """Fields of this class and options of worlds, by name; `quick` is a first look, about a minute per model."""
        own = {name: value for name, value in given.items() if name in {f.name for f in fields(cls)}}
        options = {name: value for name, value in given.items() if name not in own}
        small = {"sequences": 20, "dropped_sequences": 5, "rollout_sequences": 5, "dropped_views": (0.0, 0.2, 0.5, 0.8)}
        return cls(**{**(small if quick else {}), **own, "options": {**own.get("options", {}), **options}})


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """`worlds` are the results, by world; `settings` how they were made; `enclaves` by run."""

    runs: Sequence[Run]
    store: Store
    config: EvalConfig
    settings: Mapping[str, Any]
    worlds: Mapping[str, WorldResults]
    enclaves: Mapping[str, Enclaves]

    @cached_property
    def tables(self) -> Tables:
        """Every table, by name; the main ones also by short names such as `one_step`."""
        of_worlds = [table for found in self.world_tables.values() for own in found.values() for table in own]
        enclaves = enclave_table(self.enclaves, self.runs)
        return Tables([*of_worlds, *([enclaves] if enclaves else [])])

    @cached_property
    def world_tables(self) -> dict[str, dict[str, list[Table]]]:
        return {
            name: self.evaluation_of(name).tables(results, entries_of(self.runs_of(name)))
            for name, results in self.worlds.items()
        }

    def evaluation_of(self, world: str) -> WorldEvaluation:
        return evaluation_of(WORLDS.load(world))

    def runs_of(self, world: str) -> list[Run]:
        return [run for run in self.runs if run.world == world]

    @cached_property
    def results(self) -> dict[str, Any]:
        """Every number as JSON: what results.json holds."""
        counts = ("sequences", "dropped_sequences", "rollout_sequences")
        return {
            "format": FORMAT,
            "package": f"s2rm-data {s2rm_data.__version__}",
            "store": str(self.store.path),
            "config": {**{name: getattr(self.config, name) for name in counts}, **self.settings},
            "runs": {run.name: run.to_json() for run in self.runs},
            **{name: found.to_json() for name, found in self.worlds.items()},
            "enclaves": {name: found.to_json() for name, found in self.enclaves.items()},
        }

    def _repr_html_(self) -> str:
        return self.tables._repr_html_()


def evaluate(
    entrants: Iterable[Entrant],
    store: Store,
    config: EvalConfig | None = None,
    *,
    device: torch.device | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate run folders, `Run`s and `OwnModel`s on a store, each in its own world."""
    config, device, progress = config or EvalConfig(), device or choose_device(None), progress or Progress()
    runs = as_runs(entrants, device)
    worlds = {run.world: evaluation_of(WORLDS.load(run.world)) for run in runs}
    _check_options(worlds, config.options)
    contexts = {
        name: Context(
            store=store,
            runs=[run for run in runs if run.world == name],
            config=config,
            options={o.name: o.value(config.options.get(o.name, o.default)) for o in world.world.evaluation_options},
            device=device,
            progress=progress,
        )
        for name, world in worlds.items()
    }
    plans = {name: world.plan(contexts[name]) for name, world in worlds.items()}
    progress.start(sum(world.work(contexts[name], plans[name]) for name, world in worlds.items()), 0)
    with evaluating(runs):
        results = {name: world.evaluate(contexts[name], plans[name]) for name, world in worlds.items()}
        enclaves = enclaves_of(runs)
    settings = {key: value for name, world in worlds.items() for key, value in world.settings(contexts[name]).items()}
    return Evaluation(runs=runs, store=store, config=config, settings=settings, worlds=results, enclaves=enclaves)


def _check_options(worlds: Mapping[str, WorldEvaluation], given: Mapping[str, Any]) -> None:
    known = [option.name for world in worlds.values() for option in world.world.evaluation_options]
    for name in given:
        if name not in known:
            it_has = f"of its own it has {', '.join(known) or 'none'}"
            raise UsageError(
                f"the evaluation of {' and '.join(worlds)} has no option {name!r}{did_you_mean(name, known, it_has)}"
            )
