"""NPZ, as `numpy.savez_compressed` writes it; equal data give equal files."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from s2rm_data.core.progress import Progress
from s2rm_data.inspection.export_format import ATTRIBUTES, ExportFormat, attributes_of, blocks
from s2rm_data.store import Group


class Npz(ExportFormat):
    suffix = ".npz"

    def write(self, group: Group, path: Path, count: int, progress: Progress) -> None:
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


EXPORT_FORMAT = Npz()
