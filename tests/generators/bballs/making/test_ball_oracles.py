"""Trajectories against independent computations: 60 digits, time reversal, pymunk, and what physics conserves."""

from __future__ import annotations

from itertools import pairwise

import mpmath
import numpy as np
import pymunk
import pytest
from mpmath import mpf
from own_starts import simulate_from

from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.bballs.making.ball_config import BallsConfig
from s2rm_data.generators.bballs.making.ball_simulate import simulate_sequences
from s2rm_data.generators.bballs.making.ball_start import start

SIZE = 48


def _seeds(count, stream="tests/oracles"):
    return sequence_seeds(7, stream, 0, count)


class SixtyDigits:
    """Balls in 60-digit arithmetic: every event moves all balls, every root is the textbook one, nothing is cached."""

    def __init__(self, position, velocity, size, radius):
        self.x = [[mpf(float(c)) for c in ball] for ball in position]
        self.v = [[mpf(float(c)) for c in ball] for ball in velocity]
        self.low, self.high, self.middle = mpf(radius), mpf(size) - mpf(radius), mpf(size) / 2
        self.contact_sq = (2 * mpf(radius)) ** 2

    def _meeting(self, d, w):
        """The smaller root of |d + w t| = 2 r, if the two approach."""
        a, b = w[0] ** 2 + w[1] ** 2, 2 * (d[0] * w[0] + d[1] * w[1])
        c = d[0] ** 2 + d[1] ** 2 - self.contact_sq
        if b >= 0 or b * b < 4 * a * c:
            return None
        return (-b - mpmath.sqrt(b * b - 4 * a * c)) / (2 * a)

    def _events(self):
        for i, (x, v) in enumerate(zip(self.x, self.v, strict=True)):
            for axis in range(2):
                if v[axis] != 0:
                    yield ((self.high if v[axis] > 0 else self.low) - x[axis]) / v[axis], "wall", i, axis
            yield self._meeting([x[0] - self.middle, x[1] - self.middle], v), "fixed", i, None
            for j in range(i):
                d = [x[k] - self.x[j][k] for k in range(2)]
                yield self._meeting(d, [v[k] - self.v[j][k] for k in range(2)]), "ball", i, j

    def _bounce(self, kind, i, other):
        if kind == "wall":
            self.v[i][other] = -self.v[i][other]
            return
        x = [self.middle] * 2 if kind == "fixed" else self.x[other]
        normal = [self.x[i][k] - x[k] for k in range(2)]
        length = mpmath.sqrt(normal[0] ** 2 + normal[1] ** 2)
        normal = [c / length for c in normal]
        mine = sum(self.v[i][k] * normal[k] for k in range(2))
        theirs = -mine if kind == "fixed" else sum(self.v[other][k] * normal[k] for k in range(2))
        for k in range(2):
            self.v[i][k] += (theirs - mine) * normal[k]
            if kind == "ball":
                self.v[other][k] += (mine - theirs) * normal[k]

    def _fly(self, time):
        for x, v in zip(self.x, self.v, strict=True):
            for k in range(2):
                x[k] += v[k] * time

    def frame(self):
        """Move on by one frame; positions and velocities (n, 2) as floats."""
        left = mpf(1)
        while True:
            wait, kind, i, other = min((e for e in self._events() if e[0] is not None), key=lambda e: e[0])
            if wait > left:
                break
            self._fly(wait)
            self._bounce(kind, i, other)
            left -= wait
        self._fly(left)
        return [np.array([[float(c) for c in ball] for ball in state]) for state in (self.x, self.v)]


@pytest.mark.parametrize("preset", ["kvae", "sutskever"])
@pytest.mark.parametrize("balls", [1, 2, 3])
def test_25_frames_agree_with_60_digit_arithmetic(preset, balls):
    config = BallsConfig(balls=balls, preset=preset, frames=26)
    position, velocity, _, _ = simulate_sequences(_seeds(6), config)
    bounced = 0
    with mpmath.workdps(60):
        for s in range(len(position)):
            exact = SixtyDigits(position[s, 0], velocity[s, 0], SIZE, config.radius_px)
            for t in range(1, config.frames):
                x, v = exact.frame()
                np.testing.assert_allclose(position[s, t], x, rtol=0, atol=1e-8)
                np.testing.assert_allclose(velocity[s, t], v, rtol=0, atol=1e-8)
            bounced += (velocity[s, -1] != velocity[s, 0]).any(-1).sum()
    assert bounced >= 3 * balls  # the claim is about collisions, not about straight lines


@pytest.mark.parametrize("balls", [4, 5, 6])
def test_10_frames_of_a_crowd_agree_with_60_digit_arithmetic(balls):
    config = BallsConfig(balls=balls, frames=11)
    position, velocity, _, _ = simulate_sequences(_seeds(3), config)
    with mpmath.workdps(60):
        for s in range(len(position)):
            exact = SixtyDigits(position[s, 0], velocity[s, 0], SIZE, config.radius_px)
            for t in range(1, config.frames):
                np.testing.assert_allclose(position[s, t], exact.frame()[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("preset", ["kvae", "sutskever"])
def test_reversed_velocities_lead_back_to_the_start(preset):
    config = BallsConfig(balls=3, preset=preset, frames=26)
    position, velocity, _, _ = simulate_sequences(_seeds(500), config)
    back, _ = simulate_from(position[:, -1], -velocity[:, -1], config.radius_px, config)
    error = np.abs(back[:, ::-1] - position).max(axis=(1, 2, 3))
    assert np.median(error) < 1e-10
    assert error.max() < 1e-6  # each collision multiplies what rounding left by several times


def _violations(position, velocity, size, radius):
    """Largest overlap in px, farthest escape in px, largest relative error of the energy, over (N, T, n, 2)."""
    fixed = np.full((*position.shape[:2], 1, 2), size / 2)
    everything = np.concatenate([position, fixed], axis=2)
    overlap = max(
        (2 * radius - np.sqrt(((everything[:, :, i] - everything[:, :, j]) ** 2).sum(-1))).max()
        for i in range(everything.shape[2])
        for j in range(i)
    )
    escape = max(radius - position.min(), position.max() - (size - radius))
    energy = (velocity**2).sum(axis=(2, 3))
    return overlap, escape, np.abs(energy / energy[:, :1] - 1).max()


@pytest.mark.parametrize("preset", ["kvae", "sutskever"])
@pytest.mark.parametrize("balls", [1, 3, 6])
def test_a_million_frames_keep_energy_and_have_neither_overlap_nor_escape(preset, balls):
    config = BallsConfig(balls=balls, preset=preset)
    moved = 0
    for begin in range(0, 10_000, 2_500):
        seeds = sequence_seeds(0, "tests/million", begin, begin + 2_500)
        position, velocity, _, _ = simulate_sequences(seeds, config)
        overlap, escape, energy = _violations(position, velocity, SIZE, config.radius_px)
        assert overlap < 1e-11
        assert escape <= 0
        assert energy < 1e-13
        moved += (np.abs(np.diff(position, axis=1)).max(axis=(2, 3)) > 0).sum()
    assert moved == 990_000


def test_one_long_run_keeps_energy_and_has_neither_overlap_nor_escape():
    config = BallsConfig(balls=6, frames=100_000)
    position, velocity, _, _ = simulate_sequences(_seeds(1), config)
    overlap, escape, energy = _violations(position, velocity, SIZE, config.radius_px)
    assert overlap < 1e-11
    assert escape <= 0
    assert energy < 1e-11


@pytest.mark.parametrize(
    ("balls", "radius_px", "speed"), [(24, 4.5, (3, 4.5)), (13, 5.76, (48, 48)), (4, 9.8, (48, 48))]
)
def test_the_tightest_packings_keep_energy_and_have_neither_overlap_nor_escape(balls, radius_px, speed):
    config = BallsConfig(balls=balls, radius_px=radius_px, speed_px_per_frame=speed, frames=50)
    position, velocity, _, _ = simulate_sequences(_seeds(20), config)
    overlap, escape, energy = _violations(position, velocity, SIZE, radius_px)
    assert overlap < 1e-11
    assert escape <= 0
    assert energy < 1e-12


def _pymunk_path(position, velocity, frames, radius, steps):
    """Positions (T, n, 2) of the same balls in pymunk with `steps` steps a frame."""
    space = pymunk.Space()
    space.collision_slop = 0.0
    space.collision_bias = 1.0
    space.iterations = 50
    corners = [(0, 0), (SIZE, 0), (SIZE, SIZE), (0, SIZE)]
    still = [pymunk.Segment(space.static_body, corners[k - 1], corners[k], 0) for k in range(4)]
    still.append(pymunk.Circle(space.static_body, radius, (SIZE / 2, SIZE / 2)))
    bodies = []
    for x, v in zip(position, velocity, strict=True):
        body = pymunk.Body(1.0, float("inf"))
        body.position, body.velocity = tuple(x), tuple(v)
        bodies.append(body)
    shapes = [pymunk.Circle(body, radius) for body in bodies]
    for shape in still + shapes:
        shape.elasticity, shape.friction = 1.0, 0.0
    space.add(*bodies, *shapes, *still)
    path = [[tuple(body.position) for body in bodies]]
    for _ in range(1, frames):
        for _ in range(steps):
            space.step(1 / steps)
        path.append([tuple(body.position) for body in bodies])
    return np.array(path)


@pytest.mark.parametrize(("preset", "frames"), [("kvae", 9), ("sutskever", 26)])
def test_pymunk_converges_to_our_path_as_its_steps_shrink(preset, frames):
    config = BallsConfig(balls=3, preset=preset, frames=frames)
    x, v, _, _ = start(_seeds(12), config)
    ours, *_ = simulate_sequences(_seeds(12), config)
    errors = []
    for steps in (1, 10, 100, 1000):
        paths = np.array([_pymunk_path(x[s], v[s], frames, config.radius_px, steps) for s in range(len(x))])
        errors.append(np.median(np.abs(paths - ours).max(axis=(1, 2, 3))))
    assert errors[0] > 1  # one step a frame is visibly wrong
    assert all(fine < coarse / 4 for coarse, fine in pairwise(errors))
    assert errors[-1] < 0.03
