"""SMAC's feature vectors, written number by number in compiled code; `features` says what they are."""

# B battles, U units of both sides (agents first), N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

import numpy as np

from s2rm_data.generators.sc2.codes import Action
from s2rm_data.generators.sc2.engine.compiled import compiled, inner
from s2rm_data.generators.sc2.maps import SIZE

# columns of the table of unit types
HEALTH_MAX, SHIELD_MAX, COOLDOWN_MAX, IS_HEALER, SIGHT_RANGE, SHOOT_RANGE, COLUMNS = range(7)
# How many points around an agent are told of the pathing grid and of the terrain's height.
PATHING_POINTS, HEIGHT_POINTS = 8, 9


# rows of the scratch space, one column per unit: position, health and shield as shares of their maximum
X, Y, HEALTH, SHIELD, SCRATCH_ROWS = range(5)
_BEYOND = 1.0 + 1e-9  # a squared distance of more than this times the squared range is out of range, however rounded
_LEAST_X = 1e-7  # smacv2's EPS


@inner
def in_cone(dx, dy, look_x, look_y, half_angle):  # type: ignore[no-untyped-def]
    """smacv2's is_position_in_cone, but for the range: whether the slopes of what is at (dx, dy) and of the direction
    of looking differ by less than half the cone's angle. Slopes are taken on the side on which the unit is, so that who
    looks due east or west sees both ways, and who looks aslant also sees a little of the other side. Arctangents, as
    there: units that surround agents stand on a diagonal, which is a cone's very edge, where rounding decides.
    """
    if dx > 0.0:
        x, look = max(dx, _LEAST_X), max(look_x, _LEAST_X)
    else:
        x, look = min(dx, -_LEAST_X), min(look_x, -_LEAST_X)
    return abs(np.arctan(dy / x) - np.arctan(look_y / look)) < half_angle


@inner
def _see(body, agent, unit, sight, conic, look_x, look_y, half_angle, start, out):  # type: ignore[no-untyped-def]
    """Distance, relative x and y as shares of the sight range, from out[start + 1] on; False, and nothing written, if
    it is out of sight.
    """
    dx, dy = body[X, unit] - body[X, agent], body[Y, unit] - body[Y, agent]
    distance_sq = dx * dx + dy * dy
    if distance_sq > sight * sight * _BEYOND:
        return False
    distance = np.sqrt(distance_sq)
    if conic:
        if distance > sight or not in_cone(dx, dy, look_x, look_y, half_angle):
            return False
    elif distance >= sight:
        return False
    out[start + 1], out[start + 2], out[start + 3] = distance / sight, dx / sight, dy / sight
    return True


@inner
def _describe(body, unit, start, has_health, has_shield, bits, kind, out):  # type: ignore[no-untyped-def]
    """Health, shield and type from `start` on; returns where they end."""
    if has_health:
        out[start] = body[HEALTH, unit]
        start += 1
        if has_shield:
            out[start] = body[SHIELD, unit]
            start += 1
    if bits > 0:
        out[start + kind] = 1.0
    return start + bits


@inner
def _see_ground(x, y, ground, around, pathing, height, out):  # type: ignore[no-untyped-def]
    """What surrounds an agent; beyond the map's edge all is 1."""
    start = 4
    for layer in range(2):
        wanted = pathing if layer == 0 else height
        if not wanted:
            continue
        points = PATHING_POINTS if layer == 0 else HEIGHT_POINTS
        for k in range(points):
            u, v = int(x) + around[k, 0], int(y) + around[k, 1]
            inside = 0 <= u < SIZE and 0 <= v < SIZE
            out[start + k] = ground[layer, u, v] if inside else 1.0
        start += points


@compiled
def write_observations(  # type: ignore[no-untyped-def]
    position, health, shield, kinds, available, last, time, looking, half_angle, stats, type_index, ground, around,
    widths, shields, flags, body, out,
):  # fmt: skip
    """Into zeroed (B, N, O); `body` (SCRATCH_ROWS, U) is scratch space; `looking` (B, N, 2) directions, if conic."""
    move_width, enemy_width, ally_width, attack_at = widths
    all_health, own_health, last_action, pathing, height, timed, own_place, conic = flags
    battles, agents, units = available.shape[0], available.shape[1], kinds.shape[1]
    bits = enemy_width - 4 - (1 + shields[1] if all_health else 0)
    enemies_at, allies_at = move_width, move_width + (units - agents) * enemy_width
    own_at = allies_at + (agents - 1) * ally_width
    for b in range(battles):
        for u in range(units):
            body[X, u], body[Y, u] = position[b, u, 0], position[b, u, 1]
            body[HEALTH, u] = health[b, u] / stats[kinds[b, u], HEALTH_MAX]
            body[SHIELD, u] = shield[b, u] / stats[kinds[b, u], SHIELD_MAX]
        for i in range(agents):
            row = out[b, i]
            if timed:
                row[out.shape[2] - 1] = time[b]
            if health[b, i] <= 0.0:
                continue
            sight, look_x, look_y = stats[kinds[b, i], SIGHT_RANGE], 1.0, 0.0
            if conic:
                look_x, look_y = looking[b, i]
            for k in range(4):
                row[k] = available[b, i, Action.NORTH + k]
            if pathing or height:
                _see_ground(position[b, i, 0], position[b, i, 1], ground, around, pathing, height, row)
            for e in range(agents, units):
                start = enemies_at + (e - agents) * enemy_width
                if health[b, e] > 0.0 and _see(body, i, e, sight, conic, look_x, look_y, half_angle, start, row):
                    row[start] = available[b, i, attack_at + e - agents]
                    _describe(body, e, start + 4, all_health, shields[1] > 0, bits, type_index[1, kinds[b, e]], row)
            start = allies_at
            for v in range(agents):
                if v == i:
                    continue
                if health[b, v] > 0.0 and _see(body, i, v, sight, conic, look_x, look_y, half_angle, start, row):
                    row[start] = 1.0
                    end = _describe(
                        body, v, start + 4, all_health, shields[0] > 0, bits, type_index[0, kinds[b, v]], row
                    )
                    if last_action and last[b, v] >= 0:
                        row[end + last[b, v]] = 1.0
                start += ally_width
            end = _describe(body, i, own_at, own_health, shields[0] > 0, 0, 0, row)
            if own_place:
                row[end], row[end + 1] = body[X, i] / SIZE, body[Y, i] / SIZE
                end += 2
            if conic:
                row[end], row[end + 1] = look_x, look_y
                end += 2
            if bits > 0:
                row[end + type_index[0, kinds[b, i]]] = 1.0


@compiled
def write_states(  # type: ignore[no-untyped-def]
    position, health, shield, energy, cooldown, kinds, last, time, looking, conic, stats, type_index, shields, bits,
    actions, last_action, timed, out,
):  # fmt: skip
    """Into zeroed (B, S). SMAC hides the enemies' cooldowns."""
    agents, units = last.shape[1], kinds.shape[1]
    for b in range(out.shape[0]):
        start = 0
        for u in range(units):
            kind, ours = kinds[b, u], u < agents
            looks = conic and ours
            width = 3 + ours + shields[0 if ours else 1] + 2 * looks + bits
            if health[b, u] > 0.0:
                k = start
                out[b, k] = np.float64(health[b, u]) / stats[kind, HEALTH_MAX]
                k += 1
                if ours:
                    ready = energy[b, u] if stats[kind, IS_HEALER] > 0.0 else cooldown[b, u]
                    out[b, k] = np.float64(ready) / stats[kind, COOLDOWN_MAX]
                    k += 1
                # the playable area is the whole map
                out[b, k] = (np.float64(position[b, u, 0]) - SIZE / 2) / SIZE
                out[b, k + 1] = (np.float64(position[b, u, 1]) - SIZE / 2) / SIZE
                k += 2
                if shields[0 if ours else 1] > 0:
                    out[b, k] = np.float64(shield[b, u]) / stats[kind, SHIELD_MAX]
                    k += 1
                if looks:
                    out[b, k], out[b, k + 1] = looking[b, u]
                    k += 2
                if bits > 0:
                    out[b, k + type_index[0 if ours else 1, kind]] = 1.0
            start += width
        if last_action:
            for i in range(agents):
                if last[b, i] >= 0:
                    out[b, start + i * actions + last[b, i]] = 1.0
            start += agents * actions
        if timed:
            out[b, start] = time[b]


@inner
def _is_walkable(pathing, x, y):  # type: ignore[no-untyped-def]
    """SMAC's can_move: it rounds toward zero, so up to 1 beyond the west and south edges is the edge's cell."""
    u, v = int(x), int(y)
    return 0 <= u < SIZE and 0 <= v < SIZE and pathing[u, v]


@compiled
def write_masks(  # type: ignore[no-untyped-def]
    position, health, kinds, stats, pathing, amount, attack_at, looking, half_angle, masks
):
    """Into masks (B, N, A), all False; with a cone, `looking` (B, N, 2) are directions, and targets must be in it."""
    battles, agents = masks.shape[:2]
    conic = attack_at > Action.ATTACK
    half, units = amount / 2, kinds.shape[1]
    for b in range(battles):
        for u in range(agents):
            mask = masks[b, u]
            if health[b, u] <= 0.0:
                mask[Action.NO_OP] = True
                continue
            x, y = np.float64(position[b, u, 0]), np.float64(position[b, u, 1])
            mask[Action.STOP] = True
            mask[Action.NORTH] = _is_walkable(pathing, x, y + half)
            mask[Action.SOUTH] = _is_walkable(pathing, x, y - half)
            mask[Action.EAST] = _is_walkable(pathing, x + half, y)
            mask[Action.WEST] = _is_walkable(pathing, x - half, y)
            mask[Action.ATTACK : attack_at] = True  # looking around
            heals, reach = stats[kinds[b, u], IS_HEALER] > 0.0, stats[kinds[b, u], SHOOT_RANGE]
            first, stop = (0, agents) if heals else (agents, units)
            for v in range(first, stop):
                if health[b, v] <= 0.0 or (heals and stats[kinds[b, v], IS_HEALER] > 0.0):
                    continue
                dx, dy = np.float64(position[b, v, 0]) - x, np.float64(position[b, v, 1]) - y
                shot = np.sqrt(dx * dx + dy * dy) <= reach
                if conic and shot:
                    shot = in_cone(dx, dy, looking[b, u, 0], looking[b, u, 1], half_angle)
                mask[attack_at + v - first] = shot


@compiled
def turn(actions, attack_at, directions, looking, orders):  # type: ignore[no-untyped-def]
    """Actions (B, N) of agents that can look around become `orders` (B, N) in SMAC's numbers, a look no order at all;
    who looks has the direction of its action in `looking` (B, N, 2).
    """
    for b in range(actions.shape[0]):
        for u in range(actions.shape[1]):
            action = actions[b, u]
            orders[b, u] = action
            if action >= attack_at:
                orders[b, u] = action - attack_at + Action.ATTACK
            elif action >= Action.ATTACK:
                orders[b, u] = Action.NO_OP
                looking[b, u, 0] = directions[action - Action.ATTACK, 0]
                looking[b, u, 1] = directions[action - Action.ATTACK, 1]
