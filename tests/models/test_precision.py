"""The kernel and the recurrence in full precision, whatever the process allows elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from s2rm_data.models import build, names
from s2rm_data.models.precision import full_products


@pytest.fixture(autouse=True)
def rounded_elsewhere() -> Iterator[None]:
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("model", names())
def test_steps_and_kernel_multiply_in_full_precision(small, make_batch, monkeypatch, model: str) -> None:
    built = build(model, task="bballs", **small(model, "bballs"))
    seen: dict[str, set[str]] = {}

    def watch(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def watched(*arguments: Any, **keywords: Any) -> Any:
            seen.setdefault(name, set()).add(torch.get_float32_matmul_precision())
            return function(*arguments, **keywords)

        monkeypatch.setattr(owner, name, watched)

    for name in ("prepare", "advance"):
        watch(built, name)
    watch(torch, "exp")  # the kernel's, right after its product
    watch(built.encoder, "forward")
    built(make_batch("bballs"))
    assert seen["prepare"] == seen["advance"] == {"highest"}
    assert seen["forward"] == {"high"}
    assert seen.get("exp", {"highest"}) == {"highest"}
    assert torch.get_float32_matmul_precision() == "high"


def test_precision_is_as_before_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), full_products():
        _ = 1 / 0
    assert torch.get_float32_matmul_precision() == "high"
