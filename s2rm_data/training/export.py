"""A finished run as a small folder that can be kept and shared: weights in half precision, scores, curves, no state.

What is left out: the state that a resumed run needs, the last weights, the records of single steps, pictures, timing,
and the path of the store, which means nothing on another machine.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from s2rm_data.config import canonical_json
from s2rm_data.errors import ConflictError, UsageError
from s2rm_data.files import make_folder, read_inside, replaced_folder, write_whole
from s2rm_data.models.weights import load_model, save_model
from s2rm_data.sealing import MOST_BYTES, read_log, read_run
from s2rm_data.training.folder import RunFolder


def export_run(run: Path, out: Path) -> int:
    """Write the run in folder `run` to a new folder `out`; returns its size in bytes."""
    source = RunFolder(run)
    document = read_run(run)
    if not source.is_complete:
        raise UsageError(f"{run} is not finished; resume it with s2rm-train --resume --out {run}, then export it")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConflictError(f"{out} is not empty; give --export another name, or remove it")
    make_folder(out.absolute().parent)
    with replaced_folder(out.absolute()) as partial:  # a kill leaves nothing that would be in the way
        _write(source, RunFolder(partial), document)
    return sum(path.stat().st_size for path in out.iterdir())


def _write(source: RunFolder, target: RunFolder, document: dict[str, Any]) -> None:
    document["store"] = {**document.get("store", {}), "path": ""}
    save_model(load_model(source.best).half(), target.best)
    records = [record for record in read_log(source.log) if record.get("kind") != "step"]
    write_whole(target.log, [canonical_json(record) + b"\n" for record in records])
    for path in (source.environment, source.curves):
        if os.path.lexists(path):  # a link, which might lead to anything, is refused
            write_whole(target.path / path.name, [read_inside(source.path, path.name, MOST_BYTES)])
    target.begin(document)
    target.write_json(target.summary, source.read_json(source.summary))
