"""Walking: toward a point, around walls and units, never through them.

A unit takes its whole step straight ahead if nothing is in the way. Who stands behind somebody that has yet to walk in
this loop waits for that, so that a touching block moves as one body. A step that would end inside somebody who walks
is pushed out of it: the unit slides along. Around who stands, and where sliding brings it hardly nearer, it tries
directions turned by 30 to 150 degrees, first on the side of the shorter way around. A step must not bring two units of
a plane nearer than contact (or, if they overlap already, nearer than they are), nor a unit's centre onto a cell its
plane cannot pass.
"""

# U units; floats (FLOAT_ROWS, U), ints (INT_ROWS, U) state of one battle; stats unit-type table; u, v slots;
# land (3, 32, 32) passable cells; ways waypoints

from __future__ import annotations

import numpy as np

from s2rm_data.generators.sc2.codes import Order
from s2rm_data.generators.sc2.engine import layout as at
from s2rm_data.generators.sc2.engine.chance import two_bits
from s2rm_data.generators.sc2.engine.compiled import inner
from s2rm_data.generators.sc2.maps import SIZE
from s2rm_data.generators.sc2.units import AIR

_HALF = SIZE / 2
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
_DETOURS = 4  # so many rows of units a detour is reckoned around
_DETOUR_AHEAD = 2.5  # Assumption: who stands farther ahead is not reckoned with
_LEAST_PROGRESS = 0.3  # Assumption: who slides on by less of its step rather goes around
_SLIDES = 3  # so many units can a step be pushed out of, one after the other
# No contact distance and step add up to more: two colossi 1.9375, zergling 0.185 per loop.
_FARTHEST_SQ = 2.125 * 2.125


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
    if ways.shape[1] == 0 or plane == AIR or not inside:
        return goal_x, goal_y
    here = int(x + _HALF) * SIZE + int(y + _HALF)
    there = int(goal_x + _HALF) * SIZE + int(goal_y + _HALF)
    cell = ways[plane, here, there]
    if cell < 0 or cell == there:
        return goal_x, goal_y
    return cell // SIZE + 0.5 - _HALF, cell % SIZE + 0.5 - _HALF


@inner
def _look_around(floats, ints, stats, near):  # type: ignore[no-untyped-def]
    """Write to the rows of scratch space whom each living unit may touch while this loop lasts, slots ascending."""
    units = ints.shape[1]
    counts, rows = at.AROUND * units, at.SCRATCH_BLOCKS * units + at.SCRATCH_NUMBERS
    for u in range(units):
        near[counts + u] = 0
    for u in range(units):
        if floats[at.HEALTH, u] <= 0.0:
            continue
        x, y, k = floats[at.X, u], floats[at.Y, u], ints[at.KIND, u]
        for v in range(u + 1, units):
            dx, dy = floats[at.X, v] - x, floats[at.Y, v] - y
            if dx * dx + dy * dy < stats[k, at.TOUCH_SQ + ints[at.KIND, v]] and floats[at.HEALTH, v] > 0.0:
                near[rows + u * units + near[counts + u]] = v
                near[rows + v * units + near[counts + v]] = u
                near[counts + u] += 1
                near[counts + v] += 1


@inner
def _neighbours(floats, ints, stats, u, step, near, start):  # type: ignore[no-untyped-def]
    """Write living units of u's plane that its next step could touch to near[start:]; returns where they stop."""
    units = ints.shape[1]
    stop, row = start, at.SCRATCH_BLOCKS * units + at.SCRATCH_NUMBERS + u * units
    x, y, kind = floats[at.X, u], floats[at.Y, u], ints[at.KIND, u]
    listed = step <= stats[kind, at.SPEED]  # a shove may be longer
    for k in range(near[at.AROUND * units + u] if listed else units):
        v = near[row + k] if listed else k
        dx, dy = floats[at.X, v] - x, floats[at.Y, v] - y
        distance_sq = dx * dx + dy * dy
        if distance_sq < _FARTHEST_SQ:
            apart = stats[kind, at.APART + ints[at.KIND, v]]
            reach = apart + step
            if distance_sq < reach * reach and apart > 0.0 and floats[at.HEALTH, v] > 0.0 and v != u:
                near[stop] = v
                stop += 1
    return stop


@inner
def _blocker(floats, ints, stats, u, x, y, near, start, stop):  # type: ignore[no-untyped-def]
    """The unit of near[start:stop] that most keeps u from standing at (x, y): the nearest; -1 = none."""
    nearest, nearest_sq = -1, _FARTHEST_SQ
    for k in range(start, stop):
        v = near[k]
        apart = stats[ints[at.KIND, u], at.APART + ints[at.KIND, v]]
        dx, dy = floats[at.X, v] - x, floats[at.Y, v] - y
        distance_sq = dx * dx + dy * dy
        if distance_sq < apart * apart and distance_sq < nearest_sq:
            now_x, now_y = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
            if distance_sq < now_x * now_x + now_y * now_y:
                nearest, nearest_sq = v, distance_sq
    return nearest


@inner
def _ahead(floats, ints, stats, u, x, y, step, near):  # type: ignore[no-untyped-def]
    """The `_blocker` of u's step to (x, y) among its `_neighbours`, which are not written down."""
    units = ints.shape[1]
    row, kind = at.SCRATCH_BLOCKS * units + at.SCRATCH_NUMBERS + u * units, ints[at.KIND, u]
    nearest, nearest_sq = -1, _FARTHEST_SQ
    for k in range(row, row + near[at.AROUND * units + u]):
        v = near[k]
        dx, dy = floats[at.X, v] - x, floats[at.Y, v] - y
        distance_sq = dx * dx + dy * dy
        apart = stats[kind, at.APART + ints[at.KIND, v]]
        if distance_sq < apart * apart and distance_sq < nearest_sq:
            now_x, now_y = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
            now_sq, reach = now_x * now_x + now_y * now_y, apart + step
            if distance_sq < now_sq < reach * reach and floats[at.HEALTH, v] > 0.0:
                nearest, nearest_sq = v, distance_sq
    return nearest


@inner
def _is_free(floats, ints, stats, u, x, y, near, start, stop):  # type: ignore[no-untyped-def]
    """Whether none of near[start:stop] keeps u from standing at (x, y): `_blocker` finds none."""
    kind = ints[at.KIND, u]
    for k in range(start, stop):
        v = near[k]
        apart = stats[kind, at.APART + ints[at.KIND, v]]
        dx, dy = floats[at.X, v] - x, floats[at.Y, v] - y
        distance_sq = dx * dx + dy * dy
        if distance_sq < apart * apart:
            now_x, now_y = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
            if distance_sq < now_x * now_x + now_y * now_y:
                return False
    return True


@inner
def _push(floats, ints, stats, land, u, v, x, y, near, start):  # type: ignore[no-untyped-def]
    """Shove an idle unit v of the same side out of the way of u going to (x, y); False if it has no room.

    Assumption: a shove moves one unit by just the overlap and does not pass on to others.
    """
    dx, dy = floats[at.X, v] - x, floats[at.Y, v] - y
    distance = np.sqrt(dx * dx + dy * dy)
    if distance < _SLACK:
        return False
    shove = stats[ints[at.KIND, u], at.APART + ints[at.KIND, v]] - distance + _SLACK
    new_x, new_y = floats[at.X, v] + dx / distance * shove, floats[at.Y, v] + dy / distance * shove
    stop = _neighbours(floats, ints, stats, v, shove, near, start)
    others = start
    for k in range(start, stop):
        if near[k] != u:
            near[others] = near[k]
            others += 1
    if not can_stand(land, int(stats[ints[at.KIND, v], at.PLANE]), new_x, new_y):
        return False
    if stats[ints[at.KIND, v], at.SPEED] == 0.0:
        return False
    if not _is_free(floats, ints, stats, v, new_x, new_y, near, start, others):
        return False
    floats[at.X, v], floats[at.Y, v] = new_x, new_y
    near[at.SCRATCH_BLOCKS * ints.shape[1] + at.SHOVED] = 1
    _look_around(floats, ints, stats, near)  # who is shoved may be so again
    return True


@inner
def _detours(floats, ints, stats, u, ahead_x, ahead_y, loop, near):  # type: ignore[no-untyped-def]
    """How far u has to step aside, to the left and to the right, to pass everybody who stands within a few units ahead.

    The first round writes them to near[U:], further rounds see whether stepping aside met others of them.
    """
    x, y, k = floats[at.X, u], floats[at.Y, u], ints[at.KIND, u]
    first = at.NEAR_TOO * ints.shape[1]
    stop, left, right, moved = first, 0.0, 0.0, False
    for w in range(ints.shape[1]):
        if floats[at.HEALTH, w] <= 0.0 or ints[at.MOVED_LOOP, w] >= loop - 1 or w == u:
            continue
        dx, dy = floats[at.X, w] - x, floats[at.Y, w] - y
        apart, along = stats[k, at.APART + ints[at.KIND, w]], dx * ahead_x + dy * ahead_y
        if apart > 0.0 and -apart < along < _DETOUR_AHEAD:
            near[stop] = w
            stop += 1
            across = ahead_x * dy - ahead_y * dx  # how far w stands to the left
            if across - apart < left < across + apart - _SLACK:
                left, moved = across + apart, True
            if -across - apart < right < -across + apart - _SLACK:
                right, moved = -across + apart, True
    rounds = 1
    while moved and rounds < _DETOURS:
        moved = False
        rounds += 1
        for index in range(first, stop):
            w = near[index]
            apart = stats[k, at.APART + ints[at.KIND, w]]
            across = ahead_x * (floats[at.Y, w] - y) - ahead_y * (floats[at.X, w] - x)
            if across - apart < left < across + apart - _SLACK:
                left, moved = across + apart, True
            if -across - apart < right < -across + apart - _SLACK:
                right, moved = -across + apart, True
    return left, right


@inner
def _bend(floats, ints, stats, u, v, ahead_x, ahead_y, loop, words, near):  # type: ignore[no-untyped-def]
    """The side on which to pass v (-1 = a wall): the one chosen before, else the shorter way around everybody who is
    in the way, else by chance.
    """
    if ints[at.BEND, u] != 0:
        return ints[at.BEND, u]
    if v >= 0:
        left, right = _detours(floats, ints, stats, u, ahead_x, ahead_y, loop, near)
        if left < right - _SLACK:
            return 1
        if right < left - _SLACK:
            return -1
    # Dead ahead: by chance north or south (if it walks north or south itself, east or west); a battle reflected east to
    # west with the same draws stays reflected.
    side = 1 if two_bits(words) & 1 else -1
    return side if ahead_x >= 0.0 else -side


@inner
def _go(floats, ints, u, x, y, face_x, face_y, loop):  # type: ignore[no-untyped-def]
    floats[at.X, u], floats[at.Y, u], floats[at.FACE_X, u], floats[at.FACE_Y, u] = x, y, face_x, face_y
    ints[at.MOVED_LOOP, u] = loop


@inner
def _go_straight(floats, ints, u, x, y, face_x, face_y, loop):  # type: ignore[no-untyped-def]
    ints[at.STRAIGHT, u] += 1
    if ints[at.STRAIGHT, u] > _FORGET_LOOPS:
        ints[at.BEND, u] = 0
    _go(floats, ints, u, x, y, face_x, face_y, loop)


@inner
def _go_around(floats, ints, stats, land, u, v, ahead_x, ahead_y, step, loop, words, near, stop):  # type: ignore[no-untyped-def]
    """Take the step in the first free direction turned away from what is ahead: unit v, or a wall (-1)."""
    x, y, plane = floats[at.X, u], floats[at.Y, u], int(stats[ints[at.KIND, u], at.PLANE])
    side = _bend(floats, ints, stats, u, v, ahead_x, ahead_y, loop, words, near)
    turns = 5 if v >= 0 else 2  # along a wall only as long as it brings the unit nearer
    for _ in range(2):
        for k in range(turns):
            cosine, sine = _TURNS[k]
            sine = sine * side
            turned_x, turned_y = ahead_x * cosine - ahead_y * sine, ahead_x * sine + ahead_y * cosine
            new_x, new_y = x + step * turned_x, y + step * turned_y
            if not can_stand(land, plane, new_x, new_y):
                continue
            if _is_free(floats, ints, stats, u, new_x, new_y, near, 0, stop):
                ints[at.BEND, u], ints[at.STRAIGHT, u] = side, 0
                _go(floats, ints, u, new_x, new_y, turned_x, turned_y, loop)
                return
        side = -side
    ints[at.BEND, u] = 0


@inner
def _slide(floats, ints, stats, land, u, ahead_x, ahead_y, step, loop, near, stop):  # type: ignore[no-untyped-def]
    """Take the step ahead, pushed out of whoever is in the way; False if that brings the unit hardly nearer."""
    x, y = floats[at.X, u], floats[at.Y, u]
    new_x, new_y = x + step * ahead_x, y + step * ahead_y
    for _ in range(_SLIDES):
        v = _blocker(floats, ints, stats, u, new_x, new_y, near, 0, stop)
        if v < 0:
            break
        dx, dy = new_x - floats[at.X, v], new_y - floats[at.Y, v]
        distance = np.sqrt(dx * dx + dy * dy)
        if distance < _SLACK:
            return False
        scale = (stats[ints[at.KIND, u], at.APART + ints[at.KIND, v]] + _SLACK) / distance
        new_x, new_y = floats[at.X, v] + dx * scale, floats[at.Y, v] + dy * scale
    dx, dy = new_x - x, new_y - y
    length = np.sqrt(dx * dx + dy * dy)
    if dx * ahead_x + dy * ahead_y < _LEAST_PROGRESS * step:
        return False
    if length > step:
        new_x, new_y = x + dx * step / length, y + dy * step / length
    if not can_stand(land, int(stats[ints[at.KIND, u], at.PLANE]), new_x, new_y):
        return False
    if not _is_free(floats, ints, stats, u, new_x, new_y, near, 0, stop):
        return False
    _go(floats, ints, u, new_x, new_y, ahead_x, ahead_y, loop)
    return True


@inner
def _pace(floats, ints, stats, u, loop):  # type: ignore[no-untyped-def]
    """Speed in this loop, counted once however often the unit tries to walk."""
    if ints[at.WAIT_LOOP, u] != loop:
        if ints[at.MOVED_LOOP, u] < loop - 1:
            floats[at.PACE, u] = 0.0
        kind = ints[at.KIND, u]
        floats[at.PACE, u] = min(stats[kind, at.SPEED], floats[at.PACE, u] + stats[kind, at.ACCELERATION])
    return floats[at.PACE, u]


@inner
def advance(floats, ints, stats, agents, land, ways, u, loop, waits, words, near):  # type: ignore[no-untyped-def]
    """One loop of walking toward the point (WALK_X, WALK_Y); `near` is scratch space (layout.py).

    Returns False if the unit waits for somebody ahead who has not finished this loop; never unless it `waits`.
    """
    kind = ints[at.KIND, u]
    plane = int(stats[kind, at.PLANE])
    x, y = floats[at.X, u], floats[at.Y, u]
    goal_x, goal_y = _heading(ways, plane, x, y, floats[at.WALK_X, u], floats[at.WALK_Y, u])
    dx, dy = goal_x - x, goal_y - y
    distance = np.sqrt(dx * dx + dy * dy)
    if distance < _SLACK or stats[kind, at.SPEED] == 0.0:
        return True
    step = min(_pace(floats, ints, stats, u, loop), distance)
    ahead_x, ahead_y = dx / distance, dy / distance
    new_x, new_y = x + step * ahead_x, y + step * ahead_y
    units = ints.shape[1]
    looked = at.SCRATCH_BLOCKS * units + at.LOOKED_AROUND
    if near[looked] == 0:
        _look_around(floats, ints, stats, near)
        near[looked] = 1
    v = _ahead(floats, ints, stats, u, new_x, new_y, step, near)
    if v >= 0 and waits and ints[at.DONE_LOOP, v] != loop:
        ints[at.WAIT_LOOP, u] = loop
        near[at.AHEAD * units + u] = v
        near[at.SEEN * units + u] = near[at.SCRATCH_BLOCKS * units + at.WALKED_COUNT]
        return False
    if v < 0 and can_stand(land, plane, new_x, new_y):
        _go_straight(floats, ints, u, new_x, new_y, ahead_x, ahead_y, loop)
        return True
    stop = _neighbours(floats, ints, stats, u, step, near, 0)
    idle_friend = v >= 0 and (v < agents) == (u < agents) and ints[at.ORDER, v] == Order.IDLE and ints[at.FOCUS, v] < 0
    if idle_friend and _push(floats, ints, stats, land, u, v, new_x, new_y, near, units):
        v = _blocker(floats, ints, stats, u, new_x, new_y, near, 0, stop)
        if v < 0 and can_stand(land, plane, new_x, new_y):
            _go_straight(floats, ints, u, new_x, new_y, ahead_x, ahead_y, loop)
            return True
    walker_ahead = v >= 0 and ints[at.MOVED_LOOP, v] >= loop
    if walker_ahead and _slide(floats, ints, stats, land, u, ahead_x, ahead_y, step, loop, near, stop):
        return True
    _go_around(floats, ints, stats, land, u, v, ahead_x, ahead_y, step, loop, words, near, stop)
    return True


@inner
def waits_on(floats, ints, stats, u, loop, near):  # type: ignore[no-untyped-def]
    """Whether u, which waits, would find what it found at its last try: who is ahead has not finished this loop, and
    nobody has walked up to it since.
    """
    units = ints.shape[1]
    v = near[at.AHEAD * units + u]
    last = at.SCRATCH_BLOCKS * units
    if ints[at.DONE_LOOP, v] == loop or floats[at.HEALTH, v] <= 0.0 or near[last + at.SHOVED] != 0:
        return False
    if near[at.SEEN * units + u] == near[last + at.WALKED_COUNT]:
        return True
    x, y, kind, step = floats[at.X, u], floats[at.Y, u], ints[at.KIND, u], floats[at.PACE, u] + _SLACK
    row = last + at.SCRATCH_NUMBERS + u * units
    for k in range(near[at.AROUND * units + u]):
        w = near[row + k]
        if ints[at.MOVED_LOOP, w] != loop or near[at.WALKED * units + w] < near[at.SEEN * units + u]:
            continue
        dx, dy = floats[at.X, w] - x, floats[at.Y, w] - y
        reach = stats[kind, at.APART + ints[at.KIND, w]] + step
        if dx * dx + dy * dy < reach * reach:
            return False
    near[at.SEEN * units + u] = near[last + at.WALKED_COUNT]
    return True
