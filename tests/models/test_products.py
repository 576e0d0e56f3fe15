"""Products in the time loop: deferring the weights' gradients changes no value and no gradient."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from s2rm_data.core.registry import MODELS
from s2rm_data.models import build, world_model
from s2rm_data.models import modules as products
from s2rm_data.models.modules import PLAIN, DeferredProducts


def recurrence(multiply, weight, bias, x):
    h = x
    for _ in range(4):
        h = multiply(h, weight, bias).tanh()
    return h.square().sum()


@pytest.mark.parametrize("with_bias", [True, False])
def test_deferred_gradients_equal_plain_ones(monkeypatch, with_bias):
    monkeypatch.setattr(products, "worth_deferring", lambda x, weight: True)
    weight = torch.randn(3, 5, 5, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(3, 1, 5, dtype=torch.float64, requires_grad=True) if with_bias else None
    x = torch.randn(3, 2, 5, dtype=torch.float64, requires_grad=True)
    wanted = [t for t in (weight, bias, x) if t is not None]
    plain = recurrence(PLAIN, weight, bias, x)
    deferred = recurrence(DeferredProducts(4), weight, bias, x)
    torch.testing.assert_close(deferred, plain)
    for one, other in zip(torch.autograd.grad(plain, wanted), torch.autograd.grad(deferred, wanted), strict=True):
        torch.testing.assert_close(one, other)


def test_a_window_longer_than_the_steps_taken_is_no_error(monkeypatch):
    monkeypatch.setattr(products, "worth_deferring", lambda x, weight: True)
    weight = torch.randn(1, 5, 5, requires_grad=True)
    x = torch.randn(1, 2, 5)
    recurrence(DeferredProducts(9), weight, None, x).backward()
    deferred, weight.grad = weight.grad, None
    recurrence(PLAIN, weight, None, x).backward()
    torch.testing.assert_close(deferred, weight.grad)


@pytest.mark.parametrize("name", MODELS.names())
def test_every_models_gradients_are_the_same_deferred_or_not(monkeypatch, small, make_batch, name):
    model = build(name, task="bballs", **small(name, "bballs")).double()
    batch = make_batch("bballs", T=4, dtype=torch.float64)

    def gradients(always):
        monkeypatch.setattr(products, "worth_deferring", lambda x, weight: always)
        return torch.autograd.grad(model.loss(model(batch), batch), list(model.parameters()))

    for deferred, plain in zip(gradients(True), gradients(False), strict=True):
        torch.testing.assert_close(deferred, plain)


def test_no_deferring_where_no_gradient_is_wanted(monkeypatch, small, make_batch):
    monkeypatch.setattr(world_model, "DeferredProducts", None)  # would fail if called
    model = build("s2gru", task="bballs", **small("s2gru", "bballs"))
    with torch.no_grad():
        model(make_batch("bballs"))


class Kernels(TorchDispatchMode):
    """Operators that reach a backend and compute: views and bare allocations are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += not (func.is_view or "empty" in func.__name__ or "detach" in func.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("always", [True, False])
def test_s2gru_takes_at_most_180_kernels_a_time_step(monkeypatch, make_batch, always):
    monkeypatch.setattr(products, "worth_deferring", lambda x, weight: always)
    model = build("s2gru", task="bballs", codec="mlp", width=8)
    counts = []
    for steps in (2, 2, 8):  # the first only so that gradients exist
        batch = make_batch("bballs", T=steps)
        with Kernels() as kernels:
            model.loss(model(batch), batch).backward()
        counts.append(kernels.count)
    assert (counts[2] - counts[1]) / 6 <= 180
