"""The codec `waves` for images of cells that are mostly empty: each occupied cell is a thing at a known place.

The place is the view's position plus the cell's offset. The encoder makes features of the cell, lets them ride on waves
taken at that place and adds the cells up, so that what several views show of one thing adds up in phase. The decoder
turns the waves back to the query's position and to each of its cells, where one small network, shared by all cells,
reads them. Cells that hold nothing are not read: of the terrain, the encoder sees what lies under the things.

Legend: N views, R hidden states, Q queries of each, P of them that are decoded, C channels, I x J cells, K occupied
cells, U units (two per wave), F features of a cell.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from s2rm_data.models.codecs.convolution import in_chunks
from s2rm_data.models.codecs.mlp import ResidualBlock
from s2rm_data.models.codecs.phases import Waves, isotropic_waves, turned
from s2rm_data.models.codecs.rows import rows_of
from s2rm_data.models.config import ModelConfig

UNITS_PER_WIDTH = 16  # Assumption: a width of 16 stands for 256 units, 128 waves
CELL_UNITS = 64  # hidden units of an occupied cell in the encoder
CELL_FEATURES = 16  # features of a cell in the decoder
MOST_OCCUPIED = 128  # cells of one view that compiled code reads, the inner ones first; SMAC's armies are at most 66
_CHUNK = 128  # queries drawn at once on a CPU: larger pieces leave the cache
_OUTPUT_START = 0.1  # of torch's own start: with the gains a full start would begin at a loss of 17
_CELL_GAIN = 10.0  # of the bias of each cell, which has one gradient where shared weights have as many as cells


def _waves(config: ModelConfig) -> Waves:
    return Waves(isotropic_waves(UNITS_PER_WIDTH * config.width // 2, config.wave_period * config.cell_size))


def _offsets(config: ModelConfig) -> Tensor:
    """(I * J, 2)."""
    offsets = config.learning.cell_offsets(config.image_size, config.cell_size)
    assert offsets is not None
    return offsets.to(torch.get_default_device())


class CellWaveEncoder(nn.Module):
    takes_position = True

    offsets: Tensor
    empty: Tensor

    def __init__(self, config: ModelConfig, *, position_size: int) -> None:
        super().__init__()
        units, channels = UNITS_PER_WIDTH * config.width, config.learning.view_channels
        self.rows, self.columns = config.image_size
        self.occupied = config.learning.occupied_channels
        self.waves = _waves(config)
        self.register_buffer("offsets", _offsets(config), persistent=False)
        self.register_buffer("empty", config.learning.empty_cell().to(torch.get_default_device()), persistent=False)
        self.first = nn.Linear(channels, CELL_UNITS)
        self.ring = nn.Parameter(torch.zeros(self.rows, CELL_UNITS))
        self.block = ResidualBlock(CELL_UNITS)
        self.out = nn.Linear(CELL_UNITS, units)
        self.linear = nn.Linear(units, config.encoding_size)

    def forward(self, views: Tensor, position: Tensor) -> Tensor:
        """(N, C, I, J), (N, 2) -> (N, encoding_size). Views may be of any real dtype."""
        cells = views.permute(0, 2, 3, 1).flatten(1, 2)  # (N, I * J, C)
        occupied = (cells[..., self.occupied] != 0).any(-1)
        fixed = torch.compiler.is_compiling() or views.device.type != "cpu"
        return self.linear((self._sum_fixed if fixed else self._sum_packed)(cells, occupied, position))

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
        return turned(self.out(self.block(x).relu()), self.waves.phase(position + self.offsets[cell]))


class CellWaveDecoder(nn.Module):
    takes_position = True

    cosine: Tensor
    sine: Tensor

    def __init__(self, config: ModelConfig, hidden_size: int, *, position_size: int) -> None:
        super().__init__()
        units, channels = UNITS_PER_WIDTH * config.width, config.learning.output_channels
        self.image_size = config.image_size
        cells = config.image_size[0] * config.image_size[1]
        self.gain = config.output_gain
        self.waves = _waves(config)
        phase = self.waves.phase(_offsets(config)).unsqueeze(-1)  # (I * J, U / 2, 1)
        self.register_buffer("cosine", phase.cos(), persistent=False)
        self.register_buffer("sine", phase.sin(), persistent=False)
        self.hidden = nn.Linear(hidden_size, units)
        self.blocks = nn.Sequential(ResidualBlock(units), ResidualBlock(units))
        self.mix = nn.Parameter(torch.randn(2, units // 2, CELL_FEATURES) * (units / 2) ** -0.5)
        self.feature_bias = nn.Parameter(torch.zeros(cells, CELL_FEATURES))
        self.out = nn.Linear(CELL_FEATURES, channels)
        self.cell_bias = nn.Parameter(torch.zeros(cells, channels))
        with torch.no_grad():
            self.out.bias.copy_(config.learning.output_bias(config.output_bias))
            self.out.weight.mul_(_OUTPUT_START)

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
        features = torch.addmm(self.feature_bias.flatten(), x, matrix).relu().view(len(x), -1, CELL_FEATURES)
        y = F.linear(features, self.out.weight * self.gain) + bias
        return y.unflatten(1, self.image_size).permute(0, 3, 1, 2)
