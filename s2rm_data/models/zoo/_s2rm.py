"""Spatially Structured Recurrent Modules: what S2GRU and S2RMC share (section sec:s2rm).

Legend: B sequences, T steps, V views, Q queries, M modules, d embedding, E encoding, H hidden size of a module."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor, nn

from s2rm_data.core.check import above, at_least
from s2rm_data.models.attention import AttendedViews, CellWeights, InputAttention, InterCellAttention, output_attention
from s2rm_data.models.config import Count, ModelConfig, Size
from s2rm_data.models.embedding import covering_embeddings, spherical_kernel
from s2rm_data.models.modules import Products
from s2rm_data.models.world_model import WorldModel


@dataclass(frozen=True, kw_only=True)
class S2RMConfig(ModelConfig):
    """Values from tables tab:bb_hparams and tab:sc2_hparams unless marked; worlds give those that differ."""

    truncation: Annotated[float, at_least(-1, below=1)] = 0.6  # tau
    modules: Count = 10  # M
    hidden_size: Size = 128  # H
    bandwidth: Annotated[float, above(0, at_most=1e6)] = 1.0  # epsilon
    input_heads: Count = 2  # Theta (128, 2, 16)
    cell_heads: Count = 4  # Phi (128, 4, 16)
    key_size: Size = 16
    gate_units: Size = 64  # Assumption: hidden units of the gates' two-layer MLPs
    # Assumption: the literal reading gives encoder and decoder no position; it did not learn at small budgets.
    inject_position: bool = True
    # Divide c = W^L h by the row sums of W^L. The paper does not; W^L starts with a spectral radius of about two.
    normalise_rows: bool = False
    # All modules start with the same weights, so that what they hold adds up from the first step on.
    equal_starts: bool = False


class EncodedStep(NamedTuple):
    """One step's views, and what all steps share of the parameters."""

    views: AttendedViews
    cell: CellWeights


class EncodedSteps(Sequence[EncodedStep]):
    """Those of a window, whose views are stacked, time first."""

    def __init__(self, views: AttendedViews, cell: CellWeights) -> None:
        self.views, self.cell = views, cell
        self._each: list[EncodedStep] = []

    def __len__(self) -> int:
        return len(self.views.weight)

    def __getitem__(self, step: Any) -> Any:
        if not self._each:  # taken apart at once: the gradient of one step alone would be as large as that of all
            steps = zip(*(x.unbind(0) for x in self.views), strict=True)
            self._each = [EncodedStep(AttendedViews(*step), self.cell) for step in steps]
        return self._each[step]


class S2RM(WorldModel):
    """Subclasses give the modules F_m: `initial_state`, `cell` and `hidden`."""

    has_enclaves = True
    steadier = "normalise_rows=true"

    def __init__(self, config: S2RMConfig) -> None:
        super().__init__(config, decoder_input=config.hidden_size, inject_position=config.inject_position)
        self.s2rm_config = config
        sizes = {"key_size": config.key_size, "gate_units": config.gate_units, "hidden": config.hidden_size}
        self.input_attention = InputAttention(encoding=config.encoding_size, heads=config.input_heads, **sizes)
        self.cell_attention = InterCellAttention(heads=config.cell_heads, **sizes)
        start = covering_embeddings(config, config.modules)
        self.module_embedding = nn.Parameter(start.to(torch.get_default_device()))

    @abstractmethod
    def cell(self, u: Tensor, h_bar: Tensor, state: Any, products: Products) -> Any:
        """F_m of equation eq:rnns for all modules: u (M, B, E), h-bar (M, B, H), the state at t -> at t + 1."""

    @property
    def p(self) -> Tensor:
        """The modules' embeddings on the unit sphere, (M, d)."""
        return nn.functional.normalize(self.module_embedding, dim=-1)

    def z(self, p: Tensor, s: Tensor) -> Tensor:
        config = self.s2rm_config
        return spherical_kernel(p, s, bandwidth=config.bandwidth, truncation=config.truncation)

    def enclaves(self, position: Tensor) -> Tensor:
        """Z(P(x), p_m)."""
        return self.z(self.embedding(position), self.p).movedim(-1, 0)

    def prepare(self, e: Tensor, s: Tensor, view_mask: Tensor) -> Sequence[EncodedStep]:
        p = self.p
        views = self.input_attention.prepare(e, self.z(s, p), view_mask)
        return EncodedSteps(views, self.cell_attention.prepare(self.z(p, p), normalise=self.s2rm_config.normalise_rows))

    def advance(self, encoded: EncodedStep, state: Any, products: Products) -> Any:
        h = self.hidden(state)
        u = self.input_attention(h, encoded.views)
        h_bar = self.cell_attention(h, encoded.cell, products)
        return self.cell(u.transpose(0, 1), h_bar.transpose(0, 1), state, products)

    def attend(self, hidden: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        d = output_attention(self.z(s, self.p), hidden)
        return d.flatten(0, 2), s.flatten(0, 2).unsqueeze(1)
