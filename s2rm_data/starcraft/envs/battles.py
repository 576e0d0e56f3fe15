"""Battles of one scenario, stepped together under SMAC's rules of observing, rewarding and ending.

What every environment of this package is made of. All is arrays over battles and compiled code: no Python object per
unit, agent or battle. The options are those of SMAC's environment, with what only the real game has refused by name."""

# n battles, U units of both sides (agents first), N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from s2rm_data.core.check import above, at_least, between, check_fields, one_of, require
from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.starcraft import rules, scenarios
from s2rm_data.starcraft.codes import Action, Outcome, Snapshot
from s2rm_data.starcraft.engine import ENEMY_ORDERS, Engine
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.engine.step import look_batch
from s2rm_data.starcraft.envs import capabilities
from s2rm_data.starcraft.envs.capabilities import Capabilities, Knowledge
from s2rm_data.starcraft.features import NO_ACTION, FeatureOptions, Features, Traits
from s2rm_data.starcraft.rules import MOVE_AMOUNT, Rewards
from s2rm_data.starcraft.scenarios import Scenario
from s2rm_data.starcraft.terrain_maps import terrain
from s2rm_data.starcraft.units import LOOPS_PER_STEP

# Arguments of SMAC's class that need StarCraft II itself, and the only values that the engine can be given.
_GAME_ONLY: dict[str, tuple[Any, ...]] = {"difficulty": ("7", 7), "game_version": (None,)}


@dataclass(frozen=True, kw_only=True)
class EnvOptions(FeatureOptions):
    """Names, meanings and defaults are those of SMAC's constructor and, from `prob_obs_enemy` on, of SMACv2's;
    `map_name` is any scenario of `s2rm-data sc2`. What is told of what battles draw follows from `capability_config`.
    """

    map_name: str = "8m"
    step_mul: Annotated[int, between(1, 1000)] | None = LOOPS_PER_STEP  # game loops per step; None is SMAC's 8
    move_amount: Annotated[float, above(0, at_most=32)] = MOVE_AMOUNT  # map units
    continuing_episode: bool = False
    obs_instead_of_state: bool = False
    reward_sparse: bool = False
    reward_only_positive: bool = True
    reward_death_value: Annotated[float, at_least(0)] = 10.0
    reward_win: float = 200.0
    reward_defeat: float = 0.0
    reward_negative_scale: float = 0.5
    reward_scale: bool = True
    reward_scale_rate: Annotated[float, above(0)] = 20.0
    prob_obs_enemy: Annotated[float, between(0, 1)] | None = None  # None: agents observe all they see, as in SMAC
    action_mask: bool = True
    kill_unit_step_mul: Annotated[int, between(0, 1000)] = 2
    capability_config: Mapping[str, Any] | None = None
    # this project's: how enemies are numbered, as the game does ("random") or in the order in which they are created
    enemy_order: Annotated[str, one_of(*ENEMY_ORDERS)] = "random"

    def __post_init__(self) -> None:
        if not isinstance(self.map_name, str):
            raise UsageError(f"map_name is {self.map_name!r}; give the name of a scenario, such as '3s5z'")
        named = capabilities.scenario_name(self.map_name, self.capability_config)
        object.__setattr__(self, "map_name", named)
        known = self._drawn[0]
        object.__setattr__(self, "attack_told", known.attack.observe if known.attack else None)
        object.__setattr__(self, "health_told", known.health.observe if known.health else None)
        object.__setattr__(self, "types_told", known.team_observed)
        if self.step_mul is None:
            object.__setattr__(self, "step_mul", LOOPS_PER_STEP)
        check_fields(self)
        terrain = self.obs_pathing_grid or self.obs_terrain_height
        whole = not terrain or self.move_amount == int(self.move_amount)
        require(self, "move_amount", whole, "a whole number with obs_pathing_grid or obs_terrain_height")
        if known.health is not None:
            fits = self.kill_unit_step_mul <= (self.step_mul or 0)
            require(self, "kill_unit_step_mul", fits, f"at most step_mul, {self.step_mul}")
            require(self, "reward_only_positive", self.reward_only_positive, "True with health levels, as in smacv2")

    @cached_property
    def _drawn(self) -> tuple[Capabilities, Scenario]:
        scenario = scenarios.parse(self.map_name)
        sizes = scenario.agent_count, scenario.enemy_count
        known, generated = capabilities.parse(self.capability_config, scenario.generated, *sizes)
        return known, dataclasses.replace(scenario, generated=generated)

    @property
    def scenario(self) -> Scenario:
        """With the armies and places of `capability_config`."""
        return self._drawn[1]

    @property
    def capabilities(self) -> Capabilities:
        return self._drawn[0]

    def rewards(self, *, clipped: bool) -> Rewards:
        death, win, defeat, scale = (float(getattr(self, f"reward_{name}")) for name in Rewards._fields[:4])
        return Rewards(death, win, defeat, scale, self.reward_sparse, self.reward_only_positive, clipped)


NAMES = tuple(field.name for field in dataclasses.fields(EnvOptions) if not field.name.endswith("_told"))


def env_options(given: dict[str, Any], also: tuple[str, ...] = ()) -> EnvOptions:
    """Options from keywords; an unknown one is a `UsageError`. `also` are further names that the caller takes."""
    for name, value in given.items():
        if name in _GAME_ONLY:
            if value not in _GAME_ONLY[name]:
                raise UsageError(
                    f"{name} is {value!r}; only StarCraft II itself has other choices than {_GAME_ONLY[name][0]!r}, "
                    "the engine does not: leave it out"
                )
        elif name not in NAMES:
            known = (*NAMES, *also)
            it_has = f"it has {', '.join(known)}"
            raise UsageError(f"the environment has no option {name!r}{did_you_mean(name, known, it_has)}")
    return EnvOptions(**{name: value for name, value in given.items() if name in NAMES})


RUNNING, WIN, LIMIT = int(Outcome.RUNNING), int(Outcome.WIN), int(Outcome.LIMIT)  # to look one up takes 2 us
_STOP, _NO_OP = int(Action.STOP), int(Action.NO_OP)
_FORWARD = (1.0, 0.0)  # where agents look at the beginning: east
_SEEN = ("position", "health", "shield", "energy", "cooldown_loops")  # what a snapshot tells of every unit


def as_array(actions: Any) -> NDArray[Any]:
    try:
        return np.asarray(actions)
    except ValueError:
        raise UsageError("the rows of actions have different lengths; each battle has one action per agent") from None


class BattleBatch:
    """`count` battles. `begin` starts some of them; `step` plays all; the rest tells how they stand.

    After a step: `reward` (n,), `outcome` (n,) codes.Outcome, `dead` (n, 2) how many agents and enemies have fallen.
    A battle that is over has to be begun anew before the next step."""

    def __init__(self, options: EnvOptions, count: int) -> None:
        self.options, self.count = options, count
        self.scenario = options.scenario
        self.terrain = terrain(self.scenario.terrain)
        self.engine = self.fresh(np.zeros(count, dtype=np.uint64))
        self.agents, self.units = self.engine.agents, self.engine.units
        self.generated = self.scenario.generated is not None  # armies of their own for every battle
        self.features = Features(
            self.engine.kinds[0],
            self.agents,
            options,
            terrain=self.terrain,
            move_amount=options.move_amount,
            generated=self.scenario.generated,
        )
        self.actions: int = self.features.actions
        self.looking: NDArray[np.float64] | None = None  # (n, N, 2) where agents with a conic field of view look
        if options.conic_fov:
            self.looking = np.tile(_FORWARD, (count, self.agents, 1))
        known = options.capabilities
        sizes = count, self.agents, self.units - self.agents
        self.knowledge: Knowledge | None = None  # of what a battle draws beside armies and places
        if options.prob_obs_enemy is not None or known != Capabilities(team_observed=known.team_observed):
            self.knowledge = Knowledge(known, *sizes, options.prob_obs_enemy)
        self.limit = self.scenario.limit_steps
        self._rewards, self._heals = options.rewards(clipped=self.generated), self.scenario.has_healers
        self.steps = np.zeros(count, dtype=np.int64)
        self.last_actions = np.full((count, self.agents), NO_ACTION, dtype=np.int64)
        self.reward = np.zeros(count)
        self.outcome = np.zeros(count, dtype=np.int64)
        self.dead = np.zeros((count, 2), dtype=np.int64)
        self._measure()
        self._look()

    def fresh(self, seeds: ArrayLike, *, head_start: bool = True, scenario: Scenario | None = None) -> Engine:
        """New battles to begin with, one for each seed; `scenario` with armies of its own."""
        return Engine(scenario or self.scenario, seeds, head_start=head_start, enemy_order=self.options.enemy_order)

    def begin(self, rows: NDArray[np.int64], fresh: Engine, fresh_rows: NDArray[np.int64]) -> None:
        """Start the battles `rows` anew as copies of `fresh_rows` of `fresh`."""
        self.engine.adopt(rows, fresh, fresh_rows)
        self.steps[rows], self.last_actions[rows] = 0, NO_ACTION
        self.outcome[rows], self.dead[rows], self.reward[rows] = RUNNING, 0, 0.0
        if self.generated:
            self._measure()
        if self.looking is not None:
            self.looking[rows] = _FORWARD
        self._look_again(rows)
        if self.knowledge is not None:
            self.knowledge.begin(rows, self.engine.seeds[rows], self.snapshot.position[rows])

    def _measure(self) -> None:
        """SMAC's `max_rewards` (n,), and what rewards are divided by."""
        enemies = self.engine.kinds[:, self.agents :]
        points: NDArray[np.float64] = self.features.rules[enemies, rules.POINTS].sum(axis=1)
        self.max_rewards = rules.max_reward(points, enemies.shape[1], self._rewards)
        scale = self.options.reward_scale_rate
        self._divisors = self.max_rewards / scale if self.options.reward_scale else np.ones(self.count)

    def _look(self) -> None:
        self.snapshot = self.engine.snapshot()
        self._true: NDArray[np.bool_] | None = None
        self._available: NDArray[np.bool_] | None = None

    def _look_again(self, rows: NDArray[np.int64]) -> None:
        """Bring what was seen up to date after some battles began: to look at all costs less than to pick out a few."""
        seen = self.snapshot
        look_batch(self.engine.floats, seen.position, seen.health, seen.shield, seen.energy, seen.cooldown_loops)
        if seen.unit_type.ndim == 2:
            seen.unit_type[rows] = self.engine.kinds[rows]
        self._true = self._available = None

    def step(self, actions: NDArray[np.int64], *, by_rules: bool = True) -> None:
        """One step of every battle; actions (n, N) are not checked against the masks. `by_rules` off: attacks neither
        fail nor need a target in reach, as those of SMACv2's heuristic."""
        before = self.snapshot
        orders = actions if self.looking is None else self.features.turn(actions, self.looking)
        self.engine.act(self.succeeding(actions, orders) if by_rules else orders, self.options.move_amount)
        self._run(before)
        self._look()
        self.steps += 1
        self.last_actions = actions.copy()
        now = self.snapshot
        if self.knowledge is not None:
            self.knowledge.forget(now.position, now.health)
        rules.settle(
            before.health, before.shield, now.health, now.shield, self.features.kinds(now), self.features.rules,
            self.agents, self._rewards, self._heals, self.steps, self.limit, self._divisors, self.reward, self.outcome,
            self.dead,
        )  # fmt: skip

    def succeeding(self, actions: NDArray[np.int64], orders: NDArray[np.int64]) -> NDArray[np.int64]:
        """Orders (n, N) without those of SMACv2's agents whose attack fails or, if masks allow it, has no target in
        reach: they carry out their last order."""
        if self.options.action_mask and (self.knowledge is None or self.options.capabilities.attack is None):
            return orders
        vain = np.zeros(actions.shape, dtype=np.bool_)
        if self.knowledge is not None and self.options.capabilities.attack is not None:
            vain = self.knowledge.failing(self.steps)
        if not self.options.action_mask:
            vain |= ~np.take_along_axis(self.true_available, actions[..., None], axis=-1)[..., 0]
        return np.where(vain & (actions >= self.features.attack_at), _NO_OP, orders)

    def _run(self, before: Snapshot) -> None:
        """The loops of a step. SMACv2 kills whose health was below its level before the step, some loops from its
        end."""
        loops = self.options.step_mul or 0
        if self.knowledge is None or self.options.capabilities.health is None:
            self.engine.run_loops(loops)
            return
        self.engine.run_loops(loops - self.options.kill_unit_step_mul)
        share = before.health[:, : self.agents].astype(np.float64) / self.features.full_health(before)
        alive = self.engine.floats[:, at.HEALTH, : self.agents] > 0  # what the dead fired still hits
        for battle, agent in np.argwhere(alive & (share < self.knowledge.health)).tolist():
            self.engine.kill(battle, agent)
        self.engine.run_loops(self.options.kill_unit_step_mul)

    @property
    def ends(self) -> dict[str, Any]:
        """What SMAC's info tells of the first battle after a step."""
        allies, enemies = self.dead[0].tolist()
        return {"battle_won": int(self.outcome[0]) == WIN, "dead_allies": allies, "dead_enemies": enemies}

    @property
    def available(self) -> NDArray[np.bool_]:
        """(n, N, A) SMAC's masks; do not write to it."""
        if self.options.action_mask:
            return self.true_available
        if self._available is None:
            self._available = self.features.available(self.snapshot, self.looking, everywhere=True)
        return self._available

    @property
    def true_available(self) -> NDArray[np.bool_]:
        """(n, N, A) the same, of SMACv2's environments without `action_mask` as if they had it."""
        if self._true is None:
            self._true = self.features.available(self.snapshot, self.looking)
        return self._true

    def orders(self, actions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Actions (n, N) in SMAC's numbers; who looks around is given no order."""
        return actions if self.looking is None else self.features.turn(actions, self.looking.copy())

    def observe(self, rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """(n, N, O), or of some battles."""
        if self.knowledge is not None and self.options.prob_obs_enemy is not None:
            cone = np.zeros((0, 0, 2)) if self.looking is None else self.looking, self.features.half_angle
            which, kinds = np.arange(self.count) if rows is None else rows, self.features.kinds(self.snapshot)
            self.knowledge.look(which, self.snapshot, kinds, self.steps, *cone, self.features.sight)
        seen, last_actions, time, looking, traits = self._of(rows)
        available = self.true_available if rows is None else self.features.available(seen, looking)
        return self.features.observe(seen, available, last_actions, time, looking, traits)

    def state(self, rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """(n, S), or of some battles."""
        if self.options.obs_instead_of_state:
            observation = self.observe(rows)
            return observation.reshape(len(observation), -1)
        return self.parts_of_state(rows)

    def parts_of_state(self, rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """(n, S) of units, actions and time, even where observations stand in for the state."""
        return self.features.state(*self._of(rows))

    def _of(
        self, rows: NDArray[np.int64] | None
    ) -> tuple[Snapshot, NDArray[np.int64], NDArray[np.float64] | None, NDArray[np.float64] | None, Traits | None]:
        """The snapshot, last actions, time, directions of looking and traits of all battles, or of some."""
        last_actions, looking = self.last_actions, self.looking
        timed = self.options.obs_timestep_number or self.options.state_timestep_number
        time = self.steps / self.limit if timed else None  # as a share of the limit
        traits = None if self.knowledge is None else self.knowledge.traits
        if rows is None:
            return self.snapshot, last_actions, time, looking, traits
        time = None if time is None else time.take(rows)
        looking = None if looking is None else looking.take(rows, axis=0)
        traits = None if traits is None else traits.of(rows)
        return taken(self.snapshot, rows), last_actions.take(rows, axis=0), time, looking, traits

    def checked(self, actions: Any) -> NDArray[np.int64]:
        """Actions (n, N) as whole numbers that the masks allow, or a `UsageError` that says which is wrong and why."""
        given = as_array(actions)
        if given.shape != (self.count, self.agents):
            raise UsageError(
                f"actions have shape {given.shape}; it must be {(self.count, self.agents)}: one action for each of "
                f"{self.agents} agents in each of {self.count} battles, {Action.NO_OP:d} for the dead"
            )
        if given.dtype.kind not in "iu":
            raise UsageError(f"actions are of type {given.dtype}; they must be whole numbers, below {self.actions}")
        chosen = np.ascontiguousarray(given, dtype=np.int64)
        wrong = rules.first_illegal(chosen, self.available)
        if wrong >= 0:
            battle, agent = divmod(wrong, self.agents)
            where = f"battle {battle}, " if self.count > 1 else ""
            what = int(self.engine.kinds[battle, agent]), int(chosen[battle, agent]), self.available[battle, agent]
            sizes = self.agents, self.units - self.agents, self.features.attack_at
            raise UsageError(where + rules.refusal(agent, *what, *sizes))
        return chosen

    def allowed(self, actions: Any) -> NDArray[np.int64]:
        """Actions with a stop, or for the dead a no-op, in place of those that the masks do not allow."""
        given = as_array(actions)
        if given.shape != (self.count, self.agents) or given.dtype.kind not in "iu":
            return given  # for `checked` to refuse
        exists = (given >= 0) & (given < self.actions)
        legal = exists & np.take_along_axis(self.available, np.where(exists, given, 0)[..., None], axis=-1)[..., 0]
        return np.where(legal, given, self.idle)

    @property
    def idle(self) -> NDArray[np.int64]:
        """(n, N) a stop, or for the dead a no-op: what can always be done."""
        return np.where(self.available[..., _STOP], _STOP, _NO_OP)


def taken(snapshot: Snapshot, rows: NDArray[np.int64]) -> Snapshot:
    """A snapshot of some of its battles; `take` costs a third of what indexing does for a few of them."""
    unit_type = snapshot.unit_type.take(rows, axis=0) if snapshot.unit_type.ndim == 2 else snapshot.unit_type
    parts = {name: getattr(snapshot, name).take(rows, axis=0) for name in _SEEN}
    return Snapshot(agents=snapshot.agents, unit_type=unit_type, **parts)
