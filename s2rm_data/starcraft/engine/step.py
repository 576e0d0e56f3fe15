"""The environment step: SMAC's actions become orders, eight loops run, then reward and outcome by `rules`.

Agents' actions as a client of the API gives them, and what such a client sees: positions and stats in float32. So a
battle runs as it does for a SMAC that is connected to the server. SMACv2's map 32x32_flat has a script: every half
second it orders each enemy that has no order to attack the agent nearest to it."""

# B battles, U units of both sides (agents first), N agents; floats (B, FLOAT_ROWS, U), ints (B, INT_ROWS, U), stats
# unit-type table

from __future__ import annotations

import numpy as np

from s2rm_data.core.compiled import inner, kernel
from s2rm_data.starcraft.codes import Action, Order, Outcome
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.engine.loop import give_order, run_loop
from s2rm_data.starcraft.rules import MOVE_AMOUNT, REWARD_SCALE, add_points, count_fighters, count_living, end_of, worth
from s2rm_data.starcraft.terrain_maps import SIZE
from s2rm_data.starcraft.units import LOOPS_PER_STEP

SCRIPT_LOOPS = 8  # half a second
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
def _obey(floats, ints, stats, agents, u, action, amount, as_client):  # type: ignore[no-untyped-def]
    """Turn an agent's action into its order, if it names one. `as_client`: moves lead where they do in float32."""
    x, y = floats[at.X, u], floats[at.Y, u]
    if action == Action.STOP:
        give_order(floats, ints, stats, u, Order.IDLE, -1, x, y)
    elif Action.NORTH <= action <= Action.WEST:
        dx = amount * ((action == Action.EAST) - (action == Action.WEST))
        dy = amount * ((action == Action.NORTH) - (action == Action.SOUTH))
        goal_x, goal_y = x + dx, y + dy
        if as_client:
            goal_x, goal_y = _goal(x, dx), _goal(y, dy)
        give_order(floats, ints, stats, u, Order.MOVE, -1, goal_x, goal_y)
    elif action >= Action.ATTACK:
        whom = action - Action.ATTACK
        if stats[ints[at.KIND, u], at.HEAL_RATE] > 0.0:
            if whom < agents:
                give_order(floats, ints, stats, u, Order.HEAL, whom, x, y)
        elif agents + whom < ints.shape[1]:
            give_order(floats, ints, stats, u, Order.ATTACK, agents + whom, x, y)


@kernel
def act_batch(floats, ints, stats, agents, actions, amount):  # type: ignore[no-untyped-def]
    """SMAC's actions (B, N) become orders; a move goes `amount` map units. No loop is run."""
    for b in range(actions.shape[0]):
        for u in range(agents):
            if actions[b, u] != Action.NO_OP:
                _obey(floats[b], ints[b], stats, agents, u, actions[b, u], amount, True)


@kernel
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


@inner
def _run_script(floats, ints, stats, agents):  # type: ignore[no-untyped-def]
    """SMACv2's script, of one battle. What a unit cannot hit it is ordered to attack in vain. Assumption: it comes at
    the beginning of a step (in the game it depends on how long the game has run), and who has picked a target by itself
    is without an order."""
    for u in range(agents, ints.shape[1]):
        if ints[at.ORDER, u] != Order.IDLE or floats[at.HEALTH, u] <= 0.0:
            continue
        nearest, least = -1, 0.0
        for v in range(agents):
            dx, dy = floats[at.X, v] - floats[at.X, u], floats[at.Y, v] - floats[at.Y, u]
            distance = dx * dx + dy * dy
            if floats[at.HEALTH, v] > 0.0 and (nearest < 0 or distance < least):
                nearest, least = v, distance
        if nearest >= 0:
            give_order(floats, ints, stats, u, Order.ATTACK, nearest, floats[at.X, u], floats[at.Y, u])


@kernel
def attack_nearest(floats, ints, stats, agents, counters):  # type: ignore[no-untyped-def]
    """SMACv2's script, for every battle that is not over."""
    for b in range(floats.shape[0]):
        if counters[b, at.OUTCOME] == Outcome.RUNNING:
            _run_script(floats[b], ints[b], stats, agents)


@inner
def _step_battle(  # type: ignore[no-untyped-def]
    floats, ints, stats, agents, land, ways, limit, heals, rewards, kinds, counters, words, actions, near
):
    """One step of one battle; returns SMAC's reward, scaled so that a whole battle brings 20. smacv2 scales by the
    enemies of an environment's first episode; here each episode is scaled by its own. In which order points are added
    up decides the last bits of stored rewards: SMACv2's count each death at once."""
    units, health, shield, kind = ints.shape[1], floats[at.HEALTH], floats[at.SHIELD], ints[at.KIND]
    each = rewards.death_value if rewards.clipped else 0.0
    points = add_points(0.0, 1.0, health, shield, agents, units, each)
    living = count_living(health, agents, units)
    for u in range(units):
        floats[at.DEALT, u] = floats[at.TAKEN, u] = floats[at.RESTORED, u] = floats[at.SPENT, u] = 0.0
    if rewards.clipped:
        _run_script(floats, ints, stats, agents)
    for u in range(agents):
        if actions[u] != Action.NO_OP:
            _obey(floats, ints, stats, agents, u, actions[u], MOVE_AMOUNT, False)
    for _ in range(LOOPS_PER_STEP):
        run_loop(floats, ints, stats, agents, land, ways, counters, words, near)
    counters[at.STEPS] += 1
    if rewards.clipped:
        points, killed = points - add_points(0.0, 1.0, health, shield, agents, units, each), 0.0
    else:
        points = add_points(points, -1.0, health, shield, agents, units, 0.0)
        killed = rewards.death_value * (living - count_living(health, agents, units))
    ours = count_fighters(health, kind, kinds, 0, agents)
    theirs = count_fighters(health, kind, kinds, agents, units)
    end = end_of(ours, theirs, heals, counters[at.STEPS] >= limit)
    counters[at.OUTCOME] = end
    most = rewards.win
    for u in range(agents, units):
        most += floats[at.HEALTH_MAX, u] + stats[kind[u], at.SHIELD_MAX] + rewards.death_value
    return worth(points, killed, 0.0, 0.0, end, rewards) * REWARD_SCALE / most


@kernel
def step_batch(  # type: ignore[no-untyped-def]
    floats, ints, stats, agents, land, ways, limit, heals, rewards, kinds, counters, words, actions, reward, near
):
    """One step of every running battle; `limit` in steps, `kinds` the table of `rules`, `near` scratch space."""
    for b in range(floats.shape[0]):
        reward[b] = 0.0
        if counters[b, at.OUTCOME] == Outcome.RUNNING:
            reward[b] = _step_battle(
                floats[b], ints[b], stats, agents, land, ways, limit, heals, rewards, kinds, counters[b], words[b],
                actions[b], near,
            )  # fmt: skip


@kernel
def run_loops(floats, ints, stats, agents, land, ways, counters, words, loops, near):  # type: ignore[no-untyped-def]
    """Game loops without new orders, step count, reward or end; for clients that count loops, not steps."""
    for b in range(floats.shape[0]):
        for _ in range(loops):
            run_loop(floats[b], ints[b], stats, agents, land, ways, counters[b], words[b], near)


@kernel
def order_unit(floats, ints, stats, b, u, order, target, goal_x, goal_y):  # type: ignore[no-untyped-def]
    give_order(floats[b], ints[b], stats, u, order, target, goal_x, goal_y)
