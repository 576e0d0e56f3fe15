"""What all models share in their configs: the world's shapes and scales, the positional embedding, encoder and decoder.

A config is built by `config_for`: the fields' own defaults hold for all worlds, the world gives those that
differ, the overrides come last. Every field is then checked."""

from dataclasses import dataclass
from typing import Annotated

from s2rm_data.core.check import above, between, check_fields, multiple_of
from s2rm_data.core.registry import CODECS, WORLDS
from s2rm_data.learning.world_learning import Learning
from s2rm_data.models.codec import Codec

Size = Annotated[int, between(1, 65_536)]  # features of a layer
Count = Annotated[int, between(1, 1024)]  # heads, modules, slots
Pixels = Annotated[int, between(3, 4096)]
Extent = Annotated[float, above(0, at_most=1e6)]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """`codec` names encoder and decoder: `conv`, the paper's; `mlp`; `waves`, which learns fastest; or a plug-in's.
    `width` is its channels or units."""

    task: str  # name of the world
    image_size: tuple[Pixels, Pixels]  # H, W
    arena_size: tuple[Extent, Extent]  # extent of positions in x and y, from 0
    cell_size: Extent = 1.0  # extent of a pixel, or of a polar image's radial cell, in the unit of positions
    # d, of the positional embedding, is a multiple of 2n, n = 2 coordinates (section 'Positional Embedding')
    embedding_size: Annotated[int, between(4, 4096), multiple_of(4)]
    position_scale: Annotated[float, above(0, at_most=1e6)]
    position_base: Annotated[float, between(1, 1e6)] = 16.0
    codec: str = "conv"
    width: Size = 32  # Assumption: channels of every layer; the paper's figures are lost
    encoding_size: Size = 128  # first dimension of Theta, tables tab:bb_hparams and tab:sc2_hparams
    # Assumption: few pixels are set, so logits start low.
    output_bias: Annotated[float, between(-100, 100)] = -2.5
    # Of the codec `waves`: its shortest period, in pixels or cells; and the gain of its last layer, whose weights start
    # that much smaller. Adam moves any weight by about the learning rate per step: with a gain it gets there sooner.
    wave_period: Annotated[float, above(0, at_most=1e6)] = 6.0
    output_gain: Annotated[float, above(0, at_most=1e6)] = 4.0
    # What the codec makes of the views goes past the dynamics to the decoder, too (docs/models.md, The skip). The paper
    # has nothing of the kind, and no model does it unless it is told to.
    skip: bool = False
    # Pixels or cells that hold something count so many times in the loss of training. Above 1, a model says "here" at a
    # probability below one half, as the best F1 wants it of rare things in uncertain places (docs/fidelity/models.md).
    occupied_weight: Annotated[float, above(0, at_most=1e6)] = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        WORLDS.require(self.task)
        codec: Codec = CODECS.load(self.codec)
        codec.check(self)

    @property
    def learning(self) -> Learning:
        """What the world's images mean: channels, losses, scores."""
        learning: Learning = WORLDS.load(self.task).learning()
        return learning
