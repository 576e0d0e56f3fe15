from __future__ import annotations

import numpy as np
import pytest

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft import terrain_maps as maps
from s2rm_data.starcraft.scenarios import SMAC
from s2rm_data.starcraft.terrain_maps import SIZE, terrain
from s2rm_data.starcraft.units import AIR, GROUND, WALKER


def test_band_is_walkable_from_y_8_to_24_at_every_x() -> None:
    walkable = np.zeros((SIZE, SIZE), dtype=bool)
    walkable[:, 8:24] = True
    assert (terrain("band").pathing == walkable).all()


def test_terrain_is_32_by_32_with_heights_as_the_api_encodes_them() -> None:
    for name in maps.names():
        ground = terrain(name)
        assert ground.pathing.shape == ground.height.shape == (SIZE, SIZE), name
        byte = ground.height * 255
        assert (byte == np.round(byte)).all(), name
        assert byte.min() >= 0 and byte.max() <= 255, name


def test_walkable_ground_of_the_band_lies_at_height_8() -> None:
    ground = terrain("band")
    assert (ground.z[ground.pathing] == 8.0).all()


def test_plateau_rises_by_two_over_its_ramps() -> None:
    ground = terrain("plateau")
    assert ground.z[16, 16] - ground.z[16, 9] == 2.0
    assert ground.z[2, 15] < ground.z[4, 15] < ground.z[6, 15] < ground.z[8, 15]


def test_a_colossus_steps_over_the_cliff_that_a_zergling_walks_around() -> None:
    ground = terrain("plateau")
    assert ground.passable[GROUND, 16, 12:14].tolist() == [False, True]  # measured: they stand on its upper edge
    assert ground.passable[WALKER, 16, 12:14].all()
    below, above = 16 * SIZE + 9, 16 * SIZE + 16
    assert ground.waypoint[WALKER, below, above] == above
    assert ground.waypoint[GROUND, below, above] not in (-1, above)


@pytest.mark.parametrize("name", maps.names())
def test_following_waypoints_leads_to_the_goal_over_walkable_cells(name: str) -> None:
    ground = terrain(name)
    cells = np.flatnonzero(ground.pathing.ravel())
    for start, goal in np.random.default_rng(0).choice(cells, (200, 2)):
        if ground.waypoint[GROUND, start, goal] < 0:
            continue
        here, hops = start, 0
        while here != goal and hops < 50:
            here = ground.waypoint[GROUND, here, goal]
            assert ground.pathing.ravel()[here]
            hops += 1
        assert here == goal


def test_enemies_of_every_smac_map_can_walk_to_the_agents() -> None:
    for scenario in SMAC.values():
        ground = terrain(scenario.terrain)
        for squad in scenario.enemies:
            start = int(squad.spawn[0]) * SIZE + int(squad.spawn[1])
            goal = int(scenario.agents[0].spawn[0]) * SIZE + int(scenario.agents[0].spawn[1])
            assert ground.waypoint[GROUND, start, goal] >= 0, scenario.name


def test_fliers_pass_everywhere() -> None:
    assert all(terrain(name).passable[AIR].all() for name in maps.names())


def test_an_unknown_terrain_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean 'corridor'"):
        terrain("coridor")


def test_the_way_into_a_wall_leads_to_the_nearest_walkable_cell() -> None:
    ground = terrain("plateau")
    inside_the_cliff, below = 16 * SIZE + 12, 16 * SIZE + 9
    assert ground.waypoint[GROUND, below, inside_the_cliff] == 16 * SIZE + 11
