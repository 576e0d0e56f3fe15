"""Polar images: against a plain oracle, and the rules the module's docstring states."""

import hashlib
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from s2rm_data.core.errors import UsageError
from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.starcraft import codes as channels
from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.polar import PolarGrid, render
from s2rm_data.starcraft.units import NUMBER_OF

MARINE, MEDIVAC, STALKER, ZEALOT = (NUMBER_OF[name] for name in ("marine", "medivac", "stalker", "zealot"))

GRID = PolarGrid(radial=16, angular=32, radius=9.0)
FLAT = np.full((32, 32), 7, np.uint8)
States = dict[str, NDArray[Any]]


def battle(agents: list[tuple[float, float]], enemies: list[tuple[float, float]], agent_type: int = STALKER) -> States:
    """One step of one episode, everybody alive."""
    position = np.array([[agents + enemies]], dtype=np.float32)
    units = position.shape[2]
    return {
        "unit_type": np.array([[agent_type] * len(agents) + [ZEALOT] * len(enemies)], np.uint8),
        "unit_position": position,
        "unit_health": np.full((1, 1, units), 80, np.float32),
        "unit_energy": np.full((1, 1, units), 50, np.float32),
        "unit_cooldown": np.full((1, 1, units), 8, np.float32),
        "unit_shield": np.full((1, 1, units), 40, np.float32),
        "action": np.full((1, 1, len(agents)), Action.STOP, np.int16),
        "length": np.array([1]),
    }


def random_states(seed: int, episodes: int = 2, steps: int = 6, agents: int = 5, units: int = 12) -> States:
    rng = np.random.default_rng(seed)
    shape = (episodes, steps, units)
    alive = rng.random(shape) < 0.8
    stats = {name: rng.integers(0, 2400, shape) / 16 for name in ("energy", "cooldown", "shield")}
    return {
        "unit_type": rng.integers(1, 10, (episodes, units)).astype(np.uint8),
        "unit_position": (rng.random((*shape, 2)) * 16 + 8).astype(np.float32),
        "unit_health": (alive * rng.integers(1, 3000, shape) / 10).astype(np.float32),
        **{f"unit_{name}": value.astype(np.float32) for name, value in stats.items()},
        "action": rng.integers(1, Action.ATTACK + units - agents, (episodes, steps, agents)).astype(np.int16),
        "length": rng.integers(1, steps + 1, episodes),
    }


def oracle(states: States, grid: PolarGrid, terrain: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """The same images the slow way: real angles, and for each cell a sorted list of who falls into it."""
    B, T, N = states["action"].shape
    shape = (B, T, N, grid.radial, grid.angular)
    out = {
        "categories": np.zeros((*shape, 3), np.uint8),
        "hecs": np.zeros((*shape, 4), np.float32),
        "height": np.zeros(shape, np.uint8),
        "units_in_view": np.zeros(B, np.int32),
        "units_lost": np.zeros(B, np.int32),
    }
    for b, t, a in np.ndindex(B, T, N):
        if t < states["length"][b] and states["unit_health"][b, t, a] > 0:
            _oracle_image(states, grid, terrain, (b, t, a), out)
    return out


def _oracle_image(
    states: States, grid: PolarGrid, terrain: NDArray[np.uint8], where: tuple[int, int, int], out: dict[str, Any]
) -> None:
    b, t, a = where
    agents = states["action"].shape[2]
    x, y = map(float, states["unit_position"][b, t, a])
    rho, phi = grid.radius / grid.radial, 2 * math.pi / grid.angular
    cells: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for u in range(states["unit_type"].shape[1]):
        dx, dy = states["unit_position"][b, t, u, 0] - x, states["unit_position"][b, t, u, 1] - y
        r = math.hypot(dx, dy)
        if states["unit_health"][b, t, u] > 0 and r < grid.radius:
            i = min(round(r / rho), grid.radial - 1)
            j = round(math.atan2(dy, dx) / phi) % grid.angular if i else 0
            off = math.hypot(dx - i * rho * math.cos(j * phi), dy - i * rho * math.sin(j * phi))
            cells.setdefault((i, j), []).append((off, u))
    for (i, j), found in cells.items():
        u = min(found)[1]
        out["units_in_view"][b] += len(found)
        out["units_lost"][b] += len(found) - 1
        kind = states["unit_type"][b, u]
        category = _oracle_action(int(states["action"][b, t, u]), kind) if u < agents else 1
        out["categories"][b, t, a, i, j] = u < agents, kind, category
        stats = [states[f"unit_{name}"][b, t, u] for name in channels.HECS_CHANNELS]
        out["hecs"][b, t, a, i, j] = np.array(stats, np.float64) / channels.HECS_DIVISORS
    for i, j in np.ndindex(grid.radial, grid.angular):
        column = math.floor(x + i * rho * math.cos(j * phi))
        row = math.floor(y + i * rho * math.sin(j * phi))
        if 0 <= column < terrain.shape[0] and 0 <= row < terrain.shape[1]:
            out["height"][b, t, a, i, j] = terrain[column, row]


def _oracle_action(action: int, kind: int) -> int:
    names = {1: "stop", 2: "north", 3: "south", 4: "east", 5: "west"}
    name = names.get(action, "heal" if kind == MEDIVAC else "attack")
    return channels.ACTION_CATEGORIES.index(name)


@pytest.mark.parametrize(
    "grid", [GRID, PolarGrid(radial=5, angular=12, radius=7.5), PolarGrid(radial=24, angular=48, radius=9.0)]
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_images_equal_a_plain_oracle(grid: PolarGrid, seed: int) -> None:
    terrain = np.random.default_rng(seed).integers(0, 256, (32, 30)).astype(np.uint8)
    states = random_states(seed)
    images, expected = render(states, grid=grid, terrain=terrain), oracle(states, grid, terrain)
    for name, value in expected.items():
        assert images[name].dtype == value.dtype
        assert np.array_equal(images[name], value), name


def cells_of(images: dict[str, NDArray[Any]], agent: int = 0) -> set[tuple[int, int]]:
    return set(map(tuple, np.argwhere(images["categories"][0, 0, agent, ..., channels.UNIT_TYPE]).tolist()))


def test_east_is_j_0_and_north_a_quarter_turn_on() -> None:
    images = render(battle([(16, 16), (20.5, 16), (16, 20.5)], [(11.5, 16), (16, 11.5)]), grid=GRID, terrain=FLAT)
    assert cells_of(images) == {(0, 0), (8, 0), (8, 8), (8, 16), (8, 24)}
    assert images["categories"][0, 0, 0, 8, :, channels.FRIENDLY].nonzero()[0].tolist() == [0, 8]


@pytest.mark.parametrize("turns", [1, 5, 31])
def test_turning_the_battle_by_one_angular_cell_shifts_the_image_by_one(turns: int) -> None:
    rng = np.random.default_rng(3)
    r, angle = rng.uniform(1, 8.9, 9), rng.uniform(0, 2 * math.pi, 9)

    def image(shift: float) -> NDArray[Any]:
        around = [(16 + a * math.cos(b + shift), 16 + a * math.sin(b + shift)) for a, b in zip(r, angle, strict=True)]
        return render(battle([(16, 16), *around[:4]], around[4:]), grid=GRID, terrain=FLAT)["categories"][0, 0, 0]

    plain, turned = image(0.0), image(turns * 2 * math.pi / 32)
    assert np.array_equal(turned[1:], np.roll(plain[1:], turns, axis=1))
    assert np.array_equal(turned[0], plain[0])


def test_the_edge_of_two_sectors_belongs_to_the_counter_clockwise_one() -> None:
    grid = PolarGrid(radial=4, angular=4, radius=8.0)
    diagonal = [(18, 18), (14, 18), (14, 14), (18, 14)]
    images = render(battle([(16, 16)], diagonal), grid=grid, terrain=FLAT)
    assert cells_of(images) == {(0, 0), (1, 1), (1, 2), (1, 3), (1, 0)}


def test_the_view_is_the_open_disc_and_its_outermost_ring_reaches_to_the_edge() -> None:
    inside = float(np.nextafter(np.float32(25), np.float32(0)))
    images = render(battle([(16, 16)], [(inside, 16), (16, 25)]), grid=GRID, terrain=FLAT)
    assert cells_of(images) == {(0, 0), (15, 0)}
    assert images["units_in_view"].tolist() == [2]


def test_the_agent_sees_itself_at_the_centre() -> None:
    images = render(battle([(16, 16)], []), grid=GRID, terrain=FLAT)
    assert cells_of(images) == {(0, 0)}
    assert images["categories"][0, 0, 0, 0, 0].tolist() == [1, STALKER, channels.STOPS]


def test_of_two_units_in_a_cell_the_nearer_to_its_point_stays_and_the_other_is_counted() -> None:
    for first, second in [((20.6, 16), (20.5, 16)), ((20.5, 16), (20.6, 16))]:
        states = battle([(16, 16)], [first, second])
        states["unit_health"][0, 0, 1:] = [11, 22]
        images = render(states, grid=GRID, terrain=FLAT)
        kept = 11 if first == (20.5, 16) else 22
        assert images["hecs"][0, 0, 0, 8, 0, 0] * 256 == kept
        assert images["units_in_view"].tolist() == [3] and images["units_lost"].tolist() == [1]


def test_of_equally_near_units_the_lower_slot_stays() -> None:
    states = battle([(16, 16)], [(20.5, 16.125), (20.5, 15.875)])
    states["unit_health"][0, 0, 1:] = [11, 22]
    assert render(states, grid=GRID, terrain=FLAT)["hecs"][0, 0, 0, 8, 0, 0] * 256 == 11


def test_the_dead_leave_no_trace() -> None:
    states = battle([(16, 16), (18, 16)], [(20, 16)])
    states["unit_health"][0, 0, 1:] = 0
    alone = battle([(16, 16)], [])
    images, expected = (render(s, grid=GRID, terrain=FLAT) for s in (states, alone))
    for name in ("categories", "hecs", "height"):
        assert np.array_equal(images[name][:, :, 0], expected[name][:, :, 0])
        assert not images[name][:, :, 1].any()


def test_steps_after_the_end_are_blank() -> None:
    states = random_states(4)
    images = render(states, grid=GRID, terrain=FLAT)
    for episode, length in enumerate(states["length"]):
        assert not any(images[name][episode, length:].any() for name in ("categories", "hecs", "height"))


def test_stats_are_divided_by_one_number_for_all_types_and_can_be_read_back() -> None:
    states = battle([(16, 16)], [(20, 16)])
    states["unit_type"][0] = MARINE, ZEALOT
    image = render(states, grid=GRID, terrain=FLAT)["hecs"][0, 0, 0]
    for cell in (image[0, 0], image[7, 0]):
        assert (cell * np.float32(channels.HECS_DIVISORS)).tolist() == [80, 50, 8, 40]


@pytest.mark.parametrize(
    ("action", "agent_type", "category"),
    [
        (Action.STOP, STALKER, "stop"),
        (Action.NORTH, STALKER, "north"),
        (Action.SOUTH, STALKER, "south"),
        (Action.EAST, STALKER, "east"),
        (Action.WEST, STALKER, "west"),
        (Action.ATTACK, STALKER, "attack"),
        (Action.ATTACK + 3, STALKER, "attack"),
        (Action.ATTACK + 3, MEDIVAC, "heal"),
    ],
)
def test_the_action_image_names_what_friends_do_and_nothing_of_enemies(
    action: int, agent_type: int, category: str
) -> None:
    states = battle([(16, 16), (20.5, 16)], [(11.5, 16)], agent_type)
    states["action"][0, 0, 1] = action
    image = render(states, grid=GRID, terrain=FLAT)["categories"][0, 0, 0, ..., channels.ACTION]
    assert channels.ACTION_CATEGORIES[image[8, 0]] == category
    assert channels.ACTION_CATEGORIES[image[8, 16]] == "unknown"
    assert channels.ACTION_CATEGORIES[image[4, 4]] == "no-op"


def test_height_is_that_of_the_map_cell_under_the_point_and_0_outside() -> None:
    terrain = np.arange(1024, dtype=np.uint32).reshape(32, 32).astype(np.uint8)
    image = render(battle([(28.5, 16.5)], []), grid=GRID, terrain=terrain)["height"][0, 0, 0]
    assert image[8, 0] == 0  # 33, 16.5
    assert image[8, 8] == terrain[28, 21]
    assert image[8, 16] == terrain[24, 16]


@pytest.mark.parametrize(
    "wrong", [{"radial": 1}, {"angular": 7}, {"angular": 2}, {"radius": 0.0}, {"radius": math.nan}]
)
def test_a_grid_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        PolarGrid(**{"radial": 16, "angular": 32, "radius": 9.0, **wrong})


def test_states_of_another_map_are_refused() -> None:
    for place in ((40.0, 16.0), (16.0, -1.0), (math.nan, 16.0)):
        with pytest.raises(UsageError, match="outside of the map"):
            render(battle([(16, 16)], [place]), grid=GRID, terrain=FLAT)


def states_of_words() -> States:
    """States made of counter-based random words and exact fractions: the same on every machine."""
    words = sequence_seeds(1, "golden", 0, 2 * 5 * 12 * 6).reshape(2, 5, 12, 6)
    return {
        "unit_type": (words[:, 0, :, 0] % 10 + 1).astype(np.uint8),
        "unit_position": ((words[..., 1:3] >> np.uint64(20)) % 4096 / 256 + 8).astype(np.float32),
        "unit_health": ((words[..., 3] % 5 > 0) * ((words[..., 3] >> np.uint64(20)) % 800 + 1) / 8).astype(np.float32),
        "unit_energy": ((words[..., 4] >> np.uint64(20)) % 800 / 4).astype(np.float32),
        "unit_cooldown": ((words[..., 4] >> np.uint64(40)) % 320 / 16).astype(np.float32),
        "unit_shield": ((words[..., 5] >> np.uint64(20)) % 800 / 8).astype(np.float32),
        "action": (words[:, :, :5, 5] % 12 + 1).astype(np.int16),
        "length": np.array([5, 3]),
    }


GOLDEN_IN_VIEW = [97, 71]
GOLDEN_DIGEST = "b0b252b8c9d16bec751b4567fc67c9e6ca1b53fb4c09dc459f379def4ee2b3cc"


def test_golden_digest_of_the_images() -> None:
    terrain = (np.arange(1024).reshape(32, 32) * 7 % 256).astype(np.uint8)
    images = render(states_of_words(), grid=PolarGrid(radial=16, angular=48, radius=9.0), terrain=terrain)
    total = hashlib.sha256()
    for name in ("categories", "hecs", "height", "units_in_view", "units_lost"):
        total.update(images[name].astype(images[name].dtype.newbyteorder("<")).tobytes())
    assert images["units_in_view"].tolist() == GOLDEN_IN_VIEW
    assert total.hexdigest() == GOLDEN_DIGEST
