"""Units and commands through the API: who can be told what, and what is seen of whom."""

import numpy as np
import pytest
from s2clientprotocol import error_pb2 as errors
from s2clientprotocol import sc2api_pb2 as api
from sc2_clients import Talker

from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.units import UNIT_TYPES

MOVE, PATROL, ATTACK, STOP, HEAL, SMART = 16, 17, 23, 4, 386, 1
CONTROL_ENEMY = 2


def result(number: int) -> str:
    return errors.ActionResult.Name(number)


# SMACv2's maps are empty at the start: their clients create the units.
@pytest.mark.parametrize("name", [name for name in scenarios.names() if not scenarios.parse(name).generated])
def test_units_are_those_of_the_embedded_engine(name: str) -> None:
    """Positions, health, shields and energy in float32, agents first; also after the enemies have come and fought."""
    engine, talker = Engine(scenarios.parse(name), [7], head_start=False), Talker().play(name, seed=7)
    for loops in (0, 1, 39):
        if loops:
            engine.run_loops(loops)
            talker.step(loops)
        seen, units = engine.snapshot(), talker.units(whole=True)
        alive = np.nonzero(seen.health[0] > 0)[0]
        assert [(u.pos.x, u.pos.y) for u in units] == [tuple(p) for p in seen.position[0, alive].tolist()]
        assert [u.health for u in units] == seen.health[0, alive].tolist()
        assert [u.shield for u in units] == seen.shield[0, alive].tolist()
        assert [u.energy for u in units] == seen.energy[0, alive].tolist()
        assert [u.weapon_cooldown for u in units] == seen.cooldown_loops[0, alive].tolist()
        stats = [UNIT_TYPES[int(number)] for number in np.broadcast_to(seen.unit_type, seen.health.shape)[0, alive]]
        assert [u.radius for u in units] == pytest.approx([unit.radius for unit in stats])
        assert [(u.health_max, u.shield_max) for u in units] == [(unit.health, unit.shield) for unit in stats]


def test_the_ids_of_the_agents_follow_smacs_order() -> None:
    ids = [unit.unit_type for unit in Talker().play("1c3s5z").units(1)]
    assert [number - min(ids) for number in ids] == [0, 1, 1, 1, 2, 2, 2, 2, 2]
    assert {unit.unit_type for unit in Talker().play("1c3s5z").units(2)} == {4, 74, 73}


def test_a_unit_faces_where_it_walks() -> None:
    talker = Talker().play("3m")
    marine = talker.units(1)[0]
    talker.order([marine], MOVE, at=(marine.pos.x, marine.pos.y + 3))
    talker.step()
    after = talker.units(1)[0]
    assert after.facing == pytest.approx(np.pi / 2)
    assert after.pos.y > marine.pos.y + 1
    assert after.orders[0].ability_id == MOVE
    assert after.orders[0].target_world_space_pos.y == pytest.approx(marine.pos.y + 3)


def test_of_the_opponent_the_game_shows_neither_orders_nor_cooldowns() -> None:
    talker = Talker().play("3m")
    talker.step(60)
    assert not any(unit.orders or unit.HasField("weapon_cooldown") for unit in talker.units(2))
    seen = talker.units(2, whole=True)
    assert all(unit.orders[0].ability_id == ATTACK and unit.HasField("weapon_cooldown") for unit in seen)
    assert any(unit.engaged_target_tag for unit in seen)


def test_an_attack_goes_on_until_the_target_is_dead_and_its_tag_is_gone() -> None:
    talker = Talker().play("3m")
    enemy = talker.units(2)[0]
    talker.debug(kill_unit={"tag": [unit.tag for unit in talker.units(2)[1:]]})
    assert result(talker.order(talker.units(1), ATTACK, tag=enemy.tag)) == "Success"
    for _ in range(100):
        talker.step()
        seen = talker.ask(observation=api.RequestObservation()).observation.observation.raw_data
        if enemy.tag not in [unit.tag for unit in seen.units]:
            break
    assert list(seen.event.dead_units)[-1] == enemy.tag
    assert result(talker.order(talker.units(1), ATTACK, tag=enemy.tag)) == "CantTargetDeadUnits"


def test_medivacs_heal_and_marauders_cannot_shoot_at_them() -> None:
    talker = Talker().play("MMM")
    ours, theirs = talker.units(1), talker.units(2)
    kinds = sorted({unit.unit_type for unit in ours})
    marauder, marine, medivac = (next(unit for unit in ours if unit.unit_type == kind) for kind in kinds)
    flier = next(unit for unit in theirs if unit.unit_type == 54)
    assert result(talker.order([medivac], HEAL, tag=marine.tag)) == "Success"
    assert result(talker.order([medivac], HEAL, tag=theirs[0].tag)) == "MustTargetFriendlyUnits"
    assert result(talker.order([medivac], HEAL, at=(5.0, 5.0))) == "MustTargetUnit"
    assert result(talker.order([marine], HEAL, tag=medivac.tag)) == "NotSupported"
    assert result(talker.order([marauder], ATTACK, tag=flier.tag)) == "CantTargetAirUnits"
    assert result(talker.order([marine], ATTACK, tag=flier.tag)) == "Success"
    assert result(talker.order([marine], ATTACK, tag=medivac.tag)) == "CantTargetFriendlyUnits"


def test_smart_does_what_a_right_click_does() -> None:
    talker = Talker().play("MMM")
    ours, enemy = talker.units(1), talker.units(2)[0]
    medivac = max(ours, key=lambda unit: unit.unit_type)
    marine = next(unit for unit in ours if unit.unit_type == medivac.unit_type - 1)
    talker.order([marine], SMART, tag=enemy.tag)
    talker.order([medivac], SMART, tag=marine.tag)
    talker.order([ours[0]], SMART, at=(12.0, 12.0))
    orders = {unit.tag: unit.orders[0] for unit in talker.units(1) if unit.orders}
    assert (orders[marine.tag].ability_id, orders[marine.tag].target_unit_tag) == (ATTACK, enemy.tag)
    assert orders[medivac.tag].ability_id == MOVE  # the marine is not hurt
    assert orders[ours[0].tag].ability_id == MOVE


def test_general_ability_ids_mean_the_same() -> None:
    talker = Talker().play("3m")
    for general, meant in ((3794, MOVE), (3674, ATTACK)):
        talker.order(talker.units(1), general, at=(12.0, 12.0))
        assert {unit.orders[0].ability_id for unit in talker.units(1)} == {meant}
    talker.order(talker.units(1), 3665)
    assert not any(unit.orders for unit in talker.units(1))


def test_a_group_on_attack_move_keeps_its_form() -> None:
    """Each unit has a goal of its own, as far from the others' as the units are; one alone goes to the point itself."""
    talker = Talker().play("3m")
    talker.order(talker.units(1), ATTACK, at=(20.0, 16.0))
    units = talker.units(1)
    places = np.array([(unit.pos.x, unit.pos.y) for unit in units])
    goals = np.array([(u.orders[0].target_world_space_pos.x, u.orders[0].target_world_space_pos.y) for u in units])
    assert goals.mean(axis=0) == pytest.approx((20.0, 16.0))
    assert goals - goals[0] == pytest.approx(places - places[0], abs=1e-5)
    talker.order(units[:1], ATTACK, at=(20.0, 16.0))
    alone = talker.units(1)[0].orders[0].target_world_space_pos
    assert (alone.x, alone.y) == (20.0, 16.0)


def test_queued_orders_are_followed_one_after_the_other() -> None:
    talker = Talker().play("3m")
    talker.debug(kill_unit={"tag": [unit.tag for unit in talker.units(2)]})
    marine = talker.units(1)[0]
    x, y = marine.pos.x, marine.pos.y
    for at in ((x, y + 2), (x + 2, y + 2), (x + 2, y)):
        assert result(talker.order([marine], MOVE, at=at, queue=True)) == "Success"
    assert len(talker.units(1)[0].orders) == 3
    seen = []
    for _ in range(60):
        talker.step(1)
        unit = next(unit for unit in talker.units(1) if unit.tag == marine.tag)
        seen.append((unit.pos.x, unit.pos.y))
    for corner in ((x, y + 2), (x + 2, y + 2), (x + 2, y)):
        assert min(np.hypot(px - corner[0], py - corner[1]) for px, py in seen) < 0.15
    assert seen[-1] == pytest.approx((x + 2, y), abs=1e-6)


def test_a_patrol_goes_to_and_fro_until_another_order() -> None:
    talker = Talker().play("3m")
    talker.debug(kill_unit={"tag": [unit.tag for unit in talker.units(2)]})
    marine = talker.units(1)[0]
    x, y = marine.pos.x, marine.pos.y
    for patrol in (PATROL, 3795):
        assert result(talker.order([marine], patrol, at=(x + 2, y))) == "Success"
        seen = []
        for _ in range(100):
            talker.step(1)
            unit = next(unit for unit in talker.units(1) if unit.tag == marine.tag)
            assert [order.ability_id for order in unit.orders] == [PATROL]
            seen.append(unit.pos.x - x)
        turns = np.flatnonzero(np.diff(np.sign(np.diff(seen))))
        assert len(turns) >= 3 and max(seen) > 1.8 and min(seen[20:]) < 0.2
        talker.order([marine], MOVE, at=(x, y))
        talker.step(60)
    assert not next(unit for unit in talker.units(1) if unit.tag == marine.tag).orders


def test_an_order_replaces_what_was_queued() -> None:
    talker = Talker().play("3m")
    marine = talker.units(1)[0]
    for _ in range(3):
        talker.order([marine], MOVE, at=(9.0, 20.0), queue=True)
    talker.order([marine], MOVE, at=(12.0, 16.0))
    assert len(talker.units(1)[0].orders) == 1


def test_the_opponents_units_obey_only_under_control_enemy() -> None:
    talker = Talker().play("3m")
    enemies = talker.units(2)
    assert result(talker.order(enemies, STOP)) == "YouCantControlThatUnit"
    talker.debug(game_state=CONTROL_ENEMY)
    assert result(talker.order(enemies, STOP)) == "Success"
    talker.step(40)
    assert [unit.pos for unit in talker.units(2)] == [unit.pos for unit in enemies]


@pytest.mark.parametrize(
    ("ability", "options", "says"),
    [
        (MOVE, {}, "MustTargetUnit"),
        (18, {"at": (3.0, 3.0)}, "NotSupported"),
        (PATROL, {}, "MustTargetUnit"),
        (MOVE, {"at": (float("nan"), 3.0)}, "MustTargetWalkableLocation"),
        (ATTACK, {"tag": 12345}, "CantTargetDeadUnits"),
    ],
)
def test_an_impossible_command_gets_its_reason(ability: int, options: dict[str, object], says: str) -> None:
    talker = Talker().play("3m")
    assert result(talker.order(talker.units(1)[:1], ability, **options)) == says
    failed = talker.ask(observation=api.RequestObservation()).observation.action_errors
    assert [result(entry.result) for entry in failed] == [says]
    assert not talker.ask(observation=api.RequestObservation()).observation.action_errors


def test_commands_to_nobody_are_errors_and_chat_is_harmless() -> None:
    talker = Talker().play("3m")
    assert result(talker.order([], STOP)) == "Error"
    request = api.RequestAction()
    request.actions.add().action_chat.message = "gl hf"
    request.actions.add().action_ui.multi_panel.SetInParent()
    request.actions.add()
    assert [result(entry) for entry in talker.ask(action=request).action.result] == ["Success", "NotSupported", "Error"]


def test_armies_that_are_both_dead_come_back_with_new_tags_and_another_battle() -> None:
    talker = Talker().play("3s5z")
    tags, spots = set(), []
    for _ in range(3):
        units = talker.units()
        assert not tags & {unit.tag for unit in units}
        tags |= {unit.tag for unit in units}
        talker.step(160)
        spots.append([(unit.pos.x, unit.pos.y) for unit in talker.units()])
        talker.debug(kill_unit={"tag": [unit.tag for unit in talker.units()]})
        assert not talker.units()
        talker.step(1)
    assert len(tags) == 48
    assert len({tuple(spot) for spot in spots}) == 3


def test_one_army_alone_stays_alone_on_a_smac_map() -> None:
    talker = Talker().play("3m")
    talker.debug(kill_unit={"tag": [unit.tag for unit in talker.units(1)]})
    talker.step(16)
    assert (len(talker.units(1)), len(talker.units(2))) == (0, 3)


def test_units_are_created_where_asked_and_fight() -> None:
    talker = Talker().play("3m")
    talker.debug(kill_unit={"tag": [unit.tag for unit in talker.units(2)[1:]]})
    for owner, kind in ((1, 48), (2, 73)):
        where = {"x": 14.5, "y": 12.25 + 3 * owner}
        talker.debug(create_unit={"unit_type": kind, "owner": owner, "pos": where, "quantity": 2})
    ours, theirs = talker.units(1)[3:], talker.units(2)[1:]
    assert [unit.unit_type for unit in (*ours, *theirs)] == [48, 48, 73, 73]
    for army, y in ((ours, 15.25), (theirs, 18.25)):
        assert (army[0].pos.x, army[0].pos.y) == (14.5, y)
        gap = np.hypot(army[1].pos.x - army[0].pos.x, army[1].pos.y - army[0].pos.y)
        assert 0.6875 <= gap < 1.0  # the second stands beside the first, a sixteenth inside both radii
    talker.step(48)
    hurt = [unit.health + unit.shield < unit.health_max + unit.shield_max for unit in talker.units(2)[1:]]
    assert any(hurt)  # a standard marine attacks by itself, SMAC's own do not


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ({"unit_type": 999}, "no unit type 999"),
        ({"unit_type": 48, "owner": 5}, "no player 5"),
        ({"unit_type": 48, "pos": {"x": 40.0, "y": 5.0}}, "outside of the map"),
        ({"unit_type": 48, "quantity": 200}, "no room for a marine"),
    ],
)
def test_a_unit_that_cannot_be_created_is_an_error(unit: dict[str, object], says: str) -> None:
    talker = Talker().play("3m")
    whole = {"unit_type": 48, "owner": 1, "pos": {"x": 5.0, "y": 12.0}, "quantity": 1} | unit
    refusals = [talker.debug(create_unit=whole).error for _ in range(3)]
    assert any(says in error for refusal in refusals for error in refusal)
    assert not talker.step().error


def test_nobody_is_created_inside_a_wall() -> None:
    talker = Talker().play("3m")
    talker.debug(create_unit={"unit_type": 73, "owner": 2, "pos": {"x": 5.0, "y": 3.0}, "quantity": 1})
    assert talker.units(2)[-1].pos.y >= 8  # the band of ground that one can stand on begins there


def test_debug_commands_that_do_nothing_here_are_refused_by_name() -> None:
    talker = Talker().play("3m")
    assert "game_state 6 is not supported" in talker.debug(game_state=6).error[0]
    assert "unit_value is not supported" in talker.debug(unit_value={"unit_value": 2, "value": 1.0}).error[0]
    assert not talker.debug(draw={}).error


def test_many_created_and_killed_units_leave_no_trace() -> None:
    talker = Talker().play("3m")
    for _ in range(30):
        talker.debug(create_unit={"unit_type": 105, "owner": 2, "pos": {"x": 25.0, "y": 12.0}, "quantity": 30})
        talker.step(2)
        talker.debug(kill_unit={"tag": [unit.tag for unit in talker.units(2)]})
        talker.step(2)
    assert len(talker.units(1)) == 3
    assert not talker.units(2)
