"""The environment step: SMAC's actions become orders, eight loops run, then reward and outcome as SMAC has them."""

# B battles, U units, N agents, A actions; floats (B, FLOAT_ROWS, U), ints (B, INT_ROWS, U), stats unit-type table

from __future__ import annotations

from s2rm_data.generators.sc2.codes import Action, Order, Outcome
from s2rm_data.generators.sc2.engine import layout as at
from s2rm_data.generators.sc2.engine.compiled import compiled, inner
from s2rm_data.generators.sc2.engine.loop import give_order, run_loop
from s2rm_data.generators.sc2.maps import SIZE
from s2rm_data.generators.sc2.units import GROUND, LOOPS_PER_STEP

# SMAC (smac/env/starcraft2/starcraft2.py): how far a move goes, where its pathing is looked up, how far agents may
# shoot
MOVE_AMOUNT = 2.0
SHOOT_RANGE = 6.0
KILL_REWARD, WIN_REWARD, REWARD_SCALE = 10.0, 200.0, 20.0


@inner
def _obey(floats, ints, stats, agents, u, action):  # type: ignore[no-untyped-def]
    """Turn an agent's action into its order; numbers that name nothing are ignored."""
    if action == Action.STOP:
        give_order(floats, ints, stats, u, Order.IDLE, -1, floats[at.X, u], floats[at.Y, u])
    elif Action.NORTH <= action <= Action.WEST:
        dx = MOVE_AMOUNT * ((action == Action.EAST) - (action == Action.WEST))
        dy = MOVE_AMOUNT * ((action == Action.NORTH) - (action == Action.SOUTH))
        give_order(floats, ints, stats, u, Order.MOVE, -1, floats[at.X, u] + dx, floats[at.Y, u] + dy)
    elif action >= Action.ATTACK:
        x, y, whom = floats[at.X, u], floats[at.Y, u], action - Action.ATTACK
        if stats[ints[at.KIND, u], at.HEAL_RATE] > 0.0:
            if whom < agents:
                give_order(floats, ints, stats, u, Order.HEAL, whom, x, y)
        elif agents + whom < ints.shape[1]:
            give_order(floats, ints, stats, u, Order.ATTACK, agents + whom, x, y)


@inner
def _side_stands(floats, ints, stats, first, stop):  # type: ignore[no-untyped-def]
    """Whether a unit that can fight is left; healers alone have lost, as in SMAC."""
    stands = False
    for u in range(first, stop):
        stands = stands or (floats[at.HEALTH, u] > 0.0 and stats[ints[at.KIND, u], at.IS_FIGHTER] > 0.0)
    return stands


@inner
def _step_battle(floats, ints, stats, agents, land, ways, limits, counters, words, actions, near):  # type: ignore[no-untyped-def]
    """One step of one battle; returns SMAC's reward (reward_only_positive, scaled so that a whole battle brings 20)."""
    units = ints.shape[1]
    points, standing = 0.0, 0
    for u in range(units):
        floats[at.DEALT, u] = floats[at.TAKEN, u] = floats[at.RESTORED, u] = floats[at.SPENT, u] = 0.0
        if u >= agents:
            points += floats[at.HEALTH, u] + floats[at.SHIELD, u]
            standing += floats[at.HEALTH, u] > 0.0
    for u in range(agents):
        if actions[u] != Action.NO_OP:
            _obey(floats, ints, stats, agents, u, actions[u])
    for _ in range(LOOPS_PER_STEP):
        run_loop(floats, ints, stats, agents, land, ways, counters, words, near)
    counters[at.STEPS] += 1
    for u in range(agents, units):
        points -= floats[at.HEALTH, u] + floats[at.SHIELD, u]
        standing -= floats[at.HEALTH, u] > 0.0
    reward = abs(points + KILL_REWARD * standing)  # SMAC takes the absolute value: regenerated shields count as well
    ours, theirs = _side_stands(floats, ints, stats, 0, agents), _side_stands(floats, ints, stats, agents, units)
    if ours and not theirs:
        counters[at.OUTCOME] = Outcome.WIN
        reward += WIN_REWARD
    elif theirs and not ours:
        counters[at.OUTCOME] = Outcome.LOSS
    elif not ours and not theirs:
        counters[at.OUTCOME] = Outcome.DRAW
    elif counters[at.STEPS] >= limits[0]:
        counters[at.OUTCOME] = Outcome.LIMIT
    return reward * REWARD_SCALE / limits[1]


@compiled
def step_batch(floats, ints, stats, agents, land, ways, limits, counters, words, actions, reward, near):  # type: ignore[no-untyped-def]
    """One step of every battle that is not over; the others stay as they are. `near` is scratch space (layout.py)."""
    for b in range(floats.shape[0]):
        reward[b] = 0.0
        if counters[b, at.OUTCOME] == Outcome.RUNNING:
            battle = (floats[b], ints[b], stats, agents, land, ways, limits, counters[b], words[b], actions[b], near)
            reward[b] = _step_battle(*battle)


@compiled
def run_loops(floats, ints, stats, agents, land, ways, counters, words, loops, near):  # type: ignore[no-untyped-def]
    """Game loops without new orders, step count, reward or end; for clients that count loops, not steps."""
    for b in range(floats.shape[0]):
        for _ in range(loops):
            run_loop(floats[b], ints[b], stats, agents, land, ways, counters[b], words[b], near)


@compiled
def order_unit(floats, ints, stats, b, u, order, target, goal_x, goal_y):  # type: ignore[no-untyped-def]
    give_order(floats[b], ints[b], stats, u, order, target, goal_x, goal_y)


@inner
def _is_pathing_cell(land, x, y):  # type: ignore[no-untyped-def]
    """SMAC's can_move: it rounds toward zero, so up to 1 beyond the west and south edges is the edge's cell."""
    cell_x, cell_y = int(x + SIZE / 2), int(y + SIZE / 2)
    return 0 <= cell_x < SIZE and 0 <= cell_y < SIZE and land[GROUND, cell_x, cell_y]


@compiled
def available_batch(floats, ints, stats, agents, land, available):  # type: ignore[no-untyped-def]
    """SMAC's availability masks into (B, N, A)."""
    available[:] = False
    half = MOVE_AMOUNT / 2
    for b in range(floats.shape[0]):
        for u in range(agents):
            if floats[b, at.HEALTH, u] <= 0.0:
                available[b, u, Action.NO_OP] = True
                continue
            x, y = floats[b, at.X, u], floats[b, at.Y, u]
            available[b, u, Action.STOP] = True
            available[b, u, Action.NORTH] = _is_pathing_cell(land, x, y + half)
            available[b, u, Action.SOUTH] = _is_pathing_cell(land, x, y - half)
            available[b, u, Action.EAST] = _is_pathing_cell(land, x + half, y)
            available[b, u, Action.WEST] = _is_pathing_cell(land, x - half, y)
            heals = stats[ints[b, at.KIND, u], at.HEAL_RATE] > 0.0
            first, stop = (0, agents) if heals else (agents, floats.shape[2])
            for v in range(first, stop):
                if floats[b, at.HEALTH, v] <= 0.0 or (heals and stats[ints[b, at.KIND, v], at.HEAL_RATE] > 0.0):
                    continue
                dx, dy = floats[b, at.X, v] - x, floats[b, at.Y, v] - y
                available[b, u, Action.ATTACK + v - first] = dx * dx + dy * dy <= SHOOT_RANGE * SHOOT_RANGE
