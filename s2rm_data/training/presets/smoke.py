"""A few steps that only show that everything works."""

from s2rm_data.training.config import Preset

PRESET = Preset(
    fields={
        "batch_size": 4, "window": 6, "views": 10, "queries": 4, "steps": 20, "lr": 2e-3, "fine_tuning_lr": 5e-4,
        "schedule": "cosine", "warmup_steps": 5, "clip_norm": 1.0, "validate_every": 10, "validation_sequences": 4,
        "held_out_sequences": 8, "validation_batch_size": 4,
    },
    model_fields={"codec": "waves", "encoding_size": 32, "width": 8},
)  # fmt: skip
