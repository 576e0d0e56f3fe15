"""Groups of a store in formats for people who work elsewhere: NPZ, HDF5, Parquet, WebDataset, or a folder of GIFs.

    export(store["bballs/test_3"], "npz", Path("exports"))     # exports/bballs-test_3.npz

Values are as our reader gives them: frames of 0 and 1, not packed. Arrays are copied in blocks, so that memory does not
grow with the group. What is written appears under its name when it is whole, never before.
"""

# N sequences or episodes of a group

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.errors import ConflictError, UsageError, did_you_mean
from s2rm_data.files import make_folder, replaced, replaced_folder
from s2rm_data.inspection.world import inspection_of
from s2rm_data.painting import save_gif
from s2rm_data.progress import Progress
from s2rm_data.store import Group
from s2rm_data.store.reader import PACKED_BITS, StoredArray

BLOCK_NBYTES = 16 << 20  # of an array, held at once
ATTRIBUTES = "attributes"  # member of an NPZ, and attribute of an HDF5 file: the group's attributes as JSON


def export(
    group: Group,
    form: str,
    folder: Path,
    *,
    count: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write the first `count` sequences (None: all) of a group; returns the file or folder made.

    `progress` is advanced by bytes of array for files and by sequences for GIFs; see `work_of`.
    """
    writer, suffix = _format(form)
    total = _count(group, count)
    target = folder / (group.path.replace("/", "-") + suffix)
    if target.exists() and not overwrite:
        raise ConflictError(f"{target} is there already; choose another --out, or replace it with --overwrite")
    make_folder(folder)
    with (replaced if suffix else replaced_folder)(target) as partial:
        writer(group, partial, total, progress or Progress())
    return target


def work_of(group: Group, form: str, count: int | None = None) -> int:
    """How far `progress` will advance in all."""
    if form == "gif":
        return _count(group, count)
    return sum(_row_nbytes(array) for array in group.arrays.values()) * _count(group, count)


def _count(group: Group, count: int | None) -> int:
    if count is not None and count < 1:
        raise UsageError(f"{count} sequences cannot be exported; allowed are 1 or more")
    return len(group) if count is None else min(count, len(group))


def _format(form: str) -> tuple[Callable[[Group, Path, int, Progress], None], str]:
    if form not in FORMATS:
        choices = f"the choices are {', '.join(FORMATS)}"
        raise UsageError(f"no format {form!r}{did_you_mean(form, FORMATS, choices)}")
    return FORMATS[form]


def _row_nbytes(array: StoredArray) -> int:
    return int(np.prod(array.shape[1:], dtype=np.int64)) * array.dtype.itemsize


def blocks(array: StoredArray, count: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """(first row, rows) of an array, whole chunks of it at a time."""
    chunk = array.layout.chunk
    rows = max(BLOCK_NBYTES // max(_row_nbytes(array), 1) // chunk, 1) * chunk
    for start in range(0, count, rows):
        yield start, array[start : min(start + rows, count)]


def attributes_of(group: Group) -> str:
    return json.dumps({"group": group.path, **group.attributes}, sort_keys=True)


def _write_npz(group: Group, path: Path, count: int, progress: Progress) -> None:
    """What `numpy.savez_compressed` writes, array by array and block by block."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in group.arrays.items():
            header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False}
            with archive.open(_member(name), "w", force_zip64=True) as file:
                np.lib.format.write_array_header_1_0(file, {**header, "shape": (count, *array.shape[1:])})
                for _, block in blocks(array, count):
                    file.write(np.ascontiguousarray(block).data)
                    progress.advance(block.nbytes)
        with archive.open(_member(ATTRIBUTES), "w") as file:
            np.lib.format.write_array(file, np.array(attributes_of(group)))


def _member(name: str) -> zipfile.ZipInfo:
    """Always the same date, so that equal data give equal files."""
    member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def _write_hdf5(group: Group, path: Path, count: int, progress: Progress) -> None:
    from s2rm_data.inspection.hdf5 import write_hdf5

    write_hdf5(group, path, count, progress)


def _write_parquet(group: Group, path: Path, count: int, progress: Progress) -> None:
    from s2rm_data.inspection.parquet import write_parquet

    write_parquet(group, path, count, progress)


def _write_tar_shards(group: Group, folder: Path, count: int, progress: Progress) -> None:
    from s2rm_data.inspection.tar_shards import write_tar_shards

    write_tar_shards(group, folder, count, progress)


def described(array: StoredArray) -> dict[str, Any]:
    """The array's attributes, without those on how the store packs it."""
    packing = {PACKED_BITS, "bit_order", "unpack"}
    return {key: value for key, value in array.layout.attributes.items() if key not in packing}


def _write_gifs(group: Group, folder: Path, count: int, progress: Progress) -> None:
    """One animation per sequence, numbered as in the group, in a folder that is there."""
    inspection = inspection_of(group)
    digits = max(5, len(str(count - 1)))
    for number in range(count):
        pictures = inspection.pictures(group, number)
        save_gif(pictures, folder / f"{number:0{digits}}.gif", inspection.milliseconds)
        progress.advance(1)


FORMATS: dict[str, tuple[Callable[[Group, Path, int, Progress], None], str]] = {
    "npz": (_write_npz, ".npz"),
    "hdf5": (_write_hdf5, ".h5"),
    "parquet": (_write_parquet, ".parquet"),
    "webdataset": (_write_tar_shards, ""),
    "gif": (_write_gifs, ""),
}
