"""What a model's state knows: places and velocities of one ball, read off it by ridge regression.

Fitted on the first half of the sequences, the penalty chosen on the last quarter of these, reported on the second half.
Only sums of products are kept, so that memory does not grow with the sequences. One ball, because states say nothing of
which ball is which."""

# Z features, a one and four targets (x, y, their velocities)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from s2rm_data.evaluation.blocks import pieces
from s2rm_data.evaluation.candidates import Entry
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.tables import Column, Table, compare
from s2rm_data.models import WorldModel
from s2rm_data.store import Group

SKIPPED_STEPS = 10  # until the ball has been seen
LEAST_SEQUENCES = 16
_PENALTIES = tuple(10.0**power for power in range(-6, 2))  # in units of a feature's mean square
_COLUMNS = {"place": "place, px", "velocity": "velocity, px/frame"}
Probed = Mapping[str, Mapping[str, float]]  # root mean square errors of a coordinate, by run


def can_be_probed(run: Run) -> bool:
    return isinstance(run.model, WorldModel) and run.rolls_out


def probe(run: Run, group: Group, limit: int, device: torch.device) -> dict[str, float]:
    """`place` and `velocity`: error of a coordinate on held-out sequences, root mean square."""
    fit, choose, held_out = _products(run, group, (3 * limit // 8, limit // 2, limit), device)
    fits = [(_solve(fit, penalty), penalty) for penalty in _PENALTIES]
    best = min(fits, key=lambda pair: _errors(choose, pair[0]).sum())[1]
    x, y, u, v = _errors(held_out, _solve(fit + choose, best))
    return {"place": float(np.sqrt((x + y) / 2)), "velocity": float(np.sqrt((u + v) / 2))}


def _products(run: Run, group: Group, ends: Sequence[int], device: torch.device) -> list[NDArray[np.float64]]:
    """(Z, Z) sums of products of the sequences up to each of the ends."""
    sums: list[Any] = [0.0 for _ in ends]
    position, velocity = (group[name][: ends[-1]].astype(np.float64) for name in ("position", "velocity"))
    with torch.inference_mode():
        for piece in pieces(group, limit=ends[-1], device=device, batch_size=1):
            hidden = run.model.unroll(run.model.encode_batch(piece.batch), run.model.initial_state(1))[0]
            state = (hidden[0] if isinstance(hidden, tuple) else hidden)[0].flatten(1).double().cpu().numpy()
            true = np.concatenate([position[piece.first, : len(state), 0], velocity[piece.first, : len(state), 0]], 1)
            z = np.concatenate([state, np.ones((len(state), 1)), true], 1)[SKIPPED_STEPS:]
            part = next(k for k, end in enumerate(ends) if piece.first < end)
            sums[part] = sums[part] + z.T @ z
    return sums


def _solve(products: NDArray[np.float64], penalty: float) -> NDArray[np.float64]:
    """(Z - 4, 4) weights."""
    features = products[:-4, :-4]
    ridge = penalty * np.trace(features) / len(features) * np.eye(len(features))
    ridge[-1, -1] = 0.0  # the one is free
    return np.asarray(np.linalg.solve(features + ridge, products[:-4, -4:]))


def _errors(products: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(4,) mean square errors, from |y - w x|^2 = yy - 2 w xy + w xx w."""
    xx, xy, yy = products[:-4, :-4], products[:-4, -4:], np.diag(products)[-4:]
    total = yy - 2 * (weights * xy).sum(0) + (weights * (xx @ weights)).sum(0)
    return np.asarray(np.maximum(total, 0.0) / products[-5, -5])


def probe_tables(probed: Probed, entries: Sequence[Entry], world: str) -> list[Table]:
    runs = {title: {name: found[key] for name, found in probed.items()} for key, title in _COLUMNS.items()}
    columns = {title: Column(runs=errors, references={}) for title, errors in runs.items()}
    shown = [entry for entry in entries if any(run.name in probed for run in entry.runs)]
    title = "What the state knows: one ball, root mean square error of a coordinate"
    caption = "Ridge regression from the state to place and velocity, held-out sequences; smaller is better."
    rows = tuple(replace(row, note="") for row in compare(shown, columns, {}))  # the smaller, the better
    told: dict[str, Any] = {"title": title, "caption": caption, "corner": "error", "world": world}
    return [Table(name=f"{world}_probe", columns=tuple(columns), rows=rows, **told)] if probed else []
