"""What `s2rm-train` shows on a terminal while it runs."""

from __future__ import annotations

import io

from rich.console import Console

from s2rm_data.display.training import Live
from s2rm_data.training.listener import Pace, Validated


def test_the_table_of_validations_says_what_its_star_means() -> None:
    shown = Live()
    for step, best in ((10, True), (20, False)):
        scores, titles = {"f1": 0.5}, {"f1": "F1"}
        shown._results.append(Validated(step=step, epoch=0, loss=0.25, is_best=best, scores=scores, titles=titles))
    console = Console(file=io.StringIO(), width=80)
    console.print(shown._picture())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "0.2500*" in text and "*: the best so far" in text


def test_the_time_left_is_on_one_line_however_narrow_the_terminal() -> None:
    shown = Live()
    shown._pace = Pace(step=9_999, total=16_000, loss=0.1234, lr=3e-3, steps_per_second=12.34, waiting_share=0.12,
                       seconds_left=2340)  # fmt: skip
    for width in (120, 80, 40):
        shown._console = console = Console(file=io.StringIO(), width=width)
        console.print(shown._picture())
        lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert len(lines) == 2 and "39 min 00 s left" in lines[1], (width, lines)
        assert ("rate" in lines[1]) == (width == 120), (width, lines)
