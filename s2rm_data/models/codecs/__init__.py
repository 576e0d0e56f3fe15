"""Encoders of views and decoders of queries, for square crops and for polar images."""

from __future__ import annotations

from s2rm_data.models.codecs.conv import ConvDecoder, ConvEncoder
from s2rm_data.models.codecs.mlp import MLPDecoder, MLPEncoder
from s2rm_data.models.config import ModelConfig

__all__ = ["Decoder", "Encoder", "build_decoder", "build_encoder"]

Encoder = ConvEncoder | MLPEncoder
Decoder = ConvDecoder | MLPDecoder


def build_encoder(config: ModelConfig, *, position_size: int) -> Encoder:
    """Views (N, C, H, W) and embeddings (N, position_size) -> encodings (N, config.encoding_size).

    position_size 0: no position is injected.
    """
    encoder = ConvEncoder if config.codec == "conv" else MLPEncoder
    return encoder(config, position_size=position_size)


def build_decoder(config: ModelConfig, hidden_size: int, *, position_size: int) -> Decoder:
    """Hidden (R, hidden_size) and query embeddings (R, Q, position_size) -> image channels (R, Q, C', H, W)."""
    decoder = ConvDecoder if config.codec == "conv" else MLPDecoder
    return decoder(config, hidden_size, position_size=position_size)
