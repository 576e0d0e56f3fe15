"""Layers with one set of weights per module, all modules in one kernel.

Legend: M modules, N rows, D features in, E features out. Tensors are module first: (M, N, D).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from s2rm_data.models.products import PLAIN, Products


def uniform(*shape: int, fan_in: int) -> nn.Parameter:
    """Uniform in +-1/sqrt(fan_in), as torch starts linear and recurrent layers."""
    bound = fan_in**-0.5
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))


@torch.no_grad()
def start_equal(layer: nn.Module) -> None:
    """Give all modules the first one's weights."""
    for parameter in layer.parameters():
        parameter.copy_(parameter[:1].clone().expand_as(parameter))


class ModuleLinear(nn.Module):
    """y_m = x_m W_m + b_m."""

    def __init__(self, modules: int, size_in: int, size_out: int) -> None:
        super().__init__()
        self.weight = uniform(modules, size_in, size_out, fan_in=size_in)
        self.bias = uniform(modules, 1, size_out, fan_in=size_in)

    def forward(self, x: Tensor, products: Products = PLAIN) -> Tensor:
        """(M, N, D) -> (M, N, E)."""
        return products(x, self.weight, self.bias)


class ModuleLayerNorm(nn.Module):
    """Layer norm over the features of each row alone, with one gain and bias per module."""

    def __init__(self, modules: int, size: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(modules, 1, size))
        self.bias = nn.Parameter(torch.zeros(modules, 1, size))

    def forward(self, x: Tensor) -> Tensor:
        """(M, N, D) -> (M, N, D)."""
        return torch.addcmul(self.bias, F.layer_norm(x, x.shape[-1:]), self.gain)


class ModuleGRU(nn.Module):
    """h' = GRU_m(u, h-bar) (equation eq:rnns; Cho et al. 2014), in torch's convention:

    r, z = sigmoid(W_i u + b_i + W_h h + b_h);  n = tanh(W_n u + b_n + r * (U_n h + c_n));  h' = (1 - z) n + z h.
    """

    def __init__(self, modules: int, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.weight_input = uniform(modules, input_size, 3 * hidden_size, fan_in=hidden_size)
        self.weight_hidden = uniform(modules, hidden_size, 3 * hidden_size, fan_in=hidden_size)
        self.bias_input = uniform(modules, 1, 3 * hidden_size, fan_in=hidden_size)
        self.bias_hidden = uniform(modules, 1, 3 * hidden_size, fan_in=hidden_size)

    def forward(self, u: Tensor, h: Tensor, products: Products = PLAIN) -> Tensor:
        """u (M, B, D), h (M, B, H) -> (M, B, H)."""
        from_input = products(u, self.weight_input, self.bias_input)
        from_hidden = products(h, self.weight_hidden, self.bias_hidden)
        sizes = [2 * self.hidden_size, self.hidden_size]
        rz_input, n_input = from_input.split(sizes, -1)
        rz_hidden, n_hidden = from_hidden.split(sizes, -1)
        r, z = (rz_input + rz_hidden).sigmoid().chunk(2, -1)
        n = torch.addcmul(n_input, r, n_hidden).tanh()
        return torch.lerp(n, h.to(n.dtype), z)

    @torch.no_grad()
    def start_equal(self) -> None:
        """The first module's start for all; n starts as u plus a tenth of the random start, z around sigmoid(-1)."""
        start_equal(self)
        size = self.hidden_size
        self.weight_input[:, :, 2 * size :] *= 0.1
        self.weight_input[:, :, 2 * size :] += torch.eye(self.weight_input.shape[1], size)
        self.bias_input[:, :, size : 2 * size] -= 1.0


class ModuleLSTM(nn.Module):
    """(h', c') = LSTM_m(u, h, c) (Hochreiter and Schmidhuber 1997), torch's convention, gates i, f, o, g.

    `project` is the input's part, which needs no state and leaves the time loop where the input does.
    """

    def __init__(self, modules: int, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.weight_input = uniform(modules, input_size, 4 * hidden_size, fan_in=hidden_size)
        self.weight_hidden = uniform(modules, hidden_size, 4 * hidden_size, fan_in=hidden_size)
        self.bias = uniform(modules, 1, 4 * hidden_size, fan_in=hidden_size)

    def project(self, u: Tensor) -> Tensor:
        """(M, N, D) -> (M, N, 4H)."""
        return torch.baddbmm(self.bias, u, self.weight_input)

    def forward(self, projected: Tensor, h: Tensor, c: Tensor, products: Products = PLAIN) -> tuple[Tensor, Tensor]:
        """projected (M, B, 4H), h and c (M, B, H) -> h', c'."""
        gates = projected + products(h, self.weight_hidden)
        ifo, g = gates.split([3 * self.hidden_size, self.hidden_size], -1)
        i, f, o = ifo.sigmoid().chunk(3, -1)
        c = torch.addcmul(f * c, i, g.tanh())
        return o * c.tanh(), c
