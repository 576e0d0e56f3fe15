"""Walking: toward a point, around walls and who stands, pushing aside who gives way.

First every walker chooses its step: straight ahead, or, if that leads into somebody who stands, in the first free
direction turned by 30 to 150 degrees, beginning on the side of the shorter way around. Then those whose steps overlap
part: walkers push each other, the larger giving way more, and push idle friends out of their way; so a touching block
moves as one body. Who still would overlap or end in a wall turns its step, or else stays. Nobody moves farther than
its own legs carry it, deeper than _DEEPEST into another, or onto a cell its plane cannot pass."""

# U units; floats (FLOAT_ROWS, U), ints (INT_ROWS, U) state of one battle; stats unit-type table; u, v slots;
# land (3, 32, 32) passable cells; ways waypoints

from __future__ import annotations

import numpy as np

from s2rm_data.core.compiled import inner
from s2rm_data.starcraft.codes import Order
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.engine.chance import two_bits
from s2rm_data.starcraft.terrain_maps import SIZE
from s2rm_data.starcraft.units import AIR

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
_ROUNDS = 6  # so often at most do those who would overlap part in a loop
_DEEPEST = 0.03  # Measured: recorded units overlap by so much at most
# Inferred (MMM2): of an overlap with an idle friend this share is the walker's to give way.
_WALKERS_SHARE = 0.08
# Squares compared with this much to spare, lest roots be taken where they cannot decide anything.
_ABOVE, _BELOW = 1.0 + 1e-12, 1.0 - 1e-12
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
def _list_living(floats, units, near):  # type: ignore[no-untyped-def]
    """Write to scratch space who lives and who of them does not stand, slots ascending; returns how many they are."""
    living, movers = 0, 0
    for u in range(units):
        near[at.AROUND * units + u] = 0
        if floats[at.HEALTH, u] > 0.0:
            near[at.LIVING * units + living] = u
            living += 1
            if near[at.GIVES_WAY * units + u] != at.STANDS:
                near[at.MOVERS * units + movers] = u
                movers += 1
    return living, movers


@inner
def _look_around(floats, ints, stats, near):  # type: ignore[no-untyped-def]
    """Write to the rows of scratch space whom each mover may touch while this loop lasts, slots ascending."""
    units = ints.shape[1]
    counts, rows = at.AROUND * units, at.SCRATCH_BLOCKS * units
    living, movers = _list_living(floats, units, near)
    first_living, next_mover, stop_movers = at.LIVING * units, at.MOVERS * units, at.MOVERS * units + movers
    for i in range(first_living, first_living + living):
        u = near[i]
        first, stop = i + 1, first_living + living
        if near[at.GIVES_WAY * units + u] == at.STANDS:
            first, stop = next_mover, stop_movers
        else:
            next_mover += 1
        x, y, k = floats[at.X, u], floats[at.Y, u], ints[at.KIND, u]
        for j in range(first, stop):
            slot = np.uint64(near[j])
            dx, dy = floats[at.X, slot] - x, floats[at.Y, slot] - y
            if dx * dx + dy * dy < stats[k, at.TOUCH_SQ + ints[at.KIND, slot]]:
                v = near[j]
                near[rows + u * units + near[counts + u]] = v
                near[rows + v * units + near[counts + v]] = u
                near[counts + u] += 1
                near[counts + v] += 1


@inner
def _obstacle(floats, ints, stats, agents, u, x, y, near):  # type: ignore[no-untyped-def]
    """The nearest of those who stand and would be walked into on u's step to (x, y); -1 = none."""
    units, kind = ints.shape[1], ints[at.KIND, u]
    row = (at.SCRATCH_BLOCKS + u) * units
    nearest, nearest_sq = -1, _FARTHEST_SQ
    for k in range(row, row + near[at.AROUND * units + u]):
        v = near[k]
        gives_way = near[at.GIVES_WAY * units + v]
        if gives_way == at.WALKS or (gives_way == at.IDLES and (u < agents) == (v < agents)):
            continue
        dx, dy = floats[at.X, v] - x, floats[at.Y, v] - y
        distance_sq, apart = dx * dx + dy * dy, stats[kind, at.APART + ints[at.KIND, v]]
        if distance_sq < apart * apart and distance_sq < nearest_sq:
            now_x, now_y = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
            if distance_sq < now_x * now_x + now_y * now_y:
                nearest, nearest_sq = v, distance_sq
    return nearest


@inner
def _detours(floats, ints, stats, u, ahead_x, ahead_y, near):  # type: ignore[no-untyped-def]
    """How far u has to step aside, to the left and to the right, to pass everybody who stands within a few units ahead.
    The first round writes them to near, further rounds see whether stepping aside met others of them."""
    x, y, k = floats[at.X, u], floats[at.Y, u], ints[at.KIND, u]
    first = at.NEAR * ints.shape[1]
    stop, left, right, moved = first, 0.0, 0.0, False
    for w in range(ints.shape[1]):
        if floats[at.HEALTH, w] <= 0.0 or near[at.GIVES_WAY * ints.shape[1] + w] != at.STANDS or w == u:
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
def _either_side(words, ahead_x):  # type: ignore[no-untyped-def]
    """By chance north or south (or east or west): a battle reflected with the same draws stays reflected."""
    side = 1 if two_bits(words) & 1 else -1
    return side if ahead_x >= 0.0 else -side


@inner
def _bend(floats, ints, stats, u, v, ahead_x, ahead_y, words, near):  # type: ignore[no-untyped-def]
    """The side on which to pass v (-1 = a wall): as before, else the shorter way around everybody, else by chance."""
    if ints[at.BEND, u] != 0:
        return ints[at.BEND, u]
    if v >= 0:
        left, right = _detours(floats, ints, stats, u, ahead_x, ahead_y, near)
        if left < right - _SLACK:
            return 1
        if right < left - _SLACK:
            return -1
    return _either_side(words, ahead_x)


@inner
def _go_around(floats, ints, stats, agents, land, u, v, ahead_x, ahead_y, words, near):  # type: ignore[no-untyped-def]
    """Take the step in the first free direction turned away from what is ahead: unit v, or a wall (-1)."""
    x, y, plane = floats[at.X, u], floats[at.Y, u], int(stats[ints[at.KIND, u], at.PLANE])
    step, side = floats[at.STEP, u], _bend(floats, ints, stats, u, v, ahead_x, ahead_y, words, near)
    turns = 5 if v >= 0 else 2  # along a wall only as long as it brings the unit nearer
    for _ in range(2):
        for k in range(turns):
            cosine, sine = _TURNS[k]
            sine = sine * side
            turned_x, turned_y = ahead_x * cosine - ahead_y * sine, ahead_x * sine + ahead_y * cosine
            new_x, new_y = x + step * turned_x, y + step * turned_y
            if can_stand(land, plane, new_x, new_y) and (
                _obstacle(floats, ints, stats, agents, u, new_x, new_y, near) < 0
            ):
                ints[at.BEND, u], ints[at.STRAIGHT, u] = side, 0
                floats[at.WALK_X, u], floats[at.WALK_Y, u] = new_x, new_y
                floats[at.FACE_X, u], floats[at.FACE_Y, u] = turned_x, turned_y
                return
        side = -side
    ints[at.BEND, u] = 0


@inner
def _pace(floats, ints, stats, u, distance, loop):  # type: ignore[no-untyped-def]
    """Speed in this loop toward a point that far away. Measured (MMM2): a medivac brakes in time to stop at its goal, 2
    ahead; in the third step of such orders it flies 1.2105, which is 17 + 18 + 19 + 18 + 17 + 16 + 15 + 14 times what
    it gains in a loop."""
    pace = floats[at.PACE, u] if ints[at.MOVED_LOOP, u] >= loop - 1 else 0.0
    top, gain = stats[ints[at.KIND, u], at.SPEED], stats[ints[at.KIND, u], at.ACCELERATION]
    brakes = pace * pace >= 2.0 * gain * distance
    floats[at.PACE, u] = min(top, max(pace - gain, gain) if brakes else pace + gain)
    return floats[at.PACE, u]


@inner
def _set_out(floats, ints, stats, ways, u):  # type: ignore[no-untyped-def]
    """Face the point u walks to now; returns how far it is, 0 if u stays."""
    kind = ints[at.KIND, u]
    x, y = floats[at.X, u], floats[at.Y, u]
    goal_x, goal_y = _heading(ways, int(stats[kind, at.PLANE]), x, y, floats[at.WALK_X, u], floats[at.WALK_Y, u])
    dx, dy = goal_x - x, goal_y - y
    distance = np.sqrt(dx * dx + dy * dy)
    if distance < _SLACK or stats[kind, at.SPEED] == 0.0:
        return 0.0
    floats[at.FACE_X, u], floats[at.FACE_Y, u] = dx / distance, dy / distance
    return distance


@inner
def _step(floats, ints, stats, agents, land, u, loop, words, near):  # type: ignore[no-untyped-def]
    """Choose the place of u's step: straight ahead, or around what stands there."""
    step = floats[at.STEP, u]
    ahead_x, ahead_y = floats[at.FACE_X, u], floats[at.FACE_Y, u]
    new_x, new_y = floats[at.X, u] + step * ahead_x, floats[at.Y, u] + step * ahead_y
    v = _obstacle(floats, ints, stats, agents, u, new_x, new_y, near)
    if v < 0 and can_stand(land, int(stats[ints[at.KIND, u], at.PLANE]), new_x, new_y):
        ints[at.STRAIGHT, u] += 1
        if ints[at.STRAIGHT, u] > _FORGET_LOOPS:
            ints[at.BEND, u] = 0
        floats[at.WALK_X, u], floats[at.WALK_Y, u] = new_x, new_y
    else:
        _go_around(floats, ints, stats, agents, land, u, v, ahead_x, ahead_y, words, near)
    ints[at.MOVED_LOOP, u] = loop


@inner
def _share(ints, stats, agents, u, v, near):  # type: ignore[no-untyped-def]
    """How much of an overlap with v is u's to give way. Who walks through an idle friend pushes it aside."""
    ours, theirs = near[at.GIVES_WAY * ints.shape[1] + u], near[at.GIVES_WAY * ints.shape[1] + v]
    if theirs == at.STANDS or (theirs == at.IDLES and (u < agents) != (v < agents)):
        return 1.0
    if ours != theirs:
        return _WALKERS_SHARE if ours == at.WALKS else 1.0 - _WALKERS_SHARE
    return stats[ints[at.KIND, u], at.SHARE + ints[at.KIND, v]]


@inner
def _shift(floats, ints, stats, u, dx, dy, near):  # type: ignore[no-untyped-def]
    """Move the place u will stand at, but not farther from where it stands than its own legs carry it."""
    x, y = floats[at.WALK_X, u] + dx - floats[at.X, u], floats[at.WALK_Y, u] + dy - floats[at.Y, u]
    walks = near[at.GIVES_WAY * ints.shape[1] + u] == at.WALKS
    most = floats[at.PACE, u] if walks else stats[ints[at.KIND, u], at.SPEED]
    if x * x + y * y > most * most * _BELOW:
        length = np.sqrt(x * x + y * y)
        if length > most:
            x, y = x * most / length, y * most / length
    floats[at.WALK_X, u], floats[at.WALK_Y, u] = floats[at.X, u] + x, floats[at.Y, u] + y


@inner
def _give_way(floats, ints, stats, agents, u, near):  # type: ignore[no-untyped-def]
    """Part u and whom it would overlap most, each as far as it is theirs to give way; False if there is none."""
    units = ints.shape[1]
    row, kind = (at.SCRATCH_BLOCKS + u) * units, ints[at.KIND, u]
    x, y = floats[at.WALK_X, u], floats[at.WALK_Y, u]
    other, deepest, length, away_x, away_y = -1, _SLACK, 0.0, 0.0, 0.0
    for k in range(row, row + near[at.AROUND * units + u]):
        v = np.uint64(near[k])
        dx, dy = floats[at.WALK_X, v] - x, floats[at.WALK_Y, v] - y
        apart = stats[kind, at.APART + ints[at.KIND, v]]
        if dx * dx + dy * dy < (apart - deepest) * abs(apart - deepest) * _ABOVE:
            distance = np.sqrt(dx * dx + dy * dy)
            if apart - distance > deepest:
                other, deepest, length, away_x, away_y = near[k], apart - distance, distance, dx, dy
    if other < 0 or length < _SLACK:
        return False
    dx, dy = away_x / length * (deepest + _SLACK), away_y / length * (deepest + _SLACK)
    own = _share(ints, stats, agents, u, other, near)
    if own > 0.0:
        _shift(floats, ints, stats, u, -own * dx, -own * dy, near)
    if own < 1.0:
        _shift(floats, ints, stats, other, (1.0 - own) * dx, (1.0 - own) * dy, near)
    return True


@inner
def _can_end(floats, ints, stats, land, u, near):  # type: ignore[no-untyped-def]
    """Whether u can stand where it will."""
    units, kind = ints.shape[1], ints[at.KIND, u]
    x, y, row = floats[at.WALK_X, u], floats[at.WALK_Y, u], (at.SCRATCH_BLOCKS + u) * units
    if not can_stand(land, int(stats[kind, at.PLANE]), x, y):
        return False
    for k in range(row, row + near[at.AROUND * units + u]):
        v = np.uint64(near[k])
        dx, dy = floats[at.WALK_X, v] - x, floats[at.WALK_Y, v] - y
        apart = stats[kind, at.APART + ints[at.KIND, v]] - _DEEPEST
        if dx * dx + dy * dy < apart * apart:
            now_x, now_y = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
            if dx * dx + dy * dy < now_x * now_x + now_y * now_y:
                return False
    return True


@inner
def _evade(floats, ints, stats, land, u, words, near):  # type: ignore[no-untyped-def]
    """Turn u's step away from those it would overlap, first to the side it has been pushed to; False if none helps."""
    x, y, step = floats[at.X, u], floats[at.Y, u], floats[at.STEP, u]
    ahead_x, ahead_y = floats[at.FACE_X, u], floats[at.FACE_Y, u]
    pushed = ahead_x * (floats[at.WALK_Y, u] - y) - ahead_y * (floats[at.WALK_X, u] - x)
    side = ints[at.BEND, u]
    if side == 0:
        side = (1 if pushed > 0.0 else -1) if abs(pushed) > _SLACK else _either_side(words, ahead_x)
    for _ in range(2):
        for cosine, sine in _TURNS:
            floats[at.WALK_X, u] = x + step * (ahead_x * cosine - ahead_y * sine * side)
            floats[at.WALK_Y, u] = y + step * (ahead_x * sine * side + ahead_y * cosine)
            if _can_end(floats, ints, stats, land, u, near):
                ints[at.BEND, u], ints[at.STRAIGHT, u] = side, 0
                return True
        side = -side
    ints[at.BEND, u] = 0
    return False


@inner
def _set_all_out(floats, ints, stats, ways, walkers, loop, near):  # type: ignore[no-untyped-def]
    """Who gives way how, and how far each of near[WALKERS] steps; returns how many are left that step at all."""
    units, left = ints.shape[1], 0
    first, gives = at.WALKERS * units, at.GIVES_WAY * units
    for u in range(units):
        idles = ints[at.ORDER, u] == Order.IDLE and ints[at.FOCUS, u] < 0 and floats[at.WINDUP, u] <= 0.0
        near[gives + u] = at.IDLES if idles and stats[ints[at.KIND, u], at.SPEED] > 0.0 else at.STANDS
    for k in range(walkers):
        u = near[first + k]
        distance = _set_out(floats, ints, stats, ways, u) if floats[at.HEALTH, u] > 0.0 else 0.0
        if distance > 0.0:
            near[gives + u], near[first + left] = at.WALKS, u
            floats[at.STEP, u] = min(_pace(floats, ints, stats, u, distance, loop), distance)
            left += 1
    for u in range(units):
        floats[at.WALK_X, u], floats[at.WALK_Y, u] = floats[at.X, u], floats[at.Y, u]
    return left


@inner
def _end_apart(floats, ints, stats, land, queued, words, near):  # type: ignore[no-untyped-def]
    """Let those who cannot end where they would turn their step, once, or stay; each that stays may stop others."""
    changed = True
    while changed:
        changed = False
        for k in range(queued):
            u = ints[at.QUEUE, k]
            moves = floats[at.WALK_X, u] != floats[at.X, u] or floats[at.WALK_Y, u] != floats[at.Y, u]
            if moves and not _can_end(floats, ints, stats, land, u, near):
                changed, gives_way = True, at.GIVES_WAY * ints.shape[1] + u
                walks, near[gives_way] = near[gives_way] == at.WALKS, at.STANDS
                if not walks or not _evade(floats, ints, stats, land, u, words, near):
                    floats[at.WALK_X, u], floats[at.WALK_Y, u] = floats[at.X, u], floats[at.Y, u]


@inner
def _part(floats, ints, stats, agents, queued, near):  # type: ignore[no-untyped-def]
    """Rounds in which all that would overlap part, in the order of the queue."""
    units, movers = ints.shape[1], at.MOVERS * ints.shape[1]
    stop = movers
    for k in range(queued):
        u = ints[at.QUEUE, k]
        if near[at.GIVES_WAY * units + u] != at.STANDS and near[at.AROUND * units + u] > 0:
            near[stop] = u
            stop += 1
    overlap, rounds = True, 0
    while overlap and rounds < _ROUNDS:
        overlap = False
        rounds += 1
        for k in range(movers, stop):
            overlap = _give_way(floats, ints, stats, agents, near[k], near) or overlap


@inner
def walk_all(floats, ints, stats, agents, land, ways, walkers, queued, loop, words, near):  # type: ignore[no-untyped-def]
    """One loop of walking for the first `walkers` of near[WALKERS], each toward its point (WALK_X, WALK_Y); `queued`
    units have their turns in the order of the queue."""
    units = ints.shape[1]
    left = _set_all_out(floats, ints, stats, ways, walkers, loop, near)
    _look_around(floats, ints, stats, near)
    for k in range(left):
        _step(floats, ints, stats, agents, land, near[at.WALKERS * units + k], loop, words, near)
    _part(floats, ints, stats, agents, queued, near)
    _end_apart(floats, ints, stats, land, queued, words, near)
    for u in range(units):
        floats[at.X, u], floats[at.Y, u] = floats[at.WALK_X, u], floats[at.WALK_Y, u]
