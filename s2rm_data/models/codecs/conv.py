"""Residual convolutional encoder and decoder, for crops and (with polar convolutions) polar images.

The paper's figures of the layers are lost; kept is what its text says: seven layers with residual connections, the
position concatenated after the second convolution of the encoder and after the first layer of the decoder.

Legend: N views or images, R hidden states, Q queries of each, P of them that are decoded, C channels, H x W pixels
(polar: H radial, W angular cells), d position features, w width."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from s2rm_data.models.codec import Codec, Encoder, rows_of
from s2rm_data.models.config import ModelConfig
from s2rm_data.models.modules import uniform

# On a CPU, images go through in pieces of this many: larger ones leave the cache, and glibc's malloc gives their
# buffers back to the system and faults them in again at every step (measured: 1.4 times slower at 6,400).
CPU_CHUNK = 640


class Conv(nn.Conv2d):
    """A 3 x 3 convolution that keeps the image size (stride 1) or halves it, rounding up (stride 2).
    With `polar` the image is padded with zeros along the radius and circularly along the angle (appendix
    'Encoder and Decoder for Starcraft2'); with stride 1 it then commutes with rotations by whole angular cells."""

    def __init__(self, channels_in: int, channels_out: int, *, stride: int = 1, polar: bool = False) -> None:
        super().__init__(channels_in, channels_out, 3, stride=stride, padding=(1, 0 if polar else 1))
        self.polar = polar
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")
        assert self.bias is not None
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(pad_angle(x) if self.polar else x)


class _PadAngle(torch.autograd.Function):
    """Autograd would fill, copy and add three whole images for the three parts; here the gradient is one copy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.cat([x[..., -1:], x, x[..., :1]], -1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        inner = gradient[..., 1:-1].clone(memory_format=torch.preserve_format)
        inner[..., -1] += gradient[..., 0]
        inner[..., 0] += gradient[..., -1]
        return inner


def pad_angle(x: Tensor) -> Tensor:
    """One angular cell from the other side at either end: (N, C, H, W) -> (N, C, H, W + 2)."""
    padded: Tensor = _PadAngle.apply(x)
    return padded


class PositionMap(nn.Module):
    """What a 3 x 3 convolution adds to its output when the embedding s is concatenated to its input at every pixel.
    s is the same at all pixels, so that part of the convolution is one matrix from s to the output image (9 times
    cheaper); the matrix is made from the 3 x 3 weights, edges included. s is scaled by sqrt(d), to unit variance."""

    def __init__(self, position_size: int, channels_out: int, image_size: tuple[int, int], *, polar: bool) -> None:
        super().__init__()
        self.image_size, self.polar = image_size, polar
        # Assumption: the width of this start, small beside the features' own weights.
        self.weight = nn.Parameter(torch.randn(channels_out, position_size, 3, 3) * (9 * position_size) ** -0.5)

    def forward(self, x: Tensor, s: Tensor) -> Tensor:
        """x (N, C, H, W), the convolution of the features, plus the part of s (N, d); channels last in memory."""
        flat = x.permute(0, 2, 3, 1).flatten(1)
        return torch.addmm(flat, s, self.matrix()).view(-1, *self.image_size, x.shape[1]).permute(0, 3, 1, 2)

    def matrix(self) -> Tensor:
        """(d, H * W * C)."""
        channels, d = self.weight.shape[:2]
        ones = self.weight.new_ones(1, 1, *self.image_size)
        ones = pad_angle(ones) if self.polar else ones
        taps = F.conv2d(ones, self.weight.view(channels * d, 1, 3, 3), padding=(1, 0 if self.polar else 1))
        return taps.view(channels, d, -1).permute(1, 2, 0).reshape(d, -1) * d**0.5


class Grow(nn.Module):
    """A transposed convolution whose kernel equals its stride: a matrix at each pixel, then a shuffle of channels.
    Same function as nn.ConvTranspose2d(kernel_size=factors, stride=factors), several times cheaper on a CPU."""

    def __init__(self, channels_in: int, channels_out: int, factors: tuple[int, int]) -> None:
        super().__init__()
        self.factors, self.channels_out = factors, channels_out
        self.weight = uniform(factors[0] * factors[1] * channels_out, channels_in, fan_in=channels_in)
        self.bias = uniform(channels_out, fan_in=channels_in)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C', fH * H, fW * W), channels last in memory."""
        n, _, h, w = x.shape
        fh, fw = self.factors
        y = F.linear(x.permute(0, 2, 3, 1), self.weight, self.bias.repeat(fh * fw))
        y = y.view(n, h, w, fh, fw, self.channels_out)
        return y.permute(0, 1, 3, 2, 4, 5).reshape(n, h * fh, w * fw, self.channels_out).permute(0, 3, 1, 2)


def in_chunks(function: Callable[..., Tensor], *arguments: Tensor | None, size: int | None = None) -> Tensor:
    """function(*arguments), on a CPU in chunks along the first dimension."""
    first, size = next(a for a in arguments if a is not None), size or CPU_CHUNK
    if first.device.type != "cpu" or len(first) <= size:
        return function(*arguments)
    pieces = [[None] * -(-len(first) // size) if a is None else a.split(size) for a in arguments]
    return torch.cat([function(*piece) for piece in zip(*pieces, strict=True)])


def halved(size: int) -> int:
    return -(-size // 2)


class ConvEncoder(Encoder):
    """E: six convolutions and a linear layer. Crops go 11 -> 6 -> 3 pixels; polar images are halved once more.
    1 conv /2, 2 conv /2, [position], 3-4 residual block, 5 conv (/2 if polar), 6 residual conv, 7 linear."""

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

    def forward(self, views: Tensor, at: Tensor) -> Tensor:
        return in_chunks(super().forward, views, at)

    def features(self, views: Tensor, at: Tensor) -> Tensor:
        x = views.to(self.conv1.weight.dtype).contiguous(memory_format=torch.channels_last)
        x = self.conv2(self.conv1(x).relu_()).relu_()
        y = self.conv3(x)
        if self.position is not None:
            y = self.position(y, at)
        x = (x + self.conv4(y.relu_())).relu_()
        x = self.conv5(x).relu_()
        x = (x + self.conv6(x)).relu_()
        return x.permute(0, 2, 3, 1).flatten(1)


class ConvDecoder(nn.Module):
    """D: from a hidden state to the observation at a query, in seven layers.
    1 linear (a transposed convolution of one pixel), 2 conv [position], 3-4 residual block, 5 grow x 2, 6 residual
    conv, 7 grow x 2, then cut to the image size. Layer 1 and the hidden state's part of layer 2 do not depend on the
    query and are computed once for all queries of one state. A polar image is never cut along the angle: an angular
    size that is not a multiple of four grows by two once or not at all."""

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


class ConvCodec(Codec):
    encoder, decoder = ConvEncoder, ConvDecoder


CODEC = ConvCodec()
