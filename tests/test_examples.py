"""The examples run as they stand, here with less data."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import s2rm_data as s2

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
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


def test_agents_are_trained_and_their_file_is_rolled_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ippo, policy = example("ippo"), tmp_path / "own.safetensors"
    settings = ippo.Settings(environments=8, steps=16, width=16, updates=3, battles=8)
    curve = ippo.main("3m", out=policy, steps=700, enough=2.0, settings=settings)
    assert [point["steps"] for point in curve] == [384, 768]
    assert "of 8 other battles" in capsys.readouterr().out
    made = s2.generate("sc2", out=tmp_path / "data.zarr", scenario="3m", policy=str(policy), train=8, val=0, quiet=True)
    assert list(made.groups) == ["sc2/3m/train"]
    assert s2.open(tmp_path / "data.zarr")["sc2/3m/train"].settings["policies"] == ["own.safetensors"]
