"""A live SMAC environment, read as any other back end is: its units as snapshots, its steps as an episode's record."""

# U units of both sides, N agents = the first units, A actions; one battle: B = 1

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2 import rollout
from s2rm_data.generators.sc2.api.catalogue import TYPE_OF_STANDARD, types_by_id
from s2rm_data.generators.sc2.api.client.field import Slots, orders_of, outcome_of, snapshot_of
from s2rm_data.generators.sc2.rollout import Record
from s2rm_data.generators.sc2.scenarios import Scenario
from s2rm_data.generators.sc2.snapshot import Snapshot


class LiveEpisode:
    """The episode that a `smac.env.StarCraft2Env` has just been reset to, filled in step by step."""

    def __init__(self, env: Any, scenario: Scenario, steps: int) -> None:
        self._env, self._scenario, self._steps = env, scenario, steps
        self._slots = _slots(env, scenario)
        self._snapshot = self._look()
        self._record = rollout.blank_record(self._snapshot, env.n_actions, steps)
        self.length = 0

    def _units(self) -> list[Any]:
        everybody = [*self._env.agents.values(), *self._env.enemies.values()]
        return [unit for unit in everybody if unit.health > 0]  # SMAC keeps the dead, with health 0

    def _look(self) -> Snapshot:
        return snapshot_of(self._units(), self._slots)

    def before_step(self) -> None:
        """Record what the agents see; beyond the last recorded step nothing."""
        if self.length < self._steps:
            orders = orders_of(self._units(), self._slots, self._scenario, self._scenario.order_segment[0])
            mask = np.array(self._env.get_avail_actions(), dtype=np.bool_)[None]
            rollout.record_sight(self._record, self.length, self._snapshot, mask, orders)

    def after_step(self, actions: Sequence[int], reward: float) -> None:
        self._snapshot = self._look()
        if self.length < self._steps:
            self._record["action"][0, self.length] = np.asarray(actions, dtype=np.int16)
            self._record["reward"][0, self.length] = reward
            self.length += 1
            self._outcome = outcome_of(self._snapshot, at_limit=self._env._episode_steps >= self._env.episode_limit)

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
    return Slots.assign(
        [(types[unit.unit_type], unit) for unit in agents],
        [(TYPE_OF_STANDARD[unit.unit_type], unit) for unit in enemies],
    )
