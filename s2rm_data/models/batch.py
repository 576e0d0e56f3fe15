"""What a model is given and what it gives back, the same for all six models.

Shapes: B sequences, T steps, V views, Q queries, C channels, H x W an image, I x J a polar image (radius x angle).

Time: at step t a model takes the views of frame t and predicts frame t + 1 at the query positions. So with a window of
T + 1 frames the views are frames 0..T-1, the targets frames 1..T, and `query_position[:, t]`, `query_mask[:, t]` and
the targets at index t all speak of frame t + 1.

V and Q are free, may differ from batch to batch, and may vary inside one by the masks. A masked view or query may hold
anything finite: it counts as absent. No view at all at some step is allowed. The order of views means nothing.

Positions are (x, y) floats in the task's own unit, not normalised:
- bballs: pixels; the crop's central pixel, column x and row y, 0..47.
- sc2: map coordinates of the agent, 0..32.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

UNIT_TYPE_COUNT = 9  # appendix 'Standardized State Space': nine one-hot unit-type channels
UNIT_CLASSES = 1 + UNIT_TYPE_COUNT  # class 0: nothing there
HECS = 4  # health, energy, cooldown, shields
# The categories of an action image, in channel order: `unknown` for unfriendly units, `no-op` where nobody lives.
ACTIONS = ("no-op", "unknown", "stop", "north", "south", "east", "west", "attack", "heal")
OBSERVATION_CHANNELS = 1 + UNIT_TYPE_COUNT + HECS + 1  # friendly, unit type, HECS, terrain height
POLAR_CHANNELS = OBSERVATION_CHANNELS + len(ACTIONS)


class BallTargets(NamedTuple):
    crop: Tensor  # (B, T, Q, 1, 11, 11) 0/1, any dtype: frame t + 1 around the query, zero outside the arena


class PolarTargets(NamedTuple):
    friendly: Tensor  # (B, T, Q, I, J) 0/1, any dtype
    unit_type: Tensor  # (B, T, Q, I, J) integer class, 0 nothing, 1..9
    hecs: Tensor  # (B, T, Q, 4, I, J) float, standardised stats


class BallPrediction(NamedTuple):
    crop: Tensor  # (B, T, Q, 1, 11, 11) logits

    def probability(self) -> Tensor:
        return self.crop.sigmoid()


class PolarPrediction(NamedTuple):
    friendly: Tensor  # (B, T, Q, I, J) logits
    unit_type: Tensor  # (B, T, Q, 10, I, J) logits, class 0 nothing
    hecs: Tensor  # (B, T, Q, 4, I, J)


Targets = BallTargets | PolarTargets
Prediction = BallPrediction | PolarPrediction


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One batch of windows.

    `views` are images, channels first, of any real dtype (uint8 and bool are cast on the model's device):
    - bballs (B, T, V, 1, 11, 11), 0/1;
    - sc2 (B, T, V, 24, I, J): the 15 observation channels and the 9 action channels, made by `polar_views`.
    `targets` is BallTargets or PolarTargets; None when only predictions are wanted.
    `query_mask` is False where there is no target: past the episode's end, or an agent that is dead at t + 1.

    `next_*` are the views of frame t + 1 at index t, for models whose `needs_next_views` is true (the oracle TTO);
    None for all others. With all frames in one tensor they are the slices `[:, :-1]` and `[:, 1:]` of it, no copy.
    TTO at step t reads the next views and nothing else. If the queries stand where the next views stand (sc2: the same
    agents at t + 1) it is shown its own targets and must only carry them through the sum over views; if they are drawn
    independently of the next views (bballs) it must also fill in what no view of frame t + 1 shows.
    """

    views: Tensor  # (B, T, V, C, H, W)
    view_position: Tensor  # (B, T, V, 2) float
    view_mask: Tensor  # (B, T, V) bool, True where there is a view
    query_position: Tensor  # (B, T, Q, 2) float
    query_mask: Tensor  # (B, T, Q) bool, True where there is a target
    targets: Targets | None = None
    next_views: Tensor | None = None  # (B, T, V', C, H, W)
    next_view_position: Tensor | None = None  # (B, T, V', 2)
    next_view_mask: Tensor | None = None  # (B, T, V')

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """The same batch on another device."""
        return dataclasses.replace(
            self,
            **{f.name: _moved(getattr(self, f.name), device, non_blocking) for f in dataclasses.fields(self)},
        )


Moved = TypeVar("Moved", Tensor, BallTargets, PolarTargets, None)


def _moved(value: Moved, device: torch.device | str, non_blocking: bool) -> Moved:
    if value is None:
        return value
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=non_blocking)
    return type(value)(*(part.to(device, non_blocking=non_blocking) for part in value))


def polar_views(friendly: Tensor, unit_type: Tensor, hecs: Tensor, height: Tensor, action: Tensor) -> Tensor:
    """Polar images as models take them: (..., 24, I, J) float, from the compact form of the store.

    friendly (..., I, J) 0/1; unit_type (..., I, J) integer 0..9; hecs (..., 4, I, J); height (..., I, J);
    action (..., I, J) integer index into ACTIONS. Channels: friendly 0, unit types 1..9 (unit type u at channel u,
    none set where nothing is), HECS 10..13, height 14, actions 15..23. Predictions can be fed back the same way.
    """
    types = torch.arange(1, UNIT_CLASSES, device=unit_type.device)
    actions = torch.arange(len(ACTIONS), device=action.device)
    return torch.cat(
        [
            friendly.to(hecs.dtype).unsqueeze(-3),
            (unit_type.unsqueeze(-3) == types[:, None, None]).to(hecs.dtype),
            hecs,
            height.to(hecs.dtype).unsqueeze(-3),
            (action.unsqueeze(-3) == actions[:, None, None]).to(hecs.dtype),
        ],
        dim=-3,
    )
