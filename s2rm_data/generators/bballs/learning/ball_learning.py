"""Bouncing balls for learning: the paper's sizes and budgets, crops as predictions, their scores and references.

The fixed ball is always there, and drawing it alone gives an F1 of about 0.4 with three balls: `moving` leaves out its
pixels, and nothing else. Pixels of a crop outside the arena count in both; they are off.

What a prediction must beat to have learned motion:
- the last-seen canvas: every pixel as a view last showed it, off where none ever did;
- a copy of the whole previous frame, of which no model sees more than half;
- the fixed ball in the centre, which is always there;
- nothing: all pixels off."""

# B sequences, T steps, V views, Q queries, S size of the arena in pixels

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from s2rm_data.generators.bballs.learning import ball_crops
from s2rm_data.generators.bballs.learning.ball_batches import BallRequest, BallSource
from s2rm_data.generators.bballs.learning.ball_crops import CROP, REACH, BallPrediction, BallTargets
from s2rm_data.learning.batch import Batch
from s2rm_data.learning.metrics import BinaryCounts, binary_cross_entropy, masked_mean, weighted
from s2rm_data.learning.world_learning import Learning
from s2rm_data.store import Group, Store


class BallCounts(NamedTuple):
    all: BinaryCounts
    moving: BinaryCounts

    @classmethod
    def of(cls, predicted: Tensor, true: Tensor, fixed: Tensor) -> Self:
        """predicted, true, fixed: 0/1 or bool, of one shape; fixed: the pixels of the fixed ball."""
        return cls(BinaryCounts.of(predicted, true), BinaryCounts.of(predicted, true, ~fixed.bool()))

    @classmethod
    def zero(cls, device: torch.device | str = "cpu") -> Self:
        return cls(BinaryCounts.zero(device), BinaryCounts.zero(device))

    def plus(self, other: BallCounts) -> Self:
        return type(self)(self.all.plus(other.all), self.moving.plus(other.moving))

    def scores(self) -> dict[str, float]:
        found = {"f1": self.all.f1, "balanced_accuracy": self.all.balanced_accuracy}
        return found | {"f1_moving": self.moving.f1, "balanced_accuracy_moving": self.moving.balanced_accuracy}


def seen_pixels(view_position: Tensor, view_mask: Tensor, size: int, reach: int) -> Tensor:
    """(B, T, S, S) bool, [row, column]: the pixels within `reach` of a view's centre (B, T, V, 2), masked (B, T, V)."""
    line = torch.arange(size, device=view_position.device)
    near = (view_position.unsqueeze(-1) - line).abs() <= reach  # (B, T, V, 2, S)
    columns, rows = (near & view_mask[..., None, None]).float().unbind(-2)
    return torch.einsum("btvr,btvc->btrc", rows, columns) > 0


def last_seen_canvas(frames: Tensor, seen: Tensor) -> Tensor:
    """(B, T, S, S) bool: at t, all that was seen of frames 0..t. frames (B, T, S, S) 0/1; seen (B, T, S, S) bool."""
    canvases = [torch.zeros_like(seen[:, 0])]
    for frame, fresh in zip(frames.bool().unbind(1), seen.unbind(1), strict=True):
        canvases.append(torch.where(fresh, frame, canvases[-1]))
    return torch.stack(canvases[1:], 1)


Drawn = tuple[dict[str, list[Any]], list[str]]  # rows of images by title, titles of the columns


class BallLearning(Learning):
    view_channels = 1
    output_channels = 1
    model_defaults = {
        "image_size": (CROP, CROP),  # section 'Video Prediction from Crops'
        "arena_size": (48.0, 48.0),  # ditto, pixels
        "embedding_size": 16,  # table tab:bb_hparams
        # Assumption: pixels x 0.25 and base 16 learned fastest; base 10000 makes P all but constant over the arena.
        "position_scale": 0.25,
    }
    paper_fields = {  # table tab:bb_hparams
        "s2gru": {"truncation": 0.6},
        "s2rmc": {"truncation": 0.6},  # Assumption: as S2GRU; the paper has no S2RMC here
        "lstm": {"hidden_size": 512},
        "rmc": {"key_size": 128},
    }
    presets = {
        "paper": {"batch_size": 32},
        # One CPU core, an hour: the codec `waves` instead of the convolutions; many short windows, in the second half
        # fewer and longer ones; a larger rate that falls to almost zero; early clipping. See docs/fidelity/models.md.
        "laptop": {
            "batch_size": 40, "window": 8, "late_batch_size": 16, "late_window": 20, "steps": 16_000,
            "lr": 3e-3, "fine_tuning_lr": 3e-4, "schedule": "cosine", "warmup_steps": 100, "clip_norm": 0.2,
            "validate_every": 500, "validation_sequences": 64, "validation_batch_size": 32,
        },
    }  # fmt: skip
    # Its steps cost more, and are of fewer frames. At larger rates it falls back (docs/fidelity/models.md).
    _conv_gru = {"batch_size": 6, "window": 14, "late_batch_size": 2, "late_window": 40, "lr": 1.5e-3, "clip_norm": 0.1}
    presets_of_models = {"laptop": {"conv_gru": _conv_gru}}
    source_fields = ("views", "queries")
    scores = {"f1": "F1", "f1_moving": "F1 without the fixed ball"}
    references = {
        "always_off": "always off",
        "centre_only": "centre ball only",
        "last_seen": "last seen canvas",
        "copy_previous": "copy of the whole previous frame",
    }
    weighs_occupied = True
    evaluation_batch = 10

    def open(self, groups: Sequence[Group], **options: Any) -> BallSource:
        return BallSource(groups, **options)

    def sequence_steps(self, group: Group) -> int:
        return group["frames"].shape[1] - 1

    def held_out(self, store: Store, train_groups: Sequence[str]) -> dict[str, list[str]]:
        """The test set with as many balls as the training set, on which nothing was chosen."""
        name = f"test_{store[train_groups[0]].settings['config']['balls']}"
        path = f"{train_groups[0].partition('/')[0]}/{name}"
        return {name: [path]} if path in store else {}

    def describe(self, group: Group) -> dict[str, Any]:
        return {"balls": group.settings["config"]["balls"]}

    def prediction(self, image: Tensor) -> BallPrediction:
        return BallPrediction(image)

    def loss_terms(
        self, prediction: BallPrediction, targets: BallTargets, mask: Tensor, occupied_weight: float = 1.0
    ) -> dict[str, Tensor]:
        """Binary cross-entropy of the crop."""
        loss = binary_cross_entropy(prediction.crop, targets.crop)
        return {"crop": masked_mean(weighted(loss, targets.crop, occupied_weight), mask)}

    def no_counts(self, device: torch.device) -> BallCounts:
        return BallCounts.zero(device)

    def count(self, source: BallSource, prediction: BallPrediction, batch: Batch) -> BallCounts:
        assert batch.targets is not None
        predicted, true = prediction.crop.squeeze(-3) > 0, batch.targets.crop.squeeze(-3)
        return BallCounts.of(predicted, true, ball_crops.crops_of_one(source.fixed_ball, batch.query_position))

    def reference_counts(self, source: BallSource, request: BallRequest) -> dict[str, BallCounts]:
        batch, frames = source.batch(request), source.whole_frames(request)
        seen = seen_pixels(batch.view_position, batch.view_mask, source.size, REACH)
        drawings = {
            "always_off": torch.zeros_like(seen),
            "centre_only": source.fixed_ball.expand(*seen.shape),
            "last_seen": last_seen_canvas(frames[:, :-1], seen),
            "copy_previous": frames[:, :-1].bool(),
        }
        assert batch.targets is not None
        true, where = batch.targets.crop.squeeze(-3), batch.query_position
        fixed = ball_crops.crops_of_one(source.fixed_ball, where)
        return {n: BallCounts.of(ball_crops.cut_pixels(one, where), true, fixed) for n, one in drawings.items()}

    def pictures(self, model: Any, source: BallSource, request: BallRequest, steps: int) -> Drawn:
        request = request.rows(slice(0, 1))
        batch, frames, size = source.batch(request), source.whole_frames(request)[0].cpu().numpy(), source.size
        predicted = predicted_frames(model, batch, size).numpy()
        seen = seen_pixels(batch.view_position, batch.view_mask, size, REACH)[0].cpu().numpy()
        shown = range(max(len(predicted) - steps, 0), len(predicted))
        rows = {
            "seen at t": [np.where(seen[t], frames[t].astype(np.float64), 0.4) for t in shown],
            "true at t + 1": [frames[t + 1] for t in shown],
            "predicted": [predicted[t] for t in shown],
        }
        return rows, [f"t = {t}" for t in shown]


def stitch_grid(size: int) -> list[int]:
    """Centres of crops that together cover `size` pixels."""
    count = -(-size // CROP)
    return [round(c) for c in np.linspace(min(REACH, size - 1), max(size - 1 - REACH, 0), count)]


@torch.no_grad()
def predicted_frames(model: Any, batch: Batch, size: int) -> Tensor:
    """(T, S, S) probabilities of whole frames, stitched from crops; the batch holds one sequence."""
    centres = stitch_grid(size)
    grid = torch.tensor([[x, y] for y in centres for x in centres], dtype=torch.float32, device=batch.views.device)
    hidden, _ = model.unroll(model.encode_batch(batch), model.initial_state(1))
    steps = batch.views.shape[1]
    crops = model.decode_hidden(hidden, grid.expand(1, steps, -1, 2)).probability()[0, :, :, 0].float()
    frames = torch.zeros(steps, size + 2 * REACH, size + 2 * REACH, device=crops.device)
    for k, (x, y) in enumerate(grid.long().tolist()):
        frames[:, y : y + CROP, x : x + CROP] = crops[:, k]
    return frames[:, REACH : REACH + size, REACH : REACH + size].cpu()


LEARNING = BallLearning()
