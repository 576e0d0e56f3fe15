"""Bouncing balls as batches: packed frames in memory, crops around sampled pixels as views and as targets.

Where the store has a cache, the frames of a batch's sequences are read from it instead, with the same result.
All randomness is drawn on the host as a small `BallRequest`; the crops are then cut where the frames are kept."""

# B sequences, T steps (T + 1 frames), V views, Q queries, S size in pixels, W bytes per row, F frames per sequence

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from s2rm_data.core.errors import UsageError
from s2rm_data.generators.bballs.learning.ball_crops import CROP, BallTargets, cut
from s2rm_data.generators.bballs.making.ball_config import config_of
from s2rm_data.generators.bballs.making.ball_render import standing_pixels
from s2rm_data.learning.batch import Batch
from s2rm_data.learning.cached import CachedSequences, has_cache, shard_units
from s2rm_data.learning.windows import Request, drop_count, window_steps
from s2rm_data.learning.world_learning import Source
from s2rm_data.store import Group

PAPER_VIEWS = 10  # section 'Video Prediction from Crops': A = 10 pixel positions at every step
QUERIES = 10  # Assumption: the paper does not say how many queries per step are trained on
Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class BallRequest(Request):
    """Which windows, and where to look; views of frame T are there for models that read the next views."""

    sequence: Any  # (B,) number in the source
    start: Any  # (B,) first frame of the window
    view: Any  # (B, T + 1, V, 2) whole (x, y) of the crops' central pixels
    view_mask: Any  # (B, T + 1, V) bool
    query: Any  # (B, T, Q, 2); index t speaks of frame t + 1

    @property
    def view_keep(self) -> Any:
        return self.view_mask


class BallSource(Source):
    """The frames of one or several groups, packed, on the device where crops are cut. `steps` is T; None takes the
    whole sequence. Positions are uniform over the arena, new at every frame."""

    def __init__(
        self,
        groups: Sequence[Group],
        *,
        steps: int | None = None,
        views: int = PAPER_VIEWS,
        queries: int = QUERIES,
        next_views: bool = False,
        device: torch.device | str = "cpu",
        limit: int | None = None,
    ) -> None:
        self.groups = [group.path for group in groups]
        for group in groups:
            if (render := group.settings["config"].get("render", "binary")) != "binary":
                raise UsageError(
                    f"{group.path} has {render} frames; models of this world learn from binary frames: make the data "
                    "with --render binary"
                )
        shapes = {group.path: group["frames"].shape[1:] for group in groups}
        if len(set(shapes.values())) != 1:
            raise UsageError(f"groups of unlike frames cannot be loaded together: {shapes}")
        frames, self.size, _ = next(iter(shapes.values()))
        self.steps = window_steps(steps, frames, ", ".join(self.groups))
        self.views, self.queries, self.next_views = views, queries, next_views
        self.device, self._settings, self._frame_count = torch.device(device), groups[0].settings, frames
        self.units = shard_units(groups, limit)
        self.cached = CachedSequences(groups, ("frames",), limit) if has_cache(groups[0]) else None
        if self.cached is None:
            packed = [torch.from_numpy(group["frames"].packed(slice(0, limit))) for group in groups]
            self.frames = (packed[0] if len(packed) == 1 else torch.cat(packed)).to(self.device)  # (N, F, S, W)

    def __len__(self) -> int:
        return len(self.frames if self.cached is None else self.cached)

    def sample(self, random: np.random.Generator, sequence: Numbers) -> BallRequest:
        return self._sample(random, sequence, random.integers(0, self._frame_count - self.steps, len(sequence)))

    def sample_fixed(self, random: np.random.Generator, sequence: Numbers) -> BallRequest:
        return self._sample(random, sequence, np.zeros(len(sequence), np.int64))

    def _sample(self, random: np.random.Generator, sequence: Numbers, start: Numbers) -> BallRequest:
        batch, frames = len(sequence), self.steps + 1
        view = random.integers(0, self.size, (batch, frames, self.views, 2), dtype=np.int16)
        query = random.integers(0, self.size, (batch, self.steps, self.queries, 2), dtype=np.int16)
        mask = np.ones((batch, frames, self.views), np.bool_)
        return BallRequest(sequence=sequence, start=start, view=view, view_mask=mask, query=query)

    def drop(self, random: np.random.Generator, request: BallRequest, fraction: float) -> BallRequest:
        """Without an exact fraction of the views: the last ones of every frame, which are as random as any others. So
        the views that are left at one fraction are also left at every smaller one."""
        mask = request.view_mask & (np.arange(self.views) < self.views - drop_count(fraction, self.views))
        return request.replaced(view_mask=mask)

    def prepare(self, request: BallRequest) -> Batch | tuple[BallRequest, Tensor | None]:
        """What can be done ahead of time in another thread: on a CPU everything, else pinned tensors."""
        pin = self.device.type == "cuda"
        tensors, frames = request.tensors(pin=pin), self._cached_frames(request)
        if self.device.type == "cpu":
            return self._batch(tensors, frames)
        return tensors, frames.pin_memory() if pin and frames is not None else frames

    def finish(self, prepared: Batch | tuple[BallRequest, Tensor | None]) -> Batch:
        """The batch, on the source's device; on a GPU nothing here waits for it."""
        if isinstance(prepared, Batch):
            return prepared
        request, frames = prepared
        frames = None if frames is None else frames.to(self.device, non_blocking=True)
        return self._batch(request.moved(self.device), frames)

    def _cached_frames(self, request: BallRequest) -> Tensor | None:
        """(B, F, S, W) of the request's sequences; None if all frames are in memory."""
        if self.cached is None:
            return None
        return torch.from_numpy(self.cached.packed("frames", np.asarray(request.sequence)))

    def _batch(self, request: BallRequest, frames: Tensor | None) -> Batch:
        frame, cut_frames = self._frame_numbers(request, frames), self.steps + int(self.next_views)
        views = self._crops(frames, frame[:, :cut_frames], request.view[:, :cut_frames])
        position, mask = request.view.float(), request.view_mask
        return Batch(
            **Batch.views_of(views, position, mask, steps=self.steps, next_views=self.next_views),
            query_position=request.query.float(),
            query_mask=torch.ones(request.query.shape[:-1], dtype=torch.bool, device=self.device),
            targets=BallTargets(self._crops(frames, frame[:, 1:], request.query)),
        )

    def _frame_numbers(self, request: BallRequest, frames: Tensor | None) -> Tensor:
        """(B, T + 1) into all frames of all sequences; of the request's sequences if their frames were read for it."""
        steps = torch.arange(self.steps + 1, device=self.device)
        sequence = request.sequence if frames is None else torch.arange(len(frames), device=self.device)
        return (sequence * self._frame_count + request.start)[:, None] + steps

    def _crops(self, frames: Tensor | None, frame: Tensor, position: Tensor) -> Tensor:
        """(B, T), (B, T, K, 2) -> (B, T, K, 1, 11, 11)."""
        frame = frame.unsqueeze(-1).expand(position.shape[:-1])
        return cut((self.frames if frames is None else frames).flatten(0, 1), frame, position).unsqueeze(-3)

    def whole_frames(self, request: BallRequest) -> Tensor:
        """(B, T + 1, S, S) uint8 of 0 and 1: what the crops of a request were cut from."""
        frames = self._cached_frames(request)
        frames = None if frames is None else frames.to(self.device)
        request = request.tensors().moved(self.device)
        packed = (self.frames if frames is None else frames).flatten(0, 1)[self._frame_numbers(request, frames)]
        bits = torch.arange(7, -1, -1, device=self.device, dtype=torch.uint8)
        return ((packed.unsqueeze(-1) >> bits) & 1).flatten(-2)[..., : self.size]

    @cached_property
    def fixed_ball(self) -> Tensor:
        """(S, S) bool: the pixels of the fixed ball, or of all that stands still, on in every frame."""
        pixels = np.unpackbits(standing_pixels(config_of(self._settings)), axis=-1, count=self.size)
        return torch.from_numpy(pixels.astype(np.bool_)).to(self.device)

    @property
    def image_size(self) -> tuple[int, int]:
        return CROP, CROP

    @property
    def arena_size(self) -> tuple[float, float]:
        return float(self.size), float(self.size)
