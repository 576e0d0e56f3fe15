"""Training a run for longer than it was started for.

A larger `steps` or `epochs` replaces the budget in config.json, which keeps the earlier ones as `earlier_budgets`; all
else stays as it was. From the step that the run has reached, everything is as in a run of the new budget. With
`plateau` no rate depends on the budget, so that the run becomes what it would have been with the new budget from the
start (if its last step was one that validates anyway). With `cosine` the rate rises to where the longer cosine has it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from s2rm_data.config import to_json
from s2rm_data.errors import ConflictError, DamagedStoreError, S2RMError
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.folder import RunFolder

BUDGET = ("steps", "epochs")
EARLIER = "earlier_budgets"


def budget_of(config: TrainConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in BUDGET}


def earlier_configs(saved: TrainConfig, document: dict[str, Any], folder: RunFolder) -> list[TrainConfig]:
    """The run's config under each budget that it had before the present one."""
    try:
        return [dataclasses.replace(saved, **{n: budget[n] for n in BUDGET}) for budget in document.get(EARLIER, [])]
    except (S2RMError, TypeError, KeyError, ValueError) as error:
        raise DamagedStoreError(f"{folder.config} is damaged: its {EARLIER} make no sense ({error!r})") from None


def check_longer(saved: TrainConfig, wanted: TrainConfig, steps_per_epoch: int, folder: RunFolder) -> None:
    before, after = (config.total_steps(steps_per_epoch) for config in (saved, wanted))
    if after < before:
        raise ConflictError(
            f"{folder.path} was started for {before:,} steps, and {after:,} were asked for; a run can be trained "
            "longer, not shorter: leave --steps and --epochs out to resume it, or start another one with another --out"
        )


def replace_budget(folder: RunFolder, document: dict[str, Any], saved: TrainConfig, wanted: TrainConfig) -> None:
    """The same document with the budget of `wanted`; the run is then no longer complete."""
    config = to_json(saved) | budget_of(wanted)
    folder.replace_config(document | {"config": config, EARLIER: [*document.get(EARLIER, []), budget_of(saved)]})
