from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from s2rm_data.core.errors import DamagedStoreError, DiskError, S2RMError, UsageError
from s2rm_data.models import build
from s2rm_data.models.weights import save_model
from s2rm_data.training.checkpoint import (
    load_state,
    restore_tensors,
    save_state,
    state_tensors,
)

RECORD = {"step": 3, "loss": 0.1}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "state.safetensors"
    save_state(
        path, {"weights/a": torch.arange(6.0).view(2, 3), "random/cpu": torch.arange(9, dtype=torch.uint8)}, RECORD
    )
    return path


def test_tensors_and_record_come_back_as_they_were(saved: Path) -> None:
    tensors, record = load_state(saved)
    assert record == RECORD
    torch.testing.assert_close(tensors["weights/a"], torch.arange(6.0).view(2, 3), rtol=0, atol=0)


def test_no_byte_can_change_unnoticed(saved: Path) -> None:
    data = saved.read_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        saved.write_bytes(damaged)
        try:
            tensors, record = load_state(saved)
        except S2RMError as error:
            assert str(saved) in str(error)
        else:  # a name or blank in the header that means the same
            assert (record, {n: t.tolist() for n, t in tensors.items()}.keys()) == (RECORD, {"weights/a", "random/cpu"})


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_file_that_was_cut_is_refused(saved: Path, keep: int) -> None:
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(DamagedStoreError, match="damaged"):
        load_state(saved)


def test_foreign_and_missing_files_are_refused(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2)}, tmp_path / "foreign.safetensors")
    with pytest.raises(UsageError, match="not a checkpoint of s2rm-train"):
        load_state(tmp_path / "foreign.safetensors")
    with pytest.raises(DamagedStoreError, match="is missing"):
        load_state(tmp_path / "none.safetensors")


def test_when_the_disk_refuses_the_old_checkpoint_stays(saved: Path) -> None:
    before = saved.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(DiskError, match=r"cannot write .*state.safetensors.*committed before is safe"):
            save_state(saved, {"weights/a": torch.zeros(100_000)}, RECORD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_an_optimiser_goes_on_exactly_from_its_tensors(tmp_path: Path) -> None:
    def fresh() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
        return model, torch.optim.Adam(model.parameters(), lr=0.1, fused=True)

    def steps(model: torch.nn.Module, optimiser: torch.optim.Optimizer, count: int) -> None:
        for _ in range(count):
            optimiser.zero_grad()
            model(torch.randn(8, 3)).square().mean().backward()
            optimiser.step()

    model, optimiser = fresh()
    steps(model, optimiser, 3)
    path, device = tmp_path / "state.safetensors", torch.device("cpu")
    save_state(path, state_tensors(model, optimiser, device), {})
    steps(model, optimiser, 4)
    other, its_optimiser = fresh()
    restore_tensors(load_state(path)[0], other, its_optimiser, device, path)
    steps(other, its_optimiser, 4)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_when_the_disk_refuses_the_old_weights_stay(tmp_path: Path) -> None:
    path = tmp_path / "last.safetensors"
    save_model(build("lstm", task="bballs", codec="mlp", width=1, encoding_size=4, hidden_size=4), path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(DiskError, match=r"cannot write .*last.safetensors.*the file is larger than"):
            save_model(build("lstm", task="bballs", codec="mlp", width=4), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
