"""What a run says of one battle, for the viewer: an agent's polar images one step ahead, or rolled out.

A roll-out is shown the true images up to a step and from then on what it has itself predicted. What models do not
predict stays that of the record: where the agents are and which of them live, the terrain below them, and the actions
they choose."""

# T steps (T + 1 records), N agents (views and queries), I x J polar cells

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from s2rm_data.core.errors import UsageError
from s2rm_data.generators.sc2.inspection.battle_scene import HEAT, NOTHING, hecs_titles, type_palette
from s2rm_data.generators.sc2.learning import battle_scores as polar
from s2rm_data.inspection.scene import Addition, Curve, Curves, Palette, Picture, Pictures
from s2rm_data.learning.batch import Batch
from s2rm_data.models import WorldModel
from s2rm_data.starcraft.battle_paint import FRIEND
from s2rm_data.store import Group

_PROBABILITY = Palette(colours=(NOTHING, FRIEND))
_LEVELS = 255


@dataclass(frozen=True, kw_only=True)
class BattleForesight:
    """`prediction` (1, n, N, ...) of the records `first`, first + 1, ...; `batch` is what the model was given."""

    first: int
    batch: Batch
    prediction: polar.PolarPrediction


def roll_out(model: WorldModel, batch: Batch, start: int) -> polar.PolarPrediction:
    """(B, T + 1 - start, N, ...): what the model says of the records start, ..., T when it is shown those before."""
    views, position, mask = batch.views, batch.view_position, batch.view_mask
    encoded = model.encode(views[:, :start], position[:, :start], mask[:, :start])
    _, state = model.unroll(encoded, model.initial_state(len(views)))
    found = []
    for record in range(start, views.shape[1] + 1):
        prediction: Any = model.decode(state, batch.query_position[:, record - 1])
        found.append(prediction)
        if record < views.shape[1]:
            own = fed_back(prediction, views[:, record]).unsqueeze(1)
            (following,) = model.encode(own, position[:, record, None], mask[:, record, None])
            state = model.step(following, state)
    return polar.PolarPrediction(*(torch.stack(parts, 1) for parts in zip(*found, strict=True)))


def fed_back(prediction: polar.PolarPrediction, true: Tensor) -> Tensor:
    """(B, N, 24, I, J): a prediction as views; terrain height and actions are those of the true views."""
    unit_type = prediction.unit_type.argmax(-3)
    there = unit_type > 0
    return polar.polar_views(
        (prediction.friendly > 0) & there,
        unit_type,
        prediction.hecs * there.unsqueeze(-3),
        true[..., polar.OBSERVATION_CHANNELS - 1, :, :],
        true[..., polar.OBSERVATION_CHANNELS :, :, :].argmax(-3),
    )


def shown(group: Group, number: int, result: BattleForesight, *, agent: int, start: int) -> Addition:
    agents = result.batch.query_mask.shape[2]
    if not 0 <= agent < agents:
        raise UsageError(f"there is no agent {agent}; this scenario has agents 0 to {agents - 1}")
    targets: Any = result.batch.targets
    wanted = polar.PolarTargets(*(part[:, result.first - 1 :] for part in targets))
    title = f"agent {agent}, rolled out from step {start}" if start else f"agent {agent}, one step ahead"
    note = "Predicted stats are drawn where the model thinks that a unit is."
    pictures = _pictures(group, number, result, wanted, agent)
    return Addition(
        panels=(
            Pictures(title=title, pictures=pictures, note=note, paired=True),
            _scores(result, wanted, held=start > 0),
        ),
        note="" if not start else f"From step {start} on the model is shown nothing but its own answers.",
    )


def _pictures(
    group: Group, number: int, result: BattleForesight, targets: polar.PolarTargets, agent: int
) -> list[Picture]:
    friendly, unit_type, hecs = (part[0, :, agent] for part in result.prediction)
    unit_type = unit_type.argmax(-3)
    hecs = hecs * (unit_type > 0).unsqueeze(-3)

    def pair(title: str, true: Tensor, predicted: Tensor, palette: Palette) -> list[Picture]:
        named = {"true": true, "predicted": predicted}
        divisor = 1 if palette.names else _LEVELS
        return [
            Picture(
                title=f"{title}: {which}",
                values=(values.float() * divisor).round().clamp(0, 255).to(torch.uint8).cpu().numpy(),
                palette=palette,
                divisor=divisor,
                polar=True,
                first=result.first,
            )
            for which, values in named.items()
        ]

    stats = [
        pair(title, targets.hecs[0, :, agent, channel], hecs[:, channel], Palette(colours=HEAT))
        for channel, title in enumerate(hecs_titles(group)[: polar.HECS])
    ]
    return [
        *pair("friendly marker", targets.friendly[0, :, agent], friendly.sigmoid(), _PROBABILITY),
        *pair("unit type", targets.unit_type[0, :, agent], unit_type, type_palette(group, number)),
        *(picture for pictures in stats for picture in pictures),
    ]


def _scores(result: BattleForesight, targets: polar.PolarTargets, *, held: bool) -> Curves:
    """F1 of the friendly markers of all agents, step by step, beside a copy of the last images that were shown."""
    batch, first = result.batch, result.first
    copied = [part[:, first - 1 :] for part in polar.reference_images(batch)["copy_previous"]]
    if held:
        copied = [part[:, :1].expand_as(part) for part in copied]
    model, copy = [], []
    for step in range(len(targets.friendly[0])):
        at = slice(step, step + 1)
        wanted, mask = polar.PolarTargets(*(part[:, at] for part in targets)), batch.query_mask[:, first - 1 :][:, at]
        model.append(polar.PolarCounts.of([part[:, at] for part in result.prediction], wanted, mask).scores()["fm_f1"])
        image: Any = tuple(part[:, at] for part in copied)
        copy.append(polar.PolarCounts.of_images(image, wanted, mask).scores()["fm_f1"])
    curves = (
        Curve(title="model", values=np.array(model), colour="#d55e00", first=first),
        Curve(title="copy of the last images", values=np.array(copy), colour="#888888", first=first),
    )
    return Curves(title="friendly-marker F1 of all agents", curves=curves, low=0.0, high=1.0)
