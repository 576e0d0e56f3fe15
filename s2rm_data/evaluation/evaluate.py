"""A whole evaluation: what is measured in every world that the runs are of, as typed results, as tables and as files.

docs/evaluation.md lists the files."""

from __future__ import annotations

import datetime
import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import torch

import s2rm_data
from s2rm_data.core.check import at_least, check_fields
from s2rm_data.core.errors import ConflictError, DiskError, UsageError, did_you_mean
from s2rm_data.core.progress import Progress
from s2rm_data.core.registry import WORLDS
from s2rm_data.core.signals import program_name
from s2rm_data.core.write import PARTIAL, check_replaceable, make_folder, replaced_folder, write_whole
from s2rm_data.evaluation.candidates import Candidate, as_runs, entries_of, evaluating, first_of_each
from s2rm_data.evaluation.curves import learning_curve_section
from s2rm_data.evaluation.enclaves import Enclaves, enclave_section, enclave_table, enclaves_of
from s2rm_data.evaluation.report import Page, Section, page
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.tables import Table, Tables, gains
from s2rm_data.evaluation.world_evaluation import Context, WorldEvaluation, WorldResults, evaluation_of
from s2rm_data.models.device import choose_device
from s2rm_data.store import Store

FORMAT = "s2rm-data results 2"


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """Sequences of each group that are looked at; None is all of them. `sequences`: for the scores with all views.
    `dropped_sequences`: for those with views dropped, which cost as much again for every fraction. `rollout_sequences`:
    for roll-outs. `dropped_views`: the fractions of the views that are left out; None for the world's own. `options`:
    those that worlds add, by name. `quick`: it was to be a first look."""

    sequences: Annotated[int, at_least(1)] | None = None
    dropped_sequences: Annotated[int, at_least(1)] | None = 50
    rollout_sequences: Annotated[int, at_least(1)] | None = 50
    dropped_views: tuple[float, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def of(cls, *, quick: bool = False, **given: Any) -> EvalConfig:
        """Fields of this class and options of worlds, by name; `quick` is a first look, about a minute per model."""
        own = {name: given.pop(name) for name in [f.name for f in fields(cls)] if name in given}
        small = {"sequences": 20, "dropped_sequences": 5, "rollout_sequences": 5, "dropped_views": (0.0, 0.2, 0.5, 0.8)}
        options = {**own.pop("options", {}), **given}
        return cls(**{**(small if quick else {}), **own}, options=options, quick=quick)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """`worlds` are the results, by world; `settings` how they were made; `enclaves` by run."""

    runs: Sequence[Run]
    store: Store
    config: EvalConfig
    settings: Mapping[str, Any]
    worlds: Mapping[str, WorldResults]
    enclaves: Mapping[str, Enclaves]
    digests: Mapping[str, str] = field(default_factory=dict)  # of the content of the groups scored, by path

    @cached_property
    def tables(self) -> Tables:
        """Every table, by name; the main ones also by short names such as `one_step`."""
        of_worlds = [table for found in self.world_tables.values() for own in found.values() for table in own]
        enclaves = enclave_table(self.enclaves, self.runs)
        return Tables([*of_worlds, *([enclaves] if enclaves else [])])

    @cached_property
    def world_tables(self) -> dict[str, dict[str, list[Table]]]:
        found = {}
        for name, results in self.worlds.items():
            own = self.evaluation_of(name).tables(results, entries_of(self.runs_of(name)))
            found[name] = {**own, "gains": gains(sum(own.values(), list[Table]()))}
        return found

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
            "digests": dict(self.digests),
            "config": {**{name: getattr(self.config, name) for name in counts}, **self.settings},
            "runs": {run.name: run.to_json() for run in self.runs},
            **{name: found.to_json() for name, found in self.worlds.items()},
            "enclaves": {name: found.to_json() for name, found in self.enclaves.items()},
        }

    def _repr_html_(self) -> str:
        return self.tables._repr_html_()


def evaluate(
    candidates: Iterable[Candidate],
    store: Store,
    config: EvalConfig | None = None,
    *,
    device: torch.device | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate run folders, `Run`s and `OwnModel`s on a store, each in its own world."""
    config, device, progress = config or EvalConfig(), device or choose_device(None), progress or Progress()
    runs = as_runs(candidates, device)
    worlds = {run.world: evaluation_of(WORLDS.load(run.world)) for run in runs}
    known = [option.name for world in worlds.values() for option in world.world.evaluation_options]
    for name in (name for name in config.options if name not in known):
        others = did_you_mean(name, known, f"of its own it has {', '.join(known) or 'none'}")
        raise UsageError(f"the evaluation of {' and '.join(worlds)} has no option {name!r}{others}")
    contexts = {}
    for name, world in worlds.items():
        own = [run for run in runs if run.world == name]
        asked = {o.name: o.value(config.options.get(o.name, o.default)) for o in world.world.evaluation_options}
        contexts[name] = Context(store=store, runs=own, config=config, options=asked, device=device, progress=progress)
    plans = {name: world.plan(contexts[name]) for name, world in worlds.items()}
    progress.start(sum(world.work(contexts[name], plans[name]) for name, world in worlds.items()), 0)
    with evaluating(runs):
        results = {name: world.evaluate(contexts[name], plans[name]) for name, world in worlds.items()}
        enclaves = enclaves_of(runs)
    settings = {key: value for name, world in worlds.items() for key, value in world.settings(contexts[name]).items()}
    scored = {group.path: group for plan in plans.values() for groups in plan.values() for group in groups}
    digests = {path: scored[path].content_digest() for path in sorted(scored)}
    return Evaluation(
        runs=runs, store=store, config=config, settings=settings, worlds=results, enclaves=enclaves, digests=digests
    )


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Before hours of work: can the results be written, and is nothing in the way?"""
    folder = folder.resolve()
    if folder.exists() and not folder.is_dir():
        raise ConflictError(f"{folder} is a file; give --out another name")
    if (folder / "results.json").exists() and not overwrite:
        raise ConflictError(f"{folder} holds the results of another evaluation; add --overwrite, or give another --out")
    check_replaceable(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        probe = folder.with_name(f"{folder.name}.probe{PARTIAL}")
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise DiskError(f"cannot write to {folder}: {error.strerror or error}; choose another --out") from None


def write_artefacts(made: Evaluation, folder: Path) -> None:
    """Replace an earlier evaluation in the folder, at once; results of two are never mixed."""
    make_folder(folder.resolve().parent)
    with replaced_folder(folder.resolve()) as partial:
        make_folder(partial / "tables")
        for table in made.tables.values():
            write_whole(partial / "tables" / f"{table.name}.csv", [_text_bytes(table.to_csv())])
        markdown = "\n".join(table.to_markdown() for table in made.tables.values())
        write_whole(partial / "tables.md", [_text_bytes(markdown)])
        write_whole(partial / "report.html", [_text_bytes(page(made.runs, _sections(made, partial), **_facts(made)))])
        write_whole(partial / "results.json", [(json.dumps(made.results, indent=1) + "\n").encode()])


def _facts(made: Evaluation) -> dict[str, Any]:
    """What the report says of how it was made: the command as it was typed, where one was."""
    config, typed = made.config, program_name() == "s2rm-eval"
    counts = f"{config.sequences} sequences of each group at most, {config.dropped_sequences} with views dropped"
    return {
        **{name: made.results[name] for name in ("package", "store", "digests")},
        "date": f"{datetime.datetime.now():%Y-%m-%d %H:%M}",
        "command": shlex.join([program_name(), *sys.argv[1:]]) if typed else "s2.evaluate, in Python",
        "quick": f"{counts}, {config.rollout_sequences} rolled out" if config.quick else "",
        "notes": [note for name in made.worlds if (note := made.evaluation_of(name).paper_note)],
    }


def _text_bytes(text: str) -> bytes:
    """In UTF-8; names of files, which can be any bytes, are shown as they would be in a message."""
    return text.encode(errors="backslashreplace")


def _sections(made: Evaluation, folder: Path) -> list[Section]:
    def page_of(world: str) -> Page:
        runs = made.runs_of(world)
        return Page(folder=folder, store=made.store, entries=entries_of(runs), drawn=first_of_each(runs))

    sections = []
    for name, results in made.worlds.items():
        world, own = made.evaluation_of(name), page_of(name)
        sections += world.sections(results, made.world_tables[name], own)
        if added := made.world_tables[name]["gains"]:
            text = "What each model adds to one that sees the same views and remembers nothing: the rest is reading."
            title = f"{world.world.title}: gain over no memory"
            sections.append(Section(title=title, text=text, tables=added, folded=True))
        if curves := learning_curve_section(own.entries, world.learning, name, own):
            sections.append(curves)
    if made.enclaves:
        worlds = {name: made.evaluation_of(name) for name in made.worlds}
        first = page_of(next(iter(worlds)))
        sections.append(enclave_section(made.enclaves, made.runs, worlds, made.tables["enclaves"], first))
    return sections
