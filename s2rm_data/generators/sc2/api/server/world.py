"""What a client can learn of a game apart from its units: map, players, catalogue, ways, abilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from s2rm_data.generators.sc2.api.catalogue import FIRST_CUSTOM_ID, STANDARD_ID, api_name
from s2rm_data.generators.sc2.api.server.game import Game
from s2rm_data.generators.sc2.api.server.orders import abilities_of
from s2rm_data.generators.sc2.codes import Ability
from s2rm_data.generators.sc2.formation import CENTRE
from s2rm_data.generators.sc2.maps import SIZE
from s2rm_data.generators.sc2.units import AIR, UNIT_TYPES, UnitType

_TERRAN, _ZERG, _PROTOSS = 1, 2, 3  # common.proto, Race
_PARTICIPANT, _COMPUTER = 1, 2  # sc2api.proto, PlayerType
_VERY_EASY, _RANDOM_BUILD = 1, 1  # sc2api.proto, Difficulty and AIBuild
_ATTRIBUTES = {"Light": 1, "Armored": 2, "Biological": 3, "Mechanical": 4, "Massive": 7, "Structure": 8}  # data.proto
_GROUND_ONLY, _ANY = 1, 3  # data.proto, Weapon.TargetType
# name, target (data.proto: 1 none, 2 point, 3 unit, 4 point or unit), general id
_ABILITIES = {
    Ability.SMART: ("Smart", 4, 0),
    Ability.STOP: ("Stop", 1, 3665),
    Ability.MOVE: ("Move", 4, 3794),
    Ability.ATTACK: ("Attack", 4, 3674),
    Ability.HEAL: ("MedivacHeal", 3, 0),
    3665: ("Stop", 1, 0),
    3794: ("Move", 4, 0),
    3674: ("Attack", 4, 0),
}


def race_of(unit: UnitType) -> int:
    return _ZERG if unit.zerg else _PROTOSS if unit.shield else _TERRAN


def write_game_info(response: Any, game: Game, options: Any, opponent: Any) -> None:
    """`options` of the client that joined; `opponent`: the Computer of create_game's player_setup, if there was one."""
    response.map_name = game.map_name
    response.mod_names.append("Mods/Liberty.SC2Mod")
    response.local_map_path = f"{game.map_name}.SC2Map"
    armies = (game.scenario.agent_types, game.scenario.enemy_types)
    for player, kind, types in ((1, _PARTICIPANT, armies[0]), (2, _COMPUTER, armies[1])):
        race = race_of(UNIT_TYPES[types[0]]) if types else _TERRAN
        info = response.player_info.add(player_id=player, type=kind, race_requested=race, race_actual=race)
        if kind == _COMPUTER:  # it decides nothing; clients want to read back what they asked for
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

    As the game's, both lists are dense: entry n has id n. What is not here is not `available`.
    """
    if request.ability_id:
        for ability_id in range(max(_ABILITIES) + 1):
            _write_ability(response.abilities.add(ability_id=ability_id), ability_id)
    if request.unit_type_id:
        known = {api_id: (number, api_name(number)) for number, api_id in STANDARD_ID.items()}
        known |= {api_id: (number, f"{api_name(number)}_RL") for number, api_id in game.custom.items()}
        for api_id in range(FIRST_CUSTOM_ID + len(game.custom)):
            data = response.units.add(unit_id=api_id)
            if api_id in known:
                _write_unit_type(data, *known[api_id])


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
    data.name, data.available, data.race = name, True, race_of(unit)
    data.attributes.extend(sorted(_ATTRIBUTES[attribute] for attribute in unit.attributes))
    data.sight_range, data.movement_speed, data.armor = unit.sight, unit.speed_per_second, unit.armour
    data.food_required = 1.0
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
