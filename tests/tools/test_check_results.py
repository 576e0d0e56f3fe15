"""The tables of docs/results.md are those of the files beside it."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_every_row_of_the_results_is_in_their_files_and_a_wrong_digit_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "check_results.py"))
    assert tool["main"]() == 0, capsys.readouterr().out
    page = (ROOT / "docs" / "results.md").read_text()
    row = next(line for line in page.split("\n") if line.startswith("| S2GRU | ") and "±" in line)
    first, _, rest = row.removeprefix("| S2GRU | ").partition(" ")
    wrong = f"| S2GRU | {float(first) + 0.002:.3f} {rest}"
    (tmp_path / "results").symlink_to(ROOT / "docs" / "results")
    (tmp_path / "results.md").write_text(page.replace(row, wrong, 1))
    tool["main"].__globals__["DOCS"] = tmp_path
    assert tool["main"]() == 1 and wrong in capsys.readouterr().out
