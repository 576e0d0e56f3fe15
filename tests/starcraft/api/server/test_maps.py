"""Maps with rules of their own: battles that end, SMACv2's empty map, and replays of all of them played again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from s2clientprotocol import sc2api_pb2 as api
from sc2_clients import Talker

from s2rm_data.cli.data import data as command
from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.api.protocol import FIRST_CUSTOM_ID, STANDARD_ID
from s2rm_data.starcraft.api.server.saved import play_again, read_replay
from s2rm_data.starcraft.codes import Outcome
from s2rm_data.starcraft.units import NUMBER_OF

MOVE, ATTACK = 16, 23
STALKER, ZEALOT = (STANDARD_ID[NUMBER_OF[name]] for name in ("stalker", "zealot"))


def catalogue(talker: Talker) -> Any:
    return talker.ask(data=api.RequestData(unit_type_id=True, ability_id=True)).data


@pytest.mark.parametrize(("name", "own"), [("3s5z", 2), ("3s5z_battle", 0), ("32x32_flat", 9)])
def test_the_catalogue_is_dense_and_ends_with_the_maps_own_units(name: str, own: int) -> None:
    data = catalogue(Talker().play(name))
    assert [unit.unit_id for unit in data.units] == list(range(FIRST_CUSTOM_ID + own))
    assert [ability.ability_id for ability in data.abilities] == list(range(len(data.abilities)))
    makers = [unit.name for unit in data.units if unit.unit_id in (21, 28, 71, 151)]  # where python-sc2 looks for costs
    assert makers == ["Barracks", "Starport", "RoboticsFacility", "Larva"]
    assert sum(unit.available for unit in data.units) == len(STANDARD_ID) + own + len(makers)
    names = [unit.name for unit in data.units[FIRST_CUSTOM_ID:]]  # smacv2 takes the last nine, in this order
    assert names == sorted(names) and len(names) == own
    assert not data.units[0].available and data.units[STALKER].name == "Stalker"


def test_agents_of_a_battle_map_are_the_games_own_units_and_attack_by_themselves() -> None:
    for name, types in (("3s5z", {FIRST_CUSTOM_ID, FIRST_CUSTOM_ID + 1}), ("3s5z_battle", {STALKER, ZEALOT})):
        talker = Talker().play(name)
        assert {unit.unit_type for unit in talker.units(1)} == types
        whole = sum(unit.health + unit.shield for unit in talker.units(2))
        for _ in range(25):
            talker.step(8)
        hurt = sum(unit.health + unit.shield for unit in talker.units(2)) < whole
        assert hurt == name.endswith("_battle")


def create(talker: Talker, unit_type: int, owner: int, point: tuple[float, float]) -> None:
    answer = talker.debug(
        create_unit={"unit_type": unit_type, "owner": owner, "pos": {"x": point[0], "y": point[1]}, "quantity": 1}
    )
    assert not answer.error, answer


def agent_id(name: str) -> int:
    names = ["baneling", "colossus", "hydralisk", "marauder", "marine", "medivac", "stalker", "zealot", "zergling"]
    return FIRST_CUSTOM_ID + names.index(name)


def flat_battle() -> Talker:
    """Two agents in the west, two enemies in the east, after the loop in which smacv2 looks for them."""
    talker = Talker().play("32x32_flat")
    assert talker.units() == []
    for owner, ids, x in ((1, (agent_id("stalker"), agent_id("zealot")), 6.0), (2, (STALKER, ZEALOT), 26.0)):
        for number, unit_type in enumerate(ids):
            create(talker, unit_type, owner, (x, 10.0 + 12.0 * number))
    talker.step(1)
    return talker


def test_the_empty_map_gets_its_armies_from_the_client_and_sends_enemies_to_the_nearest_agent() -> None:
    talker = flat_battle()
    ours, theirs = talker.units(1), talker.units(2)
    assert [unit.unit_type for unit in ours] == [agent_id("stalker"), agent_id("zealot")]
    assert [unit.unit_type for unit in theirs] == [STALKER, ZEALOT]
    talker.step(16)
    for enemy, nearest in zip(talker.units(2, whole=True), ours, strict=True):
        assert (enemy.orders[0].ability_id, enemy.orders[0].target_unit_tag) == (ATTACK, nearest.tag)
    assert [unit.pos for unit in talker.units(1)] == [unit.pos for unit in ours]  # agents are passive


def test_the_empty_map_stays_empty_after_a_battle_until_the_client_fills_it() -> None:
    talker = flat_battle()
    first = {unit.tag for unit in talker.units()}
    talker.debug(kill_unit={"tag": list(first)})
    for _ in range(5):
        talker.step(2)
        assert talker.units() == []
    create(talker, agent_id("marine"), 1, (32.0, 32.0))  # a corner that float32 has rounded up
    assert not {unit.tag for unit in talker.units()} & first


def saved(talker: Talker, folder: Path) -> Path:
    path = folder / "battle.SC2Replay"
    path.write_bytes(talker.ask(save_replay=api.RequestSaveReplay()).save_replay.data)
    return path


def fight(talker: Talker, steps: int) -> list[list[tuple[float, float, float]]]:
    """Every other agent attacks, the others walk; what there was before each step, by units' tags."""
    seen = []
    for step in range(steps):
        ours, theirs = talker.units(1), talker.units(2)
        seen.append([(unit.pos.x, unit.pos.y, unit.health) for unit in talker.units()])
        for number, unit in enumerate(ours):
            if theirs and number % 2:
                talker.order([unit], ATTACK, tag=theirs[number % len(theirs)].tag)
            else:
                talker.order([unit], MOVE, at=(unit.pos.x + 2 * (step % 3), unit.pos.y), queue=step % 5 == 4)
        talker.step(8)
    return seen


@pytest.mark.parametrize("name", ["3s5z", "3m_battle", "32x32_flat"])
def test_a_replay_played_again_is_the_same_battle(name: str, tmp_path: Path) -> None:
    talker = flat_battle() if name == "32x32_flat" else Talker().play(name, seed=5)
    seen = fight(talker, 30)
    record = play_again(read_replay(saved(talker, tmp_path)))
    assert record["length"][0] >= 15
    for step in range(int(record["length"][0])):
        alive = record["unit_alive"][0, step]
        values = np.column_stack([record["unit_position"][0, step], record["unit_health"][0, step]])[alive]
        assert values.tolist() == [list(unit) for unit in seen[step]]
    assert Outcome(int(record["outcome"][0])) in (Outcome.RUNNING, Outcome.WIN, Outcome.LOSS)
    assert record["action"].max() >= 6


def test_preview_draws_a_replay(tmp_path: Path) -> None:
    talker = Talker().play("3m", seed=5)
    fight(talker, 4)
    path, out = saved(talker, tmp_path), tmp_path / "previews"
    result = CliRunner().invoke(command, ["preview", str(path), "--rows", "2", "-o", str(out)], catch_exceptions=False)
    assert result.exit_code == 0
    assert sorted(file.suffix for file in out.iterdir()) == [".gif", ".png"]


@pytest.mark.parametrize(("change", "words"), [
    ({"format": "s2rm-data battle"}, "play and save it anew"),
    ({"events": [{"what": "dance"}]}, "cannot be read as a battle"),
    ({"map": "3x"}, "no scenario"),
    ({"whole": False}, "only the last 100,000 orders"),
    ({"seed": None}, "cannot be read as a battle"),
])  # fmt: skip
def test_a_file_that_is_not_a_whole_replay_says_what_is_wrong(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    talker = Talker().play("3m")
    talker.step(8)
    path = saved(talker, tmp_path)
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change))
    with pytest.raises(UsageError, match=words):
        play_again(read_replay(path))


def test_preview_of_any_other_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(UsageError, match="neither a store nor a replay"):
        CliRunner().invoke(command, ["preview", str(tmp_path / "notes.txt")], catch_exceptions=False)
