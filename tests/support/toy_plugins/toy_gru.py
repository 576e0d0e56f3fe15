"""Toy: one GRU on the sum of the encoded views. A whole model in one file, as a plug-in brings it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from s2rm_data.extend import ModelConfig, Size, WorldModel

__version__ = "0.3"


@dataclass(frozen=True, kw_only=True)
class ToyConfig(ModelConfig):
    hidden_size: Size = 64


class ToyGRU(WorldModel):
    Config = ToyConfig
    title = "Toy GRU"
    small_fields = {"smoke": {"hidden_size": 12}}

    def __init__(self, config: ToyConfig) -> None:
        super().__init__(config, decoder_input=config.hidden_size, inject_position=True)
        self.gru = nn.GRUCell(config.encoding_size, config.hidden_size)

    def initial_state(self, batch_size: int) -> Tensor:
        return self.gru.weight_hh.new_zeros(batch_size, self.gru.hidden_size)

    def prepare(self, e: Tensor, s: Tensor, view_mask: Tensor) -> tuple[Tensor, ...]:
        return e.where(view_mask.unsqueeze(-1), 0.0).sum(2).unbind(1)

    def advance(self, encoded: Tensor, state: Tensor, products: object) -> Tensor:
        return self.gru(encoded, state)

    def hidden(self, state: Tensor) -> Tensor:
        return state

    def attend(self, hidden: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        return hidden.flatten(0, 1), s.flatten(0, 1)


MODEL = ToyGRU
