"""Groups of a store in formats for people who work elsewhere; each format is a file in `export/`.

    export(store["bballs/test_3"], "npz", Path("exports"))     # exports/bballs-test_3.npz

Values are as our reader gives them: frames of 0 and 1, not packed. Arrays are copied in blocks, so that memory does not
grow with the group. What is written appears under its name when it is whole, never before."""

# N sequences or episodes of a group

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import NDArray

from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.core.progress import Progress
from s2rm_data.core.registry import EXPORT_FORMATS
from s2rm_data.core.write import make_folder, replaced, replaced_folder
from s2rm_data.store import Group
from s2rm_data.store.reader import PACKED_BITS, StoredArray

BLOCK_NBYTES = 16 << 20  # of an array, held at once
ATTRIBUTES = "attributes"  # member of an NPZ, and attribute of an HDF5 file: the group's attributes as JSON


class ExportFormat(ABC):
    """`suffix` is that of the file, empty where a folder is made. `counts` is what progress is counted in: bytes of
    arrays, or sequences."""

    suffix: ClassVar[str] = ""
    counts: ClassVar[str] = "bytes"

    @abstractmethod
    def write(self, group: Group, path: Path, count: int, progress: Progress) -> None:
        """The first `count` sequences of a group, into a new file, or into a folder that is there."""


def export(
    group: Group,
    form: str,
    folder: Path,
    *,
    count: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """The file or folder made of the first `count` sequences (None: all); `progress` is advanced by `work_of` these."""
    chosen, total = EXPORT_FORMATS.load(form), _count(group, count)
    target = folder / (group.path.replace("/", "-") + chosen.suffix)
    if os.path.lexists(target) and not overwrite:
        raise ConflictError(f"{target} is there already; choose another --out, or replace it with --overwrite")
    if chosen.suffix and target.is_symlink():
        raise ConflictError(f"{target} is a link, which is not replaced; remove it, or choose another --out")
    make_folder(folder)
    with (replaced if chosen.suffix else replaced_folder)(target) as partial:
        chosen.write(group, partial, total, progress or Progress())
    return target


def work_of(group: Group, form: str, count: int | None = None) -> int:
    """How far `progress` will advance in all."""
    if EXPORT_FORMATS.load(form).counts == "sequences":
        return _count(group, count)
    return sum(row_nbytes(array) for array in group.arrays.values()) * _count(group, count)


def _count(group: Group, count: int | None) -> int:
    if count is not None and count < 1:
        raise UsageError(f"{count} sequences cannot be exported; allowed are 1 or more")
    return len(group) if count is None else min(count, len(group))


def row_nbytes(array: StoredArray) -> int:
    return math.prod(array.shape[1:]) * array.dtype.itemsize


def blocks(array: StoredArray, count: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """(first row, rows) of an array, whole chunks of it at a time."""
    chunk = array.layout.chunk
    rows = max(BLOCK_NBYTES // max(row_nbytes(array), 1) // chunk, 1) * chunk
    for start in range(0, count, rows):
        yield start, array[start : min(start + rows, count)]


def attributes_of(group: Group) -> str:
    return json.dumps({"group": group.path, **group.attributes}, sort_keys=True)


def described(array: StoredArray) -> dict[str, Any]:
    """The array's attributes, without those on how the store packs it."""
    return {k: v for k, v in array.layout.attributes.items() if k not in (PACKED_BITS, "bit_order", "unpack")}
