"""The run folder: what lies where in it, who may write to it, and its documents: marked, sealed, and not trusted.

    run.json                the mark: this folder is a run's, and `config_sha256` is the digest of its config.json
    config.json             {"config": {"model": ..., "task": ..., "seed": ..., ...}, "store": {"path": ...}, ...}
    environment.json        machine and versions
    log.jsonl               one record per step and per validation; the same for every run of the same config
    timing.jsonl            speed, waiting, memory; different every time
    state.safetensors       what a resumed run needs
    last.safetensors        weights of the last checkpoint
    best.safetensors        weights with the lowest validation loss
    curves.png, predictions/, tensorboard/
    summary.json            written at the end; its existence means: complete
    replaced/               with --overwrite: the run that was here before, until this one is complete

Paths inside are relative: the folder can be moved. Runs of earlier versions have no mark; their config.json says it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from s2rm_data.core import write
from s2rm_data.core.check import Misfit, canonical_json, expect, whole
from s2rm_data.core.errors import ConflictError, DamagedStoreError, UsageError, did_you_mean
from s2rm_data.core.read import opened_inside, read_at, read_inside
from s2rm_data.core.seeding import MAX_SEED
from s2rm_data.models.weights import load_model, save_model

MARK, CONFIG, PROTOCOL, STATE = "run.json", "config.json", "protocol.json", "state.safetensors"
LOG, TIMING = "log.jsonl", "timing.jsonl"
REPLACED, MOVING = "replaced", "replaced.partial"  # where a run waits for the end of the one that replaces it
FORMAT = "s2rm-data run 1"
STATE_FORMAT = "s2rm-data training state 1"
MOST_BYTES = 16 << 20  # of a document
_MOST_LINE_BYTES = 1 << 20  # of a log


def mark_bytes(config: bytes | None, previous: bytes | None = None) -> bytes:
    """The mark of a folder whose config.json will have these bytes; None where it has none yet.
    `previous`: what it has until it is replaced, which is right as well."""
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
    try:
        if not isinstance(config, dict):
            raise Misfit("it has no table `config`")
        for name in ("model", "task"):
            expect(isinstance(config.get(name), str), f"it names no {name}")
        whole(0, MAX_SEED).fitted("its seed", config.get("seed", 0))
        store = document.get("store", {})
        right = isinstance(store, dict) and isinstance(store.get("path", ""), str)
        expect(right, "its store is not a table with a path")
        groups = store.get("groups", {})
        right = isinstance(groups, dict) and all(isinstance(entry, dict) for entry in groups.values())
        expect(right, "the groups of its store are not tables")
    except Misfit as problem:
        return str(problem)
    return ""


def shipped_runs() -> dict[str, Path]:
    """The runs that come with the package, by name: inside it where it is installed, beside it in a checkout."""
    package = Path(__file__).parents[1]
    folders = (package / "pretrained", package.parent / "pretrained")
    found = (child for folder in folders if folder.is_dir() for child in sorted(folder.iterdir()))
    return {child.name: child for child in found if _has_mark(child)}


def run_folder(name: str | os.PathLike[str]) -> Path:
    """A run's folder; a name that is no path of anything may be that of a run that comes with the package."""
    path = Path(name)
    return path if path.exists() else shipped_runs().get(str(path), path)


def no_run(path: Path) -> UsageError:
    shipped = shipped_runs()
    then = f"train one with s2rm-train, or name one that comes with the package: {', '.join(shipped) or 'none is here'}"
    return UsageError(f"there is no run folder at {path}{did_you_mean(str(path), shipped, then)}")


def is_run(folder: Path) -> bool:
    """Whether a folder is a run's: by its mark or, for runs of earlier versions, by what is in it."""
    if _has_mark(folder):
        return True
    for name, fits in (
        (CONFIG, lambda d: not problem_of(d) and "store" in d),
        (PROTOCOL, lambda d: type(d["runs"]) is int),
    ):
        with contextlib.suppress(DamagedStoreError, TypeError, LookupError):
            if fits(read_json(folder, name)):
                return True
    with contextlib.suppress(DamagedStoreError, OSError), opened_inside(folder, STATE) as descriptor:
        return STATE_FORMAT.encode() in read_at(descriptor, MOST_BYTES, 0)
    return False


def _has_mark(folder: Path) -> bool:
    try:
        return FORMAT.encode() in read_inside(folder, MARK, MOST_BYTES)
    except DamagedStoreError:
        return False


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


def picture_name(step: int) -> str:
    return f"step-{step:07d}.png"


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    mark = property(lambda self: self.path / MARK)
    config = property(lambda self: self.path / CONFIG)
    environment = property(lambda self: self.path / "environment.json")
    log = property(lambda self: self.path / LOG)
    timing = property(lambda self: self.path / TIMING)
    state = property(lambda self: self.path / STATE)
    last = property(lambda self: self.path / "last.safetensors")
    best = property(lambda self: self.path / "best.safetensors")
    summary = property(lambda self: self.path / "summary.json")
    curves = property(lambda self: self.path / "curves.png")
    protocol = property(lambda self: self.path / PROTOCOL)  # of a command with several seeds
    predictions = property(lambda self: self.path / "predictions")
    tensorboard = property(lambda self: self.path / "tensorboard")

    holds_run = property(lambda self: self.config.exists() and is_run(self.path))
    is_complete = property(lambda self: self.summary.exists())
    is_open = property(lambda self: self._lock is not None)

    def open(self, *, resume: bool, overwrite: bool) -> None:
        """Lock the folder for writing; what is in the way is refused. Nothing is changed before `begin`."""
        try:
            str(self.path).encode()  # others that write here, such as TensorBoard, take nothing but text
        except UnicodeEncodeError:
            raise UsageError(
                f"the name of the run folder {str(self.path)!r} is not text; give --out another name"
            ) from None
        if self.path.exists() and not self.path.is_dir():
            raise ConflictError(f"{self.path} is a file; give --out another name")
        foreign = self._foreign()
        if foreign:
            raise ConflictError(f"{self.path} holds other files ({foreign[0]}, ...); give --out another name")
        self._refuse_held(resume or overwrite)
        write.make_folder(self.path)
        try:
            probe = self.path / f"probe{write.PARTIAL}"
            with write.disk_errors(self.path):
                probe.touch()
                probe.unlink()
            self._lock = write.lock_folder(self.path)
            self._recover()
            self._refuse_held(resume or overwrite)
            if overwrite:
                self._refuse_links()
            write.remove_inside(self.path, [path.name + write.PARTIAL for path in (*self._files, self.mark)])
        except BaseException:
            self.close()
            raise

    def _refuse_held(self, is_asked: bool) -> None:
        if self.holds_run and not is_asked:
            raise ConflictError(
                f"{self.path} already holds a run{' that is complete' if self.is_complete else ''}; "
                "add --resume to continue it, --overwrite to start it again, or give --out another name"
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[RunFolder]:
        self._lock = write.lock_folder(self.path)
        try:
            yield self
        finally:
            self.close()

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _foreign(self) -> list[str]:
        """Names of what is in a folder that is not a run's: nothing of it may be overwritten or removed."""
        if not self.path.exists() or is_run(self.path) or any(is_run(self.path / name) for name in (REPLACED, MOVING)):
            return []
        return sorted(p.name for p in self.path.iterdir() if p.name != self.mark.name + write.PARTIAL)

    def set_aside(self) -> None:
        """Move the run that is here to `replaced/`, where it stays until the one that is begun now is complete.
        If one is there already, the run that is here has not been completed, and gives way."""
        if not is_run(self.path):
            return
        if is_run(self.path / REPLACED):
            write.remove_inside(self.path, self._names())
            return
        if not self.mark.exists():
            write.write_whole(self.mark, [mark_bytes(self.config.read_bytes() if self.config.exists() else None)])
        write.move_inside(self.path, {name: f"{MOVING}/{name}" for name in [MARK, *self._names()]})
        self._rename(MOVING, REPLACED)

    def restore(self) -> None:
        """Put the run that was here back if the one that was to replace it has not come to its first checkpoint."""
        begun = any((folder / STATE).exists() for folder in (self.path, *self._seeds()))
        if not begun and is_run(self.path / REPLACED):
            write.remove_inside(self.path, self._names())
            self._rename(REPLACED, MOVING)
            self._move_back()

    def forget_replaced(self) -> None:
        """Remove the run that this one, which is complete, has replaced."""
        aside = self.path / REPLACED
        if is_run(aside):
            write.remove_inside(aside, RunFolder(aside)._names())
        _remove_empty(aside)

    def _recover(self) -> None:
        """Finish what somebody was stopped at who replaced the run."""
        begun = self.mark.exists() and (self.config.exists() or self.protocol.exists())
        if (self.path / MOVING).is_dir():
            self._move_back()
        elif not begun:
            self.restore()
        elif self.is_complete:
            self.forget_replaced()

    def _move_back(self) -> None:
        """Nothing but what was moved there is in the folder; the mark comes last."""
        aside = self.path / MOVING
        names = [path.relative_to(aside).as_posix() for path in sorted(aside.rglob("*")) if path.is_file()]
        names.sort(key=lambda name: name == MARK)
        write.move_inside(self.path, {f"{MOVING}/{name}": name for name in names})
        _remove_empty(aside)

    def _rename(self, old: str, new: str) -> None:
        with write.disk_errors(self.path / new):
            (self.path / old).rename(self.path / new)
        write.sync_folder(self.path)

    def _refuse_links(self) -> None:
        """What is to be moved or removed must be what a run has written, and be in this folder."""
        folders = [self.predictions, self.tensorboard, self.path / "seeds", self.path / REPLACED, *self._seeds()]
        for path in folders:
            if path.is_symlink() or (path.exists() and not path.is_dir()):
                raise ConflictError(
                    f"{path} is {'a link' if path.is_symlink() else 'not a folder'}, and nothing is replaced through "
                    "it; move it elsewhere, or give --out another name"
                )
        for name in (*self._names(), MARK):
            path = self.path / name
            if path.is_symlink() or (path.exists() and not path.is_file()):
                raise ConflictError(f"{path} is not a regular file; move it elsewhere, or give --out another name")

    def _seeds(self) -> list[Path]:
        seeds = self.path / "seeds"
        if seeds.is_symlink() or not seeds.is_dir():
            return []
        return [path for path in sorted(seeds.iterdir()) if path.name.isdigit() and (path.is_symlink() or is_run(path))]

    def _names(self) -> list[str]:
        """Of all that the run has written: documents, the pictures of its log, the event files of its timing; and the
        same of each seed. Documents come after what is only known by them, and the mark is the last of each."""
        names: list[str] = []
        with contextlib.suppress(DamagedStoreError):
            steps = [record.get("step") for record in read_log(self.log) if record.get("kind") == "validation"]
            names += [f"{self.predictions.name}/{picture_name(step)}" for step in steps if isinstance(step, int)]
        with contextlib.suppress(DamagedStoreError):
            events = [record.get("events") for record in read_log(self.timing)]
            names += [f"{self.tensorboard.name}/{name}" for name in events if name and "/" not in str(name)]
        for seed in self._seeds():
            names += [f"seeds/{seed.name}/{name}" for name in RunFolder(seed)._names()]
        return [*dict.fromkeys(names), *(path.name for path in self._files), MARK]

    @property
    def _files(self) -> list[Path]:
        marks = [self.config, self.state, self.summary, self.protocol]
        return [*marks, self.environment, self.log, self.timing, self.last, self.best, self.curves]

    def begin(self, document: Any | None) -> None:
        """Mark the folder as a run's and write its config, which from then on must stay as it is.
        None for a folder that holds the runs of several seeds, and has no config of its own yet."""
        config = None if document is None else _json_bytes(document)
        write.write_whole(self.mark, [mark_bytes(config)])
        if config is not None:
            write.write_whole(self.config, [config])

    def replace_config(self, document: Any) -> None:
        """Another config for the run, which is then no longer complete. A kill leaves the old one or the new one."""
        self.summary.unlink(missing_ok=True)
        before, after = self.config.read_bytes(), _json_bytes(document)
        write.write_whole(self.mark, [mark_bytes(after, before)])
        write.write_whole(self.config, [after])
        write.write_whole(self.mark, [mark_bytes(after)])

    def write_json(self, path: Path, value: Any) -> None:
        write.write_whole(path, [_json_bytes(value)])

    def read_json(self, path: Path) -> Any:
        return read_json(self.path, path.name)


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value, indent=2, allow_nan=False).encode() + b"\n"


def _remove_empty(folder: Path) -> None:
    """Also those in it, which a kill may have left."""
    for inner, _, _ in () if folder.is_symlink() else os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):  # something else is in it
            Path(inner).rmdir()


def export_run(run: Path, out: Path) -> int:
    """Write the run in folder `run` to a new, small folder `out`, to be kept and shared; returns its size in bytes.
    Left out are the state that a resumed run needs, the last weights, the records of single steps, pictures, timing,
    and the path of the store, which means nothing on another machine. Weights are kept in half precision."""
    source = RunFolder(run)
    document = read_run(run)
    if not source.is_complete:
        raise UsageError(f"{run} is not finished; resume it with s2rm-train --resume --out {run}, then export it")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConflictError(f"{out} is not empty; give --export another name, or remove it")
    write.make_folder(out.absolute().parent)
    document["store"] = {**document.get("store", {}), "path": ""}
    with write.replaced_folder(out.absolute()) as partial:  # a kill leaves nothing that would be in the way
        target = RunFolder(partial)
        save_model(load_model(source.best).half(), target.best)
        records = [record for record in read_log(source.log) if record.get("kind") != "step"]
        write.write_whole(target.log, [canonical_json(record) + b"\n" for record in records])
        for path in (source.environment, source.curves):
            if os.path.lexists(path):  # a link, which might lead to anything, is refused
                write.write_whole(target.path / path.name, [read_inside(source.path, path.name, MOST_BYTES)])
        target.begin(document)
        target.write_json(target.summary, source.read_json(source.summary))
    return sum(path.stat().st_size for path in out.iterdir())
