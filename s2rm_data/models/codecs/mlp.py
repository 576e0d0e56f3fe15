"""Residual multi-layer perceptrons as encoder and decoder, for small budgets.

Legend: N views, R hidden states, Q queries each, P of them decoded, C channels, H x W pixels, d position features."""

import torch
from torch import Tensor, nn

from s2rm_data.models.codec import Codec, Encoder, rows_of, start_through
from s2rm_data.models.config import ModelConfig

# Assumption: units a `width` of 32 stands for, so that one field sizes both codecs.
UNITS_PER_WIDTH = 8


class ResidualBlock(nn.Module):
    def __init__(self, units: int) -> None:
        super().__init__()
        self.inner = nn.Linear(units, units)
        self.outer = nn.Linear(units, units)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.outer(self.inner(x.relu()).relu_())


class MLPEncoder(Encoder):
    def __init__(self, config: ModelConfig, *, position_size: int) -> None:
        super().__init__()
        units = UNITS_PER_WIDTH * config.width
        self.image = nn.Linear(config.learning.view_channels * config.image_size[0] * config.image_size[1], units)
        self.position = nn.Linear(position_size, units, bias=False) if position_size else None
        self.blocks = nn.Sequential(ResidualBlock(units), ResidualBlock(units))
        self.linear = nn.Linear(units, config.encoding_size)

    def features(self, views: Tensor, at: Tensor) -> Tensor:
        x = self.image(views.to(self.image.weight.dtype).flatten(1))
        if self.position is not None:
            x = x + self.position(at * at.shape[-1] ** 0.5)
        return self.blocks(x).relu()


class MLPDecoder(nn.Module):
    def __init__(self, config: ModelConfig, hidden_size: int, *, position_size: int) -> None:
        super().__init__()
        units = UNITS_PER_WIDTH * config.width
        self.image_shape = (config.learning.output_channels, *config.image_size)
        self.hidden = nn.Linear(hidden_size, units)
        start_through(self.hidden, units if config.skip else 0)
        self.position = nn.Linear(position_size, units, bias=False) if position_size else None
        self.blocks = nn.Sequential(ResidualBlock(units), ResidualBlock(units))
        self.linear = nn.Linear(units, self.image_shape[0] * config.image_size[0] * config.image_size[1])
        with torch.no_grad():
            bias = config.learning.output_bias(config.output_bias)
            self.linear.bias.view(self.image_shape[0], -1).copy_(bias[:, None])

    def forward(self, hidden: Tensor, s: Tensor, present: Tensor | None = None) -> Tensor:
        """(R, hidden_size), (R, Q, d), (P,) -> (P, C', H, W). Where no position is injected, s counts the queries."""
        x, s = rows_of(self.hidden(hidden), s, present)
        if self.position is not None:
            x = x + self.position(s * s.shape[-1] ** 0.5)
        return self.linear(self.blocks(x).relu()).unflatten(-1, self.image_shape)


class MLPCodec(Codec):
    encoder, decoder = MLPEncoder, MLPDecoder


CODEC = MLPCodec()
