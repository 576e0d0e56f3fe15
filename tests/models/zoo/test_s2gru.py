"""S2GRU against a slow, literal transcription of the equations: one sequence, one step and one module at a time.

Indices as in the paper: a views, m and l modules, k heads, d key features, v value features, i and j features.
"""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import einsum

from s2rm_data.models import build


def literal_kernel(model, p, s):
    """Equation eq:zonalkernel, pair by pair."""
    config = model.config
    z = torch.zeros(len(p), len(s), dtype=p.dtype)
    for i, pi in enumerate(p):
        for j, sj in enumerate(s):
            cosine = pi @ sj
            if cosine >= config.truncation:
                z[i, j] = torch.exp(-2 * config.bandwidth * (1 - cosine))
    return z


def literal_gate(gate, attended, local):
    """u = G b + (1 - G) u~, G by a two-layer MLP with sigmoidal output, in parallel across m."""
    first = torch.cat([gate.attended, gate.local])
    hidden = torch.relu(torch.cat([attended, local], -1) @ first + gate.bias)
    g = torch.sigmoid(hidden @ gate.out + gate.out_bias)
    return g * local + (1 - g) * attended


def literal_input_attention(model, e, s, h):
    """Equations eq:input_attn_0 to eq:input_attn_2; e (A, E), s (A, d), h (M, H). No view: u~ and b are empty sums."""
    theta = model.input_attention
    q = einsum("ai,ikd->akd", e, theta.theta_q)
    k = einsum("mj,jkd->mkd", h, theta.theta_k)
    v = einsum("ai,ikv->akv", e, theta.theta_v)
    w_bar = torch.softmax(einsum("akd,mkd->mak", q, k), dim=1)
    w_local = literal_kernel(model, model.p, s)
    w = w_local[:, :, None] * w_bar
    concatenated = einsum("mak,akv->mkv", w, v).flatten(1)  # u~_{m(kv)}, 256 wide with the paper's sizes
    back = torch.eye(e.shape[1], dtype=e.dtype).repeat(theta.heads, 1)  # projected back to the width of b
    return literal_gate(theta.gate, concatenated @ back, einsum("ma,ai->mi", w_local, e))


def literal_cell_attention(model, h):
    """Equations eq:intercell_attn_0 to eq:intercell_attn_3."""
    phi = model.cell_attention
    q = einsum("mj,jkd->mkd", h, phi.phi_q)
    k = einsum("li,ikd->lkd", h, phi.phi_k)
    v = einsum("li,ikv->lkv", h, phi.phi_v)
    w_bar = torch.softmax(einsum("mkd,lkd->mlk", q, k), dim=1)
    w_local = literal_kernel(model, model.p, model.p)
    h_tilde = einsum("mlk,lkv->mv", w_bar * w_local[:, :, None], v)
    if model.config.normalise_rows:  # an option that the paper does not have
        w_local = w_local / w_local.sum(1, keepdim=True)
    return literal_gate(phi.gate, h_tilde, einsum("ml,lj->mj", w_local, h))


def literal_cells(model, u, h_bar):
    """Equation eq:rnns: one torch.nn.GRUCell a module."""
    gru, states = model.gru, []
    for m in range(len(u)):
        cell = torch.nn.GRUCell(u.shape[1], h_bar.shape[1], dtype=u.dtype)
        cell.weight_ih.data, cell.weight_hh.data = gru.weight_input[m].T, gru.weight_hidden[m].T
        cell.bias_ih.data, cell.bias_hh.data = gru.bias_input[m, 0], gru.bias_hidden[m, 0]
        states.append(cell(u[m : m + 1], h_bar[m : m + 1])[0])
    return torch.stack(states)


@torch.no_grad()
def literal_prediction(model, batch):
    """Predicted crops (B, T, Q, 1, 11, 11)."""
    steps = batch.views.shape[1]
    sequences = []
    for n in range(len(batch.views)):
        h = torch.zeros(model.config.modules, model.config.hidden_size, dtype=batch.views.dtype)
        crops = []
        for t in range(steps):
            present = batch.view_mask[n, t]
            s = model.embedding(batch.view_position[n, t][present])
            e = model.encoder(batch.views[n, t][present], s)
            u, h_bar = literal_input_attention(model, e, s, h), literal_cell_attention(model, h)
            h = literal_cells(model, u, h_bar)
            s_query = model.embedding(batch.query_position[n, t])
            d = einsum("qm,mj->qj", literal_kernel(model, s_query, model.p), h)
            crops.append(model.decoder(d, s_query[:, None])[:, 0])
        sequences.append(torch.stack(crops))
    return torch.stack(sequences)


def patchy(batch):
    """Some views dropped, none left at one step."""
    mask = torch.rand(batch.view_mask.shape) < 0.7
    mask[0, 1] = False
    return dataclasses.replace(batch, view_mask=mask)


@pytest.mark.parametrize("codec", ["conv", "mlp"])
@pytest.mark.parametrize("normalise_rows", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_s2gru_agrees_with_the_papers_equations(make_batch, small, codec, normalise_rows, dtype):
    overrides = small("s2gru", "bballs", codec=codec, normalise_rows=normalise_rows)
    model = build("s2gru", task="bballs", **overrides).to(dtype)
    batch = patchy(make_batch("bballs", B=2, T=4, V=6, dtype=dtype))
    tolerance = 1e-5 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(model(batch).crop, literal_prediction(model, batch), rtol=tolerance, atol=tolerance)


def test_s2gru_with_the_papers_sizes_agrees_with_its_equations(make_batch):
    model = build("s2gru", task="bballs", width=8)
    batch = patchy(make_batch("bballs", B=1, T=3, V=10, Q=4))
    torch.testing.assert_close(model(batch).crop, literal_prediction(model, batch), rtol=1e-5, atol=1e-5)


def test_theta_and_phi_have_the_shapes_of_the_tables():
    model = build("s2gru", task="bballs")
    theta, phi = model.input_attention, model.cell_attention
    assert theta.theta_q.shape == theta.theta_k.shape == (128, 2, 16)
    assert theta.theta_v.shape == (128, 2, 128)
    assert phi.phi_q.shape == phi.phi_k.shape == (128, 4, 16)
    assert phi.phi_v.shape == (128, 4, 128)


def test_a_view_outside_every_enclave_of_a_module_does_not_reach_it(make_batch, small):
    model = build("s2gru", task="bballs", **small("s2gru", "bballs"))
    batch = make_batch("bballs", B=1, T=1, V=1)
    outside = model.enclaves(batch.view_position[0, 0, 0]) == 0
    assert outside.any() and not outside.all()
    with_view = model.step(model.encode_batch(batch)[0], model.initial_state(1))
    absent = dataclasses.replace(batch, view_mask=torch.zeros_like(batch.view_mask))
    without = model.step(model.encode_batch(absent)[0], model.initial_state(1))
    changed = (with_view != without).any(-1)[0]
    assert torch.equal(changed, ~outside)


def test_the_truncated_modules_embedding_still_gets_a_gradient(make_batch, small):
    model = build("s2gru", task="bballs", **small("s2gru", "bballs"))
    batch = make_batch("bballs", B=1, T=2, V=1, Q=1)
    model.loss(model(batch), batch).backward()
    assert (model.module_embedding.grad.abs().sum(-1) > 0).all()


def test_without_injection_only_the_attention_knows_positions(make_batch, small):
    model = build("s2gru", task="bballs", **small("s2gru", "bballs", inject_position=False))
    assert model.encoder.position is None and model.decoder.position is None
    batch = make_batch("bballs")
    model.loss(model(batch), batch).backward()
