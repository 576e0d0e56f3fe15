"""Where balls are and how they move in the first frame, as a pure function of the sequence's seed.

Places: ball after ball, uniform in the part of the box that is still free (random sequential addition), with a new
attempt when a ball finds no place. Dense boxes defeat that; there the balls take random sites of a packing and are then
shaken by random moves that keep them apart. Both are bounded, and the second always succeeds.
Velocities: directions uniform on the circle; speeds uniform in a range for each ball, or such that the velocities of
all balls form a uniform random vector of given norm. Only + - * / sqrt and comparisons, so that all machines agree.
"""

# N sequences, n balls, K sites of a packing, 2 coordinates (x, y)

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from s2rm_data.compiled import compiled
from s2rm_data.generators.bballs.config import BallsConfig
from s2rm_data.generators.bballs.packing import sites
from s2rm_data.philox import philox, to_unit

_DOMAIN = np.uint64(0x62626C6C73_000001)  # "bblls" and a version: keeps these draws apart from all others of a seed
_PLACE, _SITE, _SHAKE, _DIRECTION, _SPEED = (np.uint64(purpose) for purpose in range(5))
# Measured in 48 px: with six balls one attempt in 700 fails at radius 5.76 and none in 2,000 at 4.5; all attempts fail
# in 7% of the sequences with 16 balls of radius 4.5, or 3% with 9 of radius 5.76, and in most beyond.
_ATTEMPTS, _TRIES = 20, 200
_SWEEPS = 64


def start(seeds: NDArray[np.uint64], config: BallsConfig) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Position and velocity (N, n, 2) of the first frame, in px and px/frame, for N sequence seeds."""
    position = np.empty((len(seeds), config.balls, 2))
    velocity = np.empty_like(position)
    _place_all(seeds, float(config.size), config.radius_px, sites(config.size, config.radius_px), position)
    draw_velocities(seeds, config.speed_px_per_frame, config.system_speed_px_per_frame, velocity)
    return position, velocity


def draw_velocities(
    seeds: NDArray[np.uint64],
    speed_px_per_frame: tuple[float, float] | None,
    system_speed_px_per_frame: float | None,
    velocity: NDArray[np.float64],
) -> None:
    """Fill velocity (N, n, 2): each ball's speed uniform in a range or, where that is None, the norm of all given."""
    if speed_px_per_frame is not None:
        _ball_speeds(seeds, *speed_px_per_frame, velocity)
    else:
        _system_speeds(seeds, system_speed_px_per_frame, velocity)


@compiled(error_model="numpy")
def uniforms(seed, purpose, number):  # type: ignore[no-untyped-def]
    """Draw `number` of a purpose: four numbers in [0, 1)."""
    a, b, c, d = philox(seed, _DOMAIN, np.uint64(number), purpose)
    return to_unit(a), to_unit(b), to_unit(c), to_unit(d)


@compiled(error_model="numpy")
def _is_free(x, y, position, count, self, size, radius):  # type: ignore[no-untyped-def]
    """Whether a ball at (x, y) touches neither wall nor fixed ball nor any of the first `count` balls but `self`."""
    if not (radius <= x <= size - radius and radius <= y <= size - radius):
        return False
    contact_sq = 4 * radius * radius
    dx, dy = x - size / 2, y - size / 2
    if dx * dx + dy * dy < contact_sq:
        return False
    for k in range(count):
        dx, dy = x - position[k, 0], y - position[k, 1]
        if k != self and dx * dx + dy * dy < contact_sq:
            return False
    return True


@compiled(error_model="numpy")
def _place_at_random(seed, size, radius, position):  # type: ignore[no-untyped-def]
    """Fill position (n, 2) ball by ball; False when all attempts fail."""
    draw = 0
    for _ in range(_ATTEMPTS):
        placed, tries = 0, 0
        while placed < len(position) and tries < _TRIES:
            a, b, c, d = uniforms(seed, _PLACE, draw)
            draw += 1
            for pair in range(2):
                u, v = (a, b) if pair == 0 else (c, d)
                x, y = radius + u * (size - 2 * radius), radius + v * (size - 2 * radius)
                if placed < len(position) and _is_free(x, y, position, placed, -1, size, radius):
                    position[placed, 0], position[placed, 1] = x, y
                    placed, tries = placed + 1, 0
                else:
                    tries += 1
        if placed == len(position):
            return True
    return False


@compiled(error_model="numpy")
def _place_on_sites(seed, packing, position):  # type: ignore[no-untyped-def]
    """Put the balls on distinct random rows of packing (K, 2), K >= n."""
    order = np.arange(len(packing))
    for k in range(len(position)):
        pick = k + int(uniforms(seed, _SITE, k)[0] * (len(packing) - k))
        order[k], order[pick] = order[pick], order[k]
        position[k, 0], position[k, 1] = packing[order[k], 0], packing[order[k], 1]


@compiled(error_model="numpy")
def _shake(seed, size, radius, position):  # type: ignore[no-untyped-def]
    """Metropolis moves of hard balls: uniform in a square of one of eight sizes, refused where there is no room."""
    balls = len(position)
    for move in range(_SWEEPS * balls):
        k = move % balls
        u, v, scale, _ = uniforms(seed, _SHAKE, move)
        reach = size / (1 << int(8 * scale))
        x = position[k, 0] + (u - 0.5) * reach
        y = position[k, 1] + (v - 0.5) * reach
        if _is_free(x, y, position, balls, k, size, radius):
            position[k, 0], position[k, 1] = x, y


@compiled(error_model="numpy")
def _place_all(seeds, size, radius, packing, position):  # type: ignore[no-untyped-def]
    for s in range(len(seeds)):
        if not _place_at_random(seeds[s], size, radius, position[s]):
            _place_on_sites(seeds[s], packing, position[s])
            _shake(seeds[s], size, radius, position[s])


@compiled(error_model="numpy")
def _directions(seed, velocity):  # type: ignore[no-untyped-def]
    """Fill velocity (n, 2) with unit vectors: points uniform in the disc, taken from the square by rejection."""
    drawn, draw = 0, 0
    while drawn < len(velocity):
        a, b, c, d = uniforms(seed, _DIRECTION, draw)
        draw += 1
        for pair in range(2):
            u, v = (2 * a - 1, 2 * b - 1) if pair == 0 else (2 * c - 1, 2 * d - 1)
            length_sq = u * u + v * v
            if drawn < len(velocity) and 0.0 < length_sq <= 1.0:
                length = math.sqrt(length_sq)
                velocity[drawn, 0], velocity[drawn, 1] = u / length, v / length
                drawn += 1


@compiled(error_model="numpy")
def _ball_speeds(seeds, low, high, velocity):  # type: ignore[no-untyped-def]
    """Each ball's speed uniform in [low, high)."""
    for s in range(len(seeds)):
        _directions(seeds[s], velocity[s])
        for k in range(velocity.shape[1]):
            speed = low + uniforms(seeds[s], _SPEED, k)[0] * (high - low)
            velocity[s, k, 0] *= speed
            velocity[s, k, 1] *= speed


@compiled(error_model="numpy")
def _insert(value, ascending, count):  # type: ignore[no-untyped-def]
    """Put a value where it belongs among the first `count`."""
    k = count
    while k > 0 and ascending[k - 1] > value:
        ascending[k] = ascending[k - 1]
        k -= 1
    ascending[k] = value


@compiled(error_model="numpy")
def _system_speeds(seeds, norm, velocity):  # type: ignore[no-untyped-def]
    """The 2n velocity components uniform on the sphere of radius `norm`, as normalised Gaussians would be.

    On that sphere the shares of the balls in the square norm are the spacings of n - 1 uniform points in [0, 1].
    """
    balls = velocity.shape[1]
    cuts = np.empty(balls + 1)
    for s in range(len(seeds)):
        _directions(seeds[s], velocity[s])
        cuts[0], cuts[balls] = 0.0, 1.0
        for k in range(1, balls):
            _insert(uniforms(seeds[s], _SPEED, k)[0], cuts, k)
        for k in range(balls):
            speed = norm * math.sqrt(cuts[k + 1] - cuts[k])
            velocity[s, k, 0] *= speed
            velocity[s, k, 1] *= speed
