from __future__ import annotations

from types import ModuleType, SimpleNamespace

import pytest

from s2rm_data.generators.sc2.engine import compiled, step


class Recorded:
    """Stands for a compiled function with a cache on disk."""

    def __init__(self, value: int = 0) -> None:
        self.value, self.calls = value, []
        self._cache = SimpleNamespace(flush=lambda: self.calls.append("flush"))

    def recompile(self) -> None:
        self.calls.append("recompile")

    def __call__(self) -> int:
        return self.value


@pytest.mark.parametrize(("age", "calls"), [(0, []), (1, ["flush"])])
def test_compiled_code_of_older_sources_is_forgotten(
    monkeypatch: pytest.MonkeyPatch, age: int, calls: list[str]
) -> None:
    module, function = ModuleType("kernels"), Recorded()
    module.function, module.CONSTANT = function, 3  # type: ignore[attr-defined]
    marker = Recorded(compiled.SOURCES - age)
    monkeypatch.setattr(compiled, "_compiled_from", marker)
    compiled.forget_stale(module)
    assert function.calls == calls
    assert marker.calls == (["flush", "recompile"] if age else [])


def test_compiled_functions_have_what_forget_stale_needs() -> None:
    """Private parts of numba: a version without them must fail here and not by stale results."""
    for function in (step.step_batch, step.available_batch, compiled._compiled_from):
        assert callable(function.recompile)
        assert callable(function._cache.flush)
    assert compiled._compiled_from() == compiled.SOURCES
