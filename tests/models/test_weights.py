"""Models in safetensors files."""

from __future__ import annotations

import os

import pytest
import torch
from safetensors.torch import save_file

from s2rm_data.core.errors import DamagedStoreError, S2RMError, UnreadableError, UsageError
from s2rm_data.core.registry import MODELS
from s2rm_data.models import build
from s2rm_data.models.weights import load_model, save_model
from s2rm_data.training.checkpoint import load_state


@pytest.mark.parametrize("name", MODELS.names())
@pytest.mark.parametrize("task", ["bballs", "sc2"])
def test_a_saved_model_predicts_the_same_when_loaded(tmp_path, make_batch, small, name, task):
    model = build(name, task=task, **small(name, task))
    save_model(model, tmp_path / "model.safetensors")
    torch.manual_seed(99)
    loaded = load_model(tmp_path / "model.safetensors")
    batch = make_batch(task)
    assert type(loaded) is type(model) and loaded.config == model.config
    for saved, again in zip(model(batch), loaded(batch), strict=True):
        assert torch.equal(saved, again)


def test_no_bit_of_the_weights_can_change_unnoticed(tmp_path, small):
    path = tmp_path / "model.safetensors"
    save_model(build("lstm", task="bballs", **small("lstm", "bballs")), path)
    saved = path.read_bytes()
    header = 8 + int.from_bytes(saved[:8], "little")
    for where in (header, (header + len(saved)) // 2, len(saved) - 1):
        damaged = bytearray(saved)
        damaged[where] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(DamagedStoreError, match="is damaged"):
            load_model(path)


def test_files_that_hold_no_model_are_named(tmp_path):
    with pytest.raises(UsageError, match="can be read"):
        load_model(tmp_path / "none.safetensors")
    (tmp_path / "text.safetensors").write_text("no weights")
    with pytest.raises(UsageError, match="can be read"):
        load_model(tmp_path / "text.safetensors")
    save_file({"x": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(UsageError, match="not which model"):
        load_model(tmp_path / "other.safetensors")


@pytest.mark.parametrize("load", [load_model, load_state])
def test_a_file_longer_than_its_header_says_or_a_pipe_is_refused_before_it_is_mapped(tmp_path, small, load):
    path = tmp_path / "weights.safetensors"
    save_model(build("lstm", "bballs", **small("lstm", "bballs")), path)
    os.truncate(path, 64 << 30)  # a hole: it takes no space on the disk, but all the address space that there may be
    with pytest.raises(S2RMError, match=r"68,719,476,736 bytes where its header promises"):
        load(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(S2RMError, match="not a regular file"):
        load(path)


def test_weights_that_the_disk_does_not_give_are_neither_damaged_nor_a_mistake(tmp_path, monkeypatch) -> None:
    (tmp_path / "model.safetensors").touch()

    def fails(*arguments: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(type(tmp_path), "open", fails)
    for load in (load_model, load_state):
        with pytest.raises(UnreadableError, match="Input/output error"):
            load(tmp_path / "model.safetensors")
