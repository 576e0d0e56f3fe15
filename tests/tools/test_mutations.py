"""The list of mistakes that `make mutations` draws from fits the source."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import mutations
import pytest


def test_every_mistake_can_be_made_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mutations.misplaced() == []
    (tmp_path / "twice.py").write_text("a = 1\na = 1\n")
    monkeypatch.setattr(
        mutations, "MUTATIONS", [mutations.Mutation(f, "a = 1", "", "") for f in ("twice.py", "gone.py")]
    )
    assert mutations.misplaced(tmp_path) == ["twice.py: 2 times, not once: a = 1", "gone.py: 0 times, not once: a = 1"]


def test_fifty_mistakes_at_least_three_in_every_layer() -> None:
    count = Counter(mutation.file.split("/")[0].replace("api.py", "cli") for mutation in mutations.MUTATIONS)
    folders = {path.relative_to(mutations.PACKAGE).parts[0] for path in mutations.PACKAGE.glob("*/*.py")}
    layers = folders - {"envs", "display"}  # an import path, and what is shown
    assert sum(count.values()) >= 50
    assert {layer: count[layer] for layer in layers if count[layer] < 3} == {}
