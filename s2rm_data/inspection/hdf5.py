"""HDF5 files, written by a process of their own.

The HDF5 library crashes (SIGSEGV) when it closes a file that the disk refused a part of. Here that ends a child process
and becomes an error; the program itself continues. The child says how far it is on its standard output, one line of
JSON at a time. It ends when its standard input does, so that it does not write on, into a file that somebody else may
begin, after the program was killed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

import s2rm_data
from s2rm_data import errors
from s2rm_data.errors import DiskError, S2RMError, missing_component
from s2rm_data.inspection.export import ATTRIBUTES, attributes_of, blocks, described
from s2rm_data.progress import Progress
from s2rm_data.store import Group, Store

LOW_BYTES = 1 << 20  # with less free space than this, a crash is put down to a full disk


def write_hdf5(group: Group, path: Path, count: int, progress: Progress) -> None:
    """One dataset per array, with its dimensions' names, description and units."""
    _need_h5py()
    command = [sys.executable, "-m", __name__, str(group.store.path), group.path, str(path), str(count)]
    package = str(Path(s2rm_data.__file__).parent.parent)
    paths = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # where h5py complains of every object that it cannot close
        text=True,
    )
    try:
        said: dict[str, Any] = {}
        for line in child.stdout or ():
            said = json.loads(line)
            progress.advance(said.get("advance", 0))
        status = child.wait()
    finally:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream:
                stream.close()
    if "error" in said:
        raise getattr(errors, said["error"])(said["message"])
    if status:
        raise DiskError(_why(path, status))


def _need_h5py() -> None:
    try:
        found = importlib.util.find_spec("h5py") is not None
    except ValueError:
        found = False
    if not found:
        raise missing_component("h5py", "export", "writing HDF5")


def _why(path: Path, status: int) -> str:
    how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    full = shutil.disk_usage(path.parent).free < LOW_BYTES
    advice = "the disk is full; free some space or choose another --out" if full else "free some space or use -f npz"
    return f"cannot write {path.name.removesuffix('.partial')}: the process that writes it {how}; {advice}"


def _say(**fields: Any) -> None:
    try:
        print(json.dumps(fields), flush=True)  # noqa: T201 - to the process that started this one
    except OSError:  # which has gone
        os._exit(1)


def _write(store: str, group_path: str, path: str, count: int) -> None:
    import h5py

    group = Store(store)[group_path]
    with h5py.File(path, "w", track_order=True) as file:
        file.attrs[ATTRIBUTES] = attributes_of(group)
        for name, array in group.arrays.items():
            shape = (count, *array.shape[1:])
            chunks = (min(array.layout.chunk, count), *array.shape[1:])
            dataset = file.create_dataset(
                name, shape, array.dtype, chunks=chunks, compression="gzip", compression_opts=1, shuffle=True
            )
            for dimension, label in zip(dataset.dims, array.dims, strict=True):
                dimension.label = label
            for key, value in described(array).items():
                dataset.attrs[key] = value if isinstance(value, str | int | float) else json.dumps(value)
            for start, block in blocks(array, count):
                dataset[start : start + len(block)] = block
                _say(advance=block.nbytes)
            file.flush()


def _end_with_parent() -> None:
    """Standard input never brings anything; it ends when nobody holds its other end any more."""
    os.read(0, 1)
    os._exit(1)


def main() -> NoReturn:
    """The child: leaves without closing what cannot be closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    store, group, path, count = sys.argv[1:]
    try:
        _write(store, group, path, int(count))
    except S2RMError as error:
        _say(error=type(error).__name__, message=str(error))
        os._exit(error.exit_status)
    except (OSError, RuntimeError) as error:  # how h5py says what the system refuses
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        _say(error="DiskError", message=f"cannot write {path.removesuffix('.partial')}: {reason}")
        os._exit(DiskError.exit_status)
    os._exit(0)


if __name__ == "__main__":
    main()
