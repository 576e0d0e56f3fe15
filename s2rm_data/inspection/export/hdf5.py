"""HDF5 files.

The HDF5 library crashes (SIGSEGV) when it closes a file that the disk refused a part of, or that a signal interrupted.
Here it writes to a file that refuses nothing, whose first error is told once the library has closed its own; and in a
thread, in which no signal raises anything."""

from __future__ import annotations

import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from s2rm_data.core.optional import needed
from s2rm_data.core.progress import Progress
from s2rm_data.inspection.export_format import ATTRIBUTES, ExportFormat, attributes_of, blocks, described
from s2rm_data.store import Group
from s2rm_data.store.reader import StoredArray


class _Patient(io.FileIO):
    """Says that all has been written; `error` is the first thing that the system refused, after which nothing is."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data)
        try:
            while rest and self.error is None:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self.error = error
        return len(data)

    def readinto(self, buffer: Any) -> int:
        found = super().readinto(buffer)
        buffer[found:] = bytes(len(buffer) - found)
        return len(buffer)

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0


class Hdf5(ExportFormat):
    suffix = ".h5"

    def write(self, group: Group, path: Path, count: int, progress: Progress) -> None:
        h5py, over = needed("h5py", "export", "writing HDF5"), threading.Event()

        def work() -> None:
            with _Patient(path, "w+b") as raw:
                with h5py.File(raw, "w", track_order=True) as file:
                    file.attrs[ATTRIBUTES] = attributes_of(group)
                    for name, array in group.arrays.items():
                        dataset = _dataset(file, name, array, count)
                        for start, block in blocks(array, count):
                            if raw.error or over.is_set():
                                break
                            dataset[start : start + len(block)] = block
                            progress.advance(block.nbytes)
                if raw.error:
                    raise raw.error

        with ThreadPoolExecutor(1) as pool:
            try:
                pool.submit(work).result()
            finally:
                over.set()


def _dataset(file: Any, name: str, array: StoredArray, count: int) -> Any:
    shape, chunks = ((n, *array.shape[1:]) for n in (count, min(array.layout.chunk, count)))
    packing = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    dataset = file.create_dataset(name, shape, array.dtype, chunks=chunks, **packing)
    for dimension, label in zip(dataset.dims, array.dims, strict=True):
        dimension.label = label
    for key, value in described(array).items():
        dataset.attrs[key] = value if isinstance(value, str | int | float) else json.dumps(value)
    return dataset


EXPORT_FORMAT = Hdf5()
