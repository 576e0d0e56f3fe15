"""RMC baseline: a Relational Memory Core on the sum of the encoded views."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from s2rm_data.models.config import Count, Size
from s2rm_data.models.modules import Products, RelationalMemory
from s2rm_data.models.zoo._additive import AdditiveConfig, AdditiveModel


@dataclass(frozen=True, kw_only=True)
class RMCConfig(AdditiveConfig):
    key_size: Size = 128  # table tab:bb_hparams; worlds give their own
    heads: Count = 4  # both tables
    head_size: Size = 128
    slots: Count = 1


class RMC(AdditiveModel):
    """State: the memory (B, S, F), S slots of F = heads x head size features."""

    Config = RMCConfig
    title, colour, marker, place = "RMC", "#009e73", "D", 4
    small_fields = {
        "laptop": {"encoding_size": 192, "head_size": 80, "key_size": 32},
        "smoke": {"head_size": 16, "key_size": 16},
    }

    def __init__(self, config: RMCConfig) -> None:
        super().__init__(config, hidden_size=config.slots * config.heads * config.head_size)
        sizes = {name: getattr(config, name) for name in ("slots", "heads", "head_size", "key_size")}
        self.memory = RelationalMemory(1, input_size=config.encoding_size, **sizes)

    def initial_state(self, batch_size: int) -> Tensor:
        return self.memory.initial_memory(batch_size).squeeze(0)

    def project(self, r: Tensor) -> Sequence[tuple[Tensor, Tensor]]:
        row, gates = self.memory.project(r.flatten(0, 1).unsqueeze(0))
        return list(zip(*(x.view(*r.shape[:2], -1).unbind(0) for x in (row, gates)), strict=True))

    def advance(self, encoded: tuple[Tensor, Tensor], state: Tensor, products: Products) -> Tensor:
        row, gates = encoded
        return self.memory(row[None, :, None], gates[None], state[None], products).squeeze(0)

    def hidden(self, state: Tensor) -> Tensor:
        return state.flatten(1)


MODEL = RMC
