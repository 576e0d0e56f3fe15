"""Recorded battles of the real game: decoded whole, and played again in the engine with errors that are seen."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import NEVER, RecordedBattle, load
from replay import Replay, compare, compare_guided, dead_by, play_recorded, recorded_places, sightings

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.scenarios import parse
from s2rm_data.starcraft.terrain_maps import terrain
from s2rm_data.starcraft.units import GROUND, LOOPS_PER_STEP, NUMBER_OF

RECORDINGS = Path(__file__).parent / "recordings" / "real_battles.json.gz"


def episode(**changes: Any) -> dict[str, Any]:
    """One agent marine of 3m walks east for two steps, then all attack the first enemy; nobody dies in three steps."""
    return {
        "steps": 3,
        "types": ["Marine_RL"] * 3 + ["Marine"] * 3,
        "owner": [1, 1, 1, 2, 2, 2],
        "birth_cell": [[9, 16], [9, 15], [9, 16], [23, 16], [23, 15], [23, 16]],
        "deaths": [],
        "moves": [[0, 2, "E", 10.5, 17.0], [8, 2, "E", 11.625, 17.0]],
        "attacks": [[16, agent, 3, 20.75, 16.0] for agent in range(3)],
        **changes,
    }


def written(folder: Path, content: Any) -> Path:
    path = folder / "battles.json.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(content, file)
    return path


def battle(folder: Path, **changes: Any) -> RecordedBattle:
    return load(written(folder, {"3m": [episode(**changes)]}))["3m"][0]


def values(battles: list[RecordedBattle], replay: Replay) -> dict[str, tuple[float | None, float | None]]:
    return {row.name: (row.game, row.engine) for row in compare(battles, replay)}


def test_the_recordings_hold_217_battles_of_six_maps() -> None:
    recordings = load(RECORDINGS)
    assert {name: len(battles) for name, battles in recordings.items()} == dict.fromkeys(
        ("3m", "8m", "2s3z", "MMM2", "MMM2_second", "2c_vs_64zg", "corridor"), 31
    )
    for name, battles in recordings.items():
        scenario = parse(battles[0].scenario)
        assert name.startswith(scenario.name)
        for recorded in battles:
            assert (recorded.agents, len(recorded.unit_type) - recorded.agents) == (
                scenario.agent_count,
                scenario.enemy_count,
            )
            assert recorded.unit_type[recorded.agents :] == tuple(
                squad.unit_type for squad in scenario.enemies for _ in range(squad.count)
            )
            assert max(loop for loop, _, _ in recorded.deaths) <= recorded.steps * LOOPS_PER_STEP


def test_recorded_agents_walk_at_the_game_s_speed() -> None:
    """Decoded positions are consistent: a marine that walks freely covers 1.125 per step (8m, all ordered east)."""
    for recorded in load(RECORDINGS)["8m"]:
        where = {(move.loop, move.agent): move for move in recorded.moves if move.loop <= 8}
        steps = [
            np.hypot(*(np.array(where[8, agent].position) - where[0, agent].position))  # type: ignore[arg-type]
            for agent in range(8)
            if (8, agent) in where
            and where[0, agent].goal == pytest.approx(where[0, agent].position + np.array([2, 0]))
        ]
        assert np.median(steps) == pytest.approx(1.125, abs=0.002)


def test_a_recording_is_decoded(tmp_path: Path) -> None:
    recorded = battle(tmp_path, deaths=[[12, 4, 0, 18, 15], [20, 1, None, 9, 9]])
    assert recorded.scenario == "3m" and recorded.agents == 3 and recorded.steps == 3
    assert set(recorded.unit_type) == {NUMBER_OF["marine"]}
    assert recorded.first_positions == {2: (10.5, 17.0)}
    assert recorded.deaths == ((12, 4, 0), (20, 1, None))
    assert recorded.death_loop.tolist() == [NEVER, 20, NEVER, NEVER, 12, NEVER]


def test_every_living_agent_has_one_order_at_every_step() -> None:
    """As SMAC demands; on MMM2 a few orders of the medivacs are missing."""
    for name, battles in load(RECORDINGS).items():
        for recorded in battles:
            lived = [(8 * step, agent) for step in range(recorded.steps) for agent in range(recorded.agents)
                     if recorded.death_loop[agent] > 8 * step]  # fmt: skip
            orders = (*recorded.moves, *recorded.attacks, *recorded.stops, *recorded.heals)
            given = [(order.loop, order.agent) for order in orders]
            assert len(given) == len(set(given))
            if not name.startswith("MMM2"):
                assert set(lived) <= set(given)


def test_moves_stops_and_heals_are_followed(tmp_path: Path) -> None:
    """A move with its goal alone, a stop that ends a walk, and a heal that restores what a medivac's ward has lost."""
    recorded = battle(
        tmp_path, moves=[[0, 2, "E", 10.5, 17.0]], moves_to=[[0, 1, 9.0, 10.0]], stops=[[8, 2]], attacks=[]
    )
    path = play_recorded([recorded], copies=1).position[:, 0]
    assert np.allclose(path[1, 2], (11.625, 17.0), atol=1e-3) and np.array_equal(path[1, 2], path[3, 2])
    assert path[1, 1, 1] < path[0, 1, 1] - 1  # south
    medivacs = [heal for battles in load(RECORDINGS).values() for one in battles for heal in one.heals]
    assert len(medivacs) > 500 and {heal.agent for heal in medivacs} == {9}


def test_names_with_an_ending_belong_to_the_longest_map_name(tmp_path: Path) -> None:
    with gzip.open(RECORDINGS, "rt") as file:
        first = json.load(file)["MMM2"][:1]
    assert load(written(tmp_path, {"MMM2_third": first}))["MMM2_third"][0].scenario == "MMM2"


@pytest.mark.parametrize(
    "content", [{"4m": [episode()]}, {"3m": [{"steps": 1}]}, {"3m": [episode(owner=[2, 1, 1, 1, 2, 2])]}, [1]]
)
def test_what_is_not_a_recording_is_refused_with_what_it_has_to_be(tmp_path: Path, content: Any) -> None:
    with pytest.raises(UsageError, match="gzipped JSON"):
        load(written(tmp_path, content))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.json\.gz"):
        load(tmp_path / "nowhere.json.gz")


def test_agents_start_where_the_recording_has_them_and_follow_its_orders(tmp_path: Path) -> None:
    recorded = battle(tmp_path)
    replay = play_recorded([recorded], copies=2)
    assert replay.position.shape == (4, 2, 6, 2)
    assert np.allclose(replay.position[0, :, 2], (10.5, 17.0))
    assert np.allclose(replay.position[1, :, 2], (11.625, 17.0), atol=1e-3)
    assert np.allclose(replay.position[2, :, 2], (12.75, 17.0), atol=1e-3)
    idle = replay.position[:3, :, :2]
    assert np.allclose(idle, idle[0])  # the others have no order before loop 16: they stand
    assert (replay.position[3, :, :2, 0] > idle[0, :, :, 0]).all()  # now they attack


def test_units_the_recording_says_nothing_about_start_where_the_engine_puts_them(tmp_path: Path) -> None:
    replay = play_recorded([battle(tmp_path, moves=[])], copies=1)
    start = Engine(parse("3m"), [0], enemy_order="created").snapshot().position[0]
    assert sorted(map(tuple, replay.position[0, 0])) == sorted(map(tuple, start))
    assert np.allclose(replay.position[0, 0, 3:], start[3:])


def test_a_replay_of_the_engine_s_own_battle_has_no_error(tmp_path: Path) -> None:
    recorded = battle(tmp_path, attacks=[])
    path = play_recorded([recorded], copies=1).position
    moves = [[8 * step, 2, "E", *map(float, path[step, 0, 2])] for step in range(3)]
    attacks = [[16, agent, 3, *map(float, path[2, 0, 3])] for agent in (0, 1)]
    own = battle(tmp_path, moves=moves, attacks=attacks)
    rows = values([own], play_recorded([own], copies=3))
    assert rows["agents: position error, first 24 loops"] == (None, pytest.approx(0, abs=1e-3))
    assert rows["enemies: position error, first 24 loops"] == (None, pytest.approx(0, abs=1e-3))


def test_errors_are_distances_and_end_with_the_first_death(tmp_path: Path) -> None:
    recorded = battle(tmp_path, deaths=[[10, 5, 0, 18, 16]])
    position = np.zeros((4, 1, 6, 2), np.float32)
    position[0, 0, 2], position[1, 0, 2], position[2, 0, 3] = (10.5, 17.0), (11.625 + 3, 17.0 + 4), (20.75, 16.5)
    never = np.full((1, 6), NEVER)
    replay = Replay(copies=1, position=position, death_loop=never, first_damage_loop=np.array([7]))
    agents = sightings([recorded], replay, enemies=False)
    assert agents.error.tolist() == pytest.approx([0, 5]) and agents.before_death.all()
    enemies = sightings([recorded], replay, enemies=True)  # three agents attack it at once: one sighting
    assert enemies.error.tolist() == pytest.approx([0.5]) and not enemies.before_death.any()
    rows = values([recorded], replay)
    assert rows["enemies: position error until the first death"] == (None, None)
    assert rows["first attack order (game), first damage (engine), loop"] == (16, 7)


def test_deaths_their_order_and_the_winner_are_compared(tmp_path: Path) -> None:
    """Game: enemies 3, 4, 5 die at 9, 17, 21. Engine: 4, 3 and then, in one of two copies, 5; agent 0 in the other."""
    deaths = [[9, 3, 0, 0, 0], [17, 4, 0, 0, 0], [21, 5, 0, 0, 0]]
    recorded = battle(tmp_path, deaths=deaths)
    engine = np.array([[NEVER, NEVER, NEVER, 14, 10, 22], [12, NEVER, NEVER, 14, 10, NEVER]])
    position = np.zeros((4, 2, 6, 2), np.float32)
    replay = Replay(copies=2, position=position, death_loop=engine, first_damage_loop=np.array([5, 6]))
    rows = values([recorded], replay)
    assert rows["enemy deaths"] == (3.0, 2.5) and rows["agent deaths"] == (0.0, 0.5)
    assert rows["first enemy death, loop"] == (9, 10)
    assert rows["first agent death, loop"][0] is None
    assert rows["first dead enemy is the recorded one"] == (1.0, 0.0)
    assert rows["pairs of deaths in the recorded order"] == (1.0, pytest.approx(2 / 4))  # (3,4) wrong twice, 2 right
    assert rows["won"] == (1.0, 0.5) and rows["undecided when the recorded orders end"] == (0.0, 0.5)
    assert rows["length of decided battles, steps"] == (3, 3)


def test_what_dies_after_the_recorded_end_does_not_count(tmp_path: Path) -> None:
    engine = np.array([[NEVER, NEVER, NEVER, 25, NEVER, NEVER]])
    replay = Replay(copies=1, position=np.zeros((4, 1, 6, 2), np.float32), death_loop=engine,
                    first_damage_loop=np.array([5]))  # fmt: skip
    assert values([battle(tmp_path)], replay)["enemy deaths"] == (0.0, 0.0)


def test_orders_at_the_dead_are_tolerated(tmp_path: Path) -> None:
    """Agents go on being ordered to attack an enemy that, in the engine, has long been dead."""
    attacks = [[8 * step, agent, 3, 12.0, 16.0] for step in range(60) for agent in range(3)]
    replay = play_recorded([battle(tmp_path, steps=60, attacks=attacks, moves=[])], copies=2)
    assert (replay.death_loop < NEVER).any()


def test_in_a_guided_replay_enemies_die_exactly_as_recorded(tmp_path: Path) -> None:
    attacks = [[8 * step, agent, 3, 12.0, 16.0] for step in range(60) for agent in range(3)]
    deaths = [[300, 3, 0, 0, 0], [13, 5, 0, 0, 0]]
    recorded = battle(tmp_path, steps=60, attacks=attacks, moves=[], deaths=deaths)
    replay = play_recorded([recorded], copies=3, guided=True)
    assert (replay.death_loop[:, 3:] == [300, NEVER, 13]).all()
    assert (replay.death_loop[:, :3] < 300).all()  # three against one that does not fall
    rows = {row.name: (row.game, row.engine) for row in compare_guided([recorded], replay)}
    assert rows["agent deaths"] == (0.0, 3.0)
    game, engine = rows["first agent death, loop, 50 % of battles"]
    assert game is None and engine == np.median(replay.death_loop[:, :3].min(axis=1))


def test_recorded_places_are_told_or_lie_between_two_that_are(tmp_path: Path) -> None:
    """Agent 2 walks at loops 0 and 16, enemy 3 is aimed at in loop 16; nothing is known of agent 0 after its start."""
    moves = [[0, 2, "E", 10.5, 17.0], [16, 2, "E", 11.5, 18.0]]
    start = np.full((6, 2), 5.0)
    places, told = recorded_places(battle(tmp_path, moves=moves), start, 3)
    assert np.allclose(places[:, 2], [(10.5, 17.0), (11.0, 17.5), (11.5, 18.0)])
    assert np.allclose(places[:, 3], [(5.0, 5.0), (12.875, 10.5), (20.75, 16.0)])
    assert np.allclose(places[0, 0], 5.0) and np.isnan(places[1:, 0]).all()
    assert told[:, 2].tolist() == [True, False, True] and told[:, 0].tolist() == [True, False, False]


def test_in_a_forced_replay_units_stand_where_they_were_recorded(tmp_path: Path) -> None:
    """The move is to the east, but the recording has the agent go north; the others stand as they would."""
    moves = [[8 * step, 2, "E", 10.5, 17.0 + step] for step in range(3)]
    recorded = battle(tmp_path, moves=moves, attacks=[])
    free = play_recorded([recorded], copies=2, until=20)
    forced = play_recorded([recorded], copies=2, forced=True, until=20)
    assert forced.position.shape == (4, 2, 6, 2)
    assert np.allclose(forced.position[1:, :, 2], [[(11.625, 17.0 + step)] * 2 for step in range(3)], atol=1e-3)
    assert np.array_equal(forced.position[:, :, 3:], free.position[:, :, 3:])


def test_a_curve_counts_the_dead_of_a_mean_battle() -> None:
    assert dead_by(np.array([[10, NEVER, 20], [20, 30, NEVER]]), (9, 10, 20, 40)) == [0.0, 0.5, 1.5, 2.0]


def order_pattern(battle: RecordedBattle) -> str:
    """The agents' orders at loop 0: a letter for a move, a point for anything else."""
    letters = ["."] * battle.agents
    for move in battle.moves:
        if move.loop == 0 and move.position is not None:
            dx, dy = np.subtract(move.goal, move.position)
            letters[move.agent] = "E" if dx > 1 else "W" if dx < -1 else "N" if dy > 1 else "S"
    return "".join(letters)


@pytest.mark.parametrize(("name", "pattern", "count"), [("MMM2", "W.WWWWWEEE", 25), ("MMM2_second", "N.NN..NSSE", 29)])
def test_head_on_and_through_the_idle_agents_walk_as_recorded(name: str, pattern: str, count: int) -> None:
    """Mean ways in the first step, over all battles that begin with these orders, within two recorded spreads."""
    battles = [battle for battle in load(RECORDINGS)[name] if order_pattern(battle) == pattern]
    assert len(battles) == count
    replay = play_recorded(battles, copies=4, until=LOOPS_PER_STEP)
    walked = replay.position[1] - replay.position[0]
    compared = 0
    for agent, letter in enumerate(pattern):
        places = [{m.loop: m.position for m in battle.moves if m.agent == agent} for battle in battles]
        ways = [np.subtract(at[8], at[0]) for at in places if at.get(0) is not None and at.get(8) is not None]
        if letter != "." and len(ways) > count / 2:
            game, spread = np.mean(ways, axis=0), np.std(ways, axis=0)
            off = np.abs(walked[:, agent].mean(axis=0) - game)
            assert (off <= 2 * spread + 0.005).all(), f"agent {agent}: {off} off {game}, spread {spread}"
            compared += 1
    assert compared >= 7


def test_crowds_walk_as_recorded() -> None:
    """MMM2_second, where agents cross each other's ways: at most a tenth is more than half a unit off in 32 loops."""
    battles = load(RECORDINGS)["MMM2_second"]
    steps = max(battle.steps for battle in battles) * LOOPS_PER_STEP
    seen = sightings(battles, play_recorded(battles, copies=1, until=steps), enemies=False)
    assert np.quantile(seen.error[seen.loop <= 32], 0.9) < 0.5


def test_recorded_units_stand_on_ground_that_the_engine_lets_them_walk_on() -> None:
    """Zerglings of 2c_vs_64zg walk along the upper edge of the cliff, 0.31 from its middle. Corner cells are half
    ground, half wall; the engine takes them for walls.
    """
    passable = terrain("plateau").passable[GROUND]
    places = np.array([order.position for battle in load(RECORDINGS)["2c_vs_64zg"] for order in battle.attacks])
    cells = np.floor(places).astype(int)
    assert (cells[:, 1] == 13).sum() > 100
    assert passable[cells[:, 0], cells[:, 1]].mean() > 0.98
