"""A codec in one file: one matrix to encode, one to decode."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from s2rm_data.extend import Codec, ModelConfig, rows_of


class Encoder(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        height, width = config.image_size
        self.linear = nn.Linear(config.learning.view_channels * height * width + 2, config.encoding_size)

    def forward(self, views: Tensor, position: Tensor) -> Tensor:
        return self.linear(torch.cat([views.flatten(1).float(), position], 1))


class Decoder(nn.Module):
    def __init__(self, config: ModelConfig, hidden_size: int) -> None:
        super().__init__()
        self.shape = (config.learning.output_channels, *config.image_size)
        height, width = config.image_size
        self.linear = nn.Linear(hidden_size + 2, self.shape[0] * height * width)

    def forward(self, hidden: Tensor, position: Tensor, present: Tensor | None = None) -> Tensor:
        return self.linear(torch.cat(rows_of(hidden, position, present), 1)).unflatten(1, self.shape)


class Linear(Codec):
    takes_position = True

    def encoder(self, config: ModelConfig, *, position_size: int) -> Encoder:
        return Encoder(config)

    def decoder(self, config: ModelConfig, hidden_size: int, *, position_size: int) -> Decoder:
        return Decoder(config, hidden_size)


CODEC = Linear()
