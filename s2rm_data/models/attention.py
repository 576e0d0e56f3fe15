"""Input attention, inter-cell attention and output attention of S2RMs, and their gates.

Legend: N = time x batch, B batch, A views, M modules (m reads, l is read), K heads, D key size, E encoding, H hidden,
G gate units. Names as in the paper: Theta for the input attention, Phi for the inter-cell attention, W^L the local
weights, b and c the local sums, u~ and h~ what the heads attend.

The tables give Theta^V the shape (128, 2, 128) and Phi^V (128, 4, 128), which would make u~ 256 and h~ 512 wide, while
the gate mixes them with 128 wide b and c. They are read as projected back to that width, W_O (W V), with W_O folded
into V: the heads' 128 wide values are summed instead of concatenated, and the shapes stay those of the tables.

Heads are kept apart inside one matrix product by a block mask: with x (K*D) and its copies x * [k(i) = k] in K rows,
one product gives the logits of all heads, in the layout the softmax and the next product want, without a copy.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from s2rm_data.models.modules import uniform
from s2rm_data.models.products import PLAIN, Products

# Added to the logits of absent views: e^-30000 is 0 in any precision, and the number itself fits half precision.
# Where no view is left the softmax is over equal numbers, finite, and the local weights, all zero, take it out.
ABSENT_LOGIT = -3.0e4


class Gate(nn.Module):
    """G (local) + (1 - G) (attended), G_m = sigmoid of a two-layer MLP of both (the gating operations of u and h-bar).

    The first layer is linear in what is attended. Where the values do not recur it is applied to them before they are
    attended (`widen`): one product then gives the attended features and the G units of the gate side by side.
    """

    def __init__(self, size: int, units: int) -> None:
        super().__init__()
        self.size, self.units = size, units
        self.attended = uniform(size, units, fan_in=2 * size)
        self.local = uniform(size, units, fan_in=2 * size)
        self.bias = uniform(units, fan_in=2 * size)
        self.out = uniform(units, 1, fan_in=units)
        self.out_bias = uniform(1, fan_in=units)

    def widen(self, value: Tensor) -> Tensor:
        """(..., E) -> (..., E + G): values with their part of the gate's first layer."""
        return torch.cat([value, value @ self.attended.to(value.dtype)], -1)

    def forward(self, attended: Tensor, units: Tensor, local: Tensor) -> Tensor:
        """attended, local (..., E) and the first layer's units before their activation (..., G) -> (..., E)."""
        gate = F.linear(units.relu(), self.out.t(), self.out_bias).sigmoid()
        return torch.lerp(attended, local.to(attended.dtype), gate.to(attended.dtype))


def head_blocks(heads: int, size: int, like: Tensor) -> Tensor:
    """(K, K * D): 1 where the feature belongs to the head."""
    return torch.eye(heads, device=like.device, dtype=like.dtype).repeat_interleave(size, 1)


class AttendedViews(NamedTuple):
    """What the input attention needs of one step's views; nothing of it depends on the state."""

    query: Tensor  # (B, K * D, K * A) the queries of each head in its own block
    absent: Tensor  # (B, 1, K * A) 0, or ABSENT_LOGIT for a view that is not there
    value: Tensor  # (B, K * A, E + G), widened for the gate
    weight: Tensor  # (B, M, 1, A) W^L = Z(p_m, s_a), 0 for a view that is not there
    local: Tensor  # (B, M, E) b
    base: Tensor  # (B, M, E + G) what is added to the attended: 0, and b's part of the gate's first layer


class InputAttention(nn.Module):
    """Equations eq:input_attn_0 to eq:input_attn_2, from the set of views to the inputs u_m of the modules."""

    def __init__(self, *, encoding: int, hidden: int, heads: int, key_size: int, gate_units: int) -> None:
        super().__init__()
        self.heads, self.key_size = heads, key_size
        self.theta_q = uniform(encoding, heads, key_size, fan_in=encoding)
        self.theta_k = uniform(hidden, heads, key_size, fan_in=hidden)
        self.theta_v = uniform(encoding, heads, encoding, fan_in=encoding)
        self.gate = Gate(encoding, gate_units)

    def prepare(self, e: Tensor, weight: Tensor, mask: Tensor) -> list[AttendedViews]:
        """e (B, T, A, E), W^L (B, T, M, A), mask (B, T, A) -> T steps of AttendedViews."""
        e, weight, mask = (x.transpose(0, 1) for x in (e, weight, mask))  # time first: each step is contiguous
        steps, batch, views, encoding = e.shape
        e = torch.where(mask.unsqueeze(-1), e, 0.0)
        weight = torch.where(mask.unsqueeze(-2), weight, 0.0)
        rows = e.reshape(-1, encoding)
        query = (rows @ self.theta_q.flatten(1)).view(steps, batch, 1, views, self.heads * self.key_size)
        query = query * head_blocks(self.heads, self.key_size, query)[:, None]  # (T, B, K, A, K * D)
        value = self.gate.widen((rows @ self.theta_v.flatten(1)).view(steps, batch, views, self.heads, encoding))
        local = weight.to(e.dtype) @ e
        base = F.pad(F.linear(local, self.gate.local.t(), self.gate.bias), (encoding, 0))
        absent = torch.where(mask, 0.0, ABSENT_LOGIT).unsqueeze(2).expand(-1, -1, self.heads, -1)
        parts = (
            query.flatten(2, 3).transpose(-1, -2),
            absent.flatten(2).unsqueeze(2).to(query.dtype),
            value.transpose(2, 3).flatten(2, 3),
            weight.unsqueeze(3),
            local,
            base,
        )
        return [AttendedViews(*step) for step in zip(*(part.unbind(0) for part in parts), strict=True)]

    def forward(self, key: Tensor, views: AttendedViews) -> Tensor:
        """key (B, M, K * D) = h Theta^K -> u (B, M, E)."""
        logits = torch.baddbmm(views.absent, key, views.query)
        attention = logits.view(*key.shape[:2], self.heads, views.weight.shape[-1]).softmax(-1) * views.weight
        attended = torch.baddbmm(views.base, attention.flatten(2).to(views.value.dtype), views.value)
        return self.gate(*attended.split([self.gate.size, self.gate.units], -1), views.local)


class CellWeights(NamedTuple):
    """What the inter-cell attention makes of its parameters once for all steps."""

    weight: Tensor  # (M, 1 or K + 1, M) W^L = Z(p_m, p_l), for c alone divided by its row sums if asked
    blocks: Tensor  # (K, K * D) head_blocks
    ones: Tensor  # (1, 1, 1, M)
    value: Tensor  # (1, K * H, H)
    gate: Tensor  # (1, 2 * H, G) the gate's first layer, of [h~, c]


class InterCellAttention(nn.Module):
    """Equations eq:intercell_attn_0 to eq:intercell_attn_3, from the states h_l to the aggregated states h-bar_m.

    The values are projected after they are mixed, (W h) Phi^V instead of W (h Phi^V), which is the same. The local sum
    c = W^L h is mixed along as one more head whose attention is 1 before it is weighted.
    """

    def __init__(self, *, hidden: int, heads: int, key_size: int, gate_units: int) -> None:
        super().__init__()
        self.heads, self.key_size = heads, key_size
        self.phi_q = uniform(hidden, heads, key_size, fan_in=hidden)
        self.phi_k = uniform(hidden, heads, key_size, fan_in=hidden)
        self.phi_v = uniform(hidden, heads, hidden, fan_in=hidden)
        self.gate = Gate(hidden, gate_units)

    def prepare(self, weight: Tensor, *, normalise: bool) -> CellWeights:
        """W^L (M, M) -> CellWeights."""
        of_heads = weight.unsqueeze(1)
        if normalise:  # the row sums are never zero: Z(p, p) = 1
            of_local = (weight / weight.sum(-1, keepdim=True)).unsqueeze(1)
            of_heads = torch.cat([of_heads.expand(-1, self.heads, -1), of_local], 1)
        return CellWeights(
            of_heads,
            head_blocks(self.heads, self.key_size, self.phi_q),
            weight.new_ones(1, 1, 1, 1).expand(1, 1, 1, len(weight)),
            self.phi_v.transpose(0, 1).flatten(0, 1).unsqueeze(0),
            torch.cat([self.gate.attended, self.gate.local]).unsqueeze(0),
        )

    def forward(self, h: Tensor, query: Tensor, key: Tensor, cell: CellWeights, products: Products = PLAIN) -> Tensor:
        """h (M, B, H); query, key (M, B, K * D) -> h-bar (B, M, H)."""
        modules, batch, _ = h.shape
        query, key, h = (x.transpose(0, 1) for x in (query, key, h))  # strided views, which bmm reads as they are
        logits = torch.bmm((query.unsqueeze(2) * cell.blocks).flatten(1, 2), key.transpose(1, 2))
        attention = logits.view(batch, modules, self.heads, modules).softmax(-1)
        attention = torch.cat([attention, cell.ones.expand(batch, modules, 1, modules)], 2) * cell.weight
        mixed = torch.bmm(attention.flatten(1, 2).to(h.dtype), h).view(1, batch * modules, -1)
        of_heads, local = mixed.split([self.heads * h.shape[2], h.shape[2]], -1)
        attended = products(of_heads, cell.value)
        units = products(torch.cat([attended, local], -1), cell.gate, self.gate.bias.view(1, 1, -1))
        return self.gate(attended, units, local).view(batch, modules, -1)


def output_attention(weight: Tensor, h: Tensor) -> Tensor:
    """d^q = sum_m Z(s^q, p_m) h_m (section 'Output Attention'): (..., Q, M), (..., M, H) -> (..., Q, H)."""
    return weight.to(h.dtype) @ h
