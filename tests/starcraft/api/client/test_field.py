"""What the adapter reads off snapshots is what the engine computes from its own state."""

import numpy as np
from s2clientprotocol import sc2api_pb2 as api

from s2rm_data.starcraft import terrain_maps as maps
from s2rm_data.starcraft.api.client.battle import host_map
from s2rm_data.starcraft.api.client.field import Slots, orders_of, read_pathing
from s2rm_data.starcraft.api.protocol import STANDARD_ID, custom_ids, types_by_id
from s2rm_data.starcraft.codes import Order
from s2rm_data.starcraft.scenarios import SMAC, parse
from s2rm_data.starcraft.units import NUMBER_OF


def test_pathing_is_read_from_bits_and_from_the_bytes_of_old_games() -> None:
    cells = maps.terrain("corridor").pathing
    info = api.ResponseGameInfo()
    image = info.start_raw.pathing_grid
    image.size.x = image.size.y = 32
    image.bits_per_pixel, image.data = 1, np.packbits(cells.T, axis=1).tobytes()
    np.testing.assert_array_equal(read_pathing(info), cells)
    image.bits_per_pixel, image.data = 8, np.where(cells, 0, 255).astype(np.uint8).T[::-1].tobytes()
    np.testing.assert_array_equal(read_pathing(info), cells)


def test_agents_stand_in_smacs_order_and_enemies_as_observed() -> None:
    def unit(kind: int, tag: int, x: float, y: float) -> object:
        return api.Observation().raw_data.units.add(unit_type=kind, tag=tag, pos={"x": x, "y": y})

    stalker, zealot = NUMBER_OF["stalker"], NUMBER_OF["zealot"]
    agents = [unit(1971, 1, 2, 9), unit(1970, 2, 5, 1), unit(1970, 3, 4, 7), unit(1971, 4, 2, 8)]
    enemies = [unit(STANDARD_ID[zealot], 9, 1, 1), unit(STANDARD_ID[stalker], 8, 0, 0)]
    slots = Slots.assign({1970: stalker, 1971: zealot}, agents, enemies)
    assert slots.tags == (3, 2, 4, 1, 9, 8)
    assert slots.agents == 4
    assert slots.unit_type.tolist() == [stalker, stalker, zealot, zealot, zealot, stalker]


def test_enemies_whose_orders_are_hidden_have_their_standing_order() -> None:
    """The real game leaves out what the served engine shows."""
    kind = STANDARD_ID[NUMBER_OF["zealot"]]
    unit = api.Observation().raw_data.units.add(unit_type=kind, tag=5, owner=2, health=10)
    slots = Slots.assign({}, [], [unit])
    orders = orders_of([unit], slots, parse("3s5z"), (9.0, 16.0))
    assert (orders.kind[0, 0], orders.target[0, 0], orders.point[0, 0].tolist()) == (Order.ATTACK_MOVE, -1, [9.0, 16.0])


def test_a_scenario_is_played_on_its_own_map_or_on_one_that_has_its_units() -> None:
    assert host_map(parse("MMM2")).name == "MMM2"
    assert host_map(parse("1s2z")).name == "2s3z"
    assert host_map(parse("5s3z")).name == "2s3z"
    assert host_map(parse("2c4s")).name == "1c3s5z"
    assert host_map(parse("1mr3m")).name == "MMM"
    assert {host_map(parse(name)).name for name in SMAC} == set(SMAC)


def test_ids_of_a_maps_own_units_are_recognised_by_their_order() -> None:
    kinds = [NUMBER_OF[name] for name in ("zealot", "colossus", "stalker")]
    ids = custom_ids(kinds, first=1922)
    assert [ids[NUMBER_OF[name]] for name in ("colossus", "stalker", "zealot")] == [1922, 1923, 1924]
    assert types_by_id(ids.values(), kinds) == {api_id: number for number, api_id in ids.items()}
    assert types_by_id([1922], kinds) == {}
