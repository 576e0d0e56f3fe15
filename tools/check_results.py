"""Rows of the tables in docs/results.md that docs/results/*.json do not hold: means over seeds, with intervals.

    python tools/check_results.py

Compares rows of models in tables by number of balls, views left, step of a roll-out or active agents. A row must be one
score of one file in all its columns. Prints each that is none, counts them, and exits with 1 if there is any.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy import stats

DOCS = Path(__file__).parents[1] / "docs"


def kept(results: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, dict[str, float]]]]:
    """The table, its column as results.md spells it, and the scores of each run."""
    balls = results.get("bballs", {"one_step": {}, "dropped_views": {}, "rollouts": {}})
    for split, entry in balls["one_step"].items():
        yield "balls", split.removeprefix("test_"), entry["runs"]
    for split, shares in balls["dropped_views"].items():
        for dropped, entry in shares.items():
            yield f"views left {split}", f"{round(100 - 100 * float(dropped))}%", entry["runs"]
    for split, entry in balls["rollouts"].items():
        for step in range(25):
            runs = {n: {k: v[step] for k, v in run.items() if isinstance(v, list)} for n, run in entry["runs"].items()}
            yield f"step {split}", str(step + 1), runs
    for percent, entry in results.get("sc2", {}).get("robustness", {}).items():
        yield "active agents", f"{percent}%", entry["runs"]


def agrees(cell: str, values: list[float]) -> bool:
    """Rounded as the cell is; scores in the files are themselves rounded to five digits."""
    shown = re.fullmatch(r"(-?[\d.]+)(?: ± ([\d.]+))?", cell)
    if not shown or not values:
        return False
    close = 0.5 * 10.0 ** -len(shown[1].partition(".")[2]) + 1e-5
    spread = 0.0
    if len(values) > 1:
        spread = stats.t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    half_agrees = shown[2] is None or abs(float(shown[2]) - spread) <= 2 * close
    return abs(float(shown[1]) - statistics.mean(values)) <= close and half_agrees


def main() -> int:
    found: dict[tuple[str, str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted((DOCS / "results").glob("*.json")):
        results = json.loads(path.read_text())
        for table, column, runs in kept(results):
            for name, run in runs.items():
                label = results["runs"][name]["label"].partition(" (")[0]
                for score, value in run.items():
                    found[label, path.stem, table, score][column].append(value)
    labels = {key[0] for key in found}
    tables = {key[2].partition(" test_")[0] for key in found}
    compared = different = 0
    header: list[str] = []
    for number, line in enumerate((DOCS / "results.md").read_text().splitlines(), 1):
        cells = [cell.strip(" *") for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            header = []
        elif not header:
            header = cells
        elif header[0] in tables and cells[0] in labels and cells[1] != "-":
            rows = (row for key, row in found.items() if key[0] == cells[0] and key[2].startswith(header[0]))
            pairs = list(zip(header[1:], cells[1:], strict=True))
            compared += 1
            if not any(all(agrees(cell, row.get(column, [])) for column, cell in pairs) for row in rows):
                different += 1
                print(f"docs/results.md:{number}: {line}")
    print(f"{compared} rows compared, {different} differ")
    return 1 if different or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
