"""S2GRU against the paper's equations, written out in reference_s2gru.py, and what follows from them."""

from __future__ import annotations

import dataclasses
import functools

import pytest
import torch
from reference_s2gru import prediction

from s2rm_data.models import build
from s2rm_data.models.world_model import WorldModel
from s2rm_data.models.zoo._s2gru_window import Window


def patchy(batch):
    """Some views dropped, none left at one step."""
    mask = torch.rand(batch.view_mask.shape) < 0.7
    mask[0, 1] = False
    return dataclasses.replace(batch, view_mask=mask)


@pytest.mark.parametrize("codec", ["conv", "mlp", "waves"])
@pytest.mark.parametrize("normalise_rows", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_s2gru_agrees_with_the_papers_equations(make_batch, small, codec, normalise_rows, dtype):
    overrides = small("s2gru", "bballs", codec=codec, normalise_rows=normalise_rows)
    model = build("s2gru", task="bballs", **overrides).to(dtype)
    batch = patchy(make_batch("bballs", B=2, T=4, V=6, dtype=dtype))
    tolerance = 1e-5 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(model(batch).crop, prediction(model, batch), rtol=tolerance, atol=tolerance)


def test_s2gru_with_the_papers_sizes_agrees_with_its_equations(make_batch):
    model = build("s2gru", task="bballs", width=8)
    batch = patchy(make_batch("bballs", B=1, T=3, V=10, Q=4))
    torch.testing.assert_close(model(batch).crop, prediction(model, batch), rtol=1e-5, atol=1e-5)


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


@pytest.mark.parametrize("normalise_rows", [False, True])
def test_a_window_at_once_has_the_states_and_gradients_of_its_steps_one_by_one(make_batch, small, normalise_rows):
    overrides = small("s2gru", "bballs", normalise_rows=normalise_rows, input_heads=3, truncation=0.2)
    model = build("s2gru", task="bballs", **overrides).double()
    model.hidden_limit = 0.05  # reached by some states, not by all
    batch = patchy(make_batch("bballs", B=3, T=5, V=4, dtype=torch.float64))
    start = (0.3 * torch.randn_like(model.initial_state(3))).requires_grad_()
    weights = torch.randn(3, 5, *start.shape[1:], dtype=torch.float64)
    wanted = [start, *(p for name, p in model.named_parameters() if not name.startswith("decoder"))]
    found = []
    for unroll in (model.own_unroll, functools.partial(WorldModel.own_unroll, model)):
        hidden, last = unroll(model.encode_batch(batch), start)
        torch.testing.assert_close(last, hidden[:, -1], rtol=0, atol=0)
        found.append((hidden, *torch.autograd.grad((hidden * weights).sum() + last.square().sum(), wanted)))
    assert 0 < float((found[0][0].abs() > 0.05).double().mean()) < 1
    for at_once, one_by_one in zip(*found, strict=True):
        assert at_once.abs().max() > 0
        torch.testing.assert_close(at_once, one_by_one, rtol=1e-11, atol=1e-13)


def test_a_window_keeps_nothing_where_no_gradient_is_wanted(make_batch, small, monkeypatch):
    model = build("s2gru", task="bballs", **small("s2gru", "bballs"))
    monkeypatch.setattr(Window, "apply", None)  # would fail if called
    with torch.no_grad():
        model(make_batch("bballs"))
