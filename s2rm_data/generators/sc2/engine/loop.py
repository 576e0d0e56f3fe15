"""The game loop: clocks, then every unit's turn in a random order."""

# f (FLOAT_ROWS, U), i (INT_ROWS, U) state of one battle, t table, n agents

from __future__ import annotations

import numpy as np

from s2rm_data.generators.sc2.engine.chance import jitter, shuffle
from s2rm_data.generators.sc2.engine.combat import (
    acquire,
    arrive,
    can_be_healed,
    heal,
    in_reach,
    is_threat,
    patient,
    release,
)
from s2rm_data.generators.sc2.engine.compiled import inner
from s2rm_data.generators.sc2.engine.layout import (
    ATTACK_MOVE,
    ATTACK_UNIT,
    BACKSWING,
    BACKSWING_LOOPS,
    CAN_HIT,
    COOLDOWN,
    DAMAGE_POINT,
    ENERGY,
    ENERGY_MAX,
    ENERGY_REGEN,
    FACE_X,
    FACE_Y,
    FOCUS,
    GOAL_X,
    GOAL_Y,
    HEAL_RATE,
    HEAL_UNIT,
    HEALTH,
    HEALTH_MAX,
    HEALTH_REGEN,
    HUNT,
    IDLE,
    IS_FIGHTER,
    KIND,
    MOVE,
    ORDER,
    PASSIVE,
    PENDING,
    PERIOD,
    QUEUE,
    RESTORED,
    SCAN_WAIT,
    SHIELD,
    SHIELD_MAX,
    SHIELD_REGEN,
    SHIELD_WAIT,
    TARGET,
    WINDUP,
    X,
    Y,
)
from s2rm_data.generators.sc2.engine.motion import advance

# Assumption: a unit that chases looks for a better target four times a second.
_SCAN_LOOPS = 4
_ROUNDING = 1e-9  # ten periods of 19.2 loops are 192 loops
# Assumption: attack-move ends this near to its point, so that an army does not jostle for one spot.
_ARRIVED = 1.0


@inner
def _tick_clocks(f, i, t):  # type: ignore[no-untyped-def]
    """Count down what counts down and let the living regenerate."""
    for u in range(i.shape[1]):
        if f[HEALTH, u] <= 0.0:
            continue
        if f[COOLDOWN, u] > 0.0:
            f[COOLDOWN, u] -= 1.0
        if f[BACKSWING, u] > 0.0:
            f[BACKSWING, u] -= 1.0
        k = i[KIND, u]
        if f[SHIELD_WAIT, u] > 0.0:
            f[SHIELD_WAIT, u] -= 1.0
        elif f[SHIELD, u] < t[k, SHIELD_MAX]:
            gain = min(t[k, SHIELD_REGEN], t[k, SHIELD_MAX] - f[SHIELD, u])
            f[SHIELD, u] += gain
            f[RESTORED, u] += gain
        if t[k, HEALTH_REGEN] > 0.0 and f[HEALTH, u] < t[k, HEALTH_MAX]:
            gain = min(t[k, HEALTH_REGEN], t[k, HEALTH_MAX] - f[HEALTH, u])
            f[HEALTH, u] += gain
            f[RESTORED, u] += gain
        if t[k, ENERGY_MAX] > 0.0:
            f[ENERGY, u] = min(f[ENERGY, u] + t[k, ENERGY_REGEN], t[k, ENERGY_MAX])


@inner
def _face(f, u, v):  # type: ignore[no-untyped-def]
    dx, dy = f[X, v] - f[X, u], f[Y, v] - f[Y, u]
    distance = np.sqrt(dx * dx + dy * dy)
    if distance > 0.0:
        f[FACE_X, u], f[FACE_Y, u] = dx / distance, dy / distance


@inner
def _attack(f, i, t, n, u, target, words):  # type: ignore[no-untyped-def]
    """Attack if the target is in reach and the weapon ready; returns whether to walk toward it instead."""
    if not in_reach(f, i, t, u, target):
        return f[BACKSWING, u] <= 0.0  # rooted by the last attack
    if f[COOLDOWN, u] > _ROUNDING:
        return False
    _face(f, u, target)
    # What is left of the last period's fraction of a loop counts for the next, so that periods keep their mean.
    f[COOLDOWN, u] += t[i[KIND, u], PERIOD] + jitter(words)
    i[FOCUS, u] = target
    f[WINDUP, u] = t[i[KIND, u], DAMAGE_POINT]
    if f[WINDUP, u] <= 0.0:
        f[BACKSWING, u] = t[i[KIND, u], BACKSWING_LOOPS]
        release(f, i, t, n, u, target)
    return False


@inner
def _wind_up(f, i, t, n, u):  # type: ignore[no-untyped-def]
    """One loop of an attack under way; False if its target died before the damage point."""
    target = i[FOCUS, u]
    if f[HEALTH, target] <= 0.0:
        f[WINDUP, u] = f[COOLDOWN, u] = 0.0  # Assumption: an attack broken off before its damage point costs no period
        return False
    f[WINDUP, u] -= 1.0
    if f[WINDUP, u] <= 0.0:
        f[WINDUP, u] = 0.0
        f[BACKSWING, u] = t[i[KIND, u], BACKSWING_LOOPS]
        release(f, i, t, n, u, target)
    return True


@inner
def _treat(f, i, t, u, target, loop):  # type: ignore[no-untyped-def]
    """Heal the target; returns whether to walk toward it instead."""
    _face(f, u, target)
    return not heal(f, i, t, u, target, loop)


@inner
def _choose_focus(f, i, t, n, u, loop):  # type: ignore[no-untyped-def]
    """Keep the target in reach; look for another when it is gone, out of reach, or no threat."""
    focus = i[FOCUS, u]
    if focus >= 0 and f[HEALTH, focus] > 0.0:
        if in_reach(f, i, t, u, focus) and is_threat(i, t, focus, loop):
            return focus
        i[SCAN_WAIT, u] -= 1
        if i[SCAN_WAIT, u] > 0:
            return focus
    i[SCAN_WAIT, u] = _SCAN_LOOPS
    i[FOCUS, u] = acquire(f, i, t, n, u, loop, i[ORDER, u] == HUNT)
    return i[FOCUS, u]


@inner
def _guard(f, i, t, n, u, loop, words):  # type: ignore[no-untyped-def]
    """A unit that picks its own targets; returns whether it walks, and where to."""
    if t[i[KIND, u], HEAL_RATE] > 0.0:
        target = patient(f, i, t, n, u, loop) if f[ENERGY, u] > 0.0 else -1
        if target >= 0:
            return _treat(f, i, t, u, target, loop), f[X, target], f[Y, target]
    elif t[i[KIND, u], IS_FIGHTER] > 0.0:
        target = _choose_focus(f, i, t, n, u, loop)
        if target >= 0:
            return _attack(f, i, t, n, u, target, words), f[X, target], f[Y, target]
    goal_x, goal_y = f[GOAL_X, u], f[GOAL_Y, u]
    dx, dy = goal_x - f[X, u], goal_y - f[Y, u]
    if i[ORDER, u] == ATTACK_MOVE and dx * dx + dy * dy <= _ARRIVED * _ARRIVED:
        i[ORDER, u] = IDLE
    return i[ORDER, u] == ATTACK_MOVE and f[BACKSWING, u] <= 0.0, goal_x, goal_y


@inner
def _follow_order(f, i, t, n, u, loop, words):  # type: ignore[no-untyped-def]
    """Act on the order a unit is under; returns whether it walks, and where to."""
    order, target = i[ORDER, u], i[TARGET, u]
    if order == MOVE:
        if f[GOAL_X, u] == f[X, u] and f[GOAL_Y, u] == f[Y, u]:
            i[ORDER, u] = IDLE
        return True, f[GOAL_X, u], f[GOAL_Y, u]
    if order in (ATTACK_UNIT, HEAL_UNIT):
        if f[HEALTH, target] <= 0.0:
            i[ORDER, u], i[TARGET, u], i[FOCUS, u] = IDLE, -1, -1
        elif order == ATTACK_UNIT:
            return _attack(f, i, t, n, u, target, words), f[X, target], f[Y, target]
        elif can_be_healed(f, i, t, u, target):
            return _treat(f, i, t, u, target, loop), f[X, target], f[Y, target]
    elif order != IDLE or i[PASSIVE, u] == 0:
        return _guard(f, i, t, n, u, loop, words)
    return False, 0.0, 0.0


@inner
def run_loop(f, i, t, n, land, ways, queued, loop, words, near):  # type: ignore[no-untyped-def]
    """One game loop; returns how many slots stay in the queue: the living and those with a missile in the air."""
    _tick_clocks(f, i, t)
    kept = 0
    for k in range(queued):
        u = i[QUEUE, k]
        if f[HEALTH, u] > 0.0 or f[PENDING, u] > 0.0:
            i[QUEUE, kept] = u
            kept += 1
    shuffle(i, kept, words)
    for k in range(kept):
        u = i[QUEUE, k]
        if f[PENDING, u] > 0.0:
            f[PENDING, u] -= 1.0
            if f[PENDING, u] <= 0.0:
                arrive(f, i, t, n, u)
        if f[HEALTH, u] > 0.0 and not (f[WINDUP, u] > 0.0 and _wind_up(f, i, t, n, u)):
            walks, goal_x, goal_y = _follow_order(f, i, t, n, u, loop, words)
            if walks:
                advance(f, i, t, n, land, ways, u, goal_x, goal_y, loop, words, near)
    return kept


@inner
def give_order(f, i, t, u, order, target, goal_x, goal_y):  # type: ignore[no-untyped-def]
    """Put a living unit under an order. One it cannot follow is ignored, as in the game; the same attack goes on
    unbroken.
    """
    if f[HEALTH, u] <= 0.0:
        return
    if order in (ATTACK_UNIT, HEAL_UNIT):
        if f[HEALTH, target] <= 0.0 or target == u:
            return
        if order == ATTACK_UNIT and t[i[KIND, u], CAN_HIT + i[KIND, target]] == 0.0:
            return
        if order == HEAL_UNIT and t[i[KIND, u], HEAL_RATE] == 0.0:
            return
        if i[ORDER, u] == order and i[TARGET, u] == target:
            return
    if f[WINDUP, u] > 0.0 and not (order == ATTACK_UNIT and i[FOCUS, u] == target):
        f[WINDUP, u] = f[COOLDOWN, u] = 0.0
    f[BACKSWING, u] = 0.0
    i[ORDER, u], i[TARGET, u] = order, target
    f[GOAL_X, u], f[GOAL_Y, u] = goal_x, goal_y
    if order != ATTACK_UNIT or i[FOCUS, u] != target:
        i[FOCUS, u] = -1
