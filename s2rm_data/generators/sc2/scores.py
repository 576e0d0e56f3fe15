"""StarCraft II scores: friendly-marker F1, unit-type macro F1, negative mean squared error of HECS, log likelihood."""

# B sequences, T steps, Q queries, I x J cells

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from s2rm_data.generators.sc2.images import UNIT_CLASSES
from s2rm_data.metrics import BinaryCounts, ClassCounts


class PolarCounts(NamedTuple):
    """Pooled over queries and cells. The sums are float64; `cells` is how many cells they run over."""

    friendly: BinaryCounts
    unit_type: ClassCounts
    friendly_bce: Tensor
    unit_type_ce: Tensor
    squared_error: Tensor
    cells: Tensor

    @classmethod
    def of(
        cls,
        logits: Sequence[Tensor],
        targets: Sequence[Tensor],
        mask: Tensor,
    ) -> Self:
        """logits: friendly (B, T, Q, I, J), unit type (B, T, Q, 10, I, J), HECS (B, T, Q, 4, I, J), not a logit;
        targets: the same with classes (B, T, Q, I, J) for the unit type; mask (B, T, Q).
        """
        friendly, unit_type, hecs = (part.float() for part in logits)
        true_friendly, true_type, true_hecs = targets
        where = mask[..., None, None]
        classes = unit_type.shape[-3]
        bce = F.binary_cross_entropy_with_logits(friendly, true_friendly.float(), reduction="none")
        nll = -unit_type.log_softmax(-3).gather(-3, true_type.long().unsqueeze(-3)).squeeze(-3)
        square = (hecs - true_hecs.float()).square().mean(-3)
        sums = [torch.where(where, values, 0.0).sum(dtype=torch.float64) for values in (bce, nll, square)]
        likeliest = unit_type.max(-3).indices  # argmax over this dimension is five times slower on a CPU
        return cls(
            friendly=BinaryCounts.of(friendly > 0, true_friendly, where),
            unit_type=ClassCounts.of(likeliest, true_type, where, classes),
            friendly_bce=sums[0],
            unit_type_ce=sums[1],
            squared_error=sums[2],
            cells=where.expand(bce.shape).sum(),
        )

    @classmethod
    def zero(cls, device: torch.device | str = "cpu") -> Self:
        bce, ce, square = torch.zeros(3, dtype=torch.float64, device=device)
        cells = torch.zeros((), dtype=torch.int64, device=device)
        return cls(BinaryCounts.zero(device), ClassCounts.zero(UNIT_CLASSES, device), bce, ce, square, cells)

    def plus(self, other: PolarCounts) -> Self:
        return type(self)(
            self.friendly.plus(other.friendly),
            self.unit_type.plus(other.unit_type),
            *(a + b for a, b in zip(self[2:], other[2:], strict=True)),
        )

    def scores(self) -> dict[str, float]:
        """Names as in the paper's table: FM-F1, UT-F1, NMSE (the negative error, not a normalised one), LL."""
        cells = max(int(self.cells), 1)
        bce, ce, square = (float(value) / cells for value in (self.friendly_bce, self.unit_type_ce, self.squared_error))
        return {
            "fm_f1": self.friendly.f1,
            "fm_balanced_accuracy": self.friendly.balanced_accuracy,
            "ut_f1": self.unit_type.macro_f1(background=True),
            "ut_f1_units": self.unit_type.macro_f1(background=False),
            "nmse": -square,
            "ll": -(bce + ce + square),
        }
