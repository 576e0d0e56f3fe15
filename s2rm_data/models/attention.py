"""Input attention, inter-cell attention and output attention of S2RMs, and their gates.

Legend: N = time x batch, B batch, A views, M modules (m reads, l is read), K heads, D key size, E encoding, H hidden,
G gate units. Names as in the paper: Theta for the input attention, Phi for the inter-cell attention, W^L the local
weights, b and c the local sums, u~ and h~ what the heads attend.

The tables give Theta^V the shape (128, 2, 128) and Phi^V (128, 4, 128), which would make u~ 256 and h~ 512 wide, while
the gate mixes them with 128 wide b and c. They are read as projected back to that width, W_O (W V), with W_O folded
into V: the heads' 128 wide values are summed instead of concatenated, and the shapes stay those of the tables.

What attention reads from comes before what reads it, (B, A * K, M) and (B, M, M * K): a softmax over an axis that is
not the last is ten times as fast on a CPU, and where it ends the next product begins, without a copy. The heads of the
inter-cell attention are kept apart by a block mask: with queries x (K * D) and their copies x * [k(i) = k] in K rows,
one product gives the logits of all heads."""

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from s2rm_data.models.modules import PLAIN, Products, uniform

# Added to the logits of absent views: e^-30000 is 0 in any precision, and the number itself fits half precision.
# Where no view is left the softmax is over equal numbers, finite, and the local weights, all zero, take it out.
ABSENT_LOGIT = -3.0e4


class Gate(nn.Module):
    """G (local) + (1 - G) (attended), G_m = sigmoid of a two-layer MLP of both (the gating operations of u and h-bar).
    The first layer is linear in what is attended. Where the values do not recur it is folded into them: one product
    then gives the attended features and the G units of the gate side by side."""

    def __init__(self, size: int, units: int) -> None:
        super().__init__()
        self.size, self.units = size, units
        self.attended = uniform(size, units, fan_in=2 * size)
        self.local = uniform(size, units, fan_in=2 * size)
        self.bias = uniform(units, fan_in=2 * size)
        self.out = uniform(units, 1, fan_in=units)
        self.out_bias = uniform(1, fan_in=units)

    def forward(self, attended: Tensor, units: Tensor, local: Tensor) -> Tensor:
        """attended, local (..., E) and the first layer's units before their activation (..., G) -> (..., E)."""
        gate = F.linear(units.relu(), self.out.t(), self.out_bias).sigmoid()
        return torch.lerp(attended, local.to(attended.dtype), gate.to(attended.dtype))


def head_blocks(heads: int, size: int, like: Tensor) -> Tensor:
    """(K, K * D): 1 where the feature belongs to the head."""
    return torch.eye(heads, device=like.device, dtype=like.dtype).repeat_interleave(size, 1)


class AttendedViews(NamedTuple):
    """What the input attention needs of one step's views, or of T steps' with T first; nothing depends on the state."""

    absent: Tensor  # (B, A * K, 1) 0, or ABSENT_LOGIT for a view that is not there
    query: Tensor  # (B, A * K, H) Theta^K Theta^Q e: what the states are asked by each view and head
    value: Tensor  # (B, A * K, E + G) W_O Theta^V e, and its part of the gate's first layer
    weight: Tensor  # (B, A, M) W^L = Z(s_a, p_m), 0 for a view that is not there
    local: Tensor  # (B, M, E) b
    base: Tensor  # (B, M, G) b's part of the gate's first layer


class InputAttention(nn.Module):
    """Equations eq:input_attn_0 to eq:input_attn_2, from the set of views to the inputs u_m of the modules."""

    def __init__(self, *, encoding: int, hidden: int, heads: int, key_size: int, gate_units: int) -> None:
        super().__init__()
        self.heads, self.key_size = heads, key_size
        self.theta_q = uniform(encoding, heads, key_size, fan_in=encoding)
        self.theta_k = uniform(hidden, heads, key_size, fan_in=hidden)
        self.theta_v = uniform(encoding, heads, encoding, fan_in=encoding)
        self.gate = Gate(encoding, gate_units)

    def prepare(self, e: Tensor, weight: Tensor, mask: Tensor) -> AttendedViews:
        """e (B, T, A, E), W^L (B, T, A, M), mask (B, T, A) -> AttendedViews of T steps."""
        e, weight, mask = (x.transpose(0, 1) for x in (e, weight, mask))  # time first: each step is contiguous
        e = torch.where(mask.unsqueeze(-1), e, 0.0)
        weight = torch.where(mask.unsqueeze(-1), weight, 0.0)
        query = torch.einsum("ekd,hkd->ekh", self.theta_q, self.theta_k).to(e.dtype)
        value = torch.cat([self.theta_v, self.theta_v @ self.gate.attended], -1).to(e.dtype)
        local = weight.to(e.dtype).transpose(-1, -2) @ e
        absent = torch.where(mask, 0.0, ABSENT_LOGIT).repeat_interleave(self.heads, -1).unsqueeze(-1)
        return AttendedViews(
            absent.to(e.dtype),
            (e @ query.flatten(1)).unflatten(-1, query.shape[1:]).flatten(2, 3),
            (e @ value.flatten(1)).unflatten(-1, value.shape[1:]).flatten(2, 3),
            weight,
            local,
            F.linear(local, self.gate.local.t(), self.gate.bias),
        )

    def forward(self, h: Tensor, views: AttendedViews) -> Tensor:
        """h (B, M, H) -> u (B, M, E)."""
        logits = torch.baddbmm(views.absent, views.query, h.transpose(1, 2)).unflatten(1, (-1, self.heads))
        attention = (logits.softmax(1) * views.weight.unsqueeze(2)).flatten(1, 2)  # (B, A * K, M)
        read = torch.bmm(attention.transpose(1, 2).to(views.value.dtype), views.value)
        attended, units = read.split([self.gate.size, self.gate.units], -1)
        return self.gate(attended, units + views.base, views.local)


class CellWeights(NamedTuple):
    """What the inter-cell attention makes of its parameters once for all steps."""

    weight: Tensor  # (M, M * K) W^L = Z(p_l, p_m) for each head of the reading module
    local: Tensor  # (M, M) W^L, divided by its row sums if asked
    project: Tensor  # (1, H, 2 K * D) Phi^Q and Phi^K side by side
    blocks: Tensor  # (K, K * D) head_blocks
    value: Tensor  # (1, K * H, H)
    gate: Tensor  # (1, 2 * H, G) the gate's first layer, of [h~, c]


class InterCellAttention(nn.Module):
    """Equations eq:intercell_attn_0 to eq:intercell_attn_3, from the states h_l to the aggregated states h-bar_m.
    The values are projected after they are mixed, (W h) Phi^V instead of W (h Phi^V), which is the same."""

    def __init__(self, *, hidden: int, heads: int, key_size: int, gate_units: int) -> None:
        super().__init__()
        self.heads, self.key_size = heads, key_size
        self.phi_q = uniform(hidden, heads, key_size, fan_in=hidden)
        self.phi_k = uniform(hidden, heads, key_size, fan_in=hidden)
        self.phi_v = uniform(hidden, heads, hidden, fan_in=hidden)
        self.gate = Gate(hidden, gate_units)

    def prepare(self, weight: Tensor, *, normalise: bool) -> CellWeights:
        """W^L (M, M), symmetric -> CellWeights. The row sums are never zero: Z(p, p) = 1."""
        return CellWeights(
            weight.repeat_interleave(self.heads, 1),
            weight / weight.sum(-1, keepdim=True) if normalise else weight,
            torch.cat([self.phi_q.flatten(1), self.phi_k.flatten(1)], 1).unsqueeze(0),
            head_blocks(self.heads, self.key_size, self.phi_q),
            self.phi_v.transpose(0, 1).flatten(0, 1).unsqueeze(0),
            torch.cat([self.gate.attended, self.gate.local]).unsqueeze(0),
        )

    def forward(self, h: Tensor, cell: CellWeights, products: Products = PLAIN) -> Tensor:
        """h (B, M, H) -> h-bar (B, M, H)."""
        batch, modules, size = h.shape
        asked = products(h.reshape(1, -1, size), cell.project).view(batch, modules, -1)
        query, key = asked.chunk(2, -1)
        by_head = (query.unsqueeze(2) * cell.blocks).flatten(1, 2)  # (B, M * K, K * D)
        attention = torch.bmm(key, by_head.transpose(1, 2)).softmax(1) * cell.weight  # (B, M, M * K)
        mixed = torch.bmm(attention.transpose(1, 2).to(h.dtype), h).view(1, batch * modules, -1)
        attended = products(mixed, cell.value)
        local = (cell.local.to(h.dtype) @ h).view(1, batch * modules, -1)
        pair = torch.cat([attended, local], -1)
        units = products(pair, cell.gate, self.gate.bias.view(1, 1, -1))
        return self.gate(attended, units, local).view(batch, modules, -1)


def output_attention(weight: Tensor, h: Tensor) -> Tensor:
    """d^q = sum_m Z(s^q, p_m) h_m (section 'Output Attention'): (..., Q, M), (..., M, H) -> (..., Q, H)."""
    return weight.to(h.dtype) @ h
