"""Numbers without end are refused by name, and a run that cannot fit into memory before it is tried."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from s2rm_data.core.errors import UsageError
from s2rm_data.store import Store
from s2rm_data.training import cost as memory
from s2rm_data.training.config import parse_assignments
from s2rm_data.training.cost import check_memory
from s2rm_data.training.data import RunData
from s2rm_data.training.processes import Processes


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", 99999999999999999999),
        ("seed", 10**4999),
        ("batch_size", 10**9),
        ("threads", 10**9),
        ("loader_threads", 10**6),
        ("views", 10**9),
        ("queries", 10**9),
        ("window", 10**12),
        ("steps", 10**30),
        ("hidden_size", 10**9),
        ("hidden_size", 10**4999),
        ("modules", 10**9),
        ("width", 10**7),
        ("lr", 10**400),
        ("lr", float("inf")),
        ("clip_norm", 10**400),
        ("position_scale", 10**400),
        ("image_size", [10**9, 10**9]),
        ("model_fields", {}),
        ("lr", [[[[1]]]]),
    ],
    ids=lambda value: str(value)[:12] if not isinstance(value, int) or value < 10**30 else "huge",
)
def test_a_number_out_of_bounds_is_refused_by_name(tiny: Any, name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name):
        tiny(**{name: value})


@pytest.mark.parametrize("text", ["1" * 5000, "[" * 900, "1" * 900 + "e", '{"a":' * 100])
def test_assignments_are_bounded(text: str) -> None:
    try:
        assert isinstance(parse_assignments((f"lr={text}",))["lr"], str | int)
    except UsageError as error:
        assert "longer than the 1000 characters allowed" in str(error)


def test_a_model_that_cannot_fit_is_refused_with_its_size(
    tiny: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(hidden_size=20_000, modules=50)
    monkeypatch.setattr(memory, "memory_nbytes", lambda device: 8 * 10**9)
    with pytest.raises(UsageError, match=r"needs at least [\d,]{3,}\.\d GB .* parameters.*and there are 8\.0 GB"):
        check_memory(config, RunData(store, config))


def test_a_batch_that_cannot_fit_is_refused(tiny: Any, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(views=2000, batch_size=12)
    monkeypatch.setattr(memory, "memory_nbytes", lambda device: 10**8)
    with pytest.raises(UsageError, match=r"for batches of 12 sequences\), and there are 0\.1 GB"):
        check_memory(config, RunData(store, config))


@pytest.mark.parametrize(("local_count", "sequences"), [(4, 12), (2, 6), (1, 3)])
def test_processes_share_a_batch_and_the_memory_of_their_machine(
    tiny: Any, store: Store, monkeypatch: pytest.MonkeyPatch, local_count: int, sequences: int
) -> None:
    """Four processes, on one machine, on two, on four."""
    config = tiny(views=2000, batch_size=12)
    processes = Processes(alone=True)
    processes.count, processes.local_count = 4, local_count
    monkeypatch.setattr(memory, "memory_nbytes", lambda device: 10**6)
    with pytest.raises(UsageError, match=rf"for batches of {sequences} sequences\)"):
        check_memory(config, RunData(store, config), processes)


def test_what_the_forward_pass_keeps_is_counted(tiny: Any, store: Store) -> None:
    config = tiny(batch_size=2)
    data = RunData(store, config)
    one = memory._kept_nbytes(config, data)
    images = memory._sequence_nbytes(config, data)
    assert images < one < 1000 * images
    assert memory._kept_nbytes(dataclasses.replace(config, precision="mixed"), data) < one


def test_the_memory_of_this_machine_is_known() -> None:
    assert 10**8 < memory.memory_nbytes(torch.device("cpu")) < 10**15


def test_a_run_that_fits_is_not_refused(tiny: Any, train: Any, tmp_path: Path) -> None:
    assert train(tiny(steps=1), tmp_path / "run")["steps"] == 1
    assert json.loads((tmp_path / "run" / "config.json").read_text())["config"]["steps"] == 1
