"""Enclaves: Z(P(x), p_m), how much each module of an S2RM answers for each position (figure bb_enclaves)."""

# M modules, S x S whole positions of the arena

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from s2rm_data.evaluation.runs import Run


def enclave_maps(runs: Sequence[Run]) -> dict[str, NDArray[np.float32]]:
    """(M, S, S), [module, y, x], of every run whose model has enclaves."""
    maps = {}
    for run in runs:
        enclaves = getattr(run.model, "enclaves", None)
        if enclaves is not None:
            width, height = (int(extent) for extent in run.model.config.arena_size)
            y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
            device = next(run.model.parameters()).device
            with torch.inference_mode():
                found = enclaves(torch.stack([x, y], -1).float().to(device))
            maps[run.name] = found.float().cpu().numpy()
    return maps


def enclave_scores(maps: NDArray[np.float32]) -> dict[str, float]:
    """How the modules share the arena: what any of them covers, how many cover a place, how large one's part is."""
    covered = maps > 0
    return {
        "modules": float(len(maps)),
        "covered_share": float(covered.any(0).mean()),
        "modules_per_position": float(covered.sum(0).mean()),
        "largest_share_of_one_module": float(covered.mean((1, 2)).max()),
        "idle_modules": float((~covered.any((1, 2))).sum()),
    }
