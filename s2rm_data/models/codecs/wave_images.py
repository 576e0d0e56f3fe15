"""The codec `waves` for images of any kind: residual multi-layer perceptrons whose features turn with the position.

The encoder's features are turned by +k x at its end, the decoder's by -k x at its start (see `phases`).

Legend: N views, R hidden states, Q queries of each, P of them that exist, C channels, H x W pixels, U units.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from s2rm_data.models.codecs.mlp import UNITS_PER_WIDTH, ResidualBlock
from s2rm_data.models.codecs.phases import Waves, graded_waves, turned
from s2rm_data.models.codecs.rows import rows_of
from s2rm_data.models.config import ModelConfig

_OUTPUT_START = 0.3  # of torch's own start: with the gain, a full start would begin far from the rare pixels


def _waves(config: ModelConfig, units: int) -> Waves:
    return Waves(graded_waves(units // 2, config.wave_period * config.cell_size, 2 * max(config.arena_size)))


class ImageWaveEncoder(nn.Module):
    takes_position = True

    def __init__(self, config: ModelConfig, *, position_size: int) -> None:
        super().__init__()
        units = UNITS_PER_WIDTH * config.width
        self.image = nn.Linear(config.learning.view_channels * config.image_size[0] * config.image_size[1], units)
        self.block = ResidualBlock(units)
        self.waves = _waves(config, units)
        self.linear = nn.Linear(units, config.encoding_size)

    def forward(self, views: Tensor, position: Tensor) -> Tensor:
        """(N, C, H, W), (N, 2) -> (N, encoding_size). Views may be of any real dtype."""
        x = self.block(self.image(views.to(self.image.weight.dtype).flatten(1))).relu()
        return self.linear(turned(x, self.waves.phase(position)))


class ImageWaveDecoder(nn.Module):
    takes_position = True

    def __init__(self, config: ModelConfig, hidden_size: int, *, position_size: int) -> None:
        super().__init__()
        units = UNITS_PER_WIDTH * config.width
        self.image_shape = (config.learning.output_channels, *config.image_size)
        self.gain = config.output_gain
        self.hidden = nn.Linear(hidden_size, units)
        self.waves = _waves(config, units)
        self.block = ResidualBlock(units)
        self.weight = nn.Parameter(
            torch.empty(self.image_shape[0] * config.image_size[0] * config.image_size[1], units)
        )
        self.bias = nn.Parameter(torch.empty(self.image_shape[0], config.image_size[0] * config.image_size[1]))
        with torch.no_grad():
            bound = _OUTPUT_START / self.gain * units**-0.5
            self.weight.uniform_(-bound, bound)
            self.bias.copy_(config.learning.output_bias(config.output_bias)[:, None])

    def forward(self, hidden: Tensor, position: Tensor, present: Tensor | None = None) -> Tensor:
        """(R, hidden_size), (R, Q, 2), (P,) -> (P, C', H, W)."""
        x, position = rows_of(self.hidden(hidden), position, present)
        x = self.block(turned(x, -self.waves.phase(position))).relu()
        return nn.functional.linear(x, self.weight * self.gain, self.bias.flatten()).unflatten(-1, self.image_shape)
