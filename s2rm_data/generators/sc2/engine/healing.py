"""Healing: who can be healed, whom a medivac on attack-move heals, and one loop of it."""

# U units; floats (FLOAT_ROWS, U), ints (INT_ROWS, U) state of one battle; stats unit-type table; u, v slots

from __future__ import annotations

from s2rm_data.generators.sc2.engine import layout as at
from s2rm_data.generators.sc2.engine.compiled import inner

_NEVER = 1e18


@inner
def can_be_healed(floats, ints, stats, u, v):  # type: ignore[no-untyped-def]
    """Whether v is a hurt, living, biological unit other than u."""
    hurt_unit = 0.0 < floats[at.HEALTH, v] < stats[ints[at.KIND, v], at.HEALTH_MAX]
    return hurt_unit and v != u and stats[ints[at.KIND, v], at.IS_BIOLOGICAL] > 0.0


@inner
def patient(floats, ints, stats, agents, u, loop):  # type: ignore[no-untyped-def]
    """The nearest unit of its own side that a healer on attack-move would heal; -1 = none in range."""
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
def heal(floats, ints, stats, u, v):  # type: ignore[no-untyped-def]
    """One loop of healing v from where u stands; False if v is too far away."""
    dx, dy = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
    healer = stats[ints[at.KIND, u]]
    reach = healer[at.HEAL_RANGE] + healer[at.RADIUS] + stats[ints[at.KIND, v], at.RADIUS]
    if dx * dx + dy * dy > reach * reach:
        return False
    missing = stats[ints[at.KIND, v], at.HEALTH_MAX] - floats[at.HEALTH, v]
    amount = min(healer[at.HEAL_RATE], missing, floats[at.ENERGY, u] / healer[at.ENERGY_PER_HEALTH])
    if amount > 0.0:
        floats[at.HEALTH, v] += amount
        floats[at.RESTORED, v] += amount
        floats[at.ENERGY, u] = max(floats[at.ENERGY, u] - amount * healer[at.ENERGY_PER_HEALTH], 0.0)
    return True
