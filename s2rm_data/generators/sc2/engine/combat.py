"""Hits: damage through shields and armour, missiles, the colossus's line, the baneling's blast; healing; targets."""

# f (FLOAT_ROWS, U), i (INT_ROWS, U) state of one battle, t table, n agents

from __future__ import annotations

import numpy as np

from s2rm_data.generators.sc2.engine.compiled import inner
from s2rm_data.generators.sc2.engine.layout import (
    ARMOUR,
    BLAST_RADIUS,
    CAN_HIT,
    COOLDOWN,
    DAMAGE,
    DEALT,
    ENERGY,
    ENERGY_PER_HEALTH,
    FOCUS,
    FUSE,
    HEAL_RANGE,
    HEAL_RATE,
    HEAL_SCAN,
    HEALED_LOOP,
    HEALTH,
    HEALTH_MAX,
    HIT_GAP,
    HITS,
    IDLE,
    IS_BIOLOGICAL,
    IS_FIGHTER,
    KIND,
    LINE_HALF,
    LINE_RADIUS,
    MISSILE_SPEED,
    ORDER,
    PENDING,
    PENDING_TARGET,
    RADIUS,
    REACH_SQ,
    RESTORED,
    SCAN_SQ,
    SHIELD,
    SHIELD_WAIT,
    SPENT,
    TAKEN,
    TARGET,
    WINDUP,
    X,
    Y,
)
from s2rm_data.generators.sc2.units import LOOPS_PER_SECOND, MIN_DAMAGE_PER_HIT, SHIELD_REGEN_DELAY_S

_SHIELD_WAIT_LOOPS = SHIELD_REGEN_DELAY_S * LOOPS_PER_SECOND
_LINE_POINTS = 11  # points of the colossus's line, a quarter of a map unit apart
# Assumption: a medivac counts as healing, and so as a target like any fighter, for half a second after it healed.
_HEALING_LOOPS = 8
_NEVER = 1e18


@inner
def die(f, i, t, u):  # type: ignore[no-untyped-def]
    """Take a unit out of the battle. Its missile flies on; its second hit does not come; a baneling blows up."""
    f[HEALTH, u] = f[SHIELD, u] = f[ENERGY, u] = f[COOLDOWN, u] = f[WINDUP, u] = 0.0
    i[ORDER, u], i[TARGET, u], i[FOCUS, u] = IDLE, -1, -1
    if t[i[KIND, u], MISSILE_SPEED] == 0.0:
        f[PENDING, u] = 0.0
    if t[i[KIND, u], BLAST_RADIUS] > 0.0:
        i[FUSE, u] = 1


@inner
def hurt(f, i, t, attacker, target, hits):  # type: ignore[no-untyped-def]
    """`hits` hits of one weapon: shields take the damage first, the rest minus armour, at least 0.5 a hit, goes to
    health.
    """
    raw = t[i[KIND, attacker], DAMAGE + i[KIND, target]]
    armour = t[i[KIND, target], ARMOUR]
    shield, health = f[SHIELD, target], f[HEALTH, target]
    before = shield + health
    for _ in range(hits):
        on_shield = min(shield, raw)
        shield -= on_shield
        if raw > on_shield:
            health -= max(MIN_DAMAGE_PER_HIT, raw - on_shield - armour)
    health = max(health, 0.0)
    lost = before - (shield + health)
    f[SHIELD, target], f[HEALTH, target] = shield, health
    f[SHIELD_WAIT, target] = _SHIELD_WAIT_LOOPS
    if health == 0.0:
        lost = before
        die(f, i, t, target)
    f[TAKEN, target] += lost
    f[DEALT, attacker] += lost


@inner
def blow_up(f, i, t, n):  # type: ignore[no-untyped-def]
    """Let every lit baneling burst: all enemies within its radius take the hit; bursts light other banelings."""
    units = i.shape[1]
    lit = True
    while lit:
        lit = False
        for u in range(units):
            if i[FUSE, u] != 1:
                continue
            i[FUSE, u] = 2
            lit = True
            if f[HEALTH, u] > 0.0:
                f[SPENT, u] += f[HEALTH, u] + f[SHIELD, u]
                die(f, i, t, u)
                i[FUSE, u] = 2
            first, stop = (n, units) if u < n else (0, n)
            for v in range(first, stop):
                if f[HEALTH, v] > 0.0 and t[i[KIND, u], CAN_HIT + i[KIND, v]] > 0.0:
                    # Assumption: the blast is centred on the baneling and reaches a unit whose edge is inside it.
                    reach = t[i[KIND, u], BLAST_RADIUS] + t[i[KIND, v], RADIUS]
                    dx, dy = f[X, v] - f[X, u], f[Y, v] - f[Y, u]
                    if dx * dx + dy * dy <= reach * reach:
                        hurt(f, i, t, u, v, 1)


@inner
def burn_line(f, i, t, n, u, target):  # type: ignore[no-untyped-def]
    """The colossus's beams: every enemy that a point of the line across the shot touches takes both hits."""
    dx, dy = f[X, target] - f[X, u], f[Y, target] - f[Y, u]
    length = np.sqrt(dx * dx + dy * dy)
    across_x, across_y = (-dy / length, dx / length) if length > 0.0 else (0.0, 1.0)
    half, hits = t[i[KIND, u], LINE_HALF], int(t[i[KIND, u], HITS])
    centre_x, centre_y = f[X, target], f[Y, target]
    first, stop = (n, i.shape[1]) if u < n else (0, n)
    for v in range(first, stop):
        if f[HEALTH, v] <= 0.0 or t[i[KIND, u], CAN_HIT + i[KIND, v]] == 0.0:
            continue
        reach = t[i[KIND, u], LINE_RADIUS] + t[i[KIND, v], RADIUS]
        touched = False
        for k in range(_LINE_POINTS):
            along = half * (2 * k - (_LINE_POINTS - 1)) / (_LINE_POINTS - 1)
            px, py = centre_x + along * across_x - f[X, v], centre_y + along * across_y - f[Y, v]
            touched = touched or px * px + py * py <= reach * reach
        if touched:
            hurt(f, i, t, u, v, hits)


@inner
def release(f, i, t, n, u, target):  # type: ignore[no-untyped-def]
    """The damage point of an attack: hit, or let the missile go."""
    k = i[KIND, u]
    if t[k, BLAST_RADIUS] > 0.0:
        i[FUSE, u] = 1
        blow_up(f, i, t, n)
    elif t[k, LINE_HALF] > 0.0:
        burn_line(f, i, t, n, u, target)
        blow_up(f, i, t, n)
    elif t[k, MISSILE_SPEED] > 0.0:
        dx, dy = f[X, target] - f[X, u], f[Y, target] - f[Y, u]
        # Assumption: the flight lasts as long as the distance at release takes, however the target moves meanwhile.
        f[PENDING, u] = max(np.sqrt(dx * dx + dy * dy) / t[k, MISSILE_SPEED], 1e-6)
        i[PENDING_TARGET, u] = target
    else:
        if t[k, HITS] > 1.0:
            f[PENDING, u] = t[k, HIT_GAP]
            i[PENDING_TARGET, u] = target
        hurt(f, i, t, u, target, 1)
        if i[FUSE, target] == 1:
            blow_up(f, i, t, n)


@inner
def arrive(f, i, t, n, u):  # type: ignore[no-untyped-def]
    """A missile or a second hit arrives."""
    f[PENDING, u] = 0.0
    target = i[PENDING_TARGET, u]
    if f[HEALTH, target] > 0.0:
        hurt(f, i, t, u, target, 1)
        if i[FUSE, target] == 1:
            blow_up(f, i, t, n)


@inner
def is_threat(i, t, v, loop):  # type: ignore[no-untyped-def]
    return t[i[KIND, v], IS_FIGHTER] > 0.0 or loop - i[HEALED_LOOP, v] < _HEALING_LOOPS


@inner
def acquire(f, i, t, n, u, loop, anywhere):  # type: ignore[no-untyped-def]
    """The enemy to attack next: those that fight (or heal) before the rest, then the nearest in scan range; -1 = none.

    Slots are read upward in odd loops and downward in even ones, so that equal distances favour no slot.
    """
    a = i[KIND, u]
    first, stop = (n, i.shape[1]) if u < n else (0, n)
    best, best_threat, best_sq = -1, False, _NEVER
    for k in range(stop - first):
        v = first + k if loop & 1 else stop - 1 - k
        if f[HEALTH, v] <= 0.0 or t[a, CAN_HIT + i[KIND, v]] == 0.0:
            continue
        dx, dy = f[X, v] - f[X, u], f[Y, v] - f[Y, u]
        distance_sq = dx * dx + dy * dy
        if not anywhere and distance_sq > t[a, SCAN_SQ + i[KIND, v]]:
            continue
        threat = is_threat(i, t, v, loop)
        if (threat and not best_threat) or (threat == best_threat and distance_sq < best_sq):
            best, best_threat, best_sq = v, threat, distance_sq
    return best


@inner
def in_reach(f, i, t, u, v):  # type: ignore[no-untyped-def]
    dx, dy = f[X, v] - f[X, u], f[Y, v] - f[Y, u]
    return dx * dx + dy * dy <= t[i[KIND, u], REACH_SQ + i[KIND, v]]


@inner
def can_be_healed(f, i, t, u, v):  # type: ignore[no-untyped-def]
    """Whether v is a hurt, living, biological unit other than u."""
    hurt_unit = 0.0 < f[HEALTH, v] < t[i[KIND, v], HEALTH_MAX]
    return hurt_unit and v != u and t[i[KIND, v], IS_BIOLOGICAL] > 0.0


@inner
def patient(f, i, t, n, u, loop):  # type: ignore[no-untyped-def]
    """The nearest unit of its own side that a healer on attack-move would heal; -1 = none in range."""
    first, stop = (0, n) if u < n else (n, i.shape[1])
    best, best_sq = -1, _NEVER
    for k in range(stop - first):
        v = first + k if loop & 1 else stop - 1 - k
        if not can_be_healed(f, i, t, u, v):
            continue
        dx, dy = f[X, v] - f[X, u], f[Y, v] - f[Y, u]
        reach = t[i[KIND, u], HEAL_SCAN] + t[i[KIND, u], RADIUS] + t[i[KIND, v], RADIUS]
        if dx * dx + dy * dy <= reach * reach and dx * dx + dy * dy < best_sq:
            best, best_sq = v, dx * dx + dy * dy
    return best


@inner
def heal(f, i, t, u, v, loop):  # type: ignore[no-untyped-def]
    """One loop of healing v from where u stands; False if v is too far away."""
    dx, dy = f[X, v] - f[X, u], f[Y, v] - f[Y, u]
    reach = t[i[KIND, u], HEAL_RANGE] + t[i[KIND, u], RADIUS] + t[i[KIND, v], RADIUS]
    if dx * dx + dy * dy > reach * reach:
        return False
    missing = t[i[KIND, v], HEALTH_MAX] - f[HEALTH, v]
    amount = min(t[i[KIND, u], HEAL_RATE], missing, f[ENERGY, u] / t[i[KIND, u], ENERGY_PER_HEALTH])
    if amount > 0.0:
        f[HEALTH, v] += amount
        f[RESTORED, v] += amount
        f[ENERGY, u] = max(f[ENERGY, u] - amount * t[i[KIND, u], ENERGY_PER_HEALTH], 0.0)
        i[HEALED_LOOP, u] = loop
    return True
