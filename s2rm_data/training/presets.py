"""Named budgets: `paper`, `laptop` and `smoke`, as fields of TrainConfig and of the model's config.

The world says what `paper` and `laptop` mean for it, the model which of its own sizes are small.
"""

from __future__ import annotations

from typing import Any

from s2rm_data.errors import UsageError, did_you_mean
from s2rm_data.learning import Learning
from s2rm_data.registry import MODELS, WORLDS

PRESETS = ("paper", "laptop", "smoke")

# Appendix 'Training': Adam 3e-4, halve on a plateau of 0.01% over 5 epochs, 100 epochs, 100 more of fine-tuning. Those
# are the defaults of TrainConfig; the models' defaults are the paper's too.
# Assumption: windows are whole sequences, ten queries per step, and fine-tuning starts again at the first rate.

# For a world that has no laptop preset of its own.
_LAPTOP: dict[str, Any] = {
    "batch_size": 16,
    "steps": 4000,
    "lr": 1e-3,
    "fine_tuning_lr": 2e-4,
    "schedule": "cosine",
    "warmup_steps": 100,
    "clip_norm": 1.0,
    "validate_every": 200,
    "validation_sequences": 32,
    "validation_batch_size": 16,
}

_SMOKE: dict[str, Any] = {
    "batch_size": 4,
    "window": 6,
    "views": 10,
    "queries": 4,
    "steps": 20,
    "lr": 2e-3,
    "fine_tuning_lr": 5e-4,
    "schedule": "cosine",
    "warmup_steps": 5,
    "clip_norm": 1.0,
    "validate_every": 10,
    "validation_sequences": 4,
    "held_out_sequences": 8,
    "validation_batch_size": 4,
}

# Fields of every model's config; the model's own, then the world's, come over them.
_SMALL_MODELS: dict[str, dict[str, Any]] = {
    "laptop": {"codec": "waves", "encoding_size": 64, "width": 16},
    "smoke": {"codec": "waves", "encoding_size": 32, "width": 8},
}


def preset_fields(preset: str, task: str) -> dict[str, Any]:
    """Fields of TrainConfig."""
    if preset not in PRESETS:
        choices = f"the choices are {', '.join(PRESETS)}"
        raise UsageError(f"no preset {preset!r}{did_you_mean(preset, PRESETS, choices)}")
    defaults = {"paper": {}, "laptop": _LAPTOP, "smoke": _SMOKE}[preset]
    learning: Learning = WORLDS.load(task).learning()
    return dict(learning.presets.get(preset, defaults))


def preset_model_fields(preset: str, model: str, task: str) -> dict[str, Any]:
    """Fields of the model's config; `paper` leaves the paper's values, which are the defaults."""
    learning: Learning = WORLDS.load(task).learning()
    own, of_world = MODELS.load(model).small_fields.get(preset, {}), learning.preset_model_fields.get(preset, {})
    of_both = learning.preset_fields_of_models.get(preset, {}).get(model, {})
    return {**_SMALL_MODELS.get(preset, {}), **own, **of_world, **of_both}
