"""The documents of a run folder, as training writes them and evaluation reads them: marked, sealed, and not trusted.

    run.json       the mark: this folder is a run's, and `config_sha256` is the digest of its config.json
    config.json    {"config": {"model": ..., "task": ..., "seed": ..., ...}, "store": {"path": ..., "groups": ...}, ...}
    log.jsonl      one record per line: steps, validations, references

Runs of earlier versions have no mark; they are known by what their config.json says.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from s2rm_data.errors import DamagedStoreError, UsageError
from s2rm_data.files import opened_inside, read_at, read_inside
from s2rm_data.seeding import MAX_SEED

MARK, CONFIG, PROTOCOL, STATE, LOG = "run.json", "config.json", "protocol.json", "state.safetensors", "log.jsonl"
FORMAT = "s2rm-data run 1"
STATE_FORMAT = "s2rm-data training state 1"
MOST_BYTES = 16 << 20  # of a document
_MOST_LINE_BYTES = 1 << 20  # of a log


def mark_bytes(config: bytes | None, previous: bytes | None = None) -> bytes:
    """The mark of a folder whose config.json will have these bytes; None where it has none yet.

    `previous`: what it has until it is replaced, which is right as well.
    """
    mark = {"format": FORMAT, "config_sha256": None if config is None else hashlib.sha256(config).hexdigest()}
    if previous is not None:
        mark["previous_config_sha256"] = hashlib.sha256(previous).hexdigest()
    return json.dumps(mark, indent=2).encode() + b"\n"


def read_json(folder: Path, name: str) -> Any:
    """A JSON document of a run folder; damaged if it cannot be read as one."""
    data = read_inside(folder, name, MOST_BYTES)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedStoreError(f"{folder / name} is damaged: {error}") from None


def read_run(folder: Path) -> dict[str, Any]:
    """The document of a run, whose seal is right and which says what evaluation and training need."""
    path = folder / CONFIG
    if not path.exists() and not path.is_symlink():
        raise UsageError(f"{path} is missing; {folder} is not a run folder of s2rm-train")
    document = read_json(folder, CONFIG)
    problem = problem_of(document)
    sealed = _sealed_digests(folder)
    if sealed and hashlib.sha256(read_inside(folder, CONFIG, MOST_BYTES)).hexdigest() not in sealed:
        raise DamagedStoreError(
            f"{path} is not as it was when the run was started; undo the change, or start another run elsewhere"
        )
    if problem:
        raise UsageError(f"{path} is not the config of a run of s2rm-train: {problem}")
    return dict(document)


def _sealed_digests(folder: Path) -> list[str]:
    """Of what config.json may hold; empty if nothing is known."""
    if not (folder / MARK).exists():
        return []
    mark = read_json(folder, MARK)
    if not isinstance(mark, dict) or mark.get("format") != FORMAT:
        raise DamagedStoreError(f"{folder / MARK} is damaged, or not the mark of a run of s2rm-train")
    found = (mark.get("config_sha256"), mark.get("previous_config_sha256"))
    return [digest for digest in found if isinstance(digest, str)] if isinstance(found[0], str) else []


def problem_of(document: Any) -> str:
    """What is wrong with the document of a run; empty if nothing is."""
    config = document.get("config") if isinstance(document, dict) else None
    if not isinstance(config, dict):
        return "it has no table `config`"
    for name in ("model", "task"):
        if not isinstance(config.get(name), str):
            return f"it names no {name}"
    seed = config.get("seed", 0)
    if type(seed) is not int or not 0 <= seed <= MAX_SEED:
        return f"its seed is not a whole number from 0 to {MAX_SEED}"
    store = document.get("store", {})
    if not isinstance(store, dict) or not isinstance(store.get("path", ""), str):
        return "its store is not a table with a path"
    groups = store.get("groups", {})
    if not isinstance(groups, dict) or not all(isinstance(entry, dict) for entry in groups.values()):
        return "the groups of its store are not tables"
    return ""


def is_run(folder: Path) -> bool:
    """Whether a folder is a run's: by its mark or, for runs of earlier versions, by what is in it."""
    return _has_mark(folder) or _has_old_run(folder)


def _has_mark(folder: Path) -> bool:
    try:
        return FORMAT.encode() in read_inside(folder, MARK, MOST_BYTES)
    except DamagedStoreError:
        return False


def _has_old_run(folder: Path) -> bool:
    for name, fits in ((CONFIG, lambda d: not problem_of(d) and "store" in d), (PROTOCOL, _is_protocol)):
        try:
            if fits(read_json(folder, name)):
                return True
        except DamagedStoreError:
            continue
    try:
        with opened_inside(folder, STATE) as descriptor:
            return STATE_FORMAT.encode() in read_at(descriptor, MOST_BYTES, 0)
    except (DamagedStoreError, OSError):
        return False


def _is_protocol(document: Any) -> bool:
    return isinstance(document, dict) and type(document.get("runs")) is int


def read_log(path: Path) -> list[dict[str, Any]]:
    """All whole records; a last line that was cut off by a kill is left out."""
    if not os.path.lexists(path):
        return []
    records = []
    with opened_inside(path.parent, path.name) as descriptor, open(descriptor, "rb", closefd=False) as file:
        try:
            while (line := file.readline(_MOST_LINE_BYTES)).endswith(b"\n"):
                records.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise DamagedStoreError(f"{path} is damaged: {error}") from None
    if len(line) == _MOST_LINE_BYTES:
        raise DamagedStoreError(f"{path} is damaged: it has a line of more than {_MOST_LINE_BYTES:,} bytes")
    return records
