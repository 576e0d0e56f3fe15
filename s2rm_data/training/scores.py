"""Validation: loss, scores, and the scores of the references beside them, on windows that are always the same."""

from dataclasses import dataclass
from typing import Any

import torch

from s2rm_data.core.progress import Progress
from s2rm_data.learning import FixedBatches
from s2rm_data.learning.batch import map_tensors
from s2rm_data.learning.world_learning import Learning
from s2rm_data.models import WorldModel
from s2rm_data.training.processes import Processes


@dataclass(frozen=True, kw_only=True)
class Validation:
    loss: float
    scores: dict[str, float]


def validate(
    model: WorldModel, learning: Learning, batches: FixedBatches, processes: Processes, *,
    autocast: Any = None, progress: Progress | None = None,
) -> Validation:  # fmt: skip
    """Loss and scores of one-step-ahead predictions; every process takes its share and gets the whole result."""
    device = batches.source.device
    counts = learning.no_counts(device)
    loss_sum = torch.zeros(2, dtype=torch.float64, device=device)
    with torch.no_grad():
        for batch in batches:
            with autocast() if autocast else torch.autocast(device.type, enabled=False):
                prediction = model(batch)
                loss = model.loss(prediction, batch)
            count = batch.query_mask.sum()
            loss_sum += torch.stack([loss.double() * count, count.double()])
            counts = counts.plus(learning.count(batches.source, prediction, batch))
            if progress:
                progress.advance(len(batch.query_mask))
    total, count = processes.total(loss_sum).tolist()
    return Validation(loss=total / max(count, 1), scores=map_tensors(counts, processes.total).scores())


def reference_scores(
    learning: Learning, batches: FixedBatches, processes: Processes, *, progress: Progress | None = None
) -> dict[str, dict[str, float]]:
    """Scores of what needs no model, by name."""
    found = {name: learning.no_counts(batches.source.device) for name in learning.references}
    for number, request in enumerate(batches.requests()):
        for name, counts in learning.reference_counts(batches.source, request).items():
            found[name] = found[name].plus(counts)
        if progress:
            progress.advance(min(batches.batch_size, batches.sequences - number * batches.batch_size))
    return {name: learning.reference_scores(map_tensors(own, processes.total)) for name, own in found.items()}
