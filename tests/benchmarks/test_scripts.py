"""Benchmarks and tools are run by hand, now and then: what they import is there."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_every_benchmark_and_tool_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {}
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    for script in sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("tools/*.py"), *ROOT.glob("examples/*.py")]):
        try:
            runpy.run_path(str(script), run_name="imported")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is named
            failed[script.name] = repr(error)
    assert failed == {}
