"""What encodes views and decodes queries: a codec is a file in `codecs/`, whose name a model's config gives.

Legend: N views, R hidden states, Q queries of each, P of them that are decoded, n numbers that say a place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from s2rm_data.models.config import ModelConfig


class Encoder(nn.Module, ABC):
    """Features of views, and their encoding, which is linear in them; `skip_size` features go with it where they skip.
    A subclass sets `linear` and gives `features`. `linear` None: nothing is encoded; the features are all there is."""

    linear: nn.Linear | None
    skip_size = 0  # features (F) that are handed out beside the encoding

    def start_skip(self) -> None:
        assert self.linear is not None
        self.skip_size = self.linear.in_features

    @abstractmethod
    def features(self, views: Tensor, at: Tensor) -> Tensor:
        """(N, C, H, W), (N, n) -> (N, F). Views may be of any real dtype."""

    def forward(self, views: Tensor, at: Tensor) -> Tensor:
        """(N, encoding_size), with the features behind it where they skip."""
        x = self.features(views, at)
        if not self.skip_size:
            assert self.linear is not None
            return self.linear(x)
        return x if self.linear is None else torch.cat([self.linear(x), x], -1)


def start_through(layer: nn.Linear, skip_size: int) -> None:
    """Let the last `skip_size` inputs of a decoder's first layer through from the start, as far as it has units."""
    with torch.no_grad():
        layer.weight[:, layer.in_features - skip_size :].copy_(0.5 * torch.eye(layer.out_features, skip_size))


class Codec(ABC):
    """`takes_position`: the place of a view or query is given as a position (n = 2), else as its embedding of
    n = position_size features. With position_size 0, no embedding is injected."""

    takes_position: ClassVar[bool] = False

    @abstractmethod
    def encoder(self, config: ModelConfig, *, position_size: int) -> nn.Module:
        """Called with views (N, C, H, W) of any real dtype and their places (N, n) -> (N, config.encoding_size). With
        `config.skip` it has to be an `Encoder`."""

    @abstractmethod
    def decoder(self, config: ModelConfig, hidden_size: int, *, position_size: int) -> nn.Module:
        """Called with hidden states (R, hidden_size), the places of their queries (R, Q, n) and the numbers (P,) of
        those that are decoded among all R * Q (None: all) -> image channels (P, C', H, W). `rows_of` chooses them."""

    def check(self, config: ModelConfig) -> None:  # noqa: B027 - most codecs fit all images
        """Raise a `UsageError` where the codec does not fit the world's images (`config.learning`)."""


def rows_of(x: Tensor, at: Tensor, present: Tensor | None) -> tuple[Tensor, Tensor]:
    """Features x (R, ...) and places at (R, Q, n), once for each query that is decoded: (P, ...), (P, n).
    present (P,): their numbers among the R * Q; None: all."""
    queries = at.shape[1]
    if present is None:
        return x.unsqueeze(1).expand(-1, queries, *x.shape[1:]).flatten(0, 1), at.flatten(0, 1)
    return x[present.div(queries, rounding_mode="floor")] if queries > 1 else x[present], at.flatten(0, 1)[present]
