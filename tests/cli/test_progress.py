"""Plain lines of progress, with a clock that the test sets."""

from __future__ import annotations

import pytest

from s2rm_data.cli import progress as module
from s2rm_data.cli.progress import LINE_SECONDS, LineProgress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_line_now_and_then_says_how_far_it_is_and_how_long_it_takes(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with LineProgress("sequences") as progress:
        progress.start(1000, 0)
        clock[0] += 3
        progress.advance(100)  # what came before it is not counted as speed
        for _ in range(4):
            clock[0] += LINE_SECONDS / 2 + 0.1
            progress.advance(100)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "s2rm-data: 300 of 1,000 sequences, 30%, 18 s left",
        "s2rm-data: 500 of 1,000 sequences, 50%, 13 s left",
    ]


def test_what_was_there_already_is_said_and_not_counted_as_speed(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with LineProgress("episodes") as progress:
        progress.start(100, 40)
        progress.advance(10)
        clock[0] += 6
        progress.advance(10)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "s2rm-data: 40 of 100 episodes, were there already"
    assert second == "s2rm-data: 60 of 100 episodes, 60%, 24 s left"
