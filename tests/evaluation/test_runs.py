from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_runs import make_run, tiny_model

from s2rm_data.core.errors import DamagedStoreError, S2RMWarning, UsageError
from s2rm_data.evaluation.candidates import entries_of
from s2rm_data.evaluation.runs import find_runs, load_runs


def test_seeds_of_one_config_share_a_label_and_other_configs_do_not(tmp_path: Path) -> None:
    make_run(tmp_path / "a", "lstm", "bballs", seed=0)
    make_run(tmp_path / "b", "lstm", "bballs", seed=1, threads=4)
    make_run(tmp_path / "c", "lstm", "bballs", lr=0.1)
    make_run(tmp_path / "d", "rims", "bballs")
    make_run(tmp_path / "e", "rims", "sc2")
    runs = load_runs([tmp_path])
    assert [run.label for run in runs] == ["LSTM (a)", "LSTM (a)", "LSTM (c)", "RIMs", "RIMs"]
    assert [run.name for run in runs] == ["a", "b", "c", "d", "e"]
    assert [run.seed for run in runs] == [0, 1, 0, 0, 0]


def test_a_model_with_a_skip_has_a_name_of_its_own_and_no_number_of_the_papers(tmp_path: Path) -> None:
    make_run(tmp_path / "plain", "lstm", "bballs")
    make_run(tmp_path / "skip", "lstm", "bballs", model_fields={"skip": True})
    make_run(tmp_path / "forgetful", "no_memory", "bballs")
    entries = entries_of(load_runs([tmp_path]))
    assert [(e.label, e.paper_name) for e in entries] == [
        ("LSTM", "lstm"),
        ("LSTM + skip", ""),
        ("No memory", "no_memory"),
    ]
    assert entries[0].colour == "#0072b2" and entries[1].colour != entries[0].colour


def test_names_are_as_long_as_they_must_be(tmp_path: Path) -> None:
    paths = [make_run(tmp_path / name / "seeds" / "0", "lstm", "bballs") for name in ("x", "y")]
    assert [run.name for run in load_runs(paths)] == ["x/seeds/0", "y/seeds/0"]


def test_weights_are_those_saved(tmp_path: Path) -> None:
    (run,) = load_runs([make_run(tmp_path / "a", "lstm", "bballs", seed=3)])
    for name, tensor in tiny_model("lstm", "bballs", 3).state_dict().items():
        torch.testing.assert_close(run.model.state_dict()[name], tensor)
    assert not run.model.training


def test_a_run_is_found_once(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a", "lstm", "bballs")
    assert find_runs([path, tmp_path, path]) == [path]


def test_what_is_not_a_run_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run folder at"):
        load_runs([tmp_path / "nowhere"])
    with pytest.raises(UsageError, match=r"nor are there any in it"):
        load_runs([tmp_path])
    path = make_run(tmp_path / "a", "lstm", "bballs")
    weights = (path / "best.safetensors").read_bytes()
    (path / "best.safetensors").unlink()
    with pytest.raises(UsageError, match=r"has no weights.*s2rm-train --resume"):
        load_runs([path])
    (path / "best.safetensors").write_bytes(weights[:-100])
    with pytest.raises(DamagedStoreError, match="cannot be used as weights"):
        load_runs([path])
    (path / "config.json").write_text("{")
    with pytest.raises(DamagedStoreError, match="is damaged"):
        load_runs([path])
    (path / "config.json").write_text('{"config": {}}')
    with pytest.raises(UsageError, match="it names no model"):
        load_runs([path])


def test_in_a_folder_of_runs_the_finished_ones_are_evaluated_and_the_others_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_run(tmp_path / "runs" / name, "lstm", "bballs")
    (tmp_path / "runs" / "b" / "summary.json").unlink()
    seeds = tmp_path / "runs" / "seeds-only"  # of several seeds, none of which has come to the fine-tuning
    seeds.mkdir()
    (seeds / "protocol.json").write_text('{"runs": 3}')
    (tmp_path / "runs" / "notes").mkdir()
    with pytest.warns(S2RMWarning, match=r"training is not finished: \S*runs/b, \S*runs/seeds-only$"):
        assert [run.path.name for run in load_runs([tmp_path / "runs"])] == ["a"]
    (tmp_path / "runs" / "a" / "summary.json").unlink()
    with pytest.warns(S2RMWarning) as said:
        assert [run.path.name for run in load_runs([tmp_path / "runs"])] == ["a", "b"]
    assert "no run in" in str(said[-1].message)


def test_in_a_folder_of_runs_those_that_are_not_ready_are_left_out_and_named(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        make_run(tmp_path / "runs" / name, "lstm", "bballs")
    (tmp_path / "runs" / "b" / "best.safetensors").unlink()
    with pytest.warns(S2RMWarning, match=r"left out.*runs/b$"):
        assert [run.path.name for run in load_runs([tmp_path / "runs"])] == ["a", "c"]
    with pytest.raises(UsageError, match="has no weights"):
        load_runs([tmp_path / "runs" / "b"])
    for name in ("a", "c"):
        (tmp_path / "runs" / name / "best.safetensors").unlink()
    with pytest.raises(UsageError, match="has no weights"):
        load_runs([tmp_path / "runs"])
