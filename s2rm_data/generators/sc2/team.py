"""A team: the policies of a batch of episodes, asked step by step for the actions of all agents.

Fed by snapshots, so that the embedded engine and the real game are played by the same code.
"""

# B battles, N agents, A actions

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from s2rm_data.generators.sc2.features import SIGHT, Features
from s2rm_data.generators.sc2.policies import find, label
from s2rm_data.generators.sc2.policies._network import Network
from s2rm_data.generators.sc2.policies._view import MEMORY, act, callee, draw_member, mix_random
from s2rm_data.generators.sc2.snapshot import Snapshot
from s2rm_data.generators.sc2.units import UNIT_TYPES

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
        type.
        """
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
                self._ask(player.network, asked, snapshot, available, step, actions)
            elif asked.any():
                act(
                    callee(player.choose), asked, step, self._seeds, self._epsilon, self._sight,
                    kinds, snapshot.position, stats, available, self._starts, self._memory, actions,
                )  # fmt: skip
        return actions

    def _ask(
        self,
        network: Network,
        asked: NDArray[np.bool_],
        snapshot: Snapshot,
        available: NDArray[np.bool_],
        step: int,
        actions: NDArray[np.int16],
    ) -> None:
        """Writes a trained policy's actions for the battles it plays."""
        observation = Features(snapshot.unit_type, snapshot.agents).observe(snapshot, available)
        chosen = network.choose(asked, observation, available)
        mix_random(asked, step, self._seeds, self._epsilon, available, chosen)
        actions[asked] = chosen[asked]
