from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from own_starts import simulate_from

from s2rm_data.core.errors import UsageError
from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.bballs.making.ball_config import BallsConfig
from s2rm_data.generators.bballs.making.ball_packing import capacity
from s2rm_data.generators.bballs.making.ball_simulate import simulate_sequences

SIZE, RADIUS = 48, 4.5


def run(position, velocity, frames, size=SIZE, radius_px=RADIUS):
    config = BallsConfig(balls=1, frames=frames, size=size, radius_px=radius_px)
    return simulate_from(position, velocity, radius_px, config)


def test_free_flight_is_straight():
    position, velocity = run([[10.0, 10.0]], [[0.5, 0.25]], 11)
    np.testing.assert_allclose(position[:, 0, 0], 10 + 0.5 * np.arange(11), atol=1e-13)
    np.testing.assert_allclose(position[:, 0, 1], 10 + 0.25 * np.arange(11), atol=1e-13)
    assert (velocity == [[0.5, 0.25]]).all()


def test_the_first_frame_is_the_start():
    x, v = np.array([[10.1, 10.2], [38.3, 39.4]]), np.array([[1.5, 0.2], [0.1, -2.0]])
    position, velocity = run(x, v, 1)
    assert (position[0] == x).all()
    assert (velocity[0] == v).all()


def test_a_wall_reverses_the_normal_velocity_and_keeps_the_other():
    position, velocity = run([[6.0, 10.0]], [[-1.0, 0.5]], 4)
    np.testing.assert_allclose(position[:, 0], [[6.0, 10.0], [5.0, 10.5], [5.0, 11.0], [6.0, 11.5]], atol=1e-13)
    assert velocity[-1, 0].tolist() == [1.0, 0.5]


def test_a_ball_into_a_corner_comes_back_the_way_it_went():
    position, velocity = run([[6.0, 6.0]], [[-1.0, -1.0]], 4)
    np.testing.assert_allclose(position[3, 0], [6.0, 6.0], atol=1e-13)
    assert velocity[-1, 0].tolist() == [1.0, 1.0]


def test_the_fixed_ball_throws_a_head_on_ball_back():
    position, velocity = run([[10.0, 24.0]], [[2.0, 0.0]], 6)
    np.testing.assert_allclose(position[:, 0, 0], [10, 12, 14, 14, 12, 10], atol=1e-13)  # contact at x = 15
    np.testing.assert_allclose(velocity[-1, 0], [-2.0, 0.0], atol=1e-15)


def test_equal_balls_swap_normal_velocities():
    # Contact after half a frame, with the line of centres along x.
    x = np.array([[12.0, 8.0], [22.0, 9.0]])
    _, velocity = run(x, [[1.0, 1.0], [-1.0, -1.0]], 2)
    np.testing.assert_allclose(velocity[-1], [[-1.0, 1.0], [1.0, -1.0]], atol=1e-14)


def test_equal_balls_swap_normal_velocities_along_any_line_of_centres():
    rng = np.random.default_rng(3)
    for _ in range(50):
        normal = rng.normal(size=2)
        normal /= np.linalg.norm(normal)
        tangent = np.array([-normal[1], normal[0]])
        (n1, n2), (t1, t2) = rng.uniform(0.1, 1, 2), rng.uniform(-0.3, 0.3, 2)
        v = np.array([-n1 * normal + t1 * tangent, n2 * normal + t2 * tangent])
        contact = np.array([[50, 60] + RADIUS * normal, [50, 60] - RADIUS * normal])
        _, velocity = run(contact - 0.25 * v, v, 2, size=200)
        expected = np.array([n2 * normal + t1 * tangent, -n1 * normal + t2 * tangent])
        np.testing.assert_allclose(velocity[-1], expected, atol=1e-12)


def test_balls_that_pass_clear_of_each_other_do_not_collide():
    x, v = [[10.0, 5.0], [30.0, 14.1]], [[2.0, 0.0], [-2.0, 0.0]]
    _, velocity = run(x, v, 8)
    assert velocity[-1].tolist() == v


def test_a_touching_row_passes_the_momentum_on_to_its_last_ball():
    x = [[6.0, 5.0], [15.0, 5.0], [24.0, 5.0]]
    position, velocity = run(x, [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], 3)
    np.testing.assert_allclose(position[-1], [[6.0, 5.0], [15.0, 5.0], [26.0, 5.0]], atol=1e-12)
    np.testing.assert_allclose(velocity[-1], [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], atol=1e-14)


def test_a_simultaneous_hit_of_three_keeps_energy_and_momentum_and_does_not_overlap():
    height = np.sqrt(12.0**2 - 6.0**2)
    x = np.array([[10.0, 6.0], [22.0, 6.0], [16.0, 6.0 + height]])
    v = x.mean(axis=0) - x
    v /= np.linalg.norm(v, axis=1)[:, None]
    position, velocity = run(x, v, 5, size=100)
    assert np.linalg.norm(velocity[-1] - v, axis=1).min() > 0.5
    np.testing.assert_allclose((velocity**2).sum(axis=(1, 2)), 3.0, atol=1e-13)
    np.testing.assert_allclose(velocity.sum(axis=1), np.broadcast_to(v.sum(axis=0), (5, 2)), atol=1e-13)
    gaps = [np.linalg.norm(position[:, i] - position[:, j], axis=-1).min() for i in range(3) for j in range(i)]
    assert min(gaps) >= 9.0 - 1e-12


def test_balls_without_speed_stay_where_they_are():
    config = BallsConfig(balls=6, speed_px_per_frame=(0, 0), frames=20)
    position, velocity, _, _ = simulate_sequences(sequence_seeds(0, "still", 0, 5), config)
    assert (position == position[:, :1]).all()
    assert (velocity == 0).all()


def test_a_row_jammed_from_wall_to_wall_is_refused_in_bounded_time():
    x = [[5.0, 5.0], [15.0, 5.0], [25.0, 5.0], [35.0, 5.0]]
    with pytest.raises(UsageError, match="jammed"):
        run(x, [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], 3, size=40, radius_px=5.0)


def test_no_frames_and_no_room_are_refused():
    with pytest.raises(UsageError, match="from 1 to"):
        run([[10.0, 10.0]], [[0.0, 0.0]], 0)
    with pytest.raises(UsageError, match="no ball of this radius"):
        run([[24.0, 24.0]], [[0.0, 0.0]], 5, radius_px=24.0)


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_the_batch_a_sequence_is_in_does_not_change_a_bit_of_it(batch):
    config = BallsConfig(balls=4)
    seeds = sequence_seeds(5, "batch", 0, 100)
    whole = simulate_sequences(seeds, config)
    for begin in range(0, 100, batch):
        part = simulate_sequences(seeds[begin : begin + batch], config)
        assert part[0].tobytes() == whole[0][begin : begin + batch].tobytes()
        assert part[1].tobytes() == whole[1][begin : begin + batch].tobytes()


def test_more_frames_prolong_a_sequence_without_changing_it():
    seeds = sequence_seeds(5, "longer", 0, 20)
    short, *_ = simulate_sequences(seeds, BallsConfig(balls=3, frames=40))
    long, *_ = simulate_sequences(seeds, BallsConfig(balls=3, frames=90))
    assert (long[:, :40] == short).all()


def test_one_sequence_alone_equals_the_same_in_a_batch():
    made = simulate_sequences(sequence_seeds(5, "alone", 0, 3), BallsConfig(balls=3, frames=1))
    x, v = (a[:, 0] for a in made[:2])
    together = run(x, v, 30)
    alone = run(x[1], v[1], 30)
    assert alone[0].shape == (30, 3, 2)
    assert (alone[0] == together[0][1]).all()
    assert (alone[1] == together[1][1]).all()


GOLDEN = {
    ("kvae", 1): "6a1a08b78dfeff7757d3ca46b8ff9d5fd540bf2518e190b1b659b1742dc44d3f",
    ("kvae", 3): "a3a94123cf3aa0a920f7379e85704f19b00e148ce43aa2ae2e71759dcf899125",
    ("kvae", 6): "dfea80a69752070cf409aa0941f56996a7c9444706ae3e5a97ba30089ce5f2e7",
    ("kvae", 22): "37957638371cbe4d28326ce8afdd45c34ff243b7845ef65e1a68bcdd8c340615",
    ("sutskever", 3): "f27b0c0cc05759b6edf217c34992cbe4bed80bb00704c599b7ab6c152d04cdfb",
}


@pytest.mark.parametrize(("preset", "balls"), GOLDEN)
def test_states_have_the_same_bits_on_every_machine(preset, balls):
    seeds = sequence_seeds(0, "golden", 0, 8)
    position, velocity, _, _ = simulate_sequences(seeds, BallsConfig(balls=balls, preset=preset, frames=50))
    digest = hashlib.sha256(position.astype("<f8").tobytes() + velocity.astype("<f8").tobytes()).hexdigest()
    assert digest == GOLDEN[preset, balls]


@settings(max_examples=150, deadline=None)
@given(
    size=st.integers(8, 128),
    share=st.floats(0.02, 0.2),
    fill=st.floats(0, 1),
    slow=st.floats(0, 1),
    fast=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_whatever_fits_neither_overlaps_nor_escapes_nor_loses_energy(size, share, fill, slow, fast, seed):
    radius = max(share * size, 0.75)
    most = min(capacity(size, radius), 40)
    assume(most >= 1)
    low, high = sorted((slow**3 * size, fast**3 * size))
    config = BallsConfig(
        balls=max(1, round(fill * most)), size=size, radius_px=radius, speed_px_per_frame=(low, high), frames=12
    )
    position, velocity, _, _ = simulate_sequences(sequence_seeds(seed, "any", 0, 2), config)
    fixed = np.full((2, config.frames, 1, 2), size / 2)
    everything = np.concatenate([position, fixed], axis=2)
    i, j = np.triu_indices(config.balls + 1, 1)
    distance = np.sqrt(((everything[:, :, i] - everything[:, :, j]) ** 2).sum(-1))
    assert distance.min() >= 2 * radius - 1e-12 * size
    assert position.min() >= radius
    assert position.max() <= size - radius
    energy = (velocity**2).sum(axis=(2, 3))
    np.testing.assert_allclose(energy, np.broadcast_to(energy[:, :1], energy.shape), rtol=1e-12, atol=1e-300)
