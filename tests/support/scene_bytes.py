"""Reads a scene as the viewer's page does."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from s2rm_data.inspection.scene import MAGIC


def unpacked(data: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Written from the description alone, as the page does it."""
    assert data.startswith(MAGIC)
    (length,) = struct.unpack_from("<I", data, 8)
    header = json.loads(data[12 : 12 + length])
    arrays = []
    for entry in header["arrays"]:
        dtype, start = np.dtype("<" + entry["type"]), 12 + length + entry["offset"]
        assert start % 8 == 0  # typed arrays of a browser must be aligned
        values = np.frombuffer(data, dtype, int(np.prod(entry["shape"])), start)
        arrays.append(values.reshape(entry["shape"]))
    return header["body"], arrays
