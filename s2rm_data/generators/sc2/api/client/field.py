"""The field as the API shows it, in the fixed slots of a snapshot: agents in SMAC's order, enemies as observed."""

# U units of both sides, N agents = the first units, E enemies, A actions; one battle: B = 1

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.generators.sc2.api.catalogue import OPPONENT, PLAYER, SYNONYMS
from s2rm_data.generators.sc2.codes import Ability, Action, Order, Outcome
from s2rm_data.generators.sc2.engine import Orders
from s2rm_data.generators.sc2.engine.step import MOVE_AMOUNT, SHOOT_RANGE
from s2rm_data.generators.sc2.scenarios import Scenario
from s2rm_data.generators.sc2.snapshot import Snapshot
from s2rm_data.generators.sc2.units import SMAC_RANK, UNIT_TYPES

_NOBODY = -1


@dataclass(frozen=True, kw_only=True)
class Slots:
    """Who stands in which slot, for a whole episode."""

    tags: tuple[int, ...]  # (U,)
    unit_type: NDArray[np.uint8]  # (U,)
    agents: int
    slot_of: dict[int, int]

    @staticmethod
    def assign(agents: Sequence[tuple[int, Any]], enemies: Sequence[tuple[int, Any]]) -> Slots:
        """(unit type, API unit) of both sides; the enemies' order is kept."""
        ours = sorted(agents, key=lambda unit: (SMAC_RANK[unit[0]], unit[1].pos.x, unit[1].pos.y))
        everybody = [*ours, *enemies]
        tags = tuple(unit.tag for _, unit in everybody)
        return Slots(
            tags=tags,
            unit_type=np.array([number for number, _ in everybody], dtype=np.uint8),
            agents=len(ours),
            slot_of={tag: slot for slot, tag in enumerate(tags)},
        )


def army(observation: Any, owner: int) -> list[Any]:
    """The living units of a player, in the order in which the game lists them."""
    return [unit for unit in observation.observation.raw_data.units if unit.owner == owner]


def armies(observation: Any) -> tuple[list[Any], list[Any]]:
    return army(observation, PLAYER), army(observation, OPPONENT)


def snapshot_of(units: Iterable[Any], slots: Slots) -> Snapshot:
    """API units in their slots; a unit that is not among them is dead."""
    values = np.zeros((len(slots.tags), 6), dtype=np.float32)
    for unit in units:
        slot = slots.slot_of.get(unit.tag)
        if slot is not None:
            values[slot] = unit.pos.x, unit.pos.y, unit.health, unit.shield, unit.energy, unit.weapon_cooldown
    columns = [np.ascontiguousarray(values[None, :, k]) for k in range(2, 6)]
    return Snapshot(
        agents=slots.agents,
        unit_type=slots.unit_type,
        position=np.ascontiguousarray(values[None, :, :2]),
        health=columns[0],
        shield=columns[1],
        energy=columns[2],
        cooldown_loops=columns[3],
    )


def orders_of(units: Iterable[Any], slots: Slots, scenario: Scenario, goal: tuple[float, float]) -> Orders:
    """What units are ordered to do. The game does not tell it of the enemies: these have their standing order."""
    kind = np.zeros((1, len(slots.tags)), dtype=np.int8)
    target = np.full((1, len(slots.tags)), _NOBODY, dtype=np.int16)
    point = np.zeros((1, len(slots.tags), 2), dtype=np.float32)
    for unit in units:
        slot = slots.slot_of.get(unit.tag)
        if slot is None:
            continue
        if unit.owner == OPPONENT and not unit.HasField("weapon_cooldown"):
            kind[0, slot], point[0, slot] = scenario.order, goal
            continue
        aimed = unit.engaged_target_tag
        if unit.orders:
            order = unit.orders[0]
            hunts = scenario.order == Order.HUNT and unit.owner == OPPONENT
            kind[0, slot] = Order.HUNT if hunts else _kind(order)
            point[0, slot] = order.target_world_space_pos.x, order.target_world_space_pos.y
            aimed = aimed or order.target_unit_tag
        target[0, slot] = slots.slot_of.get(aimed, _NOBODY)
    return Orders(kind=kind, target=target, point=point)


def _kind(order: Any) -> int:
    ability = SYNONYMS.get(order.ability_id, order.ability_id)
    if ability == Ability.ATTACK:
        return Order.ATTACK if order.HasField("target_unit_tag") else Order.ATTACK_MOVE
    return {Ability.MOVE: Order.MOVE, Ability.HEAL: Order.HEAL}.get(ability, Order.IDLE)


def read_pathing(game_info: Any) -> NDArray[np.bool_]:
    """(W, H) which cells ground units can stand on, first index x."""
    image = game_info.start_raw.pathing_grid
    rows = np.frombuffer(image.data, dtype=np.uint8).reshape(image.size.y, -1)
    if image.bits_per_pixel == 1:
        return np.unpackbits(rows, axis=1)[:, : image.size.x].T.astype(np.bool_)
    return (rows == 0)[::-1].T  # old games: a byte a cell, 0 = walkable, the first row is the northern one


def action_count(slots: Slots) -> int:
    agents, enemies = slots.agents, len(slots.tags) - slots.agents
    heals = any(UNIT_TYPES[int(number)].is_healer for number in slots.unit_type[:agents])
    return Action.ATTACK + (max(agents, enemies) if heals else enemies)


def available_actions(snapshot: Snapshot, pathing: NDArray[np.bool_], actions: int) -> NDArray[np.bool_]:
    """(1, N, A) SMAC's mask, from what the API shows."""
    N, U = snapshot.agents, len(snapshot.unit_type)
    position, alive = snapshot.position[0].astype(np.float64), snapshot.health[0] > 0
    healer = np.array([UNIT_TYPES[int(number)].is_healer for number in snapshot.unit_type])
    mask = np.zeros((1, N, actions), dtype=np.bool_)
    mask[0, :, Action.NO_OP] = ~alive[:N]
    mask[0, :, Action.STOP] = alive[:N]
    for action, dx, dy in ((Action.NORTH, 0, 1), (Action.SOUTH, 0, -1), (Action.EAST, 1, 0), (Action.WEST, -1, 0)):
        ahead = position[:N] + np.array([dx, dy]) * (MOVE_AMOUNT / 2)
        mask[0, :, action] = alive[:N] & _walkable(pathing, ahead)
    difference = position[None, :, :] - position[:N, None, :]
    near: NDArray[np.bool_] = alive[None, :] & alive[:N, None]
    near = near & ((difference**2).sum(axis=-1) <= SHOOT_RANGE**2)
    shoots, heals = ~healer[:N], healer[:N]
    mask[0, shoots, Action.ATTACK : Action.ATTACK + U - N] = near[shoots, N:]
    if heals.any():
        mask[0, heals, Action.ATTACK : Action.ATTACK + N] = near[heals, :N] & ~healer[None, :N]
    return mask


def outcome_of(snapshot: Snapshot, *, at_limit: bool) -> int:
    """RUNNING while both sides have a unit that can fight; healers alone have lost."""
    fights = np.array([UNIT_TYPES[int(number)].damage > 0 for number in snapshot.unit_type])
    standing = np.logical_and(fights, snapshot.health[0] > 0)
    ours, theirs = bool(standing[: snapshot.agents].any()), bool(standing[snapshot.agents :].any())
    if ours and theirs:
        return Outcome.LIMIT if at_limit else Outcome.RUNNING
    return Outcome.WIN if ours else Outcome.LOSS if theirs else Outcome.DRAW


def _walkable(pathing: NDArray[np.bool_], points: NDArray[np.float64]) -> NDArray[np.bool_]:
    cells = points.astype(np.int64)  # toward zero, as SMAC's int(): west of the edge counts as the first cell
    inside: NDArray[np.bool_] = np.all((cells >= 0) & (cells < pathing.shape), axis=1)
    cells = np.where(inside[:, None], cells, 0)
    return inside & pathing[cells[:, 0], cells[:, 1]]
