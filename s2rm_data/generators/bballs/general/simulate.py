"""Balls of any radius and mass under constant gravity, between fixed balls and inner walls, from event to event.

Between events every ball flies a parabola, and bounces are without loss. The scheme is that of `bballs.simulate`:
places are kept as of the last event, frames are read off and never written back, times are counted from the last frame.
What gravity changes:
- A ball can come back to the fixed ball or wall that it just left, so that it is asked at once. It leaves with a speed
  away from it, which the search for the next root takes as its beginning; a side of the box is left from exactly.
- A contact that goes less deep than the rounding of places (1e-14 of the box) is a miss, also where a ball only grazes.
- A ball that lies still on what gravity presses it against would bounce without end. Bounces keep all energy, so that
  no ball comes to rest. A start at rest on a side of the box is refused; other such starts, and speeds so near to rest
  that a ball has more than 200,000 collisions in a frame, are an error.
Only + - * / sqrt and comparisons: the same numbers on every machine.
"""

# N sequences, T frames, n balls, 2 coordinates (x, y), D discs and G walls that stand still

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from s2rm_data.compiled import compiled
from s2rm_data.errors import UsageError
from s2rm_data.generators.bballs.general.config import WALL_HALF_WIDTH_PX, GeneralConfig
from s2rm_data.generators.bballs.general.contacts import approach, arrival, disc_contact
from s2rm_data.generators.bballs.general.start import general_start, segment_distance_sq

# rows of the state (8, n): at time SINCE the ball was at X, Y with velocity VX, VY; its next event is at WHEN
_X, _Y, _VX, _VY, _SINCE, _WHEN, _R, _M = range(8)
_PARTNER, _LAST = range(2)  # rows of the links (2, n): whom the ball meets at WHEN, and whom it met at SINCE
_NOBODY, _WALL_X, _WALL_Y = -1, -2, -3
_OBSTACLE = -4  # and below: the discs, then the walls
_MISS_DEPTH = 1e-14  # in units of the box
_TOUCHING = 1e-12  # in units of the box: as far as rounding can put a ball into a wall
_START_OVERLAP_PX = 1e-9
_EVENTS_PER_FRAME_AND_BALL = 200_000


class _World(NamedTuple):
    size: float
    gx: float
    gy: float
    discs: NDArray[np.float64]
    segments: NDArray[np.float64]


def simulate_general(
    seeds: NDArray[np.uint64], config: GeneralConfig
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Position and velocity (N, T, n, 2), radius and mass (N, n) of the sequences with these seeds."""
    position, velocity, radius, mass = general_start(seeds, config)
    return *_simulate(position, velocity, radius, mass, config), radius, mass


def simulate_from(
    position: ArrayLike, velocity: ArrayLike, radius: ArrayLike, mass: ArrayLike, config: GeneralConfig
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Position and velocity (T, n, 2) from one's own start, (n, 2), (n, 2), (n,), (n,), in the world of a config."""
    x, v, r, m = (np.array(a, dtype=np.float64, order="C")[None] for a in (position, velocity, radius, mass))
    if x.shape != v.shape or x.ndim != 3 or x.shape[-1] != 2 or r.shape != x.shape[:2] or m.shape != x.shape[:2]:
        raise UsageError(
            f"position {x.shape[1:]}, velocity {v.shape[1:]}, radius {r.shape[1:]} and mass {m.shape[1:]} do not "
            "belong together; they are (balls, 2), (balls, 2), (balls,) and (balls,)"
        )
    _check_start(x[0], v[0], r[0], m[0], config)
    moved = _simulate(x, v, r, m, config)
    return moved[0][0], moved[1][0]


def _simulate(
    x: NDArray[np.float64],
    v: NDArray[np.float64],
    radius: NDArray[np.float64],
    mass: NDArray[np.float64],
    config: GeneralConfig,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    sequences, balls, _ = x.shape
    position = np.empty((sequences, config.frames, balls, 2))
    velocity = np.empty_like(position)
    position[:, 0], velocity[:, 0] = x, v
    world = _World(float(config.size), *config.gravity, config.discs, config.segments)
    jammed = _run(x, v, radius, mass, world, position, velocity)
    if jammed >= 0:
        raise UsageError(
            f"the balls of sequence {jammed} are jammed: more than {_EVENTS_PER_FRAME_AND_BALL} collisions per ball in "
            "one frame; give them more room or less speed"
        )
    return position, velocity


def _check_start(
    x: NDArray[np.float64],
    v: NDArray[np.float64],
    r: NDArray[np.float64],
    m: NDArray[np.float64],
    config: GeneralConfig,
) -> None:
    if not all(np.isfinite(a).all() for a in (x, v, r, m)):
        raise UsageError("position, velocity, radius and mass must be finite; there is a NaN or an infinity among them")
    if (r <= 0).any() or (m <= 0).any():
        raise UsageError("radius and mass must be above 0")
    everything = np.concatenate([np.column_stack([x, r]), config.discs])
    for i in range(len(x)):
        inset = min(x[i].min(), config.size - x[i].max()) - r[i]
        gaps = np.hypot(*(everything[:, :2] - x[i]).T) - everything[:, 2] - r[i]
        gaps[i] = np.inf
        walls = [segment_distance_sq(*x[i], wall) ** 0.5 - WALL_HALF_WIDTH_PX - r[i] for wall in config.segments]
        if min(inset, gaps.min(initial=np.inf), *walls, np.inf) < -_START_OVERLAP_PX:
            raise UsageError(f"ball {i} overlaps a wall, a fixed ball or another ball at the start; move it away")
        for k in range(2):
            side = config.size - r[i] if config.gravity[k] > 0 else r[i]
            if config.gravity[k] and x[i, k] == side and v[i, k] == 0:
                raise UsageError(
                    f"ball {i} lies still on the side that gravity presses it against, and bounces of no height have "
                    "no end; give it height or speed"
                )


@compiled(error_model="numpy")
def _side(x, u, g, low, high):  # type: ignore[no-untyped-def]
    """Time until a coordinate reaches either side of the box."""
    return min(arrival(max(high - x, 0.0), u, g), arrival(max(x - low, 0.0), -u, -g))


@compiled(error_model="numpy")
def _segment(x, y, u, v, reach, segment, world):  # type: ignore[no-untyped-def]
    """Time until a ball touches one of the two straight sides of a wall, from outside."""
    ex, ey = segment[2] - segment[0], segment[3] - segment[1]
    length = np.sqrt(ex * ex + ey * ey)
    ex, ey = ex / length, ey / length
    px, py = x - segment[0], y - segment[1]
    height, rise, pull = ex * py - ey * px, ex * v - ey * u, ex * world.gy - ey * world.gx
    along, pace, push = ex * px + ey * py, ex * u + ey * v, ex * world.gx + ey * world.gy
    best = np.inf
    for sign in (1.0, -1.0):
        gap = sign * height - reach
        if -_TOUCHING * world.size < gap < 0.0:
            gap = 0.0
        wait = arrival(gap, -sign * rise, -sign * pull)
        if wait < best and 0.0 <= along + wait * (pace + 0.5 * push * wait) <= length:
            best = wait
    return best


@compiled(error_model="numpy")
def _look_ahead(i, now, state, links, world):  # type: ignore[no-untyped-def]
    """Find the soonest event of ball i after `now`."""
    gx, gy, r = world.gx, world.gy, state[_R, i]
    falling = gx != 0.0 or gy != 0.0
    lag = now - state[_SINCE, i]
    x, y = state[_X, i] + lag * (state[_VX, i] + 0.5 * gx * lag), state[_Y, i] + lag * (state[_VY, i] + 0.5 * gy * lag)
    u, v = state[_VX, i] + gx * lag, state[_VY, i] + gy * lag
    best, partner = _side(x, u, gx, r, world.size - r), _WALL_X
    wait = _side(y, v, gy, r, world.size - r)
    if wait < best:
        best, partner = wait, _WALL_Y
    for k in range(len(world.segments)):
        wait = _segment(x, y, u, v, r + WALL_HALF_WIDTH_PX, world.segments[k], world)
        if wait < best:
            best, partner = wait, _OBSTACLE - len(world.discs) - k
    for k in range(len(world.discs)):
        dx, dy, reach = x - world.discs[k, 0], y - world.discs[k, 1], r + world.discs[k, 2]
        miss = 2.0 * reach * _MISS_DEPTH * world.size
        if falling:
            wait = disc_contact(dx, dy, u, v, gx, gy, reach, miss, best)
        elif links[_LAST, i] != _OBSTACLE - k:  # on a straight path nobody comes back
            wait = approach(dx, dy, u, v, reach, miss)
        else:
            wait = np.inf
        if wait < best:
            best, partner = wait, _OBSTACLE - k
    for j in range(state.shape[1]):
        if j == i or (links[_LAST, i] == j and links[_LAST, j] == i):
            continue
        lag = now - state[_SINCE, j]
        dx = x - (state[_X, j] + lag * (state[_VX, j] + 0.5 * gx * lag))
        dy = y - (state[_Y, j] + lag * (state[_VY, j] + 0.5 * gy * lag))
        reach = r + state[_R, j]
        miss = 2.0 * reach * _MISS_DEPTH * world.size
        wait = approach(dx, dy, u - (state[_VX, j] + gx * lag), v - (state[_VY, j] + gy * lag), reach, miss)
        if wait < best:
            best, partner = wait, j
    state[_WHEN, i] = now + max(best, 0.0)
    links[_PARTNER, i] = partner


@compiled(error_model="numpy")
def _move(i, now, state, world):  # type: ignore[no-untyped-def]
    lag = now - state[_SINCE, i]
    state[_X, i] += lag * (state[_VX, i] + 0.5 * world.gx * lag)
    state[_Y, i] += lag * (state[_VY, i] + 0.5 * world.gy * lag)
    state[_VX, i] += world.gx * lag
    state[_VY, i] += world.gy * lag
    state[_SINCE, i] = now


@compiled(error_model="numpy")
def _bounce_off_side(i, place, speed, state, size):  # type: ignore[no-untyped-def]
    """Put the coordinate (row `place`) exactly on the nearer side of the box, and let it move inwards."""
    if state[place, i] > 0.5 * size:
        state[place, i] = size - state[_R, i]
        state[speed, i] = -abs(state[speed, i])
    else:
        state[place, i] = state[_R, i]
        state[speed, i] = abs(state[speed, i])


@compiled(error_model="numpy")
def _reflect(i, dx, dy, state):  # type: ignore[no-untyped-def]
    """Reverse the velocity along (dx, dy), which points to ball i, if it approaches."""
    b = dx * state[_VX, i] + dy * state[_VY, i]
    if b < 0.0:
        share = 2.0 * b / (dx * dx + dy * dy)
        state[_VX, i] -= share * dx
        state[_VY, i] -= share * dy


@compiled(error_model="numpy")
def _bounce_off_obstacle(i, number, state, world):  # type: ignore[no-untyped-def]
    if number < len(world.discs):
        _reflect(i, state[_X, i] - world.discs[number, 0], state[_Y, i] - world.discs[number, 1], state)
        return
    segment = world.segments[number - len(world.discs)]
    ex, ey = segment[2] - segment[0], segment[3] - segment[1]
    side = ex * (state[_Y, i] - segment[1]) - ey * (state[_X, i] - segment[0])
    if side > 0.0:
        _reflect(i, -ey, ex, state)
    else:
        _reflect(i, ey, -ex, state)


@compiled(error_model="numpy")
def _bounce_off_ball(i, j, state):  # type: ignore[no-untyped-def]
    """Elastic collision of two masses: an impulse along the line of centres."""
    dx, dy = state[_X, i] - state[_X, j], state[_Y, i] - state[_Y, j]
    b = dx * (state[_VX, i] - state[_VX, j]) + dy * (state[_VY, i] - state[_VY, j])
    if b < 0.0:
        share = 2.0 * b / ((dx * dx + dy * dy) * (state[_M, i] + state[_M, j]))
        state[_VX, i] -= share * state[_M, j] * dx
        state[_VY, i] -= share * state[_M, j] * dy
        state[_VX, j] += share * state[_M, i] * dx
        state[_VY, j] += share * state[_M, i] * dy


@compiled(error_model="numpy")
def _happen(i, state, links, world):  # type: ignore[no-untyped-def]
    """Carry out the soonest event of ball i and let all that it concerns look ahead again."""
    now, j = state[_WHEN, i], links[_PARTNER, i]
    _move(i, now, state, world)
    links[_LAST, i] = j
    if j == _WALL_X:
        _bounce_off_side(i, _X, _VX, state, world.size)
    elif j == _WALL_Y:
        _bounce_off_side(i, _Y, _VY, state, world.size)
    elif j <= _OBSTACLE:
        _bounce_off_obstacle(i, _OBSTACLE - j, state, world)
    else:
        _move(j, now, state, world)
        links[_LAST, j] = i
        _bounce_off_ball(i, j, state)
    for k in range(state.shape[1]):
        partner = links[_PARTNER, k]
        if k in (i, j) or partner == i or (partner == j and j >= 0):
            _look_ahead(k, now, state, links, world)


@compiled(error_model="numpy")
def _begin(x, v, radius, mass, state, links, world):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        state[_X, k], state[_Y, k] = x[k, 0], x[k, 1]
        state[_VX, k], state[_VY, k] = v[k, 0], v[k, 1]
        state[_SINCE, k], state[_R, k], state[_M, k] = 0.0, radius[k], mass[k]
        links[_LAST, k] = _NOBODY
    for k in range(len(x)):
        _look_ahead(k, 0.0, state, links, world)


@compiled(error_model="numpy")
def _read_frame(state, world, position, velocity):  # type: ignore[no-untyped-def]
    """Write the state at time 1 to position and velocity (n, 2), and count time from there."""
    for k in range(state.shape[1]):
        lag = 1.0 - state[_SINCE, k]
        low, high = state[_R, k], world.size - state[_R, k]
        x = state[_X, k] + lag * (state[_VX, k] + 0.5 * world.gx * lag)
        y = state[_Y, k] + lag * (state[_VY, k] + 0.5 * world.gy * lag)
        position[k, 0], position[k, 1] = min(max(x, low), high), min(max(y, low), high)
        velocity[k, 0], velocity[k, 1] = state[_VX, k] + world.gx * lag, state[_VY, k] + world.gy * lag
        state[_SINCE, k] -= 1.0
        state[_WHEN, k] -= 1.0


@compiled(error_model="numpy")
def _run(x, v, radius, mass, world, position, velocity):  # type: ignore[no-untyped-def]
    """Fill frames 1.. of position, velocity (N, T, n, 2) from x, v (N, n, 2); the first jammed sequence, or -1."""
    sequences, frames, balls = position.shape[:3]
    state = np.empty((8, balls))
    links = np.empty((2, balls), dtype=np.int64)
    for s in range(sequences):
        _begin(x[s], v[s], radius[s], mass[s], state, links, world)
        for t in range(1, frames):
            events = 0
            first = np.argmin(state[_WHEN])
            while state[_WHEN, first] <= 1.0:
                _happen(first, state, links, world)
                first = np.argmin(state[_WHEN])
                events += 1
                if events > _EVENTS_PER_FRAME_AND_BALL * balls:
                    return s
            _read_frame(state, world, position[s, t], velocity[s, t])
    return -1
