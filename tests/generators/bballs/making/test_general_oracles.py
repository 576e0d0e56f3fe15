"""General worlds against independent computations: 60 digits, time reversal, pymunk, and what physics conserves."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import mpmath
import numpy as np
import pymunk
import pytest
from mpmath import mpf
from own_starts import simulate_from

from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.bballs.making.ball_config import WALL_HALF_WIDTH_PX, BallsConfig, GeneralConfig
from s2rm_data.generators.bballs.making.ball_simulate import simulate_sequences
from s2rm_data.generators.bballs.making.ball_start import start

SIZE = 48
WORLDS = {
    "gravity": {"gravity": (0.0, 0.15)},
    "radii": {"radius_px": (2.0, 6.0)},
    "masses": {"mass": "range", "mass_range": (0.5, 8.0), "gravity": (0.05, -0.1)},
    "fixed": {"fixed": ((12, 12, 4), (36, 20, 6), (20, 38, 2)), "gravity": (0.0, 0.1), "radius_px": (2.0, 4.0)},
    "walls": {
        "walls": ((6, 30, 20, 36), (30, 34, 42, 34), (34, 5, 34, 14)),
        "gravity": (0.0, 0.1),
        "radius_px": (2, 4),
    },
    "still air": {"walls": ((6, 30, 20, 36), (34, 5, 34, 14)), "radius_px": (2, 4)},
}


def _seeds(count):
    return sequence_seeds(7, "tests/general", 0, count)


def _energy(position, velocity, mass, config):
    kinetic = (velocity**2).sum(-1) / 2
    return (mass * (kinetic - position @ np.array(config.gravity))).sum(-1)


def _deepest_overlap(position, radius, config):
    """Over all frames: of balls with each other, with fixed balls and with walls."""
    deepest = -np.inf
    for i in range(config.balls):
        x, r = position[..., i, :], radius[..., None, i]
        for j in range(i):
            deepest = max(deepest, (r + radius[..., None, j] - np.linalg.norm(x - position[..., j, :], axis=-1)).max())
        for fx, fy, fr in config.fixed:
            deepest = max(deepest, (r + fr - np.linalg.norm(x - [fx, fy], axis=-1)).max())
        for wall in config.segments:
            begin, along = wall[:2], wall[2:] - wall[:2]
            share = np.clip((x - begin) @ along / (along @ along), 0, 1)
            gap = np.linalg.norm(x - begin - share[..., None] * along, axis=-1)
            deepest = max(deepest, (r + WALL_HALF_WIDTH_PX - gap).max())
    return deepest


@pytest.mark.parametrize("world", WORLDS)
def test_energy_is_kept_and_nothing_overlaps_or_escapes(world):
    config = GeneralConfig(balls=4, **WORLDS[world])
    position, velocity, radius, mass = simulate_sequences(_seeds(300), config)
    energy = _energy(position, velocity, mass[:, None], config)
    scale = (mass[:, None] * (velocity**2).sum(-1)).sum(-1).max()
    assert np.abs(energy - energy[:, :1]).max() < 1e-12 * scale
    assert _deepest_overlap(position, radius, config) < 1e-11
    inset = radius[:, None, :, None]
    assert (position >= inset).all()
    assert (position <= SIZE - inset).all()
    bounced = np.abs(np.diff(velocity, axis=1) - config.gravity).max(-1) > 1e-6
    assert bounced.mean() > 0.02


def test_a_collision_of_two_masses_keeps_momentum_and_energy():
    config = GeneralConfig(balls=2, size=200, frames=9, fixed=())
    m, v = np.array([1.0, 3.0]), np.array([[2.0, 0.3], [-1.0, 0.1]])
    _, velocity = simulate_from([[90, 100], [101, 102]], v, [2.0, 4.0], config, mass=m)
    assert np.abs(velocity[-1] - v).max() > 0.5
    np.testing.assert_allclose(m @ velocity[-1], m @ v, atol=1e-14)
    np.testing.assert_allclose(m @ (velocity[-1] ** 2).sum(-1), m @ (v**2).sum(-1), rtol=1e-14)


def test_a_ball_bounces_on_the_floor_as_the_textbook_says():
    config = GeneralConfig(balls=1, frames=41, gravity=(0.0, 0.25), fixed=())
    position, velocity = simulate_from([[24, 44 - 8.0]], [[0, 0]], 4.0, config)  # falls 8 px: t = 8, v = 2
    phase = np.arange(41) % 16
    np.testing.assert_allclose(position[:, 0, 1], 36 + 0.125 * np.minimum(phase, 16 - phase) ** 2, atol=1e-11)
    np.testing.assert_allclose(velocity[20, 0], [0, 0.25 * 4], atol=1e-12)


@pytest.mark.parametrize("preset", ["kvae", "sutskever"])
@pytest.mark.parametrize("balls", [1, 3, 7])
def test_gravity_of_zero_and_no_walls_give_the_bits_of_what_is_compiled_without_them(preset, balls):
    plain = BallsConfig(balls=balls, preset=preset)
    general = GeneralConfig(balls=balls, preset=preset, mass="equal")
    x, v, radius, mass = start(_seeds(100), plain)
    expected = simulate_sequences(_seeds(100), plain)
    found = simulate_from(x, v, radius, general, mass=mass)
    assert found[0].tobytes() == expected[0].tobytes()
    assert found[1].tobytes() == expected[1].tobytes()


class SixtyDigits:
    """A world in 60-digit arithmetic: every event moves all balls, roots are mpmath's, nothing is cached."""

    def __init__(self, position, velocity, radius, mass, config):
        self.x = [[mpf(float(c)) for c in ball] for ball in position]
        self.v = [[mpf(float(c)) for c in ball] for ball in velocity]
        self.r, self.m = ([mpf(float(c)) for c in values] for values in (radius, mass))
        self.g = [mpf(c) for c in config.gravity]
        self.size = mpf(config.size)
        self.discs = [[mpf(float(c)) for c in disc] for disc in config.discs]
        self.walls = [[mpf(float(c)) for c in wall] for wall in config.segments]

    def _falls(self, top):
        """The first positive root at which the polynomial falls, and goes below zero by more than rounding."""
        while top and abs(top[0]) < mpf(10) ** -50:
            top = top[1:]
        if len(top) < 2:
            return None
        roots = mpmath.polyroots(top, maxsteps=200, extraprec=200)
        real = sorted(mpmath.re(r) for r in roots if abs(mpmath.im(r)) < mpf(10) ** -30)
        falling = [r for r in real if r > mpf(10) ** -30 and mpmath.polyval(top, r, derivative=1)[1] < 0]
        return falling[0] if falling else None

    def _disc(self, d, v, g, reach):
        dot = lambda a, b: a[0] * b[0] + a[1] * b[1]  # noqa: E731
        top = [dot(g, g) / 4, dot(v, g), dot(v, v) + dot(d, g), 2 * dot(d, v), dot(d, d) - reach**2]
        return self._falls(top)

    def _events(self):
        zero = [mpf(0), mpf(0)]
        for i, (x, v, r) in enumerate(zip(self.x, self.v, self.r, strict=True)):
            for k in range(2):
                normal = [mpf(k == 0), mpf(k == 1)]
                yield self._falls([-self.g[k] / 2, -v[k], self.size - r - x[k]]), i, [-c for c in normal], None
                yield self._falls([self.g[k] / 2, v[k], x[k] - r]), i, normal, None
            for cx, cy, radius in self.discs:
                yield self._disc([x[0] - cx, x[1] - cy], v, self.g, r + radius), i, (cx, cy), None
            for wall in self.walls:
                yield from self._wall_events(i, wall)
            for j in range(i):
                d, w = ([a[k] - b[k] for k in range(2)] for a, b in ((x, self.x[j]), (v, self.v[j])))
                yield self._disc(d, w, zero, r + self.r[j]), i, None, j

    def _wall_events(self, i, wall):
        e = [wall[2] - wall[0], wall[3] - wall[1]]
        length = mpmath.sqrt(e[0] ** 2 + e[1] ** 2)
        for sign in (1, -1):
            n = [-sign * e[1] / length, sign * e[0] / length]
            part = lambda a, n=n: a[0] * n[0] + a[1] * n[1]  # noqa: E731
            gap = part([self.x[i][k] - wall[k] for k in range(2)]) - self.r[i] - mpf(WALL_HALF_WIDTH_PX)
            wait = self._falls([part(self.g) / 2, part(self.v[i]), gap])
            if wait is not None:
                place = [self.x[i][k] + self.v[i][k] * wait + self.g[k] * wait**2 / 2 - wall[k] for k in range(2)]
                if 0 <= place[0] * e[0] + place[1] * e[1] <= length**2:
                    yield wait, i, n, None

    def _bounce(self, i, where, j):
        other = self.x[j] if j is not None else where
        normal = [self.x[i][k] - other[k] for k in range(2)] if j is not None or isinstance(where, tuple) else where
        square = normal[0] ** 2 + normal[1] ** 2
        theirs = self.v[j] if j is not None else [mpf(0), mpf(0)]
        share = sum((self.v[i][k] - theirs[k]) * normal[k] for k in range(2)) / square
        mine = 2 if j is None else 2 * self.m[j] / (self.m[i] + self.m[j])
        for k in range(2):
            self.v[i][k] -= mine * share * normal[k]
            if j is not None:
                self.v[j][k] += (2 - mine) * share * normal[k]

    def _fly(self, time):
        for x, v in zip(self.x, self.v, strict=True):
            for k in range(2):
                x[k] += v[k] * time + self.g[k] * time**2 / 2
                v[k] += self.g[k] * time

    def frame(self):
        left = mpf(1)
        while True:
            wait, i, where, j = min((e for e in self._events() if e[0] is not None), key=lambda e: e[0])
            if wait > left:
                break
            self._fly(wait)
            self._bounce(i, where, j)
            left -= wait
        self._fly(left)
        return np.array([[float(c) for c in ball] for ball in self.x])


@pytest.mark.parametrize("world", WORLDS)
def test_frames_agree_with_60_digit_arithmetic(world):
    config = GeneralConfig(balls=2, frames=13, **WORLDS[world])
    position, velocity, radius, mass = simulate_sequences(_seeds(2), config)
    with mpmath.workdps(60):
        for s in range(2):
            exact = SixtyDigits(position[s, 0], velocity[s, 0], radius[s], mass[s], config)
            for t in range(1, config.frames):
                np.testing.assert_allclose(position[s, t], exact.frame(), atol=1e-8)


@pytest.mark.parametrize("world", WORLDS)
def test_reversed_velocities_lead_back_to_the_start(world):
    config = GeneralConfig(balls=3, frames=16, **WORLDS[world])
    position, velocity, radius, mass = simulate_sequences(_seeds(10), config)
    errors = []
    for s in range(10):
        back, _ = simulate_from(position[s, -1], -velocity[s, -1], radius[s], config, mass=mass[s])
        errors.append(np.abs(back[-1] - position[s, 0]).max())
    assert np.median(errors) < 1e-9
    assert max(errors) < 1e-4  # collisions magnify rounding


def _pymunk_path(position, velocity, radius, mass, config, steps):
    space = pymunk.Space()
    space.gravity = config.gravity
    space.collision_slop, space.collision_bias, space.iterations = 0.0, 1.0, 50
    corners = [(0, 0), (SIZE, 0), (SIZE, SIZE), (0, SIZE)]
    still = [pymunk.Segment(space.static_body, corners[k - 1], corners[k], 0) for k in range(4)]
    still += [pymunk.Circle(space.static_body, r, (x, y)) for x, y, r in config.fixed]
    still += [pymunk.Segment(space.static_body, w[:2], w[2:], WALL_HALF_WIDTH_PX) for w in config.walls]
    bodies = []
    for x, v, m in zip(position, velocity, mass, strict=True):
        body = pymunk.Body(float(m), float("inf"))
        # pymunk moves after it accelerates: half a step of gravity less makes the path exact to first order
        body.position, body.velocity = tuple(x), tuple(v - np.array(config.gravity) / (2 * steps))
        bodies.append(body)
    shapes = [pymunk.Circle(body, float(r)) for body, r in zip(bodies, radius, strict=True)]
    for shape in still + shapes:
        shape.elasticity, shape.friction = 1.0, 0.0
    space.add(*bodies, *shapes, *still)
    path = [[tuple(body.position) for body in bodies]]
    for _ in range(1, config.frames):
        for _ in range(steps):
            space.step(1 / steps)
        path.append([tuple(body.position) for body in bodies])
    return np.array(path)


@pytest.mark.parametrize("world", ["masses", "fixed", "walls"])
def test_pymunk_converges_to_our_path_as_its_steps_shrink(world):
    config = GeneralConfig(balls=2, frames=9, **WORLDS[world])
    x, v, radius, mass = start(_seeds(9), config)
    ours = simulate_sequences(_seeds(9), config)[0]
    errors = []
    for steps in (1, 30, 900):
        paths = [_pymunk_path(x[s], v[s], radius[s], mass[s], config, steps) for s in range(len(x))]
        errors.append(np.median(np.abs(np.array(paths) - ours).max(axis=(1, 2, 3))))
    assert all(fine < coarse / 4 for coarse, fine in pairwise(errors))
    assert errors[-1] < 0.05


@pytest.mark.parametrize("world", WORLDS)
def test_the_batch_and_the_length_do_not_change_a_bit(world):
    config = GeneralConfig(balls=3, frames=30, **WORLDS[world])
    whole = simulate_sequences(_seeds(9), config)
    parts = [simulate_sequences(_seeds(9)[k : k + 4], config) for k in (0, 4, 8)]
    for values, *cut in zip(whole, *parts, strict=True):
        assert np.concatenate(cut).tobytes() == values.tobytes()
    longer = simulate_sequences(_seeds(9), replace(config, frames=50))
    assert (longer[0][:, :30] == whole[0]).all()
