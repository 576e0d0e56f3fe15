"""WebDataset: tar files in a folder, one member per sequence, that PyTorch streams from a disk or from a network.

    000000.tar    00000000.npz, 00000001.npz, ...: all arrays of a sequence, compressed
    attributes.json

`webdataset.WebDataset("exports/bballs-train/{000000..000003}.tar").decode()` gives each as `sample["npz"]`.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from s2rm_data.errors import missing_component
from s2rm_data.inspection.export import ATTRIBUTES, attributes_of
from s2rm_data.progress import Progress

if TYPE_CHECKING:
    from s2rm_data.store import Group

SHARD_NBYTES = 256 << 20  # of a tar file, about


def write_tar_shards(group: Group, folder: Path, count: int, progress: Progress) -> None:
    try:
        import webdataset
    except ModuleNotFoundError as error:
        raise missing_component(str(error.name), "publish", "writing WebDataset shards") from None
    (folder / f"{ATTRIBUTES}.json").write_text(attributes_of(group) + "\n", encoding="utf-8")
    pattern = f"{folder}/%06d.tar".replace("%", "%%").replace("%%06d", "%06d")
    # One time for all members, so that equal data give equal files.
    with webdataset.ShardWriter(pattern, maxsize=SHARD_NBYTES, verbose=0, mtime=0.0) as writer:
        for number in range(count):
            sequence = group[number]
            writer.write({"__key__": f"{number:08}", "npz": _compressed(sequence)})
            progress.advance(sum(values.nbytes for values in sequence.values()))


def _compressed(sequence: dict[str, np.ndarray]) -> bytes:
    data = io.BytesIO()
    np.savez_compressed(data, **sequence)  # type: ignore[arg-type]
    return data.getvalue()
