"""No memory: what can be said of the next frame from the views of this one; what others add to it is memory.

The codec and the skip of `WorldModel`, and nothing between them: the views near a query are read and decoded there."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from s2rm_data.core.check import require
from s2rm_data.models.codec import Encoder
from s2rm_data.models.config import ModelConfig
from s2rm_data.models.modules import Products
from s2rm_data.models.world_model import WorldModel


@dataclass(frozen=True, kw_only=True)
class NoMemoryConfig(ModelConfig):
    skip: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "skip", self.skip, "true: a model without memory has nothing but the skip")


class NoMemory(WorldModel):
    """State: (B, 0). Nothing is encoded: features of views go to the decoder as they are."""

    Config = NoMemoryConfig
    title, colour, marker, place = "No memory", "#999999", "P", 7
    is_reference = True

    def __init__(self, config: NoMemoryConfig) -> None:
        super().__init__(config, decoder_input=0, inject_position=True)
        assert isinstance(self.encoder, Encoder)
        self.encoder.linear = None

    def initial_state(self, batch_size: int) -> Tensor:
        return self.log_nearness.new_zeros(batch_size, 0)

    def prepare(self, e: Tensor, s: Tensor, view_mask: Tensor) -> Sequence[Tensor]:
        return e.flatten(2).unbind(1)

    def advance(self, encoded: Tensor, state: Tensor, products: Products) -> Tensor:
        return state


MODEL = NoMemory
