"""Losses: means over what exists, against torch's own on the selected queries."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import WORLDS
from s2rm_data.generators.bballs.learning.ball_crops import BallPrediction
from s2rm_data.generators.sc2.learning.battle_scores import PolarPrediction
from s2rm_data.models import build


def loss_terms(prediction, targets, mask, **weights):
    world = "bballs" if isinstance(prediction, BallPrediction) else "sc2"
    return WORLDS.load(world).learning().loss_terms(prediction, targets, mask, **weights)


def polar_prediction(batch):
    shape = batch.targets.friendly.shape
    return PolarPrediction(
        torch.randn(shape), torch.randn(*shape[:3], 10, *shape[3:]), torch.randn(batch.targets.hecs.shape)
    )


def test_ball_loss_is_the_mean_binary_cross_entropy_of_existing_queries(make_batch):
    batch = make_batch("bballs")
    mask = torch.rand(batch.query_mask.shape) < 0.5
    logits = torch.randn(batch.targets.crop.shape)
    terms = loss_terms(BallPrediction(logits), batch.targets, mask)
    torch.testing.assert_close(
        terms["crop"], F.binary_cross_entropy_with_logits(logits[mask], batch.targets.crop[mask])
    )


def test_sc2_loss_terms_are_means_over_existing_queries(make_batch):
    batch = make_batch("sc2")
    mask = torch.rand(batch.query_mask.shape) < 0.5
    prediction, targets = polar_prediction(batch), batch.targets
    terms = loss_terms(prediction, targets, mask)
    friendly = F.binary_cross_entropy_with_logits(prediction.friendly[mask], targets.friendly[mask].float())
    torch.testing.assert_close(terms["friendly"], friendly)
    torch.testing.assert_close(terms["unit_type"], F.cross_entropy(prediction.unit_type[mask], targets.unit_type[mask]))
    torch.testing.assert_close(terms["hecs"], F.mse_loss(prediction.hecs[mask], targets.hecs[mask]))


def test_what_is_there_counts_as_often_as_the_weight_says(make_batch):
    batch = make_batch("sc2")
    mask = torch.rand(batch.query_mask.shape) < 0.5
    prediction, targets = polar_prediction(batch), batch.targets
    terms = loss_terms(prediction, targets, mask, occupied_weight=3.0)
    friendly, true = prediction.friendly[mask], targets.friendly[mask].float()
    positive = F.binary_cross_entropy_with_logits(friendly, true, pos_weight=torch.tensor(3.0))
    torch.testing.assert_close(terms["friendly"], positive)
    classes = torch.tensor([1.0] + [3.0] * 9)
    each = F.cross_entropy(prediction.unit_type[mask], targets.unit_type[mask], weight=classes, reduction="none")
    torch.testing.assert_close(terms["unit_type"], each.mean())
    assert terms["hecs"] == loss_terms(prediction, targets, mask)["hecs"]

    balls = make_batch("bballs")
    logits = torch.randn(balls.targets.crop.shape)
    crop = loss_terms(BallPrediction(logits), balls.targets, balls.query_mask, occupied_weight=3.0)["crop"]
    torch.testing.assert_close(
        crop, F.binary_cross_entropy_with_logits(logits, balls.targets.crop, pos_weight=torch.tensor(3.0))
    )


@pytest.mark.parametrize("exist", [0.5, 1.0])  # with and without queries that are left out
def test_training_weighs_and_validation_does_not(make_batch, small, exist):
    batch = make_batch("sc2")
    batch = dataclasses.replace(batch, query_mask=torch.rand(batch.query_mask.shape) < exist)
    fields = small("lstm", "sc2")
    torch.manual_seed(0)
    plain = build("lstm", task="sc2", **fields)
    heavy = build("lstm", task="sc2", **fields, occupied_weight=3.0)
    heavy.load_state_dict(plain.state_dict())
    prediction = plain(batch)
    assert heavy.loss(heavy(batch), batch) == plain.loss(prediction, batch)
    terms = loss_terms(prediction, batch.targets, batch.query_mask, occupied_weight=3.0)
    torch.testing.assert_close(heavy.batch_loss(batch), sum(terms.values()))
    assert heavy.batch_loss(batch) > plain.batch_loss(batch)


def test_a_world_whose_loss_takes_no_weight_says_so(make_batch, small, monkeypatch):
    learning = WORLDS.load("bballs").learning()
    monkeypatch.setattr(type(learning), "weighs_occupied", False)
    with pytest.raises(UsageError, match="occupied_weight is 2, and the loss of the world bballs takes no weight"):
        build("lstm", task="bballs", **small("lstm", "bballs"), occupied_weight=2.0)


def test_targets_of_missing_queries_do_not_matter(make_batch):
    batch = make_batch("sc2")
    mask = torch.rand(batch.query_mask.shape) < 0.5
    prediction = polar_prediction(batch)
    other = batch.targets._replace(hecs=torch.where(mask[..., None, None, None], batch.targets.hecs, 1e6))
    assert loss_terms(prediction, other, mask)["hecs"] == loss_terms(prediction, batch.targets, mask)["hecs"]


def test_no_query_at_all_gives_zero_loss_and_zero_gradient(make_batch):
    batch = make_batch("bballs")
    logits = torch.randn(batch.targets.crop.shape, requires_grad=True)
    loss = loss_terms(BallPrediction(logits), batch.targets, torch.zeros_like(batch.query_mask))["crop"]
    loss.backward()
    assert loss == 0 and (logits.grad == 0).all()


def test_a_batch_without_targets_has_no_loss(make_batch, small):
    model = build("lstm", task="bballs", **small("lstm", "bballs"))
    batch = dataclasses.replace(make_batch("bballs"), targets=None)
    with pytest.raises(UsageError, match="without targets"):
        model.loss(model(batch), batch)
