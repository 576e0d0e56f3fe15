"""The game loop: clocks, then every unit's turn in a random order."""

# U units; floats (FLOAT_ROWS, U), ints (INT_ROWS, U) state of one battle; stats unit-type table; u, v slots

from __future__ import annotations

import numpy as np

from s2rm_data.core.compiled import inner
from s2rm_data.starcraft.codes import Order
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.engine.chance import below, jitter, shuffle
from s2rm_data.starcraft.engine.combat import (
    acquire,
    arrive,
    can_be_healed,
    heal,
    in_reach,
    patient,
    reaches_patient,
    release,
    sweep,
)
from s2rm_data.starcraft.engine.motion import walk_all

# Inferred: units on the move, and without a target, look for one at intervals, each at a phase of its own (recorded
# stalkers stop 0 to 6 loops after they could have, marines 0 to 4).
LOOK_LOOPS = 6
# Assumption: who chases a target with a hand weapon looks for a better one four times a second.
_CHASE_LOOPS = 4
_ROUNDING = 1e-9  # ten periods of 19.2 loops are 192 loops
# Assumption: attack-move ends this near to the unit's own point.
_ARRIVED = 0.125


@inner
def _tick_clocks(floats, ints, stats):  # type: ignore[no-untyped-def]
    """Count down what counts down and let the living regenerate."""
    for u in range(ints.shape[1]):
        if floats[at.HEALTH, u] <= 0.0:
            continue
        if floats[at.COOLDOWN, u] > 0.0:
            floats[at.COOLDOWN, u] -= 1.0
        if floats[at.BACKSWING, u] > 0.0:
            floats[at.BACKSWING, u] -= 1.0
        k = ints[at.KIND, u]
        if floats[at.SHIELD_WAIT, u] > 0.0:
            floats[at.SHIELD_WAIT, u] -= 1.0
        elif floats[at.SHIELD, u] < stats[k, at.SHIELD_MAX]:
            gain = min(stats[k, at.SHIELD_REGEN], stats[k, at.SHIELD_MAX] - floats[at.SHIELD, u])
            floats[at.SHIELD, u] += gain
            floats[at.RESTORED, u] += gain
        if stats[k, at.HEALTH_REGEN] > 0.0 and floats[at.HEALTH, u] < floats[at.HEALTH_MAX, u]:
            gain = min(stats[k, at.HEALTH_REGEN], floats[at.HEALTH_MAX, u] - floats[at.HEALTH, u])
            floats[at.HEALTH, u] += gain
            floats[at.RESTORED, u] += gain
        if stats[k, at.ENERGY_MAX] > 0.0:
            floats[at.ENERGY, u] = min(floats[at.ENERGY, u] + stats[k, at.ENERGY_REGEN], stats[k, at.ENERGY_MAX])


@inner
def _face(floats, u, v):  # type: ignore[no-untyped-def]
    dx, dy = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
    distance = np.sqrt(dx * dx + dy * dy)
    if distance > 0.0:
        floats[at.FACE_X, u], floats[at.FACE_Y, u] = dx / distance, dy / distance


@inner
def _attack(floats, ints, stats, agents, u, target, words):  # type: ignore[no-untyped-def]
    """Attack if the target is in reach and the weapon ready; returns whether to walk toward it instead."""
    if not in_reach(floats, ints, stats, u, target):
        return floats[at.BACKSWING, u] <= 0.0  # rooted by the last attack
    if floats[at.COOLDOWN, u] > _ROUNDING:
        return False
    _face(floats, u, target)
    # What is left of the last period's fraction of a loop counts for the next, so that periods keep their mean.
    floats[at.COOLDOWN, u] += stats[ints[at.KIND, u], at.PERIOD] + jitter(words)
    ints[at.FOCUS, u] = target
    floats[at.WINDUP, u] = stats[ints[at.KIND, u], at.DAMAGE_POINT]
    if floats[at.WINDUP, u] <= 0.0:
        floats[at.BACKSWING, u] = stats[ints[at.KIND, u], at.BACKSWING_LOOPS]
        release(floats, ints, stats, agents, u, target)
    return False


@inner
def _wind_up(floats, ints, stats, agents, u):  # type: ignore[no-untyped-def]
    """One loop of an attack under way; False if its target died before the damage point."""
    target = ints[at.FOCUS, u]
    if floats[at.HEALTH, target] <= 0.0:
        # Assumption: an attack broken off before its damage point costs no period.
        floats[at.WINDUP, u] = floats[at.COOLDOWN, u] = 0.0
        return False
    floats[at.WINDUP, u] -= 1.0
    if floats[at.WINDUP, u] <= 0.0:
        floats[at.WINDUP, u] = 0.0
        floats[at.BACKSWING, u] = stats[ints[at.KIND, u], at.BACKSWING_LOOPS]
        release(floats, ints, stats, agents, u, target)
    return True


@inner
def _targets_in_reach(floats, ints, stats, agents, u, near):  # type: ignore[no-untyped-def]
    """Write the living enemies that u can hit from where it is to `near`; returns how many."""
    first, stop = (agents, ints.shape[1]) if u < agents else (0, agents)
    found = 0
    for v in range(first, stop):
        hits = floats[at.HEALTH, v] > 0.0 and stats[ints[at.KIND, u], at.CAN_HIT + ints[at.KIND, v]] > 0.0
        if hits and in_reach(floats, ints, stats, u, v):
            near[found] = v
            found += 1
    return found


@inner
def _fire_turret(floats, ints, stats, agents, u, loop, words, near):  # type: ignore[no-untyped-def]
    """From the game's data (ThermalLances: OnlyFireWhileInAttackOrder 0, OnlyFireAtAttackOrderTarget 0): a colossus
    fires under every order, also while it walks, and no order breaks the shot off. Who is ordered to attack somebody in
    reach fires at that one, as `_attack` does; else one of those in reach is drawn. Agents, who acquire nobody by
    themselves, have to have fired by order before: so they do in all recordings, and without that untrained agents'
    return on 1c3s5z is 18% too high. Nobody fires in the loop before the first orders."""
    if floats[at.TURRET_WINDUP, u] > 0.0:
        target = ints[at.TURRET_TARGET, u]
        if floats[at.HEALTH, target] > 0.0:
            floats[at.TURRET_WINDUP, u] = max(floats[at.TURRET_WINDUP, u] - 1.0, 0.0)
            if floats[at.TURRET_WINDUP, u] <= 0.0:
                release(floats, ints, stats, agents, u, target)
            return
        floats[at.TURRET_WINDUP, u] = floats[at.COOLDOWN, u] = 0.0
    busy = floats[at.COOLDOWN, u] > _ROUNDING or floats[at.WINDUP, u] > 0.0 or floats[at.PENDING, u] > 0.0
    if busy or ints[at.PASSIVE, u] > ints[at.HAS_FIRED, u] or loop == 0:
        return
    target = ints[at.TARGET, u]
    aimed = ints[at.ORDER, u] == Order.ATTACK and floats[at.HEALTH, target] > 0.0
    if aimed and in_reach(floats, ints, stats, u, target):
        return
    found = _targets_in_reach(floats, ints, stats, agents, u, near)
    if found > 0:
        ints[at.TURRET_TARGET, u] = near[below(words, found) if found > 1 else 0]
        floats[at.COOLDOWN, u] += stats[ints[at.KIND, u], at.PERIOD] + jitter(words)
        floats[at.TURRET_WINDUP, u] = stats[ints[at.KIND, u], at.DAMAGE_POINT]


@inner
def _treat(floats, ints, stats, u, target, ordered):  # type: ignore[no-untyped-def]
    """Heal the target, if `ordered` to; returns whether to walk toward it instead. Inferred (MMM2): the enemies'
    medivac, which nobody orders to, stops for the hurt and heals nobody; what keeps it from healing is unknown."""
    _face(floats, u, target)
    near_enough = reaches_patient(floats, ints, stats, u, target)
    if near_enough and ordered:
        heal(floats, ints, stats, u, target)
    return not near_enough


@inner
def _walks_blindly(ints, stats, u, loop):  # type: ignore[no-untyped-def]
    """Whether a unit with a ranged weapon walks and does not look in this loop."""
    melee = stats[ints[at.KIND, u], at.IS_MELEE] > 0.0
    return not melee and ints[at.MOVED_LOOP, u] >= loop - 1 and ints[at.SCAN_WAIT, u] > 0


@inner
def _choose_focus(floats, ints, stats, agents, u, loop, words, near):  # type: ignore[no-untyped-def]
    """The target: chosen anew when the weapon is ready, every few loops while walking, and at once if it died."""
    focus = ints[at.FOCUS, u]
    ints[at.SCAN_WAIT, u] -= 1
    if focus >= 0 and floats[at.HEALTH, focus] <= 0.0:
        focus = -1
    elif _walks_blindly(ints, stats, u, loop):
        return focus
    elif focus >= 0 and in_reach(floats, ints, stats, u, focus):
        if floats[at.COOLDOWN, u] > _ROUNDING:
            return focus
    elif ints[at.SCAN_WAIT, u] > 0:
        return focus
    ints[at.FOCUS, u] = acquire(floats, ints, stats, agents, u, focus, loop, words, near)
    chases_hand_to_hand = ints[at.FOCUS, u] >= 0 and stats[ints[at.KIND, u], at.IS_MELEE] > 0.0
    ints[at.SCAN_WAIT, u] = _CHASE_LOOPS if chases_hand_to_hand else LOOK_LOOPS
    return ints[at.FOCUS, u]


@inner
def _guard(floats, ints, stats, agents, u, loop, words, near):  # type: ignore[no-untyped-def]
    """A unit that picks its own targets; returns whether it walks, and where to."""
    if stats[ints[at.KIND, u], at.HEAL_RATE] > 0.0:
        target = patient(floats, ints, stats, agents, u, loop) if floats[at.ENERGY, u] > 0.0 else -1
        if target >= 0:
            return _treat(floats, ints, stats, u, target, False), floats[at.X, target], floats[at.Y, target]
    elif stats[ints[at.KIND, u], at.IS_FIGHTER] > 0.0:
        target = _choose_focus(floats, ints, stats, agents, u, loop, words, near)
        if target >= 0:
            if ints[at.SCAN_WAIT, u] < LOOK_LOOPS and _walks_blindly(ints, stats, u, loop):
                return True, floats[at.X, target], floats[at.Y, target]  # it has not looked yet how near it is
            return (
                _attack(floats, ints, stats, agents, u, target, words),
                floats[at.X, target],
                floats[at.Y, target],
            )
    goal_x, goal_y = floats[at.GOAL_X, u], floats[at.GOAL_Y, u]
    dx, dy = goal_x - floats[at.X, u], goal_y - floats[at.Y, u]
    if ints[at.ORDER, u] == Order.ATTACK_MOVE and dx * dx + dy * dy <= _ARRIVED * _ARRIVED:
        ints[at.ORDER, u] = ints[at.AFTER, u]
    return ints[at.ORDER, u] == Order.ATTACK_MOVE and floats[at.BACKSWING, u] <= 0.0, goal_x, goal_y


@inner
def _follow_order(floats, ints, stats, agents, u, loop, words, near):  # type: ignore[no-untyped-def]
    """Act on the order a unit is under; returns whether it walks, and where to."""
    order, target = ints[at.ORDER, u], ints[at.TARGET, u]
    if order == Order.MOVE:
        if floats[at.GOAL_X, u] == floats[at.X, u] and floats[at.GOAL_Y, u] == floats[at.Y, u]:
            ints[at.ORDER, u] = Order.IDLE
        return True, floats[at.GOAL_X, u], floats[at.GOAL_Y, u]
    if order in (Order.ATTACK, Order.HEAL):
        if floats[at.HEALTH, target] <= 0.0:
            ints[at.ORDER, u], ints[at.TARGET, u], ints[at.FOCUS, u] = Order.IDLE, -1, -1
        elif order == Order.ATTACK:
            return (
                _attack(floats, ints, stats, agents, u, target, words),
                floats[at.X, target],
                floats[at.Y, target],
            )
        elif can_be_healed(floats, ints, stats, u, target):
            return _treat(floats, ints, stats, u, target, True), floats[at.X, target], floats[at.Y, target]
    elif order != Order.IDLE or ints[at.PASSIVE, u] == 0:
        return _guard(floats, ints, stats, agents, u, loop, words, near)
    return False, 0.0, 0.0


@inner
def run_loop(floats, ints, stats, agents, land, ways, counters, words, near):  # type: ignore[no-untyped-def]
    """One game loop. The queue keeps the living and those with a missile in the air; `near` is scratch (layout.py)."""
    loop, units = counters[at.LOOPS], ints.shape[1]
    _tick_clocks(floats, ints, stats)
    kept = 0
    for k in range(counters[at.QUEUED]):
        u = ints[at.QUEUE, k]
        if floats[at.HEALTH, u] > 0.0 or floats[at.PENDING, u] > 0.0:
            ints[at.QUEUE, kept] = u
            kept += 1
    shuffle(ints, kept, words)
    walkers, first = 0, at.WALKERS * units
    for k in range(kept):
        u = ints[at.QUEUE, k]
        if floats[at.PENDING, u] > 0.0:
            floats[at.PENDING, u] -= 1.0
            if stats[ints[at.KIND, u], at.LINE_HALF] > 0.0:
                sweep(floats, ints, stats, agents, u)
            elif floats[at.PENDING, u] <= 0.0:
                arrive(floats, ints, stats, agents, u)
        walks = False
        if floats[at.HEALTH, u] > 0.0 and stats[ints[at.KIND, u], at.LINE_HALF] > 0.0:
            _fire_turret(floats, ints, stats, agents, u, loop, words, near)
        if floats[at.HEALTH, u] > 0.0 and not (floats[at.WINDUP, u] > 0.0 and _wind_up(floats, ints, stats, agents, u)):
            walks, goal_x, goal_y = _follow_order(floats, ints, stats, agents, u, loop, words, near)
            floats[at.WALK_X, u], floats[at.WALK_Y, u] = goal_x, goal_y
        if walks:
            near[first + walkers] = u
            walkers += 1
    if walkers > 0:
        walk_all(floats, ints, stats, agents, land, ways, walkers, kept, loop, words, near)
    counters[at.QUEUED] = kept
    counters[at.LOOPS] += 1


@inner
def give_order(floats, ints, stats, u, order, target, goal_x, goal_y):  # type: ignore[no-untyped-def]
    """Put a living unit under an order. One it cannot follow is ignored; the same attack goes on unbroken."""
    if floats[at.HEALTH, u] <= 0.0:
        return
    if order in (Order.ATTACK, Order.HEAL):
        if floats[at.HEALTH, target] <= 0.0 or target == u:
            return
        if order == Order.ATTACK and stats[ints[at.KIND, u], at.CAN_HIT + ints[at.KIND, target]] == 0.0:
            return
        if order == Order.HEAL and stats[ints[at.KIND, u], at.HEAL_RATE] == 0.0:
            return
        # Measured (MMM2): an order to heal the unhurt is refused, and the healer goes on with what it was doing.
        if order == Order.HEAL and not can_be_healed(floats, ints, stats, u, target):
            return
        if ints[at.ORDER, u] == order and ints[at.TARGET, u] == target:
            return
    if floats[at.WINDUP, u] > 0.0 and not (order == Order.ATTACK and ints[at.FOCUS, u] == target):
        floats[at.WINDUP, u] = floats[at.COOLDOWN, u] = 0.0
    # From the game's data: a zealot's burst is channelled, so that any other order breaks it off.
    goes_on = order == Order.ATTACK and ints[at.PENDING_TARGET, u] == target
    if stats[ints[at.KIND, u], at.HIT_GAP] > 0.0 and not goes_on:
        floats[at.PENDING, u] = 0.0
    floats[at.BACKSWING, u] = 0.0
    ints[at.ORDER, u], ints[at.TARGET, u] = order, target
    floats[at.GOAL_X, u], floats[at.GOAL_Y, u] = goal_x, goal_y
    if order != Order.ATTACK or ints[at.FOCUS, u] != target:
        ints[at.FOCUS, u] = -1
