"""Commands of a client, turned into the engine's orders or into the API's reason why not."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np

from s2rm_data.starcraft.api.protocol import PLAYER, SYNONYMS
from s2rm_data.starcraft.api.server.game import Command, Game
from s2rm_data.starcraft.codes import Ability, Order
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.formation import CENTRE
from s2rm_data.starcraft.terrain_maps import SIZE
from s2rm_data.starcraft.units import UNIT_TYPES, can_hit

# error.proto, ActionResult
SUCCESS, NOT_SUPPORTED, ERROR = 1, 2, 3
QUEUE_IS_FULL = 203
MUST_TARGET_UNIT, YOU_CANT_CONTROL_THAT_UNIT = 81, 87
CANT_TARGET_DEAD, CANT_TARGET_THAT, CANT_TARGET_AIR = 152, 36, 112
MUST_TARGET_FRIENDLY, CANT_TARGET_FRIENDLY, UNIT_CANT_MOVE, CANT_USE_THERE = 105, 106, 38, 85

MOST_QUEUED = 32
# Clients compute a move from positions that the API has rounded to float32. A displacement this near to whole map
# units was meant to be whole (SMAC moves by 2) and is applied to the unrounded position, so that rounding does not
# enter the battle.
_WHOLE = 2.0**-17


def abilities_of(number: int) -> list[Ability]:
    unit = UNIT_TYPES[number]
    moves = [Ability.MOVE, Ability.PATROL, Ability.SMART] if unit.speed_per_second else []
    aims = [Ability.HEAL] if unit.is_healer else []
    return [Ability.STOP, *moves, *aims, Ability.ATTACK]


def give(game: Game, command: Any) -> int:
    """Carry out an ActionRawUnitCommand; the ActionResult of its last unit that could not, else success."""
    ability = SYNONYMS.get(command.ability_id, command.ability_id)
    if ability not in list(Ability):
        return NOT_SUPPORTED
    result, places = SUCCESS, _places(game, ability, command)
    for tag in command.unit_tags:
        outcome = _give_one(game, tag, ability, command, places)
        result = outcome if outcome != SUCCESS else result
    return result if command.unit_tags else ERROR


def _controlled(game: Game, tag: int) -> int | None:
    slot = game.slot(tag)
    return None if slot is None or (game.owner(slot) != PLAYER and not game.control_enemy) else slot


def _places(game: Game, ability: int, command: Any) -> dict[int, tuple[float, float]]:
    """Slot -> own goal of each unit that an attack-move sends, relative to the map's centre: a group keeps its form."""
    asked = (command.target_world_space_pos.x, command.target_world_space_pos.y)
    to_point = ability == Ability.ATTACK and command.HasField("target_world_space_pos")
    if not to_point or not all(np.isfinite(coordinate) for coordinate in asked):
        return {}
    slots = [slot for slot in (_controlled(game, tag) for tag in command.unit_tags) if slot is not None]
    group = [slot for slot in dict.fromkeys(slots) if UNIT_TYPES[int(game.arena.unit_type[slot])].speed_per_second > 0]
    if not group:
        return {}
    goals = game.arena.own_goals(group, (asked[0] - CENTRE, asked[1] - CENTRE))
    return dict(zip(group, goals, strict=True))


def _give_one(game: Game, tag: int, ability: int, command: Any, places: dict[int, tuple[float, float]]) -> int:
    slot = _controlled(game, tag)
    if slot is None:
        return YOU_CANT_CONTROL_THAT_UNIT
    order = _resolve(game, slot, ability, command, places)
    if isinstance(order, int):
        return order
    if command.queue_command and (game.queues.get(tag) or game.arena.orders().kind[0, slot] != Order.IDLE):
        queue = game.queues.setdefault(tag, deque())
        if len(queue) >= MOST_QUEUED:
            return QUEUE_IS_FULL
        queue.append(order)
        return SUCCESS
    game.queues.pop(tag, None)
    if order.again:
        x, y = game.arena.centred[slot]
        game.queues[tag] = deque([replace(order, goal=(float(x), float(y))), order])
    game.obey(slot, order)
    return SUCCESS


def _resolve(
    game: Game, slot: int, ability: int, command: Any, places: dict[int, tuple[float, float]]
) -> Command | int:
    """The engine's order for a unit, or why there is none."""
    if ability == Ability.STOP:
        return Command(kind=Order.IDLE)
    if command.HasField("target_unit_tag"):
        return _aim(game, slot, ability, command.target_unit_tag)
    if ability == Ability.HEAL or not command.HasField("target_world_space_pos"):
        return MUST_TARGET_UNIT
    asked = (command.target_world_space_pos.x, command.target_world_space_pos.y)
    if not all(np.isfinite(coordinate) for coordinate in asked):
        return CANT_USE_THERE
    moves = UNIT_TYPES[int(game.arena.unit_type[slot])].speed_per_second > 0
    if ability == Ability.ATTACK:
        return Command(kind=Order.ATTACK_MOVE, goal=places[slot]) if moves else Command(kind=Order.IDLE)
    goal = (_meant(game, slot, 0, asked[0]), _meant(game, slot, 1, asked[1]))
    if not moves:
        return UNIT_CANT_MOVE
    patrols = ability == Ability.PATROL
    return Command(kind=Order.ATTACK_MOVE if patrols else Order.MOVE, goal=goal, again=patrols)


def _meant(game: Game, slot: int, axis: int, asked: float) -> float:
    """The coordinate a client meant that knows the unit's own one in float32 only; beyond the map's edge there is
    nothing."""
    own = float(game.arena.centred[slot, axis])
    displacement = asked - float(np.float32(own + CENTRE))
    if abs(displacement - round(displacement)) < _WHOLE:
        return own + round(displacement)
    return min(max(asked, -float(SIZE)), 2.0 * SIZE) - CENTRE


def _aim(game: Game, slot: int, ability: int, tag: int) -> Command | int:
    target = game.slot(tag)
    if target is None:
        return CANT_TARGET_DEAD
    unit, other = (UNIT_TYPES[int(game.arena.unit_type[who])] for who in (slot, target))
    friendly = game.owner(slot) == game.owner(target)
    if ability == Ability.SMART:
        health, health_max = game.arena.floats[0, [at.HEALTH, at.HEALTH_MAX], target]
        heals = unit.is_healer and health < health_max
        ability = (Ability.HEAL if heals else Ability.MOVE) if friendly else Ability.ATTACK
    if ability in (Ability.MOVE, Ability.PATROL):
        x, y = game.arena.centred[target]
        return Command(kind=Order.MOVE, goal=(float(x), float(y)))  # to where it stands: the engine knows no following
    if ability == Ability.HEAL:
        if not unit.is_healer:
            return NOT_SUPPORTED
        if not friendly:
            return MUST_TARGET_FRIENDLY
        # One may aim at any friend; the engine ignores an order to heal what is not hurt or not biological.
        return Command(kind=Order.HEAL, target=tag)
    if friendly:
        return CANT_TARGET_FRIENDLY
    if not can_hit(unit, other):
        return CANT_TARGET_AIR if unit.damage else CANT_TARGET_THAT
    return Command(kind=Order.ATTACK, target=tag)
