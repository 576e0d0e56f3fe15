from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from s2rm_data.core.errors import UsageError
from s2rm_data.core.progress import Progress
from s2rm_data.inspection import stats as module
from s2rm_data.inspection.stats import array_stats, wilson
from s2rm_data.inspection.world_inspection import save_stats, stats_of
from s2rm_data.store import Store


@pytest.fixture(params=[5, 200], ids=["several blocks", "one block"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", request.param)


@pytest.mark.usefixtures("block")
def test_ball_numbers_are_those_of_the_whole_arrays(store: Store) -> None:
    group = store["bballs/train"]
    found = stats_of(group)
    speed = np.linalg.norm(group["velocity"][:], axis=-1)
    assert found.row["speed_mean_px_per_frame"] == pytest.approx(speed.mean(), abs=1e-4)
    assert found.row["speed_sd_px_per_frame"] == pytest.approx(speed.std(), abs=1e-4)
    assert found.row["speed_max_px_per_frame"] == pytest.approx(speed.max(), abs=1e-4)
    np.testing.assert_allclose(found.maps["density"], group["frames"][:].mean((0, 1)))
    assert found.histograms["speed"][1].sum() == speed.size
    assert found.row["balls"] == 3


def test_no_speed_lies_outside_the_histogram(store: Store) -> None:
    for path in ("bballs/test_1", "bballs/train"):
        found = stats_of(store[path])
        assert found.row["speed_max_px_per_frame"] < found.histograms["speed"][0][-1]


def test_a_ball_between_two_collisions_counts_no_collision(store: Store) -> None:
    velocity = store["bballs/test_1"]["velocity"][:]
    turned = (np.abs(np.diff(velocity, axis=1)) > 1e-3).any(-1)
    assert 0 < turned.mean() < 0.6
    assert stats_of(store["bballs/test_1"]).row["collisions_per_ball_and_frame"] == pytest.approx(
        turned.mean(), abs=1e-4
    )


@pytest.mark.usefixtures("block")
def test_battle_numbers_are_those_of_the_whole_arrays(store: Store) -> None:
    group = store["sc2/2s3z/train"]
    found = stats_of(group)
    lengths = group["length"][:]
    assert found.row["agents"] == found.row["enemies"] == "2 stalker, 3 zealot"
    assert found.row["length_mean_steps"] == pytest.approx(lengths.mean(), abs=0.01)
    assert found.row["length_max_steps"] == lengths.max()
    shares = [found.row[f"{name}_share"] for name in group.attributes["outcomes"]]
    assert sum(shares) == pytest.approx(1, abs=1e-3)
    alive = group["unit_alive"][:]
    assert found.curves["agents alive"][0] == alive[:, 0, :5].sum(-1).mean()
    policies = found.shares["outcome by policy"]
    assert sum(entry["episodes"] for entry in policies.values()) == len(group)
    assert found.row["return_mean"] == pytest.approx(group["reward"][:].sum(1).mean(), abs=1e-3)
    assert found.maps["agents"].sum() == pytest.approx(1)
    y, x = np.unravel_index(found.maps["agents"].argmax(), (32, 32))
    position = group["unit_position"][:][:, :, :5][alive[..., :5]]
    assert ((np.floor(position) == (x, y)).all(-1)).sum() == max(
        np.unique(np.floor(position), axis=0, return_counts=True)[1]
    )


def test_wilson_interval_matches_published_values() -> None:
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-3)  # Newcombe 1998, table I
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_figures_and_numbers_are_written(store: Store, tmp_path: Path) -> None:
    groups = [store[path] for path in ("bballs/train", "sc2/2s3z/train")]
    found = [(group, stats_of(group)) for group in groups]
    paths = save_stats(found, tmp_path / "stats")
    assert sorted(p.name for p in paths) == ["bballs.png", "bballs.svg", "sc2.png", "sc2.svg", "stats.json"]
    assert all(path.stat().st_size > 1000 for path in paths)
    assert json.loads(paths[0].read_text())["bballs/train"]["sequences"] == 24


@pytest.mark.usefixtures("block")
def test_arrays_of_any_kind_are_counted(toy_store: Path) -> None:
    group = Store(toy_store)["toy/train"]
    found = array_stats(group, Progress())
    position = group["position"][:]
    assert found.row["sequences"] == len(group) == 10
    assert found.row["position_count"] == position.size
    assert found.row["position_mean"] == pytest.approx(position.mean(), abs=1e-4)
    assert found.row["position_sd"] == pytest.approx(position.std(), abs=1e-4)
    assert (found.row["position_min"], found.row["position_max"]) == pytest.approx((position.min(), position.max()))
    assert found.row["alive_mean"] == pytest.approx(group["alive"][:].mean())
    np.testing.assert_allclose(found.curves["position"], position.mean((0, 2)), rtol=1e-5)
    assert found.curves["seed"].shape == (1,)
    json.dumps(found.to_json())


def test_a_world_that_is_not_installed_is_named(toy_store: Path) -> None:
    with pytest.raises(UsageError, match="made by 'toy', a world that is not installed here"):
        stats_of(Store(toy_store)["toy/train"])
