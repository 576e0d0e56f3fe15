"""The field as the API shows it, in the fixed slots of a snapshot: agents in SMAC's order, enemies as observed.

A live SMAC environment is read as any other back end is: its units as snapshots, its steps as an episode's record."""

# U units of both sides, N agents = the first units, A actions; one battle: B = 1

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft import rollout, rules
from s2rm_data.starcraft.api.protocol import OPPONENT, PLAYER, SYNONYMS, TYPE_OF_STANDARD, types_by_id
from s2rm_data.starcraft.codes import STATS, Ability, Action, Order, Snapshot
from s2rm_data.starcraft.engine import Orders
from s2rm_data.starcraft.rollout import Record
from s2rm_data.starcraft.scenarios import Scenario
from s2rm_data.starcraft.units import SMAC_RANK


@dataclass(frozen=True, kw_only=True)
class Slots:
    tags: tuple[int, ...]  # (U,)
    unit_type: NDArray[np.uint8]  # (U,)
    agents: int
    slot_of: dict[int, int]

    @staticmethod
    def assign(types: Mapping[int, int], agents: Iterable[Any], enemies: Iterable[Any]) -> Slots:
        """`types`: of agents, by the API's id; the enemies' order is kept."""
        ours = [(types[unit.unit_type], unit) for unit in agents]
        ours.sort(key=lambda unit: (SMAC_RANK[unit[0]], unit[1].pos.x, unit[1].pos.y))
        everybody = [*ours, *((TYPE_OF_STANDARD[unit.unit_type], unit) for unit in enemies)]
        tags = tuple(unit.tag for _, unit in everybody)
        return Slots(
            tags=tags,
            unit_type=np.array([number for number, _ in everybody], dtype=np.uint8),
            agents=len(ours),
            slot_of={tag: slot for slot, tag in enumerate(tags)},
        )


def armies(observation: Any) -> tuple[list[Any], list[Any]]:
    """The living units of both players, in the order in which the game lists them."""
    units = observation.observation.raw_data.units
    return [unit for unit in units if unit.owner == PLAYER], [unit for unit in units if unit.owner == OPPONENT]


def snapshot_of(units: Iterable[Any], slots: Slots) -> Snapshot:
    """API units in their slots; a unit that is not among them is dead."""
    values = np.zeros((len(slots.tags), 6), dtype=np.float32)
    for unit in units:
        slot = slots.slot_of.get(unit.tag)
        if slot is not None:
            values[slot] = unit.pos.x, unit.pos.y, unit.health, unit.shield, unit.energy, unit.weapon_cooldown
    stats = {name: np.ascontiguousarray(values[None, :, k]) for k, name in enumerate(STATS.values(), start=2)}
    position = np.ascontiguousarray(values[None, :, :2])
    return Snapshot(agents=slots.agents, unit_type=slots.unit_type, position=position, **stats)


def orders_of(units: Iterable[Any], slots: Slots, scenario: Scenario, goal: tuple[float, float]) -> Orders:
    """What units are ordered to do. The game does not tell it of the enemies: these have their standing order."""
    kind = np.zeros((1, len(slots.tags)), dtype=np.int8)
    target = np.full((1, len(slots.tags)), rollout.NOBODY, dtype=np.int16)
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
        target[0, slot] = slots.slot_of.get(aimed, rollout.NOBODY)
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


def available_actions(snapshot: Snapshot, pathing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(1, N, A) SMAC's mask, from what the API shows."""
    N, kinds = snapshot.agents, snapshot.unit_type[None]
    stats = rules.table()
    heals = bool(stats[kinds[0, :N], rules.HEALS].any())
    masks = np.zeros((1, N, rules.action_count(N, kinds.shape[1] - N, heals=heals)), dtype=np.bool_)
    rules.write_masks(
        snapshot.position, snapshot.health, kinds, stats, pathing, 0.0, rules.MOVE_AMOUNT, Action.ATTACK,
        np.ones((0, N, 2)), 0.0, masks,
    )  # fmt: skip
    return masks


class LiveEpisode:
    """The episode that a `smac.env.StarCraft2Env` has just been reset to, filled in step by step."""

    def __init__(self, env: Any, scenario: Scenario, steps: int) -> None:
        self._env, self._scenario, self._steps = env, scenario, steps
        self._slots = _slots(env, scenario)
        self._snapshot = snapshot_of(self._units(), self._slots)
        self._record = rollout.blank_record(self._slots.unit_type[None], self._slots.agents, env.n_actions, steps)
        self.length = 0

    def _units(self) -> list[Any]:
        everybody = [*self._env.agents.values(), *self._env.enemies.values()]
        return [unit for unit in everybody if unit.health > 0]  # SMAC keeps the dead, with health 0

    def before_step(self) -> None:
        """Record what the agents see; beyond the last recorded step nothing."""
        if self.length < self._steps:
            orders = orders_of(self._units(), self._slots, self._scenario, self._scenario.order_segment[0])
            mask = np.array(self._env.get_avail_actions(), dtype=np.bool_)[None]
            rollout.record_sight(self._record, self.length, self._snapshot, mask, orders)

    def after_step(self, actions: Sequence[int], reward: float) -> None:
        self._snapshot = snapshot_of(self._units(), self._slots)
        if self.length < self._steps:
            self._record["action"][0, self.length] = np.asarray(actions, dtype=np.int16)
            self._record["reward"][0, self.length] = reward
            self.length += 1
            self._outcome = rules.standing(
                self._snapshot,
                heals=self._scenario.has_healers,
                at_limit=self._env._episode_steps >= self._env.episode_limit,
            )

    def finish(self, seed: int) -> Record:
        """All arrays of a split but the images, each (1, ...)."""
        self._record |= {
            "length": np.array([self.length], dtype=np.int16),
            "outcome": np.array([self._outcome], dtype=np.uint8),
            "policy": np.zeros(1, dtype=np.uint8),
            "seed": np.array([seed], dtype=np.uint64),
        }
        rollout.record_agent_orders(self._record)
        rollout.blank_after_end(self._record)
        return self._record


def _slots(env: Any, scenario: Scenario) -> Slots:
    agents, enemies = list(env.agents.values()), list(env.enemies.values())
    if (len(agents), len(enemies)) != (scenario.agent_count, scenario.enemy_count):
        raise UsageError(
            f"the environment has {len(agents)} agents and {len(enemies)} enemies, scenario {scenario.name!r} has "
            f"{scenario.agent_count} and {scenario.enemy_count}; name the right one with scenario="
        )
    types = types_by_id((unit.unit_type for unit in agents), scenario.agent_types)
    unknown = sorted({unit.unit_type for unit in enemies} - set(TYPE_OF_STANDARD))
    if not types or unknown:
        raise UsageError(
            f"the units of the environment are not those of scenario {scenario.name!r} (the agents' ids: "
            f"{sorted({unit.unit_type for unit in agents})}, unknown ids of enemies: {unknown}); "
            "name the right one with scenario="
        )
    return Slots.assign(types, agents, enemies)
