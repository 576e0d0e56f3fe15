from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.bballs.making.ball_config import BallsConfig
from s2rm_data.generators.bballs.making.ball_render import draw_packed, draw_standing
from s2rm_data.generators.bballs.making.ball_simulate import simulate_sequences


def render(position, *, size, radius_px):
    """A plain world of any size and radius."""
    still = draw_standing(np.array([[size / 2, size / 2, radius_px]]), np.empty((0, 4)), size)
    radius = np.full((position.shape[0], position.shape[2]), radius_px)
    return draw_packed(position, radius, still)


def unpack(packed, size):
    return np.unpackbits(packed, axis=-1, count=size)


def brute_force(position, size, radius):
    """Every pixel against every ball: (N, T, n, 2) to booleans (N, T, S, S)."""
    middle = np.arange(size) + 0.5
    fixed = np.full((*position.shape[:2], 1, 2), size / 2)
    balls = np.concatenate([position.astype(np.float64), fixed], axis=2)
    on = np.zeros((*position.shape[:2], size, size), dtype=bool)
    for k in range(balls.shape[2]):
        x, y = balls[:, :, k, 0, None, None], balls[:, :, k, 1, None, None]
        on |= (middle[None, :] - x) ** 2 + (middle[:, None] - y) ** 2 <= radius**2
    return on


@pytest.mark.parametrize("preset", ["kvae", "sutskever"])
@pytest.mark.parametrize("size", [48, 50, 32, 61])
def test_frames_equal_a_test_of_every_pixel(size, preset):
    config = BallsConfig(balls=4, size=size, preset=preset)
    position, *_ = simulate_sequences(sequence_seeds(2, "render", 0, 20), config)
    packed = render(position, size=size, radius_px=config.radius_px)
    expected = brute_force(position, size, config.radius_px)
    assert packed.shape == (20, 100, size, (size + 7) // 8)
    assert (packed == np.packbits(expected, axis=-1)).all()
    assert (unpack(packed, size) == expected).all()


@settings(max_examples=300, deadline=None)
@given(
    size=st.integers(1, 90),
    radius=st.one_of(st.floats(0.0, 60.0), st.integers(0, 120).map(lambda k: k / 2)),
    balls=st.lists(
        st.tuples(*2 * [st.one_of(st.floats(-20, 110), st.integers(-40, 220).map(lambda k: k / 2))]), max_size=4
    ),
)
def test_any_ball_at_any_place_is_drawn_as_a_test_of_every_pixel_would(size, radius, balls):
    position = np.array(balls, dtype=np.float64).reshape(1, 1, -1, 2)
    packed = render(position, size=size, radius_px=radius)
    assert (packed == np.packbits(brute_force(position, size, radius), axis=-1)).all()


def test_pixel_centres_on_the_rim_are_on():
    # 3-4-5: the centres 3 px and 4 px away in x and y are exactly 5 px away.
    frame = unpack(render(np.array([[[[20.5, 20.5]]]]), size=64, radius_px=5.0), 64)[0, 0]
    assert frame[20 + 3, 20 + 4] == 1
    assert frame[20 - 4, 20 + 3] == 1
    assert frame[20, 20 + 5] == 1
    assert frame[20, 20 + 6] == 0
    assert frame[20 + 4, 20 + 4] == 0


def test_rounding_at_the_rim_follows_the_pixel_test():
    rng = np.random.default_rng(0)
    radius = 4.5
    angle = rng.uniform(0, 2 * np.pi, 20_000)
    rim = np.stack([20.5 + radius * np.cos(angle), 20.5 + radius * np.sin(angle)], axis=-1)  # pixel (20, 20) on the rim
    position = rim.reshape(1, -1, 1, 2)
    packed = render(position, size=48, radius_px=radius)
    expected = brute_force(position, 48, radius)
    assert 0.1 < expected[0, :, 20, 20].mean() < 0.9  # both outcomes of rounding occur
    assert (unpack(packed, 48) == expected).all()


def test_columns_run_with_x_and_rows_with_y():
    frame = unpack(render(np.array([[[[40.0, 8.0]]]]), size=48, radius_px=2.0), 48)[0, 0]
    assert frame[8, 40] == 1
    assert frame[40, 8] == 0


def test_the_fixed_ball_is_drawn_in_the_middle():
    frame = unpack(render(np.empty((1, 1, 0, 2)), size=48, radius_px=4.5), 48)[0, 0]
    assert frame.sum() == sum(((a + 0.5) ** 2 + (b + 0.5) ** 2 <= 4.5**2) for a in range(-6, 6) for b in range(-6, 6))
    assert (frame == frame[::-1]).all()
    assert (frame == frame.T).all()


def test_bits_beyond_the_last_column_are_zero():
    packed = render(np.array([[[[46.0, 25.0], [3.0, 3.0]]]]), size=50, radius_px=4.0)
    assert (np.unpackbits(packed, axis=-1)[..., 50:] == 0).all()


def test_single_and_double_precision_positions_of_equal_value_give_equal_frames():
    position, *_ = simulate_sequences(sequence_seeds(2, "single", 0, 5), BallsConfig(balls=3))
    single = position.astype(np.float32)
    one, two = (render(p, size=48, radius_px=4.5) for p in (single, single.astype(np.float64)))
    assert (one == two).all()
