"""Residual convolutional encoder and decoder, for crops and (with polar convolutions) polar images.

The paper's figures of the layers are lost; kept is what its text says: seven layers with residual connections, the
position concatenated after the second convolution of the encoder and after the first layer of the decoder.

Legend: N views, R hidden states, Q queries of each, P of them that are decoded, C channels, H x W pixels, d position
features, w width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from s2rm_data.models.codecs.convolution import Conv, Grow, PositionMap, in_chunks
from s2rm_data.models.codecs.rows import rows_of
from s2rm_data.models.config import ModelConfig


def halved(size: int) -> int:
    return -(-size // 2)


class ConvEncoder(nn.Module):
    """E: six convolutions and a linear layer. Crops go 11 -> 6 -> 3 pixels; polar images are halved once more.

    1 conv /2, 2 conv /2, [position], 3-4 residual block, 5 conv (/2 if polar), 6 residual conv, 7 linear.
    """

    takes_position = False

    def __init__(self, config: ModelConfig, *, position_size: int) -> None:
        super().__init__()
        polar, w = config.learning.wraps, config.width
        size = (halved(halved(config.image_size[0])), halved(halved(config.image_size[1])))
        final = halved(size[0]) * halved(size[1]) if polar else size[0] * size[1]
        self.conv1 = Conv(config.learning.view_channels, w, stride=2, polar=polar)
        self.conv2 = Conv(w, w, stride=2, polar=polar)
        self.conv3 = Conv(w, w, polar=polar)
        self.position = PositionMap(position_size, w, size, polar=polar) if position_size else None
        self.conv4 = Conv(w, w, polar=polar)
        self.conv5 = Conv(w, w, stride=2 if polar else 1, polar=polar)
        self.conv6 = Conv(w, w, polar=polar)
        self.linear = nn.Linear(w * final, config.encoding_size)

    def forward(self, views: Tensor, s: Tensor | None) -> Tensor:
        """(N, C, H, W), (N, d) -> (N, encoding_size). Views may be of any real dtype."""
        return in_chunks(self._encode, views, s if self.position else None)

    def _encode(self, views: Tensor, s: Tensor | None) -> Tensor:
        x = views.to(self.conv1.weight.dtype).contiguous(memory_format=torch.channels_last)
        x = self.conv2(self.conv1(x).relu_()).relu_()
        y = self.conv3(x)
        if self.position is not None and s is not None:
            y = self.position(y, s)
        x = (x + self.conv4(y.relu_())).relu_()
        x = self.conv5(x).relu_()
        x = (x + self.conv6(x)).relu_()
        return self.linear(x.permute(0, 2, 3, 1).flatten(1))


class ConvDecoder(nn.Module):
    """D: from a hidden state to the observation at a query, in seven layers.

    1 linear (a transposed convolution of one pixel), 2 conv [position], 3-4 residual block, 5 grow x 2, 6 residual
    conv, 7 grow x 2, then cut to the image size. Layer 1 and the hidden state's part of layer 2 do not depend on the
    query and are computed once for all queries of one state. A polar image is never cut along the angle: an angular
    size that is not a multiple of four grows by two once or not at all.
    """

    takes_position = False

    def __init__(self, config: ModelConfig, hidden_size: int, *, position_size: int) -> None:
        super().__init__()
        polar, self.width = config.learning.wraps, config.width
        self.image_size = height, width = config.image_size
        grow_angle = [2 if width % 4 == 0 else 1, 2 if width % 2 == 0 else 1] if polar else [2, 2]
        self.base = (halved(halved(height)), -(-width // (grow_angle[0] * grow_angle[1])))
        self.linear1 = nn.Linear(hidden_size, self.width * self.base[0] * self.base[1])
        self.conv2 = Conv(self.width, self.width, polar=polar)
        self.position = PositionMap(position_size, self.width, self.base, polar=polar) if position_size else None
        self.conv3 = Conv(self.width, self.width, polar=polar)
        self.conv4 = Conv(self.width, self.width, polar=polar)
        self.grow5 = Grow(self.width, self.width, (2, grow_angle[0]))
        self.conv6 = Conv(self.width, self.width, polar=polar)
        self.grow7 = Grow(self.width, config.learning.output_channels, (2, grow_angle[1]))
        with torch.no_grad():
            self.grow7.bias.copy_(config.learning.output_bias(config.output_bias))

    def forward(self, hidden: Tensor, s: Tensor, present: Tensor | None = None) -> Tensor:
        """(R, hidden_size), (R, Q, d), (P,) -> (P, C', H, W). Where no position is injected, s counts the queries."""
        x, s = rows_of(in_chunks(self._unfold, hidden), s, present)
        return in_chunks(self._draw, x, s if self.position else None)

    def _unfold(self, hidden: Tensor) -> Tensor:
        """(R, hidden_size) -> (R, C, *base), layer 2 before its activation."""
        x = self.linear1(hidden).relu_().view(-1, *self.base, self.width).permute(0, 3, 1, 2)
        return self.conv2(x)

    def _draw(self, x: Tensor, s: Tensor | None) -> Tensor:
        if self.position is not None and s is not None:
            x = self.position(x, s)
        x = x.relu()
        x = (x + self.conv4(self.conv3(x).relu_())).relu_()
        x = self.grow5(x).relu_()
        x = (x + self.conv6(x)).relu_()
        return self.grow7(x)[..., : self.image_size[0], : self.image_size[1]]
