"""One agent's predicted polar images beside the true ones."""

# I x J polar cells

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from s2rm_data.errors import UsageError
from s2rm_data.evaluation.battles import reference_images
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.streaming import Piece, pieces
from s2rm_data.models import PolarPrediction, PolarTargets
from s2rm_data.models.batch import HECS
from s2rm_data.store import Group


@dataclass(frozen=True, kw_only=True)
class PolarImage:
    friendly: NDArray[np.float32]  # (I, J) probability
    unit_type: NDArray[np.uint8]  # (I, J) the likeliest
    hecs: NDArray[np.float32]  # (4, I, J), zero where the likeliest is that nothing is there


@dataclass(frozen=True, kw_only=True)
class PolarExample:
    """`step` is of the frame predicted; `images` by name of the run."""

    group: str
    episode: int
    agent: int
    step: int
    radius: float
    unit_types: list[str]
    truth: PolarImage
    copy: PolarImage
    images: dict[str, PolarImage]


def polar_example(
    group: Group, runs: Sequence[Run], *, episode: int, agent: int, step: int | None, device: torch.device
) -> PolarExample:
    agents = group["action"].shape[2]
    if not 0 <= agent < agents:
        raise UsageError(f"there is no agent {agent} in {group.path}; it has agents 0 to {agents - 1}")
    if not 0 <= episode < len(group):
        raise UsageError(f"there is no episode {episode} in {group.path}; it has 0 to {len(group) - 1}")
    piece = _piece_with(group, episode, device)
    row = episode - piece.first
    index = _index(piece, row, agent, step, group.path)
    at = (row, index, agent)
    targets = piece.batch.targets
    assert isinstance(targets, PolarTargets)
    friendly, unit_type, hecs = reference_images(piece.batch)["copy_last"]
    images = {}
    with torch.inference_mode():
        for run in runs:
            prediction = run.model(piece.batch)
            assert isinstance(prediction, PolarPrediction)
            chosen = (prediction.friendly[at].sigmoid(), prediction.unit_type[at].argmax(-3), prediction.hecs[at])
            images[run.name] = _image(*chosen)
    return PolarExample(
        group=group.path,
        episode=episode,
        agent=agent,
        step=index + 1,
        radius=float(group.attributes["radius"]),
        unit_types=list(group.attributes["unit_types"]),
        truth=_image(targets.friendly[at], targets.unit_type[at], targets.hecs[at]),
        copy=_image(friendly[at], unit_type[at], hecs[at]),
        images=images,
    )


def _piece_with(group: Group, episode: int, device: torch.device) -> Piece:
    return next(p for p in pieces(group, limit=episode + 1, device=device) if p.first + len(p.requests) > episode)


def _index(piece: Piece, row: int, agent: int, step: int | None, where: str) -> int:
    """Of the prediction in the batch: the one of frame `step`, or of the middle of the agent's life."""
    alive = piece.batch.query_mask[row, :, agent].nonzero().flatten().tolist()
    if not alive:
        raise UsageError(f"agent {agent} is never alive after the first step of that episode of {where}")
    if step is None:
        return int(alive[len(alive) // 2])
    if step - 1 not in alive:
        raise UsageError(f"agent {agent} has no image at step {step} of that episode of {where}; 1 to {alive[-1] + 1}")
    return step - 1


def _image(friendly: torch.Tensor, unit_type: torch.Tensor, hecs: torch.Tensor) -> PolarImage:
    there = (unit_type > 0).expand(HECS, *unit_type.shape)
    return PolarImage(
        friendly=friendly.float().cpu().numpy(),
        unit_type=unit_type.to(torch.uint8).cpu().numpy(),
        hecs=torch.where(there, hecs.float(), 0.0).cpu().numpy(),
    )
