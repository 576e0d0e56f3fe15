"""Programs that start at once: forked from a process that has imported what they need, with their own streams.

Most of the time of a short command goes into imports. A server imports once and forks for each command. Tests hold such
a command as a `Forked`, much like a `subprocess.Popen`; scripts start a client in its place, which hands the server its
words, folder, environment and streams, and ends with its status. Tests that are about the start itself start programs
as ever.

    python tests/support/forking.py serve SOCKET
    python tests/support/forking.py SOCKET s2rm-data info data.zarr
"""

from __future__ import annotations

import functools
import json
import os
import socket
import sys
import time
from typing import Any

SIZE = 1 << 20
MAINS = {
    "s2rm-data": "s2rm_data.cli.data", "s2rm-train": "s2rm_data.cli.train", "s2rm-eval": "s2rm_data.cli.eval",
    "torchrun": "elastic",
}  # fmt: skip
# A program that is no command of the package: Forked("python", "-c", code, ...).
PYTHON = "python"
# What the commands import, most of them only when they need it.
PRELOADED = (
    "h5py", "matplotlib.pyplot", "torch", "torch._dynamo", "s2rm_data.cli.data", "s2rm_data.cli.train",
    "s2rm_data.cli.eval", "s2rm_data.cli.export", "s2rm_data.cli.view", "s2rm_data.cli.inspect",
    "s2rm_data.cli.regroup", "s2rm_data.generators.bballs.making.ball_source",
    "s2rm_data.generators.sc2.making.battle_source",
    "s2rm_data.training.protocol", "s2rm_data.training.resolve", "s2rm_data.evaluation.evaluate",
    "s2rm_data.inspection.export_format", "s2rm_data.inspection.world_inspection",
    "s2rm_data.making.repair",
)  # fmt: skip


@functools.cache
def server() -> str:
    """The address of this process's server, which is started by the first who asks."""
    import atexit
    import subprocess
    import tempfile

    folder = tempfile.mkdtemp(prefix="forking-")
    here = os.path.abspath(__file__)  # noqa: PTH100
    process = subprocess.Popen([sys.executable, here, "serve", f"{folder}/socket"], stdin=subprocess.PIPE)
    while not os.path.exists(f"{folder}/socket") and process.poll() is None:  # noqa: PTH110
        time.sleep(0.01)

    def end() -> None:
        assert process.stdin
        process.stdin.close()
        process.wait()
        os.unlink(f"{folder}/socket")  # noqa: PTH108
        os.rmdir(folder)  # noqa: PTH106

    atexit.register(end)
    return f"{folder}/socket"


def command(name: str) -> list[str]:
    """Words that run a program of the package in this way; its own follow."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), server(), name]  # noqa: PTH100


def _order(address: str, streams: list[int], **order: Any) -> tuple[socket.socket, int]:
    """Have the server run a command; where its status will come from, and the number of its process."""
    wire = socket.socket(socket.AF_UNIX)
    wire.connect(address)
    socket.send_fds(wire, [json.dumps(order).encode() + b"\n"], streams)
    return wire, int(wire.recv(8))


def ask(address: str, words: list[str]) -> int:
    """Run a command on this process's streams; its exit status."""
    folder = os.getcwd()  # noqa: PTH109 - starts quickly
    wire, _ = _order(address, [0, 1, 2], words=words, folder=folder, environment=dict(os.environ))
    with wire:
        status = int(wire.recv(16) or b"1")
    return status if status >= 0 else 128 - status


class Forked:
    """A command in a forked process; its streams are kept in files.

    `before` names a function, such as `torture.at_work:die_before`, that is called in the process first, and what it
    is called with. `limits` are of the module resource, such as {"RLIMIT_FSIZE": 1000}.
    """

    def __init__(
        self,
        *words: str,
        cwd: str | os.PathLike[str] | None = None,
        environment: dict[str, str] | None = None,
        before: tuple[Any, ...] = (),
        limits: dict[str, int] | None = None,
    ) -> None:
        import tempfile

        self.args = list(words)
        self.returncode: int | None = None
        self._said: list[str] = []
        self._files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 - closed when the command has ended
        with open(os.devnull) as nothing:  # noqa: PTH123
            streams = [file.fileno() for file in (nothing, *self._files)]
            order = {"words": self.args, "folder": os.fspath(cwd or os.getcwd()), "before": before, "limits": limits}  # noqa: PTH109
            self._wire, self.pid = _order(server(), streams, **order, environment={**os.environ, **(environment or {})})

    def poll(self) -> int | None:
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        import subprocess

        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def _ended(self, timeout: float | None) -> int | None:
        import select

        if self.returncode is None and select.select([self._wire], [], [], timeout)[0]:
            self.returncode = int(self._wire.recv(16) or b"1")
            self._wire.close()
            for file in self._files:
                with file:
                    file.seek(0)
                    self._said.append(file.read().decode(errors="replace"))
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(9)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What the command, once it has ended, has said."""
        self.wait(timeout)
        return self._said[0], self._said[1]


def serve(address: str) -> None:
    """Until standard input, which whoever started this holds open, is closed."""
    import gc
    import importlib
    import select
    import weakref

    sys.path.insert(1, os.path.dirname(sys.path[0]))  # noqa: PTH120 - what tests import beside this folder: torture
    running: dict[int, tuple[int, socket.socket]] = {}  # descriptor of a process -> its number, and who waits for it
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{address}.new")
        listener.listen(64)
        os.rename(f"{address}.new", address)  # noqa: PTH104 - whoever sees it can connect to it
        for name in PRELOADED:
            importlib.import_module(name)
        importlib.import_module("s2rm_data.core.registry")._all_entry_points()
        # A forked process copies every page of memory that it touches. So it neither looks for garbage among all that
        # was imported nor finalises it at the end: the system takes a process's memory anyway.
        gc.collect()
        gc.freeze()
        for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
            finalizer.atexit = False
        while 0 not in (ready := select.select([0, listener.fileno(), *running], [], [])[0]):
            for descriptor in ready:
                if descriptor == listener.fileno():
                    _begin(listener, running)
                else:
                    _end(descriptor, *running.pop(descriptor))


def _begin(listener: socket.socket, running: dict[int, tuple[int, socket.socket]]) -> None:
    """Run the command of the next client in a process of its own, and tell the client its number."""
    import contextlib

    client = listener.accept()[0]
    data, streams, *_ = socket.recv_fds(client, SIZE, 3)
    while not data.endswith(b"\n"):
        data += client.recv(SIZE)
    child = os.fork()
    if child == 0:
        for descriptor, (_, other) in running.items():
            os.close(descriptor)
            other.close()
        client.close()
        listener.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for stream in streams:
            os.close(stream)
        _run(**json.loads(data))
    for stream in streams:
        os.close(stream)
    running[os.pidfd_open(child)] = child, client
    with contextlib.suppress(OSError):  # the client may be gone
        client.send(f"{child:<8}".encode())


def _end(descriptor: int, child: int, client: socket.socket) -> None:
    """Tell the client how its command has ended."""
    import contextlib

    os.close(descriptor)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with client, contextlib.suppress(OSError):
        client.send(str(status).encode())


def _run(
    words: list[str],
    folder: str,
    environment: dict[str, str],
    before: tuple[Any, ...] = (),
    limits: dict[str, int] | None = None,
) -> None:
    """As the command's own process would, down to its end."""
    import atexit
    import importlib
    import resource
    import threading
    import traceback

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    added = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    if added:
        sys.path[1:1] = added
        importlib.import_module("s2rm_data.core.registry")._all_entry_points.cache_clear()
    sys.argv = words
    # The command's own, not those of the process that was forked: whether a stream can seek is looked at once.
    try:
        sys.stdout = open(1, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, closefd=False)  # noqa: SIM115
    except OSError:  # closed
        sys.stdout = None  # type: ignore[assignment]
    status: object = 1
    try:
        for name, limit in (limits or {}).items():
            resource.setrlimit(getattr(resource, name), (limit, limit))
        if before:
            module, _, function = before[0].partition(":")
            getattr(importlib.import_module(module), function)(*before[1:])
        if words[0] == PYTHON:
            sys.argv = ["-c", *words[3:]]
            exec(compile(words[2], "-c", "exec"), {"__name__": "__main__"})
        else:
            importlib.import_module(MAINS[words[0]]).main()
    except SystemExit as leaving:
        status = leaving.code or 0
        if isinstance(status, str):
            sys.stderr.write(f"{status}\n")
    except BaseException:  # noqa: BLE001 - what an interpreter does with it
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
