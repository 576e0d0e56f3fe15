"""Where balls are and how they move in the first frame, as a pure function of the sequence's seed.

Plain worlds. Places: ball after ball, uniform in the part of the box that is still free (random sequential addition),
with a new attempt when a ball finds no place. Dense boxes defeat that; there the balls take random sites of a packing
and are then shaken by random moves that keep them apart. Both are bounded, and the second always succeeds.
General worlds. Radii and masses uniform in their ranges. Places likewise, the largest ball first; where all attempts
fail, that is an error.
Velocities: directions uniform on the circle; speeds uniform in a range for each ball, or such that the velocities of
all balls form a uniform random vector of given norm. Only + - * / sqrt and comparisons, so that all machines agree."""

# N sequences, n balls, K sites of a packing, 2 coordinates (x, y), D discs and G walls that stand still

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import between, checked
from s2rm_data.core.compiled import compiled
from s2rm_data.core.errors import UsageError
from s2rm_data.core.philox import philox, to_unit
from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.bballs.making import ball_config
from s2rm_data.generators.bballs.making.ball_config import AnyConfig, BallsConfig, GeneralConfig
from s2rm_data.generators.bballs.making.ball_contacts import segment_distance_sq
from s2rm_data.generators.bballs.making.ball_packing import sites

_DOMAIN = np.uint64(0x62626C6C73_000001)  # "bblls" and a version: keeps these draws apart from all others of a seed
_PLACE, _SITE, _SHAKE, _DIRECTION, _SPEED = (np.uint64(purpose) for purpose in range(5))
_GENERAL_PLACE, _BODY = (np.uint64(purpose) for purpose in (16, 17))
# Measured in 48 px: with six balls one attempt in 700 fails at radius 5.76 and none in 2,000 at 4.5; all attempts fail
# in 7% of the sequences with 16 balls of radius 4.5, or 3% with 9 of radius 5.76, and in most beyond.
_RULE = (_PLACE, 2, 20, 200)  # purpose of the draws, places of each draw, attempts, tries of each ball
_GENERAL_RULE = (_GENERAL_PLACE, 1, 200, 1000)
_SWEEPS = 64
_TRIALS = 64  # of a general world, before it is made
_ROUNDING = 0.01  # px by which places in hundredths may be nearer to each other
Numbers = NDArray[np.float64]


def start(seeds: NDArray[np.uint64], config: AnyConfig) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Position and velocity (N, n, 2), radius and mass (N, n) of the first frame, for N sequence seeds."""
    position, velocity = np.empty((2, len(seeds), config.balls, 2))
    radius, mass = np.ones((2, len(seeds), config.balls))
    if isinstance(config, BallsConfig):
        radius *= config.radius_px
    else:
        _draw_bodies(seeds, *config.radius_px, *(config.mass_range or (1.0, 1.0)), radius, mass)
        mass = math.pi * radius * radius if config.mass == "area" else mass
    _find_places(seeds, config, radius, position)
    if config.speed_px_per_frame is not None:
        _ball_speeds(seeds, *config.speed_px_per_frame, velocity)
    else:
        _system_speeds(seeds, config.system_speed_px_per_frame, velocity)
    return position, velocity, radius, mass


def scattered(count: int, config: GeneralConfig, seed: int) -> list[tuple[float, float]]:
    """Places of fixed balls as large as the largest ball of a world that has walls alone, the same for all its splits.
    They are in hundredths of a pixel, so that the command that makes a split can list them."""
    checked("fixed", count, Annotated[int, between(0, ball_config.MAX_OBSTACLES)])
    seeds = sequence_seeds(seed, "bballs/fixed", 0, 1)
    radius, position = np.full((1, count), config.radius_px[1] + _ROUNDING), np.empty((1, count, 2))
    if not _found_places(seeds, config, radius, position):
        raise UsageError(
            f"{count} fixed balls of radius {config.radius_px[1]:g} px find no places in a box of {config.size} x "
            f"{config.size} px with {len(config.walls)} inner walls; take fewer, or list their places and radii"
        )
    return [(round(float(x), 2), round(float(y), 2)) for x, y in position[0]]


def check_room(config: GeneralConfig) -> None:
    """Raise a UsageError unless balls of the largest radius find places in each of some trials."""
    radius = np.full((_TRIALS, config.balls), config.radius_px[1])
    _find_places(np.arange(_TRIALS, dtype=np.uint64), config, radius, np.empty((*radius.shape, 2)))


def _find_places(seeds: NDArray[np.uint64], config: AnyConfig, radius: Numbers, position: Numbers) -> None:
    """Fill position (N, n, 2)."""
    if not _found_places(seeds, config, radius, position):
        assert isinstance(config, GeneralConfig)  # plain ones that do not fit have been refused
        raise UsageError(
            f"{config.balls} balls of radius up to {config.radius_px[1]:g} px do not find places in a box of "
            f"{config.size} x {config.size} px with {len(config.fixed)} fixed balls and {len(config.walls)} inner "
            "walls; take fewer or smaller balls, or a larger box"
        )


def _found_places(seeds: NDArray[np.uint64], config: AnyConfig, radius: Numbers, position: Numbers) -> bool:
    plain = isinstance(config, BallsConfig)
    rule, packing = (_RULE, sites(config.size, config.radius_px)) if plain else (_GENERAL_RULE, np.empty((0, 2)))
    order = np.argsort(-radius, axis=1, kind="stable")
    world = (float(config.size), config.discs, config.segments)
    return bool(_place_all(seeds, rule, world, order, packing, radius, position))


@compiled(error_model="numpy")
def uniforms(seed, purpose, number):  # type: ignore[no-untyped-def]
    """Draw `number` of a purpose: four numbers in [0, 1)."""
    a, b, c, d = philox(seed, _DOMAIN, np.uint64(number), purpose)
    return to_unit(a), to_unit(b), to_unit(c), to_unit(d)


@compiled(error_model="numpy")
def _is_free(x, y, r, world, others, own, radius, position):  # type: ignore[no-untyped-def]
    """Whether a ball at (x, y) touches neither a side, nor what stands still, nor any of `others` but `own`."""
    size, discs, segments = world
    if not (r <= x <= size - r and r <= y <= size - r):
        return False
    for k in range(len(discs)):
        dx, dy, reach = x - discs[k, 0], y - discs[k, 1], r + discs[k, 2]
        if dx * dx + dy * dy < reach * reach:
            return False
    for k in range(len(segments)):
        reach = r + ball_config.WALL_HALF_WIDTH_PX
        if segment_distance_sq(x, y, segments[k]) < reach * reach:
            return False
    for k in others:
        dx, dy, reach = x - position[k, 0], y - position[k, 1], r + radius[k]
        if k != own and dx * dx + dy * dy < reach * reach:
            return False
    return True


@compiled(error_model="numpy")
def _place_at_random(seed, rule, world, order, radius, position):  # type: ignore[no-untyped-def]
    """Fill position (n, 2) ball by ball; False when all attempts fail."""
    (purpose, places, attempts, most_tries), size, draw = rule, world[0], 0
    for _ in range(attempts):
        placed, tries = 0, 0
        while placed < len(position) and tries < most_tries:
            a, b, c, d = uniforms(seed, purpose, draw)
            draw += 1
            for place in range(places):
                if placed < len(position):
                    k, (u, v) = order[placed], (a, b) if place == 0 else (c, d)
                    x, y = radius[k] + u * (size - 2 * radius[k]), radius[k] + v * (size - 2 * radius[k])
                    tries += 1
                    if _is_free(x, y, radius[k], world, order[:placed], -1, radius, position):
                        position[k, 0], position[k, 1] = x, y
                        placed, tries = placed + 1, 0
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
def _shake(seed, world, order, radius, position):  # type: ignore[no-untyped-def]
    """Metropolis moves of hard balls: uniform in a square of one of eight sizes, refused where there is no room."""
    balls = len(position)
    for move in range(_SWEEPS * balls):
        k = move % balls
        u, v, scale, _ = uniforms(seed, _SHAKE, move)
        reach = world[0] / (1 << int(8 * scale))
        x = position[k, 0] + (u - 0.5) * reach
        y = position[k, 1] + (v - 0.5) * reach
        if _is_free(x, y, radius[k], world, order, k, radius, position):
            position[k, 0], position[k, 1] = x, y


@compiled(error_model="numpy")
def _place_all(seeds, rule, world, order, packing, radius, position):  # type: ignore[no-untyped-def]
    """Fill position (N, n, 2); False where a sequence finds no room, not even on the sites of packing (K, 2)."""
    for s in range(len(seeds)):
        if not _place_at_random(seeds[s], rule, world, order[s], radius[s], position[s]):
            if len(packing) < position.shape[1]:
                return False
            _place_on_sites(seeds[s], packing, position[s])
            _shake(seeds[s], world, order[s], radius[s], position[s])
    return True


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
def _system_speeds(seeds, norm, velocity):  # type: ignore[no-untyped-def]
    """The 2n velocity components uniform on the sphere of radius `norm`, as normalised Gaussians would be. On that
    sphere the shares of the balls in the square norm are the spacings of n - 1 uniform points in [0, 1]."""
    balls = velocity.shape[1]
    cuts = np.empty(balls + 1)
    for s in range(len(seeds)):
        _directions(seeds[s], velocity[s])
        cuts[0], cuts[balls] = 0.0, 1.0
        for k in range(1, balls):  # each where it belongs among those before it
            value, at = uniforms(seeds[s], _SPEED, k)[0], k
            while cuts[at - 1] > value:
                cuts[at] = cuts[at - 1]
                at -= 1
            cuts[at] = value
        for k in range(balls):
            speed = norm * math.sqrt(cuts[k + 1] - cuts[k])
            velocity[s, k, 0] *= speed
            velocity[s, k, 1] *= speed


@compiled(error_model="numpy")
def _draw_bodies(seeds, radius_low, radius_high, mass_low, mass_high, radius, mass):  # type: ignore[no-untyped-def]
    for s in range(len(seeds)):
        for k in range(radius.shape[1]):
            a, b, _, _ = uniforms(seeds[s], _BODY, k)
            radius[s, k] = radius_low + a * (radius_high - radius_low)
            mass[s, k] = mass_low + b * (mass_high - mass_low)
