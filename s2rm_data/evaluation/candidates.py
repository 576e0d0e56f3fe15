"""What can be evaluated: run folders, runs, and models of one's own, which are any callable; and the rows they make."""

# B sequences, T steps, Q queries, C' output channels, H x W an image

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import WORLDS
from s2rm_data.evaluation.runs import Look, Run, load_runs
from s2rm_data.learning.batch import Batch, Prediction
from s2rm_data.learning.world_learning import Learning

# Told apart from the colours of the models in the package, which are those of Okabe and Ito (2008).
_FREE_COLOURS = ("#5b3a8c", "#7a5a00", "#a0004f", "#2f4b26", "#444444")


@dataclass(frozen=True, kw_only=True)
class OwnModel:
    """A model from outside, to be scored beside others: `predict` maps a `Batch` to predictions of every query. A
    prediction is the world's named tuple, or one tensor (B, T, Q, C', H, W) as the package's decoders give it. The
    batch has no targets, and views of the next frame only with `needs_next_views`. A `predict` that is a
    `torch.nn.Module` is moved to the device and set to evaluation mode meanwhile. It takes part in roll-outs if it has
    the methods of a `WorldModel` that go step by step: initial_state, encode, unroll, step and decode."""

    name: str
    world: str
    predict: Callable[[Batch], Prediction | Tensor]
    needs_next_views: bool = False

    def as_run(self, device: torch.device) -> Run:
        learning = WORLDS.load(self.world).learning()
        model = self.predict.to(device) if isinstance(self.predict, torch.nn.Module) else self.predict
        look = Look(title=self.name, oracle=self.needs_next_views)
        named: dict[str, Any] = dict.fromkeys(("name", "label", "model_name"), self.name)
        return OutsideRun(**named, world=self.world, model=model, look=look, learning=learning)


@dataclass(frozen=True, kw_only=True)
class OutsideRun(Run):
    learning: Learning

    def predict(self, batch: Batch) -> Prediction:
        hidden: dict[str, Any] = {"targets": None}
        if not self.look.oracle:
            hidden |= {"next_views": None, "next_view_position": None, "next_view_mask": None}
        found, steps = self.model(dataclasses.replace(batch, **hidden)), tuple(batch.query_position.shape[:3])
        if isinstance(found, Tensor):
            expected = (*steps, self.learning.output_channels, "H", "W")
            if found.dim() != 6 or tuple(found.shape[:4]) != expected[:4]:
                raise UsageError(
                    f"{self.name} predicted a tensor of shape {tuple(found.shape)}; it must be "
                    f"(B, T, Q, channels, H, W) = ({', '.join(map(str, expected))})"
                )
            return self.learning.prediction(found)
        if not isinstance(found, tuple) or any(tuple(part.shape[:3]) != steps for part in found):
            raise UsageError(
                f"{self.name} must predict one tensor, or the world's named tuple of tensors, each beginning with "
                f"(B, T, Q) = {steps}; it gave {type(found).__name__}"
            )
        return found


Candidate = Run | OwnModel | str | os.PathLike[str]


def as_runs(candidates: Iterable[Candidate], device: torch.device) -> list[Run]:
    """Everything that is to be evaluated, as runs with names of their own."""
    candidates = list(candidates)
    folders = [Path(e) for e in candidates if isinstance(e, str | os.PathLike)]
    runs = [
        *(load_runs(folders, device) if folders else ()),
        *(e for e in candidates if isinstance(e, Run)),
        *(e.as_run(device) for e in candidates if isinstance(e, OwnModel)),
    ]
    if strange := [e for e in candidates if not isinstance(e, Run | OwnModel | str | os.PathLike)]:
        own = "a model of your own as OwnModel(name=..., world=..., predict=...)"
        raise UsageError(f"{strange[0]!r} cannot be evaluated; give run folders, or {own}")
    if not runs:
        raise UsageError("there is nothing to evaluate; give at least one run folder or model")
    if twice := [name for name, times in Counter(run.name for run in runs).items() if times > 1]:
        raise UsageError(f"two of the models to evaluate are called {twice[0]!r}; give them different names")
    return runs


@contextlib.contextmanager
def evaluating(runs: Iterable[Run]) -> Iterator[None]:
    """Modules in evaluation mode, and afterwards as they were."""
    training = [run.model for run in runs if isinstance(run.model, torch.nn.Module) and run.model.training]
    for model in training:
        model.eval()
    try:
        yield
    finally:
        for model in training:
            model.train()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A row of every table and a line of every figure: the runs of one config, one for each seed."""

    label: str
    runs: tuple[Run, ...]
    colour: str

    @property
    def look(self) -> Look:
        return self.runs[0].look

    @property
    def paper_name(self) -> str:
        """Under which the paper's numbers of this model are found; empty if it has none."""
        return self.runs[0].model_name if self.look.in_paper else ""


def entries_of(runs: Sequence[Run]) -> list[Entry]:
    """In the paper's order; several configs of one model, and models without a colour, get colours that are free."""
    grouped: dict[tuple[int, str, str], list[Run]] = {}
    for run in runs:
        grouped.setdefault((run.look.place, run.label, run.model_name), []).append(run)
    configs = Counter(own[0].look.title for own in grouped.values())
    free = itertools.cycle(_FREE_COLOURS)
    entries = []
    for (_, label, _), own in sorted(grouped.items()):
        colour = own[0].look.colour if configs[own[0].look.title] == 1 else ""
        entries.append(Entry(label=label, runs=tuple(own), colour=colour or next(free)))
    return entries


def titles_of(runs: Sequence[Run]) -> dict[str, str]:
    """Labels are shared by seeds: where one run is drawn, its title gives its seed, too."""
    shared = Counter((run.world, run.label) for run in runs)
    alone = {run.name: shared[run.world, run.label] == 1 for run in runs}
    return {run.name: run.label if alone[run.name] else f"{run.label}, seed {run.seed}" for run in runs}


def first_of_each(runs: Sequence[Run]) -> dict[str, str]:
    """Titles, by name, of one seed of each config: what pictures show."""
    titles, first = titles_of(runs), {(run.world, run.label): run.name for run in reversed(runs)}
    return {run.name: titles[run.name] for run in runs if first[run.world, run.label] == run.name}
