"""The examples run as they stand, here with less data."""

from __future__ import annotations

import importlib.util
import re
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
    table = example("own_model").main(str(tmp_path / "own.zarr"), sequences=32, epochs=4)
    kinds = {row.label: row.kind for row in table.rows}
    assert kinds["own GRU"] == "model" and kinds["always off"] == kinds["centre ball only"] == "reference"
    assert all(0 <= row.cells[0].mean <= 1 for row in table.rows)
    said = capsys.readouterr().out
    first, last = re.findall(r"0\.\d{4}", said)[:2]
    assert float(last) < float(first)
    assert table.title in said
