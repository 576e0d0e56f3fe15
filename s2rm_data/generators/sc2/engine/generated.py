"""What SMACv2's battles have of their own: the script of its map, the ranges of its masks, and its reward.

The script of 32x32_flat orders every enemy that has no order to attack the agent nearest to it, every half second.
"""

# B battles, U units, N agents, K unit types; floats (B, FLOAT_ROWS, U), ints (B, INT_ROWS, U), stats unit-type table

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from s2rm_data.generators.sc2.codes import Action, Order, Outcome
from s2rm_data.generators.sc2.engine import layout as at
from s2rm_data.generators.sc2.engine.compiled import compiled
from s2rm_data.generators.sc2.engine.loop import give_order
from s2rm_data.generators.sc2.engine.step import KILL_REWARD, REWARD_SCALE, WIN_REWARD
from s2rm_data.generators.sc2.generated import mask_range
from s2rm_data.generators.sc2.units import UNIT_TYPES

SCRIPT_LOOPS = 8  # half a second


@cache
def mask_ranges() -> NDArray[np.float64]:
    """(K,) how far away a target may be for a mask to allow it."""
    return np.array([0.0, *(mask_range(unit) for unit in UNIT_TYPES.values())])


@compiled
def attack_nearest(floats, ints, stats, agents, counters):  # type: ignore[no-untyped-def]
    """The script, for every battle that is not over. What a unit cannot hit it is ordered to attack in vain.

    Assumption: it comes at the beginning of a step (in the game it depends on how long the game has run), and who has
    picked a target by itself is without an order.
    """
    for b in range(floats.shape[0]):
        if counters[b, at.OUTCOME] != Outcome.RUNNING:
            continue
        for u in range(agents, ints.shape[2]):
            if ints[b, at.ORDER, u] != Order.IDLE or floats[b, at.HEALTH, u] <= 0.0:
                continue
            nearest, least = -1, 0.0
            for v in range(agents):
                dx, dy = floats[b, at.X, v] - floats[b, at.X, u], floats[b, at.Y, v] - floats[b, at.Y, u]
                distance = dx * dx + dy * dy
                if floats[b, at.HEALTH, v] > 0.0 and (nearest < 0 or distance < least):
                    nearest, least = v, distance
            if nearest >= 0:
                give_order(floats[b], ints[b], stats, u, Order.ATTACK, nearest, floats[b, at.X, u], floats[b, at.Y, u])


@compiled
def mask_targets(floats, ints, stats, agents, ranges, available):  # type: ignore[no-untyped-def]
    """Writes the targets' part of SMAC's masks (B, N, A) anew, with each unit type's own range."""
    for b in range(floats.shape[0]):
        for u in range(agents):
            if floats[b, at.HEALTH, u] <= 0.0:
                continue
            heals = stats[ints[b, at.KIND, u], at.HEAL_RATE] > 0.0
            reach = ranges[ints[b, at.KIND, u]]
            first, stop = (0, agents) if heals else (agents, floats.shape[2])
            for v in range(first, stop):
                dx, dy = floats[b, at.X, v] - floats[b, at.X, u], floats[b, at.Y, v] - floats[b, at.Y, u]
                heals_too = stats[ints[b, at.KIND, v], at.HEAL_RATE] > 0.0
                living = floats[b, at.HEALTH, v] > 0.0 and not (heals and heals_too)
                available[b, u, Action.ATTACK + v - first] = living and dx * dx + dy * dy <= reach * reach


@compiled
def enemy_points(floats, agents, counters, points):  # type: ignore[no-untyped-def]
    """Into (B,): what can still be won, the enemies' health and shields and the reward for killing them; -1 where the
    battle is over.
    """
    for b in range(floats.shape[0]):
        points[b] = 0.0 if counters[b, at.OUTCOME] == Outcome.RUNNING else -1.0
        if points[b] < 0.0:
            continue
        for u in range(agents, floats.shape[2]):
            if floats[b, at.HEALTH, u] > 0.0:
                points[b] += floats[b, at.HEALTH, u] + floats[b, at.SHIELD, u] + KILL_REWARD


@compiled
def rescale_reward(floats, ints, stats, agents, counters, before, reward):  # type: ignore[no-untyped-def]
    """smacv2's reward: a step in which enemies regain more than they lose brings nothing; scaled so that a battle
    without regeneration brings 20. `before`: `enemy_points` before the step; `reward`: SMAC's, 0 where no step was.

    smacv2 scales by the enemies of an environment's first episode; here each episode is scaled by its own.
    """
    for b in range(floats.shape[0]):
        if before[b] < 0.0:
            continue
        left, whole = 0.0, WIN_REWARD
        for u in range(agents, floats.shape[2]):
            kind = ints[b, at.KIND, u]
            whole += stats[kind, at.HEALTH_MAX] + stats[kind, at.SHIELD_MAX] + KILL_REWARD
            if floats[b, at.HEALTH, u] > 0.0:
                left += floats[b, at.HEALTH, u] + floats[b, at.SHIELD, u] + KILL_REWARD
        won = WIN_REWARD if counters[b, at.OUTCOME] == Outcome.WIN else 0.0
        reward[b] = (max(before[b] - left, 0.0) + won) * REWARD_SCALE / whole
