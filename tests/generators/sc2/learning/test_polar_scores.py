from __future__ import annotations

import pytest
import torch
from sklearn.metrics import f1_score, log_loss, mean_squared_error

from s2rm_data.generators.sc2.learning.battle_scores import PolarCounts


def sample() -> tuple:
    random = torch.Generator().manual_seed(0)
    shape = (2, 3, 4)
    logits = (
        torch.randn(*shape, 5, 6, generator=random),
        torch.randn(*shape, 10, 5, 6, generator=random),
        torch.randn(*shape, 4, 5, 6, generator=random),
    )
    targets = (
        torch.randint(0, 2, (*shape, 5, 6), generator=random),
        torch.randint(0, 5, (*shape, 5, 6), generator=random),
        torch.randn(*shape, 4, 5, 6, generator=random),
    )
    return logits, targets, torch.rand(shape, generator=random) > 0.3


def test_scores_agree_with_scikit_learn_on_what_exists() -> None:
    logits, targets, mask = sample()
    scores = PolarCounts.of(logits, targets, mask).scores()
    friendly, unit_type, hecs = (part[mask] for part in logits)
    true_friendly, true_type, true_hecs = (part[mask] for part in targets)
    assert scores["fm_f1"] == pytest.approx(f1_score(true_friendly.flatten(), (friendly > 0).flatten()))
    predicted = unit_type.argmax(1).flatten()
    expected = f1_score(true_type.flatten(), predicted, labels=range(5), average="macro")
    assert scores["ut_f1"] == pytest.approx(expected)
    error = mean_squared_error(true_hecs.flatten(), hecs.flatten())
    assert scores["nmse"] == pytest.approx(-error, rel=1e-5)
    bce = log_loss(true_friendly.flatten(), friendly.double().sigmoid().flatten())
    probability = unit_type.double().softmax(1).movedim(1, -1).reshape(-1, 10)
    ce = log_loss(true_type.flatten(), probability, labels=range(10))
    assert scores["ll"] == pytest.approx(-(bce + ce + error), rel=1e-5)


def test_counts_of_parts_add_up_to_the_whole() -> None:
    logits, targets, mask = sample()
    halves = [
        PolarCounts.of(tuple(x[b : b + 1] for x in logits), tuple(x[b : b + 1] for x in targets), mask[b : b + 1])
        for b in (0, 1)
    ]
    assert halves[0].plus(halves[1]).scores() == pytest.approx(PolarCounts.of(logits, targets, mask).scores())
