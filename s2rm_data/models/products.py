"""Products with weights inside the time loop, with the weights' gradient taken once for all steps.

Autograd gives a weight that is used at T steps T gradients, each a thin product over one batch and as large as the
weight, and adds them up one by one. On a CPU that traffic is most of the backward pass of a small batch; on a GPU it is
two launches per weight and step. `DeferredProducts` keeps each step's input and multiplies once, over time and batch.
A compiled step (`training/compiling.py`) does without: its backward pass is one CUDA graph per step.

Legend: T steps, M modules (1 for plain layers), N rows, D features in, E features out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
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
    at 200 (LSTM of 2048 units, batch 8) two thirds.
    """
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
    with the inputs kept by then it makes the weight's.
    """

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
