"""WebDataset: tar files in a folder, one member per sequence, that PyTorch streams from a disk or from a network.

    000000.tar    00000000.npz, 00000001.npz, ...: all arrays of a sequence, compressed
    attributes.json

`webdataset.WebDataset("exports/bballs-train/{000000..000003}.tar").decode()` gives each as `sample["npz"]`."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from s2rm_data.core.optional import needed
from s2rm_data.core.progress import Progress
from s2rm_data.inspection.export_format import ATTRIBUTES, ExportFormat, attributes_of

if TYPE_CHECKING:
    from s2rm_data.store import Group

SHARD_NBYTES = 256 << 20  # of a tar file, about


class WebDataset(ExportFormat):
    def write(self, group: Group, path: Path, count: int, progress: Progress) -> None:
        webdataset = needed("webdataset", "publish", "writing WebDataset shards")
        (path / f"{ATTRIBUTES}.json").write_text(attributes_of(group) + "\n", encoding="utf-8")
        # Files, never names, which the library would interpret: as patterns, as addresses, as commands of a shell.
        # One time for all members, so that equal data give equal files.
        number = 0
        for shard in itertools.count():
            with (path / f"{shard:06}.tar").open("wb") as file, webdataset.TarWriter(file, mtime=0.0) as writer:
                nbytes = 0
                while number < count and nbytes < SHARD_NBYTES:
                    sequence = group[number]
                    data = io.BytesIO()
                    np.savez_compressed(data, **sequence)  # type: ignore[arg-type]
                    nbytes += writer.write({"__key__": f"{number:08}", "npz": data.getvalue()})
                    progress.advance(sum(values.nbytes for values in sequence.values()))
                    number += 1
            if number == count:
                return


EXPORT_FORMAT = WebDataset()
