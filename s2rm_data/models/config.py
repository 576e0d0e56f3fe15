"""What all models share in their configs: the task's shapes and scales, the positional embedding, encoder and decoder.

A config is built with `Config.for_task(task, **overrides)`: the fields' own defaults hold for both tasks, the class
attribute PAPER gives those that differ, the overrides come last. Every field is then checked.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from s2rm_data.errors import UsageError, did_you_mean
from s2rm_data.models.batch import POLAR_CHANNELS

TASKS = ("bballs", "sc2")
CODECS = ("conv", "mlp")

# Per task, for all models.
_TASK_DEFAULTS: dict[str, dict[str, Any]] = {
    "bballs": {
        "image_size": (11, 11),  # section 'Video Prediction from Crops'
        "arena_size": (48.0, 48.0),  # ditto, pixels
        "embedding_size": 16,  # table tab:bb_hparams
        # Assumption: pixels x 0.25 and base 16 learned fastest; base 10000 makes P all but constant over the arena.
        "position_scale": 0.25,
    },
    "sc2": {
        # Assumption: the paper does not give its image size; 16 x 48 is what the data have by default.
        "image_size": (16, 48),
        "arena_size": (32.0, 32.0),  # all SMAC maps are 32 x 32
        "embedding_size": 8,  # table tab:sc2_hparams
        # Assumption: with two bands a coordinate, 1.0 gives turns of 25 and 100 map units, local yet one-to-one.
        "position_scale": 1.0,
    },
}


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """`codec` picks the encoder and decoder pair: `conv`, or `mlp` for small budgets. `width` is its channels/units."""

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {"bballs": {}, "sc2": {}}

    task: str
    image_size: tuple[int, int]  # H, W; for sc2 radial and angular cells
    arena_size: tuple[float, float]  # extent of positions in x and y, from 0
    embedding_size: int  # d, of the positional embedding
    position_scale: float
    position_base: float = 16.0
    codec: str = "conv"
    width: int = 32  # Assumption: channels of every layer; the paper's figures are lost
    encoding_size: int = 128  # first dimension of Theta, tables tab:bb_hparams and tab:sc2_hparams
    # Assumption: few pixels are set, so logits start low (for sc2 also the class `nothing` high).
    output_bias: float = -2.5

    @classmethod
    def for_task(cls, task: str, **overrides: Any) -> Self:
        if task not in TASKS:
            raise UsageError(f"no task {task!r}{did_you_mean(str(task), TASKS)}; the choices are {', '.join(TASKS)}")
        names = [f.name for f in fields(cls) if f.name != "task"]
        for key in overrides:
            if key not in names:
                raise UsageError(
                    f"{cls.__name__} has no field {key!r}{did_you_mean(key, names)}; it has {', '.join(names)}"
                )
        hints = typing.get_type_hints(cls)
        values = {**_TASK_DEFAULTS[task], **cls.PAPER[task], **overrides}
        return cls(task=task, **{key: _coerced(hints[key], value) for key, value in values.items()})

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            self._check_type(field.name, hints[field.name])
        self._require("task", self.task in TASKS, f"one of {', '.join(TASKS)}")
        self._require("codec", self.codec in CODECS, f"one of {', '.join(CODECS)}")
        self._require("image_size", min(self.image_size) >= 3, "at least (3, 3)")
        self._require("arena_size", min(self.arena_size) > 0, "positive")
        # d is a multiple of 2n, n = 2 coordinates (section 'Positional Embedding')
        self._require("embedding_size", self.embedding_size % 4 == 0, "a multiple of 4")
        self._require("position_scale", self.position_scale > 0, "positive")
        self._require("position_base", self.position_base >= 1, "at least 1")

    @property
    def view_channels(self) -> int:
        return 1 if self.task == "bballs" else POLAR_CHANNELS

    def _require(self, name: str, holds: bool, allowed: str) -> None:
        if not holds:
            raise UsageError(f"{type(self).__name__}.{name} is {getattr(self, name)!r}; it must be {allowed}")

    def _check_type(self, name: str, hint: Any) -> None:
        value = getattr(self, name)
        if typing.get_origin(hint) is tuple:
            args = typing.get_args(hint)
            right = isinstance(value, tuple) and len(value) == len(args)
            right = right and all(_is(arg, part) for arg, part in zip(args, value, strict=True))
            self._require(name, right, f"a tuple of {len(args)} numbers of type {args[0].__name__}")
            return
        self._require(name, _is(hint, value), f"of type {hint.__name__}")
        if hint is int:
            self._require(name, value >= 1, "at least 1")


def _is(hint: type, value: Any) -> bool:
    if hint is float:
        return isinstance(value, float) and math.isfinite(value)
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _coerced(hint: Any, value: Any) -> Any:
    """Whole numbers stand for floats and lists for tuples, as they come from JSON or a command line."""
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if typing.get_origin(hint) is tuple and isinstance(value, list | tuple):
        args = typing.get_args(hint)
        return tuple(_coerced(args[0], part) for part in value)
    return value
