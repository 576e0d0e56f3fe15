"""Hits: damage through shields and armour, missiles, the colossus's beams, the baneling's blast; targets; healing."""

# U units; floats (FLOAT_ROWS, U), ints (INT_ROWS, U) state of one battle; stats unit-type table; u, v slots

from __future__ import annotations

import numpy as np

from s2rm_data.core.compiled import inner
from s2rm_data.starcraft.codes import Order
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.engine.chance import below
from s2rm_data.starcraft.units import LOOPS_PER_SECOND, MIN_DAMAGE_PER_HIT, SHIELD_REGEN_DELAY_S


@inner
def can_be_healed(floats, ints, stats, u, v):  # type: ignore[no-untyped-def]
    """Whether v is a hurt, living, biological unit other than u."""
    hurt_unit = 0.0 < floats[at.HEALTH, v] < floats[at.HEALTH_MAX, v]
    return hurt_unit and v != u and stats[ints[at.KIND, v], at.IS_BIOLOGICAL] > 0.0


@inner
def patient(floats, ints, stats, agents, u, loop):  # type: ignore[no-untyped-def]
    """The nearest unit of its own side for which a healer on attack-move stops; -1 = none in range."""
    first, stop = (0, agents) if u < agents else (agents, ints.shape[1])
    healer = stats[ints[at.KIND, u]]
    best, best_sq = -1, _NEVER
    for k in range(stop - first):
        v = first + k if loop & 1 else stop - 1 - k
        if not can_be_healed(floats, ints, stats, u, v):
            continue
        dx, dy = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
        reach = healer[at.HEAL_SCAN] + healer[at.RADIUS] + stats[ints[at.KIND, v], at.RADIUS]
        if dx * dx + dy * dy <= reach * reach and dx * dx + dy * dy < best_sq:
            best, best_sq = v, dx * dx + dy * dy
    return best


@inner
def reaches_patient(floats, ints, stats, u, v):  # type: ignore[no-untyped-def]
    dx, dy = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
    healer = stats[ints[at.KIND, u]]
    reach = healer[at.HEAL_RANGE] + healer[at.RADIUS] + stats[ints[at.KIND, v], at.RADIUS]
    return dx * dx + dy * dy <= reach * reach


@inner
def heal(floats, ints, stats, u, v):  # type: ignore[no-untyped-def]
    """One loop of healing v, who is in reach."""
    healer = stats[ints[at.KIND, u]]
    missing = floats[at.HEALTH_MAX, v] - floats[at.HEALTH, v]
    amount = min(healer[at.HEAL_RATE], missing, floats[at.ENERGY, u] / healer[at.ENERGY_PER_HEALTH])
    if amount > 0.0:
        floats[at.HEALTH, v] += amount
        floats[at.RESTORED, v] += amount
        floats[at.ENERGY, u] = max(floats[at.ENERGY, u] - amount * healer[at.ENERGY_PER_HEALTH], 0.0)


_SHIELD_WAIT_LOOPS = SHIELD_REGEN_DELAY_S * LOOPS_PER_SECOND
# From the game's data: two beams pass along a line across the shot in opposite directions, in 11 ticks 0.0227 s apart,
# and burn whom they touch 4 loops later, each beam once; the target itself burns 6 loops after the damage point, by
# both. Here, counted from the release, a whole loop after that point: three ticks a loop from loop 4 on, so that the
# last two come in loop 7 (recorded kills of one volley lie 0 to 3 loops apart, of 1,973 none later).
# Assumption: who burns is looked up when the damage comes, not 4 loops before.
_SWEEP_LOOPS = 7.0
_FIRST_TICKS_LOOP, _TARGET_LOOP = 4, 5
_TICKS_PER_LOOP, _MIDDLE_TICK = 3, 6
_NEVER = 1e18
# How much an enemy draws an attack (inferred from recordings and networks, docs/fidelity/engine.md).
NOT_SEEN, SEEN, IN_REACH, ATTACKER, ATTACKER_IN_REACH = range(-1, 4)
# Assumption: an attacker is answered from this far at most; no weapon reaches so far.
_ANSWER_SQ = 12.0 * 12.0


@inner
def die(floats, ints, stats, u):  # type: ignore[no-untyped-def]
    """Take a unit out of the battle. Its missile flies on; its second hit does not come; a baneling blows up."""
    floats[at.HEALTH, u] = floats[at.SHIELD, u] = floats[at.ENERGY, u] = 0.0
    floats[at.COOLDOWN, u] = floats[at.WINDUP, u] = floats[at.TURRET_WINDUP, u] = 0.0
    ints[at.ORDER, u], ints[at.TARGET, u], ints[at.FOCUS, u] = Order.IDLE, -1, -1
    if stats[ints[at.KIND, u], at.MISSILE_SPEED] == 0.0:
        floats[at.PENDING, u] = 0.0
    if stats[ints[at.KIND, u], at.BLAST_RADIUS] > 0.0:
        ints[at.FUSE, u] = 1


@inner
def _alarm(ints, agents, target):  # type: ignore[no-untyped-def]
    """Let all of the target's side who have no target look for one at once. Inferred: in 3m and 8m most enemies who
    have not stopped yet do so in the loop after the agents' first shot."""
    first, stop = (0, agents) if target < agents else (agents, ints.shape[1])
    for w in range(first, stop):
        if ints[at.FOCUS, w] < 0:
            ints[at.SCAN_WAIT, w] = 0


@inner
def hurt(floats, ints, stats, agents, attacker, target, hits):  # type: ignore[no-untyped-def]
    """`hits` hits of one weapon: shields first; the rest minus armour, at least 0.5 a hit, goes to health."""
    raw = stats[ints[at.KIND, attacker], at.DAMAGE + ints[at.KIND, target]]
    armour = stats[ints[at.KIND, target], at.ARMOUR]
    shield, health = floats[at.SHIELD, target], floats[at.HEALTH, target]
    before = shield + health
    for _ in range(hits):
        on_shield = min(shield, raw)
        shield -= on_shield
        if raw > on_shield:
            health -= max(MIN_DAMAGE_PER_HIT, raw - on_shield - armour)
    health = max(health, 0.0)
    lost = before - (shield + health)
    floats[at.SHIELD, target], floats[at.HEALTH, target] = shield, health
    floats[at.SHIELD_WAIT, target] = _SHIELD_WAIT_LOOPS
    if health == 0.0:
        lost = before
        die(floats, ints, stats, target)
    floats[at.TAKEN, target] += lost
    floats[at.DEALT, attacker] += lost
    _alarm(ints, agents, target)


@inner
def blow_up(floats, ints, stats, agents):  # type: ignore[no-untyped-def]
    """Let every lit baneling burst: all enemies within its radius take the hit; bursts light other banelings."""
    units = ints.shape[1]
    lit = True
    while lit:
        lit = False
        for u in range(units):
            if ints[at.FUSE, u] != 1:
                continue
            ints[at.FUSE, u] = 2
            lit = True
            if floats[at.HEALTH, u] > 0.0:
                floats[at.SPENT, u] += floats[at.HEALTH, u] + floats[at.SHIELD, u]
                die(floats, ints, stats, u)
                ints[at.FUSE, u] = 2
            first, stop = (agents, units) if u < agents else (0, agents)
            for v in range(first, stop):
                if floats[at.HEALTH, v] > 0.0 and stats[ints[at.KIND, u], at.CAN_HIT + ints[at.KIND, v]] > 0.0:
                    # Assumption: the blast is centred on the baneling and reaches a unit whose edge is inside it.
                    reach = stats[ints[at.KIND, u], at.BLAST_RADIUS] + stats[ints[at.KIND, v], at.RADIUS]
                    dx, dy = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
                    if dx * dx + dy * dy <= reach * reach:
                        hurt(floats, ints, stats, agents, u, v, 1)


@inner
def _beam(u):  # type: ignore[no-untyped-def]
    """The bit that marks whom u's beams have hit. Slots 63 apart share one."""
    return np.int64(1) << np.int64(u % 63)


@inner
def _touches(along, beside, point, reach):  # type: ignore[no-untyped-def]
    return (along - point) * (along - point) + beside * beside <= reach * reach


@inner
def sweep(floats, ints, stats, agents, u):  # type: ignore[no-untyped-def]
    """One loop of the colossus's two beams along the line across the shot, one from either end."""
    loop = int(_SWEEP_LOOPS - floats[at.PENDING, u])
    if loop < _FIRST_TICKS_LOOP:
        return
    kind, target, bit = ints[at.KIND, u], ints[at.PENDING_TARGET, u], _beam(u)
    x, y = floats[at.X, target], floats[at.Y, target]
    dx, dy = x - floats[at.X, u], y - floats[at.Y, u]
    length = np.sqrt(dx * dx + dy * dy)
    across_x, across_y = (-dy / length, dx / length) if length > 0.0 else (0.0, 1.0)
    first_tick = _TICKS_PER_LOOP * (loop - _FIRST_TICKS_LOOP) + 1
    last_tick = min(first_tick + _TICKS_PER_LOOP, 2 * _MIDDLE_TICK) - 1
    if loop == _TARGET_LOOP and floats[at.HEALTH, target] > 0.0:
        hurt(floats, ints, stats, agents, u, target, int(stats[kind, at.HITS]))
    first, stop = (agents, ints.shape[1]) if u < agents else (0, agents)
    for v in range(first, stop):
        other = ints[at.KIND, v]
        if v == target or floats[at.HEALTH, v] <= 0.0 or stats[kind, at.CAN_HIT + other] == 0.0:
            continue
        vx, vy = floats[at.X, v] - x, floats[at.Y, v] - y
        along, beside = vx * across_x + vy * across_y, vx * across_y - vy * across_x
        reach = stats[kind, at.LINE_RADIUS] + stats[other, at.RADIUS]
        if beside * beside > reach * reach:
            continue
        hits = 0
        for tick in range(first_tick, last_tick + 1):
            point = stats[kind, at.LINE_HALF] * (tick - _MIDDLE_TICK) / (_MIDDLE_TICK - 1)
            if ints[at.BURNT, v] & bit == 0 and _touches(along, beside, point, reach):
                ints[at.BURNT, v] |= bit
                hits += 1
            if ints[at.BURNT_TOO, v] & bit == 0 and _touches(along, beside, -point, reach):
                ints[at.BURNT_TOO, v] |= bit
                hits += 1
        if hits > 0:
            hurt(floats, ints, stats, agents, u, v, hits)
    blow_up(floats, ints, stats, agents)


@inner
def release(floats, ints, stats, agents, u, target):  # type: ignore[no-untyped-def]
    """The damage point of an attack: hit, or let the missile go."""
    k = ints[at.KIND, u]
    if stats[k, at.BLAST_RADIUS] > 0.0:
        ints[at.FUSE, u] = 1
        blow_up(floats, ints, stats, agents)
    elif stats[k, at.LINE_HALF] > 0.0:
        floats[at.PENDING, u], ints[at.PENDING_TARGET, u], ints[at.HAS_FIRED, u] = _SWEEP_LOOPS, target, 1
        for v in range(ints.shape[1]):
            ints[at.BURNT, v] &= ~_beam(u)
            ints[at.BURNT_TOO, v] &= ~_beam(u)
    elif stats[k, at.MISSILE_SPEED] > 0.0:
        dx, dy = floats[at.X, target] - floats[at.X, u], floats[at.Y, target] - floats[at.Y, u]
        # Assumption: the flight lasts as long as the distance at release takes, however the target moves meanwhile.
        floats[at.PENDING, u] = max(np.sqrt(dx * dx + dy * dy) / stats[k, at.MISSILE_SPEED], 1e-6)
        ints[at.PENDING_TARGET, u] = target
    else:
        if stats[k, at.HITS] > 1.0:
            floats[at.PENDING, u] = stats[k, at.HIT_GAP]
            ints[at.PENDING_TARGET, u] = target
        hurt(floats, ints, stats, agents, u, target, 1)
        if ints[at.FUSE, target] == 1:
            blow_up(floats, ints, stats, agents)


@inner
def arrive(floats, ints, stats, agents, u):  # type: ignore[no-untyped-def]
    """A missile or a second hit arrives."""
    floats[at.PENDING, u] = 0.0
    target = ints[at.PENDING_TARGET, u]
    if floats[at.HEALTH, target] > 0.0:
        hurt(floats, ints, stats, agents, u, target, 1)
        if ints[at.FUSE, target] == 1:
            blow_up(floats, ints, stats, agents)


@inner
def in_reach(floats, ints, stats, u, v):  # type: ignore[no-untyped-def]
    dx, dy = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
    return dx * dx + dy * dy <= stats[ints[at.KIND, u], at.REACH_SQ + ints[at.KIND, v]]


@inner
def _victim(floats, ints, stats, v):  # type: ignore[no-untyped-def]
    """The slot a unit attacks or is about to attack, -1 = none."""
    if stats[ints[at.KIND, v], at.LINE_HALF] > 0.0:  # a colossus fires under every order
        if floats[at.TURRET_WINDUP, v] > 0.0:
            return ints[at.TURRET_TARGET, v]
        if floats[at.PENDING, v] > 0.0:
            return ints[at.PENDING_TARGET, v]
    if ints[at.ORDER, v] == Order.ATTACK:
        return ints[at.TARGET, v]
    return -1 if ints[at.ORDER, v] == Order.MOVE or ints[at.ORDER, v] == Order.HEAL else ints[at.FOCUS, v]


@inner
def _rank(floats, ints, stats, u, v, distance_sq, focus):  # type: ignore[no-untyped-def]
    """How much v draws u's attack, or NOT_SEEN."""
    a, b = ints[at.KIND, u], ints[at.KIND, v]
    reached = distance_sq <= stats[a, at.REACH_SQ + b]
    guards = v == focus or ints[at.ORDER, u] != Order.ATTACK_MOVE
    seen = distance_sq <= stats[a, (at.GUARD_SQ if guards else at.SCAN_SQ) + b] or ints[at.ORDER, u] == Order.HUNT
    # From the game's data (AlwaysThreatens): a medivac counts as if it attacked everybody.
    threatens = stats[b, at.IS_FIGHTER] > 0.0 and _victim(floats, ints, stats, v) == u
    if threatens or stats[b, at.HEAL_RATE] > 0.0:
        if reached:
            return ATTACKER_IN_REACH
        # Measured (2s3z): zealots turn to an agent that is sent at them from 4.8 away, before it can hit. Inferred: who
        # has its own target in reach does not leave it for one that cannot hit yet.
        engaged = focus >= 0 and in_reach(floats, ints, stats, u, focus)
        comes = seen and not engaged
        if distance_sq <= _ANSWER_SQ and (comes or in_reach(floats, ints, stats, v, u)):
            return ATTACKER
    return IN_REACH if reached else SEEN if seen else NOT_SEEN


@inner
def acquire(floats, ints, stats, agents, u, focus, loop, words, near):  # type: ignore[no-untyped-def]
    """The enemy to attack next, -1 = none. Who attacks u, and medivacs, come first, attackers also from beyond the scan
    range; then who is in reach, one by chance, anew for every shot; then the present target, else the nearest. Slots
    are read upward in odd loops and downward in even ones, so that equal distances favour no slot. `near` is scratch
    space."""
    a = ints[at.KIND, u]
    first, stop = (agents, ints.shape[1]) if u < agents else (0, agents)
    best, best_rank, best_sq, found = -1, NOT_SEEN, _NEVER, 0
    for k in range(stop - first):
        v = first + k if loop & 1 else stop - 1 - k
        if floats[at.HEALTH, v] <= 0.0 or stats[a, at.CAN_HIT + ints[at.KIND, v]] == 0.0:
            continue
        dx, dy = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
        distance_sq = dx * dx + dy * dy
        rank = _rank(floats, ints, stats, u, v, distance_sq, focus)
        if v == focus:
            distance_sq = -1.0
        if rank > best_rank or (rank == best_rank and rank > NOT_SEEN and distance_sq < best_sq):
            found = found if rank == best_rank else 0
            best, best_rank, best_sq = v, rank, distance_sq
        if rank == best_rank:
            near[found] = v
            found += 1
    if found > 1 and best_rank in (ATTACKER_IN_REACH, IN_REACH):
        return near[below(words, found)]
    return best
