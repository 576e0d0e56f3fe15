"""When balls that fly parabolas touch something: roots of quadratics and quartics.

Two balls under the same gravity move straight against each other, so their contact is the root of a quadratic, as it is
without gravity. So is the contact with a straight wall. The square distance of a ball to a point that stands still is a
quartic in time: it is cut into pieces on which it only rises or only falls, at the roots of its derivative, which are
isolated in the same way, and the root in the first piece that falls through zero is found by Newton's method inside a
bracket, or by bisection where that leaves it. Only + - * / sqrt and comparisons."""

from __future__ import annotations

import math

import numpy as np

from s2rm_data.core.compiled import compiled

_MISS_DEPTH = 1e-14  # in units of the box; places carry rounding of about 1e-16
_NEWTON_STEPS = 12  # enough unless the root is nearly double; bisection then needs no luck
_STEPS = 140


@compiled(error_model="numpy")
def approach(dx, dy, du, dv, reach, size):  # type: ignore[no-untyped-def]
    """Time until two balls touch that are (dx, dy) apart and move at (du, dv) against each other; inf for never.
    `reach` is the sum of their radii. A contact that goes less deep than rounding in a box of `size` is none."""
    b = dx * du + dy * dv
    if b >= 0.0:
        return np.inf
    a = du * du + dv * dv
    c = dx * dx + dy * dy - reach * reach
    discriminant = b * b - a * c
    if discriminant <= a * (2.0 * reach * _MISS_DEPTH * size):
        return np.inf
    return c / (math.sqrt(discriminant) - b)


@compiled(error_model="numpy")
def arrival(gap, speed, acceleration):  # type: ignore[no-untyped-def]
    """Time until a distance `gap` is used up, at a speed and acceleration towards its end, while approaching. A
    negative gap lies behind the end: it is used up when the body has come back to this side and falls on it again."""
    discriminant = speed * speed + 2.0 * acceleration * gap
    if discriminant < 0.0:
        return np.inf
    if acceleration > 0.0 and speed <= 0.0:
        return (math.sqrt(discriminant) - speed) / acceleration
    if gap < 0.0 or speed <= 0.0:
        return np.inf
    return 2.0 * gap / (speed + math.sqrt(discriminant))


@compiled(error_model="numpy")
def side_contact(x, speed, low, high, pull):  # type: ignore[no-untyped-def]
    """Time until a coordinate reaches either side of the box; `pull` is the gravity along it, or None."""
    if pull is None:
        return (high - x) / speed if speed > 0.0 else (low - x) / speed if speed < 0.0 else np.inf
    return min(arrival(max(high - x, 0.0), speed, pull), arrival(max(x - low, 0.0), -speed, -pull))


@compiled(error_model="numpy")
def disc_contact(dx, dy, u, v, gx, gy, reach, size, limit):  # type: ignore[no-untyped-def]
    """Time until a ball at (dx, dy) from a point, under gravity (gx, gy), comes as near to it as `reach`. inf unless
    that is before `limit`, which must be finite."""
    return first_descent(
        dx * dx + dy * dy - reach * reach,
        2.0 * (dx * u + dy * v),
        u * u + v * v + dx * gx + dy * gy,
        u * gx + v * gy,
        0.25 * (gx * gx + gy * gy),
        2.0 * reach * _MISS_DEPTH * size,
        limit,
    )


@compiled(error_model="numpy")
def wall_contact(x, y, u, v, reach, wall, gravity, touching):  # type: ignore[no-untyped-def]
    """Time until a ball touches one of the two straight sides of an inner wall (x0, y0, x1, y1), from outside.
    `touching`: how deep rounding can have put it into the wall."""
    ex, ey = wall[2] - wall[0], wall[3] - wall[1]
    length = np.sqrt(ex * ex + ey * ey)
    ex, ey = ex / length, ey / length
    px, py = x - wall[0], y - wall[1]
    height, rise, pull = ex * py - ey * px, ex * v - ey * u, ex * gravity[1] - ey * gravity[0]
    along, pace, push = ex * px + ey * py, ex * u + ey * v, ex * gravity[0] + ey * gravity[1]
    best = np.inf
    for sign in (1.0, -1.0):
        gap = sign * height - reach
        if -touching < gap < 0.0:
            gap = 0.0
        wait = arrival(gap, -sign * rise, -sign * pull)
        if wait < best and 0.0 <= along + wait * (pace + 0.5 * push * wait) <= length:
            best = wait
    return best


@compiled(error_model="numpy")
def segment_distance_sq(x, y, segment):  # type: ignore[no-untyped-def]
    """Square distance of a point to a wall's middle line (x0, y0, x1, y1)."""
    ex, ey = segment[2] - segment[0], segment[3] - segment[1]
    px, py = x - segment[0], y - segment[1]
    along = min(max((px * ex + py * ey) / (ex * ex + ey * ey), 0.0), 1.0)
    px, py = px - along * ex, py - along * ey
    return px * px + py * py


@compiled(error_model="numpy")
def first_descent(c0, c1, c2, c3, c4, depth, limit):  # type: ignore[no-untyped-def]
    """The first t in [0, limit] at which c0 + c1 t + ... + c4 t^4 falls through zero and to below -depth, or inf. Where
    it begins below zero and falls, that is at once."""
    bends = np.empty(4)
    turns = np.empty(5)
    count = _quadratic_roots(2.0 * c2, 6.0 * c3, 12.0 * c4, limit, bends)
    turns[0] = 0.0
    pieces = 1
    for k in range(count - 1):
        turn = _crossing(c1, 2.0 * c2, 3.0 * c3, 4.0 * c4, 0.0, bends[k], bends[k + 1])
        if turn > turns[pieces - 1]:
            turns[pieces] = turn
            pieces += 1
    turns[pieces] = limit
    for k in range(pieces):
        low, high = turns[k], turns[k + 1]
        at_low, at_high = _value(c0, c1, c2, c3, c4, low), _value(c0, c1, c2, c3, c4, high)
        if at_high < -depth and at_low > at_high:
            return low if at_low <= 0.0 else _crossing(c0, c1, c2, c3, c4, low, high)
    return np.inf


@compiled(error_model="numpy")
def _value(c0, c1, c2, c3, c4, t):  # type: ignore[no-untyped-def]
    return c0 + t * (c1 + t * (c2 + t * (c3 + t * c4)))


@compiled(error_model="numpy")
def _quadratic_roots(c, b, a, limit, ends):  # type: ignore[no-untyped-def]
    """Fill `ends` with 0, the roots of c + b t + a t^2 between 0 and limit, in order, and limit; how many there are."""
    ends[0] = 0.0
    count = 1
    discriminant = b * b - 4.0 * a * c
    if discriminant > 0.0:
        half = -0.5 * (b + math.sqrt(discriminant)) if b > 0.0 else -0.5 * (b - math.sqrt(discriminant))
        first = half / a if a != 0.0 else np.inf
        second = c / half if half != 0.0 else np.inf
        for root in (min(first, second), max(first, second)):
            if ends[count - 1] < root < limit:
                ends[count] = root
                count += 1
    ends[count] = limit
    return count + 1


@compiled(error_model="numpy")
def _crossing(c0, c1, c2, c3, c4, low, high):  # type: ignore[no-untyped-def]
    """The zero of a polynomial that is monotone in [low, high], to the last bits; -1 where its sign does not change."""
    at_low, at_high = _value(c0, c1, c2, c3, c4, low), _value(c0, c1, c2, c3, c4, high)
    if at_low == 0.0 or (at_low > 0.0) == (at_high > 0.0):
        return -1.0
    falls = at_low > 0.0
    t = 0.5 * (low + high)
    for step in range(_STEPS):
        value = _value(c0, c1, c2, c3, c4, t)
        if value == 0.0:
            return t
        if (value > 0.0) == falls:
            low = t
        else:
            high = t
        slope = c1 + t * (2.0 * c2 + t * (3.0 * c3 + t * 4.0 * c4))
        following = t - value / slope if slope != 0.0 else np.inf
        if not low < following < high or step >= _NEWTON_STEPS:
            following = 0.5 * (low + high)
        if following == t or following in (low, high):
            return following
        t = following
    return t
