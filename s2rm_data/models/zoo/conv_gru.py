"""ConvGRU: a grid of cells over the arena that share their weights and speak with their neighbours.

    u_t     = relu(K_1 * [h_t; x_t] + b)            K: 3 x 3 convolutions; b: a bias for each cell
    z, n    = K_2 * u_t
    h_{t+1} = sigmoid(z) h_t + (1 - sigmoid(z)) tanh(n)

It is not the paper's. What is learned in one place holds everywhere, and what is in one place acts on what is near:
convolutional recurrent networks (Shi et al. 2015, Ballas et al. 2016) are told what S2RMs have to learn. Views are laid
on the grid where they were taken, and queries are read off where they are asked.

Legend: B sequences, T steps, V views, N = B T grids, Q queries of each, P of them that are drawn, H hidden size,
Y x X cells of the grid, C x I x J an image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from s2rm_data.core.check import require
from s2rm_data.models.codec import rows_of
from s2rm_data.models.codecs.waves import MOST_OCCUPIED
from s2rm_data.models.config import ModelConfig, Size
from s2rm_data.models.modules import Products
from s2rm_data.models.world_model import WorldModel

CELL_FEATURES = 32  # of a thing in a view, and of a point that is drawn
FINER = 4  # of a grid's cell, each way: points of things are drawn between its parts
OUTSIDE = -10.0  # logit of pixels outside the arena, where nothing is


@dataclass(frozen=True, kw_only=True)
class ConvGRUConfig(ModelConfig):
    patch: Size = 4  # extent of a cell of the grid, in the unit of positions
    hidden_size: Size = 64  # H
    mixed_size: Size = 96  # of u

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "skip", not self.skip, "false: its views lie on a grid, and have no features that could skip")

    @property
    def grid(self) -> tuple[int, int]:
        """Y, X."""
        width, height = (math.ceil(extent / self.patch) for extent in self.arena_size)
        return height, width


class PixelReader(nn.Module):
    """Crops of one picture, pasted where they were cut: its pixels as -1 and 1, 0 where none was seen, and a mask."""

    def __init__(self, config: ConvGRUConfig) -> None:
        super().__init__()
        self.config = config
        self.size = (config.learning.view_channels + 1) * config.patch**2

    def forward(self, views: Tensor, position: Tensor, mask: Tensor) -> Tensor:
        """(B, T, V, C * I * J), (B, T, V, 2), (B, T, V) -> (B, T, size, Y, X)."""
        pixel, (height, width) = pixels_of(self.config, position.flatten(0, 1))
        code = (views + 1).unflatten(-1, (-1, *self.config.image_size)) * mask[..., None, None, None]
        code = code.flatten(0, 1).transpose(1, 2).flatten(2)  # (N, C, V * I * J); 0: not seen
        pasted = code.new_zeros(*code.shape[:2], height * width)
        pasted = pasted.scatter_reduce(2, pixel.flatten(1).unsqueeze(1).expand_as(code), code, "amax")
        top, left = (extent // 2 for extent in self.config.image_size)
        rows, columns = (cells * self.config.patch for cells in self.config.grid)
        pasted = pasted.unflatten(2, (height, width))[..., top : top + rows, left : left + columns]
        seen = pasted.amax(1, keepdim=True) > 0
        x = torch.cat([(2 * pasted - 3) * seen, seen.to(pasted.dtype)], 1)
        return F.pixel_unshuffle(x, self.config.patch).unflatten(0, mask.shape[:2])


class PixelDrawer(nn.Module):
    """The picture, and what of it lies around each query."""

    def __init__(self, config: ConvGRUConfig) -> None:
        super().__init__()
        self.config = config
        self.mix = nn.Conv2d(config.hidden_size, config.mixed_size, 3, padding=1)
        self.out = nn.Conv2d(config.mixed_size, config.learning.output_channels * config.patch**2, 1)
        start = config.learning.output_bias(config.output_bias).repeat_interleave(config.patch**2)
        self.out.bias = nn.Parameter(start.to(self.out.weight))

    def forward(self, hidden: Tensor, position: Tensor, present: Tensor | None = None) -> Tensor:
        """(N, H, Y, X), (N, Q, 2), (P,) -> (P, C', I, J)."""
        picture = F.pixel_shuffle(self.out(self.mix(hidden).relu()), self.config.patch)
        pixel, (height, width) = pixels_of(self.config, position)
        top, left = (extent // 2 for extent in self.config.image_size)
        bottom, right = height - top - picture.shape[2], width - left - picture.shape[3]
        picture = F.pad(picture, (left, right, top, bottom), value=OUTSIDE).flatten(2)
        of, pixel = rows_of(torch.arange(len(picture), device=pixel.device), pixel.flatten(2), present)
        return picture.transpose(1, 2)[of.unsqueeze(1), pixel].transpose(1, 2).unflatten(2, self.config.image_size)


def pixels_of(config: ConvGRUConfig, position: Tensor) -> tuple[Tensor, tuple[int, int]]:
    """(N, K, 2) -> (N, K, I, J): numbers of the pixels of images there, and the size of the picture, which has a margin
    for what lies outside the arena."""
    (rows, columns), (height, width) = config.image_size, (cells * config.patch for cells in config.grid)
    x, y = position.round().long().unbind(-1)
    row = y.clamp(0, height - 1).unsqueeze(-1) + torch.arange(rows, device=position.device)
    column = x.clamp(0, width - 1).unsqueeze(-1) + torch.arange(columns, device=position.device)
    size = (height + rows - 1, width + columns - 1)
    return row.unsqueeze(-1) * size[1] + column.unsqueeze(-2), size


class ThingReader(nn.Module):
    """Images of cells that are mostly empty: what is in a cell, as features where it lies; the mean of all that lie in
    one cell of the grid."""

    offsets: Tensor
    empty: Tensor

    def __init__(self, config: ConvGRUConfig) -> None:
        super().__init__()
        self.config, learning = config, config.learning
        self.size, self.occupied = CELL_FEATURES + 1, learning.occupied_channels
        self.register_buffer("offsets", offsets_of(config), persistent=False)
        self.register_buffer("empty", learning.empty_cell().to(torch.get_default_device()), persistent=False)
        self.first = nn.Linear(learning.view_channels + 2, 2 * CELL_FEATURES)
        self.second = nn.Linear(2 * CELL_FEATURES, CELL_FEATURES)

    def forward(self, views: Tensor, position: Tensor, mask: Tensor) -> Tensor:
        """(B, T, V, C * I * J), (B, T, V, 2), (B, T, V) -> (B, T, size, Y, X)."""
        cells = views.flatten(0, 2).unflatten(1, (len(self.empty), -1)).transpose(1, 2)
        occupied = (cells[..., self.occupied].sum(-1) != 0) & mask.flatten().unsqueeze(1)
        view, cell = self.places(occupied)
        exists = occupied[view, cell].unsqueeze(1).to(self.first.weight.dtype)
        grid_cell, inside = in_grid(self.config, position.flatten(0, 2)[view] + self.offsets[cell])
        x = torch.cat([cells[view, cell].to(exists.dtype) - self.empty, inside], 1)
        x = torch.cat([self.second(self.first(x).relu()), torch.ones_like(exists)], 1) * exists
        height, width = self.config.grid
        grid_cell = view.div(mask.shape[2], rounding_mode="floor") * (height * width) + grid_cell
        summed = x.new_zeros(mask.shape[:2].numel() * height * width, self.size).index_add(0, grid_cell, x)
        count = summed[:, -1:]
        mean = torch.cat([summed[:, :-1] / count.clamp(min=1), count.clamp(max=1)], 1)
        return mean.unflatten(0, (*mask.shape[:2], height, width)).permute(0, 1, 4, 2, 3)

    def places(self, occupied: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers of the views and cells that are read: those that are occupied; in fixed shapes for compiled code and
        GPUs, MOST_OCCUPIED of each view, occupied ones first."""
        if occupied.device.type == "cpu" and not torch.compiler.is_compiling():
            view, cell = occupied.nonzero(as_tuple=True)
            return view, cell
        count = occupied.shape[1]
        order = occupied * count - torch.arange(count, device=occupied.device)
        cell = order.topk(min(count, MOST_OCCUPIED), dim=1).indices
        view = torch.arange(len(cell), device=cell.device).unsqueeze(1).expand_as(cell)
        return view.flatten(), cell.flatten()


class ThingDrawer(nn.Module):
    """What a finer grid says at each cell of a query's image, read by a small network that all cells share."""

    offsets: Tensor

    def __init__(self, config: ConvGRUConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("offsets", offsets_of(config), persistent=False)
        self.finer = nn.Conv2d(config.hidden_size, CELL_FEATURES * FINER**2, 3, padding=1)
        self.bias = nn.Parameter(torch.zeros(len(self.offsets), CELL_FEATURES))
        self.mix = nn.Linear(CELL_FEATURES, CELL_FEATURES)
        self.out = nn.Linear(CELL_FEATURES, config.learning.output_channels)
        with torch.no_grad():
            self.out.bias.copy_(config.learning.output_bias(config.output_bias))

    def forward(self, hidden: Tensor, position: Tensor, present: Tensor | None = None) -> Tensor:
        """(N, H, Y, X), (N, Q, 2), (P,) -> (P, C', I, J)."""
        fine = F.pixel_shuffle(self.finer(hidden), FINER)  # (N, F, Y', X')
        of, position = rows_of(torch.arange(len(fine), device=fine.device), position, present)
        x = self._sampled(fine.permute(0, 2, 3, 1), of, position.unsqueeze(1) + self.offsets)
        y = self.out(self.mix((x + self.bias).relu()).relu())
        return y.unflatten(1, self.config.image_size).permute(0, 3, 1, 2)

    def _sampled(self, fine: Tensor, of: Tensor, point: Tensor) -> Tensor:
        """Between the four nearest parts: grids (N, Y', X', F), their numbers (P,), points (P, K, 2) -> (P, K, F)."""
        place = point * (FINER / self.config.patch) - 0.5
        low = place.floor()
        share, low = place - low, low.long()
        shares = torch.stack([1 - share, share]).unsqueeze(-1)
        found = torch.zeros((), dtype=fine.dtype, device=fine.device)
        for right, below in ((0, 0), (1, 0), (0, 1), (1, 1)):
            x = (low[..., 0] + right).clamp(0, fine.shape[2] - 1)
            y = (low[..., 1] + below).clamp(0, fine.shape[1] - 1)
            number = (of.unsqueeze(1) * fine.shape[1] + y) * fine.shape[2] + x
            found = found + shares[right, :, :, 0] * shares[below, :, :, 1] * F.embedding(number, fine.flatten(0, 2))
        return found


def offsets_of(config: ConvGRUConfig) -> Tensor:
    """(I * J, 2)."""
    offsets = config.learning.cell_offsets(config.image_size, config.cell_size)
    assert offsets is not None, "a world whose cells are occupied says where they lie"
    return offsets.to(torch.get_default_device())


def in_grid(config: ConvGRUConfig, point: Tensor) -> tuple[Tensor, Tensor]:
    """(K, 2) -> numbers of the grid's cells (K,), and where in them (K, 2), from -1 to 1."""
    place = point / config.patch
    x, y = place.long().unbind(1)
    height, width = config.grid
    x, y = x.clamp(0, width - 1), y.clamp(0, height - 1)
    inside = 2 * (place - torch.stack([x, y], 1)) - 1
    return y * width + x, inside.clamp(-2, 2)


class Flat(nn.Module):
    """Views as they are, and where: they are laid on the grid when it is known which of them exist."""

    def forward(self, views: Tensor, at: Tensor) -> Tensor:
        return torch.cat([views.flatten(1).to(at.dtype), at], 1)


class ConvGRU(WorldModel):
    """State: h (B, H, Y, X)."""

    Config = ConvGRUConfig
    title, colour, marker, place = "ConvGRU", "#332288", "*", 8
    small_fields = {"smoke": {"hidden_size": 16, "mixed_size": 16}}

    def __init__(self, config: ConvGRUConfig) -> None:
        super().__init__(config, decoder_input=1, inject_position=True)
        pixels = config.learning.occupied_channels is None
        self.encoder = Flat()
        self.decoder = PixelDrawer(config) if pixels else ThingDrawer(config)
        self.takes_position = True
        self.reader = PixelReader(config) if pixels else ThingReader(config)
        size = config.hidden_size
        self.mix = nn.Conv2d(size + self.reader.size, config.mixed_size, 3, padding=1)
        self.change = nn.Conv2d(config.mixed_size, 2 * size, 3, padding=1)
        self.place_bias = nn.Parameter(torch.zeros(config.mixed_size, *config.grid))
        self.start = nn.Parameter(torch.zeros(size, *config.grid))

    def initial_state(self, batch_size: int) -> Tensor:
        return self.start.expand(batch_size, -1, -1, -1)

    def prepare(self, e: Tensor, s: Tensor, view_mask: Tensor) -> Sequence[Tensor]:
        return self.reader(e[..., :-2], e[..., -2:], view_mask).unbind(1)

    def advance(self, encoded: Tensor, state: Tensor, products: Products) -> Tensor:
        u = (self.mix(torch.cat([state, encoded.to(state.dtype)], 1)) + self.place_bias).relu()
        z, n = self.change(u).chunk(2, 1)
        return torch.lerp(n.tanh(), state, z.sigmoid())

    def hidden(self, state: Tensor) -> Tensor:
        return state

    def attend(self, hidden: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        return hidden.flatten(0, 1), s.flatten(0, 1)


MODEL = ConvGRU
