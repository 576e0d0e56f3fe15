"""S2GRU as the paper reads: one einsum per equation, one module at a time, no step prepared ahead.

Slow and plain on purpose. Tests hold the model's predictions against it, benchmarks/models.py its speed and its
gradients. It shares the model's parameters and nothing of its arithmetic.

Indices as in the paper: m and l modules, a views, q queries, k heads, d key features, v value features, i and j
features; b sequences of a batch, which are independent of each other. Shapes are given by these letters.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, einsum

Cells = list[tuple[Tensor, Tensor, Tensor, Tensor]]


def z(model: Any, p: Tensor, s: Tensor) -> Tensor:
    """Equation eq:zonalkernel of all pairs of rows. 'We pass the gradients through the constant region of the kernel as
    if the kernel had not been truncated' (appendix 'Bouncing Ball Models').
    """
    cosine = p @ s.transpose(-1, -2)
    gaussian = torch.exp(-2 * model.config.bandwidth * (1 - cosine))
    truncated = torch.where(cosine >= model.config.truncation, gaussian, 0.0)
    return gaussian + (truncated - gaussian).detach()


def gated(gate: Any, attended: Tensor, local: Tensor) -> Tensor:
    """u_m = G_m b_m + (1 - G_m) u~_m, and the same of h-bar: G by a two-layer MLP with sigmoidal output."""
    first = torch.cat([gate.attended, gate.local])
    hidden = torch.relu(torch.cat([attended, local], -1) @ first + gate.bias)
    g = torch.sigmoid(hidden @ gate.out + gate.out_bias)
    return g * local + (1 - g) * attended


def input_attention(model: Any, e: Tensor, s: Tensor, view_mask: Tensor, h: Tensor) -> list[Tensor]:
    """Equations eq:input_attn_0 to eq:input_attn_2: u_m (b, i) of e (b, a, i), s (b, a, .), mask (b, a), h (b, m, j).

    With no view at all, u~ and the local sum b are empty sums.
    """
    theta, u = model.input_attention, []
    q = einsum("bai,ikd->bakd", e, theta.theta_q)
    v = einsum("bai,ikv->bakv", e, theta.theta_v)
    w_local = z(model, model.p, s) * view_mask[:, None]  # W^(L) (b, m, a)
    for m in range(h.shape[1]):
        k = einsum("bj,jkd->bkd", h[:, m], theta.theta_k)
        logits = einsum("bakd,bkd->bak", q, k).masked_fill(~view_mask[..., None], -1e30)
        w = w_local[:, m, :, None] * logits.softmax(1)
        # u~_{m(kv)}, 256 wide with the paper's sizes, is added over heads k to the width of the local sum
        u_tilde = einsum("bak,bakv->bv", w, v)
        u.append(gated(theta.gate, u_tilde, einsum("ba,bai->bi", w_local[:, m], e)))
    return u


def cell_attention(model: Any, h: Tensor) -> list[Tensor]:
    """Equations eq:intercell_attn_0 to eq:intercell_attn_3: h-bar_m (b, j) of h (b, l, j)."""
    phi, h_bar = model.cell_attention, []
    k = einsum("bli,ikd->blkd", h, phi.phi_k)
    v = einsum("bli,ikv->blkv", h, phi.phi_v)
    w_local = z(model, model.p, model.p)  # W^(L) (m, l)
    # an option that the paper does not have
    w_sum = w_local / w_local.sum(1, keepdim=True) if model.config.normalise_rows else w_local
    for m in range(h.shape[1]):
        q = einsum("bj,jkd->bkd", h[:, m], phi.phi_q)
        w = einsum("bkd,blkd->blk", q, k).softmax(1) * w_local[m, :, None]
        h_tilde = einsum("blk,blkv->bv", w, v)
        h_bar.append(gated(phi.gate, h_tilde, einsum("l,blj->bj", w_sum[m], h)))
    return h_bar


def cells(model: Any) -> Cells:
    """Weights and biases of each module's GRU, as torch.nn.GRUCell has them."""
    gru = model.gru
    weights = (gru.weight_input.transpose(1, 2), gru.weight_hidden.transpose(1, 2), gru.bias_input, gru.bias_hidden)
    return [(wi, wh, bi[0], bh[0]) for wi, wh, bi, bh in zip(*(w.unbind(0) for w in weights), strict=True)]


def step(
    model: Any, modules: Cells, e: Tensor, s: Tensor, view_mask: Tensor, h: Tensor, limit: float = math.inf
) -> Tensor:
    """Equation eq:rnns: h (b, m, j) at t + 1, each module by its own GRU. The paper has no `limit` of h-bar."""
    inputs = zip(modules, input_attention(model, e, s, view_mask, h), cell_attention(model, h), strict=True)
    new = [torch.gru_cell(u, h_bar.clamp(-limit, limit), *weights) for weights, u, h_bar in inputs]
    return torch.stack(new, 1)


def output_attention(model: Any, s: Tensor, h: Tensor) -> Tensor:
    """What the decoder is given at queries s (b, q, .): the modules' h (b, m, j), each as far as it answers there."""
    return einsum("bqm,bmj->bqj", z(model, s, model.p), h)


@torch.no_grad()
def prediction(model: Any, batch: Any) -> Tensor:
    """Images (B, T, Q, C, H, W), one sequence and one step at a time. Absent views are left out, not masked."""
    sequences = []
    for n in range(len(batch.views)):
        h = torch.zeros(1, model.config.modules, model.config.hidden_size, dtype=batch.views.dtype)
        images = []
        for t in range(batch.views.shape[1]):
            present = batch.view_mask[n, t]
            s = model.embedding(batch.view_position[n, t][present])
            at = batch.view_position[n, t][present] if model.takes_position else s
            e = model.encoder(batch.views[n, t][present], at)
            h = step(model, cells(model), e[None], s[None], present[present][None], h)
            s_query = model.embedding(batch.query_position[n, t])
            at = batch.query_position[n, t] if model.takes_position else s_query
            images.append(model.decoder(output_attention(model, s_query[None], h)[0], at[:, None]))
        sequences.append(torch.stack(images))
    return torch.stack(sequences)
