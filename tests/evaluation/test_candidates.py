"""Models from outside, scored beside run folders."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from contexts import context_of
from tiny_runs import make_run, tiny_model

from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import WORLDS
from s2rm_data.evaluation.candidates import OwnModel
from s2rm_data.evaluation.evaluate import EvalConfig, evaluate, write_artefacts
from s2rm_data.evaluation.world_evaluation import evaluation_of
from s2rm_data.learning.batch import Batch
from s2rm_data.store import Store

CPU = torch.device("cpu")
FEW = EvalConfig.of(quick=True, sequences=2, dropped_sequences=2, rollout_sequences=2, dropped_views=(0.0, 0.5))


def one_step(store: Store, path: str, model: OwnModel, fractions: tuple[float, ...] = (0.0,)):
    evaluation = evaluation_of(WORLDS.load(model.world))
    return evaluation.one_step(context_of(store, [model.as_run(CPU)]), [store[path]], fractions, 3)


def test_a_callable_that_is_a_model_scores_as_the_model_does(store: Store, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "lstm", "lstm", "bballs")
    same = tiny_model("lstm", "bballs")
    mine = OwnModel(name="mine", world="bballs", predict=lambda batch: same(batch))
    found = evaluate([folder, mine], store, FEW, device=CPU)
    for comparison in (
        found.worlds["bballs"].one_step["test_3"],
        found.worlds["bballs"].dropped_views["test_3"][0.5],
    ):
        assert comparison.runs["mine"] == comparison.runs["lstm"]
    assert set(found.worlds["bballs"].rollouts["test_3"].runs) == {"lstm"}  # a function cannot be stepped
    table = found.tables["one_step"]
    assert table["mine", "3"].values == table["LSTM", "3"].values
    assert json.dumps(found.results["runs"]["mine"]["parameters"]) == "null"
    found.results["store"] = os.fsdecode(b"\xff.zarr")  # the name of a file can be any bytes
    write_artefacts(found, tmp_path / "report")
    text = (tmp_path / "report" / "report.html").read_text()
    assert "trained elsewhere" in text and "\\udcff.zarr" in text


def test_a_module_with_the_step_by_step_interface_is_rolled_out_and_left_as_it_was(store: Store) -> None:
    model = tiny_model("lstm", "bballs").train()
    found = evaluate([OwnModel(name="mine", world="bballs", predict=model)], store, FEW, device=CPU)
    assert set(found.worlds["bballs"].rollouts["test_1"].runs) == {"mine"}
    assert model.training


@pytest.mark.parametrize(("world", "path"), [("bballs", "bballs/train"), ("sc2", "sc2/2s3z/val")])
def test_a_plain_tensor_is_read_as_a_decoder_s_output(store: Store, world: str, path: str) -> None:
    channels = WORLDS.load(world).learning().output_channels
    seen: list[Batch] = []

    def nothing(batch: Batch) -> torch.Tensor:
        seen.append(batch)
        size = batch.views.shape[-2:]
        return torch.full((*batch.query_position.shape[:3], channels, *size), -9.0)

    found = one_step(store, path, OwnModel(name="mine", world=world, predict=nothing), (0.0, 0.5))
    expected = {name: score for name, score in found[0.0].references["always_off"].items() if name.endswith("f1")}
    assert expected
    for name, score in expected.items():
        assert found[0.0].runs["mine"][name] == pytest.approx(score)
    assert all(batch.targets is None and batch.next_views is None for batch in seen)
    assert seen[-1].view_mask.sum() < seen[0].view_mask.sum()


def test_an_oracle_of_one_s_own_is_given_the_next_views(store: Store) -> None:
    seen = []

    def look(batch: Batch) -> torch.Tensor:
        seen.append(batch.next_views)
        return torch.zeros((*batch.query_position.shape[:3], 1, 11, 11))

    one_step(store, "bballs/train", OwnModel(name="mine", world="bballs", predict=look, needs_next_views=True))
    np.testing.assert_equal(seen[0].ndim, 6)


def test_what_is_not_a_prediction_is_refused_with_a_reason(store: Store) -> None:
    for wrong, reason in (
        (torch.zeros(3, 4), r"predicted a tensor of shape \(3, 4\); it must be .* = \(3, 11, 10, 1, H, W\)"),
        ([1, 2], "must predict one tensor, or the world's named tuple .*; it gave list"),
        ((torch.zeros(1),), "each beginning with"),
    ):
        model = OwnModel(name="mine", world="bballs", predict=lambda batch, wrong=wrong: wrong)
        with pytest.raises(UsageError, match=reason):
            one_step(store, "bballs/train", model)


def test_what_cannot_be_evaluated_is_refused(store: Store, tmp_path: Path) -> None:
    mine = OwnModel(name="mine", world="bballs", predict=lambda batch: None)
    with pytest.raises(UsageError, match="two of the models to evaluate are called 'mine'"):
        evaluate([mine, mine], store, FEW, device=CPU)
    with pytest.raises(UsageError, match=r"cannot be evaluated; give run folders, or a model of your own as OwnModel"):
        evaluate([lambda batch: None], store, FEW, device=CPU)
    with pytest.raises(UsageError, match="there is nothing to evaluate"):
        evaluate([], store, FEW, device=CPU)
    with pytest.raises(UsageError, match="no world 'balls'"):
        evaluate([OwnModel(name="mine", world="balls", predict=lambda batch: None)], store, FEW, device=CPU)
    with pytest.raises(UsageError, match="the evaluation of bballs has no option 'agent'"):
        evaluate([mine], store, EvalConfig.of(agent=1), device=CPU)
