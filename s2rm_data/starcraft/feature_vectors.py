"""SMAC's feature vectors, written number by number in compiled code; `features` says what they are."""

# B battles, U units of both sides (agents first), N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

import numpy as np

from s2rm_data.core.compiled import inner, kernel
from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.rules import in_cone
from s2rm_data.starcraft.terrain_maps import SIZE

# columns of the table of unit types
AGENT_HEALTH, ENEMY_HEALTH, SHIELD_MAX, COOLDOWN_MAX, IS_HEALER, SIGHT_RANGE, COLUMNS = range(7)
# How many points around an agent are told of the pathing grid and of the terrain's height.
PATHING_POINTS, HEIGHT_POINTS = 8, 9


# rows of the scratch space, one column per unit: position, health and shield as shares of their maximum
X, Y, HEALTH, SHIELD, SCRATCH_ROWS = range(5)
_BEYOND = 1.0 + 1e-9  # a squared distance of more than this times the squared range is out of range, however rounded


@inner
def distance_seen(dx, dy, sight, conic, look_x, look_y, half_angle):  # type: ignore[no-untyped-def]
    """How far away what is at (dx, dy) is, -1 if it is out of sight."""
    distance_sq = dx * dx + dy * dy
    if distance_sq > sight * sight * _BEYOND:
        return -1.0
    distance = np.sqrt(distance_sq)
    if conic:
        if distance > sight or not in_cone(dx, dy, look_x, look_y, half_angle):
            return -1.0
    elif distance >= sight:
        return -1.0
    return distance


@inner
def _see(body, agent, unit, sight, all_seen, conic, look_x, look_y, half_angle, start, out):  # type: ignore[no-untyped-def]
    """Distance, relative x and y as shares of the sight range, from out[start + 1] on; False, and nothing written, if
    it is out of sight."""
    dx, dy = body[X, unit] - body[X, agent], body[Y, unit] - body[Y, agent]
    if all_seen:
        distance = np.sqrt(dx * dx + dy * dy)
    else:
        distance = distance_seen(dx, dy, sight, conic, look_x, look_y, half_angle)
    if distance < 0.0:
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


@inner
def _own_traits(attack, level, has_attack, has_level, start, out):  # type: ignore[no-untyped-def]
    """SMACv2's: the chance of an attack to succeed, the share of health at which an agent dies; returns the end."""
    if has_attack:
        out[start] = attack
        start += 1
    if has_level:
        out[start] = level
        start += 1
    return start


@kernel
def write_observations(  # type: ignore[no-untyped-def]
    position, health, shield, kinds, available, last, time, looking, half_angle, stats, type_index, ground, around,
    widths, shields, flags, attack, level, masked, first, body, out,
):  # fmt: skip
    """Into zeroed (B, N, O); `body` (SCRATCH_ROWS, U) is scratch space; `looking` (B, N, 2) directions, if conic.

    SMACv2's, each of no battle where it is not used: `attack` and `level` (B, N) of agents; `masked` (B, N, E) enemies
    without health, shield and type; `first` (B, N) the enemy from which on an agent observes."""
    move_width, enemy_width, ally_width, attack_at = widths
    (all_health, own_health, last_action, pathing, height, timed, own_place, conic, nothing, all_seen, types_told,
     attack_told, level_told) = flags  # fmt: skip
    has_attack, has_level = attack.shape[0] > 0, level.shape[0] > 0
    battles, agents, units = available.shape[0], available.shape[1], kinds.shape[1]
    bits = enemy_width - 4 - (1 + shields[1] if all_health else 0)
    enemies_at, allies_at = move_width, move_width + (units - agents) * enemy_width
    own_at = allies_at + (agents - 1) * ally_width
    for b in range(battles):
        for u in range(units):
            body[X, u], body[Y, u] = position[b, u, 0], position[b, u, 1]
            body[HEALTH, u] = health[b, u] / stats[kinds[b, u], AGENT_HEALTH if u < agents else ENEMY_HEALTH]
            body[SHIELD, u] = shield[b, u] / stats[kinds[b, u], SHIELD_MAX]
        for u in range(agents):
            if has_level:
                body[HEALTH, u] = (1.0 / (1.0 - level[b, u])) * (body[HEALTH, u] - level[b, u])
        for i in range(agents):
            row = out[b, i]
            if timed:
                row[out.shape[2] - 1] = time[b]
            if health[b, i] <= 0.0 or nothing:
                continue
            sight, look_x, look_y = stats[kinds[b, i], SIGHT_RANGE], 1.0, 0.0
            if conic:
                look_x, look_y = looking[b, i]
            for k in range(4):
                row[k] = available[b, i, Action.NORTH + k]
            if pathing or height:
                _see_ground(position[b, i, 0], position[b, i, 1], ground, around, pathing, height, row)
            begin = agents + first[b, i] if first.shape[0] > 0 else agents
            for e in range(begin, units):
                start = enemies_at + (e - agents) * enemy_width
                if health[b, e] > 0.0 and _see(
                    body, i, e, sight, all_seen, conic, look_x, look_y, half_angle, start, row
                ):
                    row[start] = available[b, i, attack_at + e - agents]
                    if masked.shape[0] == 0 or not masked[b, i, e - agents]:
                        _describe(body, e, start + 4, all_health, shields[1] > 0, bits, type_index[1, kinds[b, e]], row)
            start = allies_at
            for v in range(agents):
                if v == i:
                    continue
                if health[b, v] > 0.0 and _see(
                    body, i, v, sight, all_seen, conic, look_x, look_y, half_angle, start, row
                ):
                    row[start] = 1.0
                    end = _describe(body, v, start + 4, all_health, shields[0] > 0, 0, 0, row)
                    if has_level and all_health and not level_told:
                        row[start + 4] = 0.0
                    chance = attack[b, v] if has_attack and attack_told else 0.0
                    share = level[b, v] if has_level and level_told else 0.0
                    end = _own_traits(chance, share, has_attack, has_level, end, row)
                    if bits > 0 and types_told:
                        row[end + type_index[0, kinds[b, v]]] = 1.0
                    if last_action and last[b, v] >= 0:
                        row[end + bits + last[b, v]] = 1.0
                start += ally_width
            end = _describe(body, i, own_at, own_health, shields[0] > 0, 0, 0, row)
            chance, share = attack[b, i] if has_attack else 0.0, level[b, i] if has_level else 0.0
            end = _own_traits(chance, share, has_attack, has_level, end, row)
            if own_place:
                row[end], row[end + 1] = body[X, i] / SIZE, body[Y, i] / SIZE
                end += 2
            if conic:
                row[end], row[end + 1] = look_x, look_y
                end += 2
            if bits > 0:
                row[end + type_index[0, kinds[b, i]]] = 1.0


@kernel
def write_states(  # type: ignore[no-untyped-def]
    position, health, shield, energy, cooldown, kinds, last, time, looking, conic, stats, type_index, shields, bits,
    actions, last_action, timed, attack, level, out,
):  # fmt: skip
    """Into zeroed (B, S). SMAC hides the enemies' cooldowns. `attack` and `level` as in `write_observations`."""
    agents, units = last.shape[1], kinds.shape[1]
    has_attack, has_level = attack.shape[0] > 0, level.shape[0] > 0
    traits = (1 if has_attack else 0) + (1 if has_level else 0)
    for b in range(out.shape[0]):
        start = 0
        for u in range(units):
            kind, ours = kinds[b, u], u < agents
            looks = conic and ours
            width = 3 + ours + shields[0 if ours else 1] + 2 * looks + (traits if ours else 0) + bits
            if health[b, u] > 0.0:
                k = start
                share = np.float64(health[b, u]) / stats[kind, AGENT_HEALTH if ours else ENEMY_HEALTH]
                if has_level and ours:
                    share = (1.0 / (1.0 - level[b, u])) * (share - level[b, u])
                out[b, k] = share
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
                if ours and traits > 0:
                    chance, share = attack[b, u] if has_attack else 0.0, level[b, u] if has_level else 0.0
                    k = _own_traits(chance, share, has_attack, has_level, k, out[b])
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


@kernel
def turn(actions, attack_at, directions, looking, orders):  # type: ignore[no-untyped-def]
    """Actions (B, N) of agents that can look around become `orders` (B, N) in SMAC's numbers, a look no order at all;
    who looks has the direction of its action in `looking` (B, N, 2)."""
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
