from __future__ import annotations

import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, f1_score

from s2rm_data.learning.metrics import BinaryCounts, ClassCounts, masked_mean


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


def test_macro_f1_agrees_with_scikit_learn_over_the_classes_present() -> None:
    random = torch.Generator().manual_seed(0)
    true = torch.randint(0, 4, (200,), generator=random)
    predicted = torch.where(
        torch.rand(200, generator=random) < 0.6, true, torch.randint(0, 6, (200,), generator=random)
    )
    counts = ClassCounts.of(predicted, true, torch.ones(200, dtype=torch.bool), classes=10)
    expected = f1_score(true, predicted, labels=[0, 1, 2, 3], average="macro")
    assert counts.macro_f1(background=True) == pytest.approx(expected)
    expected = f1_score(true, predicted, labels=[1, 2, 3], average="macro")
    assert counts.macro_f1(background=False) == pytest.approx(expected)


def test_a_perfect_prediction_scores_one_however_few_classes_occur() -> None:
    true = torch.tensor([0, 3, 3, 7])
    counts = ClassCounts.of(true, true, torch.ones(4, dtype=torch.bool), classes=10)
    assert counts.macro_f1(background=True) == 1.0


def test_masked_cells_do_not_count_and_counts_add_up() -> None:
    true, predicted = torch.tensor([1, 2, 2]), torch.tensor([1, 1, 2])
    where = torch.tensor([True, False, True])
    counts = ClassCounts.of(predicted, true, where, classes=3)
    assert counts.macro_f1(background=False) == 1.0
    assert int(counts.plus(counts).confusion.sum()) == 4


def test_queries_that_do_not_exist_change_no_mean() -> None:
    values = torch.tensor([[[1.0, 3.0], [torch.nan, torch.inf], [6.0, 6.0]]])  # (T, Q, pixels)
    assert masked_mean(values, torch.tensor([[True, False, True]])) == 4.0  # of 2 and 6
    assert masked_mean(values, torch.zeros(1, 3, dtype=torch.bool)) == 0.0
