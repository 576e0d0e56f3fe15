"""What a world's evaluation is given, small enough for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from s2rm_data.core.progress import Progress
from s2rm_data.evaluation.evaluate import EvalConfig
from s2rm_data.evaluation.runs import Run, look_of
from s2rm_data.evaluation.world_evaluation import Context
from s2rm_data.store import Store

torch.set_num_threads(1)  # models this small lose time with more


def context_of(store: Store, runs: Sequence[Run] = (), progress: Progress | None = None, **options: Any) -> Context:
    return Context(
        store=store,
        runs=runs,
        config=EvalConfig(),
        options=options,
        device=torch.device("cpu"),
        progress=progress or Progress(),
    )


def named_run(model: str, world: str, seed: int = 0, **fields: Any) -> Run:
    """A run for tables, which never look at the model itself."""
    look = look_of(model)
    described = {"name": f"{model}-{seed}", "label": look.title, "config": {"steps": 10}, **fields}
    return Run(model_name=model, world=world, seed=seed, model=None, look=look, **described)
