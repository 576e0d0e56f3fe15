"""The codec `waves`: positions as phases of plane waves over the arena, and the turning of features by them.

A feature that rides on the wave exp(i k x) says where it is by its phase. Turning the features of a view by +k x moves
them from the view's own frame into the arena's, where those of several views add up; turning what the state holds by
-k x moves it into the frame of a query. Positions that are only added to features have to be multiplied by a network
that must first learn to multiply.

For images of any kind, the encoder's features are turned by +k x at its end, the decoder's by -k x at its start.

In images of cells that are mostly empty, each occupied cell is a thing at a known place: the view's position plus the
cell's offset. The encoder makes features of the cell, lets them ride on waves taken at that place and adds the cells
up, so that what several views show of one thing adds up in phase. The decoder turns the waves back to the query's
position and to each of its cells, where one small network, shared by all cells, reads them. Cells that hold nothing are
not read: of the terrain, the encoder sees what lies under the things.

Legend: N views or rows, R hidden states, Q queries of each, P of them decoded, C channels, H x W pixels or I x J cells,
K occupied cells, U units (two per wave; real parts come first, imaginary parts second), F features of a cell."""

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from s2rm_data.core.errors import UsageError
from s2rm_data.models.codec import Codec, Encoder, rows_of, start_through
from s2rm_data.models.codecs.conv import in_chunks
from s2rm_data.models.codecs.mlp import UNITS_PER_WIDTH, ResidualBlock
from s2rm_data.models.config import ModelConfig

_SEED = 1  # waves are the same for all models and seeds, so that a file of weights need not hold them


def wave_vectors(count: int, shortest: float, longest: float | None = None) -> Tensor:
    """Wave vectors (count, 2) of any direction, their periods log-uniform between the two; without a longest, uniform
    in the disc whose edge is the wave of the shortest period."""
    random = torch.Generator().manual_seed(_SEED)
    share, turn = (torch.rand(count, generator=random, device="cpu") for _ in range(2))
    length = 2 * math.pi / shortest * share.sqrt()
    if longest is not None:
        length = 2 * math.pi / (shortest * (longest / shortest) ** share)
    angle = turn * 2 * math.pi
    return length[:, None] * torch.stack([angle.cos(), angle.sin()], -1)


class Waves(nn.Module):
    """Fixed wave vectors k."""

    vectors: Tensor

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.register_buffer("vectors", vectors.to(torch.get_default_device()), persistent=False)

    def phase(self, position: Tensor) -> Tensor:
        """k x: (..., 2) -> (..., U / 2).
        Not as a matrix product, which mixed precision would round to a few digits: phases go up to hundreds."""
        x, y = position.unsqueeze(-2).unbind(-1)
        return torch.addcmul(x * self.vectors[:, 0], y, self.vectors[:, 1])


def turned(x: Tensor, phase: Tensor) -> Tensor:
    """x (..., U) as complex numbers, times exp(i phase), phase (..., U / 2), which gets no gradient."""
    cosine, sine = phase.cos(), phase.sin()
    if not torch.compiler.is_compiling():
        return _Turned.apply(x, cosine, sine)
    real, imaginary = x.chunk(2, -1)
    return torch.cat([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)


class _Turned(torch.autograd.Function):
    """The same in four passes over memory, and in four back: the gradient is turned the other way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        ctx.save_for_backward(cosine, sine)
        return _rotated(x, cosine, sine, 1.0)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        cosine, sine = ctx.saved_tensors
        return _rotated(gradient, cosine, sine, -1.0), None, None


def _rotated(x: Tensor, cosine: Tensor, sine: Tensor, sign: float) -> Tensor:
    turned = x.new_empty(x.shape, dtype=torch.promote_types(x.dtype, cosine.dtype))
    real, imaginary = x.chunk(2, -1)
    for part, first, second, way in ((0, real, imaginary, -sign), (1, imaginary, real, sign)):
        torch.mul(first, cosine, out=turned.chunk(2, -1)[part]).addcmul_(second, sine, value=way)
    return turned


_IMAGE_OUTPUT_START = 0.3  # of torch's own start: with the gain, a full start would begin far from the rare pixels


def _image_waves(config: ModelConfig, units: int) -> Waves:
    return Waves(wave_vectors(units // 2, config.wave_period * config.cell_size, 2 * max(config.arena_size)))


class ImageWaveEncoder(Encoder):
    def __init__(self, config: ModelConfig, *, position_size: int) -> None:
        super().__init__()
        units = UNITS_PER_WIDTH * config.width
        self.image = nn.Linear(config.learning.view_channels * config.image_size[0] * config.image_size[1], units)
        self.block = ResidualBlock(units)
        self.waves = _image_waves(config, units)
        self.linear = nn.Linear(units, config.encoding_size)

    def features(self, views: Tensor, at: Tensor) -> Tensor:
        x = self.block(self.image(views.to(self.image.weight.dtype).flatten(1))).relu_()
        return turned(x, self.waves.phase(at))


class ImageWaveDecoder(nn.Module):
    def __init__(self, config: ModelConfig, hidden_size: int, *, position_size: int) -> None:
        super().__init__()
        units = UNITS_PER_WIDTH * config.width
        self.image_shape = channels, height, width = config.learning.output_channels, *config.image_size
        self.gain = config.output_gain
        self.hidden = nn.Linear(hidden_size, units)
        start_through(self.hidden, units if config.skip else 0)
        self.waves = _image_waves(config, units)
        self.block = ResidualBlock(units)
        self.weight = nn.Parameter(torch.empty(channels * height * width, units))
        self.bias = nn.Parameter(torch.empty(channels, height * width))
        with torch.no_grad():
            bound = _IMAGE_OUTPUT_START / self.gain * units**-0.5
            self.weight.uniform_(-bound, bound)
            self.bias.copy_(config.learning.output_bias(config.output_bias)[:, None])

    def forward(self, hidden: Tensor, position: Tensor, present: Tensor | None = None) -> Tensor:
        """(R, hidden_size), (R, Q, 2), (P,) -> (P, C', H, W)."""
        x, position = rows_of(self.hidden(hidden), position, present)
        x = self.block(turned(x, -self.waves.phase(position))).relu_()
        return nn.functional.linear(x, self.weight * self.gain, self.bias.flatten()).unflatten(-1, self.image_shape)


CELL_UNITS_PER_WIDTH = 16  # Assumption: a width of 16 stands for 256 units, 128 waves
CELL_UNITS = 64  # hidden units of an occupied cell in the encoder
CELL_FEATURES = 16  # features of a cell in the decoder
MOST_OCCUPIED = 128  # cells of one view that compiled code reads, the inner ones first; SMAC's armies are at most 66
_CHUNK = 128  # queries drawn at once on a CPU: larger pieces leave the cache
_CELL_OUTPUT_START = 0.1  # of torch's own start: with the gains a full start would begin at a loss of 17
_CELL_GAIN = 10.0  # of the bias of each cell, which has one gradient where shared weights have as many as cells


def _cell_waves(config: ModelConfig) -> Waves:
    return Waves(wave_vectors(CELL_UNITS_PER_WIDTH * config.width // 2, config.wave_period * config.cell_size))


def _offsets(config: ModelConfig) -> Tensor:
    """(I * J, 2)."""
    offsets = config.learning.cell_offsets(config.image_size, config.cell_size)
    assert offsets is not None, "which WavesCodec.check sees to"
    return offsets.to(torch.get_default_device())


class CellWaveEncoder(Encoder):
    offsets: Tensor
    empty: Tensor

    def __init__(self, config: ModelConfig, *, position_size: int) -> None:
        super().__init__()
        units, channels = CELL_UNITS_PER_WIDTH * config.width, config.learning.view_channels
        self.rows, self.columns = config.image_size
        self.occupied = config.learning.occupied_channels
        self.waves = _cell_waves(config)
        self.register_buffer("offsets", _offsets(config), persistent=False)
        self.register_buffer("empty", config.learning.empty_cell().to(torch.get_default_device()), persistent=False)
        self.first = nn.Linear(channels, CELL_UNITS)
        self.ring = nn.Parameter(torch.zeros(self.rows, CELL_UNITS))
        self.block = ResidualBlock(CELL_UNITS)
        self.out = nn.Linear(CELL_UNITS, units)
        self.linear = nn.Linear(units, config.encoding_size)

    def features(self, views: Tensor, at: Tensor) -> Tensor:
        cells = views.permute(0, 2, 3, 1).flatten(1, 2)  # (N, I * J, C)
        occupied = cells[..., self.occupied].sum(-1) != 0
        fixed = torch.compiler.is_compiling() or views.device.type != "cpu"
        return (self._sum_fixed if fixed else self._sum_packed)(cells, occupied, at)

    def _sum_packed(self, cells: Tensor, occupied: Tensor, position: Tensor) -> Tensor:
        """Units (N, U) of the occupied cells alone; how many there are depends on the data."""
        image, cell = occupied.nonzero(as_tuple=True)
        x = self._ride(cells[image, cell], cell, position[image])
        return x.new_zeros(len(cells), x.shape[1]).index_add(0, image, x)

    def _sum_fixed(self, cells: Tensor, occupied: Tensor, position: Tensor) -> Tensor:
        """The same in fixed shapes, for compiled code and GPUs, of at most MOST_OCCUPIED cells per view."""
        count = cells.shape[1]
        order = occupied * count - torch.arange(count, device=cells.device)  # occupied ones first, from the inside out
        cell = order.topk(min(count, MOST_OCCUPIED), dim=1).indices  # (N, K)
        found = cells.gather(1, cell.unsqueeze(-1).expand(-1, -1, cells.shape[2]))
        x = self._ride(found, cell, position.unsqueeze(1))
        return torch.where(occupied.gather(1, cell).unsqueeze(-1), x, 0.0).sum(1)

    def _ride(self, channels: Tensor, cell: Tensor, position: Tensor) -> Tensor:
        """Channels (..., C) of cells (...) in views at (..., 2), as features on waves: (..., U)."""
        x = self.first(channels.to(self.first.weight.dtype) - self.empty)
        x = x + self.ring[cell.div(self.columns, rounding_mode="floor")]
        return turned(self.out(self.block(x).relu_()), self.waves.phase(position + self.offsets[cell]))


class CellWaveDecoder(nn.Module):
    cosine: Tensor
    sine: Tensor

    def __init__(self, config: ModelConfig, hidden_size: int, *, position_size: int) -> None:
        super().__init__()
        units, channels = CELL_UNITS_PER_WIDTH * config.width, config.learning.output_channels
        self.image_size = config.image_size
        cells = config.image_size[0] * config.image_size[1]
        self.gain = config.output_gain
        self.waves = _cell_waves(config)
        phase = self.waves.phase(_offsets(config)).unsqueeze(-1)  # (I * J, U / 2, 1)
        self.register_buffer("cosine", phase.cos(), persistent=False)
        self.register_buffer("sine", phase.sin(), persistent=False)
        self.hidden = nn.Linear(hidden_size, units)
        start_through(self.hidden, units if config.skip else 0)
        self.blocks = nn.Sequential(ResidualBlock(units), ResidualBlock(units))
        self.mix = nn.Parameter(torch.randn(2, units // 2, CELL_FEATURES) * (units / 2) ** -0.5)
        self.feature_bias = nn.Parameter(torch.zeros(cells, CELL_FEATURES))
        self.out = nn.Linear(CELL_FEATURES, channels)
        self.cell_bias = nn.Parameter(torch.zeros(cells, channels))
        with torch.no_grad():
            self.out.bias.copy_(config.learning.output_bias(config.output_bias))
            self.out.weight.mul_(_CELL_OUTPUT_START)

    def matrix(self) -> Tensor:
        """(U, I * J * F): waves to the features of each cell, from one complex (U / 2, F) matrix for all cells."""
        real, imaginary = self.mix * self.gain
        of_real = self.cosine * real - self.sine * imaginary
        of_imaginary = self.sine * real + self.cosine * imaginary
        return torch.cat([of_real, of_imaginary], 1).permute(1, 0, 2).flatten(1)

    def forward(self, hidden: Tensor, position: Tensor, present: Tensor | None = None) -> Tensor:
        """(R, hidden_size), (R, Q, 2), (P,) -> (P, C', I, J)."""
        x, position = rows_of(self.hidden(hidden), position, present)
        x = self.blocks(turned(x, -self.waves.phase(position)))
        matrix, bias = self.matrix(), self.out.bias + self.cell_bias * _CELL_GAIN
        return in_chunks(lambda rows: self._draw(rows, matrix, bias), x, size=_CHUNK)

    def _draw(self, x: Tensor, matrix: Tensor, bias: Tensor) -> Tensor:
        features = torch.addmm(self.feature_bias.flatten(), x, matrix).relu_().view(len(x), -1, CELL_FEATURES)
        y = F.linear(features, self.out.weight * self.gain) + bias
        return y.unflatten(1, self.image_size).permute(0, 3, 1, 2)


class WavesCodec(Codec):
    """In two forms: for cells, where the world says which channels of theirs are occupied, and for any other images."""

    takes_position = True

    def encoder(self, config: ModelConfig, *, position_size: int) -> Encoder:
        form = ImageWaveEncoder if config.learning.occupied_channels is None else CellWaveEncoder
        return form(config, position_size=position_size)

    def decoder(self, config: ModelConfig, hidden_size: int, *, position_size: int) -> nn.Module:
        form = ImageWaveDecoder if config.learning.occupied_channels is None else CellWaveDecoder
        return form(config, hidden_size, position_size=position_size)

    def check(self, config: ModelConfig) -> None:
        offsets = config.learning.cell_offsets(config.image_size, config.cell_size)
        if config.learning.occupied_channels is not None and offsets is None:
            raise UsageError(
                f"the codec waves needs to know where the cells of the world {config.task} lie; give its Learning "
                "cell_offsets, or take another codec"
            )


CODEC = WavesCodec()
