"""Worlds: each is one folder in `generators/` (or a plug-in) and exports one `World` under the name WORLD.

A world holds everything that is special about one kind of data; the stages (making, inspection, loading, models,
training, evaluation, the command line) ask it and know none by name. To import a world is cheap: what needs numpy,
matplotlib or torch is imported by the methods below, when a stage asks for it.

To add a world, write a subclass of `World` and one of `s2rm_data.learning.Learning`; the rest has defaults. The
smallest complete example is tests/tiny_world.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from s2rm_data.errors import UsageError, did_you_mean
from s2rm_data.options import Option
from s2rm_data.registry import WORLDS
from s2rm_data.schema import SplitSource

if TYPE_CHECKING:
    from s2rm_data.evaluation.world import WorldEvaluation
    from s2rm_data.inspection.world import Inspection
    from s2rm_data.learning import Learning


@dataclass(frozen=True, kw_only=True)
class Making:
    """What a command is to make: its splits, how many sequences go into a shard, and what the user should be told.

    `shard_size` None is the store's own default. `opened` is entered while the splits are made and gives those that do
    the work; a world that needs a program to run meanwhile (a game) starts and stops it there. By default it gives
    `splits` themselves.
    """

    splits: Sequence[SplitSource]
    shard_size: int | None = None
    notes: tuple[str, ...] = ()
    opened: Callable[[], AbstractContextManager[Sequence[SplitSource]]] | None = None

    def open(self) -> AbstractContextManager[Sequence[SplitSource]]:
        return self.opened() if self.opened else contextlib.nullcontext(self.splits)


class World(ABC):
    """`name` is the command, the first part of every group's path, and `generator` in a group's settings.

    `unit` is what a sequence is called in the plural. `help` is the text of `s2rm-data NAME --help`; a line of `\\b`
    keeps the lines after it as they are. The options of `options` come before those that all worlds share;
    `evaluation_options` are those that the world adds to `s2rm-eval`, `training_options` those that it adds to
    `s2rm-train` to choose groups.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    help: ClassVar[str]
    unit: ClassVar[str] = "sequences"
    options: ClassVar[tuple[Option, ...]] = ()
    evaluation_options: ClassVar[tuple[Option, ...]] = ()
    training_options: ClassVar[tuple[Option, ...]] = ()

    @abstractmethod
    def plan(self, **options: Any) -> Making:
        """The splits that the options (all of them, and `seed`) ask for. Raises `UsageError` for what cannot be."""

    def prepare(self, given: Mapping[str, Any]) -> Making:
        """`plan` of what a user gave, checked and with the defaults of all else."""
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in {*known, "seed"}:
                names = [*known, "seed"]
                it_has = f"it has {', '.join(names)}"
                raise UsageError(f"{self.name} has no option {name!r}{did_you_mean(name, names, it_has)}")
        values = {
            name: option.value(given[name] if given.get(name) is not None else option.default)
            for name, option in known.items()
        }
        return self.plan(**values, seed=given.get("seed", 0))

    def split_from(self, settings: dict[str, Any], count: int) -> SplitSource | None:
        """The split with these stored settings, to make parts of it again; None if that cannot be done."""
        return None

    def listing(self) -> str:
        """What `s2rm-data NAME --list` prints; empty if there is nothing to list."""
        return ""

    def choose_groups(self, paths: Sequence[str], options: Mapping[str, Any]) -> Sequence[str]:
        """Those of a store's groups that a run with these training options, which were all given, learns from."""
        return paths

    @abstractmethod
    def learning(self) -> Learning:
        """How stored arrays become batches, predictions, losses and scores. May import torch."""

    def inspection(self) -> Inspection | None:
        """Pictures and statistics, without torch; None for those that fit any arrays."""
        return None

    def evaluation(self) -> WorldEvaluation | None:
        """Figures, tables and sections of a report; None for one-step scores of every test split."""
        return None


def world_of(group: Any) -> World:
    """The world that a group of a store belongs to."""
    name = str(group.settings["generator"])
    if name not in WORLDS.names():
        raise UsageError(
            f"{group.path} was made by {name!r}, a world that is not installed here (there are "
            f"{', '.join(WORLDS.names())}); install its package, or name its module with --plugin"
        )
    world: World = WORLDS.load(name)
    return world
