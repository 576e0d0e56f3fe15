"""Observations: every living unit of a game as the API's message.

As in the game, orders, weapon cooldown and target of the opponent's units are left out, unless the client asks to see
without fog (`disable_fog`): then both sides are given whole, which the game itself does not do.
"""

from __future__ import annotations

import math
from typing import Any

from s2rm_data.generators.sc2.api.catalogue import PLAYER
from s2rm_data.generators.sc2.api.packages import require_protocol
from s2rm_data.generators.sc2.api.server.game import Game
from s2rm_data.generators.sc2.codes import Ability, Order
from s2rm_data.generators.sc2.formation import CENTRE
from s2rm_data.generators.sc2.maps import SIZE
from s2rm_data.generators.sc2.units import AIR, UNIT_TYPES

_FLYING_HEIGHT = 3.75  # Assumption: how far above the ground a medivac is drawn; nothing else depends on it
_SELF, _ENEMY, _VISIBLE, _NOT_CLOAKED = 1, 4, 1, 3  # raw.proto
_ABILITY: dict[int, Ability] = {
    Order.MOVE: Ability.MOVE,
    Order.ATTACK: Ability.ATTACK,
    Order.ATTACK_MOVE: Ability.ATTACK,
    Order.HUNT: Ability.ATTACK,
    Order.HEAL: Ability.HEAL,
    Order.IDLE: Ability.STOP,
}  # of an order
_ALL_VISIBLE, _NO_CREEP = bytes([2]) * SIZE * SIZE, bytes(SIZE * SIZE // 8)


class Observer:
    """Writes observations of one game; keeps the messages of units, of which little changes from one time to the
    next.
    """

    def __init__(self, game: Game) -> None:
        self._game = game
        self._units: dict[int, Any] = {}
        self._z: list[list[float]] = game.terrain.z.tolist()  # [x][y]

    def write(self, response: Any, *, whole: bool) -> None:
        """Fill a ResponseObservation; `whole`: with what the game hides of the opponent."""
        game, observation = self._game, response.observation
        observation.game_loop = game.loop
        alive = game.alive
        common = observation.player_common
        common.player_id = PLAYER
        common.army_count = common.food_army = common.food_used = sum(game.owner(slot) == PLAYER for slot in alive)
        self._write_map(observation.raw_data)
        self._write_units(observation.raw_data, alive, whole)
        if game.died:
            observation.raw_data.event.dead_units.extend(game.died)
            for tag in game.died:
                self._units.pop(tag, None)
            game.died.clear()
        if game.result:
            response.player_result.add(player_id=1, result=game.result)
            response.player_result.add(player_id=2, result={1: 2, 2: 1, 3: 3}[game.result])

    @staticmethod
    def _write_map(raw: Any) -> None:
        raw.player.camera.x = raw.player.camera.y = SIZE / 2
        for image, bits, data in ((raw.map_state.visibility, 8, _ALL_VISIBLE), (raw.map_state.creep, 1, _NO_CREEP)):
            image.bits_per_pixel, image.size.x, image.size.y, image.data = bits, SIZE, SIZE, data

    def _write_units(self, raw: Any, alive: list[int], whole: bool) -> None:
        arena = self._game.arena
        seen, orders, facing = arena.snapshot(), arena.orders(), arena.facing[0].tolist()
        position, health, shield = seen.position[0].tolist(), seen.health[0].tolist(), seen.shield[0].tolist()
        energy, cooldown = seen.energy[0].tolist(), seen.cooldown_loops[0].tolist()
        kind, target, point = orders.kind[0].tolist(), orders.target[0].tolist(), orders.point[0].tolist()
        for slot in alive:
            tag = self._game.tag_of[slot]
            unit = self._units.get(tag)
            if unit is None:
                unit = self._units[tag] = self._describe(slot)
            x, y = position[slot]
            unit.pos.x, unit.pos.y, unit.pos.z = x, y, self._height(x, y) + (_FLYING_HEIGHT if unit.is_flying else 0.0)
            unit.health, unit.shield, unit.energy = health[slot], shield[slot], energy[slot]
            unit.facing = math.atan2(facing[slot][1], facing[slot][0]) % (2 * math.pi)
            unit.ClearField("orders")
            unit.ClearField("engaged_target_tag")
            if whole or unit.owner == PLAYER:
                unit.weapon_cooldown = cooldown[slot]
                self._write_order(unit, kind[slot], target[slot], point[slot])
            else:
                unit.ClearField("weapon_cooldown")
            raw.units.append(unit)

    def _describe(self, slot: int) -> Any:
        """What never changes of a unit."""
        game = self._game
        stats = UNIT_TYPES[int(game.arena.unit_type[slot])]
        unit = require_protocol().Observation().raw_data.units.add()
        unit.display_type, unit.cloak = _VISIBLE, _NOT_CLOAKED
        unit.tag, unit.owner, unit.unit_type = game.tag_of[slot], game.owner(slot), game.api_type(slot)
        unit.alliance = _SELF if unit.owner == PLAYER else _ENEMY
        unit.radius, unit.build_progress, unit.is_on_screen = stats.radius, 1.0, True
        unit.health_max, unit.shield_max, unit.energy_max = stats.health, stats.shield, stats.energy_max
        unit.is_flying = stats.plane == AIR
        return unit

    def _height(self, x: float, y: float) -> float:
        return self._z[min(max(int(x), 0), SIZE - 1)][min(max(int(y), 0), SIZE - 1)]

    def _write_order(self, unit: Any, kind: int, target: int, point: list[float]) -> None:
        engaged = self._game.tag_of[target] if target >= 0 else 0
        if kind in (Order.IDLE, Order.ATTACK, Order.ATTACK_MOVE, Order.HUNT) and engaged:
            unit.engaged_target_tag = engaged
        if kind == Order.IDLE:
            return
        order = unit.orders.add()
        order.ability_id = _ABILITY[kind]
        if kind in (Order.ATTACK, Order.HEAL) or (kind == Order.HUNT and engaged):
            order.target_unit_tag = engaged
        else:
            order.target_world_space_pos.x, order.target_world_space_pos.y = point
        for queued in self._game.queues.get(unit.tag, ()):
            more = unit.orders.add()
            more.ability_id = _ABILITY[queued.kind]
            if queued.target:
                more.target_unit_tag = queued.target
            elif queued.goal:
                x, y = queued.goal
                more.target_world_space_pos.x, more.target_world_space_pos.y = x + CENTRE, y + CENTRE
