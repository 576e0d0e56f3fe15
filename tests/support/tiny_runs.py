"""Run folders with small, untrained models, as s2rm-train leaves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from s2rm_data.models import WorldModel, build
from s2rm_data.models.weights import save_model

SMALL: dict[str, dict[str, Any]] = {
    "s2gru": {"hidden_size": 16, "gate_units": 8, "encoding_size": 16},
    "s2rmc": {"hidden_size": 16, "gate_units": 8, "encoding_size": 16, "head_size": 8, "slots": 2},
    "lstm": {"hidden_size": 16, "encoding_size": 16},
    "rmc": {"head_size": 8, "key_size": 8, "encoding_size": 16},
    "rims": {"hidden_size": 24, "encoding_size": 16},
    "tto": {"hidden_size": 16, "encoding_size": 16},
    "no_memory": {},
}


def tiny_model(model: str, task: str, seed: int = 0, **fields: Any) -> WorldModel:
    torch.manual_seed(seed)
    shapes = {"image_size": (8, 16), "cell_size": 9 / 8} if task == "sc2" else {}
    return build(model, task, codec="mlp", width=4, output_bias=-0.3, **shapes, **SMALL[model], **fields).eval()


def make_run(folder: Path, model: str, task: str, *, seed: int = 0, store: Path | None = None, **fields: Any) -> Path:
    folder.mkdir(parents=True)
    groups = ["bballs/train", "bballs/val"] if task == "bballs" else ["sc2/2s3z/train", "sc2/2s3z/val"]
    config = {"model": model, "task": task, "seed": seed, "preset": "smoke", "steps": 20, "batch_size": 4, **fields}
    document = {
        "config": config,
        "store": {"path": str(store or ""), "groups": {path: {"balls": 3} for path in groups}},
    }
    (folder / "config.json").write_text(json.dumps(document))
    save_model(tiny_model(model, task, seed, **fields.get("model_fields", {})), folder / "best.safetensors")
    (folder / "summary.json").write_text("{}")
    return folder
