"""One episode in a running game, as the roll-out sees any back end: snapshots and masks out, actions in.

A scenario with a SMAC map is played on that map. Any other is played on the SMAC map whose own units cover it best: the
map's armies are removed, the scenario's are created by debug commands, and the enemies are sent on their attack-move.
"""

# U units of both sides, N agents = the first units, A actions; one battle: B = 1

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from s2rm_data.starcraft import rules, scenarios
from s2rm_data.starcraft.api import protocol
from s2rm_data.starcraft.api.client.field import (
    Slots,
    armies,
    available_actions,
    orders_of,
    read_pathing,
    snapshot_of,
)
from s2rm_data.starcraft.api.client.process import GameFault, GameProcess, faults
from s2rm_data.starcraft.codes import Ability, Action, Outcome, Snapshot
from s2rm_data.starcraft.engine import Engine, Orders
from s2rm_data.starcraft.engine.batch import HEAD_START_LOOPS
from s2rm_data.starcraft.rules import MOVES, Rewards
from s2rm_data.starcraft.scenarios import Scenario
from s2rm_data.starcraft.units import LOOPS_PER_STEP, SMAC_RANK, UNIT_TYPES

_VERY_HARD = 7  # SMAC's difficulty of the opponent, which has nothing to decide
_MOST_WAITING_LOOPS = 64


def host_map(scenario: Scenario) -> Scenario:
    """The SMAC map to play a scenario on: its own, or one on the same terrain with the most of its agents' kinds."""
    if scenario.name in scenarios.SMAC:
        return scenarios.SMAC[scenario.name]
    wanted = {squad.unit_type for squad in scenario.agents}

    def fitness(host: Scenario) -> tuple[int, int, int]:
        kinds = {squad.unit_type for squad in host.agents}
        return -len(wanted & kinds), len(kinds - wanted), host.agent_count + host.enemy_count

    return min((host for host in scenarios.SMAC.values() if host.terrain == scenario.terrain), key=fitness)


class GameBattle:
    """`rollout.Battles` for one battle of a running game."""

    def __init__(self, game: GameProcess, scenario: Scenario, seed: int) -> None:
        self._api = protocol.require_protocol()
        self._game, self._controller, self._scenario = game, game.controller, scenario
        self._goal = scenario.order_segment[0]
        host = host_map(scenario)
        sizes = host.agent_count, host.enemy_count
        game.create_game(self._request(host, seed))
        with faults():
            self._pathing = read_pathing(self._controller.game_info())
            self._observation = self._wait(lambda ours, theirs: (len(ours), len(theirs)) == sizes, "the map's armies")
            types = self._custom_types(host)
            known = host is scenario
            self._slots = Slots.assign(types, *armies(self._observation)) if known else self._spawn(host, types, seed)
            # A game's first battle is seen a loop earlier than all others; here every battle is its game's first.
            self._controller.step(HEAD_START_LOOPS)
            self._look()
        theirs = armies(self._observation)[1]
        points = sum(unit.health_max + unit.shield_max for unit in theirs)
        self._max_reward = rules.max_reward(points, len(theirs), Rewards())
        self.reward = np.zeros(1)
        self._outcome: int = Outcome.RUNNING
        self._steps = 0

    def _request(self, host: Scenario, seed: int) -> Any:
        path = f"SMAC_Maps/{host.name}.SC2Map"
        request = self._api.RequestCreateGame(realtime=False, random_seed=seed & 0xFFFFFFFF)
        request.local_map.map_path, request.local_map.map_data = path, self._game.map_data(path)
        request.player_setup.add(
            type=protocol.PARTICIPANT, race=_race(host.agents), player_name=f"{protocol.SEED_NAME}{seed}"
        )
        request.player_setup.add(type=protocol.COMPUTER, race=_race(host.enemies), difficulty=_VERY_HARD)
        return request

    # setting up

    def _wait(self, ready: Callable[[list[Any], list[Any]], bool], what: str) -> Any:
        """The first observation that is ready; the game may need some loops for what it was told to create."""
        for _ in range(_MOST_WAITING_LOOPS):
            observation = self._controller.observe(disable_fog=True)
            if ready(*armies(observation)):
                return observation
            self._controller.step(1)
        ours, theirs = armies(observation)
        raise GameFault(f"{what} did not appear: there are {len(ours)} agents and {len(theirs)} enemies")

    def _custom_types(self, host: Scenario) -> dict[int, int]:
        ours, _ = armies(self._observation)
        types = protocol.types_by_id((unit.unit_type for unit in ours), (squad.unit_type for squad in host.agents))
        if not types:
            raise GameFault(
                f"the agents of map {host.name} have {len({unit.unit_type for unit in ours})} kinds of units"
            )
        return types

    def _spawn(self, host: Scenario, types: dict[int, int], seed: int) -> Slots:
        """Replace the map's armies by the scenario's, unit by unit where the embedded engine would put them.

        Meanwhile somebody stands far away from them all: if nobody is left on the field, the map creates its own again.
        """
        ids = protocol.STANDARD_ID | {number: api_id for api_id, number in types.items()}
        before = [unit for army in armies(self._observation) for unit in army]
        start = Engine(self._scenario, [seed], head_start=False)
        agents = self._scenario.agent_count
        spots = [(float(x), float(y)) for x, y in start.position[0]]
        self._create(protocol.STANDARD_ID[host.agents[0].unit_type], protocol.PLAYER, self._far_from(spots))
        old = {unit.tag for unit in before}
        seen = self._wait(lambda ours, theirs: len(ours) + len(theirs) == len(old) + 1, "the one that stays")
        self._kill(old)
        self._wait(lambda ours, theirs: len(ours) + len(theirs) == 1, "an empty field")
        for slot, (number, spot) in enumerate(zip(start.kinds[0].tolist(), spots, strict=True)):
            owner = protocol.PLAYER if slot < agents else protocol.OPPONENT
            self._create(ids[number] if owner == protocol.PLAYER else protocol.STANDARD_ID[number], owner, spot)
        old |= {unit.tag for army in armies(seen) for unit in army}
        self._kill(old)
        self._observation = self._wait(
            lambda ours, theirs: (
                len(ours) == agents
                and len(theirs) == self._scenario.enemy_count
                and all(unit.tag not in old for unit in (*ours, *theirs))
            ),
            "the scenario's armies",
        )
        ours, theirs = armies(self._observation)
        self._send_enemies([unit.tag for unit in theirs])
        return Slots.assign(protocol.TYPE_OF_STANDARD | types, ours, theirs)

    def _debug(self, **command: Any) -> None:
        request = self._api.RequestDebug()
        request.debug.add(**command)
        self._controller.debug(list(request.debug))

    def _kill(self, tags: set[int]) -> None:
        self._debug(kill_unit={"tag": sorted(tags)})

    def _far_from(self, spots: list[tuple[float, float]]) -> tuple[float, float]:
        """The middle of the walkable cell farthest from all of these."""
        cells = np.argwhere(self._pathing) + 0.5
        gaps = np.min(np.sum((cells[:, None] - np.array(spots)[None]) ** 2, axis=-1), axis=1)
        x, y = cells[np.argmax(gaps)]
        return float(x), float(y)

    def _create(self, api_type: int, owner: int, spot: tuple[float, float]) -> None:
        position = {"x": spot[0], "y": spot[1]}
        self._debug(create_unit={"unit_type": api_type, "owner": owner, "pos": position, "quantity": 1})

    def _send_enemies(self, tags: list[int]) -> None:
        self._debug(game_state=protocol.CONTROL_ENEMY)
        request = self._api.RequestAction()
        command = request.actions.add().action_raw.unit_command
        command.ability_id = Ability.ATTACK
        command.unit_tags.extend(tags)
        command.target_world_space_pos.x, command.target_world_space_pos.y = self._goal
        self._controller.actions(request)

    # playing

    def _look(self) -> None:
        self._observation = self._controller.observe(disable_fog=True)
        self._snapshot = snapshot_of(self._observation.observation.raw_data.units, self._slots)

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def available(self) -> NDArray[np.bool_]:
        return available_actions(self._snapshot, self._pathing)

    def orders(self) -> Orders:
        return orders_of(self._observation.observation.raw_data.units, self._slots, self._scenario, self._goal)

    @property
    def done(self) -> NDArray[np.bool_]:
        return np.array([self._outcome != Outcome.RUNNING])

    @property
    def outcome(self) -> NDArray[np.int64]:
        return np.array([self._outcome])

    def step(self, actions: ArrayLike) -> None:
        if self._outcome != Outcome.RUNNING:
            self.reward = np.zeros(1)
            return
        before = self._snapshot
        with faults():
            self._controller.actions(self._orders_for(np.asarray(actions)[0]))
            self._controller.step(LOOPS_PER_STEP)
            self._look()
        self._steps += 1
        self._judge(before)

    def _orders_for(self, actions: NDArray[Any]) -> Any:
        request = self._api.RequestAction()
        for agent, action in enumerate(actions.tolist()):
            if action >= Action.STOP and self._snapshot.health[0, agent] > 0:
                self._order(request.actions.add().action_raw.unit_command, agent, action)
        return request

    def _order(self, command: Any, agent: int, action: int) -> None:
        command.unit_tags.append(self._slots.tags[agent])
        if action == Action.STOP:
            command.ability_id = Ability.STOP
        elif action < Action.ATTACK:
            command.ability_id = Ability.MOVE
            dx, dy = MOVES[action]
            x, y = self._snapshot.position[0, agent].tolist()
            command.target_world_space_pos.x, command.target_world_space_pos.y = x + dx, y + dy
        else:
            heals = UNIT_TYPES[int(self._slots.unit_type[agent])].is_healer
            command.ability_id = Ability.HEAL if heals else Ability.ATTACK
            command.target_unit_tag = self._slots.tags[action - Action.ATTACK + (0 if heals else self._slots.agents)]

    def _judge(self, before: Snapshot) -> None:
        """SMAC's reward and outcome of the step, from what was seen before and after it."""
        now, reward, outcome = self._snapshot, np.zeros(1), np.zeros(1, dtype=np.int64)
        rules.settle(
            before.health, before.shield, now.health, now.shield, now.unit_type[None], rules.table(), now.agents,
            Rewards(), self._scenario.has_healers, np.array([self._steps]), self._scenario.limit_steps, np.ones(1),
            reward, outcome, np.zeros((1, 2), dtype=np.int64),
        )  # fmt: skip
        self._outcome = int(outcome[0])
        self.reward = reward * rules.REWARD_SCALE / self._max_reward


def _race(army: tuple[scenarios.Squad, ...]) -> int:
    return protocol.race_of(min((squad.unit_type for squad in army), key=SMAC_RANK.__getitem__))
