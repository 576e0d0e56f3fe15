"""All steps of S2GRU at once, with a backward pass of its own: the same states and gradients as step by step.

Autograd would keep and pass back what each of some forty small operations made. Here a step's states are passed back by
hand, and what does not recur, such as the gradients of weights and of encoded views, is multiplied once for all steps.

Legend: T steps, B batch, A views, M modules, K heads, D key size, E encoding, H hidden, G gate units."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from s2rm_data.models.attention import AttendedViews, CellWeights

_ops = torch.ops.aten


class Weights(NamedTuple):
    """Gates are G units to one; those of the GRUs are in torch's order: r, z, n."""

    read_out: Tensor  # (G, 1)
    read_bias: Tensor  # (1,)
    cell_bias: Tensor  # (G,)
    cell_out: Tensor  # (G, 1)
    cell_out_bias: Tensor  # (1,)
    weight_input: Tensor  # (M, E, 3H)
    weight_hidden: Tensor  # (M, H, 3H)
    bias_input: Tensor  # (M, 1, 3H)
    bias_hidden: Tensor  # (M, 1, 3H)


class _Kept(NamedTuple):
    """What the backward pass reads of the forward pass, for all steps; or of one, without T."""

    h: Tensor  # (T, B, M, H)
    view_attention: Tensor  # (T, B, A, K * M)
    read: Tensor  # (T, B, M, E + G) u~ and the gate's units, after their activation
    u_gate: Tensor  # (T, B, M, 1)
    u_apart: Tensor  # (T, B, M, E) b - u~
    asked: Tensor  # (T, B, M, 2 K * D)
    by_head: Tensor  # (T, B, M * K, K * D)
    attention: Tensor  # (T, B, M, M * K)
    weighted: Tensor  # (T, B, M, M * K)
    mixed: Tensor  # (T, B * M, K * H)
    pair: Tensor  # (T, B, M, 2 H) h~ and c
    units: Tensor  # (T, B * M, G)
    h_gate: Tensor  # (T, B * M, 1)
    h_apart: Tensor  # (T, B, M, H) c - h~
    u: Tensor  # (M, T, B, E)
    h_bar: Tensor  # (M, T, B, H)
    hidden: Tensor  # (M, T, B, 3H) the GRUs' part of h-bar
    rz: Tensor  # (M, T, B, 2H)
    n: Tensor  # (M, T, B, H)


class _Found(NamedTuple):
    """Gradients that are multiplied with something once for all steps, by the names of what they are of."""

    view_logits: Tensor  # (T, B, A, K * M)
    weighted_views: Tensor  # (T, B, A, K * M)
    read: Tensor  # (T, B, M, E + G)
    u_gate: Tensor  # (T, B, M, 1), before its sigmoid
    local: Tensor  # (T, B, M, E)
    asked: Tensor  # (T, B, M, 2 K * D)
    weighted: Tensor  # (T, B, M, M * K)
    pair: Tensor  # (T, B, M, 2 H)
    units: Tensor  # (T, B * M, G)
    h_gate: Tensor  # (T, B * M, 1), before its sigmoid
    gates: Tensor  # (M, T, B, 4H): the GRUs' n as h-bar gives it; r, z; n as u gives it


def _room(h: Tensor, views: AttendedViews, cell: CellWeights) -> _Kept:
    """Uninitialised, but for h_0."""
    (steps, batch, seen, modules), size = views.weight.shape, h.shape[2]
    encoding, units, keys = views.local.shape[-1], views.base.shape[-1], cell.blocks.shape[1]
    each, flat, by_module = (steps, batch, modules), (steps, batch * modules), (modules, steps, batch)
    new = h.new_empty
    kept = _Kept(
        h=new(steps + 1, batch, modules, size),
        view_attention=new(steps, batch, seen, views.value.shape[2] // seen * modules),
        read=new(*each, encoding + units),
        u_gate=new(*each, 1),
        u_apart=new(*each, encoding),
        asked=new(*each, 2 * keys),
        by_head=new(steps, batch, cell.weight.shape[1], keys),
        attention=new(steps, batch, *cell.weight.shape),
        weighted=new(steps, batch, *cell.weight.shape),
        mixed=new(*flat, cell.value.shape[1]),
        pair=new(*each, 2 * size),
        units=new(*flat, units),
        h_gate=new(*flat, 1),
        h_apart=new(*each, size),
        u=new(*by_module, encoding),
        h_bar=new(*by_module, size),
        hidden=new(*by_module, 3 * size),
        rz=new(*by_module, 2 * size),
        n=new(*by_module, size),
    )
    kept.h[0] = h
    return kept


def _steps(tensors: Any, count: int) -> list[Any]:
    """The first `count` steps, each as a tuple like the one of all. What the GRUs use is module first."""
    by_module = ("u", "h_bar", "hidden", "rz", "n", "gates")
    parts = [x.unbind(int(name in by_module))[:count] for name, x in zip(tensors._fields, tensors, strict=True)]
    return [type(tensors)(*step) for step in zip(*parts, strict=True)]


class Window(torch.autograd.Function):
    """h_0 (B, M, H) -> h_0 to h_T (T + 1, B, M, H)."""

    @staticmethod
    def forward(ctx: Any, limit: float, h: Tensor, *given: Tensor) -> Tensor:
        views, cell, w = _sorted(given)
        kept, count = _room(h, views, cell), len(views.weight)
        following = kept.h[1:].unbind(0)
        for seen, step, h_next in zip(_steps(views, count), _steps(kept, count), following, strict=True):
            _read_views(seen, w, step)
            _aggregate(cell, w, step)
            _gru(w, step, limit, h_next)
        ctx.limit, ctx.count = limit, len(given)
        ctx.save_for_backward(*given, *kept)
        return kept.h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        given, kept = ctx.saved_tensors[: ctx.count], _Kept(*ctx.saved_tensors[ctx.count :])
        back = _Back(*_sorted(given), kept, ctx.limit)
        carried = back.through_time(gradient)
        return None, carried, *back.of_views(), *back.of_cell(), *back.of_weights()


def _sorted(given: Any) -> tuple[AttendedViews, CellWeights, Weights]:
    of_views, of_cell = len(AttendedViews._fields), len(CellWeights._fields)
    parts = given[:of_views], given[of_views : of_views + of_cell], given[of_views + of_cell :]
    return AttendedViews(*parts[0]), CellWeights(*parts[1]), Weights(*parts[2])


def _heads(views: AttendedViews) -> int:
    return views.value.shape[-2] // views.weight.shape[-2]


def _read_views(views: AttendedViews, w: Weights, k: _Kept) -> None:
    """u, as `InputAttention` gives it."""
    logits = torch.baddbmm(views.absent, views.query, k.h.transpose(1, 2))
    torch.softmax(logits.view(k.view_attention.shape), 1, out=k.view_attention)
    weighted = k.view_attention.unflatten(2, (_heads(views), -1)) * views.weight.unsqueeze(2)
    torch.bmm(weighted.flatten(1, 2).transpose(1, 2), views.value, out=k.read)
    attended, units = k.read.split([views.local.shape[-1], views.base.shape[-1]], -1)
    units.add_(views.base).relu_()
    torch.add(units @ w.read_out, w.read_bias, out=k.u_gate).sigmoid_()
    torch.sub(views.local, attended, out=k.u_apart)
    torch.addcmul(attended, k.u_apart, k.u_gate, out=k.u.transpose(0, 1))


def _aggregate(cell: CellWeights, w: Weights, k: _Kept) -> None:
    """h-bar, as `InterCellAttention` gives it."""
    batch, modules, size = k.h.shape
    torch.mm(k.h.view(-1, size), cell.project[0], out=k.asked.flatten(0, 1))
    query, key = k.asked.chunk(2, -1)
    torch.mul(query.unsqueeze(2), cell.blocks, out=k.by_head.unflatten(1, (modules, -1)))
    torch.softmax(torch.bmm(key, k.by_head.transpose(1, 2)), 1, out=k.attention)
    torch.mul(k.attention, cell.weight, out=k.weighted)
    torch.bmm(k.weighted.transpose(1, 2), k.h, out=k.mixed.view(batch, -1, size))
    pair, (attended, local) = k.pair.flatten(0, 1), k.pair.chunk(2, -1)
    torch.mm(k.mixed, cell.value[0], out=pair[:, :size])
    torch.bmm(cell.local.expand(batch, -1, -1), k.h, out=local)
    torch.addmm(w.cell_bias, pair, cell.gate[0], out=k.units).relu_()
    torch.addmm(w.cell_out_bias, k.units, w.cell_out, out=k.h_gate).sigmoid_()
    torch.sub(local, attended, out=k.h_apart)
    torch.addcmul(attended, k.h_apart, k.h_gate.view(batch, modules, 1), out=k.h_bar.transpose(0, 1))


def _gru(w: Weights, k: _Kept, limit: float, h_next: Tensor) -> None:
    """h', as `ModuleGRU` gives it; its tanh by the sigmoid, which is five times as fast on a CPU."""
    sizes = [2 * k.n.shape[2], k.n.shape[2]]
    rz_input, n_input = torch.baddbmm(w.bias_input, k.u, w.weight_input).split(sizes, -1)
    torch.baddbmm(w.bias_hidden, k.h_bar.clamp_(-limit, limit), w.weight_hidden, out=k.hidden)
    rz_hidden, n_hidden = k.hidden.split(sizes, -1)
    r, z = torch.add(rz_input, rz_hidden, out=k.rz).sigmoid_().chunk(2, -1)
    torch.addcmul(n_input, r, n_hidden, out=k.n).mul_(2).sigmoid_().mul_(2).sub_(1)
    torch.lerp(k.n, k.h_bar, z, out=h_next.transpose(0, 1))


class _Back:
    """Gradients: of the states, step by step from the last to the first; then, of what was found, all others."""

    def __init__(self, views: AttendedViews, cell: CellWeights, w: Weights, kept: _Kept, limit: float) -> None:
        self.views, self.cell, self.w, self.kept, self.limit = views, cell, w, kept, limit
        self.size, self.encoding = kept.n.shape[-1], kept.u.shape[-1]
        rz, n = w.weight_hidden.transpose(1, 2).split([2 * self.size, self.size], 1)
        self.weight_hidden = torch.cat([n, rz], 1)  # (M, 3H, H), in the order of `gates`
        like = {"view_logits": "view_attention", "weighted_views": "view_attention", "local": "u_apart"}
        names = [like.get(name, name) for name in _Found._fields[:-1]]
        gates = kept.n.new_empty(*kept.n.shape[:3], 4 * self.size)
        self.found = _Found(*[torch.empty_like(getattr(kept, name)) for name in names] + [gates])

    def through_time(self, gradient: Tensor) -> Tensor:
        """Of h_0 to h_T -> of h_0, with what comes by the later ones."""
        count = len(self.views.weight)
        steps = zip(_steps(self.views, count), _steps(self.kept, count), _steps(self.found, count), strict=True)
        first, *later = gradient.unbind(0)
        carried: Tensor | None = None
        for (views, k, f), of_next in reversed(list(zip(steps, later, strict=True))):
            of_u, of_h_bar = self._gru(k, f, (of_next if carried is None else of_next + carried).transpose(0, 1))
            carried = self._aggregate(k, f, of_h_bar.transpose(0, 1))
            self._read_views(views, k, f, of_u.transpose(0, 1), carried)
        return first if carried is None else first + carried

    def _gru(self, k: _Kept, f: _Found, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Of h' (M, B, H) -> of u and h-bar."""
        size = self.size
        r, z = k.rz.chunk(2, -1)
        through = gradient * z
        of_n = _ops.tanh_backward.grad_input(gradient - through, k.n, grad_input=f.gates[..., 3 * size :])
        of_rz = torch.cat([of_n * k.hidden[..., 2 * size :], (k.h_bar - k.n).mul_(gradient)], -1)
        _ops.sigmoid_backward.grad_input(of_rz, k.rz, grad_input=f.gates[..., size : 3 * size])
        torch.mul(of_n, r, out=f.gates[..., :size])
        through.baddbmm_(f.gates[..., : 3 * size], self.weight_hidden)
        of_u = torch.bmm(f.gates[..., size:], self.w.weight_input.transpose(1, 2))
        return of_u, _ops.hardtanh_backward(through, k.h_bar, -self.limit, self.limit)

    def _aggregate(self, k: _Kept, f: _Found, gradient: Tensor) -> Tensor:
        """Of h-bar (B, M, H) -> of h, as far as it came by the modules' attention to each other."""
        cell, (batch, modules, size) = self.cell, gradient.shape
        attended, local = f.pair.chunk(2, -1)
        torch.mul(gradient, k.h_gate.view(batch, modules, 1), out=local)
        torch.sub(gradient, local, out=attended)
        of_gate = (gradient * k.h_apart).sum(-1).view(-1, 1)
        _ops.sigmoid_backward.grad_input(of_gate, k.h_gate, grad_input=f.h_gate)
        _ops.threshold_backward.grad_input(f.h_gate * self.w.cell_out.view(-1), k.units, 0, grad_input=f.units)
        pair = f.pair.view(-1, 2 * size).addmm_(f.units, cell.gate[0].t())
        of_mixed = torch.mm(pair[:, :size], cell.value[0].t()).view(batch, -1, size)
        torch.bmm(k.h, of_mixed.transpose(1, 2), out=f.weighted)
        of_logits = torch._softmax_backward_data(f.weighted * cell.weight, k.attention, 1, k.h.dtype)
        of_h = torch.bmm(k.weighted, of_mixed).baddbmm_(cell.local.t().expand(batch, -1, -1), local)
        self._ask(k, f, of_logits)
        of_h.view(-1, size).addmm_(f.asked.flatten(0, 1), cell.project[0].t())
        return of_h

    def _ask(self, k: _Kept, f: _Found, of_logits: Tensor) -> None:
        """Of the logits (B, M, M * K) -> of queries, each in its own head's block, and of keys."""
        heads, keys = self.cell.blocks.shape
        query, key = f.asked.chunk(2, -1)
        of_blocks = torch.bmm(of_logits.transpose(1, 2), k.asked[..., keys:]).view(*query.shape[:2], heads, heads, -1)
        query.unflatten(2, (heads, -1)).copy_(of_blocks.diagonal(dim1=2, dim2=3).transpose(2, 3))
        torch.bmm(of_logits, k.by_head, out=key)

    def _read_views(self, views: AttendedViews, k: _Kept, f: _Found, gradient: Tensor, of_h: Tensor) -> None:
        """Of u (B, M, E) -> of h, added to what is known of it."""
        attended, units = f.read[..., : self.encoding], f.read[..., self.encoding :]
        torch.mul(gradient, k.u_gate, out=f.local)
        torch.sub(gradient, f.local, out=attended)
        of_gate = (gradient * k.u_apart).sum(-1, keepdim=True)
        _ops.sigmoid_backward.grad_input(of_gate, k.u_gate, grad_input=f.u_gate)
        of_units = f.u_gate * self.w.read_out.view(-1)
        _ops.threshold_backward.grad_input(of_units, k.read[..., self.encoding :], 0, grad_input=units)
        rows = (*views.value.shape[:2], -1)
        torch.bmm(views.value, f.read.transpose(1, 2), out=f.weighted_views.view(rows))
        of_attention = f.weighted_views.unflatten(2, (_heads(views), -1)) * views.weight.unsqueeze(2)
        attention, dtype = k.view_attention, k.h.dtype
        _ops._softmax_backward_data.out(of_attention.flatten(2), attention, 1, dtype, grad_input=f.view_logits)
        of_h.baddbmm_(f.view_logits.view(rows).transpose(1, 2), views.query)

    def of_views(self) -> tuple[Tensor | None, ...]:
        """As AttendedViews."""
        given, found, h = self.views, self.found, self.kept.h[:-1].flatten(0, 1)
        by_head = self.kept.view_attention.unflatten(3, (_heads(given), -1))
        rows = (-1, given.value.shape[2], by_head.shape[-1])
        weighted = (by_head * given.weight.unsqueeze(3)).view(rows)
        query = torch.bmm(found.view_logits.view(rows), h).view(given.query.shape)
        value = torch.bmm(weighted, found.read.flatten(0, 1)).view(given.value.shape)
        weight = (by_head * found.weighted_views.view(by_head.shape)).sum(3)
        return None, query, value, weight, found.local, found.read[..., self.encoding :]

    def of_cell(self) -> tuple[Tensor | None, ...]:
        """As CellWeights."""
        kept, found, size = self.kept, self.found, self.size
        h = kept.h[:-1].flatten(0, 1)
        local = torch.bmm(found.pair[..., size:].flatten(0, 1), h.transpose(1, 2)).sum(0)
        weight, project = (kept.attention * found.weighted).sum((0, 1)), _summed(h, found.asked)
        value = _summed(kept.mixed, found.pair[..., :size])
        return weight, local, project[None], None, value[None], _summed(kept.pair, found.units)[None]

    def of_weights(self) -> Weights:
        kept, found, size = self.kept, self.found, self.size
        gates = found.gates.flatten(1, 2)
        hidden = torch.bmm(kept.h_bar.flatten(1, 2).transpose(1, 2), gates[..., : 3 * size])
        bias = gates.sum(1, keepdim=True)
        return Weights(
            read_out=_summed(kept.read[..., self.encoding :], found.u_gate),
            read_bias=found.u_gate.sum().view(1),
            cell_bias=found.units.sum((0, 1)),
            cell_out=_summed(kept.units, found.h_gate),
            cell_out_bias=found.h_gate.sum().view(1),
            weight_input=torch.bmm(kept.u.flatten(1, 2).transpose(1, 2), gates[..., size:]),
            weight_hidden=torch.cat([hidden[..., size:], hidden[..., :size]], -1),
            bias_input=bias[..., size:],
            bias_hidden=torch.cat([bias[..., size : 3 * size], bias[..., :size]], -1),
        )


def _summed(x: Tensor, y: Tensor) -> Tensor:
    """Over all rows: (..., D), (..., E) -> (D, E)."""
    return x.reshape(-1, x.shape[-1]).t() @ y.reshape(-1, y.shape[-1])
