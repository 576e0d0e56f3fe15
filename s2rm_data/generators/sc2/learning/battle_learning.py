"""StarCraft II for learning: the paper's sizes and budgets, polar images as predictions, scores and references."""

# B episodes, T steps, Q queries (agents), I x J polar cells

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from s2rm_data.generators.sc2.learning import battle_scores as polar
from s2rm_data.generators.sc2.learning.battle_batches import BattleRequest, BattleSource
from s2rm_data.learning.batch import Batch
from s2rm_data.learning.metrics import binary_cross_entropy, cross_entropy, masked_mean, squared_error, weighted
from s2rm_data.learning.world_learning import Learning
from s2rm_data.starcraft.codes import NOBODY
from s2rm_data.starcraft.polar import PolarGrid
from s2rm_data.store import Group

# Fewer than one cell in a hundred of a polar image is occupied; starting near that saves some hundred steps. The
# shortest wave follows the cell: 1.5 map units with 8 rings, 0.75 with 16. What each gains: docs/fidelity/models.md.
_SMALL = {"output_bias": -5.0, "wave_period": 4 / 3, "occupied_weight": 2.0}


class BattleLearning(Learning):
    view_channels = polar.POLAR_CHANNELS
    output_channels = 1 + polar.UNIT_CLASSES + polar.HECS
    wraps = True
    model_defaults = {
        # Assumption: the paper does not give its image size; 16 x 48 is what the data have by default.
        "image_size": (16, 48),
        "arena_size": (32.0, 32.0),  # all SMAC maps are 32 x 32
        "cell_size": 9 / 16,  # SMAC's sight range over the radial cells
        "embedding_size": 8,  # table tab:sc2_hparams
        # Assumption: with two bands per coordinate, 1.0 gives turns of 25 and 100 map units, local yet one-to-one.
        "position_scale": 1.0,
    }
    paper_fields = {  # table tab:sc2_hparams
        "s2gru": {"truncation": 0.5},
        "s2rmc": {"truncation": 0.5},
        "lstm": {"hidden_size": 2048},
        "rmc": {"key_size": 16},
    }
    presets = {
        "paper": {"batch_size": 8, "validation_batch_size": 8},
        # One CPU core, half an hour: the codec `waves`, many very short windows. Twice the rate learns faster for some
        # hundred steps, but collapses where it is held for a thousand (docs/fidelity/models.md).
        "laptop": {
            "batch_size": 32,
            "window": 4,
            "query_share": 0.4,
            "steps": 6000,
            "lr": 3e-3,
            "fine_tuning_lr": 3e-4,
            "schedule": "cosine",
            "warmup_steps": 100,
            "clip_norm": 1.0,
            "validate_every": 200,
            "validation_sequences": 16,
            "validation_batch_size": 4,
        },
    }
    preset_model_fields = {"laptop": _SMALL, "smoke": _SMALL}
    preset_fields_of_models = {
        "laptop": {
            "s2gru": {"encoding_size": 112, "hidden_size": 112, "equal_starts": True},
            "s2rmc": {"encoding_size": 112, "hidden_size": 112, "equal_starts": True},
            "lstm": {"hidden_size": 384},
        },
    }
    source_fields = ("query_share",)
    view_fields = ("image_size", "cell_size")
    scores = {"fm_f1": "friendly-marker F1", "ut_f1_units": "unit-type F1"}
    references = {"copy_previous": "copy of the last observation", "always_off": "nothing there"}
    weighs_occupied = True
    evaluation_batch = 4

    def open(self, groups: Sequence[Group], **options: Any) -> BattleSource:
        return BattleSource(groups, **options)

    def sequence_steps(self, group: Group) -> int:
        return group["action"].shape[1] - 1

    def prediction(self, image: Tensor) -> polar.PolarPrediction:
        friendly, unit_type, hecs = image.split([1, polar.UNIT_CLASSES, polar.HECS], -3)
        return polar.PolarPrediction(friendly.squeeze(-3), unit_type, hecs)

    def loss_terms(
        self, prediction: polar.PolarPrediction, targets: polar.PolarTargets, mask: Tensor, occupied_weight: float = 1.0
    ) -> dict[str, Tensor]:
        """Section 'Multi-Agent World Modeling', Training: binary cross-entropy of the friendly markers, cross-entropy
        of the unit types, mean squared error of HECS. The weight holds for the first two."""
        friendly = binary_cross_entropy(prediction.friendly, targets.friendly)
        unit_type = cross_entropy(prediction.unit_type, targets.unit_type)
        return {
            "friendly": masked_mean(weighted(friendly, targets.friendly, occupied_weight), mask),
            "unit_type": masked_mean(weighted(unit_type, targets.unit_type, occupied_weight), mask),
            "hecs": masked_mean(squared_error(prediction.hecs, targets.hecs), mask),
        }

    occupied_channels = slice(1, 1 + polar.UNIT_CHANNELS)  # one is set where a unit is

    def empty_cell(self) -> Tensor:
        """Its action is `no-op`. The height of the terrain stays as it is."""
        empty = torch.zeros(polar.POLAR_CHANNELS)
        empty[polar.OBSERVATION_CHANNELS + NOBODY] = 1.0
        return empty

    def cell_offsets(self, image_size: tuple[int, int], cell_size: float) -> Tensor:
        radial, angular = image_size
        grid = PolarGrid(radial=radial, angular=angular, radius=radial * cell_size)
        return torch.from_numpy(grid.points()).flatten(0, 1).float()

    def output_bias(self, low: float) -> Tensor:
        """Friendly markers start rare, and so does anything but the class `nothing`."""
        bias = torch.zeros(self.output_channels)
        bias[0], bias[1] = low, -low
        return bias

    def no_counts(self, device: torch.device) -> polar.PolarCounts:
        return polar.PolarCounts.zero(device)

    def count(self, source: BattleSource, prediction: polar.PolarPrediction, batch: Batch) -> polar.PolarCounts:
        assert batch.targets is not None
        return polar.PolarCounts.of(prediction, batch.targets, batch.query_mask)

    def reference_counts(self, source: BattleSource, request: BattleRequest) -> dict[str, polar.PolarCounts]:
        batch = source.batch(request)
        assert batch.targets is not None
        targets, mask, images = batch.targets, batch.query_mask, polar.reference_images(batch)
        return {name: polar.PolarCounts.of_images(image, targets, mask) for name, image in images.items()}

    def reference_scores(self, counts: polar.PolarCounts) -> dict[str, float]:
        """Without the likelihood: a copy is sure of itself, so that of the slightest change it would be zero."""
        return {name: score for name, score in counts.scores().items() if name != "ll"}

    @torch.no_grad()
    def pictures(
        self, model: Any, source: BattleSource, request: BattleRequest, steps: int
    ) -> tuple[dict[str, list[Any]], list[str]]:
        """One agent that lives long: unit types, friendly markers and health, radius downwards, angle to the right."""
        batch = source.batch(request.rows(slice(0, 1)))
        prediction = model(batch)
        assert batch.targets is not None
        agent = int(batch.query_mask[0].sum(0).argmax())
        shown = torch.nonzero(batch.query_mask[0, :, agent]).flatten().tolist()[-steps:]
        friendly, unit_type, hecs = (part[0, :, agent].float().cpu() for part in batch.targets)
        guess = [part[0, :, agent].float().cpu() for part in prediction]
        rows = {
            "true friendly": [friendly[t] for t in shown],
            "predicted": [guess[0][t].sigmoid() for t in shown],
            "true unit type": [unit_type[t] / polar.UNIT_CHANNELS for t in shown],
            "predicted type": [guess[1][t].argmax(0) / polar.UNIT_CHANNELS for t in shown],
            "true health": [hecs[t, 0] for t in shown],
            "predicted health": [guess[2][t, 0] for t in shown],
        }
        return rows, [f"t + 1 = {t + 1}" for t in shown]


LEARNING = BattleLearning()
