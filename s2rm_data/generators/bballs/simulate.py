"""Balls of equal mass that bounce without loss off each other, walls and a fixed ball, computed from event to event.

Coordinates: x to the right, y down, in px; the box is [0, size] x [0, size], pixel (row i, column j) has its centre at
(j + 0.5, i + 0.5), and the fixed ball, of the same radius, sits at (size / 2, size / 2). Time is in frames.

Between events every ball flies straight, so the next contact is the root of a quadratic and no time step is needed. Two
balls at distance d, with relative velocity w, touch after t = c / (sqrt(b^2 - a c) - b) where a = w.w, b = d.w < 0 and
c = d.d - (2 r)^2; that form loses no digits. Each ball holds the time of its own soonest event, seen from its side;
after an event only the balls in it, and those that had counted on meeting one of them, look again: O(n) an event.

What keeps it sound in finite precision:
- A ball is kept as place, velocity and time of its last event. Frames are read off that and never written back.
- Times are counted from the last frame, so that a long run has the precision of a short one.
- Two balls that just met cannot meet again before one of them meets something else; they are not asked.
- A contact that would go less deep than the rounding of places (1e-14 of the box) is a miss. This ends chains of
  collisions that rounding would keep alive in clusters of touching balls.
- A ball at a wall is put exactly on it, and a place read off for a frame is clamped to the box, which changes it by no
  more than its own rounding.
Centres are therefore inside [r, size - r] exactly, and balls overlap by less than 1e-12 of the box.
A frame's velocity is the one after any collision at that instant. Collisions at one instant are taken one by one.
Only + - * / sqrt and comparisons: the same numbers on every machine.
"""

# N sequences, T frames, n balls, 2 coordinates (x, y)

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from s2rm_data.compiled import compiled
from s2rm_data.errors import UsageError
from s2rm_data.generators.bballs.config import BallsConfig
from s2rm_data.generators.bballs.start import start

_X, _Y, _VX, _VY, _SINCE, _WHEN = range(
    6
)  # rows of the state (6, n): at time SINCE the ball was at X, Y; event at WHEN
_PARTNER, _LAST = range(2)  # rows of the links (2, n): whom the ball meets at WHEN, and whom it met at SINCE
_NOBODY, _WALL_X, _WALL_Y, _FIXED = -1, -2, -3, -4  # partners that are not balls
_MISS_DEPTH = 1e-14  # in units of the box; places carry rounding of about 1e-16
_START_OVERLAP_PX = 1e-9  # how far a given start may be off before it is refused
_EVENTS_A_FRAME_AND_BALL = 200_000  # several times what the tightest accepted packing at the highest speed needs


class _Box(NamedTuple):
    low: float
    high: float
    centre: float
    contact_sq: float
    miss: float  # the square distance by which a contact may fall short of being one


def simulate_sequences(
    seeds: NDArray[np.uint64], config: BallsConfig
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Position and velocity (N, T, n, 2), in px and px/frame, of the sequences with these seeds."""
    position, velocity = start(seeds, config)
    return _simulate(position, velocity, config.frames, float(config.size), config.radius_px)


def simulate(
    position: ArrayLike, velocity: ArrayLike, frames: int, *, size: float, radius_px: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Position and velocity at `frames` frames from a start of one's own: (n, 2) to (T, n, 2), or with a leading N.

    Frame 0 is the start itself. Any real `size` and `radius_px` will do as long as the start is free of overlaps.
    """
    x, v = (np.array(a, dtype=np.float64, order="C") for a in (position, velocity))
    if x.shape != v.shape or x.ndim not in (2, 3) or x.shape[-1] != 2:
        raise UsageError(
            f"position {x.shape} and velocity {v.shape} do not belong together; "
            "both are (balls, 2) or (sequences, balls, 2)"
        )
    if frames < 1:
        raise UsageError(f"number of frames {frames} is out of range; at least 1 is needed")
    batch = x if x.ndim == 3 else x[None]
    _check_start(batch, v, size, radius_px)
    result = _simulate(batch, v.reshape(batch.shape), frames, float(size), float(radius_px))
    return result if x.ndim == 3 else (result[0][0], result[1][0])


def _simulate(
    x: NDArray[np.float64], v: NDArray[np.float64], frames: int, size: float, radius_px: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    sequences, balls, _ = x.shape
    position = np.empty((sequences, frames, balls, 2))
    velocity = np.empty_like(position)
    position[:, 0], velocity[:, 0] = x, v
    jammed = _run(x, v, size, radius_px, position, velocity)
    if jammed >= 0:
        raise UsageError(
            f"the balls of sequence {jammed} are jammed: more than {_EVENTS_A_FRAME_AND_BALL} collisions a ball in one "
            "frame; give them more room or less speed"
        )
    return position, velocity


def _check_start(x: NDArray[np.float64], v: NDArray[np.float64], size: float, radius_px: float) -> None:
    if not (np.isfinite(x).all() and np.isfinite(v).all()):
        raise UsageError("position and velocity must be finite; there is a NaN or an infinity among them")
    if not 0 < 2 * radius_px < size:
        raise UsageError(
            f"balls of radius {radius_px:g} px cannot move in a box of {size:g} px; the radius must be less than half"
        )
    if x.size and (x.min() < radius_px - _START_OVERLAP_PX or x.max() > size - radius_px + _START_OVERLAP_PX):
        raise UsageError(
            f"a ball starts outside the box; centres lie between {radius_px:g} and {size - radius_px:g} px"
        )
    fixed = np.full((len(x), 1, 2), size / 2)
    everything = np.concatenate([x, fixed], axis=1)
    gap = np.sqrt(((everything[:, :, None] - everything[:, None]) ** 2).sum(-1)) - 2 * radius_px
    s, i, j = np.nonzero(np.triu(gap < -_START_OVERLAP_PX, 1))
    if len(s):
        other = "the fixed ball" if j[0] == x.shape[1] else f"ball {j[0]}"
        raise UsageError(
            f"ball {i[0]} and {other} of sequence {s[0]} overlap at the start by {-gap[s[0], i[0], j[0]]:.3g} px; "
            f"centres must be at least {2 * radius_px:g} px apart"
        )


@compiled(error_model="numpy")
def _contact(dx, dy, du, dv, box):  # type: ignore[no-untyped-def]
    """Time until two balls touch that are (dx, dy) apart and move at (du, dv) against each other; inf for never."""
    b = dx * du + dy * dv
    if b >= 0.0:
        return np.inf
    a = du * du + dv * dv
    c = dx * dx + dy * dy - box.contact_sq
    discriminant = b * b - a * c
    if discriminant <= a * box.miss:
        return np.inf
    return c / (math.sqrt(discriminant) - b)


@compiled(error_model="numpy")
def _wall(x, u, box):  # type: ignore[no-untyped-def]
    """Time until a coordinate x that changes by u a frame reaches the wall ahead."""
    if u > 0.0:
        return (box.high - x) / u
    if u < 0.0:
        return (box.low - x) / u
    return np.inf


@compiled(error_model="numpy")
def _look_ahead(i, now, state, links, box):  # type: ignore[no-untyped-def]
    """Find the soonest event of ball i after `now`."""
    u, v = state[_VX, i], state[_VY, i]
    lag = now - state[_SINCE, i]
    x, y = state[_X, i] + u * lag, state[_Y, i] + v * lag
    best, partner = _wall(x, u, box), _WALL_X
    wait = _wall(y, v, box)
    if wait < best:
        best, partner = wait, _WALL_Y
    if links[_LAST, i] != _FIXED:
        wait = _contact(x - box.centre, y - box.centre, u, v, box)
        if wait < best:
            best, partner = wait, _FIXED
    for j in range(state.shape[1]):
        if j == i or (links[_LAST, i] == j and links[_LAST, j] == i):
            continue
        lag = now - state[_SINCE, j]
        dx, dy = x - (state[_X, j] + state[_VX, j] * lag), y - (state[_Y, j] + state[_VY, j] * lag)
        wait = _contact(dx, dy, u - state[_VX, j], v - state[_VY, j], box)
        if wait < best:
            best, partner = wait, j
    state[_WHEN, i] = now + max(best, 0.0)
    links[_PARTNER, i] = partner


@compiled(error_model="numpy")
def _move(i, now, state):  # type: ignore[no-untyped-def]
    lag = now - state[_SINCE, i]
    state[_X, i] += state[_VX, i] * lag
    state[_Y, i] += state[_VY, i] * lag
    state[_SINCE, i] = now


@compiled(error_model="numpy")
def _bounce_off_wall(i, place, speed, state, box):  # type: ignore[no-untyped-def]
    """Reverse one velocity component (row `speed`) and put the coordinate (row `place`) exactly on the wall."""
    state[place, i] = box.high if state[speed, i] > 0.0 else box.low
    state[speed, i] = -state[speed, i]


@compiled(error_model="numpy")
def _bounce_off_fixed(i, state, box):  # type: ignore[no-untyped-def]
    """Reverse the velocity component along the line of centres."""
    dx, dy = state[_X, i] - box.centre, state[_Y, i] - box.centre
    share = 2.0 * (dx * state[_VX, i] + dy * state[_VY, i]) / (dx * dx + dy * dy)
    state[_VX, i] -= share * dx
    state[_VY, i] -= share * dy


@compiled(error_model="numpy")
def _bounce_off_ball(i, j, state):  # type: ignore[no-untyped-def]
    """Equal masses: swap the velocity components along the line of centres."""
    dx, dy = state[_X, i] - state[_X, j], state[_Y, i] - state[_Y, j]
    du, dv = state[_VX, i] - state[_VX, j], state[_VY, i] - state[_VY, j]
    share = (dx * du + dy * dv) / (dx * dx + dy * dy)
    state[_VX, i] -= share * dx
    state[_VY, i] -= share * dy
    state[_VX, j] += share * dx
    state[_VY, j] += share * dy


@compiled(error_model="numpy")
def _happen(i, state, links, box):  # type: ignore[no-untyped-def]
    """Carry out the soonest event of ball i and let all that it concerns look ahead again."""
    now, j = state[_WHEN, i], links[_PARTNER, i]
    _move(i, now, state)
    links[_LAST, i] = j
    if j == _WALL_X:
        _bounce_off_wall(i, _X, _VX, state, box)
    elif j == _WALL_Y:
        _bounce_off_wall(i, _Y, _VY, state, box)
    elif j == _FIXED:
        _bounce_off_fixed(i, state, box)
    else:
        _move(j, now, state)
        links[_LAST, j] = i
        _bounce_off_ball(i, j, state)
    for k in range(state.shape[1]):
        partner = links[_PARTNER, k]
        if k in (i, j) or partner == i or (partner == j and j >= 0):
            _look_ahead(k, now, state, links, box)


@compiled(error_model="numpy")
def _soonest(state):  # type: ignore[no-untyped-def]
    first = 0
    for k in range(1, state.shape[1]):
        if state[_WHEN, k] < state[_WHEN, first]:
            first = k
    return first


@compiled(error_model="numpy")
def _begin(x, v, state, links, box):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        state[_X, k], state[_Y, k] = x[k, 0], x[k, 1]
        state[_VX, k], state[_VY, k] = v[k, 0], v[k, 1]
        state[_SINCE, k] = 0.0
        links[_LAST, k] = _NOBODY
    for k in range(len(x)):
        _look_ahead(k, 0.0, state, links, box)


@compiled(error_model="numpy")
def _read_frame(state, box, position, velocity):  # type: ignore[no-untyped-def]
    """Write the state at time 1 to position and velocity (n, 2), and count time from there."""
    for k in range(state.shape[1]):
        u, v = state[_VX, k], state[_VY, k]
        lag = 1.0 - state[_SINCE, k]
        position[k, 0] = min(max(state[_X, k] + u * lag, box.low), box.high)
        position[k, 1] = min(max(state[_Y, k] + v * lag, box.low), box.high)
        velocity[k, 0], velocity[k, 1] = u, v
        state[_SINCE, k] -= 1.0
        state[_WHEN, k] -= 1.0


@compiled(error_model="numpy")
def _run(x, v, size, radius, position, velocity):  # type: ignore[no-untyped-def]
    """Fill frames 1.. of position, velocity (N, T, n, 2) from x, v (N, n, 2); the first jammed sequence, or -1."""
    sequences, frames, balls = position.shape[:3]
    box = _Box(radius, size - radius, size / 2, 4 * radius * radius, 4 * radius * _MISS_DEPTH * size)
    state = np.empty((6, balls))
    links = np.empty((2, balls), dtype=np.int64)
    budget = _EVENTS_A_FRAME_AND_BALL * balls
    for s in range(sequences):
        _begin(x[s], v[s], state, links, box)
        for t in range(1, frames):
            events = 0
            first = _soonest(state)
            while state[_WHEN, first] <= 1.0:
                _happen(first, state, links, box)
                first = _soonest(state)
                events += 1
                if events > budget:
                    return s
            _read_frame(state, box, position[s, t], velocity[s, t])
    return -1
