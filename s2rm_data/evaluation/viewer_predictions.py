"""Models for the viewer: what runs predict of single stored sequences, and their enclaves, as additions to a scene."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from s2rm_data.core.errors import UsageError
from s2rm_data.core.paint import SAFE_COLOURS
from s2rm_data.core.registry import WORLDS
from s2rm_data.evaluation.blocks import Piece, piece_of
from s2rm_data.evaluation.enclaves import enclaves_of, has_enclaves
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.world_evaluation import evaluation_of
from s2rm_data.inspection.scene import Addition, Stack
from s2rm_data.making.world import world_of
from s2rm_data.store import Group

_KEPT = 8  # results in memory, so that another agent of the same battle costs nothing


class RunPredictor:
    """What `inspection.viewer` asks of models (its `Predictor`), answered with runs of s2rm-train."""

    def __init__(self, runs: Sequence[Run], device: torch.device) -> None:
        self._runs, self._device = {run.name: run for run in runs}, device
        self._worlds = {name: evaluation_of(WORLDS.load(name)) for name in {run.world for run in runs}}
        self._results: OrderedDict[tuple[Any, ...], tuple[Piece, Any]] = OrderedDict()

    def runs(self) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        for run in self._runs.values():
            can = {"rolls_out": self._rolls_out(run), "enclaves": has_enclaves(run.model)}
            found.append({"name": run.name, "label": run.label, "world": run.world, **can})
        return found

    def _rolls_out(self, run: Run) -> bool:
        return run.rolls_out and self._worlds[run.world].shows_roll_outs

    def prediction(self, run: str, group: Group, number: int, *, index: int, start: int, dropped: float) -> Addition:
        key, own = (run, group.path, number, start, dropped), self._runs[run]
        if key not in self._results:
            self._results[key] = self._compute(own, group, number, start, dropped)
            if len(self._results) > _KEPT:
                self._results.popitem(last=False)
        self._results.move_to_end(key)
        piece, result = self._results[key]
        return self._worlds[own.world].shown(group, piece, result, index=index, start=start)

    def _compute(self, run: Run, group: Group, number: int, start: int, dropped: float) -> tuple[Piece, Any]:
        world = self._worlds[run.world]
        if world_of(group).name != run.world:
            raise UsageError(f"{run.name} was trained on {run.world}; it cannot predict {group.path}")
        if start and not self._rolls_out(run):
            raise UsageError(f"{run.name} cannot be rolled out")
        world.checked([run], {"shown": [group]})
        piece = piece_of(group, number, device=self._device, view=run.view)
        frames = piece.batch.view_mask.shape[1] + 1
        if start >= frames:
            raise UsageError(f"a roll-out from step {start} is out of range; this sequence has steps 1 to {frames - 1}")
        with torch.inference_mode():
            return piece, world.foresee(run, piece, start=start, dropped=dropped)

    def enclaves(self, run: str) -> Addition:
        found = enclaves_of([self._runs[run]])
        if run not in found:
            raise UsageError(f"{run} has no enclaves: its model has no modules with places")
        maps = found[run].maps
        extent = (0.0, 0.0, float(maps.shape[2]), float(maps.shape[1]))
        layer = Stack(title="enclaves", values=maps, extent=extent, colours=SAFE_COLOURS, part="module")
        return Addition(layers=(layer,))
