"""A budget for an evening on a laptop. The worlds of this package have their own."""

from s2rm_data.training.config import Preset

PRESET = Preset(
    fields={
        "batch_size": 16, "steps": 4000, "lr": 1e-3, "fine_tuning_lr": 2e-4, "schedule": "cosine", "warmup_steps": 100,
        "clip_norm": 1.0, "validate_every": 200, "validation_sequences": 32, "validation_batch_size": 16,
    },
    model_fields={"codec": "waves", "encoding_size": 64, "width": 16},
)  # fmt: skip
