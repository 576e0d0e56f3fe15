"""TTO, the time-travelling oracle: a two-layer MLP of the summed views of the frame it is asked to predict.

h_{t+1} = F_TTO(r_{t+1}) (section 'Baseline Methods'). It has no dynamics; it shows how far the sum over views and the
query mechanism carry. See `Batch` for how it is given the next views and what it means when they equal the queries."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from s2rm_data.models.config import Size
from s2rm_data.models.modules import Products
from s2rm_data.models.zoo._additive import AdditiveConfig, AdditiveModel


@dataclass(frozen=True, kw_only=True)
class TTOConfig(AdditiveConfig):
    hidden_size: Size = 512  # 'MLP hidden size' of both tables; Assumption: of its output too


class TTO(AdditiveModel):
    """State: h (B, R); the state before a step is not read."""

    Config = TTOConfig
    title, colour, marker, place = "TTO", "#56b4e9", "*", 6
    small_fields = {"laptop": {"encoding_size": 192}, "smoke": {"hidden_size": 64}}
    needs_next_views = True

    def __init__(self, config: TTOConfig) -> None:
        super().__init__(config, hidden_size=config.hidden_size)
        self.hidden_size = size = config.hidden_size
        self.mlp = nn.Sequential(nn.Linear(config.encoding_size, size), nn.ReLU(), nn.Linear(size, size))

    def initial_state(self, batch_size: int) -> Tensor:
        return next(self.mlp.parameters()).new_zeros(batch_size, self.hidden_size)

    def project(self, r: Tensor) -> Sequence[Tensor]:
        return self.mlp(r).unbind(0)

    def advance(self, encoded: Tensor, state: Tensor, products: Products) -> Tensor:
        return encoded


MODEL = TTO
