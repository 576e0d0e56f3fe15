"""The kernel and the recurrence in full precision, whatever the process allows elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from s2rm_data.core.registry import MODELS
from s2rm_data.models import build, device
from s2rm_data.models.device import full_products
from s2rm_data.training import machine


@pytest.fixture(autouse=True)
def rounded_elsewhere() -> Iterator[None]:
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("model", MODELS.names())
def test_steps_and_kernel_multiply_in_full_precision(small, make_batch, monkeypatch, model: str) -> None:
    built = build(model, task="bballs", **small(model, "bballs"))
    seen: dict[str, set[str]] = {}

    def watch(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def watched(*arguments: Any, **keywords: Any) -> Any:
            seen.setdefault(name, set()).add(torch.get_float32_matmul_precision())
            return function(*arguments, **keywords)

        monkeypatch.setattr(owner, name, watched)

    for name in ("prepare", "own_unroll"):
        watch(built, name)
    watch(torch, "exp")  # the kernel's, right after its product
    watch(built.encoder, "forward")
    built(make_batch("bballs"))
    assert seen["prepare"] == seen["own_unroll"] == {"highest"}
    assert seen["forward"] == {"high"}
    assert seen.get("exp", {"highest"}) == {"highest"}
    assert torch.get_float32_matmul_precision() == "high"


def test_precision_is_as_before_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), full_products():
        _ = 1 / 0
    assert torch.get_float32_matmul_precision() == "high"


@pytest.mark.parametrize(
    ("tiles", "error", "used"), [(False, 1e-7, True), (True, 1e-7, False), (False, 2e-3, False)], ids=str
)
def test_onednn_multiplies_only_where_it_is_found_to_keep_to_float32(
    monkeypatch: pytest.MonkeyPatch, tiles: bool, error: float, used: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: tiles)
    monkeypatch.setattr(device, "_product_error", lambda *shapes: error)
    monkeypatch.setattr(device, "_full", {device.FULL})
    assert device.use_onednn() == used and torch.get_float32_matmul_precision() == ("medium" if used else "high")
    with full_products():
        assert torch.get_float32_matmul_precision() == ("medium" if used else "highest")


def test_the_error_of_a_product_tells_bfloat16_from_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_float32_matmul_precision("highest")
    exact = [device._product_error(*shapes) for shapes in device._SHAPES]
    multiply = torch.Tensor.__matmul__

    def rounded(x: Any, y: Any) -> Any:
        return (
            multiply(x.bfloat16().to(x.dtype), y.bfloat16().to(y.dtype)) if x.dtype == torch.float32 else multiply(x, y)
        )

    monkeypatch.setattr(torch.Tensor, "__matmul__", rounded)
    coarse = [device._product_error(*shapes) for shapes in device._SHAPES]
    assert max(exact) < device._ERROR / 2 and min(coarse) > 10 * device._ERROR


def test_on_this_processor_training_multiplies_in_float32() -> None:
    torch.set_float32_matmul_precision("highest")
    machine.set_up(torch.device("cpu"), torch.get_num_threads())
    x, y = torch.randn(500, 300), torch.randn(300, 70)
    assert float((x @ y - x.double() @ y.double()).abs().max()) < 3e-4
