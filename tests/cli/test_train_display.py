"""What `s2rm-train` shows on a terminal while it runs."""

from __future__ import annotations

import io

from rich.console import Console

from s2rm_data.cli.train_display import Live
from s2rm_data.training.listener import Validated


def test_the_table_of_validations_says_what_its_star_means() -> None:
    shown = Live()
    for step, best in ((10, True), (20, False)):
        scores, titles = {"f1": 0.5}, {"f1": "F1"}
        shown._results.append(Validated(step=step, epoch=0, loss=0.25, is_best=best, scores=scores, titles=titles))
    console = Console(file=io.StringIO(), width=80)
    console.print(shown._picture())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "0.2500*" in text and "*: the best so far" in text
