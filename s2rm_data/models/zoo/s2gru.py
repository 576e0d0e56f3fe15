"""S2GRU: spatially structured recurrent modules whose modules are GRUs."""

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from s2rm_data.core.check import at_least
from s2rm_data.models.device import full_precision, full_products
from s2rm_data.models.modules import ModuleGRU, Products
from s2rm_data.models.zoo._s2gru_window import Weights, Window
from s2rm_data.models.zoo._s2rm import S2RM, S2RMConfig


@dataclass(frozen=True, kw_only=True)
class S2GRUConfig(S2RMConfig):
    # Assumption: h-bar is clamped to +-this. The paper has no such bound, and inside it nothing changes; but c = W^L h
    # and h~ may both amplify, and without it a model trained on 5-step windows reached 1e20 within 66 steps.
    hidden_limit: Annotated[float, at_least(1)] = 10.0  # a GRU's own states reach 1


class S2GRU(S2RM):
    """State: h (B, M, H), zero at the start. |h| <= hidden_limit: h' lies between tanh and the clamped h-bar."""

    Config = S2GRUConfig
    title, colour, marker, place = "S2GRU", "#d55e00", "o", 1
    small_fields = {"laptop": {"hidden_size": 64}, "smoke": {"hidden_size": 32, "gate_units": 16}}

    def __init__(self, config: S2GRUConfig) -> None:
        super().__init__(config)
        self.hidden_limit = config.hidden_limit
        self.gru = ModuleGRU(config.modules, config.encoding_size, config.hidden_size)
        if config.equal_starts:
            self.gru.start_equal()

    def initial_state(self, batch_size: int) -> Tensor:
        weight = self.gru.weight_hidden
        return weight.new_zeros(weight.shape[0], batch_size, weight.shape[1]).transpose(0, 1)

    def own_unroll(self, encoded: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        plain = self.fixed_shapes or torch.compiler.is_compiling() or not torch.is_grad_enabled()
        if plain or not encoded.views.weight.numel():
            return super().own_unroll(encoded, state)
        read, cell, gru = self.input_attention.gate, self.cell_attention.gate, self.gru
        outs = Weights(read.out, read.out_bias, cell.bias, cell.out, cell.out_bias, *gru.parameters())
        with full_precision(state), full_products():
            h = Window.apply(self.hidden_limit, state, *encoded.views, *encoded.cell, *outs)
        return h[1:].transpose(0, 1), h[-1]

    def cell(self, u: Tensor, h_bar: Tensor, state: Tensor, products: Products) -> Tensor:
        return self.gru(u, h_bar.clamp(-self.hidden_limit, self.hidden_limit), products).transpose(0, 1)


MODEL = S2GRU
