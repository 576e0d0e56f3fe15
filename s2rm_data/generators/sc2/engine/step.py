"""The environment step: SMAC's actions become orders, eight loops run, then reward and outcome as SMAC has them."""

# B battles, U units, N agents, A actions; f (B, FLOAT_ROWS, U), i (B, INT_ROWS, U), t table, n agents

from __future__ import annotations

from s2rm_data.generators.sc2.engine.compiled import compiled, inner
from s2rm_data.generators.sc2.engine.layout import (
    ATTACK_UNIT,
    DEALT,
    DRAW,
    HEAL_RATE,
    HEAL_UNIT,
    HEALTH,
    IDLE,
    IS_FIGHTER,
    KIND,
    LIMIT,
    LOSS,
    MOVE,
    RESTORED,
    RUNNING,
    SHIELD,
    SPENT,
    TAKEN,
    WIN,
    X,
    Y,
)
from s2rm_data.generators.sc2.engine.loop import give_order, run_loop
from s2rm_data.generators.sc2.maps import SIZE
from s2rm_data.generators.sc2.snapshot import ATTACK, EAST, NO_OP, NORTH, SOUTH, STOP, WEST
from s2rm_data.generators.sc2.units import GROUND, LOOPS_PER_STEP

# SMAC (smac/env/starcraft2/starcraft2.py): how far a move goes, where its pathing is looked up, how far agents may
# shoot
MOVE_AMOUNT = 2.0
SHOOT_RANGE = 6.0
KILL_REWARD, WIN_REWARD, REWARD_SCALE = 10.0, 200.0, 20.0

# Columns of a battle's integers
STEPS, LOOPS, QUEUED, OUTCOME, COUNTERS = range(5)


@inner
def _obey(f, i, t, n, u, action):  # type: ignore[no-untyped-def]
    """Turn an agent's action into its order; numbers that name nothing are ignored."""
    if action == STOP:
        give_order(f, i, t, u, IDLE, -1, f[X, u], f[Y, u])
    elif NORTH <= action <= WEST:
        dx = MOVE_AMOUNT * ((action == EAST) - (action == WEST))
        dy = MOVE_AMOUNT * ((action == NORTH) - (action == SOUTH))
        give_order(f, i, t, u, MOVE, -1, f[X, u] + dx, f[Y, u] + dy)
    elif action >= ATTACK:
        if t[i[KIND, u], HEAL_RATE] > 0.0:
            if action - ATTACK < n:
                give_order(f, i, t, u, HEAL_UNIT, action - ATTACK, f[X, u], f[Y, u])
        elif n + action - ATTACK < i.shape[1]:
            give_order(f, i, t, u, ATTACK_UNIT, n + action - ATTACK, f[X, u], f[Y, u])


@inner
def _side_stands(f, i, t, first, stop):  # type: ignore[no-untyped-def]
    """Whether a unit that can fight is left; healers alone have lost, as in SMAC."""
    stands = False
    for u in range(first, stop):
        stands = stands or (f[HEALTH, u] > 0.0 and t[i[KIND, u], IS_FIGHTER] > 0.0)
    return stands


@inner
def _step_battle(f, i, t, n, land, ways, limits, counters, words, actions, near):  # type: ignore[no-untyped-def]
    """One step of one battle; returns SMAC's reward (reward_only_positive, scaled so that a whole battle brings 20)."""
    units = i.shape[1]
    points, standing = 0.0, 0
    for u in range(units):
        f[DEALT, u] = f[TAKEN, u] = f[RESTORED, u] = f[SPENT, u] = 0.0
        if u >= n:
            points += f[HEALTH, u] + f[SHIELD, u]
            standing += f[HEALTH, u] > 0.0
    for u in range(n):
        if actions[u] != NO_OP:
            _obey(f, i, t, n, u, actions[u])
    for _ in range(LOOPS_PER_STEP):
        counters[QUEUED] = run_loop(f, i, t, n, land, ways, counters[QUEUED], counters[LOOPS], words, near)
        counters[LOOPS] += 1
    counters[STEPS] += 1
    for u in range(n, units):
        points -= f[HEALTH, u] + f[SHIELD, u]
        standing -= f[HEALTH, u] > 0.0
    reward = abs(points + KILL_REWARD * standing)  # SMAC takes the absolute value: regenerated shields count as well
    ours, theirs = _side_stands(f, i, t, 0, n), _side_stands(f, i, t, n, units)
    if ours and not theirs:
        counters[OUTCOME] = WIN
        reward += WIN_REWARD
    elif theirs and not ours:
        counters[OUTCOME] = LOSS
    elif not ours and not theirs:
        counters[OUTCOME] = DRAW
    elif counters[STEPS] >= limits[0]:
        counters[OUTCOME] = LIMIT
    return reward * REWARD_SCALE / limits[1]


@compiled
def step_batch(f, i, t, n, land, ways, limits, counters, words, actions, reward, near):  # type: ignore[no-untyped-def]
    """One step of every battle that is not over; the others stay as they are. `near` is scratch space, (2 U,)."""
    for b in range(f.shape[0]):
        reward[b] = 0.0
        if counters[b, OUTCOME] == RUNNING:
            reward[b] = _step_battle(f[b], i[b], t, n, land, ways, limits, counters[b], words[b], actions[b], near)


@compiled
def run_loops(f, i, t, n, land, ways, counters, words, loops, near):  # type: ignore[no-untyped-def]
    """Game loops without new orders, step count, reward or end; for clients that count loops, not steps."""
    for b in range(f.shape[0]):
        for _ in range(loops):
            queued = counters[b, QUEUED]
            counters[b, QUEUED] = run_loop(f[b], i[b], t, n, land, ways, queued, counters[b, LOOPS], words[b], near)
            counters[b, LOOPS] += 1


@compiled
def order_unit(f, i, t, b, u, order, target, goal_x, goal_y):  # type: ignore[no-untyped-def]
    give_order(f[b], i[b], t, u, order, target, goal_x, goal_y)


@inner
def _is_pathing_cell(land, x, y):  # type: ignore[no-untyped-def]
    """SMAC's can_move: it rounds toward zero, so up to 1 beyond the west and south edges is the edge's cell."""
    cell_x, cell_y = int(x + SIZE / 2), int(y + SIZE / 2)
    return 0 <= cell_x < SIZE and 0 <= cell_y < SIZE and land[GROUND, cell_x, cell_y]


@compiled
def available_batch(f, i, t, n, land, available):  # type: ignore[no-untyped-def]
    """SMAC's availability masks into (B, N, A)."""
    available[:] = False
    half = MOVE_AMOUNT / 2
    for b in range(f.shape[0]):
        for u in range(n):
            if f[b, HEALTH, u] <= 0.0:
                available[b, u, NO_OP] = True
                continue
            x, y = f[b, X, u], f[b, Y, u]
            available[b, u, STOP] = True
            available[b, u, NORTH] = _is_pathing_cell(land, x, y + half)
            available[b, u, SOUTH] = _is_pathing_cell(land, x, y - half)
            available[b, u, EAST] = _is_pathing_cell(land, x + half, y)
            available[b, u, WEST] = _is_pathing_cell(land, x - half, y)
            heals = t[i[b, KIND, u], HEAL_RATE] > 0.0
            first, stop = (0, n) if heals else (n, f.shape[2])
            for v in range(first, stop):
                if f[b, HEALTH, v] <= 0.0 or (heals and t[i[b, KIND, v], HEAL_RATE] > 0.0):
                    continue
                dx, dy = f[b, X, v] - x, f[b, Y, v] - y
                available[b, u, ATTACK + v - first] = dx * dx + dy * dy <= SHOOT_RANGE * SHOOT_RANGE
