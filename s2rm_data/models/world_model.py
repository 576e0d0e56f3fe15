"""The interface of all models: encode views at positions, step the dynamics, decode at query positions.

Legend: B sequences, T steps, V views, Q queries, C x H x W images, R a model's hidden features, F features that skip.

    prediction = model(batch)                       # all steps of a window at once
    loss = model.loss(prediction, batch)

    state = model.initial_state(batch_size)         # or step by step, as a roll-out does
    (encoded,) = model.encode(views, position, mask)    # views (B, 1, V, C, H, W): one encoding per step
    state = model.step(encoded, state)
    prediction = model.decode(state, query_position)    # (B, Q, 2) -> tensors (B, Q, ...)

A state is a tensor or a named tuple of tensors, B first; `step` never changes its arguments.

With the field `skip`, the features of the views of a step go past the dynamics to the decoder of what follows it. They
then come beside what they go past: encodings, states and hidden states are pairs `Beside`. A state that has seen no
views, as `initial_state` gives it, is without them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import CODECS
from s2rm_data.learning.batch import Batch, Prediction, map_tensors
from s2rm_data.models.attention import ABSENT_LOGIT
from s2rm_data.models.codec import Codec, Encoder
from s2rm_data.models.config import ModelConfig
from s2rm_data.models.device import full_precision, full_products
from s2rm_data.models.embedding import PositionalEmbedding
from s2rm_data.models.modules import PLAIN, DeferredProducts, Products


class Seen(NamedTuple):
    """Views of a step, or of several with T behind B."""

    features: Tensor  # (B, V, F)
    position: Tensor  # (B, V, 2)
    mask: Tensor  # (B, V)

    def at(self, step: int) -> Seen:
        """Of several steps, one."""
        return Seen(*(part[:, step] for part in self))


class Beside(NamedTuple):
    """What the dynamics make or take, and the views that go past them."""

    own: Any
    seen: Seen


class BesideSteps(Sequence[Beside]):
    """Those of several steps."""

    def __init__(self, own: Sequence[Any], seen: Seen) -> None:
        self.own, self.seen = own, seen

    def __len__(self) -> int:
        return len(self.own)

    def __getitem__(self, step: Any) -> Any:
        return Beside(self.own[step], self.seen.at(step))


def own_of(value: Any) -> Any:
    return value.own if isinstance(value, Beside) else value


class WorldModel(nn.Module, ABC):
    """Encoder, dynamics and decoder; subclasses give the dynamics.

    A model's file says all there is to say of it: `title`, `colour` and `marker` in tables and figures, its `place`
    among the rows of a table, and `small_fields`, by preset, of its config where a small budget wants less than the
    paper's sizes.

    `needs_next_views`: the model is an oracle. It encodes the views of frame t + 1 at step t, which a batch then
    carries as `next_views`; step by step, the caller hands `encode` those views. It is left out where the best model
    is named and cannot be rolled out. `is_reference`: tables show it among what others are compared with; it has no
    memory. `has_enclaves`: its modules have places, which `enclaves` tells. `steadier`: a
    setting, such as `normalise_rows=true`, to try where training diverges."""

    Config: ClassVar[type[ModelConfig]]
    title: ClassVar[str] = ""  # empty: the name under which the model is found
    colour: ClassVar[str] = ""  # such as "#d55e00"; empty: one that is still free
    marker: ClassVar[str] = "x"  # as matplotlib names them
    place: ClassVar[int] = 100
    small_fields: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    needs_next_views: ClassVar[bool] = False
    is_reference: ClassVar[bool] = False
    has_enclaves: ClassVar[bool] = False
    steadier: ClassVar[str] = ""

    def __init__(self, config: ModelConfig, *, decoder_input: int, inject_position: bool) -> None:
        super().__init__()
        self.config = config
        self.fixed_shapes = False  # encoder and decoder are compiled: give them the same shapes every time
        self.learning = config.learning  # looked up once: compiled code cannot ask a registry
        self.loss_weights: dict[str, float] = {}  # what the world's loss is told: nothing where all pixels count alike
        if config.occupied_weight != 1.0:
            if not self.learning.weighs_occupied:
                raise UsageError(
                    f"occupied_weight is {config.occupied_weight:g}, and the loss of the world {config.task} takes no "
                    "weight; leave it at 1"
                )
            self.loss_weights["occupied_weight"] = config.occupied_weight
        position_size = config.embedding_size if inject_position else 0
        self.embedding = PositionalEmbedding(config)
        codec: Codec = CODECS.load(config.codec)
        self.takes_position = codec.takes_position
        self.encoder = codec.encoder(config, position_size=position_size)
        self.skip_size = 0  # F
        if config.skip:
            if not isinstance(self.encoder, Encoder):
                raise UsageError(
                    f"the codec {config.codec} has no features that could skip; derive its encoder from Encoder "
                    "(s2rm_data.extend), take another codec, or leave skip at false"
                )
            self.encoder.start_skip()
            # Assumption: weights of views fall off with a deviation of an eighth of an image's extent at the start.
            self.log_nearness = nn.Parameter(torch.tensor(32.0).log())
            self.image_extent, self.skip_size = config.image_size[0] * config.cell_size, self.encoder.skip_size
        self.decoder = codec.decoder(config, decoder_input + self.skip_size, position_size=position_size)

    @abstractmethod
    def initial_state(self, batch_size: int) -> Any:
        """The state before the first step, on the model's device."""

    @abstractmethod
    def prepare(self, e: Tensor, s: Tensor, view_mask: Tensor) -> Sequence[Any]:
        """What of the dynamics needs no state, for T steps at once: one encoding per step.
        e (B, T, V, E) encoded views, s (B, T, V, d) their embedded positions, view_mask (B, T, V)."""

    @abstractmethod
    def advance(self, encoded: Any, state: Any, products: Products) -> Any:
        """The state at t + 1 from the encoding and the state at t, in full precision."""

    def hidden(self, state: Any) -> Tensor:
        """What of a state decoding reads, (B, R) or (B, M, R): all of it, unless a model says otherwise."""
        assert isinstance(state, Tensor)
        return state

    def attend(self, hidden: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden (B, T, ...) and query embeddings (B, T, Q, d) as the decoder takes them: (N, R) and (N, Q', d)."""
        return hidden.flatten(0, 1), s.flatten(0, 1)

    def enclaves(self, position: Tensor) -> Tensor:
        """How much each module answers for a position: (..., 2) -> (M, ...), of models that have enclaves."""
        raise NotImplementedError(f"{type(self).__name__} has no modules with places")

    def encode(
        self, views: Tensor, view_position: Tensor, view_mask: Tensor, view_count: int | None = None
    ) -> Sequence[Any]:
        """All that does not depend on the state, for T steps at once: one encoding per step.
        views (B, T, V, C, H, W), view_position (B, T, V, 2), view_mask (B, T, V); view_count as in `Batch`."""
        s = self.embedding(view_position)
        e = self.encode_views(views, s, view_position, view_mask, view_count)
        return self.encoded_steps(e, s, view_position, view_mask)

    def encoded_steps(self, e: Tensor, s: Tensor, view_position: Tensor, view_mask: Tensor) -> Sequence[Any]:
        """One encoding per step from `encode_views`, whose views need not be those that a mask (B, T, V) leaves."""
        e = e.to(self.embedding.frequency.dtype)
        if not self.config.skip:
            with full_precision(e), full_products():
                return self.prepare(e, s, view_mask)
        e, features = e.split([e.shape[-1] - self.skip_size, self.skip_size], -1)
        with full_precision(e), full_products():
            return BesideSteps(self.prepare(e, s, view_mask), Seen(features, view_position, view_mask))

    def step(self, encoded: Any, state: Any, products: Products = PLAIN) -> Any:
        """The state at t + 1 from the encoding and the state at t. `products` is how `unroll` defers gradients."""
        if not isinstance(encoded, Beside):
            return self.dynamics(encoded, state, products)
        return Beside(self.dynamics(encoded.own, own_of(state), products), encoded.seen)

    def dynamics(self, encoded: Any, state: Any, products: Products = PLAIN) -> Any:
        """`advance` in full precision: what of a step is compiled."""
        with full_precision(self.embedding.frequency), full_products():
            return self.advance(encoded, state, products)

    def unroll(self, encoded: Sequence[Any], state: Any) -> tuple[Any, Any]:
        """All steps: the hidden states after each, (B, T, ...), with the views of each beside; and the last state."""
        with full_products():  # around the steps, which may be compiled
            if not isinstance(encoded, BesideSteps):
                return self.own_unroll(encoded, state)
            hidden, state = self.own_unroll(encoded.own, own_of(state))
            return Beside(hidden, encoded.seen), Beside(state, encoded.seen.at(-1))

    def own_unroll(self, encoded: Sequence[Any], state: Any) -> tuple[Tensor, Any]:
        """`unroll` of the dynamics alone."""
        deferred = torch.is_grad_enabled() and not torch.compiler.is_compiling()
        products = DeferredProducts(len(encoded)) if deferred else PLAIN
        hidden = []
        for t in range(len(encoded)):
            state = self.dynamics(encoded[t], state, products)
            hidden.append(self.hidden(state))
        return torch.stack(hidden, 1), state

    def encode_batch(self, batch: Batch) -> Sequence[Any]:
        if not self.needs_next_views:
            return self.encode(batch.views, batch.view_position, batch.view_mask, batch.view_count)
        if batch.next_views is None or batch.next_view_position is None or batch.next_view_mask is None:
            raise UsageError(
                f"{type(self).__name__} is an oracle that reads the views of the next frame, and the batch has none; "
                "give Batch its next_views, next_view_position and next_view_mask"
            )
        return self.encode(batch.next_views, batch.next_view_position, batch.next_view_mask, batch.next_view_count)

    def forward(self, batch: Batch) -> Prediction:
        """One-step-ahead predictions at every step: tensors (B, T, Q, ...)."""
        encoded = self.encode_batch(batch)
        hidden, _ = self.unroll(encoded, self.initial_state(batch.view_mask.shape[0]))
        return self.decode_hidden(hidden, batch.query_position, batch.query_mask, batch.query_count)

    def decode(self, state: Any, query_position: Tensor) -> Prediction:
        """What would be seen at (B, Q, 2), as tensors (B, Q, ...)."""
        hidden: Any = self.hidden(own_of(state)).unsqueeze(1)
        if isinstance(state, Beside):
            hidden = Beside(hidden, Seen(*(part.unsqueeze(1) for part in state.seen)))
        prediction = self.decode_hidden(hidden, query_position.unsqueeze(1))
        return type(prediction)(*(part.squeeze(1) for part in prediction))

    def decode_hidden(
        self, hidden: Any, query_position: Tensor, query_mask: Tensor | None = None, query_count: int | None = None
    ) -> Prediction:
        """Hidden states (B, T, ...) at (B, T, Q, 2). What is predicted for queries that a mask (B, T, Q) says are
        absent means nothing; they are not computed."""
        present = self.present(query_mask, query_count)
        image = self.decode_rows(hidden, query_position, present)
        if present is not None:
            count = query_position.shape[:3].numel()
            image = image.new_zeros(count, *image.shape[1:]).index_copy(0, present, image)
        return self.learning.prediction(image.unflatten(0, query_position.shape[:3]))

    def decode_rows(self, hidden: Any, query_position: Tensor, present: Tensor | None) -> Tensor:
        """The queries with these numbers (P,) among all B * T * Q, None for all: (P, C', H, W)."""
        h, s = self.attend(own_of(hidden), self.embedding(query_position))
        if self.config.skip:  # what is seen near a query is its own: a row for each
            near = self.near(hidden.seen if isinstance(hidden, Beside) else None, query_position)
            h, s = h.unsqueeze(1).expand(-1, s.shape[1], -1).flatten(0, 1), s.flatten(0, 1).unsqueeze(1)
            h = torch.cat([h, near.flatten(0, 2).to(h.dtype)], -1)
        at = query_position.reshape(*s.shape[:2], 2) if self.takes_position else s
        if present is not None and at.shape[1] == 1:  # each query has a row: no more is made than is there
            h, at, present = h[present], at[present], None
        return self.decoder(h, at, present)

    def near(self, seen: Seen | None, query_position: Tensor) -> Tensor:
        """sum_a w_qa x_a, w_q = softmax_a of -lambda |x^q - x^a|^2: (B, T, Q, 2) -> (B, T, Q, F); 0 without views."""
        if seen is None:
            return query_position.new_zeros(*query_position.shape[:3], self.skip_size)
        apart = (query_position.unsqueeze(3) - seen.position.unsqueeze(2)) / self.image_extent  # (B, T, Q, V, 2)
        logits = -self.log_nearness.exp() * apart.square().sum(-1)
        weight = torch.where(seen.mask.unsqueeze(2), logits, ABSENT_LOGIT).softmax(-1)
        return (weight * seen.mask.any(-1)[:, :, None, None]).to(seen.features.dtype) @ seen.features

    def encode_views(
        self,
        views: Tensor,
        s: Tensor,
        view_position: Tensor,
        view_mask: Tensor | None = None,
        view_count: int | None = None,
    ) -> Tensor:
        """E of every view: (B, T, V, C, H, W), (B, T, V, d), (B, T, V, 2) -> (B, T, V, encoding_size [+ F]).
        Those of views that a mask (B, T, V) says are absent mean nothing; they are not computed."""
        at = (view_position if self.takes_position else s).flatten(0, 2)
        views, steps, present = views.flatten(0, 2), views.shape[:3], self.present(view_mask, view_count)
        if present is None:
            return self.encoder(views, at).unflatten(0, steps)
        e = self.encoder(views[present], at[present])
        return e.new_zeros(len(views), e.shape[-1]).index_copy(0, present, e).unflatten(0, steps)

    def present(self, mask: Tensor | None, count: int | None = None) -> Tensor | None:
        """Numbers of what a mask says exists, or None for all.
        Compiled code wants few shapes, and asking a GPU how much exists would wait for it: there it is as many as the
        host counted, rounded up to an eighth of all; the numbers that are too many are of what is absent."""
        if mask is None:
            return None
        if mask.device.type != "cpu" or self.fixed_shapes or torch.compiler.is_compiling():
            eighths = 8 if count is None else -(-8 * count // mask.numel())
            wanted = mask.numel() * eighths // 8 + (mask.numel() * eighths % 8 > 0)
            return None if eighths >= 8 else mask.flatten().logical_not().byte().argsort(stable=True)[:wanted]
        return None if mask.all() else mask.flatten().nonzero()[:, 0]

    def loss_terms(self, prediction: Prediction, batch: Batch, **weights: float) -> dict[str, Tensor]:
        if batch.targets is None:
            raise UsageError("a batch without targets has no loss; give Batch its targets")
        return self.learning.loss_terms(prediction, batch.targets, batch.query_mask, **weights)

    def loss(self, prediction: Prediction, batch: Batch, **weights: float) -> Tensor:
        """Sum of the world's terms, each a mean over what exists."""
        return torch.stack(list(self.loss_terms(prediction, batch, **weights).values())).sum()

    def batch_loss(self, batch: Batch) -> Tensor:
        """What training lessens: `loss(model(batch), batch)`, with the config's weights and of what exists alone."""
        present = self.present(batch.query_mask, batch.query_count)
        if present is None or batch.targets is None:
            return self.loss(self(batch), batch, **self.loss_weights)
        hidden, _ = self.unroll(self.encode_batch(batch), self.initial_state(batch.view_mask.shape[0]))
        image = self.decode_rows(hidden, batch.query_position, present)[None, None]
        where = torch.unravel_index(present, batch.query_mask.shape)  # targets may be slices, costly to flatten
        targets = map_tensors(batch.targets, lambda tensor: tensor[where][None, None])
        mask = batch.query_mask[where][None, None]
        terms = self.learning.loss_terms(self.learning.prediction(image), targets, mask, **self.loss_weights)
        return torch.stack(list(terms.values())).sum()

    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.parameters())
