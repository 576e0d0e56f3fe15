"""The paper's own numbers, copied from its tables into `paper_tables.json`."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any


@lru_cache(maxsize=1)
def paper_tables() -> dict[str, Any]:
    text = resources.files("s2rm_data.evaluation").joinpath("paper_tables.json").read_text("utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


def robustness(metric: str, active_percent: int, model: str) -> float | None:
    """On the validation set of the training scenarios; None where the paper gives no number."""
    table = paper_tables()["robustness"].get(metric, {"scores": {}})
    return table["scores"].get(str(active_percent), {}).get(model)


def unseen_scenario(scenario: str, metric: str, model: str) -> float | None:
    return paper_tables()["ood"]["scores"].get(scenario, {}).get(model, {}).get(metric)


def models() -> list[str]:
    """Models of the paper's StarCraft II tables, in its order."""
    return list(paper_tables()["ood"]["scores"]["1s2z"])
