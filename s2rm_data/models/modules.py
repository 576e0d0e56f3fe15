"""Layers with one set of weights per module, all modules in one kernel; and products with weights inside the time loop,
with the weights' gradient taken once for all steps.

Autograd gives a weight that is used at T steps T gradients, each a thin product over one batch and as large as the
weight, and adds them up one by one. On a CPU that traffic is most of the backward pass of a small batch; on a GPU it is
two launches per weight and step. `DeferredProducts` keeps each step's input and multiplies once, over time and batch.
A compiled step (`training/stepper.py`) does without: its backward pass is one CUDA graph per step.

Legend: T steps, M modules (1 for plain layers), N rows, D features in, E out. Tensors are module first: (M, N, D)."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class Products:
    """x_m W_m + b_m: (M, N, D), weight (M, D, E), bias (M, 1, E), (M, N, E) or None -> (M, N, E)."""

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return torch.bmm(x, weight) if bias is None else torch.baddbmm(bias, x, weight)


PLAIN = Products()


class DeferredProducts(Products):
    """The same for a window of `steps` steps, in which every weight is used at most once a step."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.layers: dict[int, _Layer] = {}

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if not worth_deferring(x, weight):
            return super().__call__(x, weight, bias)
        layer = self.layers.get(id(weight))
        if layer is None:
            layer = self.layers[id(weight)] = _Layer(weight, bias, self.steps, x.shape[1])
        return layer(x)


def worth_deferring(x: Tensor, weight: Tensor) -> bool:
    """On a GPU always, for the launches. On a CPU if adding up the weight's gradient outweighs keeping the inputs.
    The factor is measured: at 3 (GRU modules, batch 32) deferring costs a fifth more, at 12 (batch 8) it saves a tenth,
    at 200 (LSTM of 2048 units, batch 8) two thirds."""
    rows, size_in, size_out = x.shape[1], weight.shape[1], weight.shape[2]
    return x.device.type != "cpu" or size_in * size_out >= 8 * rows * (size_in + size_out)


class _Layer:
    def __init__(self, weight: Tensor, bias: Tensor | None, steps: int, rows: int) -> None:
        self.owner = weight  # kept, so that its id is not given to another tensor meanwhile
        self.weight = weight.detach()
        self.inputs: list[Tensor] = []
        self.offsets = _Offsets.apply(weight, bias, self.inputs, steps, rows).unbind(0)

    def __call__(self, x: Tensor) -> Tensor:
        offset = self.offsets[len(self.inputs)]
        self.inputs.append(x.detach())
        return torch.baddbmm(offset, x, self.weight)


class _Offsets(torch.autograd.Function):
    """What is added to each step's product, (T, M, N, E): the bias. Its gradient is the product's, for all steps, and
    with the inputs kept by then it makes the weight's."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, inputs: list[Tensor], steps: int, rows: int) -> Tensor:
        ctx.inputs, ctx.has_bias, ctx.dtype = inputs, bias is not None, weight.dtype
        shape = (steps, weight.shape[0], rows, weight.shape[2])
        return weight.new_zeros(shape) if bias is None else bias.expand(shape).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        used = len(ctx.inputs)
        if used == 0:
            return None, None, None, None, None
        by_module = gradient[:used].transpose(0, 1)
        inputs = torch.stack([x.to(ctx.dtype) for x in ctx.inputs], 1)  # (M, T, N, D)
        of_weight = torch.bmm(inputs.flatten(1, 2).transpose(1, 2), by_module.flatten(1, 2))
        of_bias = by_module.sum((1, 2)).unsqueeze(1) if ctx.has_bias else None
        return of_weight, of_bias, None, None, None


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

    r, z = sigmoid(W_i u + b_i + W_h h + b_h);  n = tanh(W_n u + b_n + r * (U_n h + c_n));  h' = (1 - z) n + z h."""

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
    `project` is the input's part, which needs no state and leaves the time loop where the input does."""

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


class RelationalMemory(nn.Module):
    """The Relational Memory Core (Santoro et al. 2018), one per module, all in one batch; the plain RMC is one module.

    As in the authors' reference: rows of memory and input attend to each other once, then a two-layer MLP, each with a
    residual connection and a layer norm over the features; input and forget gates per unit with biases 0 and 1, the
    reference's defaults, which the paper keeps ('hyperparameters not listed here were left at their defaults').

    Legend: M modules, B batch, S memory slots, X extra rows (the input, for S2RMC also h-bar), R = S + X, F = heads x
    head size features of a row, K heads, D key size."""

    def __init__(self, modules: int, *, input_size: int, slots: int, heads: int, head_size: int, key_size: int) -> None:
        super().__init__()
        self.slots, self.heads, self.key_size, self.head_size = slots, heads, key_size, head_size
        self.features = features = heads * head_size
        self.input = ModuleLinear(modules, input_size, features)
        self.qkv = ModuleLinear(modules, features, heads * (2 * key_size + head_size))
        self.qkv_norm = ModuleLayerNorm(modules, heads * (2 * key_size + head_size))
        self.attention_norm = ModuleLayerNorm(modules, features)
        self.mlp1 = ModuleLinear(modules, features, features)
        self.mlp2 = ModuleLinear(modules, features, features)
        self.mlp_norm = ModuleLayerNorm(modules, features)
        self.gate_input = ModuleLinear(modules, features, 2 * features)
        self.gate_memory = ModuleLinear(modules, features, 2 * features)
        with torch.no_grad():  # the reference adds these to the gates' own biases, input gate first
            self.gate_input.bias.add_(torch.tensor([0.0, 1.0]).repeat_interleave(features))

    def initial_memory(self, batch_size: int) -> Tensor:
        """(M, B, S, F): each slot a different row of the identity, padded with zeros or cut."""
        modules = len(self.qkv.weight)
        eye = torch.eye(self.slots, self.features, device=self.qkv.weight.device, dtype=self.qkv.weight.dtype)
        return eye.expand(modules, batch_size, -1, -1)

    def project(self, u: Tensor, products: Products = PLAIN) -> tuple[Tensor, Tensor]:
        """The input (M, N, D) as a row (M, N, F), and its part of the gates (M, N, 2F); needs no memory."""
        x = self.input(u, products)
        return x, self.gate_input(x, products)

    def forward(self, rows: Tensor, gates: Tensor, memory: Tensor, products: Products = PLAIN) -> Tensor:
        """rows (M, B, X, F), the input's part of the gates (M, B, 2F), memory (M, B, S, F) -> memory at t + 1.
        M' = sigmoid(i) tanh(attended memory) + sigmoid(f) M, with i, f from the input and tanh(M)."""
        modules, batch = memory.shape[:2]
        rows = torch.cat([memory.to(rows.dtype), rows], 2)  # (M, B, R, F)
        x = rows.flatten(1, 2)
        x = self.attention_norm(x + self._attention(self.qkv(x, products), rows.shape[2]))
        x = self.mlp_norm(x + self.mlp2(self.mlp1(x, products).relu(), products))
        attended = x.view(rows.shape)[:, :, : self.slots]
        of_memory = self.gate_memory(memory.tanh().flatten(1, 2), products).view(modules, batch, self.slots, -1)
        input_gate, forget_gate = (of_memory + gates.unsqueeze(2)).sigmoid().chunk(2, -1)
        return torch.addcmul(forget_gate * memory, input_gate, attended.tanh())

    def _attention(self, qkv: Tensor, rows: int) -> Tensor:
        """Multi-head dot-product attention among the rows of one memory: (M, B * R, K (2D + V)) -> (M, B * R, F)."""
        modules = len(qkv)
        qkv = self.qkv_norm(qkv).view(-1, rows, self.heads, 2 * self.key_size + self.head_size)
        q, k, v = qkv.transpose(1, 2).split([self.key_size, self.key_size, self.head_size], -1)
        attended = F.scaled_dot_product_attention(q, k, v)  # scaled by key_size^-1/2
        return attended.transpose(1, 2).reshape(modules, -1, self.features)
