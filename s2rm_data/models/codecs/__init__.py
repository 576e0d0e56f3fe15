"""Encoders of views and decoders of queries, for square crops and for polar images."""

from __future__ import annotations

from s2rm_data.models.codecs.conv import ConvDecoder, ConvEncoder
from s2rm_data.models.codecs.mlp import MLPDecoder, MLPEncoder
from s2rm_data.models.codecs.wave_cells import CellWaveDecoder, CellWaveEncoder
from s2rm_data.models.codecs.wave_images import ImageWaveDecoder, ImageWaveEncoder
from s2rm_data.models.config import ModelConfig

__all__ = ["Decoder", "Encoder", "build_decoder", "build_encoder"]

Encoder = ConvEncoder | MLPEncoder | ImageWaveEncoder | CellWaveEncoder
Decoder = ConvDecoder | MLPDecoder | ImageWaveDecoder | CellWaveDecoder


def _pair(config: ModelConfig) -> tuple[type[Encoder], type[Decoder]]:
    if config.codec == "conv":
        return ConvEncoder, ConvDecoder
    if config.codec == "mlp":
        return MLPEncoder, MLPDecoder
    if config.learning.occupied_channels is None:
        return ImageWaveEncoder, ImageWaveDecoder
    return CellWaveEncoder, CellWaveDecoder


def build_encoder(config: ModelConfig, *, position_size: int) -> Encoder:
    """Views (N, C, H, W) and their places (N, n) -> encodings (N, config.encoding_size).

    A place is a position if the codec `takes_position`, else its embedding of n = position_size features. With
    position_size 0, no embedding is injected.
    """
    return _pair(config)[0](config, position_size=position_size)


def build_decoder(config: ModelConfig, hidden_size: int, *, position_size: int) -> Decoder:
    """Hidden (R, hidden_size), the places of its queries (R, Q, n) and the numbers (P,) of those that are decoded among
    all R * Q (None: all) -> image channels (P, C', H, W).
    """
    return _pair(config)[1](config, hidden_size, position_size=position_size)
