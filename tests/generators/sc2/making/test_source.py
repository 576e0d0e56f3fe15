"""The StarCraft II splits: what `produce` returns, that it depends on nothing but the episode's seed, and the plan."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_stores import change_group
from numpy.typing import NDArray

from s2rm_data.core.check import canonical_json
from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.core.schema import SplitSource
from s2rm_data.generators.sc2.making import battle_source as module
from s2rm_data.generators.sc2.making.battle_config import PAPER_TEST, PAPER_TRAINING, Sc2Config
from s2rm_data.generators.sc2.making.battle_source import Sc2Split, plan
from s2rm_data.generators.sc2.world import Battles
from s2rm_data.making.repair import repair
from s2rm_data.making.run import generate
from s2rm_data.starcraft.polar import PolarGrid, render, terrain_height
from s2rm_data.store import Store, verify

IMAGES = ("categories", "hecs", "height")


def split(scenario: str = "2s3z", count: int = 8, **options: Any) -> Sc2Split:
    config = Sc2Config(**{"scenario": scenario, "radial": 6, "angular": 16, **options})
    return Sc2Split(config=config, seed=3, split="train", count=count)


def same(left: dict[str, NDArray[Any]], right: dict[str, NDArray[Any]]) -> bool:
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("scenario", ["2s3z", "MMM", "2s_vs_1sc"])
def test_arrays_are_as_described_and_dimensions_share_no_name_with_them(scenario: str) -> None:
    source: SplitSource = split(scenario, count=3, steps=30)
    values = source.produce(0, 3)
    assert [spec.name for spec in source.arrays] == list(values)
    for spec in source.arrays:
        value = values[spec.name]
        assert (value.dtype, value.shape) == (np.dtype(spec.dtype), (3, *spec.shape)), spec.name
        assert len(spec.dims) == len(spec.shape) and spec.description
    dims = {source.first_dim}.union(*(spec.dims for spec in source.arrays))
    assert not dims & {spec.name for spec in source.arrays}


def test_any_range_gives_the_same_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = split().produce(0, 8)
    parts = [split().produce(0, 3), split().produce(3, 8)]
    assert same(whole, {name: np.concatenate([part[name] for part in parts]) for name in whole})
    monkeypatch.setattr(module, "BLOCK", 3)
    assert same(whole, split().produce(0, 8))
    assert same({name: values[4:7] for name, values in whole.items()}, split().produce(4, 7))


def test_an_episode_does_not_change_when_more_are_made_after_it() -> None:
    assert same(split(count=4).produce(0, 4), split(count=8).produce(0, 4))


def test_threads_do_not_disturb_each_other() -> None:
    shared = split(count=8)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda first: shared.produce(first, first + 2), [0, 4, 2, 6, 0, 4]))
    for first, values in zip([0, 4, 2, 6, 0, 4], made, strict=True):
        assert same(values, split().produce(first, first + 2))


@pytest.mark.parametrize("scenario", ["2s3z", "MMM2"])
def test_stored_images_are_rendered_again_from_the_stored_states(scenario: str) -> None:
    source = split(scenario, count=3)
    values = source.produce(0, 3)
    again = render(values, grid=source.config.grid, terrain=terrain_height(scenario))
    for name in (*IMAGES, "units_in_view", "units_lost"):
        assert np.array_equal(values[name], again[name]), name
    finer = render(values, grid=PolarGrid(radial=12, angular=64, radius=9.0), terrain=terrain_height(scenario))
    assert finer["units_in_view"].tolist() == values["units_in_view"].tolist()
    assert finer["units_lost"].sum() < values["units_lost"].sum()


def test_other_seeds_splits_and_scenarios_give_other_episodes() -> None:
    base = split().produce(0, 1)["unit_health"]
    config = split().config
    for other in (
        Sc2Split(config=config, seed=4, split="train", count=8),
        Sc2Split(config=config, seed=3, split="val", count=8),
    ):
        assert not np.array_equal(base, other.produce(0, 1)["unit_health"])


def test_settings_hold_what_decides_the_content_and_are_json() -> None:
    source = split()
    assert source.settings["config"]["epsilon"] == 0.05
    assert source.settings["policies"] == ["smac", "smac_restricted", "focus", "kite", "random"]
    assert canonical_json(source.settings) and canonical_json(source.attributes)
    assert source.group == "sc2/2s3z/train"
    assert "--scenario 2s3z --train 8 --val 0 --test 0" in source.command


def counts(splits: list[Sc2Split]) -> dict[str, int]:
    return {source.group: source.count for source in splits}


def test_a_scenario_gets_training_and_validation_episodes_and_test_episodes_when_asked() -> None:
    assert counts(plan(scenario=["3s5z"])) == {"sc2/3s5z/train": 3000, "sc2/3s5z/val": 300}
    assert counts(plan(scenario=["5s3z", "5s3z"], val=0, test=7)) == {"sc2/5s3z/train": 3000, "sc2/5s3z/test": 7}


def test_the_paper_preset_makes_15200_episodes() -> None:
    splits = counts(plan(preset="paper"))
    assert sum(splits.values()) == 15_200
    assert all(splits[f"sc2/{name}/train"] == 3000 and splits[f"sc2/{name}/val"] == 300 for name in PAPER_TRAINING)
    assert all(splits[f"sc2/{name}/test"] == 1000 for name in PAPER_TEST)
    assert set(counts(plan(preset="paper", train=5, val=0, test=2)).values()) == {5, 2}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "no scenario given"),
        ({"preset": "papre"}, "paper"),
        ({"preset": "paper", "scenario": ["3s5z"]}, "leave out"),
        ({"scenario": ["3s5z"], "train": 0, "val": 0}, "nothing to make"),
        ({"scenario": ["3s5z"], "train": -1}, "train is -1"),
        ({"scenario": ["3x5z"]}, "3s5z"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan(**wrong)


def test_enemies_are_numbered_by_option_and_the_game_numbers_them_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, created = (split("2s3z", count=6, enemy_order=order).produce(0, 6) for order in ("random", "created"))
    assert np.array_equal(drawn["unit_type"][:, :5], created["unit_type"][:, :5])
    assert {tuple(row[5:]) for row in created["unit_type"].tolist()} == {(4, 4, 5, 5, 5)}
    assert len({tuple(row[5:]) for row in drawn["unit_type"].tolist()}) > 1
    assert "--enemy-order created" in split(enemy_order="created").command
    with pytest.raises(UsageError, match="enemy_order is 'tags'"):
        split(enemy_order="tags")
    (tmp_path / "Versions" / "Base75689").mkdir(parents=True)  # all that a plan asks of a game
    monkeypatch.setenv("SC2PATH", str(tmp_path))
    with pytest.raises(UsageError, match="StarCraft II numbers the enemies itself"):
        Battles().plan(scenario=["3m"], train=1, backend="starcraft2", enemy_order="created")


def test_stores_of_the_earlier_version_are_read_and_verified_but_not_made_again(tmp_path: Path) -> None:
    """Version 2 played by other rules, and its settings name no order of the enemies."""
    store = tmp_path / "data.zarr"
    generate([split("3m", count=3, steps=10)], store, shard_size=2)

    def age(document: dict[str, Any]) -> None:
        settings = document["attributes"]["settings"]
        settings["generator_version"] = 2
        del settings["config"]["enemy_order"]

    change_group(store, "sc2/3m/train", age)
    assert len(Store(store)["sc2/3m/train"]) == 3 and verify(store).problems == []
    states = {name: array[:] for name, array in Store(store)["sc2/3m/train"].arrays.items()}
    assert np.array_equal(
        render(states, grid=split("3m").config.grid, terrain=terrain_height("3m"))["hecs"], states["hecs"]
    )
    assert repair(store, "sc2/3m/train").objects == ()
    with pytest.raises(ConflictError, match="sc2/3m/train"):
        generate([split("3m", count=3, steps=10)], store, shard_size=2)
    (store / "sc2/3m/train/seed/c.0").unlink()
    with pytest.raises(ConflictError, match=r"generator version 2, this program's is 3.*the release that made it"):
        repair(store, "sc2/3m/train")


def digest(values: dict[str, NDArray[Any]]) -> str:
    total = hashlib.sha256()
    for name in sorted(values):
        little = np.ascontiguousarray(values[name], dtype=values[name].dtype.newbyteorder("<"))
        total.update(name.encode() + little.tobytes())
    return total.hexdigest()


# Of engine, policies, record and images together. Whoever changes one of them on purpose raises GENERATOR_VERSION in
# battle_source.py with it: the same settings then no longer mean the same content.
GOLDEN_LENGTHS = [46, 71, 69, 46, 49, 56]
GOLDEN_DIGEST = "ef5081706cdc31583a7d38c94d1de3cd2701a42f8c1bb1150813c97cfd1dde54"


def test_golden_digest_of_a_split() -> None:
    values = Sc2Split(config=Sc2Config(scenario="3s5z"), seed=0, split="train", count=6).produce(0, 6)
    assert values["length"].tolist() == GOLDEN_LENGTHS
    assert digest(values) == GOLDEN_DIGEST
