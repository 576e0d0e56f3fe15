"""The run folder: what lies where in it, who may write to it, and its log.

    run.json                the mark of a run folder, with the digest of config.json
    config.json             the run: config, model config, store and the groups it was trained on
    environment.json        machine and versions
    log.jsonl               one record per step and per validation; the same for every run of the same config
    timing.jsonl            speed, waiting, memory; different every time
    state.safetensors       what a resumed run needs
    last.safetensors        weights of the last checkpoint
    best.safetensors        weights with the lowest validation loss
    curves.png, predictions/, tensorboard/
    summary.json            written at the end; its existence means: complete

Paths inside are relative: the folder can be moved.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from s2rm_data.config import canonical_json
from s2rm_data.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.files import PARTIAL, disk_errors, lock_folder, make_folder, sync_folder, write_whole
from s2rm_data.sealing import CONFIG, LOG, MARK, PROTOCOL, STATE, is_run, mark_bytes, read_json


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    mark = property(lambda self: self.path / MARK)
    config = property(lambda self: self.path / CONFIG)
    environment = property(lambda self: self.path / "environment.json")
    log = property(lambda self: self.path / LOG)
    timing = property(lambda self: self.path / "timing.jsonl")
    state = property(lambda self: self.path / STATE)
    last = property(lambda self: self.path / "last.safetensors")
    best = property(lambda self: self.path / "best.safetensors")
    summary = property(lambda self: self.path / "summary.json")
    curves = property(lambda self: self.path / "curves.png")
    protocol = property(lambda self: self.path / PROTOCOL)  # of a command with several seeds
    predictions = property(lambda self: self.path / "predictions")
    tensorboard = property(lambda self: self.path / "tensorboard")

    @property
    def holds_run(self) -> bool:
        return bool(self.config.exists()) and is_run(self.path)

    @property
    def is_complete(self) -> bool:
        return bool(self.summary.exists())

    def open(self, *, resume: bool, overwrite: bool) -> None:
        """Lock the folder for writing; what is in the way is refused, or with `overwrite` removed."""
        if not _is_text(self.path):  # others that write here, such as TensorBoard, take nothing else
            raise UsageError(f"the name of the run folder {str(self.path)!r} is not text; give --out another name")
        if self.path.exists() and not self.path.is_dir():
            raise ConflictError(f"{self.path} is a file; give --out another name")
        if self.holds_run and not (resume or overwrite):
            raise ConflictError(
                f"{self.path} already holds a run{' that is complete' if self.is_complete else ''}; "
                "add --resume to continue it, --overwrite to start it again, or give --out another name"
            )
        foreign = self._foreign()
        if foreign:
            raise ConflictError(f"{self.path} holds other files ({foreign[0]}, ...); give --out another name")
        make_folder(self.path)
        self._check_writable()
        self._lock = lock_folder(self.path)
        for path in self._files:
            path.with_name(path.name + PARTIAL).unlink(missing_ok=True)
        if overwrite:
            self._clear()

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _check_writable(self) -> None:
        probe = self.path / f"probe{PARTIAL}"
        with disk_errors(self.path):
            probe.touch()
            probe.unlink()

    def _foreign(self) -> list[str]:
        """Names of what is in a folder that is not a run's: nothing of it may be overwritten or removed."""
        if not self.path.exists() or is_run(self.path):
            return []
        return sorted(p.name for p in self.path.iterdir() if p.name != self.mark.name + PARTIAL)

    def _clear(self) -> None:
        """Remove what a run leaves, its config first and its mark last, and what several seeds have left."""
        for path in (*self._files, *self.predictions.glob("step-*.png"), *self.tensorboard.glob("events.*")):
            path.unlink(missing_ok=True)
        seeds = self.path / "seeds"
        for seed in seeds.glob("[0-9]*"):
            if is_run(seed):
                RunFolder(seed)._clear()
                _remove_empty(seed)
        _remove_empty(self.predictions, self.tensorboard, seeds)
        self.mark.unlink(missing_ok=True)

    @property
    def _files(self) -> list[Path]:
        marks = [self.config, self.state, self.summary, self.protocol]
        return [*marks, self.environment, self.log, self.timing, self.last, self.best, self.curves]

    def begin(self, document: Any | None) -> None:
        """Mark the folder as a run's and write its config, which from then on must stay as it is.

        None for a folder that holds the runs of several seeds, and has no config of its own yet.
        """
        config = None if document is None else _json_bytes(document)
        write_whole(self.mark, [mark_bytes(config)])
        if config is not None:
            write_whole(self.config, [config])
        sync_folder(self.path)

    def replace_config(self, document: Any) -> None:
        """Another config for the run, which is then no longer complete. A kill leaves the old one or the new one."""
        self.summary.unlink(missing_ok=True)
        before, after = self.config.read_bytes(), _json_bytes(document)
        write_whole(self.mark, [mark_bytes(after, before)])
        write_whole(self.config, [after])
        write_whole(self.mark, [mark_bytes(after)])
        sync_folder(self.path)

    def write_json(self, path: Path, value: Any) -> None:
        write_whole(path, [_json_bytes(value)])
        sync_folder(self.path)

    def read_json(self, path: Path) -> Any:
        return read_json(self.path, path.name)


def _is_text(path: Path) -> bool:
    """Whether a path can be written as UTF-8; names of files can be any bytes."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value, indent=2, allow_nan=False).encode() + b"\n"


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # not there, or something else is in it
            folder.rmdir()


def _opened_for_writing(path: Path) -> int:
    """A descriptor of a regular file, made if there is none. A link is not followed: it may lead to somebody's file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise DamagedStoreError(f"{path} is not a regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedStoreError(f"{path} is not a regular file")
    return descriptor


class Log:
    """Records as lines of JSON, in the order of the steps.

    Its length and digest are part of a checkpoint, and a resumed run cuts off what was written after it: the log of a
    run that was killed is that of one that was not.
    """

    def __init__(self, path: Path, length: int, sha256: str | None = None) -> None:
        self.path = path
        self._digest = hashlib.sha256()
        with disk_errors(path):
            self._file = os.fdopen(_opened_for_writing(path), "a+b")
        try:
            self._check(length, sha256)
            with disk_errors(path):
                self._file.truncate(length)
        except BaseException:
            self._file.close()
            raise

    def _check(self, length: int, sha256: str | None) -> None:
        """Whether the log begins as it did at the checkpoint; checkpoints of earlier versions say only how long."""
        self._file.seek(0)
        left = length
        while left and (piece := self._file.read(min(left, 1 << 20))):
            self._digest.update(piece)
            left -= len(piece)
        if left:
            raise DamagedStoreError(f"{self.path} is shorter than the checkpoint says ({length} bytes)")
        if sha256 is not None and self._digest.hexdigest() != sha256:
            raise DamagedStoreError(f"{self.path} is damaged: it is not as it was at the checkpoint")

    def write(self, record: dict[str, Any]) -> None:
        line = canonical_json(record) + b"\n"
        self._digest.update(line)
        with disk_errors(self.path):
            self._file.write(line)

    @property
    def sha256(self) -> str:
        """Of all that was written."""
        return self._digest.hexdigest()

    def sync(self) -> int:
        """Its length, once it is on the disk."""
        with disk_errors(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            return self._file.tell()

    def flush(self) -> None:
        with disk_errors(self.path):
            self._file.flush()

    def close(self) -> None:
        self._file.close()
