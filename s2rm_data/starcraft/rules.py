"""SMAC's rules around a battle: what agents may do, what a step is worth, who has won, what actions are called.

The one place where they are written, for all that plays or tells of battles: the engine and its stored data, `Battle`,
the environments, and both sides of the API. They are those of smac/env/starcraft2/starcraft2.py; where SMACv2 differs,
the variant is an argument: a target's range by unit type, cones of sight (`looking`), rewards that are cut off at 0
(`Rewards.clipped`). Compiled, over arrays of the engine's own numbers (float64) or of snapshots (float32) alike."""

# B battles, U units of both sides (agents first), N agents, A actions, K unit-type numbers (0 unused)

from __future__ import annotations

from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.compiled import inner, kernel
from s2rm_data.starcraft.codes import Action, Outcome, Snapshot
from s2rm_data.starcraft.units import UNIT_TYPES

MOVE_AMOUNT = 2.0  # how far a move goes, map units
SHOOT_RANGE = 6.0  # how far agents may shoot, centre to centre
MIN_ATTACK_RANGE = 2.0  # smacv2's min_attack_range
MOVES: dict[int, tuple[float, float]] = {  # east, north
    Action.NORTH: (0.0, MOVE_AMOUNT),
    Action.SOUTH: (0.0, -MOVE_AMOUNT),
    Action.EAST: (MOVE_AMOUNT, 0.0),
    Action.WEST: (-MOVE_AMOUNT, 0.0),
}
REWARD_SCALE = 20.0  # what a whole battle brings

# columns of the table of unit types
HEALS, FIGHTS, REACH, POINTS, COLUMNS = range(5)
_NAMES = ("no-op", "stop", "move north", "move south", "move east", "move west")
_LEAST_X = 1e-7  # smacv2's EPS


Points = TypeVar("Points", float, NDArray[np.float64])


class Rewards(NamedTuple):
    """What a step is worth, before it is scaled; the names are those of SMAC's arguments without `reward_`."""

    death_value: float = 10.0
    win: float = 200.0
    defeat: float = 0.0
    negative_scale: float = 0.5
    sparse: bool = False
    only_positive: bool = True
    clipped: bool = False  # SMACv2: a step in which enemies regain more than they lose brings nothing


@cache
def table(*, own_ranges: bool = False, least: float = MIN_ATTACK_RANGE) -> NDArray[np.float64]:
    """(K, COLUMNS) by unit type: heals, fights, how far away a target may be, centre to centre (`own_ranges`: smacv2's
    use_unit_ranges, at least `least`), an enemy's points."""
    stats = np.zeros((len(UNIT_TYPES) + 1, COLUMNS))
    for number, unit in UNIT_TYPES.items():
        own = max(unit.heal_range if unit.is_healer else unit.range, least)
        reach = own if own_ranges else SHOOT_RANGE
        stats[number] = unit.is_healer, unit.damage > 0, reach, unit.most_health(enemy=True) + unit.shield
    return stats


def action_count(agents: int, enemies: int, *, heals: bool, attack_at: int = Action.ATTACK) -> int:
    """A: those before the first that names a target, and one for each target a unit of the team may have."""
    return attack_at + (max(agents, enemies) if heals else enemies)


# -- names


def action_name(action: int, agents: int, enemies: int, *, heals: bool, attack_at: int = Action.ATTACK) -> str:
    """`2 (move north)`; `heals`: the agent is a healer."""
    whom, count = ("heal agent", agents) if heals else ("attack enemy", enemies)
    if 0 <= action < Action.ATTACK:
        return f"{action} ({_NAMES[action]})"
    if Action.ATTACK <= action < attack_at:
        return f"{action} (look at {360 * (action - Action.ATTACK) / (attack_at - Action.ATTACK):g} degrees)"
    if attack_at <= action < attack_at + count:
        return f"{action} ({whom} {action - attack_at})"
    return f"{action} (there are 0 to {attack_at + count - 1})"


def refusal(
    agent: int,
    kind: int,
    action: int,
    mask: NDArray[np.bool_],
    agents: int,
    enemies: int,
    attack_at: int = Action.ATTACK,
) -> str:
    unit = UNIT_TYPES[kind]
    sizes = {"agents": agents, "enemies": enemies, "heals": unit.is_healer, "attack_at": attack_at}
    allowed = ", ".join(action_name(int(other), **sizes) for other in np.flatnonzero(mask))  # type: ignore[arg-type]
    wanted = action_name(action, **sizes)  # type: ignore[arg-type]
    return f"agent {agent} ({unit.name}) cannot do action {wanted} now; allowed are {allowed}"


def action_along(dx: float, dy: float) -> Action:
    """The move along the larger difference, as SMAC's heuristic walks."""
    if abs(dx) > abs(dy):
        return Action.EAST if dx > 0 else Action.WEST
    return Action.NORTH if dy > 0 else Action.SOUTH


# -- masks


@inner
def in_cone(dx, dy, look_x, look_y, half_angle):  # type: ignore[no-untyped-def]
    """smacv2's is_position_in_cone, but for the range: whether the slopes of what is at (dx, dy) and of the direction
    of looking differ by less than half the cone's angle. Slopes are taken on the side on which the unit is, so that who
    looks due east or west sees both ways, and who looks aslant also sees a little of the other side. Arctangents, as
    there: units that surround agents stand on a diagonal, which is a cone's very edge, where rounding decides."""
    if dx > 0.0:
        x, look = max(dx, _LEAST_X), max(look_x, _LEAST_X)
    else:
        x, look = min(dx, -_LEAST_X), min(look_x, -_LEAST_X)
    return abs(np.arctan(dy / x) - np.arctan(look_y / look)) < half_angle


@inner
def _can_walk(pathing, x, y):  # type: ignore[no-untyped-def]
    """SMAC's can_move: it rounds toward zero, so up to 1 beyond the west and south edges is the edge's cell."""
    u, v = int(x), int(y)
    return 0 <= u < pathing.shape[0] and 0 <= v < pathing.shape[1] and pathing[u, v]


@kernel
def write_masks(  # type: ignore[no-untyped-def]
    position, health, kinds, stats, pathing, origin, amount, attack_at, looking, half_angle, masks
):
    """Into masks (B, N, A), all False. position (B, U, 2) is relative to the map point (origin, origin); moves go
    `amount` map units; actions from `attack_at` on name targets, and those between the moves and them turn a cone of
    sight: with it, `looking` (B, N, 2) are its directions, and targets must be in it."""
    agents, units, half = masks.shape[1], kinds.shape[1], amount / 2
    conic = attack_at > Action.ATTACK
    for b in range(masks.shape[0]):
        for u in range(agents):
            mask = masks[b, u]
            if health[b, u] <= 0.0:
                mask[Action.NO_OP] = True
                continue
            x, y = np.float64(position[b, u, 0]), np.float64(position[b, u, 1])
            mask[Action.STOP] = True
            mask[Action.NORTH] = _can_walk(pathing, x + origin, y + half + origin)
            mask[Action.SOUTH] = _can_walk(pathing, x + origin, y - half + origin)
            mask[Action.EAST] = _can_walk(pathing, x + half + origin, y + origin)
            mask[Action.WEST] = _can_walk(pathing, x - half + origin, y + origin)
            if conic:
                mask[Action.ATTACK : attack_at] = True  # looking around
            heals, reach = stats[kinds[b, u], HEALS] > 0.0, stats[kinds[b, u], REACH]
            first, stop = (0, agents) if heals else (agents, units)
            for v in range(first, stop):
                if health[b, v] <= 0.0 or (heals and stats[kinds[b, v], HEALS] > 0.0):
                    continue
                dx, dy = np.float64(position[b, v, 0]) - x, np.float64(position[b, v, 1]) - y
                shot = dx * dx + dy * dy <= reach * reach
                if conic and shot:
                    shot = in_cone(dx, dy, looking[b, u, 0], looking[b, u, 1], half_angle)
                mask[attack_at + v - first] = shot


@kernel
def first_illegal(actions, available):  # type: ignore[no-untyped-def]
    """battle * N + agent of the first action (B, N) that a mask (B, N, A) does not allow, -1 if all are allowed."""
    for b in range(actions.shape[0]):
        for u in range(actions.shape[1]):
            action = actions[b, u]
            if action < 0 or action >= available.shape[2] or not available[b, u, action]:
                return b * actions.shape[1] + u
    return -1


# -- rewards and outcomes


def max_reward(points: Points, enemies: int, rewards: Rewards) -> Points:
    """What a win without regeneration adds up to before scaling: `points` are the enemies' health and shields."""
    return points + enemies * rewards.death_value + rewards.win


@inner
def add_points(points, sign, health, shield, first, stop, each):  # type: ignore[no-untyped-def]
    """Health and shields of the living added to or taken off `points`, with `each` for every one of them."""
    for u in range(first, stop):
        if health[u] > 0.0:
            points += sign * (np.float64(health[u]) + np.float64(shield[u]) + each)
    return points


@inner
def count_living(health, first, stop):  # type: ignore[no-untyped-def]
    living = 0
    for u in range(first, stop):
        living += health[u] > 0.0
    return living


@inner
def count_fighters(health, kinds, stats, first, stop):  # type: ignore[no-untyped-def]
    fighters = 0
    for u in range(first, stop):
        fighters += health[u] > 0.0 and stats[kinds[u], FIGHTS] > 0.0
    return fighters


@inner
def end_of(ours, theirs, heals, at_limit):  # type: ignore[no-untyped-def]
    """How a battle stands in which so many of either side that can fight are left. Where there are healers (`heals`), a
    side of healers alone has lost, and of two such sides the agents', whom SMAC asks first."""
    if ours == 0:
        return Outcome.DRAW if theirs == 0 and not heals else Outcome.LOSS
    if theirs == 0:
        return Outcome.WIN
    return Outcome.LIMIT if at_limit else Outcome.RUNNING


@inner
def worth(gained, killed, lost, fallen, end, rewards):  # type: ignore[no-untyped-def]
    """SMAC's reward_battle: health and shields that enemies lost and the value of their deaths, the same of agents, and
    how the battle then stands. Where rewards are positive only, SMAC takes the absolute value, so that shields that
    regenerate count as well."""
    if rewards.sparse:
        return 1.0 if end == Outcome.WIN else -1.0 if end == Outcome.LOSS else 0.0
    if not rewards.only_positive:
        total = gained + (killed - fallen * rewards.negative_scale) - lost * rewards.negative_scale
    elif rewards.clipped:
        total = max(gained + killed, 0.0)
    else:
        total = abs(gained + killed)
    if end == Outcome.WIN:
        total += rewards.win
    elif end == Outcome.LOSS:
        total += rewards.defeat
    return total


@kernel
def settle(  # type: ignore[no-untyped-def]
    before_health, before_shield, health, shield, kinds, stats, agents, rewards, heals, steps, limit, divisors, reward,
    outcome, dead,
):  # fmt: skip
    """Reward (B,), divided by `divisors` (B,), outcome (B,) and counts of the dead (B, 2) of a step between two
    snapshots, each array (B, U); `steps` (B,) were played, this one included."""
    units = health.shape[1]
    for b in range(health.shape[0]):
        lost = add_points(0.0, 1.0, before_health[b], before_shield[b], 0, agents, 0.0)
        lost = add_points(lost, -1.0, health[b], shield[b], 0, agents, 0.0)
        gained = add_points(0.0, 1.0, before_health[b], before_shield[b], agents, units, 0.0)
        gained = add_points(gained, -1.0, health[b], shield[b], agents, units, 0.0)
        ours, theirs = count_living(health[b], 0, agents), count_living(health[b], agents, units)
        fallen = rewards.death_value * (count_living(before_health[b], 0, agents) - ours)
        killed = rewards.death_value * (count_living(before_health[b], agents, units) - theirs)
        dead[b, 0], dead[b, 1] = agents - ours, units - agents - theirs
        ours = count_fighters(health[b], kinds[b], stats, 0, agents)
        theirs = count_fighters(health[b], kinds[b], stats, agents, units)
        outcome[b] = end_of(ours, theirs, heals, steps[b] >= limit)
        reward[b] = worth(gained, killed, lost, fallen, outcome[b], rewards) / divisors[b]


@kernel
def _judge(health, kinds, stats, agents, heals):  # type: ignore[no-untyped-def]
    ours = count_fighters(health, kinds, stats, 0, agents)
    return end_of(ours, count_fighters(health, kinds, stats, agents, len(health)), heals, False)


def standing(seen: Snapshot, *, heals: bool, at_limit: bool = False) -> Outcome:
    kinds = np.ascontiguousarray(seen.unit_type, dtype=np.uint8).reshape(-1)
    end = Outcome(_judge(seen.health[0], kinds, table(), seen.agents, heals))
    return Outcome.LIMIT if at_limit and end == Outcome.RUNNING else end
