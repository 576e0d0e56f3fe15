"""The truncated spherical Gaussian kernel: values of its equation, gradients as if not truncated."""

from __future__ import annotations

import math

import pytest
import torch

from s2rm_data.models.embedding import spherical_kernel

EPSILON, TAU = 1.3, 0.6


def pair(cosine: float) -> tuple[torch.Tensor, torch.Tensor]:
    p = torch.tensor([[1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    return p, torch.tensor([[cosine, math.sqrt(1 - cosine**2)]], dtype=torch.float64)


@pytest.mark.parametrize("cosine", [1.0, 0.9, 0.61])
def test_a_pair_inside_has_the_gaussian_value(cosine):
    p, s = pair(cosine)
    z = spherical_kernel(p, s, bandwidth=EPSILON, truncation=TAU)
    assert z.item() == pytest.approx(math.exp(-2 * EPSILON * (1 - cosine)))


@pytest.mark.parametrize("cosine", [0.59, 0.0, -1.0])
def test_a_truncated_pair_has_value_exactly_zero(cosine):
    z = spherical_kernel(*pair(cosine), bandwidth=EPSILON, truncation=TAU)
    assert z.item() == 0.0


@pytest.mark.parametrize("cosine", [0.9, 0.59, 0.0, -0.8])
def test_the_gradient_is_that_of_the_untruncated_kernel(cosine):
    p, s = pair(cosine)
    spherical_kernel(p, s, bandwidth=EPSILON, truncation=TAU).sum().backward()
    value = math.exp(-2 * EPSILON * (1 - cosine))
    torch.testing.assert_close(p.grad, 2 * EPSILON * value * s)
    assert p.grad.abs().sum() > 0


def test_the_border_belongs_to_the_inside():
    p, s = pair(0.5)
    assert spherical_kernel(p, s, bandwidth=1.0, truncation=0.5).item() == pytest.approx(math.exp(-1))


def test_half_precision_does_not_move_the_border():
    p = torch.nn.functional.normalize(torch.randn(10, 16), dim=-1)
    s = torch.nn.functional.normalize(torch.randn(500, 16), dim=-1)
    exact = spherical_kernel(p, s, bandwidth=1.0, truncation=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(spherical_kernel(p, s, bandwidth=1.0, truncation=0.1), exact)
