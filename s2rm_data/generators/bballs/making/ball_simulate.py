"""Balls in a box that bounce without loss off each other, its sides and what stands still, from event to event.

Coordinates: x to the right, y down, in px; the box is [0, size] x [0, size]. Time is in frames.

Between events every ball flies straight or, under gravity, a parabola, so the next contact is the root of a polynomial
(ball_contacts.py) and no time step is needed. Each ball holds the time of its own soonest event, seen from its side;
after an event only the balls in it, and those that had counted on meeting one of them, look again: O(n) an event.

One simulator, compiled for what a world has: where `gravity` or `walls` are None, the code for them is left out.

What keeps it sound in finite precision:
- A ball is kept as place, velocity and time of its last event. Frames are read off that and never written back.
- Times are counted from the last frame, so that a long run has the precision of a short one.
- Two balls that just met cannot meet again before one of them meets something else; they are not asked. Nor are a ball
  on a straight path and the fixed ball that it just left. Under gravity it can come back, so that it is asked at once:
  it leaves with a speed away from it, which the search for the next root takes as its beginning.
- A contact that would go less deep than the rounding of places (1e-14 of the box) is a miss. This ends chains of
  collisions that rounding would keep alive in clusters of touching balls.
- A ball at a side of the box is put exactly on it, and a place read off for a frame is clamped to the box, which
  changes it by no more than its own rounding.
- Bounces keep all energy, so that no ball comes to rest on what gravity presses it against. A start so near to that,
  or so crowded, that a ball has more than 200,000 collisions in a frame is an error.
Centres are therefore inside [r, size - r] exactly, and balls overlap by less than 1e-12 of the box.
A frame's velocity is the one after any collision at that instant. Collisions at one instant are taken one by one.
Only + - * / sqrt and comparisons: the same numbers on every machine."""

# N sequences, T frames, n balls, 2 coordinates (x, y), D discs and G walls that stand still

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.compiled import compiled
from s2rm_data.core.errors import UsageError
from s2rm_data.generators.bballs.making.ball_config import WALL_HALF_WIDTH_PX, AnyConfig, GeneralConfig
from s2rm_data.generators.bballs.making.ball_contacts import approach, disc_contact, side_contact, wall_contact
from s2rm_data.generators.bballs.making.ball_start import Numbers, start

# rows of the state (8, n): at time SINCE the ball was at X, Y with velocity VX, VY; its next event is at WHEN
_X, _Y, _VX, _VY, _SINCE, _WHEN, _R, _M = range(8)
_PARTNER, _LAST = range(2)  # rows of the links (2, n): whom the ball meets at WHEN, and whom it met at SINCE
_NOBODY, _SIDE_X, _SIDE_Y = -1, -2, -3
_OBSTACLE = -4  # and below: the discs, then the walls
_TOUCHING = 1e-12  # in units of the box: as far as rounding can put a ball into a wall
_EVENTS_PER_FRAME_AND_BALL = 200_000  # several times what the tightest accepted packing at the highest speed needs


def simulate_sequences(seeds: NDArray[np.uint64], config: AnyConfig) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Position and velocity (N, T, n, 2), in px and px/frame, radius and mass (N, n), by seed."""
    position, velocity, radius, mass = start(seeds, config)
    return *move_on(position, velocity, radius, mass, config), radius, mass


def move_on(x: Numbers, v: Numbers, radius: Numbers, mass: Numbers, config: AnyConfig) -> tuple[Numbers, Numbers]:
    """Position and velocity (N, T, n, 2) from x and v (N, n, 2), which are not checked; radius and mass (N, n)."""
    sequences, balls, _ = x.shape
    position, velocity = np.empty((2, sequences, config.frames, balls, 2))
    position[:, 0], velocity[:, 0] = x, v
    # numbers are read sooner than an array
    still: tuple[object, object, object] = (tuple(map(tuple, config.discs.tolist())), None, None)
    if isinstance(config, GeneralConfig):
        still = config.discs, config.segments, config.gravity
    jammed = _run(x, v, radius, mass, float(config.size), *still, position, velocity)
    if jammed >= 0:
        raise UsageError(
            f"the balls of sequence {jammed} are jammed: more than {_EVENTS_PER_FRAME_AND_BALL} collisions per ball in "
            "one frame; give them more room or less speed"
        )
    return position, velocity


@compiled(error_model="numpy")
def _fly(k, now, state, gravity):  # type: ignore[no-untyped-def]
    """Place and velocity of ball k at a time before its next event."""
    x, y, u, v = state[_X, k], state[_Y, k], state[_VX, k], state[_VY, k]
    lag = now - state[_SINCE, k]
    if gravity is None:
        return x + u * lag, y + v * lag, u, v
    gx, gy = gravity
    return x + lag * (u + 0.5 * gx * lag), y + lag * (v + 0.5 * gy * lag), u + gx * lag, v + gy * lag


@compiled(error_model="numpy")
def _look_ahead(i, now, state, links, size, discs, walls, gravity):  # type: ignore[no-untyped-def]
    """Find the soonest event of ball i after `now`."""
    x, y, u, v = _fly(i, now, state, gravity)
    r, last = state[_R, i], links[_LAST, i]
    gx, gy = (None, None) if gravity is None else gravity
    best, partner = side_contact(x, u, r, size - r, gx), _SIDE_X
    wait = side_contact(y, v, r, size - r, gy)
    if wait < best:
        best, partner = wait, _SIDE_Y
    if walls is not None:
        for k in range(len(walls)):
            wait = wall_contact(x, y, u, v, r + WALL_HALF_WIDTH_PX, walls[k], gravity, _TOUCHING * size)
            if wait < best:
                best, partner = wait, _OBSTACLE - len(discs) - k
    for k in range(len(discs)):
        dx, dy, reach = x - discs[k][0], y - discs[k][1], r + discs[k][2]
        if gravity is not None and (gx != 0.0 or gy != 0.0):
            wait = disc_contact(dx, dy, u, v, gx, gy, reach, size, best)
        elif last != _OBSTACLE - k:  # on a straight path nobody comes back
            wait = approach(dx, dy, u, v, reach, size)
        else:
            wait = np.inf
        if gravity is not None:  # whatever rounding has let overlap is due now, and the first found comes first
            wait = max(wait, 0.0)
        if wait < best:
            best, partner = wait, _OBSTACLE - k
    for j in range(state.shape[1]):
        if j == i or (last == j and links[_LAST, j] == i):
            continue
        xj, yj, uj, vj = _fly(j, now, state, gravity)
        wait = approach(x - xj, y - yj, u - uj, v - vj, r + state[_R, j], size)
        if gravity is not None:
            wait = max(wait, 0.0)
        if wait < best:
            best, partner = wait, j
    state[_WHEN, i] = now + max(best, 0.0)
    links[_PARTNER, i] = partner


@compiled(error_model="numpy")
def _move(i, now, state, gravity):  # type: ignore[no-untyped-def]
    state[_X, i], state[_Y, i], state[_VX, i], state[_VY, i] = _fly(i, now, state, gravity)
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
def _happen(i, state, links, size, discs, walls, gravity):  # type: ignore[no-untyped-def]
    """Carry out the soonest event of ball i and let all that it concerns look ahead again."""
    now, j = state[_WHEN, i], links[_PARTNER, i]
    _move(i, now, state, gravity)
    links[_LAST, i] = j
    disc = _OBSTACLE - j
    if j == _SIDE_X:
        _bounce_off_side(i, _X, _VX, state, size)
    elif j == _SIDE_Y:
        _bounce_off_side(i, _Y, _VY, state, size)
    elif j >= 0:
        _move(j, now, state, gravity)
        links[_LAST, j] = i
        _bounce_off_ball(i, j, state)
    elif disc < len(discs):
        _reflect(i, state[_X, i] - discs[disc][0], state[_Y, i] - discs[disc][1], state)
    elif walls is not None:
        wall = walls[disc - len(discs)]
        ex, ey = wall[2] - wall[0], wall[3] - wall[1]
        side = 1.0 if ex * (state[_Y, i] - wall[1]) - ey * (state[_X, i] - wall[0]) > 0.0 else -1.0
        _reflect(i, -side * ey, side * ex, state)
    for k in range(state.shape[1]):
        partner = links[_PARTNER, k]
        if k in (i, j) or partner == i or (partner == j and j >= 0):
            _look_ahead(k, now, state, links, size, discs, walls, gravity)


@compiled(error_model="numpy")
def _soonest(state):  # type: ignore[no-untyped-def]
    first = 0
    for k in range(1, state.shape[1]):
        if state[_WHEN, k] < state[_WHEN, first]:
            first = k
    return first


@compiled(error_model="numpy")
def begin(x, v, radius, mass, state, links, size, discs, walls, gravity):  # type: ignore[no-untyped-def]
    """Set up state (8, n) and links (2, n) of balls at x and v (n, 2) at time 0."""
    for k in range(state.shape[1]):
        state[_X, k], state[_Y, k], state[_VX, k], state[_VY, k] = x[k, 0], x[k, 1], v[k, 0], v[k, 1]
        state[_SINCE, k], state[_R, k], state[_M, k], links[_LAST, k] = 0.0, radius[k], mass[k], _NOBODY
    for k in range(state.shape[1]):
        _look_ahead(k, 0.0, state, links, size, discs, walls, gravity)


@compiled(error_model="numpy")
def next_frame(state, links, size, discs, walls, gravity, position, velocity):  # type: ignore[no-untyped-def]
    """Go on by one frame, and write it to position and velocity (n, 2); False where the balls are jammed."""
    events, first = 0, _soonest(state)
    while state[_WHEN, first] <= 1.0:
        _happen(first, state, links, size, discs, walls, gravity)
        events, first = events + 1, _soonest(state)
        if events > _EVENTS_PER_FRAME_AND_BALL * state.shape[1]:
            return False
    for k in range(state.shape[1]):  # read off the state at time 1, and count time from there
        low, high = state[_R, k], size - state[_R, k]
        x, y, velocity[k, 0], velocity[k, 1] = _fly(k, 1.0, state, gravity)
        position[k, 0], position[k, 1] = min(max(x, low), high), min(max(y, low), high)
        state[_SINCE, k] -= 1.0
        state[_WHEN, k] -= 1.0
    return True


@compiled(error_model="numpy")
def _run(x, v, radius, mass, size, discs, walls, gravity, position, velocity):  # type: ignore[no-untyped-def]
    """Fill frames 1.. of position, velocity (N, T, n, 2) from x, v (N, n, 2); the first jammed sequence, or -1."""
    sequences, frames, balls = position.shape[:3]
    state = np.empty((8, balls))
    links = np.empty((2, balls), dtype=np.int64)
    for s in range(sequences):
        begin(x[s], v[s], radius[s], mass[s], state, links, size, discs, walls, gravity)
        for t in range(1, frames):
            if not next_frame(state, links, size, discs, walls, gravity, position[s, t], velocity[s, t]):
                return s
    return -1
