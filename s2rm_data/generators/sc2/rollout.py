"""Roll-outs: a batch of episodes played by a team of policies against a back end, recorded step by step.

Time: record t holds what everybody could see before step t, the actions chosen on that sight, and the reward that step
t then gave. An episode ends when one army is dead, at SMAC's limit for the map, or after the last step; `length` counts
the steps that were played. Everything recorded after them is blank (0 or False; -1 for targets). The state after the
last action is not recorded: `outcome` tells it. The dead keep their place in the arrays, blank.
"""

# B battles, T steps, U units of both sides, N agents = the first units, A actions

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from s2rm_data.generators.sc2.codes import Action, Order
from s2rm_data.generators.sc2.maps import SIZE
from s2rm_data.generators.sc2.scenarios import Scenario
from s2rm_data.generators.sc2.snapshot import Snapshot
from s2rm_data.generators.sc2.team import SMAC_SIGHT, UNIT_SIGHT, Team
from s2rm_data.generators.sc2.units import UNIT_TYPES

NOBODY = -1

_HEALER = np.array([False, *(unit.is_healer for unit in UNIT_TYPES.values())])

Record = dict[str, NDArray[Any]]


class Orders(Protocol):
    """(B, U) codes.Order, (B, U) slot each unit aims at or -1, (B, U, 2) map point an attack-move leads to."""

    @property
    def kind(self) -> NDArray[np.int8]: ...
    @property
    def target(self) -> NDArray[np.int16]: ...
    @property
    def point(self) -> NDArray[np.float32]: ...


class Battles(Protocol):
    """What a back end does for a batch of battles of one scenario that run side by side; `engine.Engine` is one."""

    def snapshot(self) -> Snapshot: ...

    def available(self) -> NDArray[np.bool_]:
        """(B, N, A) SMAC's mask."""

    def orders(self) -> Orders: ...

    def step(self, actions: NDArray[np.int16]) -> None:
        """Plays one step with actions (B, N). A battle that is over stays as it is."""

    @property
    def reward(self) -> NDArray[np.float64]:
        """(B,) of the last step."""

    @property
    def done(self) -> NDArray[np.bool_]:
        """(B,) which battles are over."""

    @property
    def outcome(self) -> NDArray[np.int64]:
        """(B,) codes.Outcome."""


def starts(scenario: Scenario, snapshot: Snapshot) -> NDArray[np.float64]:
    """(B, 2, 2) where the enemies and where the agents start, map coordinates: the mean of their spawn points.

    In a generated scenario nobody knows where the enemies start: the mirror image of the agents' mean is as good a
    guess as any.
    """
    B, N = len(snapshot.health), snapshot.agents
    if scenario.generated is not None:
        ours = snapshot.position[:, :N].astype(np.float64).mean(axis=1)
        return np.stack([np.array([SIZE, 0.0]) + ours * [-1.0, 1.0], ours], axis=1)
    armies = (scenario.enemies, scenario.agents)
    means = [np.average([s.spawn for s in army], axis=0, weights=[s.count for s in army]) for army in armies]
    return np.broadcast_to(np.array(means), (B, 2, 2)).copy()


def rollout(
    battles: Battles, scenario: Scenario, *, policy: str, epsilon: float, seeds: NDArray[np.uint64], steps: int
) -> Record:
    """Plays fresh battles to their end, or for `steps` steps; all arrays of a split but the images, each (B, ...)."""
    snapshot = battles.snapshot()
    team = Team(
        policy,
        epsilon=epsilon,
        seeds=seeds,
        agents=snapshot.agents,
        starts=starts(scenario, snapshot),
        sight=UNIT_SIGHT if scenario.generated else SMAC_SIGHT,
    )
    running = np.ones(len(seeds), dtype=np.bool_)
    length = np.zeros(len(seeds), dtype=np.int16)
    record = blank_record(snapshot, battles.available().shape[2], steps)
    for step in range(steps):
        available = battles.available()
        record_sight(record, step, snapshot, available, battles.orders())
        actions = team.act(snapshot, available, step=step, running=running)
        record["action"][:, step] = actions
        battles.step(actions)
        record["reward"][:, step] = battles.reward
        length += running
        running = ~battles.done
        snapshot = battles.snapshot()
        if not running.any():
            break
    record_agent_orders(record)
    record |= {"length": length, "outcome": battles.outcome.astype(np.uint8), "policy": team.policy, "seed": seeds}
    blank_after_end(record)
    return record


def blank_record(snapshot: Snapshot, actions: int, steps: int) -> Record:
    B, U = snapshot.health.shape
    N, T = snapshot.agents, steps
    per_unit = {name: np.zeros((B, T, U), np.float32) for name in _STATS}
    return {
        "unit_type": np.broadcast_to(snapshot.unit_type, (B, U)).copy(),
        "unit_position": np.zeros((B, T, U, 2), np.float32),
        **per_unit,
        "unit_order": np.zeros((B, T, U), np.uint8),
        "unit_target": np.full((B, T, U), NOBODY, np.int16),
        "unit_goal": np.zeros((B, T, U, 2), np.float32),
        "action": np.zeros((B, T, N), np.int16),
        "available": np.zeros((B, T, N, actions), np.bool_),
        "reward": np.zeros((B, T), np.float32),
    }


_STATS = {
    "unit_health": "health",
    "unit_shield": "shield",
    "unit_energy": "energy",
    "unit_cooldown": "cooldown_loops",
}


_BLANK = ("unit_position", "unit_shield", "unit_energy", "unit_cooldown", "unit_order", "unit_goal")  # of the dead


def record_sight(
    record: Record,
    step: int,
    snapshot: Snapshot,
    available: NDArray[np.bool_],
    orders: Orders,
) -> None:
    record["unit_position"][:, step] = snapshot.position
    for name, field in _STATS.items():
        record[name][:, step] = getattr(snapshot, field)
    record["unit_order"][:, step], record["unit_target"][:, step] = orders.kind, orders.target
    record["unit_goal"][:, step] = np.where((orders.kind == Order.ATTACK_MOVE)[..., None], orders.point, 0)
    record["available"][:, step] = available


def record_agent_orders(record: Record) -> None:
    """What agents do in step t is their action t, not the order they were still under when they chose it."""
    action = record["action"].astype(np.int64)
    N = action.shape[2]
    healer = _HEALER[record["unit_type"][:, None, :N]]
    aimed = np.where(healer, Order.HEAL, Order.ATTACK)
    walks = np.where(action >= Action.NORTH, Order.MOVE, Order.IDLE)
    record["unit_order"][:, :, :N] = np.where(action >= Action.ATTACK, aimed, walks)
    slot = action - Action.ATTACK + np.where(healer, 0, N)
    record["unit_target"][:, :, :N] = np.where(action >= Action.ATTACK, slot, NOBODY)
    record["unit_goal"][:, :, :N] = 0


def blank_after_end(record: Record) -> None:
    """Blanks what lies after the end and what belongs to the dead; adds the masks and the agents' own arrays."""
    T, N = record["action"].shape[1:]
    played = np.arange(T) < record["length"][:, None]
    alive = (record["unit_health"] > 0) & played[:, :, None]
    gone = ~alive
    for name in ("unit_health", *_BLANK):  # a back end may leave a negative rest of health
        values = record[name]
        np.copyto(values, 0, where=gone if values.ndim == 3 else gone[..., None])
    np.copyto(record["unit_target"], NOBODY, where=gone)
    record["reward"][~played] = 0
    record["available"][~played] = False
    record["unit_alive"] = alive
    record["agent_alive"] = alive[:, :, :N].copy()
    record["agent_position"] = record["unit_position"][:, :, :N].copy()
    record["action_target"] = record["unit_target"][:, :, :N].copy()
