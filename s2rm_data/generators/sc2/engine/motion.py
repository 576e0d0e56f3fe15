"""Walking: toward a point, around walls and units, never through them.

A unit takes its whole step straight ahead if nothing is in the way; else it tries directions turned by 30 to 150
degrees, first on the side away from what blocks it. A step must not bring two units of a plane nearer than their
separation radii (or, if they overlap already, nearer than they are), nor a unit's centre onto a cell its plane cannot
pass.
"""

# f (FLOAT_ROWS, U), i (INT_ROWS, U) state of one battle, t table, n agents, land (3, 32, 32) passable cells, ways
# waypoints

from __future__ import annotations

import numpy as np

from s2rm_data.generators.sc2.engine.chance import two_bits
from s2rm_data.generators.sc2.engine.compiled import inner
from s2rm_data.generators.sc2.engine.layout import (
    ACCELERATION,
    APART,
    BEND,
    FACE_X,
    FACE_Y,
    FOCUS,
    HEALTH,
    IDLE,
    KIND,
    MOVED_LOOP,
    ORDER,
    PACE,
    PLANE,
    SPEED,
    STRAIGHT,
    X,
    Y,
)
from s2rm_data.generators.sc2.maps import SIZE

_HALF = SIZE / 2
_AIR = 2
# cosine and sine of 30, 60, 90, 120, 150 degrees
_TURNS = (
    (0.8660254037844386, 0.5),
    (0.5, 0.8660254037844386),
    (0.0, 1.0),
    (-0.5, 0.8660254037844386),
    (-0.8660254037844386, 0.5),
)
_FORGET_LOOPS = 8  # after so many loops straight on, the side on which it went around is forgotten
_SLACK = 1e-9
# No two separation radii and no step add up to more: spine crawler 0.875, stalker 0.625, zergling 0.185 a loop.
_FARTHEST_SQ = 1.75 * 1.75


@inner
def can_stand(land, plane, x, y):  # type: ignore[no-untyped-def]
    """Whether the plane can pass the cell under a point (relative to the map's centre)."""
    if not (-_HALF <= x < _HALF and -_HALF <= y < _HALF):
        return False
    return land[plane, int(x + _HALF), int(y + _HALF)]


@inner
def _heading(ways, plane, x, y, goal_x, goal_y):  # type: ignore[no-untyped-def]
    """The point to walk to now: the goal, or the next corner on the way around walls (`ways` is empty without any)."""
    inside = -_HALF <= goal_x < _HALF and -_HALF <= goal_y < _HALF
    if ways.shape[1] == 0 or plane == _AIR or not inside:
        return goal_x, goal_y
    here = int(x + _HALF) * SIZE + int(y + _HALF)
    there = int(goal_x + _HALF) * SIZE + int(goal_y + _HALF)
    cell = ways[plane, here, there]
    if cell < 0 or cell == there:
        return goal_x, goal_y
    return cell // SIZE + 0.5 - _HALF, cell % SIZE + 0.5 - _HALF


@inner
def _neighbours(f, i, t, u, step, near, start):  # type: ignore[no-untyped-def]
    """Write living units of u's plane that its next step could touch to near[start:]; returns where they stop."""
    stop = start
    x, y, k = f[X, u], f[Y, u], i[KIND, u]
    for v in range(i.shape[1]):
        dx, dy = f[X, v] - x, f[Y, v] - y
        distance_sq = dx * dx + dy * dy
        if distance_sq < _FARTHEST_SQ:
            apart = t[k, APART + i[KIND, v]]
            reach = apart + step
            if distance_sq < reach * reach and apart > 0.0 and f[HEALTH, v] > 0.0 and v != u:
                near[stop] = v
                stop += 1
    return stop


@inner
def _blocker(f, i, t, u, x, y, near, start, stop):  # type: ignore[no-untyped-def]
    """The unit of near[start:stop] that most keeps u from standing at (x, y): the nearest; -1 = none."""
    nearest, nearest_sq = -1, _FARTHEST_SQ
    for k in range(start, stop):
        v = near[k]
        apart = t[i[KIND, u], APART + i[KIND, v]]
        dx, dy = f[X, v] - x, f[Y, v] - y
        distance_sq = dx * dx + dy * dy
        if distance_sq < apart * apart and distance_sq < nearest_sq:
            now_x, now_y = f[X, v] - f[X, u], f[Y, v] - f[Y, u]
            if distance_sq < now_x * now_x + now_y * now_y:
                nearest, nearest_sq = v, distance_sq
    return nearest


@inner
def _push(f, i, t, land, u, v, x, y, near, start):  # type: ignore[no-untyped-def]
    """Shove an idle unit v of the same side out of the way of u going to (x, y); False if it has no room.

    Assumption: a shove moves one unit by just the overlap and does not pass on to others.
    """
    dx, dy = f[X, v] - x, f[Y, v] - y
    distance = np.sqrt(dx * dx + dy * dy)
    if distance < _SLACK:
        return False
    shove = t[i[KIND, u], APART + i[KIND, v]] - distance + _SLACK
    new_x, new_y = f[X, v] + dx / distance * shove, f[Y, v] + dy / distance * shove
    stop = _neighbours(f, i, t, v, shove, near, start)
    others = start
    for k in range(start, stop):
        if near[k] != u:
            near[others] = near[k]
            others += 1
    if not can_stand(land, int(t[i[KIND, v], PLANE]), new_x, new_y):
        return False
    if t[i[KIND, v], SPEED] == 0.0 or _blocker(f, i, t, v, new_x, new_y, near, start, others) >= 0:
        return False
    f[X, v], f[Y, v] = new_x, new_y
    return True


@inner
def _bend(f, i, u, v, ahead_x, ahead_y, words):  # type: ignore[no-untyped-def]
    """The side on which to pass v (-1 = a wall): the one chosen before, else away from it, else by chance."""
    if i[BEND, u] != 0:
        return i[BEND, u]
    cross = 0.0
    if v >= 0:
        cross = ahead_x * (f[Y, v] - f[Y, u]) - ahead_y * (f[X, v] - f[X, u])
    if cross > 0.0:
        return -1
    if cross < 0.0:
        return 1
    # Dead ahead: by chance north or south (if it walks north or south itself, east or west); a battle reflected east to
    # west with the same draws stays reflected.
    side = 1 if two_bits(words) & 1 else -1
    return side if ahead_x >= 0.0 else -side


@inner
def _goes_along(f, i, t, u, v, ahead_x, ahead_y, loop):  # type: ignore[no-untyped-def]
    """Whether v has just been walking the same way (within 60 degrees) and is no slower than u."""
    same_way = f[FACE_X, v] * ahead_x + f[FACE_Y, v] * ahead_y > 0.5
    return same_way and i[MOVED_LOOP, v] >= loop - 1 and t[i[KIND, v], SPEED] >= t[i[KIND, u], SPEED]


@inner
def _go(f, i, u, x, y, face_x, face_y, loop):  # type: ignore[no-untyped-def]
    f[X, u], f[Y, u], f[FACE_X, u], f[FACE_Y, u] = x, y, face_x, face_y
    i[MOVED_LOOP, u] = loop


@inner
def _go_around(f, i, t, land, u, v, ahead_x, ahead_y, step, loop, words, near, stop):  # type: ignore[no-untyped-def]
    """Take the step in the first free direction turned away from what is ahead: unit v, or a wall (-1)."""
    x, y, plane = f[X, u], f[Y, u], int(t[i[KIND, u], PLANE])
    side = _bend(f, i, u, v, ahead_x, ahead_y, words)
    turns = 5 if v >= 0 else 2  # along a wall only as long as it brings the unit nearer
    for _ in range(2):
        for k in range(turns):
            cosine, sine = _TURNS[k]
            sine = sine * side
            turned_x, turned_y = ahead_x * cosine - ahead_y * sine, ahead_x * sine + ahead_y * cosine
            new_x, new_y = x + step * turned_x, y + step * turned_y
            if can_stand(land, plane, new_x, new_y) and _blocker(f, i, t, u, new_x, new_y, near, 0, stop) < 0:
                i[BEND, u], i[STRAIGHT, u] = side, 0
                _go(f, i, u, new_x, new_y, turned_x, turned_y, loop)
                return
        side = -side
    i[BEND, u] = 0


@inner
def advance(f, i, t, n, land, ways, u, goal_x, goal_y, loop, words, near):  # type: ignore[no-untyped-def]
    """One loop of walking toward a point; `near` is scratch space for 2 U slots."""
    kind = i[KIND, u]
    plane, speed = int(t[kind, PLANE]), t[kind, SPEED]
    x, y = f[X, u], f[Y, u]
    goal_x, goal_y = _heading(ways, plane, x, y, goal_x, goal_y)
    dx, dy = goal_x - x, goal_y - y
    distance = np.sqrt(dx * dx + dy * dy)
    if distance < _SLACK or speed == 0.0:
        return
    if i[MOVED_LOOP, u] < loop - 1:
        f[PACE, u] = 0.0
    f[PACE, u] = min(speed, f[PACE, u] + t[kind, ACCELERATION])
    step = min(f[PACE, u], distance)
    ahead_x, ahead_y = dx / distance, dy / distance
    new_x, new_y = x + step * ahead_x, y + step * ahead_y
    stop = _neighbours(f, i, t, u, step, near, 0)
    v = _blocker(f, i, t, u, new_x, new_y, near, 0, stop)
    if v >= 0 and (v < n) == (u < n):
        if i[ORDER, v] == IDLE and i[FOCUS, v] < 0:
            if _push(f, i, t, land, u, v, new_x, new_y, near, i.shape[1]):
                v = _blocker(f, i, t, u, new_x, new_y, near, 0, stop)
        elif _goes_along(f, i, t, u, v, ahead_x, ahead_y, loop):
            return  # the one ahead is about to make room
    if v < 0 and can_stand(land, plane, new_x, new_y):
        i[STRAIGHT, u] += 1
        if i[STRAIGHT, u] > _FORGET_LOOPS:
            i[BEND, u] = 0
        _go(f, i, u, new_x, new_y, ahead_x, ahead_y, loop)
    else:
        _go_around(f, i, t, land, u, v, ahead_x, ahead_y, step, loop, words, near, stop)
