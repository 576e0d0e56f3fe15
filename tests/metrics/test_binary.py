from __future__ import annotations

import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, f1_score

from s2rm_data.metrics import BinaryCounts


@pytest.fixture
def pair() -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return torch.rand(3, 4, 50, generator=random) > 0.7, torch.rand(3, 4, 50, generator=random) > 0.8


def test_f1_and_balanced_accuracy_agree_with_scikit_learn(pair) -> None:
    predicted, true = pair
    counts = BinaryCounts.of(predicted, true)
    assert counts.f1 == pytest.approx(f1_score(true.flatten(), predicted.flatten()))
    assert counts.balanced_accuracy == pytest.approx(balanced_accuracy_score(true.flatten(), predicted.flatten()))


def test_only_what_counts_is_counted(pair) -> None:
    predicted, true = pair
    where = torch.rand(3, 1, 50) > 0.5
    counts = BinaryCounts.of(predicted, true, where)
    chosen = where.expand(true.shape)
    assert counts.f1 == pytest.approx(f1_score(true[chosen], predicted[chosen]))
    assert sum(int(c) for c in counts) == int(chosen.sum())


def test_counts_pool_and_scores_are_those_of_the_whole(pair) -> None:
    predicted, true = pair
    parts = [BinaryCounts.of(p, t) for p, t in zip(predicted, true, strict=True)]
    pooled = BinaryCounts.zero()
    for part in parts:
        pooled = pooled.plus(part)
    assert pooled == BinaryCounts.of(predicted, true)


def test_nothing_to_find_and_nothing_found_scores_zero_without_dividing_by_it() -> None:
    counts = BinaryCounts.of(torch.zeros(5), torch.zeros(5))
    assert (counts.f1, counts.balanced_accuracy) == (0.0, 1.0)
