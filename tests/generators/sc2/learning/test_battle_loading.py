from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from s2rm_data.core.errors import UsageError
from s2rm_data.generators.sc2.learning.battle_batches import HEIGHT_SCALE
from s2rm_data.generators.sc2.learning.battle_scores import polar_views
from s2rm_data.generators.sc2.making.battle_source import plan
from s2rm_data.learning import FixedBatches, TrainingBatches, open_source
from s2rm_data.learning.dataset import open_groups
from s2rm_data.making.run import generate
from s2rm_data.models import build
from s2rm_data.store import Store


def stored_views(store: Store, path: str, rows: slice) -> torch.Tensor:
    group = store[path]
    friendly, unit_type, action = torch.from_numpy(group["categories"][rows]).unbind(-1)
    hecs = torch.from_numpy(group["hecs"][rows]).movedim(-1, -3)
    height = torch.from_numpy(group["height"][rows]) * HEIGHT_SCALE
    return polar_views(friendly, unit_type, hecs, height, action)


@pytest.mark.parametrize("path", ["sc2/1s2z/train", "sc2/2s3z/train"])
def test_views_and_targets_are_the_stored_images_value_for_value(store: Store, path: str) -> None:
    source = open_groups([store[path]])
    batch = next(iter(FixedBatches(source, batch_size=6)))
    views = stored_views(store, path, slice(0, 6))
    torch.testing.assert_close(batch.views, views[:, :-1], rtol=0, atol=0)
    friendly, unit_type, hecs = batch.targets
    torch.testing.assert_close(friendly.float(), views[:, 1:, :, 0], rtol=0, atol=0)
    torch.testing.assert_close(hecs, views[:, 1:, :, 10:14], rtol=0, atol=0)
    np.testing.assert_array_equal(unit_type, store[path]["categories"][:][:, 1:, ..., 1])
    np.testing.assert_array_equal(batch.view_mask, store[path]["agent_alive"][:][:, :-1])
    np.testing.assert_array_equal(batch.query_position, store[path]["agent_position"][:][:, 1:])


def test_scenarios_of_different_size_share_a_batch_and_the_padding_is_masked(store: Store) -> None:
    source = open_source(store, "sc2", "train", steps=4)
    assert source.agents == 5
    assert len(source) == 12
    request = source.sample(np.random.default_rng(0), np.array([0, 6]))  # one of 1s2z, three agents; one of 2s3z, five
    batch = source.batch(request)
    assert not batch.view_mask[0, :, 3:].any()
    assert not batch.query_mask[0, :, 3:].any()
    assert batch.view_mask[1, 0].all()


def test_what_is_padded_or_dead_does_not_change_the_loss(store: Store) -> None:
    small = open_groups([store["sc2/1s2z/train"]])
    both = open_source(store, "sc2", "train")
    model = build("s2gru", task="sc2", image_size=(8, 16), codec="mlp", width=4)
    losses = [model.loss(model(b), b) for b in (next(iter(FixedBatches(s, batch_size=6))) for s in (small, both))]
    torch.testing.assert_close(*losses)


def test_windows_past_the_end_of_an_episode_are_masked(store: Store) -> None:
    source = open_groups([store["sc2/1s2z/train"]])
    source.members[0].length[:] = 4
    batch = next(iter(FixedBatches(source, batch_size=6)))
    assert not batch.views[:, 4:, :, :14].any()


def test_windows_begin_where_they_fit_into_the_episode(store: Store) -> None:
    source = open_groups([store["sc2/2s3z/train"]], steps=4)
    source.members[0].length[:] = 8
    starts = source.sample(np.random.default_rng(0), np.zeros(200, np.int64)).start
    assert set(starts) == {0, 1, 2, 3}


def test_dropped_agents_give_no_view_but_still_query(store: Store) -> None:
    source = open_groups([store["sc2/2s3z/train"]])
    whole, dropped = (next(iter(FixedBatches(source, batch_size=6, drop=drop))) for drop in (0.0, 0.5))
    torch.testing.assert_close(whole.query_mask, dropped.query_mask)
    share = float(dropped.view_mask.sum() / whole.view_mask.sum())
    assert 0.35 < share < 0.65
    assert not (dropped.view_mask & ~whole.view_mask).any()


def test_next_views_are_those_of_the_same_agents_one_step_later(store: Store) -> None:
    source = open_source(store, "sc2", "train", steps=4, next_views=True)
    batch = TrainingBatches(source, batch_size=4, seed=0).batch(0, 0)
    torch.testing.assert_close(batch.next_views[:, :-1], batch.views[:, 1:], rtol=0, atol=0)
    torch.testing.assert_close(batch.next_view_position, batch.query_position, rtol=0, atol=0)


def test_the_device_side_gives_the_same_views_as_the_compiled_loop(store: Store) -> None:
    source = open_source(store, "sc2", "train", steps=4)
    request = source.sample(np.random.default_rng(0), np.array([0, 3, 6]))
    on_cpu = source.batch(request)
    source.device = torch.device("meta")  # any device but the CPU takes the torch way
    records = source.prepare(request)
    torch.testing.assert_close(source._views(records), on_cpu.views, rtol=0, atol=0)


def test_images_are_drawn_of_any_size_from_states_that_were_stored_with_another(tmp_path: Path) -> None:
    stored = {}
    for cells in ((8, 16), (10, 24)):
        path = tmp_path / f"{cells[0]}.zarr"
        generate(plan(scenario=["1s2z"], train=4, val=0, steps=8, radial=cells[0], angular=cells[1]), path)
        stored[cells] = Store(path)["sc2/1s2z/train"]
    for cells, other in ((8, 16), (10, 24)), ((10, 24), (8, 16)):
        own, foreign = stored[cells], stored[other]
        as_stored = next(iter(FixedBatches(open_groups([own]), batch_size=4)))
        for view in {"image_size": list(cells)}, {"image_size": cells, "cell_size": 9 / cells[0]}:
            drawn = next(iter(FixedBatches(open_groups([foreign], **view), batch_size=4)))
            torch.testing.assert_close(drawn.views, as_stored.views, rtol=0, atol=0, msg=str(view))
            for one, two in zip(drawn.targets, as_stored.targets, strict=True):
                torch.testing.assert_close(one, two, rtol=0, atol=0)
    near = open_groups([foreign], image_size=(8, 16), cell_size=0.5)
    assert (near.grid.radius, near.cell_size) == (4.0, 0.5)
    with pytest.raises(UsageError, match="unlike images"):
        open_groups(list(stored.values()))
    assert len(open_groups(list(stored.values()), image_size=(8, 16))) == 8
