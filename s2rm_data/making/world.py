"""Worlds: each is one folder in `generators/` (or a plug-in) and exports one `World` under the name WORLD.

A world holds everything that is special about one kind of data; the stages ask it and know none by name. To import a
world is cheap: what needs numpy, matplotlib or torch is imported by the methods below, when a stage asks for it.

To add a world, write a subclass of `World` and one of `Learning` (learning/world_learning.py); the rest has defaults.
The smallest complete example is tests/support/tiny_world."""

from __future__ import annotations

import contextlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from s2rm_data.core.check import number, shown
from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.core.registry import WORLDS
from s2rm_data.core.schema import SplitSource

if TYPE_CHECKING:
    from s2rm_data.evaluation.world_evaluation import WorldEvaluation
    from s2rm_data.inspection.world_inspection import Inspection
    from s2rm_data.learning.world_learning import Learning

Parser = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option of a world: one declaration serves the command line, the shell's completion and Python keywords alike.

    `name` is the Python keyword; on the command line it is spelled `--name`, with dashes. `parse` is a check such as
    `whole(0)`, or a function: it takes what a user gave, as text or as a Python value, and returns the value or raises
    a `UsageError` that says what is allowed. `default` None means that the option was not given; `shown` then says in
    words what happens. `many`: it may be repeated or hold a list separated by commas. `choices` are names that the
    shell completes."""

    name: str
    help: str
    parse: Parser = str
    default: Any = None
    shown: str = ""
    metavar: str = ""
    many: bool = False
    choices: Callable[[], Sequence[str]] | None = None

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    def value(self, given: Any) -> Any:
        """What was given, checked; the message of a `UsageError` begins with the option's name."""
        if given is None:
            return None
        try:
            if not self.many:
                return self.parse(given)
            parts = given.split(",") if isinstance(given, str) else [p for part in given for p in str(part).split(",")]
            return tuple(self.parse(part.strip()) for part in parts)
        except UsageError as error:
            raise UsageError(f"{self.name} is {shown(given)}: {error}") from None


def whole_numbers(given: Any, least: int = 1) -> tuple[int, ...]:
    """`3`, `1-6` or `1,3-5` (or such numbers in a list) as a sorted tuple of distinct whole numbers from `least`."""
    if isinstance(given, Iterable) and not isinstance(given, str):
        return tuple(sorted({number for part in given for number in whole_numbers(str(part), least)}))
    numbers: set[int] = set()
    for part in str(given).split(","):
        match = re.fullmatch(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?", part)
        if not match:
            raise UsageError("it is not a set of numbers; write 3, 1-6 or 1,3-5")
        low, high = int(match[1]), int(match[2] or match[1])
        if low < least:
            raise UsageError(f"it contains {low}; the smallest number is {least}")
        if high < low:
            raise UsageError(f"{part.strip()!r} runs backwards; write {high}-{low}")
        if high - low >= 1000:
            raise UsageError(f"{part.strip()!r} spans more than 1000 numbers")
        numbers |= set(range(low, high + 1))
    return tuple(sorted(numbers))


def span(given: Any) -> tuple[float, float]:
    """`2` or `2-4.5` (or a pair of numbers) as a pair (low, high)."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        low, high = (number(part) for part in given) if len(given) == 2 else (math.inf, -math.inf)
    else:
        match = re.fullmatch(r"\s*([0-9.]+(?:e-?\d+)?)\s*(?:-\s*([0-9.]+(?:e-?\d+)?)\s*)?", str(given))
        try:
            low, high = (float(match[1]), float(match[2] or match[1])) if match else (math.inf, math.inf)
        except ValueError:
            low = high = math.inf
    if not (math.isfinite(low) and math.isfinite(high)):
        raise UsageError("it is neither a number nor a range; write 2 or 2-4.5")
    if high < low:
        raise UsageError(f"the range runs backwards; write {high:g}-{low:g}")
    return low, high


@dataclass(frozen=True, kw_only=True)
class Making:
    """What a command is to make: its splits, how many sequences go into a shard, and what the user should be told.
    `shard_size` None is the store's own default. `opened` is entered while the splits are made and gives those that do
    the work, by default `splits`; a world that needs a program to run meanwhile (a game) starts and stops it there."""

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
    `s2rm-train` to choose groups."""

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
        names = [*(option.name for option in self.options), "seed"]
        for name in given:
            if name not in names:
                it_has = f"it has {', '.join(names)}"
                raise UsageError(f"{self.name} has no option {name!r}{did_you_mean(name, names, it_has)}")
        asked = {name: value for name, value in given.items() if value is not None}
        values = {option.name: option.value(asked.get(option.name, option.default)) for option in self.options}
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
    name = str(group.settings["generator"])
    if name not in WORLDS.names():
        absent = f"a world that is not installed here (there are {', '.join(WORLDS.names())})"
        advice = "install its package, or name its module with --plugin"
        raise UsageError(f"{group.path} was made by {name!r}, {absent}; {advice}")
    return cast(World, WORLDS.load(name))
