"""Whole episodes over a real websocket with pysc2 give the store that the embedded engine gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.sc2.making.battle_config import Sc2Config
from s2rm_data.generators.sc2.making.battle_source import Sc2Split, plan, play
from s2rm_data.generators.sc2.making.game_split import GameSplit, play_episode, played_by
from s2rm_data.making.run import generate
from s2rm_data.starcraft.api.client.process import Games
from s2rm_data.store import Store

pytestmark = pytest.mark.usefixtures("sc2path")
# Health that regenerates or is healed by fractions is rounded to float32 before a reward is computed from it.
ROUNDED = {"MMM2", "bane_vs_bane", "2s_vs_1sc"}


def stores(folder: Path, games: Games, name: str, episodes: int) -> tuple[Store, Store]:
    """The same splits by the embedded engine and through the API."""
    splits = plan(scenario=[name], train=episodes, val=0)
    generate(splits, folder / "engine.zarr", shard_size=2)
    generate(played_by(games, splits), folder / "game.zarr", shard_size=2)
    return Store(folder / "engine.zarr"), Store(folder / "game.zarr")


@pytest.mark.parametrize("name", ["3s5z", "2s3z", "1c3s5z", "3m", "MMM2", "1s2z", "5s3z", "bane_vs_bane", "2s_vs_1sc"])
def test_the_store_equals_the_embedded_engines_bit_for_bit(name: str, games: Games, tmp_path: Path) -> None:
    """Every array, images included. Rewards alone may differ, by rounding, where units heal by fractions."""
    ours, theirs = (store[f"sc2/{name}/train"] for store in stores(tmp_path, games, name, 3))
    assert [*ours.arrays] == [*theirs.arrays]
    for array in ours.arrays:
        mine, other = ours[array][:], theirs[array][:]
        if array == "reward" and name in ROUNDED:
            np.testing.assert_allclose(other, mine, rtol=0, atol=2e-6)
        else:
            np.testing.assert_array_equal(other, mine, err_msg=array)
    assert ours["length"][:].min() > 5
    if name not in ROUNDED:
        assert ours.content_digest() == theirs.content_digest()


def test_the_store_says_who_played(games: Games, tmp_path: Path) -> None:
    _, store = stores(tmp_path, games, "3m", 1)
    settings = store["sc2/3m/train"].attributes["settings"]
    assert settings["backend"] == "starcraft2"
    assert settings["game_version"].startswith("s2rm-data ")
    assert store["sc2/3m/train"].attributes["command"].endswith("--backend starcraft2")


def test_an_episode_depends_on_its_seed_alone(games: Games) -> None:
    config = Sc2Config(scenario="3s5z", policy="smac")
    first, second = (int(seed) for seed in sequence_seeds(1, "x", 0, 2))
    alone = play_episode(games, config, second)
    play_episode(games, config, first)
    again = play_episode(games, config, second)
    assert all(np.array_equal(alone[name], again[name]) for name in alone)
    assert not np.array_equal(alone["unit_health"], play_episode(games, config, first)["unit_health"])


def test_the_upper_half_of_a_seed_counts(games: Games) -> None:
    config = Sc2Config(scenario="3s5z", policy="smac", epsilon=0.0)
    low = play_episode(games, config, 5)
    high = play_episode(games, config, 5 + 2**40)
    assert not np.array_equal(low["unit_health"], high["unit_health"])


def test_any_range_of_a_split_is_the_same_range(games: Games) -> None:
    split = Sc2Split(config=Sc2Config(scenario="3m"), seed=3, split="train", count=4)
    (played,) = played_by(games, [split])
    assert isinstance(played, GameSplit)
    part = played.produce(1, 3)
    whole = split.produce(0, 4)
    for name in part:
        np.testing.assert_array_equal(part[name], whole[name][1:3])


@pytest.mark.parametrize("name", ["2s1zg_vs_3z", "1mv2m_vs_3zg", "1s1c_vs_2mr"])
def test_armies_that_no_map_has_are_spawned_as_well(name: str, games: Games) -> None:
    """Kinds that the host map has no passive copy of attack by themselves, so that only the beginning is the same."""
    config = Sc2Config(scenario=name, policy="smac")
    seed = 77
    got, want = play_episode(games, config, seed), play(config, np.array([seed], dtype=np.uint64))
    assert got["length"][0] > 5
    assert got["outcome"][0] in (1, 2, 3)
    for array in ("unit_type", "unit_position", "unit_health", "available"):
        first = (slice(None),) if array == "unit_type" else (slice(None), 0)
        np.testing.assert_array_equal(got[array][first], want[array][first])
