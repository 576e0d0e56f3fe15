"""S2RMC: spatially structured recurrent modules whose modules are Relational Memory Cores."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from s2rm_data.models.config import Count, Size
from s2rm_data.models.device import full_precision, full_products
from s2rm_data.models.modules import PLAIN, ModuleLinear, Products, RelationalMemory, start_equal
from s2rm_data.models.zoo._s2rm import S2RM, S2RMConfig


@dataclass(frozen=True, kw_only=True)
class S2RMCConfig(S2RMConfig):
    """RMC sizes from table tab:sc2_hparams. Assumption: the same for the balls, where the paper has no S2RMC."""

    heads: Count = 4
    head_size: Size = 64
    slots: Count = 4
    memory_key_size: Size = 64


class S2RMCState(NamedTuple):
    memory: Tensor  # (B, M, S, F) S slots of F = heads x head size features
    h: Tensor  # (B, M, H) the messages, a function of the memory


class S2RMC(S2RM):
    """Appendix app:s2rmc: the message h_m is a projection of the memory of module m; the inter-cell attention makes
    h-bar_m of the messages; the memory then attends over [M; x, h-bar_m] instead of [M; x].
    Assumption: x and h-bar_m are each projected to a row of the memory's width; the gates see x alone."""

    Config = S2RMCConfig
    title, colour, marker, place = "S2RMC", "#cc79a7", "s", 2
    small_fields = {
        "laptop": {"hidden_size": 64, "head_size": 16, "memory_key_size": 16},
        "smoke": {"hidden_size": 32, "gate_units": 16, "head_size": 8, "slots": 2, "memory_key_size": 8},
    }

    def __init__(self, config: S2RMCConfig) -> None:
        super().__init__(config)
        sizes = {"slots": config.slots, "heads": config.heads, "head_size": config.head_size}
        sizes |= {"input_size": config.encoding_size, "key_size": config.memory_key_size}
        self.memory = RelationalMemory(config.modules, **sizes)
        self.message = ModuleLinear(config.modules, config.slots * self.memory.features, config.hidden_size)
        self.h_bar_row = ModuleLinear(config.modules, config.hidden_size, self.memory.features)
        if config.equal_starts:
            for layer in (self.memory, self.message, self.h_bar_row):
                start_equal(layer)

    def initial_state(self, batch_size: int) -> S2RMCState:
        memory = self.memory.initial_memory(batch_size)
        with full_precision(memory), full_products():
            return self._state(memory, PLAIN)

    def hidden(self, state: S2RMCState) -> Tensor:
        return state.h

    def cell(self, u: Tensor, h_bar: Tensor, state: S2RMCState, products: Products) -> S2RMCState:
        x, gates = self.memory.project(u, products)
        rows = torch.stack([x, self.h_bar_row(h_bar, products)], 2)
        return self._state(self.memory(rows, gates, state.memory.transpose(0, 1), products), products)

    def _state(self, memory: Tensor, products: Products) -> S2RMCState:
        """From the memory, module first: (M, B, S, F)."""
        return S2RMCState(memory.transpose(0, 1), self.message(memory.flatten(2), products).transpose(0, 1))


MODEL = S2RMC
