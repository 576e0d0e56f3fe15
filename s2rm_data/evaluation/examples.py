"""One agent's predicted polar images beside the true ones."""

# I x J polar cells

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from s2rm_data.evaluation.battles import reference_images
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.streaming import Piece, pieces
from s2rm_data.generators.sc2.images import PolarPrediction, PolarTargets
from s2rm_data.store import Group


@dataclass(frozen=True, kw_only=True)
class PolarImage:
    friendly: NDArray[np.float32]  # (I, J) probability
    unit_type: NDArray[np.uint8]  # (I, J) the likeliest
    hecs: NDArray[np.float32]  # (4, I, J), as predicted, whether or not anything is thought to be there


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


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A `step` of None is the middle of the agent's life."""

    episode: int = 0
    agent: int = 0
    step: int | None = None


def why_not(group: Group, choice: Choice, device: torch.device) -> str:
    """Why a group has no such image; empty if it has one."""
    agents = group["action"].shape[2]
    if not 0 <= choice.agent < agents:
        return f"there is no agent {choice.agent} in {group.path}; it has agents 0 to {agents - 1}"
    if not 0 <= choice.episode < len(group):
        return f"there is no episode {choice.episode} in {group.path}; it has 0 to {len(group) - 1}"
    alive = _alive(_piece_with(group, choice.episode, device), choice)
    where = f"episode {choice.episode} of {group.path}"
    if not alive:
        return f"agent {choice.agent} is never alive after the first step of {where}"
    if choice.step is not None and choice.step - 1 not in alive:
        return f"agent {choice.agent} has no image at step {choice.step} of {where}; it has 1 to {alive[-1] + 1}"
    return ""


def polar_example(group: Group, runs: Sequence[Run], choice: Choice, *, device: torch.device) -> PolarExample:
    """Of a group for which `why_not` is empty."""
    episode, agent = choice.episode, choice.agent
    piece = _piece_with(group, episode, device)
    row = episode - piece.first
    alive = _alive(piece, choice)
    index = alive[len(alive) // 2] if choice.step is None else choice.step - 1
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


def _alive(piece: Piece, choice: Choice) -> list[int]:
    """The predictions in the batch that the agent has a true image for: that of frame t + 1 is prediction t."""
    mask = piece.batch.query_mask[choice.episode - piece.first, :, choice.agent]
    return [int(index) for index in mask.nonzero().flatten().tolist()]


def _image(friendly: torch.Tensor, unit_type: torch.Tensor, hecs: torch.Tensor) -> PolarImage:
    return PolarImage(
        friendly=friendly.float().cpu().numpy(),
        unit_type=unit_type.to(torch.uint8).cpu().numpy(),
        hecs=hecs.float().cpu().numpy(),
    )
