"""Croissant metadata (https://docs.mlcommons.org/croissant) of a store: what files there are and what is in them.

The store is one set of files, whose root document has its SHA-256 here and seals all others. The record set `arrays`
says what every array is. Groups that lie beside the card as Parquet (`s2rm-data export -f parquet`) are record sets
too, whose rows `mlcroissant` reads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from s2rm_data.core.optional import needed
from s2rm_data.store.layout import META

if TYPE_CHECKING:
    from s2rm_data.inspection.card import About
    from s2rm_data.store import Group, Store

ZARR, PARQUET = "application/vnd.zarr", "application/x-parquet"
_COLUMNS = ("group", "array", "type", "shape", "description", "units")


def need_mlcroissant() -> Any:
    return needed("mlcroissant", "publish", "a data card with Croissant metadata")


def croissant_json(store: Store, groups: Sequence[Group], about: About, parquet: Mapping[str, Path]) -> bytes:
    """`parquet`: group -> file beside the card. Raises if what comes out is not valid Croissant."""
    mlc = need_mlcroissant()
    name = store.path.name  # as the store is called beside the card
    distribution = [
        _file(
            mlc, f"{name}/{META}", store.manifest.to_bytes(), ZARR, "The root document, which seals all other objects."
        ),
        mlc.FileSet(
            id="store", name="store", includes=[f"{name}/**"], encoding_formats=[ZARR], description="The Zarr store."
        ),
        *(_file(mlc, path.name, path.read_bytes(), PARQUET, f"{group} as Parquet.") for group, path in parquet.items()),
    ]
    records = [_arrays(mlc, groups)]
    records += [_rows(mlc, group, parquet[group.path].name) for group in groups if group.path in parquet]
    metadata = mlc.Metadata(
        name=about.title,
        description=about.description,
        license=[about.licence_url],
        url=about.url,
        cite_as=about.citation,
        version=about.version,
        keywords=list(about.tags),
        date_published=datetime.fromisoformat(about.published),
        creators=[mlc.Organization(name=about.author, url=about.url)],
        distribution=distribution,
        record_sets=records,
    )
    return (json.dumps(metadata.to_json(), indent=1, default=str) + "\n").encode()


def _file(mlc: Any, name: str, data: bytes, encoding: str, description: str) -> Any:
    return mlc.FileObject(
        id=name,
        name=name,
        content_url=name,
        content_size=f"{len(data)} B",
        sha256=hashlib.sha256(data).hexdigest(),
        encoding_formats=[encoding],
        description=description,
    )


def _arrays(mlc: Any, groups: Sequence[Group]) -> Any:
    """One record per array, held in the document itself."""
    rows = []
    for group in groups:
        for name, array in group.arrays.items():
            shape = " x ".join(f"{size} {dim}" for dim, size in zip(array.dims, array.shape, strict=True))
            words = (str(array.layout.attributes.get(key, "")) for key in ("description", "units"))
            rows.append((group.path, name, str(array.dtype), shape, *words))
    fields = [
        mlc.Field(id=f"arrays/{name}", name=name, description=f"The array's {name}.", data_types=[mlc.DataType.TEXT])
        for name in _COLUMNS
    ]
    data = [{f"arrays/{name}": value for name, value in zip(_COLUMNS, row, strict=True)} for row in rows]
    return mlc.RecordSet(id="arrays", name="arrays", description="Every array of the store.", fields=fields, data=data)


def _rows(mlc: Any, group: Group, file: str) -> Any:
    fields = [
        mlc.Field(
            id=f"{group.path}/{name}",
            name=name,
            description=str(array.layout.attributes.get("description", name)),
            data_types=[getattr(mlc.DataType, array.dtype.name.upper())],
            is_array=True if array.shape[1:] else None,
            array_shape=",".join(map(str, array.shape[1:])) or None,
            source=mlc.Source(file_object=file, extract=mlc.Extract(column=name)),
        )
        for name, array in group.arrays.items()
    ]
    return mlc.RecordSet(id=group.path, name=group.path, description=f"Sequences of {group.path}.", fields=fields)
