"""The codec `waves`: what riding on waves means, and that compiled code computes the same in fixed shapes."""

from __future__ import annotations

import pytest
import torch

from s2rm_data.core.registry import CODECS
from s2rm_data.models import build, config_for
from s2rm_data.models.codecs.waves import turned, wave_vectors
from s2rm_data.starcraft.polar import PolarGrid

SIZE, RHO = (8, 12), 0.75


def config(**fields):
    return config_for("s2gru", "sc2", codec="waves", width=4, image_size=SIZE, cell_size=RHO, **fields)


def one_unit(ring: int, sector: int) -> torch.Tensor:
    """(1, 24, 8, 12): a friendly unit of type 3 in one cell, nothing elsewhere."""
    view = torch.zeros(1, 24, *SIZE)
    view[0, 15] = 1.0
    view[0, [0, 3, 10], ring, sector] = torch.tensor([1.0, 1.0, 0.5])
    return view


def test_turning_moves_a_wave_to_another_place():
    waves = wave_vectors(5, 2.0)
    x, shift = torch.tensor([3.0, -1.0]), torch.tensor([0.5, 2.0])

    def at(place):
        phase = waves @ place
        return torch.cat([phase.cos(), phase.sin()])

    torch.testing.assert_close(turned(at(x), waves @ shift), at(x + shift))


def test_turning_is_multiplication_by_a_complex_number_and_its_gradient_turns_back():
    x = torch.randn(5, 12, dtype=torch.float64, requires_grad=True)
    phase, back = 9 * torch.randn(5, 6, dtype=torch.float64), torch.randn(5, 12, dtype=torch.float64)
    product = torch.complex(*x.chunk(2, -1)) * torch.polar(torch.ones_like(phase), phase)
    plain = torch.cat([product.real, product.imag], -1)
    torch.testing.assert_close(turned(x, phase), plain)
    ours, autograds = (torch.autograd.grad(y, x, back)[0] for y in (turned(x, phase), plain))
    torch.testing.assert_close(ours, autograds)


def test_no_wave_is_shorter_than_asked_for_and_graded_ones_reach_the_longest():
    for waves in (wave_vectors(200, 3.0), wave_vectors(200, 3.0, 90.0)):
        period = 2 * torch.pi / waves.norm(dim=-1)
        assert period.min() >= 3.0
        assert period.min() < 3.3
    assert period.max() > 60


def test_one_thing_seen_from_two_places_is_encoded_alike():
    encoder = CODECS.load("waves").encoder(config(), position_size=8)
    near, far = torch.tensor([[10.0, 5.0]]), torch.tensor([[10.0 - 4 * RHO, 5.0]])
    seen = encoder(one_unit(0, 0), near)
    torch.testing.assert_close(encoder(one_unit(4, 0), far), seen)
    assert not torch.allclose(encoder(one_unit(4, 0), near), seen, atol=1e-2)


def test_empty_views_are_all_encoded_alike_wherever_they_are():
    encoder = CODECS.load("waves").encoder(config(), position_size=8)
    empty = one_unit(0, 0)
    empty[0, :14] = 0.0
    first, second = encoder(empty.expand(2, -1, -1, -1), torch.tensor([[1.0, 2.0], [30.0, 7.0]]))
    torch.testing.assert_close(first, second)


def test_cells_lie_where_the_images_draw_them_whatever_the_radius_of_view():
    decoder = CODECS.load("waves").decoder(config(), 16, position_size=8)
    points = torch.from_numpy(PolarGrid(radial=8, angular=12, radius=8 * RHO).points()).flatten(0, 1).float()
    phase = points @ decoder.waves.vectors.T
    torch.testing.assert_close(decoder.cosine[..., 0], phase.cos(), atol=1e-5, rtol=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_code_reads_the_same_cells_in_fixed_shapes(make_batch):
    encoder = CODECS.load("waves").encoder(config(), position_size=8)
    batch = make_batch("sc2")
    views, position = batch.views.flatten(0, 2), batch.view_position.flatten(0, 2)
    torch._dynamo.reset()
    compiled = torch.compile(encoder, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(views, position), encoder(views, position), rtol=1e-4, atol=1e-5)


def test_modules_that_start_equal_have_equal_weights_and_others_have_not():
    for name, layer in (("s2gru", "gru"), ("s2rmc", "memory")):
        for equal in (True, False):
            model = build(name, "bballs", codec="waves", width=4, equal_starts=equal)
            weights = next(getattr(model, layer).parameters())
            assert torch.equal(weights[0], weights[1]) == equal
