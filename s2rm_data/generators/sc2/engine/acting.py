"""Agents' actions as a client of the API gives them, and what such a client sees: positions and stats in float32.

The environments play through these, so that a battle runs as it does for a SMAC that is connected to the server.
"""

# B battles, U units of both sides (agents first), N agents; floats (B, FLOAT_ROWS, U), ints (B, INT_ROWS, U)

from __future__ import annotations

import numpy as np

from s2rm_data.generators.sc2.codes import Action, Order
from s2rm_data.generators.sc2.engine import layout as at
from s2rm_data.generators.sc2.engine.compiled import compiled, inner
from s2rm_data.generators.sc2.engine.loop import give_order
from s2rm_data.generators.sc2.maps import SIZE

_CENTRE = SIZE / 2
_WHOLE = 2.0**-17  # as in api/server/orders.py: a displacement this near to whole map units was meant to be whole


@inner
def _goal(own, amount):  # type: ignore[no-untyped-def]
    """Where a move by `amount` leads along one axis, for a client that knows its own coordinate in float32 only."""
    seen = np.float32(own + _CENTRE)
    asked = np.float64(np.float32(np.float64(seen) + amount))
    displacement = asked - np.float64(seen)
    whole = np.rint(displacement)
    if abs(displacement - whole) < _WHOLE:
        return own + whole
    return min(max(asked, -float(SIZE)), 2.0 * SIZE) - _CENTRE


@inner
def _act(floats, ints, stats, agents, u, action, amount):  # type: ignore[no-untyped-def]
    x, y = floats[at.X, u], floats[at.Y, u]
    if action == Action.STOP:
        give_order(floats, ints, stats, u, Order.IDLE, -1, x, y)
    elif Action.NORTH <= action <= Action.WEST:
        dx = amount * ((action == Action.EAST) - (action == Action.WEST))
        dy = amount * ((action == Action.NORTH) - (action == Action.SOUTH))
        give_order(floats, ints, stats, u, Order.MOVE, -1, _goal(x, dx), _goal(y, dy))
    elif action >= Action.ATTACK:
        whom = action - Action.ATTACK
        if stats[ints[at.KIND, u], at.HEAL_RATE] > 0.0:
            if whom < agents:
                give_order(floats, ints, stats, u, Order.HEAL, whom, x, y)
        elif agents + whom < ints.shape[1]:
            give_order(floats, ints, stats, u, Order.ATTACK, agents + whom, x, y)


@compiled
def act_batch(floats, ints, stats, agents, actions, amount):  # type: ignore[no-untyped-def]
    """SMAC's actions (B, N) become orders; a move goes `amount` map units. No loop is run."""
    for b in range(actions.shape[0]):
        for u in range(agents):
            if actions[b, u] != Action.NO_OP:
                _act(floats[b], ints[b], stats, agents, u, actions[b, u], amount)


@compiled
def look_batch(floats, position, health, shield, energy, cooldown):  # type: ignore[no-untyped-def]
    """Fills a snapshot's arrays, float32: position (B, U, 2), the others (B, U)."""
    for b in range(floats.shape[0]):
        for u in range(floats.shape[2]):
            position[b, u, 0] = np.float32(floats[b, at.X, u] + _CENTRE)
            position[b, u, 1] = np.float32(floats[b, at.Y, u] + _CENTRE)
            alive = floats[b, at.HEALTH, u] > 0.0
            health[b, u] = np.float32(floats[b, at.HEALTH, u])
            shield[b, u] = np.float32(floats[b, at.SHIELD, u])
            energy[b, u] = np.float32(floats[b, at.ENERGY, u])
            cooldown[b, u] = np.float32(max(floats[b, at.COOLDOWN, u], 0.0)) if alive else np.float32(0.0)
