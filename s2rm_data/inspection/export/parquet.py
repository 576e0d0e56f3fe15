"""Parquet files, one row per sequence, as `datasets.load_dataset("parquet", ...)` of Hugging Face reads them.

Arrays keep their shape and type: they are the library's `Array2D` to `Array5D`, whose description it keeps in the file.
The group's attributes are in the schema's metadata, under `s2rm-data`."""

# N sequences of a block

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from s2rm_data.core.optional import needed
from s2rm_data.core.progress import Progress
from s2rm_data.inspection.export_format import ExportFormat, attributes_of, row_nbytes

if TYPE_CHECKING:
    from s2rm_data.store import Group
    from s2rm_data.store.reader import StoredArray

METADATA = b"s2rm-data"  # of the schema: the group's attributes as JSON
BLOCK_NBYTES = 8 << 20  # of all arrays, held at once and written as one row group
MOST_DIMENSIONS = 5  # of an array of the library, without that of the rows


class Parquet(ExportFormat):
    suffix = ".parquet"

    def write(self, group: Group, path: Path, count: int, progress: Progress) -> None:
        datasets, pyarrow = (needed(name, "publish", "writing Parquet") for name in ("datasets", "pyarrow"))
        parquet = needed("pyarrow.parquet", "publish", "writing Parquet")
        features = datasets.Features({name: _feature(array) for name, array in group.arrays.items()})
        schema = _plain(features.arrow_schema)
        schema = schema.with_metadata({**schema.metadata, METADATA: attributes_of(group).encode()})
        rows = max(1, BLOCK_NBYTES // sum(row_nbytes(array) for array in group.arrays.values()))
        with path.open("wb") as file, parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for start in range(0, count, rows):
                block = {name: array[start : min(start + rows, count)] for name, array in group.arrays.items()}
                columns = [_column(block[field.name], field.type) for field in schema]
                writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))
                progress.advance(sum(values.nbytes for values in block.values()))


def _plain(schema: Any) -> Any:
    """The library's array types as the lists that every reader of Parquet knows; its metadata say what they were."""
    import pyarrow

    own = pyarrow.BaseExtensionType
    fields = [(f.name, f.type.storage_type if isinstance(f.type, own) else f.type) for f in schema]
    return pyarrow.schema(fields, metadata=schema.metadata)


def _feature(array: StoredArray) -> Any:
    import datasets

    shape = array.shape[1:]
    if len(shape) > MOST_DIMENSIONS:  # those that the library cannot have are merged into the last one
        shape = (*shape[:4], math.prod(shape[4:]))
    if not shape:
        return datasets.Value(array.dtype.name)
    if len(shape) == 1:
        return datasets.List(datasets.Value(array.dtype.name), length=shape[0])
    return getattr(datasets, f"Array{len(shape)}D")(shape=shape, dtype=array.dtype.name)


def _column(values: Any, kind: Any) -> Any:
    """(N, ...) as a column: lists within lists, without a copy to Python's numbers, in the type of the schema."""
    import pyarrow

    values = values if values.ndim <= MOST_DIMENSIONS + 1 else values.reshape(*values.shape[:5], -1)
    column = pyarrow.array(values.reshape(-1))
    for depth in range(values.ndim - 1, 0, -1):
        lists, size = math.prod(values.shape[:depth]), values.shape[depth]
        column = pyarrow.ListArray.from_arrays(np.arange(lists + 1, dtype=np.int32) * size, column)
    return column.cast(kind)


EXPORT_FORMAT = Parquet()
