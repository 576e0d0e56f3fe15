"""The examples run as they stand, here with less data."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_model_of_ones_own_is_trained_and_scored_beside_the_references(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = example("own_model").main(str(tmp_path / "own.zarr"), sequences=32, epochs=4)
    assert next(iter(scores)) == "own GRU" and {"always off", "centre ball only"} < set(scores)
    assert all({"f1", "balanced_accuracy"} <= set(found) for found in scores.values())
    first, last = (float(word) for word in capsys.readouterr().out.split() if word[:2] == "0." and len(word) == 6)[:2]
    assert last < first
