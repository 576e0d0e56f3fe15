"""The run folder: what lies where in it, who may write to it, and its log.

    config.json             the run: config, model config, store and the groups it was trained on
    environment.json        machine and versions
    log.jsonl               one record a step and a validation; the same for every run of the same config
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
import json
import os
from pathlib import Path
from typing import Any

from s2rm_data.config import canonical_json
from s2rm_data.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.files import PARTIAL, disk_errors, lock_folder, make_folder, sync_folder, write_whole


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    config = property(lambda self: self.path / "config.json")
    environment = property(lambda self: self.path / "environment.json")
    log = property(lambda self: self.path / "log.jsonl")
    timing = property(lambda self: self.path / "timing.jsonl")
    state = property(lambda self: self.path / "state.safetensors")
    last = property(lambda self: self.path / "last.safetensors")
    best = property(lambda self: self.path / "best.safetensors")
    summary = property(lambda self: self.path / "summary.json")
    curves = property(lambda self: self.path / "curves.png")
    protocol = property(lambda self: self.path / "protocol.json")  # of a command with several seeds
    predictions = property(lambda self: self.path / "predictions")
    tensorboard = property(lambda self: self.path / "tensorboard")

    @property
    def holds_run(self) -> bool:
        return bool(self.config.exists())

    @property
    def is_complete(self) -> bool:
        return bool(self.summary.exists())

    def open(self, *, resume: bool, overwrite: bool) -> None:
        """Lock the folder for writing; what is in the way is refused, or with `overwrite` removed."""
        if self.path.exists() and not self.path.is_dir():
            raise ConflictError(f"{self.path} is a file; give --out another name")
        if self.holds_run and not (resume or overwrite):
            raise ConflictError(
                f"{self.path} already holds a run{' that is complete' if self.is_complete else ''}; "
                "add --resume to continue it, --overwrite to start it again, or give --out another name"
            )
        foreign = self._foreign()
        if foreign and not self.holds_run:
            raise ConflictError(f"{self.path} holds other files ({foreign[0]}, ...); give --out another name")
        make_folder(self.path)
        self._check_writable()
        self._lock = lock_folder(self.path)
        for partial in self.path.glob(f"*{PARTIAL}"):
            partial.unlink()
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
        if not self.path.exists():
            return []
        ours = {path.name for path in (*self._files, self.predictions, self.tensorboard, self.path / "seeds")}
        return [p.name for p in sorted(self.path.iterdir()) if p.name not in ours and not p.name.endswith(PARTIAL)]

    def _clear(self) -> None:
        """Remove what a run leaves, the marker of its existence first, and what several seeds have left."""
        for path in (*self._files, *self.predictions.glob("*.png"), *self.tensorboard.glob("events.*")):
            path.unlink(missing_ok=True)
        seeds = self.path / "seeds"
        for seed in seeds.glob("[0-9]*"):
            RunFolder(seed)._clear()
            _remove_empty(seed)
        _remove_empty(self.predictions, self.tensorboard, seeds)

    @property
    def _files(self) -> list[Path]:
        marks = [self.config, self.state, self.summary, self.protocol]
        return [*marks, self.environment, self.log, self.timing, self.last, self.best, self.curves]

    def write_json(self, path: Path, value: Any) -> None:
        write_whole(path, [json.dumps(value, indent=2, allow_nan=False).encode(), b"\n"])
        sync_folder(self.path)

    def read_json(self, path: Path) -> Any:
        try:
            return json.loads(path.read_bytes())
        except FileNotFoundError:
            raise UsageError(f"{path} is missing; {self.path} is not a run folder of s2rm-train") from None
        except (ValueError, OSError) as error:
            raise DamagedStoreError(f"{path} is damaged: {error}") from None


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # not there, or something else is in it
            folder.rmdir()


class Log:
    """Records as lines of JSON, in the order of the steps. Its length at a checkpoint is part of the checkpoint, and a
    resumed run cuts off what was written after it: the log of a run that was killed is that of one that was not."""

    def __init__(self, path: Path, length: int) -> None:
        self.path = path
        if (path.stat().st_size if path.exists() else 0) < length:
            raise DamagedStoreError(f"{path} is shorter than the checkpoint says ({length} bytes)")
        with disk_errors(path):
            self._file = path.open("ab")
            self._file.truncate(length)

    def write(self, record: dict[str, Any]) -> None:
        with disk_errors(self.path):
            self._file.write(canonical_json(record) + b"\n")

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


def read_log(path: Path) -> list[dict[str, Any]]:
    """All whole records; a last line that was cut off by a kill is left out."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]
