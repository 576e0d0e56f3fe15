"""Dots for learning: crops around random pixels as views and targets."""

# B sequences, T steps, V views, Q queries

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from s2rm_data.extend import (
    Batch,
    BinaryCounts,
    Group,
    Learning,
    Request,
    Source,
    binary_cross_entropy,
    check_fraction,
    masked_mean,
    window_steps,
)

CROP, VIEWS = 5, 4


class DotImage(NamedTuple):
    crop: Tensor  # (B, T, Q, 1, 5, 5)


class DotCounts(NamedTuple):
    pixels: BinaryCounts

    def plus(self, other: DotCounts) -> Self:
        return type(self)(self.pixels.plus(other.pixels))

    def scores(self) -> dict[str, float]:
        return {"f1": self.pixels.f1}


@dataclass(frozen=True, kw_only=True)
class DotRequest(Request):
    sequence: Any  # (B,)
    start: Any  # (B,)
    position: Any  # (B, T + 1, V, 2)
    keep: Any  # (B, T + 1, V) bool


class DotSource(Source):
    def __init__(
        self,
        groups: Sequence[Group],
        *,
        steps: int | None = None,
        next_views: bool = False,
        device: Any = "cpu",
        limit: int | None = None,
    ) -> None:
        self.groups = [group.path for group in groups]
        frames = np.concatenate([group["frames"][slice(0, limit)] for group in groups])
        self.device, self.next_views = torch.device(device), next_views
        self.frames = torch.from_numpy(frames).to(self.device)
        self.steps = window_steps(steps, frames.shape[1], ", ".join(self.groups))
        self.size = frames.shape[-1]

    def __len__(self) -> int:
        return len(self.frames)

    def sample(self, random: np.random.Generator, sequence: Any) -> DotRequest:
        return self._request(random, sequence, random.integers(0, self.frames.shape[1] - self.steps, len(sequence)))

    def sample_fixed(self, random: np.random.Generator, sequence: Any) -> DotRequest:
        return self._request(random, sequence, np.zeros(len(sequence), np.int64))

    def _request(self, random: np.random.Generator, sequence: Any, start: Any) -> DotRequest:
        shape = (len(sequence), self.steps + 1, VIEWS)
        position = random.integers(0, self.size, (*shape, 2))
        return DotRequest(sequence=sequence, start=start, position=position, keep=np.ones(shape, np.bool_))

    def drop(self, random: np.random.Generator, request: DotRequest, fraction: float) -> DotRequest:
        check_fraction(fraction)
        return request.replaced(keep=request.keep & (random.random(request.keep.shape) >= fraction))

    def prepare(self, request: DotRequest) -> DotRequest:
        return request.tensors()

    def finish(self, prepared: DotRequest) -> Batch:
        request = prepared.moved(self.device)
        crops = self._crops(request)  # (B, T + 1, V, 1, 5, 5)
        position, keep = request.position.float(), request.keep
        more = {"next_views": crops[:, 1:], "next_view_position": position[:, 1:], "next_view_mask": keep[:, 1:]}
        return Batch(
            views=crops[:, :-1],
            view_position=position[:, :-1],
            view_mask=keep[:, :-1],
            query_position=position[:, 1:],
            query_mask=torch.ones_like(keep[:, 1:]),
            targets=DotImage(crops[:, 1:]),
            **(more if self.next_views else {}),
        )

    def _crops(self, request: DotRequest) -> Tensor:
        time = request.start[:, None] + torch.arange(self.steps + 1, device=self.device)
        frames = self.frames[request.sequence[:, None], time]  # (B, T + 1, S, S)
        reach = torch.arange(CROP, device=self.device) - CROP // 2
        x, y = (request.position[..., axis, None].long() + reach for axis in (0, 1))
        rows, columns = (y % self.size)[..., :, None], (x % self.size)[..., None, :]
        b = torch.arange(len(frames), device=self.device).view(-1, 1, 1, 1, 1)
        t = torch.arange(frames.shape[1], device=self.device).view(-1, 1, 1, 1)
        return frames[b, t, rows, columns].unsqueeze(-3)

    @property
    def image_size(self) -> tuple[int, int]:
        return CROP, CROP

    @property
    def arena_size(self) -> tuple[float, float]:
        return float(self.size), float(self.size)


class DotLearning(Learning):
    view_channels = output_channels = 1
    model_defaults = {
        "image_size": (CROP, CROP),
        "arena_size": (12.0, 12.0),
        "embedding_size": 8,
        "position_scale": 0.5,
    }
    scores = {"f1": "F1"}
    references = {"copy_previous": "copy of the last view at the place", "always_off": "always off"}

    def open(self, groups: Sequence[Group], **options: Any) -> DotSource:
        return DotSource(groups, **options)

    def sequence_steps(self, group: Group) -> int:
        return group["frames"].shape[1] - 1

    def held_out(self, store: Any, train_groups: Sequence[str]) -> dict[str, list[str]]:
        return {"test": ["dots/test"]} if "dots/test" in store else {}

    def prediction(self, image: Tensor) -> DotImage:
        return DotImage(image)

    def loss_terms(
        self, prediction: DotImage, targets: DotImage, mask: Tensor, occupied_weight: float = 1.0
    ) -> dict[str, Tensor]:
        return {"crop": masked_mean(binary_cross_entropy(prediction.crop, targets.crop), mask)}

    def no_counts(self, device: torch.device) -> DotCounts:
        return DotCounts(BinaryCounts.zero(device))

    def count(self, source: DotSource, prediction: DotImage, batch: Batch) -> DotCounts:
        return DotCounts(BinaryCounts.of(prediction.crop > 0, batch.targets.crop))

    def reference_counts(self, source: DotSource, request: DotRequest) -> dict[str, DotCounts]:
        batch = source.batch(request)
        guesses = {"copy_previous": batch.views, "always_off": torch.zeros_like(batch.views)}
        return {name: DotCounts(BinaryCounts.of(guess, batch.targets.crop)) for name, guess in guesses.items()}


LEARNING = DotLearning()
