"""What learning asks of a world: how its arrays become batches, and how predictions become losses and scores.

A world's `Learning` is the only place that knows what its images mean; models, training and evaluation know shapes."""

# B sequences, T steps, Q queries, C' output channels, H x W an image

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from s2rm_data.learning.batch import Batch, Prediction, Targets
from s2rm_data.learning.cached import CachedSequences, Unit

if TYPE_CHECKING:
    from s2rm_data.store import Group, Store

Fields = Mapping[str, Any]


class Source(ABC):
    """Sequences in memory, and how windows of them become batches. Methods may be called from any thread.
    A request is a `windows.Request`: which windows, and where to look in them. `units` are the shards behind the
    sequences, by which they can be shuffled; with none they cannot. `cached` is what reads sequences through a store's
    cache; None where all are in memory."""

    groups: list[str]
    steps: int  # T of every window
    device: torch.device
    units: Sequence[Unit] = ()
    cached: CachedSequences | None = None

    @abstractmethod
    def __len__(self) -> int:
        """Number of sequences."""

    @abstractmethod
    def sample(self, random: np.random.Generator, sequence: NDArray[np.int64]) -> Any:
        """A request for windows that begin anywhere in these sequences."""

    @abstractmethod
    def sample_fixed(self, random: np.random.Generator, sequence: NDArray[np.int64]) -> Any:
        """A request for windows that begin with the sequence."""

    @abstractmethod
    def drop(self, random: np.random.Generator, request: Any, fraction: float) -> Any:
        """The request without a fraction of its views; those dropped at one fraction are dropped at every larger."""

    def prepare(self, request: Any) -> Any:
        """What can be done ahead of time in another thread."""
        return request

    @abstractmethod
    def finish(self, prepared: Any) -> Batch:
        """The batch on the source's device."""

    def batch(self, request: Any) -> Batch:
        return self.finish(self.prepare(request))

    @property
    @abstractmethod
    def image_size(self) -> tuple[int, int]:
        """H, W of a view and of a target."""

    @property
    @abstractmethod
    def arena_size(self) -> tuple[float, float]:
        """Extent of positions in x and y, from 0."""

    @property
    def cell_size(self) -> float:
        """Extent of a pixel, or of a polar image's radial cell, in the unit of positions."""
        return 1.0


class Counts(Protocol):
    """A named tuple (of named tuples) of tensors that add up over batches, and the scores they come to."""

    def plus(self, other: Any) -> Self: ...

    def scores(self) -> dict[str, float]: ...


class Learning(ABC):
    """What training and evaluation ask of a world.

    `wraps`: the second axis of an image is an angle, so that its two ends touch. `model_defaults`: fields of every
    model's config (image_size, arena_size, embedding_size, position_scale). `paper_fields`: by model, the fields that
    the paper gives for this world where they differ from the model's own defaults. `presets`: fields of TrainConfig by
    preset, and `presets_of_models`: those that one model wants otherwise, by preset and model; `preset_model_fields`
    and `preset_fields_of_models`: the same of a model's config. `source_fields`: fields of TrainConfig that `open`
    takes as options. `view_fields`: fields of a model's config that `open` takes as options, because views are drawn as
    the model wants them; without them, as they are stored. `scores`: what is shown while training, by name and title,
    the main one first. `references`: titles of the references, by name. `weighs_occupied`: its loss can weigh what its
    images hold, which are mostly empty."""

    view_channels: ClassVar[int]
    output_channels: ClassVar[int]
    wraps: ClassVar[bool] = False
    model_defaults: ClassVar[Fields]
    paper_fields: ClassVar[Mapping[str, Fields]] = {}
    presets: ClassVar[Mapping[str, Fields]] = {}
    presets_of_models: ClassVar[Mapping[str, Mapping[str, Fields]]] = {}
    preset_model_fields: ClassVar[Mapping[str, Fields]] = {}
    preset_fields_of_models: ClassVar[Mapping[str, Mapping[str, Fields]]] = {}
    source_fields: ClassVar[tuple[str, ...]] = ()
    view_fields: ClassVar[tuple[str, ...]] = ()
    scores: ClassVar[Mapping[str, str]]
    references: ClassVar[Mapping[str, str]] = {}
    weighs_occupied: ClassVar[bool] = False
    evaluation_batch: ClassVar[int] = 10  # sequences predicted at once

    # -- data

    @abstractmethod
    def open(self, groups: Sequence[Group], **options: Any) -> Source:
        """Groups as one source. Options: steps (T; None: whole sequences), next_views, device, limit (sequences of
        each group), and those of `source_fields` and `view_fields`."""

    @abstractmethod
    def sequence_steps(self, group: Group) -> int:
        """T of a whole sequence of the group: its frames but one."""

    def held_out(self, store: Store, train_groups: Sequence[str]) -> dict[str, list[str]]:
        """Groups, by the name of their scores, on which a finished run is scored beside the validation groups."""
        return {}

    def describe(self, group: Group) -> dict[str, Any]:
        """JSON about a group that a run keeps with its name."""
        return {}

    # -- models

    @abstractmethod
    def prediction(self, image: Tensor) -> Prediction:
        """The decoder's output (B, T, Q, C', H, W) as the world's named tuple of tensors (B, T, Q, ...)."""

    @abstractmethod
    def loss_terms(
        self, prediction: Prediction, targets: Targets, mask: Tensor, occupied_weight: float = 1.0
    ) -> dict[str, Tensor]:
        """Scalars by name, to be summed; mask (B, T, Q) bool says what exists.
        What holds something counts `occupied_weight` times, which is 1 unless the world `weighs_occupied`."""

    # For worlds whose images are cells that hold things, most of them nothing; None: images of another kind.
    occupied_channels: ClassVar[slice | None] = None  # of a view: none below 0, all 0 where a cell is empty

    def empty_cell(self) -> Tensor:
        """(C,) a view's channels where a cell is empty."""
        return torch.zeros(self.view_channels)

    def cell_offsets(self, image_size: tuple[int, int], cell_size: float) -> Tensor | None:
        """(H * W, 2) where cells lie, seen from the position of their view."""
        return None

    def output_bias(self, low: float) -> Tensor:
        """(C',) the decoder's first biases. `low` is the config's `output_bias`: a logit for what is rare."""
        return torch.full((self.output_channels,), low)

    # -- scores

    @abstractmethod
    def no_counts(self, device: torch.device) -> Any:
        """Counts of nothing."""

    @abstractmethod
    def count(self, source: Any, prediction: Prediction, batch: Batch) -> Any:
        """`Counts` of a batch's predictions."""

    def reference_counts(self, source: Any, request: Any) -> dict[str, Any]:
        """`Counts` of every reference, by name: of predictions that need no model, such as a copy of what was seen."""
        return {}

    def reference_scores(self, counts: Any) -> dict[str, float]:
        """Scores of a reference; those that mean nothing for one are left out."""
        scores: dict[str, float] = counts.scores()
        return scores

    def pictures(self, model: Any, source: Any, request: Any, steps: int) -> tuple[dict[str, list[Any]], list[str]]:
        """Of the first sequence of a request: rows of at most `steps` grey images by title, and a title per column."""
        return {}, []
