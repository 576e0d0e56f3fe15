"""Roll-outs: a batch of episodes played by a team of policies against a back end, recorded step by step.

Time: record t holds what everybody could see before step t, the actions chosen on that sight, and the reward that step
t then gave. An episode ends when one army is dead, at SMAC's limit for the map, or after the last step; `length` counts
the steps that were played. Everything recorded after them is blank (0 or False; -1 for targets). The state after the
last action is not recorded: `outcome` tells it. The dead keep their place in the arrays, blank.

A team: the policies of a batch of episodes, asked step by step for the actions of all agents.

Fed by snapshots, so that the embedded engine and the real game are played by the same code."""

# B battles, T steps, U units of both sides, N agents = the first units, A actions

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from s2rm_data.starcraft import rules
from s2rm_data.starcraft.codes import STATS, Action, Order, Snapshot
from s2rm_data.starcraft.engine import Orders
from s2rm_data.starcraft.features import SIGHT, Features
from s2rm_data.starcraft.policies import find, label
from s2rm_data.starcraft.policies._view import MEMORY, act, callee, draw_member, mix_random
from s2rm_data.starcraft.scenarios import Scenario
from s2rm_data.starcraft.terrain_maps import SIZE
from s2rm_data.starcraft.units import UNIT_TYPES

# How far an agent sees, centre to centre, by unit type number (0 unused): 9 for all in SMAC; its own in SMACv2.
SMAC_SIGHT = np.full(len(UNIT_TYPES) + 1, SIGHT)
UNIT_SIGHT = np.array([0.0, *(float(unit.sight) for unit in UNIT_TYPES.values())])


def members_of(policy: str) -> tuple[str, ...]:
    """Names of the policies an episode may be played by: the policy itself, or the members it draws from."""
    return find(policy).members or (label(policy),)


class Team:
    """Policies and memories of B episodes that run side by side.

    `policy` (B,) uint8 is the index into `names` of the policy that plays each episode: a function of its seed alone.
    """

    def __init__(
        self,
        policy: str,
        *,
        epsilon: float,
        seeds: NDArray[np.uint64],
        agents: int,
        starts: NDArray[np.float64],
        sight: NDArray[np.float64] = SMAC_SIGHT,
    ) -> None:
        """starts: (2, 2) or (B, 2, 2) where the enemies and where the agents started, map coordinates; sight by unit
        type."""
        self.names = members_of(policy)
        self.policy = np.array([draw_member(seed, len(self.names)) for seed in seeds], dtype=np.uint8)
        self._policies = [find(name) for name in find(policy).members or (policy,)]
        self._epsilon, self._seeds = float(epsilon), np.ascontiguousarray(seeds, dtype=np.uint64)
        self._starts = np.array(np.broadcast_to(starts, (len(seeds), 2, 2)), dtype=np.float64, order="C")
        self._sight = np.ascontiguousarray(sight, dtype=np.float64)
        self._memory = np.zeros((len(seeds), agents, MEMORY), dtype=np.int64)

    def act(
        self, snapshot: Snapshot, available: NDArray[np.bool_], *, step: int, running: NDArray[np.bool_]
    ) -> NDArray[np.int16]:
        """Actions (B, N) for available (B, N, A); no-op for the dead and for battles that are not `running` (B,)."""
        actions = np.zeros(available.shape[:2], dtype=np.int16)
        kinds = np.array(np.broadcast_to(snapshot.unit_type, snapshot.health.shape), order="C")
        stats = (snapshot.health, snapshot.shield, snapshot.energy, snapshot.cooldown_loops)
        for index, player in enumerate(self._policies):
            asked = running & (self.policy == index)
            if player.network is not None:
                features = Features(np.atleast_2d(snapshot.unit_type)[0], snapshot.agents)
                chosen = player.network.choose(asked, features.observe(snapshot, available), available)
                mix_random(asked, step, self._seeds, self._epsilon, available, chosen)
                actions[asked] = chosen[asked]
            elif asked.any():
                act(
                    callee(player.choose), asked, step, self._seeds, self._epsilon, self._sight,
                    kinds, snapshot.position, stats, available, self._starts, self._memory, actions,
                )  # fmt: skip
        return actions


NOBODY = -1

Record = dict[str, NDArray[Any]]


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
    guess as any."""
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
    kinds = np.broadcast_to(snapshot.unit_type, snapshot.health.shape)
    record = blank_record(kinds, snapshot.agents, battles.available().shape[2], steps)
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


def blank_record(unit_type: NDArray[np.uint8], agents: int, actions: int, steps: int) -> Record:
    """Of units (B, U)."""
    (B, U), N, T = unit_type.shape, agents, steps
    return {
        "unit_type": unit_type.copy(),
        "unit_position": np.zeros((B, T, U, 2), np.float32),
        **{name: np.zeros((B, T, U), np.float32) for name in STATS},
        "unit_order": np.zeros((B, T, U), np.uint8),
        "unit_target": np.full((B, T, U), NOBODY, np.int16),
        "unit_goal": np.zeros((B, T, U, 2), np.float32),
        "action": np.zeros((B, T, N), np.int16),
        "available": np.zeros((B, T, N, actions), np.bool_),
        "reward": np.zeros((B, T), np.float32),
    }


_BLANK = ("unit_position", "unit_shield", "unit_energy", "unit_cooldown", "unit_order", "unit_goal")  # of the dead


def record_sight(record: Record, step: int, snapshot: Snapshot, available: NDArray[np.bool_], orders: Orders) -> None:
    record["unit_position"][:, step] = snapshot.position
    for name, field in STATS.items():
        record[name][:, step] = getattr(snapshot, field)
    record["unit_order"][:, step], record["unit_target"][:, step] = orders.kind, orders.target
    record["unit_goal"][:, step] = np.where((orders.kind == Order.ATTACK_MOVE)[..., None], orders.point, 0)
    record["available"][:, step] = available


def record_agent_orders(record: Record) -> None:
    """What agents do in step t is their action t, not the order they were still under when they chose it."""
    action = record["action"].astype(np.int64)
    N = action.shape[2]
    healer = rules.table()[record["unit_type"][:, None, :N], rules.HEALS] > 0
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
