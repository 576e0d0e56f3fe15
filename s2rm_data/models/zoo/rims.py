"""RIMs baseline: Recurrent Independent Mechanisms (Goyal et al. 2019) on the sum of the encoded views.

Each block attends over the input and a null input; the k_A blocks that look at the null least are active, update
their LSTM and read the other blocks; the others keep their state and send no gradient to their weights. What is read
of the others is the state they keep or, with `read_updated`, the update they do not take.

Legend: B batch, T steps, N blocks, H hidden size of a block, E encoding, D key size, C communication heads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from s2rm_data.core.check import require
from s2rm_data.models.config import Count, Size
from s2rm_data.models.modules import PLAIN, ModuleLSTM, Products, uniform
from s2rm_data.models.zoo._additive import AdditiveConfig, AdditiveModel


@dataclass(frozen=True, kw_only=True)
class RIMsConfig(AdditiveConfig):
    """Table tab:bb_hparams. Assumption: the same for StarCraft II, where the paper reports no RIMs."""

    blocks: Count = 6  # k_T
    active_blocks: Count = 5  # k_A
    hidden_size: Size = 510  # h_size; Assumption: of all blocks together, 6 x 85
    input_key_size: Size = 32
    input_value_size: Size = 400
    # Assumption: heads and sizes of the communication as in the public implementation with the table's field names.
    comm_heads: Count = 4
    comm_key_size: Size = 32
    # What active blocks read of inactive ones: the states these keep (the text of Goyal et al.), or the states that
    # their LSTMs would have given them (the authors' code and the public implementation with the table's field names).
    read_updated: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "hidden_size", self.hidden_size % self.blocks == 0, f"a multiple of blocks ({self.blocks})")
        require(self, "active_blocks", self.active_blocks <= self.blocks, f"at most blocks ({self.blocks})")


class RIMsState(NamedTuple):
    h: Tensor  # (B, N, H)
    c: Tensor  # (B, N, H)


class EncodedInput(NamedTuple):
    key: Tensor  # (B, D) of the input; the null input's is zero
    gates: Tensor  # (N, B, 4H) what the LSTMs make of the input at full attention, bias left out


class RIMs(AdditiveModel):
    Config = RIMsConfig
    title, colour, marker, place = "RIMs", "#e69f00", "v", 5
    small_fields = {
        "laptop": {"encoding_size": 192, "hidden_size": 450, "input_value_size": 256},
        "smoke": {"hidden_size": 60, "input_value_size": 32},
    }

    def __init__(self, config: RIMsConfig) -> None:
        super().__init__(config, hidden_size=config.hidden_size)
        self.rims_config = config
        blocks, size = config.blocks, config.hidden_size // config.blocks
        self.lstm = ModuleLSTM(blocks, config.input_value_size, size)
        self.input_query = uniform(blocks, size, config.input_key_size, fan_in=size)
        self.input_key = uniform(config.encoding_size, config.input_key_size, fan_in=config.encoding_size)
        self.input_value = uniform(config.encoding_size, config.input_value_size, fan_in=config.encoding_size)
        comm = config.comm_heads * config.comm_key_size
        # per block: queries, keys and values side by side; values of each head at the block's own width, summed
        self.comm = uniform(blocks, size, 2 * comm + config.comm_heads * size, fan_in=size)

    def initial_state(self, batch_size: int) -> RIMsState:
        blocks, size, _ = self.lstm.weight_hidden.shape
        zeros = self.lstm.weight_hidden.new_zeros(blocks, batch_size, size).transpose(0, 1)
        return RIMsState(zeros, zeros)

    def project(self, r: Tensor) -> Sequence[EncodedInput]:
        """The null's value is zero, so a block's input is its attention times one value: W_i of it leaves the loop."""
        steps, batch, _ = r.shape
        value = (r @ self.input_value).flatten(0, 1)
        gates = (value @ self.lstm.weight_input).unflatten(1, (steps, batch))  # (N, T, B, 4H)
        key = r @ self.input_key * self.rims_config.input_key_size**-0.5
        return [EncodedInput(*step) for step in zip(key.unbind(0), gates.unbind(1), strict=True)]

    def advance(self, encoded: EncodedInput, state: RIMsState, products: Products) -> RIMsState:
        h, c = state.h.transpose(0, 1), state.c.transpose(0, 1)
        # softmax over {null: logit 0, input: q.k}: the attention on the input is a sigmoid
        attention = (products(h, self.input_query) * encoded.key).sum(-1, keepdim=True).sigmoid()  # (N, B, 1)
        active = self.active(attention)
        new_h, new_c = self.lstm(torch.addcmul(self.lstm.bias, attention, encoded.gates), h, c, products)
        read = new_h if self.rims_config.read_updated else torch.where(active, new_h, h)
        new_h = torch.where(active, new_h + self.communicate(read, active, products), h)
        return RIMsState(new_h.transpose(0, 1), torch.where(active, new_c, c).transpose(0, 1))

    def active(self, attention: Tensor) -> Tensor:
        """The k_A blocks with the most attention on the input: (N, B, 1) -> (N, B, 1) bool."""
        chosen = attention.detach().topk(self.rims_config.active_blocks, 0).indices
        return torch.zeros_like(attention, dtype=torch.bool).scatter(0, chosen, True)

    def communicate(self, h: Tensor, active: Tensor, products: Products = PLAIN) -> Tensor:
        """What each block reads of all blocks: h (N, B, H), active (N, B, 1) -> (N, B, H).
        Inactive blocks are read, but keys and values of theirs pass no gradient."""
        config = self.rims_config
        blocks, batch, size = h.shape
        keys = config.comm_heads * config.comm_key_size
        query, read = products(h, self.comm).split([keys, keys + config.comm_heads * size], -1)
        read = torch.where(active, read, read.detach())
        key, value = read.split([keys, config.comm_heads * size], -1)
        q, k, v = (x.reshape(blocks, batch, config.comm_heads, -1).permute(1, 2, 0, 3) for x in (query, key, value))
        return F.scaled_dot_product_attention(q, k, v).sum(1).transpose(0, 1)

    def hidden(self, state: RIMsState) -> Tensor:
        return state.h.flatten(1)


MODEL = RIMs
