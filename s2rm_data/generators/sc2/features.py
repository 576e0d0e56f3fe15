"""SMAC's feature vectors: what a SMAC agent observes and the global state, computed for whole batches from snapshots.

    features = Features(engine.unit_type, engine.agents)
    observation = features.observe(engine.snapshot(), engine.available())      # (B, N, O)
    state = features.state(engine.snapshot(), last_actions)                    # (B, S)

The layout is that of smac/env/starcraft2/starcraft2.py with its default options (health of everybody in sight, last
actions in the state only). An observation is: the four moves available; for each enemy, then for each other agent,
in slot order: attack available (visible), distance, relative x and y, health, shield, unit type; own health, shield,
unit type. What is dead or out of sight is all zeros, and so is everything a dead agent observes.
"""

# B battles, U units of both sides (agents first), N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from s2rm_data.generators.sc2.codes import Action
from s2rm_data.generators.sc2.maps import SIZE
from s2rm_data.generators.sc2.snapshot import Snapshot
from s2rm_data.generators.sc2.team import SIGHT
from s2rm_data.generators.sc2.units import NUMBER_OF, SMAC_RANK, UNIT_TYPES

# SMAC's table of maximal cooldowns in loops; a medivac shows its energy instead. Its own, not those of the unit table.
_MAX_COOLDOWN = {
    "marine": 15.0,
    "marauder": 25.0,
    "medivac": 200.0,
    "stalker": 35.0,
    "zealot": 22.0,
    "colossus": 24.0,
    "hydralisk": 10.0,
    "zergling": 11.0,
    "baneling": 1.0,
}
_STALKER, _ZEALOT = NUMBER_OF["stalker"], NUMBER_OF["zealot"]


class Features:
    """The layout for one pair of armies: `unit_type` (U,), of which the first `agents` are agents."""

    def __init__(self, unit_type: NDArray[np.uint8], agents: int) -> None:
        self.agents, self.enemies = agents, len(unit_type) - agents
        kinds = [UNIT_TYPES[int(number)] for number in unit_type]
        self._health_max = np.array([kind.health for kind in kinds])
        self._shield_max = np.array([max(kind.shield, 1.0) for kind in kinds])
        self._max_cooldown = np.array([_MAX_COOLDOWN.get(kind.name, 15.0) for kind in kinds])
        self._healer = np.array([kind.is_healer for kind in kinds])
        # SMAC gives shields to a side by its race.
        self._ally_shield = any(kind.shield > 0 for kind in kinds[:agents])
        self._enemy_shield = any(kind.shield > 0 for kind in kinds[agents:])
        self.type_bits = _type_bits(unit_type, agents)  # (U, bits) one-hot
        self._others = np.array([[v for v in range(agents) if v != u] for u in range(agents)], dtype=np.int64)
        bits = self.type_bits.shape[1]
        self._enemy_width, self._ally_width = 5 + self._enemy_shield + bits, 5 + self._ally_shield + bits
        self.observation_size = (
            4 + self.enemies * self._enemy_width + (agents - 1) * self._ally_width + 1 + self._ally_shield + bits
        )

    def observe(self, snapshot: Snapshot, available: NDArray[np.bool_]) -> NDArray[np.float32]:
        """(B, N, O) for available (B, N, A)."""
        B, N = len(snapshot.health), self.agents
        position = snapshot.position.astype(np.float64)
        toward = position[:, None, :, :] - position[:, :N, None, :]  # (B, N, U, 2)
        distance = np.hypot(toward[..., 0], toward[..., 1])
        alive = snapshot.health > 0
        seen = (distance < SIGHT) & alive[:, None, :] & alive[:, :N, None]  # (B, N, U)
        body = self._body(snapshot)  # (B, U, 2 + bits) health, shield, type
        sight = np.concatenate([distance[..., None], toward], axis=-1) / SIGHT
        sight = np.concatenate([np.ones_like(distance)[..., None], sight, np.repeat(body[:, None], N, axis=1)], axis=-1)
        sight[~seen] = 0.0
        enemies = sight[:, :, N:]
        enemies[..., 0] *= available[:, :, Action.ATTACK : Action.ATTACK + self.enemies]
        allies = (
            np.take_along_axis(sight[:, :, :N], self._others[None, :, :, None], axis=2) if N > 1 else sight[:, :, :0]
        )
        own = np.where(alive[:, :N, None], body[:, :N], 0.0)
        parts = (
            available[:, :, Action.NORTH : Action.NORTH + 4],
            _flat(enemies, 5, self._enemy_shield),
            _flat(allies, 5, self._ally_shield),
            own if self._ally_shield else np.delete(own, 1, axis=-1),
        )
        return np.concatenate([part.reshape(B, N, -1) for part in parts], axis=-1).astype(np.float32)

    def _body(self, snapshot: Snapshot) -> NDArray[np.float64]:
        bits = np.broadcast_to(self.type_bits, (len(snapshot.health), *self.type_bits.shape))
        health, shield = snapshot.health / self._health_max, snapshot.shield / self._shield_max
        return np.concatenate([health[..., None], shield[..., None], bits], axis=-1)

    def state(self, snapshot: Snapshot, last_actions: NDArray[np.bool_]) -> NDArray[np.float32]:
        """(B, S) all agents, all enemies, and the last actions (B, N, A), one-hot and all False before the first."""
        B, N = len(snapshot.health), self.agents
        body = self._body(snapshot)
        place = (snapshot.position.astype(np.float64) - SIZE / 2) / SIZE  # the playable area is the whole map
        cooldown = np.where(self._healer, snapshot.energy, snapshot.cooldown_loops) / self._max_cooldown
        units = np.concatenate([body[..., :1], cooldown[..., None], place, body[..., 1:]], axis=-1)
        units[snapshot.health <= 0] = 0.0
        enemies = np.delete(units[:, N:], 1, axis=-1)  # SMAC hides the enemies' cooldowns
        parts = (
            _flat(units[:, :N], 4, self._ally_shield),
            _flat(enemies, 3, self._enemy_shield),
            last_actions.reshape(B, -1),
        )
        return np.concatenate([part.reshape(B, -1) for part in parts], axis=-1).astype(np.float32)


def _flat(rows: NDArray[np.float64], shield: int, has_shield: bool) -> NDArray[np.float64]:
    """Rows without the column `shield` where a side has none."""
    return rows if has_shield else np.delete(rows, shield, axis=-1)


def _type_bits(unit_type: NDArray[np.uint8], agents: int) -> NDArray[np.float64]:
    """(U, bits) one-hot types in SMAC's order; no bits where each side has a single type, as in SMAC's registry."""
    ours, theirs = set(unit_type[:agents].tolist()), set(unit_type[agents:].tolist())
    if len(ours) == 1 and len(theirs) == 1:
        return np.zeros((len(unit_type), 0))
    kinds = sorted(ours | theirs, key=SMAC_RANK.__getitem__)
    bits = (unit_type[:, None] == np.array(kinds)).astype(np.float64)
    if set(kinds) == {_STALKER, _ZEALOT}:  # SMAC numbers these enemies by the game's ids: zealot 73, stalker 74
        bits[agents:] = bits[agents:, ::-1]
    return bits
