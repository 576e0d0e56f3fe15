"""A run folder notices when its config or log was changed, equal runs give equal bytes, and old folders still open."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
import torch
from killed_runs import KillAt
from toy import tree

from s2rm_data.core.errors import DamagedStoreError, UsageError
from s2rm_data.models.weights import load_model, save_model
from s2rm_data.training.checkpoint import load_state, save_state
from s2rm_data.training.folder import is_run, read_run

WEIGHTS = ("best.safetensors", "last.safetensors", "state.safetensors")


@pytest.fixture(scope="module")
def stopped(tiny, train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed after its third step and has a checkpoint."""
    path = tmp_path_factory.mktemp("sealed") / "run"
    with pytest.raises(KeyboardInterrupt):
        train(tiny(steps=4, validate_every=2), path, KillAt(3, KeyboardInterrupt))
    return path


@pytest.fixture
def run(stopped: Path, tmp_path: Path) -> Path:
    shutil.copytree(stopped, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(("name", "value"), [("lr", 0.5), ("seed", 7), ("batch_size", 3)])
def test_a_config_that_was_edited_is_not_resumed(tiny, train, run: Path, name: str, value: Any) -> None:
    document = json.loads((run / "config.json").read_text())
    document["config"][name] = value
    (run / "config.json").write_text(json.dumps(document, indent=2))
    before = tree(run)
    with pytest.raises(DamagedStoreError, match=r"config\.json is not as it was when the run was started"):
        train(tiny(steps=4, validate_every=2), run, resume=True)
    (run / "run.json").unlink()  # as a run of an earlier version
    with pytest.raises(DamagedStoreError, match=r"config\.json is not what state\.safetensors was made with"):
        train(tiny(steps=4, validate_every=2), run, resume=True)
    assert {k: v for k, v in tree(run).items() if k != "run.json"} == {
        k: v for k, v in before.items() if k != "run.json"
    }


def test_a_log_that_was_edited_is_not_resumed(tiny, train, run: Path) -> None:
    data = bytearray((run / "log.jsonl").read_bytes())
    data[40] ^= 1
    (run / "log.jsonl").write_bytes(data)
    with pytest.raises(DamagedStoreError, match=r"log\.jsonl is damaged"):
        train(tiny(steps=4, validate_every=2), run, resume=True)


def test_equal_runs_give_equal_bytes_that_everybody_can_read(tiny, train, run: Path, tmp_path: Path) -> None:
    train(tiny(steps=4, validate_every=2), run, resume=True)
    train(tiny(steps=4, validate_every=2), tmp_path / "again")
    for name in (*WEIGHTS, "log.jsonl", "summary.json"):
        assert (run / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name
    modes = {stat.S_IMODE((run / name).stat().st_mode) for name in (*WEIGHTS, "config.json", "run.json", "log.jsonl")}
    assert len(modes) == 1


def test_a_run_of_an_earlier_version_is_resumed(tiny, train, run: Path, tmp_path: Path) -> None:
    (run / "run.json").unlink()
    tensors, record = load_state(run / "state.safetensors")
    for name in ("config_sha256", "log_sha256"):
        del record[name]
    save_state(run / "state.safetensors", tensors, record)
    assert read_run(run)["config"]["steps"] == 4
    train(tiny(steps=4, validate_every=2), run, resume=True)
    train(tiny(steps=4, validate_every=2), tmp_path / "again")
    assert (run / "log.jsonl").read_bytes() == (tmp_path / "again" / "log.jsonl").read_bytes()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(run: Path, value: float) -> None:
    model = load_model(run / "best.safetensors")
    with torch.no_grad():
        next(model.parameters()).view(-1)[0] = value
    save_model(model, run / "best.safetensors")
    with pytest.raises(DamagedStoreError, match="holds weights that are not finite"):
        load_model(run / "best.safetensors")


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"config": []},
        {"config": {}},
        {"config": {"model": "s2gru"}},
        {"config": {"model": ["s2gru"], "task": "bballs"}},
        {"config": {"model": "s2gru", "task": {}}},
        {"config": {"model": "s2gru", "task": "bballs", "seed": "x"}},
        {"config": {"model": "s2gru", "task": "bballs", "seed": 1e300}},
        {"config": {"model": "s2gru", "task": "bballs", "seed": 10**30}},
        {"config": {"model": "s2gru", "task": "bballs"}, "store": []},
        {"config": {"model": "s2gru", "task": "bballs"}, "store": {"path": 3}},
        {"config": {"model": "s2gru", "task": "bballs"}, "store": {"path": "", "groups": ["bballs/train"]}},
        {"config": {"model": "s2gru", "task": "bballs"}, "store": {"path": "", "groups": {"bballs/train": 3}}},
    ],
    ids=str,
)
def test_a_document_that_is_no_runs_is_refused(tmp_path: Path, document: Any) -> None:
    (tmp_path / "config.json").write_text(json.dumps(document))
    with pytest.raises(UsageError, match=r"config\.json is not the config of a run"):
        read_run(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "1" * 5000, "\x00", '"\\ud800'])
def test_a_document_that_is_no_json_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(DamagedStoreError, match=r"config\.json is damaged"):
        read_run(tmp_path)


@pytest.mark.parametrize("name", ["run.json", "config.json", "protocol.json", "state.safetensors"])
def test_a_pipe_is_not_waited_for_when_a_run_is_looked_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    assert not is_run(tmp_path)
