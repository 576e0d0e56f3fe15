"""Programs that start at once: forked from a process that has imported what they need, with their own streams.

Most of the time of a short command goes into imports. A server imports once and forks for each command; the client,
which a test or a shell starts in place of the command, hands it words, folder, environment and streams, and ends with
its status. Tests that are about the start itself, or that send signals, start programs as ever.

    python tests/forking.py serve SOCKET
    python tests/forking.py SOCKET s2rm-data info data.zarr
"""

from __future__ import annotations

import functools
import json
import os
import socket
import sys
import time

SIZE = 1 << 20
MAINS = {"s2rm-data": "data", "s2rm-train": "train", "s2rm-eval": "eval"}
# What the commands import, most of them only when they need it.
PRELOADED = (
    "h5py", "matplotlib.pyplot", "torch", "s2rm_data.cli.data", "s2rm_data.cli.train", "s2rm_data.cli.eval",
    "s2rm_data.cli.export", "s2rm_data.cli.preview", "s2rm_data.cli.stats", "s2rm_data.cli.merge",
    "s2rm_data.cli.worlds", "s2rm_data.generators.bballs.source", "s2rm_data.generators.sc2.source",
    "s2rm_data.training.protocol", "s2rm_data.training.resolve", "s2rm_data.evaluation.artefacts",
    "s2rm_data.evaluation.evaluate", "s2rm_data.inspection.export", "s2rm_data.inspection.world",
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


def ask(address: str, words: list[str]) -> int:
    """Have the server run a command; its exit status."""
    order = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109 - starts quickly
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        socket.send_fds(server, [json.dumps(order).encode() + b"\n"], [0, 1, 2])
        return int(server.recv(16) or b"1")


def serve(address: str) -> None:
    """Until standard input, which whoever started this holds open, is closed."""
    import importlib
    import select
    import signal

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        for name in PRELOADED:
            importlib.import_module(name)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for the commands
        while 0 not in (ready := select.select([listener.fileno(), 0], [], [])[0]):
            assert ready
            client = listener.accept()[0]
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _attend(client)
            client.close()


def _attend(client: socket.socket) -> None:
    """Run one command in a process of its own, and tell its client how it ended."""
    data, streams, *_ = socket.recv_fds(client, SIZE, 3)
    while not data.endswith(b"\n"):
        data += client.recv(SIZE)
    order = json.loads(data)
    child = os.fork()
    if child == 0:
        client.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        _run(order["words"], order["folder"], order["environment"])
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    client.send(str(status if status >= 0 else 128 - status).encode())
    os._exit(0)


def _run(words: list[str], folder: str, environment: dict[str, str]) -> None:
    """As the command's own process would, down to its end."""
    import atexit
    import importlib
    import threading
    import traceback

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = words
    status: object = 1
    try:
        importlib.import_module(f"s2rm_data.cli.{MAINS[words[0]]}").main()
    except SystemExit as leaving:
        status = leaving.code or 0
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
