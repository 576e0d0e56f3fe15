"""One battle to play with, step by step.

    battle = Battle("3s5z", seed=7)
    while not battle.done:
        masks = battle.available_actions()                      # (N, A) bool
        battle.step([int(mask.nonzero()[0][-1]) for mask in masks])
    print(battle.outcome, battle.state)

Actions are SMAC's numbers: 0 no-op (the dead), 1 stop, 2..5 move north, south, east, west, 6 + k attack enemy k (a
medivac heals agent k). An action that is not available is an error that says who, what and what would be allowed."""

# U units of both sides (agents first), N agents, A actions

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import at_least, checked
from s2rm_data.core.errors import UsageError
from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.starcraft import engine as kernel
from s2rm_data.starcraft import rules, scenarios
from s2rm_data.starcraft.codes import ORDERS, OUTCOMES, Action, Snapshot
from s2rm_data.starcraft.units import UNIT_TYPES, UnitType


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One unit as it stands: `slot` is its place in all arrays; `target` a slot or None; points in map coordinates."""

    slot: int
    side: str  # "agents" or "enemies"
    type: UnitType
    position: tuple[float, float]
    facing: tuple[float, float]
    health: float
    shield: float
    energy: float
    cooldown_loops: float
    order: str
    target: int | None

    @property
    def alive(self) -> bool:
        return self.health > 0


_Natural = Annotated[int, at_least(0)]


class Battle:
    """Episode k of (scenario, seed) is always the same battle, given the same actions; `reset` starts the next.

    `enemy_order`: enemies are numbered at "random" in every battle, as in the game, or as they are "created"."""

    def __init__(
        self,
        scenario: str = "3s5z",
        seed: int = 0,
        *,
        mirror: bool = False,
        jitter: bool = True,
        enemy_order: str = "random",
    ) -> None:
        self.scenario = scenarios.parse(scenario)
        self.seed = checked("seed", seed, _Natural)
        self._options: dict[str, Any] = {"mirror": mirror, "jitter": jitter, "enemy_order": enemy_order}
        self.episode = 0
        self.reset(0)

    def reset(self, episode: int | None = None) -> Snapshot:
        """Start the next episode, or the one named."""
        self.episode = self.episode + 1 if episode is None else checked("episode", episode, _Natural)
        seeds = sequence_seeds(self.seed, f"sc2/{self.scenario.name}/battle", self.episode, self.episode + 1)
        self.engine = kernel.Engine(self.scenario, seeds, **self._options)
        return self.snapshot

    def __repr__(self) -> str:
        which = f"{self.scenario.name}, seed {self.seed}, episode {self.episode}"
        return f"<Battle {which}, step {self.steps}: {self.outcome}>"

    def step(self, actions: Sequence[int]) -> float:
        """Play half a second with one action for each agent; returns SMAC's reward."""
        if self.done:
            raise UsageError(f"the battle is over ({self.outcome}); call reset() to start the next one")
        self.engine.step(np.array([self._checked(actions)]))
        return float(self.engine.reward[0])

    def _checked(self, actions: Sequence[int]) -> list[int]:
        if len(actions) != self.engine.agents:
            raise UsageError(
                f"{len(actions)} actions came for {self.engine.agents} agents; give one to each, "
                f"{Action.NO_OP:d} to the dead"
            )
        masks = self.available_actions()
        for agent, action in enumerate(actions):
            if isinstance(action, bool) or not isinstance(action, int | np.integer):
                raise UsageError(f"agent {agent}: the action {action!r} is not a whole number, as its mask has")
            if not 0 <= action < masks.shape[1] or not masks[agent, action]:
                kind, sizes = int(self.engine.kinds[0, agent]), (self.engine.agents, self.scenario.enemy_count)
                raise UsageError(rules.refusal(agent, kind, int(action), masks[agent], *sizes))
        return [int(action) for action in actions]

    def available_actions(self) -> NDArray[np.bool_]:
        return self.engine.available()[0]

    @property
    def snapshot(self) -> Snapshot:
        """The battle as a batch of one, for policies and the renderer."""
        return self.engine.snapshot()

    @property
    def state(self) -> list[Unit]:
        """All units in slot order, the dead with health 0."""
        return [self._unit(slot) for slot in range(self.engine.units)]

    def _unit(self, slot: int) -> Unit:
        now, orders, facing = self.engine.snapshot(), self.engine.orders(), self.engine.facing[0, slot]
        x, y = now.position[0, slot]
        target = int(orders.target[0, slot])
        return Unit(
            slot=slot,
            side="agents" if slot < self.engine.agents else "enemies",
            type=UNIT_TYPES[int(self.engine.kinds[0, slot])],
            position=(float(x), float(y)),
            facing=(float(facing[0]), float(facing[1])),
            health=float(now.health[0, slot]),
            shield=float(now.shield[0, slot]),
            energy=float(now.energy[0, slot]),
            cooldown_loops=float(now.cooldown_loops[0, slot]),
            order=ORDERS[int(orders.kind[0, slot])],
            target=target if target >= 0 else None,
        )

    @property
    def done(self) -> bool:
        return bool(self.engine.done[0])

    @property
    def outcome(self) -> str:
        """running, win, loss, draw (both armies dead at once) or limit (no steps left)."""
        return OUTCOMES[int(self.engine.outcome[0])]

    @property
    def steps(self) -> int:
        return int(self.engine.step_count[0])
