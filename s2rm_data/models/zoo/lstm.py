"""LSTM baseline: one LSTM on the sum of the encoded views."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from s2rm_data.models.config import Size
from s2rm_data.models.modules import ModuleLSTM, Products
from s2rm_data.models.zoo._additive import AdditiveConfig, AdditiveModel


@dataclass(frozen=True, kw_only=True)
class LSTMConfig(AdditiveConfig):
    hidden_size: Size = 512  # table tab:bb_hparams; worlds give their own


class LSTMState(NamedTuple):
    h: Tensor  # (B, R)
    c: Tensor  # (B, R)


class LSTM(AdditiveModel):
    Config = LSTMConfig
    title, colour, marker, place = "LSTM", "#0072b2", "^", 3
    small_fields = {"laptop": {"encoding_size": 192, "hidden_size": 448}, "smoke": {"hidden_size": 64}}

    def __init__(self, config: LSTMConfig) -> None:
        super().__init__(config, hidden_size=config.hidden_size)
        self.lstm = ModuleLSTM(1, config.encoding_size, config.hidden_size)

    def initial_state(self, batch_size: int) -> LSTMState:
        zeros = self.lstm.weight_hidden.new_zeros(batch_size, self.lstm.hidden_size)
        return LSTMState(zeros, zeros)

    def project(self, r: Tensor) -> Sequence[Tensor]:
        return self.lstm.project(r.flatten(0, 1).unsqueeze(0)).view(*r.shape[:2], -1).unbind(0)

    def advance(self, encoded: Tensor, state: LSTMState, products: Products) -> LSTMState:
        h, c = self.lstm(encoded.unsqueeze(0), state.h.unsqueeze(0), state.c.unsqueeze(0), products)
        return LSTMState(h.squeeze(0), c.squeeze(0))

    def hidden(self, state: LSTMState) -> Tensor:
        return state.h


MODEL = LSTM
