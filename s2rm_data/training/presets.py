"""Named budgets: `paper`, `laptop` and `smoke`, as fields of TrainConfig and of the model's config."""

from __future__ import annotations

from typing import Any

from s2rm_data.errors import UsageError, did_you_mean

PRESETS = ("paper", "laptop", "smoke")

# Appendix 'Training': Adam 3e-4, halve on a plateau of 0.01% over 5 epochs, 100 epochs, 100 more of fine-tuning,
# batch 32 (balls) or 8 (StarCraft II). Those are the defaults of TrainConfig; the models' defaults are the paper's too.
# Assumption: windows are whole sequences, ten queries a step, and fine-tuning starts again at the first rate.
_PAPER: dict[str, dict[str, Any]] = {
    "bballs": {"batch_size": 32},
    "sc2": {"batch_size": 8, "validation_batch_size": 8},
}

# Two CPU cores, an hour: the residual MLP instead of the convolutions, short windows, a larger rate that falls to zero.
# Measured on balls, processor time until F1 0.55: 170 s; with batch 32 240 s; with batch 32 and width 32 350 s.
_LAPTOP: dict[str, dict[str, Any]] = {
    "bballs": {
        "batch_size": 16,
        "window": 20,
        "steps": 16_000,
        "lr": 3e-3,
        "fine_tuning_lr": 3e-4,
        "schedule": "cosine",
        "warmup_steps": 100,
        "clip_norm": 1.0,
        "validate_every": 500,
        "validation_sequences": 64,
        "validation_batch_size": 32,
    },
    "sc2": {
        "batch_size": 8,
        "window": 16,
        "steps": 4000,
        "lr": 1e-3,
        "fine_tuning_lr": 2e-4,
        "schedule": "cosine",
        "warmup_steps": 100,
        "clip_norm": 1.0,
        "validate_every": 200,
        "validation_sequences": 16,
        "validation_batch_size": 4,
    },
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

# Model fields of the small presets; of each model only those it has.
_SMALL_MODELS: dict[str, dict[str, dict[str, Any]]] = {
    "laptop": {
        "all": {"codec": "mlp", "encoding_size": 64, "width": 16},
        "s2gru": {"hidden_size": 64},
        "s2rmc": {"hidden_size": 64, "head_size": 16, "memory_key_size": 16},
        "lstm": {"encoding_size": 256, "hidden_size": 512},
        "rmc": {"encoding_size": 256, "head_size": 64, "key_size": 32},
        "rims": {"encoding_size": 256},
        "tto": {"encoding_size": 256},
    },
    "smoke": {
        "all": {"codec": "mlp", "encoding_size": 32, "width": 8},
        "s2gru": {"hidden_size": 32, "gate_units": 16},
        "s2rmc": {"hidden_size": 32, "gate_units": 16, "head_size": 8, "slots": 2, "memory_key_size": 8},
        "lstm": {"hidden_size": 64},
        "rmc": {"head_size": 16, "key_size": 16},
        "rims": {"hidden_size": 60, "input_value_size": 32},
        "tto": {"hidden_size": 64},
    },
}

# Fewer than one cell in a hundred of a polar image is occupied; starting near that saves some hundred steps.
_SMALL_TASKS: dict[str, dict[str, Any]] = {"bballs": {}, "sc2": {"output_bias": -5.0}}


def preset_fields(preset: str, task: str) -> dict[str, Any]:
    """Fields of TrainConfig."""
    if preset not in PRESETS:
        raise UsageError(f"no preset {preset!r}{did_you_mean(preset, PRESETS)}; the choices are {', '.join(PRESETS)}")
    if preset == "smoke":
        return dict(_SMOKE)
    return dict((_PAPER if preset == "paper" else _LAPTOP)[task])


def preset_model_fields(preset: str, model: str, task: str) -> dict[str, Any]:
    """Fields of the model's config; `paper` leaves the paper's values, which are the defaults."""
    if preset == "paper":
        return {}
    small = _SMALL_MODELS[preset]
    return {**small["all"], **small.get(model, {}), **_SMALL_TASKS[task]}
