"""The Relational Memory Core (Santoro et al. 2018), one per module, all in one batch; the plain RMC is one module.

As in the authors' reference: rows of memory and input attend to each other once, then a two-layer MLP, each with a
residual connection and a layer norm over the features; input and forget gates per unit with biases 0 and 1.

Legend: M modules, B batch, S memory slots, X extra rows (the input, for S2RMC also h-bar), R = S + X, F = heads x head
size features of a row, K heads, D key size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from s2rm_data.models.modules import ModuleLayerNorm, ModuleLinear
from s2rm_data.models.products import PLAIN, Products

# The reference's defaults, which the paper keeps ('hyperparameters not listed here were left at their defaults').
FORGET_BIAS = 1.0
INPUT_BIAS = 0.0


class RelationalMemory(nn.Module):
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
            self.gate_input.bias.add_(torch.tensor([INPUT_BIAS, FORGET_BIAS]).repeat_interleave(features))

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

        M' = sigmoid(i) tanh(attended memory) + sigmoid(f) M, with i, f from the input and tanh(M).
        """
        modules, batch = memory.shape[:2]
        attended = self._attend(torch.cat([memory.to(rows.dtype), rows], 2), products)[:, :, : self.slots]
        of_memory = self.gate_memory(memory.tanh().flatten(1, 2), products).view(modules, batch, self.slots, -1)
        input_gate, forget_gate = (of_memory + gates.unsqueeze(2)).sigmoid().chunk(2, -1)
        return torch.addcmul(forget_gate * memory, input_gate, attended.tanh())

    def _attend(self, rows: Tensor, products: Products) -> Tensor:
        """(M, B, R, F) -> (M, B, R, F)."""
        x = rows.flatten(1, 2)
        x = self.attention_norm(x + self._attention(self.qkv(x, products), rows.shape[2]))
        x = self.mlp_norm(x + self.mlp2(self.mlp1(x, products).relu(), products))
        return x.view(rows.shape)

    def _attention(self, qkv: Tensor, rows: int) -> Tensor:
        """Multi-head dot-product attention among the rows of one memory: (M, B * R, K (2D + V)) -> (M, B * R, F)."""
        modules = len(qkv)
        qkv = self.qkv_norm(qkv).view(-1, rows, self.heads, 2 * self.key_size + self.head_size)
        q, k, v = qkv.transpose(1, 2).split([self.key_size, self.key_size, self.head_size], -1)
        attended = F.scaled_dot_product_attention(q, k, v)  # scaled by key_size^-1/2
        return attended.transpose(1, 2).reshape(modules, -1, self.features)
