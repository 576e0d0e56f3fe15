"""The API's requests, without a websocket: what each answers, and what is refused in which words."""

import gc
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from s2clientprotocol import sc2api_pb2 as api
from sc2_clients import Talker

from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft import terrain_maps as maps
from s2rm_data.starcraft.api.server.requests import ENDED, IN_GAME, INIT_GAME, LAUNCHED, QUIT, Client

MOVE, PATROL, ATTACK, STOP, HEAL, SMART = 16, 17, 23, 4, 386, 1
SUPPORTED = {
    "create_game", "join_game", "restart_game", "leave_game", "quit", "game_info", "observation", "action", "step",
    "data", "query", "save_replay", "available_maps", "ping", "debug",
}  # fmt: skip
REQUESTS = [field.name for field in api.Request.DESCRIPTOR.fields if field.name != "id"]


def test_the_status_follows_the_game() -> None:
    talker = Talker()
    assert talker.ask(ping=api.RequestPing()).status == LAUNCHED
    assert talker.create().status == INIT_GAME
    joined = talker.ask(join_game=api.RequestJoinGame(race=1, options=api.InterfaceOptions(raw=True)))
    assert joined.status == IN_GAME
    assert talker.step().status == IN_GAME
    assert talker.ask(leave_game=api.RequestLeaveGame()).status == LAUNCHED
    assert talker.ask(quit=api.RequestQuit()).status == QUIT


def test_a_response_repeats_the_id_of_its_request_and_has_none_without() -> None:
    talker = Talker()
    assert talker.ask(ping=api.RequestPing(), id=77).id == 77
    assert not talker.ask(ping=api.RequestPing()).HasField("id")


@pytest.mark.parametrize("name", [name for name in REQUESTS if name not in SUPPORTED])
def test_a_request_that_is_not_supported_is_refused_by_name(name: str) -> None:
    request = api.Request()
    getattr(request, name).SetInParent()
    talker = Talker().play()
    response = api.Response.FromString(talker.send(request.SerializeToString()))
    assert list(response.error) == [f"{name} is not supported by this server"]
    assert response.status == IN_GAME
    assert response.WhichOneof("response") is None


@pytest.mark.parametrize(
    "name", ["game_info", "observation", "action", "step", "data", "query", "save_replay", "debug"]
)
def test_what_needs_a_game_says_so_without_one(name: str) -> None:
    request = api.Request()
    getattr(request, name).SetInParent()
    assert list(api.Response.FromString(Client().answer(request.SerializeToString())).error) == ["Not in a game"]


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_bytes_bring_the_server_down(frame: bytes) -> None:
    response = api.Response.FromString(Client().answer(frame))
    assert response.HasField("status")


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_changed_byte_of_a_request_brings_the_server_down(data: st.DataObject) -> None:
    talker = Talker().play()
    request = api.Request(step=api.RequestStep(count=8), id=5)
    unit = talker.units(1)[0]
    action = api.RequestAction()
    command = action.actions.add().action_raw.unit_command
    command.ability_id, command.target_world_space_pos.x = MOVE, 3.0
    command.unit_tags.append(unit.tag)
    chosen = data.draw(st.sampled_from([request, api.Request(action=action)]))
    frame = bytearray(chosen.SerializeToString())
    frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    assert api.Response.FromString(talker.send(bytes(frame))).HasField("status")


def test_a_frame_that_is_no_request_is_named_as_such() -> None:
    response = api.Response.FromString(Client().answer(b"GET / HTTP/1.1"))
    assert "is not a request of the StarCraft II API" in response.error[0]


def test_fields_from_a_newer_protocol_are_ignored() -> None:
    newer = api.Request(ping=api.RequestPing()).SerializeToString() + b"\xfa\x7f\x03new"  # field 2047
    assert not api.Response.FromString(Client().answer(newer)).error


@pytest.mark.parametrize(
    ("setup", "error", "says"),
    [
        ({"local_map": api.LocalMap(map_path="SMAC_Maps/3s5x.SC2Map")}, "InvalidMapPath", "did you mean '3s5z'"),
        ({"local_map": api.LocalMap(map_data=b"MPQ")}, "InvalidMapPath", "neither a map_path nor"),
        ({"battlenet_map_name": "Abyssal Reef"}, "MissingMap", "Battle.net"),
        (
            {"local_map": api.LocalMap(map_path="3m"), "realtime": True},
            "InvalidPlayerSetup",
            "realtime is not supported",
        ),
    ],
)
def test_a_game_that_cannot_be_created_says_why(setup: dict[str, object], error: str, says: str) -> None:
    request = api.RequestCreateGame(**setup)
    request.player_setup.add(type=api.Participant)
    response = Talker().ask(create_game=request)
    assert api.ResponseCreateGame.Error.Name(response.create_game.error) == error
    assert says in response.create_game.error_details
    assert response.status == LAUNCHED


def test_players_are_one_participant_and_the_maps_own_opponent() -> None:
    request = api.RequestCreateGame(local_map=api.LocalMap(map_path="3m.SC2Map"))
    assert Talker().ask(create_game=request).create_game.error == api.ResponseCreateGame.MissingPlayerSetup
    for _ in range(2):
        request.player_setup.add(type=api.Participant)
    assert Talker().ask(create_game=request).create_game.error == api.ResponseCreateGame.MultiplayerUnsupported


def test_a_map_is_found_by_any_path_or_by_the_content_that_install_wrote() -> None:
    for local in (
        api.LocalMap(map_path="C:\\Games\\Maps\\SMAC_Maps\\3m.SC2Map"),
        api.LocalMap(map_path="/home/me/3m.SC2Map", map_data=b"MPQ\x1b..."),
        api.LocalMap(map_data=b"s2rm-data map: 3m\n"),
    ):
        request = api.RequestCreateGame(local_map=local)
        request.player_setup.add(type=api.Participant)
        assert Talker().ask(create_game=request).status == INIT_GAME


def test_joining_needs_a_game_and_raw_observations() -> None:
    talker = Talker()
    join = api.RequestJoinGame(race=1, options=api.InterfaceOptions(raw=True))
    assert "there is no game to join" in talker.ask(join_game=join).error[0]
    talker.create()
    response = talker.ask(join_game=api.RequestJoinGame(race=1, options=api.InterfaceOptions(score=True)))
    assert "options.raw" in response.join_game.error_details
    assert talker.ask(join_game=join).status == IN_GAME


def positions(talker: Talker) -> list[tuple[float, float]]:
    return [(unit.pos.x, unit.pos.y) for unit in talker.units()]


def fought(name: str, seed: int | None, **setup: object) -> list[tuple[float, float]]:
    talker = Talker().play(name, seed, **setup)
    talker.step(160)
    return positions(talker)


def test_a_battle_is_a_function_of_its_seed_all_64_bits_of_it() -> None:
    assert fought("3s5z", 5) == fought("3s5z", 5) != fought("3s5z", 6)
    assert fought("3s5z", 5) == fought("3s5z", 9, player_name="seed:5")
    assert fought("3s5z", 5) != fought("3s5z", 5, player_name=f"seed:{2**63 + 5}")
    assert fought("3s5z", 5) == fought("3s5z", 5, player_name="somebody")
    assert fought("3s5z", None) != fought("3s5z", None)


def test_a_restart_is_the_same_game_from_its_beginning() -> None:
    talker = Talker().play("3s5z")
    before = talker.units()
    talker.step(160)
    after = positions(talker)
    assert talker.ask(restart_game=api.RequestRestartGame()).status == IN_GAME
    again = talker.units()
    assert [unit.pos for unit in again] == [unit.pos for unit in before]
    assert not {unit.tag for unit in again} & {unit.tag for unit in before}
    talker.step(160)
    assert positions(talker) == after


def test_the_map_is_the_engines_terrain() -> None:
    start = Talker().play("corridor").ask(game_info=api.RequestGameInfo()).game_info.start_raw
    terrain = maps.terrain(scenarios.parse("corridor").terrain)
    assert (start.map_size.x, start.map_size.y, start.playable_area.p1.x) == (32, 32, 32)
    bits = np.unpackbits(np.frombuffer(start.pathing_grid.data, np.uint8)).reshape(32, 32)
    assert np.array_equal(bits.T.astype(bool), terrain.pathing)
    heights = np.frombuffer(start.terrain_height.data, np.uint8).reshape(32, 32)
    assert np.array_equal(heights.T / 255, terrain.height)


def test_the_catalogue_names_the_built_in_units_and_the_maps_own() -> None:
    data = Talker().play("MMM").ask(data=api.RequestData(unit_type_id=True, ability_id=True)).data
    names = {unit.unit_id: unit.name for unit in data.units}
    assert names[48] == "Marine"
    assert sorted(name for name in names.values() if name.endswith("_RL")) == ["Marauder_RL", "Marine_RL", "Medivac_RL"]
    marauder = next(unit for unit in data.units if unit.name == "Marauder")
    assert (marauder.weapons[0].damage, marauder.weapons[0].damage_bonus[0].bonus) == (10, 10)
    assert {ability.ability_id for ability in data.abilities} >= {MOVE, ATTACK, STOP, HEAL, SMART}


def test_pathing_queries_walk_around_walls_and_know_where_there_is_no_way() -> None:
    talker = Talker().play("corridor")
    query = api.Request().query
    unit = talker.units(1)[0]
    query.pathing.add(start_pos={"x": 12.5, "y": 18.5}, end_pos={"x": 3.5, "y": 9.5})  # around the inner corner
    query.pathing.add(unit_tag=unit.tag, end_pos={"x": unit.pos.x + 2, "y": unit.pos.y})
    query.pathing.add(unit_tag=unit.tag, end_pos={"x": 0.5, "y": 31.5})  # a wall
    query.abilities.add(unit_tag=unit.tag)
    query.placements.add(ability_id=318, target_pos={"x": 5, "y": 5})
    answer = talker.ask(query=query).query
    assert 1.2 * np.hypot(9, 9) < answer.pathing[0].distance < 2 * np.hypot(9, 9)
    assert [entry.distance for entry in answer.pathing][1:] == pytest.approx([2.0, 0.0])
    assert {entry.ability_id for entry in answer.abilities[0].abilities} == {STOP, MOVE, PATROL, SMART, ATTACK}
    assert answer.placements[0].result == 2


def test_a_replay_holds_what_was_ordered() -> None:
    talker = Talker().play("3m", seed=4)
    talker.order(talker.units(1)[:1], MOVE, at=(12.0, 16.0))
    replay = json.loads(talker.ask(save_replay=api.RequestSaveReplay()).save_replay.data)
    assert (replay["map"], replay["seed"], replay["events"][0]["what"]) == ("3m", 4, "move")


def test_a_step_has_bounds() -> None:
    talker = Talker().play()
    assert talker.step(1).step.simulation_loop == 1
    for count in (0, 10**6):
        assert "allowed are 1 to" in talker.step(count).error[0]


def test_a_battle_map_ends_the_game_with_a_result() -> None:
    talker = Talker().play("2m_vs_6m_battle")
    response = talker.step(2000)  # the agents shoot back, but are too few
    assert response.status == ENDED
    seen = talker.ask(observation=api.RequestObservation())
    assert [(entry.player_id, entry.result) for entry in seen.observation.player_result] == [(1, 2), (2, 1)]
    assert list(talker.step().error) == ["Game has already ended"]
    assert talker.ask(restart_game=api.RequestRestartGame()).status == IN_GAME


@pytest.mark.parametrize(("name", "side", "result"), [("2m_battle", 2, "Victory"), ("2m_battle", 1, "Defeat")])
def test_killing_an_army_decides_a_battle_map(name: str, side: int, result: str) -> None:
    talker = Talker().play(name)
    talker.debug(kill_unit={"tag": [unit.tag for unit in talker.units(side)]})
    seen = talker.ask(observation=api.RequestObservation())
    assert api.Result.Name(seen.observation.player_result[0].result) == result
    assert seen.status == ENDED


def held() -> int:
    """Bytes in use, without those of numba, whose table of types grows in a single leap now and then."""
    gc.collect()
    snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, "*/numba/*")])
    return sum(trace.size for trace in snapshot.traces)


def test_battles_and_games_leave_nothing_behind() -> None:
    talker, sizes = Talker(), []
    tracemalloc.start()
    try:
        for number in range(12):
            talker.play("3s5z", seed=number)
            for _ in range(3):  # battles of one game
                for _ in range(5):
                    talker.order(talker.units(1), MOVE, at=(12.0, 16.0))
                    talker.step()
                talker.debug(kill_unit={"tag": [unit.tag for unit in talker.units()]})
                talker.step()
            sizes.append(held())
    finally:
        tracemalloc.stop()
    # Eight games that stayed would hold more; numpy keeps freed pieces of memory for later, ever more of them.
    assert sizes[-1] < sizes[3] + 60_000
