"""The game loop: clocks, then every unit's turn in a random order."""

# f (FLOAT_ROWS, U), i (INT_ROWS, U) state of one battle, w World; B battles, N agents

from __future__ import annotations

import numba as nb
import numpy as np

from s2rm_data.generators.sc2.engine.chance import shuffle, two_bits
from s2rm_data.generators.sc2.engine.combat import (
    acquire,
    can_be_healed,
    heal,
    in_reach,
    is_threat,
    land,
    patient,
    release,
)
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
    MOVE,
    ORDER,
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
# Assumption: attack-move ends this near to its point, so that an army does not jostle for one spot.
_ARRIVED = 1.0


@nb.njit(nogil=True, cache=True)
def _tick_clocks(f, w):  # type: ignore[no-untyped-def]
    """Count down what counts down and let the living regenerate."""
    for u in range(w.kind.size):
        if f[COOLDOWN, u] > 0.0:
            f[COOLDOWN, u] -= 1.0
        if f[BACKSWING, u] > 0.0:
            f[BACKSWING, u] -= 1.0
        if f[HEALTH, u] <= 0.0:
            continue
        stats = w.table[w.kind[u]]
        if f[SHIELD_WAIT, u] > 0.0:
            f[SHIELD_WAIT, u] -= 1.0
        elif f[SHIELD, u] < stats[SHIELD_MAX]:
            gain = min(stats[SHIELD_REGEN], stats[SHIELD_MAX] - f[SHIELD, u])
            f[SHIELD, u] += gain
            f[RESTORED, u] += gain
        if stats[HEALTH_REGEN] > 0.0 and f[HEALTH, u] < stats[HEALTH_MAX]:
            gain = min(stats[HEALTH_REGEN], stats[HEALTH_MAX] - f[HEALTH, u])
            f[HEALTH, u] += gain
            f[RESTORED, u] += gain
        if stats[ENERGY_MAX] > 0.0:
            f[ENERGY, u] = min(f[ENERGY, u] + stats[ENERGY_REGEN], stats[ENERGY_MAX])


@nb.njit(nogil=True, cache=True)
def _attack(f, i, w, u, target, loop, words, scratch):  # type: ignore[no-untyped-def]
    """Attack if the target is in reach, else walk toward it (unless still rooted by the last attack)."""
    if in_reach(f, w, u, target):
        if f[COOLDOWN, u] > 0.0:
            return
        _face(f, u, target)
        # What is left of the last period's fraction of a loop counts for the next, so that periods keep their mean.
        f[COOLDOWN, u] += w.table[w.kind[u], PERIOD]
        if w.jitter:
            f[COOLDOWN, u] += two_bits(words) - 1.0  # -1, 0, 1 or 2 loops
        i[FOCUS, u] = target
        f[WINDUP, u] = w.table[w.kind[u], DAMAGE_POINT]
        if f[WINDUP, u] <= 0.0:
            f[BACKSWING, u] = w.table[w.kind[u], BACKSWING_LOOPS]
            release(f, i, w, u, target)
    elif f[BACKSWING, u] <= 0.0:
        advance(f, i, w, u, f[X, target], f[Y, target], loop, words, scratch)


@nb.njit(nogil=True, cache=True)
def _face(f, u, v):  # type: ignore[no-untyped-def]
    dx, dy = f[X, v] - f[X, u], f[Y, v] - f[Y, u]
    distance = np.sqrt(dx * dx + dy * dy)
    if distance > 0.0:
        f[FACE_X, u], f[FACE_Y, u] = dx / distance, dy / distance


@nb.njit(nogil=True, cache=True)
def _treat(f, i, w, u, target, loop, words, scratch):  # type: ignore[no-untyped-def]
    _face(f, u, target)
    if not heal(f, i, w, u, target, loop):
        advance(f, i, w, u, f[X, target], f[Y, target], loop, words, scratch)


@nb.njit(nogil=True, cache=True)
def _choose_focus(f, i, w, u, loop):  # type: ignore[no-untyped-def]
    """Keep the target in reach; look for another when it is gone, out of reach, or no threat."""
    focus = i[FOCUS, u]
    if focus >= 0 and f[HEALTH, focus] > 0.0:
        if in_reach(f, w, u, focus) and is_threat(i, w, focus, loop):
            return focus
        i[SCAN_WAIT, u] -= 1
        if i[SCAN_WAIT, u] > 0:
            return focus
    i[SCAN_WAIT, u] = _SCAN_LOOPS
    i[FOCUS, u] = acquire(f, i, w, u, loop, i[ORDER, u] == HUNT)
    return i[FOCUS, u]


@nb.njit(nogil=True, cache=True)
def _guard(f, i, w, u, loop, words, scratch):  # type: ignore[no-untyped-def]
    """A unit that picks its own targets: attack-moving, hunting or standing guard."""
    if w.table[w.kind[u], HEAL_RATE] > 0.0:
        target = patient(f, w, u, loop) if f[ENERGY, u] > 0.0 else -1
        if target >= 0:
            _treat(f, i, w, u, target, loop, words, scratch)
            return
    elif w.table[w.kind[u], IS_FIGHTER] > 0.0:
        target = _choose_focus(f, i, w, u, loop)
        if target >= 0:
            _attack(f, i, w, u, target, loop, words, scratch)
            return
    if i[ORDER, u] == ATTACK_MOVE and f[BACKSWING, u] <= 0.0:
        dx, dy = f[GOAL_X, u] - f[X, u], f[GOAL_Y, u] - f[Y, u]
        if dx * dx + dy * dy <= _ARRIVED * _ARRIVED:
            i[ORDER, u] = IDLE
        else:
            advance(f, i, w, u, f[GOAL_X, u], f[GOAL_Y, u], loop, words, scratch)


@nb.njit(nogil=True, cache=True)
def _take_turn(f, i, w, u, loop, words, scratch):  # type: ignore[no-untyped-def]
    """One loop of one living unit."""
    if f[WINDUP, u] > 0.0:
        target = i[FOCUS, u]
        if f[HEALTH, target] > 0.0:
            f[WINDUP, u] -= 1.0
            if f[WINDUP, u] <= 0.0:
                f[WINDUP, u] = 0.0
                f[BACKSWING, u] = w.table[w.kind[u], BACKSWING_LOOPS]
                release(f, i, w, u, target)
            return
        f[WINDUP, u] = f[COOLDOWN, u] = 0.0  # Assumption: an attack broken off before its damage point costs no period
    order, target = i[ORDER, u], i[TARGET, u]
    if order == MOVE:
        moved = advance(f, i, w, u, f[GOAL_X, u], f[GOAL_Y, u], loop, words, scratch)
        if not moved and f[GOAL_X, u] == f[X, u] and f[GOAL_Y, u] == f[Y, u]:
            i[ORDER, u] = IDLE
    elif order == ATTACK_UNIT:
        if f[HEALTH, target] > 0.0:
            _attack(f, i, w, u, target, loop, words, scratch)
        else:
            i[ORDER, u], i[TARGET, u], i[FOCUS, u] = IDLE, -1, -1
    elif order == HEAL_UNIT:
        if f[HEALTH, target] <= 0.0:
            i[ORDER, u], i[TARGET, u] = IDLE, -1
        elif can_be_healed(f, w, u, target):
            _treat(f, i, w, u, target, loop, words, scratch)
    elif order != IDLE or not w.passive[u]:
        _guard(f, i, w, u, loop, words, scratch)


@nb.njit(nogil=True, cache=True)
def run_loop(f, i, w, queued, loop, words, scratch):  # type: ignore[no-untyped-def]
    """One game loop; returns how many slots remain in the update queue: the living and those with a missile in the air."""
    _tick_clocks(f, w)
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
                land(f, i, w, u)
        if f[HEALTH, u] > 0.0:
            _take_turn(f, i, w, u, loop, words, scratch)
    return kept


@nb.njit(nogil=True, cache=True)
def give_order(f, i, w, u, order, target, goal_x, goal_y):  # type: ignore[no-untyped-def]
    """Put a living unit under an order. One it cannot follow is ignored, as the game does; the same attack goes on unbroken."""
    if f[HEALTH, u] <= 0.0:
        return
    if order == ATTACK_UNIT or order == HEAL_UNIT:
        if f[HEALTH, target] <= 0.0 or target == u:
            return
        if order == ATTACK_UNIT and w.pair[CAN_HIT, w.kind[u], w.kind[target]] == 0.0:
            return
        if order == HEAL_UNIT and w.table[w.kind[u], HEAL_RATE] == 0.0:
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
