"""Battles of one scenario, stepped together under SMAC's rules of observing, rewarding and ending.

What every environment of this package is made of. All is arrays over battles and compiled code: no Python object per
unit, agent or battle.
"""

# n battles, U units of both sides (agents first), N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from s2rm_data.envs.options import EnvOptions
from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2 import scenarios
from s2rm_data.generators.sc2.codes import Action, Outcome
from s2rm_data.generators.sc2.engine import Engine
from s2rm_data.generators.sc2.engine import layout as at
from s2rm_data.generators.sc2.engine.acting import look_batch
from s2rm_data.generators.sc2.engine.compiled import compiled, inner
from s2rm_data.generators.sc2.features import NO_ACTION, Features
from s2rm_data.generators.sc2.maps import terrain
from s2rm_data.generators.sc2.snapshot import Snapshot
from s2rm_data.generators.sc2.units import UNIT_TYPES

_MOVES = ("no-op", "stop", "move north", "move south", "move east", "move west")
_FORWARD = (1.0, 0.0)  # where agents look at the beginning: east
_SEEN = ("position", "health", "shield", "energy", "cooldown_loops")  # what a snapshot tells of every unit
# Health and shield of a whole unit, by unit type number; 0 is nothing.
_POINTS = np.array([0.0, *(float(kind.health + kind.shield) for kind in UNIT_TYPES.values())])


def _as_array(actions: Any) -> NDArray[Any]:
    try:
        return np.asarray(actions)
    except ValueError:
        raise UsageError("the rows of actions have different lengths; each battle has one action per agent") from None


class BattleBatch:
    """`count` battles. `begin` starts some of them; `step` plays all; the rest tells how they stand.

    After a step: `reward` (n,), `outcome` (n,) codes.Outcome, `dead` (n, 2) how many agents and enemies have fallen.
    A battle that is over has to be begun anew before the next step.
    """

    def __init__(self, options: EnvOptions, count: int) -> None:
        self.options, self.count = options, count
        self.scenario = scenarios.parse(options.map_name)
        self.terrain = terrain(self.scenario.terrain)
        self.engine = Engine(self.scenario, np.zeros(count, dtype=np.uint64))
        self.agents, self.units = self.engine.agents, self.engine.units
        self.generated = self.scenario.generated is not None  # armies of their own for every battle
        self.features = Features(
            self.engine.kinds[0],
            self.agents,
            options.features,
            terrain=self.terrain,
            move_amount=options.move_amount,
            generated=self.scenario.generated,
        )
        self.actions: int = self.features.actions
        self.looking: NDArray[np.float64] | None = None  # (n, N, 2) where agents with a conic field of view look
        if options.conic_fov:
            self.looking = np.empty((count, self.agents, 2))
            self.looking[:] = _FORWARD
        self.limit = self.scenario.limit_steps
        everybody = (*self.scenario.agent_types, *self.scenario.enemy_types)
        self._fights = np.array([False, *(kind.damage > 0 for kind in UNIT_TYPES.values())])
        self._has_healers = any(UNIT_TYPES[number].is_healer for number in everybody)
        self._rules = np.array(
            [
                options.reward_death_value,
                options.reward_win,
                options.reward_defeat,
                options.reward_negative_scale,
            ]
        )
        self._timed = options.obs_timestep_number or options.state_timestep_number
        self.steps = np.zeros(count, dtype=np.int64)
        self.last_actions = np.full((count, self.agents), NO_ACTION, dtype=np.int64)
        self.reward = np.zeros(count)
        self.outcome = np.zeros(count, dtype=np.int64)
        self.dead = np.zeros((count, 2), dtype=np.int64)
        self._measure()
        self._look()

    @property
    def max_reward(self) -> float:
        """SMAC's, of the first battle; in a generated scenario it is another one in every battle."""
        return float(self._max_rewards()[0])

    def _max_rewards(self) -> NDArray[np.float64]:
        """(n,)"""
        enemies = self.engine.kinds[:, self.agents :]
        points: NDArray[np.float64] = _POINTS[enemies].sum(axis=1)
        return points + enemies.shape[1] * self.options.reward_death_value + self.options.reward_win

    def fresh(self, seeds: ArrayLike, *, head_start: bool = True) -> Engine:
        """New battles to begin with, one for each seed."""
        return Engine(self.scenario, seeds, head_start=head_start)

    def begin(self, rows: NDArray[np.int64], fresh: Engine, fresh_rows: NDArray[np.int64]) -> None:
        """Start the battles `rows` anew as copies of `fresh_rows` of `fresh`."""
        self.engine.adopt(rows, fresh, fresh_rows)
        self.steps[rows], self.last_actions[rows] = 0, NO_ACTION
        self.outcome[rows], self.dead[rows], self.reward[rows] = Outcome.RUNNING, 0, 0.0
        if self.generated:
            self._measure()
        if self.looking is not None:
            self.looking[rows] = _FORWARD
        self._look_again(rows)

    def _measure(self) -> None:
        """What rewards are divided by."""
        scale = self.options.reward_scale_rate
        self._divisors = self._max_rewards() / scale if self.options.reward_scale else np.ones(self.count)

    def _look(self) -> None:
        self.snapshot = self.engine.snapshot()
        self._available: NDArray[np.bool_] | None = None

    def _look_again(self, rows: NDArray[np.int64]) -> None:
        """Bring what was seen up to date after some battles began: to look at all costs less than to pick out a few."""
        seen = self.snapshot
        look_batch(self.engine.floats, seen.position, seen.health, seen.shield, seen.energy, seen.cooldown_loops)
        if self.generated:
            seen.unit_type[rows] = self.engine.kinds[rows]
        self._available = None

    def step(self, actions: NDArray[np.int64]) -> None:
        """One step of every battle; actions (n, N) are not checked against the masks."""
        before = self.snapshot
        orders = actions if self.looking is None else self.features.turn(actions, self.looking)
        self.engine.act(orders, self.options.move_amount)
        self.engine.run_loops(self.options.step_mul or 0)
        self._look()
        self.steps += 1
        self.last_actions = actions.copy()
        now = self.snapshot
        _settle(
            before.health, before.shield, now.health, now.shield, self.agents, self.engine.ints, self._fights,
            self._has_healers, self._rules, self._divisors, self.generated, self.options.reward_sparse,
            self.options.reward_only_positive, self.steps, self.limit, self.reward, self.outcome, self.dead,
        )  # fmt: skip

    @property
    def available(self) -> NDArray[np.bool_]:
        """(n, N, A) SMAC's masks; do not write to it."""
        if self._available is None:
            self._available = self.features.available(self.snapshot, self.looking)
        return self._available

    def orders(self, actions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Actions (n, N) in SMAC's numbers; who looks around is given no order."""
        return actions if self.looking is None else self.features.turn(actions, self.looking.copy())

    @property
    def time(self) -> NDArray[np.float64] | None:
        """(n,) steps as a share of the limit, if anybody wants to know."""
        return self.steps / self.limit if self._timed else None

    def observe(self, rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """(n, N, O), or of some battles."""
        seen, last_actions, time, looking = self._of(rows)
        available = self.available if rows is None else self.features.available(seen, looking)
        return self.features.observe(seen, available, last_actions, time, looking)

    def state(self, rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """(n, S), or of some battles."""
        if self.options.obs_instead_of_state:
            observation = self.observe(rows)
            return observation.reshape(len(observation), -1)
        return self.features.state(*self._of(rows))

    def _of(
        self, rows: NDArray[np.int64] | None
    ) -> tuple[Snapshot, NDArray[np.int64], NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """The snapshot, last actions, time and directions of looking of all battles, or of some."""
        last_actions, time, looking = self.last_actions, self.time, self.looking
        if rows is None:
            return self.snapshot, last_actions, time, looking
        time = None if time is None else time.take(rows)
        looking = None if looking is None else looking.take(rows, axis=0)
        return taken(self.snapshot, rows), last_actions.take(rows, axis=0), time, looking

    def checked(self, actions: Any) -> NDArray[np.int64]:
        """Actions (n, N) as whole numbers that the masks allow, or a `UsageError` that says which is wrong and why."""
        given = _as_array(actions)
        if given.shape != (self.count, self.agents):
            raise UsageError(
                f"actions have shape {given.shape}; it must be {(self.count, self.agents)}: one action for each of "
                f"{self.agents} agents in each of {self.count} battles, {Action.NO_OP:d} for the dead"
            )
        if given.dtype.kind not in "iu":
            raise UsageError(f"actions are of type {given.dtype}; they must be whole numbers, below {self.actions}")
        chosen = np.ascontiguousarray(given, dtype=np.int64)
        wrong = _first_illegal(chosen, self.available)
        if wrong >= 0:
            raise UsageError(self._refusal(wrong // self.agents, wrong % self.agents, chosen))
        return chosen

    def allowed(self, actions: Any) -> NDArray[np.int64]:
        """Actions with a stop, or for the dead a no-op, in place of those that the masks do not allow."""
        given = _as_array(actions)
        if given.shape != (self.count, self.agents) or given.dtype.kind not in "iu":
            return given  # for `checked` to refuse
        exists = (given >= 0) & (given < self.actions)
        legal = exists & np.take_along_axis(self.available, np.where(exists, given, 0)[..., None], axis=-1)[..., 0]
        return np.where(legal, given, np.where(self.available[..., Action.STOP], Action.STOP, Action.NO_OP))

    def _refusal(self, battle: int, agent: int, actions: NDArray[np.int64]) -> str:
        where = f"battle {battle}, " if self.count > 1 else ""
        available = np.flatnonzero(self.available[battle, agent])
        allowed = ", ".join(self.action_name(agent, int(action), battle) for action in available)
        kind = UNIT_TYPES[int(self.engine.kinds[battle, agent])].name
        wanted = self.action_name(agent, int(actions[battle, agent]), battle)
        return f"{where}agent {agent} ({kind}) cannot do action {wanted} now; allowed are {allowed}"

    def action_name(self, agent: int, action: int, battle: int = 0) -> str:
        """`2 (move north)`"""
        if not 0 <= action < self.actions:
            return f"{action} (there are 0 to {self.actions - 1})"
        if action < Action.ATTACK:
            return f"{action} ({_MOVES[action]})"
        attack_at = self.features.attack_at
        if action < attack_at:
            return f"{action} (look at {360 * (action - Action.ATTACK) / (attack_at - Action.ATTACK):g} degrees)"
        heals = UNIT_TYPES[int(self.engine.kinds[battle, agent])].is_healer
        return f"{action} ({'heal agent' if heals else 'attack enemy'} {action - attack_at})"


def taken(snapshot: Snapshot, rows: NDArray[np.int64]) -> Snapshot:
    """A snapshot of some of its battles; `take` costs a third of what indexing does for a few of them."""
    unit_type = snapshot.unit_type.take(rows, axis=0) if snapshot.unit_type.ndim == 2 else snapshot.unit_type
    parts = {name: getattr(snapshot, name).take(rows, axis=0) for name in _SEEN}
    return Snapshot(agents=snapshot.agents, unit_type=unit_type, **parts)


@compiled
def _first_illegal(actions, available):  # type: ignore[no-untyped-def]
    """battle * N + agent of the first action that a mask does not allow, -1 if all are allowed."""
    for b in range(actions.shape[0]):
        for u in range(actions.shape[1]):
            action = actions[b, u]
            if action < 0 or action >= available.shape[2] or not available[b, u, action]:
                return b * actions.shape[1] + u
    return -1


@inner
def _points(before_health, before_shield, health, shield, first, stop, death_value):  # type: ignore[no-untyped-def]
    """Health and shields that units lost, and the value of the deaths."""
    lost, deaths = 0.0, 0.0
    for u in range(first, stop):
        if before_health[u] > 0.0:
            had = np.float64(before_health[u]) + np.float64(before_shield[u])
            if health[u] > 0.0:
                lost += had - np.float64(health[u]) - np.float64(shield[u])
            else:
                lost += had
                deaths += death_value
    return lost, deaths


@inner
def _end(alive, fighters, has_healers):  # type: ignore[no-untyped-def]
    """How SMAC says a battle stands, from how many of (agents, enemies) live; where there are healers, a side of
    healers alone has lost, the agents' side first.
    """
    if (alive[0] == 0 and alive[1] > 0) or (has_healers and fighters[0] == 0):
        return Outcome.LOSS
    if (alive[0] > 0 and alive[1] == 0) or (has_healers and fighters[1] == 0):
        return Outcome.WIN
    return Outcome.DRAW if alive[0] == 0 and alive[1] == 0 else Outcome.RUNNING


@compiled
def _settle(  # type: ignore[no-untyped-def]
    before_health, before_shield, health, shield, agents, ints, fights, has_healers, rules, divisors, clipped, sparse,
    only_positive, steps, limit, reward, outcome, dead,
):  # fmt: skip
    """SMAC's reward, outcome and counts of the dead after a step; `clipped`: SMACv2's reward, which takes nothing for
    enemies that regain more than they lose.
    """
    death_value, win, defeat, negative_scale = rules
    units = health.shape[1]
    for b in range(health.shape[0]):
        parts = (before_health[b], before_shield[b], health[b], shield[b])
        lost, lost_deaths = _points(*parts, 0, agents, death_value)
        gained, gained_deaths = _points(*parts, agents, units, death_value)
        if only_positive:
            points = gained + gained_deaths
            total = max(points, 0.0) if clipped else abs(points)  # of shields that regenerate as well
        else:
            total = gained + (gained_deaths - lost_deaths * negative_scale) - lost * negative_scale
        if sparse:
            total = 0.0
        ours = theirs = our_fighters = their_fighters = 0
        for u in range(units):
            if health[b, u] > 0.0:
                if u < agents:
                    ours += 1
                    our_fighters += fights[ints[b, at.KIND, u]]
                else:
                    theirs += 1
                    their_fighters += fights[ints[b, at.KIND, u]]
        dead[b, 0], dead[b, 1] = agents - ours, units - agents - theirs
        end = _end((ours, theirs), (our_fighters, their_fighters), has_healers)
        if end == Outcome.WIN:
            total = 1.0 if sparse else total + win
        elif end == Outcome.LOSS:
            total = -1.0 if sparse else total + defeat
        elif end == Outcome.RUNNING and steps[b] >= limit:
            end = Outcome.LIMIT
        outcome[b], reward[b] = end, total / divisors[b]
