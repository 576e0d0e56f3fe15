"""Progress, plain and as a bar, with a clock that the test sets."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from s2rm_data.core.progress import COMPILING
from s2rm_data.display import progress as module
from s2rm_data.display.progress import LINE_SECONDS, BarProgress, LineProgress


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


def shown(bar: BarProgress, console: Console) -> list[str]:
    with console.capture() as captured:
        console.print(bar._picture())
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.mark.parametrize("width", [36, 60, 120])
def test_a_bar_shows_whole_counts_however_narrow_the_terminal(clock: list[float], width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    bar = BarProgress("generating", "sequences", console)
    bar.start(27_000, 0)
    bar.advance(2_000)
    clock[0] += 90
    bar.advance(1_000)
    title, line = shown(bar, console)
    assert title == "generating"
    assert "3,000 of 27,000 sequences" in line
    assert ("1:30, 36:00 left" in line) == (width > 36)
    assert len(line) <= width


def test_a_bar_says_that_code_is_being_compiled(clock: list[float]) -> None:
    console = Console(file=io.StringIO(), width=80)
    bar = BarProgress("generating", "sequences", console)
    assert shown(bar, console)[0] == "generating: starting"
    COMPILING.begin()
    try:
        bar.start(10, 0)
        assert shown(bar, console)[0] == "generating: compiling code, once per installation"
    finally:
        COMPILING.end()
    assert shown(bar, console)[0] == "generating"
