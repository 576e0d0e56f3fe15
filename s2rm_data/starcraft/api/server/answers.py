"""What a client can learn of a game: its units, and map, players, catalogue, ways, abilities.

As in the game, orders, weapon cooldown and target of the opponent's units are left out, unless the client asks to see
without fog (`disable_fog`): then both sides are given whole, which the game itself does not do."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from s2rm_data.starcraft.api import protocol
from s2rm_data.starcraft.api.protocol import COMPUTER, FIRST_CUSTOM_ID, PARTICIPANT, PLAYER, STANDARD_ID, race_of
from s2rm_data.starcraft.api.server.game import Game
from s2rm_data.starcraft.api.server.orders import abilities_of
from s2rm_data.starcraft.codes import Ability, Order
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.formation import CENTRE
from s2rm_data.starcraft.terrain_maps import SIZE
from s2rm_data.starcraft.units import AIR, UNIT_TYPES

_TERRAN = 1  # common.proto, Race
_VERY_EASY, _RANDOM_BUILD = 1, 1  # sc2api.proto, Difficulty and AIBuild
_ATTRIBUTES = {"Light": 1, "Armored": 2, "Biological": 3, "Mechanical": 4, "Massive": 7, "Structure": 8}  # data.proto
_GROUND_ONLY, _ANY = 1, 3  # data.proto, Weapon.TargetType
# name, target (data.proto: 1 none, 2 point, 3 unit, 4 point or unit), general id
_ABILITIES = {
    Ability.SMART: ("Smart", 4, 0),
    Ability.STOP: ("Stop", 1, 3665),
    Ability.MOVE: ("Move", 4, 3794),
    Ability.PATROL: ("Patrol", 4, 3795),
    Ability.ATTACK: ("Attack", 4, 3674),
    Ability.HEAL: ("MedivacHeal", 3, 0),
    3665: ("Stop", 1, 0),
    3794: ("Move", 4, 0),
    3674: ("Attack", 4, 0),
    3795: ("Patrol", 4, 0),
}
_ABILITY_COUNT = 4200  # python-sc2 looks up all that the game has, the last of them 4132
# Minerals, gas and supply, of the game's own data (Liberty); what makes a unit, by which clients look up costs
_COSTS: dict[str, tuple[int, int, float, int]] = {
    "marine": (50, 0, 1, 560), "marauder": (100, 25, 2, 563), "medivac": (100, 100, 2, 620),
    "stalker": (125, 50, 2, 917), "zealot": (100, 0, 2, 916), "colossus": (300, 200, 6, 978),
    "hydralisk": (100, 50, 2, 1345), "zergling": (25, 0, 0.5, 1343), "baneling": (50, 25, 0.5, 80),
    "spine_crawler": (150, 0, 0, 1166),
}  # fmt: skip
_MAKERS = {21: "Barracks", 28: "Starport", 71: "RoboticsFacility", 151: "Larva"}  # where python-sc2 looks for costs


def write_game_info(response: Any, game: Game, options: Any, opponent: Any) -> None:
    """`options` of the client that joined; `opponent`: the Computer of create_game's player_setup, if there was one."""
    response.map_name = game.map_name
    response.mod_names.append("Mods/Liberty.SC2Mod")
    response.local_map_path = f"{game.map_name}.SC2Map"
    armies = (game.scenario.agent_types, game.scenario.enemy_types)
    for player, kind, types in ((1, PARTICIPANT, armies[0]), (2, COMPUTER, armies[1])):
        race = race_of(types[0]) if types else _TERRAN
        info = response.player_info.add(player_id=player, type=kind, race_requested=race, race_actual=race)
        if kind == COMPUTER:  # it decides nothing; clients want to read back what they asked for
            info.difficulty = opponent.difficulty if opponent is not None else _VERY_EASY
            info.ai_build = opponent.ai_build if opponent is not None else _RANDOM_BUILD
    if options is not None:
        response.options.CopyFrom(options)
    start = response.start_raw
    start.map_size.x = start.map_size.y = SIZE
    start.playable_area.p1.x = start.playable_area.p1.y = SIZE
    start.playable_area.p0.x = start.playable_area.p0.y = 0
    ground, z = game.terrain.pathing, game.terrain.z
    _write_bits(start.pathing_grid, ground)
    _write_bits(start.placement_grid, ground & (z == np.round(z)))  # ramps, at heights between, cannot be built upon
    _write_image(start.terrain_height, 8, np.rint(game.terrain.height * 255).astype(np.uint8).T.tobytes())
    x, y = game.scenario.enemies[0].spawn if game.scenario.enemies else (CENTRE, CENTRE)
    start.start_locations.add(x=x, y=y)


def _write_bits(image: Any, cells: np.ndarray) -> None:
    """(32, 32) cells [x, y] as rows of y, eight cells a byte, the first in the highest bit."""
    _write_image(image, 1, np.packbits(cells.T, axis=1).tobytes())


def _write_image(image: Any, bits: int, data: bytes) -> None:
    image.bits_per_pixel, image.size.x, image.size.y, image.data = bits, SIZE, SIZE, data


def write_data(response: Any, game: Game, request: Any) -> None:
    """The catalogue: abilities and unit types, the built-in ones and the map's own. There are no upgrades, buffs,
    effects.

    As the game's, both lists are dense: entry n has id n. What is not here is not `available`."""
    if request.ability_id:
        for ability_id in range(_ABILITY_COUNT):
            _write_ability(response.abilities.add(ability_id=ability_id), ability_id)
    if request.unit_type_id:
        known = {api_id: (number, protocol.api_name(number)) for number, api_id in STANDARD_ID.items()}
        known |= {api_id: (number, f"{protocol.api_name(number)}_RL") for number, api_id in game.custom.items()}
        for api_id in range(FIRST_CUSTOM_ID + len(game.custom)):
            data = response.units.add(unit_id=api_id)
            if api_id in known:
                _write_unit_type(data, *known[api_id])
            elif api_id in _MAKERS:
                data.name, data.available = _MAKERS[api_id], True


def _write_ability(data: Any, ability_id: int) -> None:
    if ability_id not in _ABILITIES:
        return
    name, data.target, general = _ABILITIES[ability_id]
    data.link_name = data.button_name = data.friendly_name = name
    data.available = True
    if general:
        data.remaps_to_ability_id = general


def _write_unit_type(data: Any, number: int, name: str) -> None:
    unit = UNIT_TYPES[number]
    data.name, data.available, data.race = name, True, race_of(number)
    data.attributes.extend(sorted(_ATTRIBUTES[attribute] for attribute in unit.attributes))
    data.sight_range, data.movement_speed, data.armor = unit.sight, unit.speed_per_second, unit.armour
    data.mineral_cost, data.vespene_cost, data.food_required, data.ability_id = _COSTS[unit.name]
    if unit.damage:
        weapon = data.weapons.add(damage=unit.damage, attacks=unit.hits, range=unit.range, speed=unit.period_s)
        weapon.type = _ANY if unit.shoots_air else _GROUND_ONLY
        for attribute, bonus in unit.bonus.items():
            weapon.damage_bonus.add(attribute=_ATTRIBUTES[attribute], bonus=bonus)


def way_length(game: Game, plane: int, start: tuple[float, float], end: tuple[float, float]) -> float:
    """How far a unit walks from one point to another; 0 if there is no way."""
    if not all(0 <= coordinate < SIZE for coordinate in (*start, *end)):
        return 0.0
    if plane == AIR:
        return math.dist(start, end)
    here, there = (int(x) * SIZE + int(y) for x, y in (start, end))
    waypoint, length, at = game.terrain.waypoint[plane], 0.0, start
    for _corner in range(SIZE * SIZE):
        cell = int(waypoint[here, there])
        if cell < 0:
            return 0.0
        if cell == there:
            return length + math.dist(at, end)
        corner = (cell // SIZE + 0.5, cell % SIZE + 0.5)
        length, at, here = length + math.dist(at, corner), corner, cell
    return 0.0


def write_query(response: Any, game: Game, request: Any) -> None:
    for query in request.pathing:
        slot = game.slot(query.unit_tag) if query.HasField("unit_tag") else None
        if query.HasField("unit_tag") and slot is None:
            response.pathing.add(distance=0.0)
            continue
        plane = UNIT_TYPES[int(game.arena.unit_type[slot])].plane if slot is not None else 0
        start = tuple(game.arena.centred[slot] + CENTRE) if slot is not None else (query.start_pos.x, query.start_pos.y)
        length = way_length(game, plane, (start[0], start[1]), (query.end_pos.x, query.end_pos.y))
        response.pathing.add(distance=length)
    for query in request.abilities:
        answer = response.abilities.add(unit_tag=query.unit_tag)
        slot = game.slot(query.unit_tag)
        if slot is None:
            continue
        answer.unit_type_id = game.api_type(slot)
        for ability in abilities_of(int(game.arena.unit_type[slot])):
            answer.abilities.add(ability_id=ability, requires_point=_ABILITIES[ability][1] == 2)
    for _placement in request.placements:
        response.placements.add(result=2)  # NotSupported: nothing can be built here


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
    next."""

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
        ours = [int(game.arena.unit_type[slot]) for slot in alive if game.owner(slot) == PLAYER]
        common.army_count, supply = len(ours), sum(_COSTS[UNIT_TYPES[number].name][2] for number in ours)
        common.food_army = common.food_used = math.ceil(supply)
        raw = observation.raw_data
        raw.player.camera.x = raw.player.camera.y = SIZE / 2
        _write_image(raw.map_state.visibility, 8, _ALL_VISIBLE)
        _write_image(raw.map_state.creep, 1, _NO_CREEP)
        self._write_units(raw, alive, whole)
        if game.died:
            raw.event.dead_units.extend(game.died)
            for tag in game.died:
                self._units.pop(tag, None)
            game.died.clear()
        if game.result:
            response.player_result.add(player_id=1, result=game.result)
            response.player_result.add(player_id=2, result={1: 2, 2: 1, 3: 3}[game.result])

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
        unit = protocol.require_protocol().Observation().raw_data.units.add()
        unit.display_type, unit.cloak = _VISIBLE, _NOT_CLOAKED
        unit.tag, unit.owner, unit.unit_type = game.tag_of[slot], game.owner(slot), game.api_type(slot)
        unit.alliance = _SELF if unit.owner == PLAYER else _ENEMY
        unit.radius, unit.build_progress, unit.is_on_screen = stats.radius, 1.0, True
        unit.health_max = float(game.arena.floats[0, at.HEALTH_MAX, slot])
        unit.shield_max, unit.energy_max = stats.shield, stats.energy_max
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
        order, queue = unit.orders.add(), self._game.queues.get(unit.tag, deque())
        patrols = bool(queue) and queue[0].again
        order.ability_id = Ability.PATROL if patrols else _ABILITY[kind]
        if kind in (Order.ATTACK, Order.HEAL) or (kind == Order.HUNT and engaged):
            order.target_unit_tag = engaged
        else:
            order.target_world_space_pos.x, order.target_world_space_pos.y = point
        for queued in () if patrols else queue:
            more = unit.orders.add()
            more.ability_id = _ABILITY[queued.kind]
            if queued.target:
                more.target_unit_tag = queued.target
            elif queued.goal:
                x, y = queued.goal
                more.target_world_space_pos.x, more.target_world_space_pos.y = x + CENTRE, y + CENTRE
