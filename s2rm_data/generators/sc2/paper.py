"""The paper's own StarCraft II numbers, copied from its tables into `paper.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


@cache
def paper_tables() -> dict[str, Any]:
    text = resources.files("s2rm_data.generators.sc2").joinpath("paper.json").read_text("utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


def robustness(score: str, active_percent: int) -> Mapping[str, float]:
    """By model, on the validation set of the training scenarios; empty where the paper gives no number."""
    table = paper_tables()["robustness"].get(score, {"scores": {}})
    return table["scores"].get(str(active_percent), {})


def unseen_scenario(scenario: str, score: str) -> Mapping[str, float]:
    """By model, on a scenario that no model was trained on."""
    scores = paper_tables()["ood"]["scores"].get(scenario, {})
    return {model: found[score] for model, found in scores.items() if score in found}


def models() -> list[str]:
    """Models of the paper's StarCraft II tables, in its order."""
    return list(paper_tables()["ood"]["scores"]["1s2z"])
