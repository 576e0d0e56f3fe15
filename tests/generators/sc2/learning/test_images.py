"""Batches: the channel layout of polar views, and moving between devices."""

from __future__ import annotations

import torch

from s2rm_data.generators.sc2.learning import battle_scores as batches
from s2rm_data.generators.sc2.learning.battle_scores import polar_views


def test_polar_views_put_each_unit_type_and_action_on_its_own_channel():
    unit = torch.tensor([[0, 1], [5, 9]])
    action = torch.tensor([[0, 1], [7, 8]])
    hecs = torch.rand(4, 2, 2)
    views = polar_views(unit > 1, unit, hecs, torch.full((2, 2), 0.5), action)
    assert views.shape == (batches.POLAR_CHANNELS, 2, 2) == (24, 2, 2)
    assert views[0].tolist() == [[0, 0], [1, 1]]
    for i in range(2):
        for j in range(2):
            types = views[1:10, i, j].nonzero().flatten() + 1
            assert types.tolist() == ([int(unit[i, j])] if unit[i, j] else [])
            assert views[15:, i, j].nonzero().flatten().tolist() == [int(action[i, j])]
    assert torch.equal(views[10:14], hecs)
    assert (views[14] == 0.5).all()


def test_a_batch_moves_with_all_its_parts(make_batch):
    moved = make_batch("sc2").to("meta")
    assert moved.views.device.type == moved.targets.hecs.device.type == moved.next_view_mask.device.type == "meta"
