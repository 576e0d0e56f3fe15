"""Losses: means over what exists, against torch's own on the selected queries."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from s2rm_data.errors import UsageError
from s2rm_data.generators.bballs.crops import BallPrediction
from s2rm_data.generators.sc2.images import PolarPrediction
from s2rm_data.models import build
from s2rm_data.registry import WORLDS


def loss_terms(prediction, targets, mask):
    world = "bballs" if isinstance(prediction, BallPrediction) else "sc2"
    return WORLDS.load(world).learning().loss_terms(prediction, targets, mask)


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
