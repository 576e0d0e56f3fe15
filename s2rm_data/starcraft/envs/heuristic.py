"""SMAC's built-in heuristic (`heuristic_ai`): attack the nearest enemy until it is dead, heal the nearest hurt.

By the rules of smac/env/starcraft2/starcraft2.py, including that the dead choose as well, to no effect.
"""

# N agents, U units of both sides, A actions

from __future__ import annotations

import numpy as np

from s2rm_data.core.compiled import compiled
from s2rm_data.starcraft.codes import Action

NOBODY = -1


@compiled()
def _distance(position, u, v):  # type: ignore[no-untyped-def]
    dx = np.float64(position[v, 0]) - np.float64(position[u, 0])
    dy = np.float64(position[v, 1]) - np.float64(position[u, 1])
    return np.sqrt(dx * dx + dy * dy)


@compiled()
def _nearest(position, health, full, healer, u, first, stop, heals):  # type: ignore[no-untyped-def]
    """Index within its side of the nearest living enemy, or hurt agent that can be healed; NOBODY if there is none."""
    best, least = NOBODY, np.inf
    for v in range(first, stop):
        if health[v] <= 0.0 or (heals and (healer[v] or health[v] >= full[v])):
            continue
        distance = _distance(position, u, v)
        if distance < least:
            best, least = v - first, distance
    return best


@compiled()
def choose(  # type: ignore[no-untyped-def]
    position, health, full, healer, agents, available, attack_at, restricted, targets, actions
):
    """Actions (N,) of one battle into `actions`; `targets` (N,) is what each agent sticks to.

    position (U, 2), health (U,), full (U,) maximal health, healer (U,), available (N, A), `attack_at` the first action
    that names a target. `restricted`: who may not aim at its target yet walks toward it.
    """
    for u in range(agents):
        first, stop = (0, agents) if healer[u] else (agents, health.shape[0])
        target = targets[u]
        if target >= 0:
            v = first + target
            if health[v] <= 0.0 or (healer[u] and health[v] >= full[v]):
                target = NOBODY
        if target == NOBODY:
            target = _nearest(position, health, full, healer, u, first, stop, healer[u])
        targets[u] = target
        if target == NOBODY:
            actions[u] = Action.NO_OP
            continue
        action = attack_at + target
        if restricted and not available[u, action]:
            v = first + target
            dx = np.float64(position[v, 0]) - np.float64(position[u, 0])
            dy = np.float64(position[v, 1]) - np.float64(position[u, 1])
            if abs(dx) > abs(dy):
                action = Action.EAST if dx > 0 else Action.WEST
            else:
                action = Action.NORTH if dy > 0 else Action.SOUTH
        actions[u] = action
