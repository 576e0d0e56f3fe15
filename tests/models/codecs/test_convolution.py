"""Polar convolutions, injected positions and growing images, each against its plain definition."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from s2rm_data.core.registry import CODECS
from s2rm_data.models import config_for
from s2rm_data.models.codecs import conv as convolution
from s2rm_data.models.codecs.conv import Conv, Grow, PositionMap, in_chunks, pad_angle


def test_polar_convolution_commutes_with_rotation_by_one_angular_cell():
    conv = Conv(3, 5, polar=True)
    x = torch.randn(2, 3, 6, 9)
    torch.testing.assert_close(conv(x.roll(1, -1)), conv(x).roll(1, -1))


def test_polar_convolution_does_not_wrap_along_the_radius():
    conv = Conv(1, 1, polar=True)
    x = torch.zeros(1, 1, 6, 8)
    x[..., 0, :] = 1.0
    outer = conv(x)[..., -1, :]
    torch.testing.assert_close(outer, conv.bias.view(1, 1, 1).expand(1, 1, 8))


@pytest.mark.parametrize("cells", [1, 2, 5])
def test_padding_along_the_angle_has_the_values_and_gradients_of_circular_padding(cells):
    x = torch.randn(2, 3, 4, cells, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 3, 4, cells + 2, dtype=torch.float64)
    ours, plain = pad_angle(x), F.pad(x, (1, 1, 0, 0), mode="circular")
    torch.testing.assert_close(ours, plain)
    gradients = [torch.autograd.grad((padded * weight).sum(), x)[0] for padded in (ours, plain)]
    torch.testing.assert_close(*gradients)


def test_plain_convolution_does_not_commute_with_rotation():
    conv = Conv(3, 5)
    x = torch.randn(2, 3, 6, 9)
    assert not torch.allclose(conv(x.roll(1, -1)), conv(x).roll(1, -1))


@pytest.mark.parametrize("polar", [False, True])
def test_an_injected_position_equals_its_concatenation_to_the_features(polar):
    conv, position = Conv(4, 6, polar=polar), PositionMap(8, 6, (5, 7), polar=polar)
    x, s = torch.randn(3, 4, 5, 7), torch.randn(3, 8)
    together = Conv(4 + 8, 6, polar=polar)
    together.weight.data = torch.cat([conv.weight, position.weight], 1)
    together.bias.data = conv.bias.data
    scaled = (s * 8**0.5)[:, :, None, None].expand(-1, -1, 5, 7)
    torch.testing.assert_close(position(conv(x), s), together(torch.cat([x, scaled], 1)), rtol=1e-4, atol=1e-5)


def test_growing_equals_a_transposed_convolution():
    grow = Grow(4, 3, (2, 3))
    x = torch.randn(2, 4, 5, 6)
    weight = grow.weight.view(2, 3, 3, 4).permute(3, 2, 0, 1)
    torch.testing.assert_close(grow(x), F.conv_transpose2d(x, weight, grow.bias, stride=(2, 3)), rtol=1e-4, atol=1e-5)


def test_chunks_change_no_value(monkeypatch):
    encoder = CODECS.load("conv").encoder(config_for("s2gru", "bballs", width=8), position_size=16)
    views, s = torch.rand(10, 1, 11, 11), torch.randn(10, 16)
    whole = encoder(views, s)
    monkeypatch.setattr(convolution, "CPU_CHUNK", 4)
    torch.testing.assert_close(encoder(views, s), whole)
    assert in_chunks(lambda x, y: x + 1, views, None).shape == views.shape


@pytest.mark.parametrize("codec", ["conv", "mlp"])
@pytest.mark.parametrize("size", [(16, 32), (18, 36), (9, 15), (7, 10)])
def test_any_polar_size_is_encoded_and_decoded(codec, size):
    config = config_for("lstm", "sc2", codec=codec, width=8, image_size=size, encoding_size=16)
    encoder = CODECS.load(codec).encoder(config, position_size=8)
    decoder = CODECS.load(codec).decoder(config, 20, position_size=8)
    assert encoder(torch.rand(3, 24, *size), torch.rand(3, 8)).shape == (3, 16)
    assert decoder(torch.rand(3, 20), torch.rand(3, 2, 8)).shape == (3 * 2, 15, *size)


@pytest.mark.parametrize("codec", ["conv", "mlp", "waves"])
def test_queries_of_one_state_are_decoded_as_if_alone(codec):
    config = config_for("lstm", "bballs", codec=codec, width=8)
    decoder = CODECS.load(codec).decoder(config, 20, position_size=16)
    hidden, s = torch.rand(2, 20), torch.randn(2, 3, 2 if codec == "waves" else 16)
    together = decoder(hidden, s).unflatten(0, (2, 3))
    for q in range(3):
        torch.testing.assert_close(decoder(hidden, s[:, q : q + 1]), together[:, q])
    assert not torch.allclose(together[:, 0], together[:, 1])
    some = torch.tensor([1, 2, 4])
    torch.testing.assert_close(decoder(hidden, s, some), together.flatten(0, 1)[some])


def test_views_of_any_dtype_are_taken():
    encoder = CODECS.load("conv").encoder(config_for("s2gru", "bballs", width=8), position_size=0)
    views = torch.rand(4, 1, 11, 11) < 0.3
    torch.testing.assert_close(encoder(views.to(torch.uint8), None), encoder(views.float(), None))
