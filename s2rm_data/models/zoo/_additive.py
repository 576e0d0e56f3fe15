"""The baselines' frame: views summed into one vector, one recurrent state, a decoder that is told the query position.

    r_t = sum_a E(O_t^a, s_t^a)         (equation eq:additive_agg)
    h_{t+1} = F(r_t, h_t)
    O^q_{t+1} = D(h_{t+1}, s^q)         (equation eq:context_query)

Legend: B sequences, T steps, V views, Q queries, E encoding, d embedding, R hidden size."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from s2rm_data.models.config import ModelConfig, Size
from s2rm_data.models.world_model import WorldModel


@dataclass(frozen=True, kw_only=True)
class AdditiveConfig(ModelConfig):
    # Assumption: r_t holds all views in one vector, so it is given the width of the ball baselines' states.
    encoding_size: Size = 512


class AdditiveModel(WorldModel):
    """Subclasses give `initial_state`, `project` and `advance`, and `hidden` where it is not all of the state."""

    def __init__(self, config: ModelConfig, *, hidden_size: int) -> None:
        super().__init__(config, decoder_input=hidden_size, inject_position=True)

    @abstractmethod
    def project(self, r: Tensor) -> Sequence[Any]:
        """What of the dynamics needs no state: r (T, B, E) -> one encoding per step."""

    def prepare(self, e: Tensor, s: Tensor, view_mask: Tensor) -> Sequence[Any]:
        r = torch.where(view_mask.unsqueeze(-1), e, 0.0).sum(2)
        return self.project(r.transpose(0, 1).contiguous())
