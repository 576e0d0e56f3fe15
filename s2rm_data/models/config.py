"""What all models share in their configs: the world's shapes and scales, the positional embedding, encoder and decoder.

A config is built by `catalogue.config_for`: the fields' own defaults hold for all worlds, the world gives those that
differ, the overrides come last. Every field is then checked.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from s2rm_data.errors import UsageError, did_you_mean
from s2rm_data.learning import Learning
from s2rm_data.registry import WORLDS

CODECS = ("conv", "mlp")
MOST_SIZE = 1 << 16  # of any number of units, heads, modules, pixels; what fits into memory is checked when it is known


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """`codec` picks the encoder and decoder pair: `conv`, or `mlp` for small budgets. `width` is its channels/units."""

    task: str  # name of the world
    image_size: tuple[int, int]  # H, W
    arena_size: tuple[float, float]  # extent of positions in x and y, from 0
    embedding_size: int  # d, of the positional embedding
    position_scale: float
    position_base: float = 16.0
    codec: str = "conv"
    width: int = 32  # Assumption: channels of every layer; the paper's figures are lost
    encoding_size: int = 128  # first dimension of Theta, tables tab:bb_hparams and tab:sc2_hparams
    # Assumption: few pixels are set, so logits start low.
    output_bias: float = -2.5

    @classmethod
    def for_task(cls, task: str, paper_fields: Mapping[str, Any] | None = None, **overrides: Any) -> Self:
        """The world's defaults for all models, those of the paper for this one, then the overrides."""
        learning: Learning = WORLDS.load(task).learning()
        names = [f.name for f in fields(cls) if f.name != "task"]
        for key in overrides:
            if key not in names:
                raise UsageError(
                    f"{cls.__name__} has no field {key!r}{did_you_mean(key, names)}; it has {', '.join(names)}"
                )
        hints = typing.get_type_hints(cls)
        values = {**learning.model_defaults, **(paper_fields or {}), **overrides}
        return cls(task=task, **{key: _coerced(hints[key], value) for key, value in values.items()})

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            self._check_type(field.name, hints[field.name])
        self._require("task", self.task in WORLDS.names(), f"one of {', '.join(WORLDS.names())}")
        self._require("codec", self.codec in CODECS, f"one of {', '.join(CODECS)}")
        self._require("image_size", min(self.image_size) >= 3, "at least (3, 3)")
        self._require("arena_size", min(self.arena_size) > 0, "positive")
        # d is a multiple of 2n, n = 2 coordinates (section 'Positional Embedding')
        self._require("embedding_size", self.embedding_size % 4 == 0, "a multiple of 4")
        self._require("position_scale", self.position_scale > 0, "positive")
        self._require("position_base", self.position_base >= 1, "at least 1")

    @property
    def learning(self) -> Learning:
        """What the world's images mean: channels, losses, scores."""
        learning: Learning = WORLDS.load(self.task).learning()
        return learning

    def _require(self, name: str, holds: bool, allowed: str) -> None:
        if not holds:
            text = repr(getattr(self, name))[:80] if name not in _huge(self) else "a number of many digits"
            raise UsageError(f"{type(self).__name__}.{name} is {text}; it must be {allowed}")

    def _check_type(self, name: str, hint: Any) -> None:
        value = getattr(self, name)
        if typing.get_origin(hint) is tuple:
            args = typing.get_args(hint)
            right = isinstance(value, tuple) and len(value) == len(args)
            right = right and all(_is(arg, part) for arg, part in zip(args, value, strict=True))
            self._require(name, right, f"a tuple of {len(args)} numbers of type {args[0].__name__}")
            self._require(name, max(value) <= MOST_SIZE, f"at most {MOST_SIZE} each")
            return
        self._require(name, _is(hint, value), f"of type {hint.__name__}")
        if hint is int:
            self._require(name, 1 <= value <= MOST_SIZE, f"a whole number from 1 to {MOST_SIZE}")


def _huge(config: Any) -> set[str]:
    """Fields whose value Python refuses to print."""
    return {name for name, value in vars(config).items() if isinstance(value, int) and abs(value) >= 10**30}


def _is(hint: type, value: Any) -> bool:
    if hint is float:
        return isinstance(value, float) and math.isfinite(value)
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _coerced(hint: Any, value: Any) -> Any:
    """Whole numbers stand for floats and lists for tuples, as they come from JSON or a command line."""
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000:
        return float(value)
    if typing.get_origin(hint) is tuple and isinstance(value, list | tuple):
        args = typing.get_args(hint)
        return tuple(_coerced(args[0], part) for part in value)
    return value
