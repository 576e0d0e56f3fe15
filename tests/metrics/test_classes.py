from __future__ import annotations

import pytest
import torch
from sklearn.metrics import f1_score

from s2rm_data.metrics import ClassCounts


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
