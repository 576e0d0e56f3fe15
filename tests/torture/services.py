"""Attacks on what serves and what is played: the viewer, stores in buckets, and environments given wrong actions."""

from __future__ import annotations

import atexit
import contextlib
import functools
import http.client
import os
import random
import socket
import threading
import traceback
from typing import Any
from urllib.parse import quote

import numpy as np

from s2rm_data.core.errors import S2RMError
from s2rm_data.store import verify
from torture.cases import Finding, Workspace, bounded
from torture.inputs import word

BLOWS = 20  # per case


def viewer(rng: random.Random, workspace: Workspace) -> int:
    """Garbage, odd addresses, headers and queries to the viewer, beside a reader who must not notice."""
    from s2rm_data.inspection.viewer.answers import Answers
    from s2rm_data.inspection.viewer.server import ViewerServer

    failed: list[str] = []
    with bounded(), ViewerServer(Answers(workspace.opened)) as server:
        server.handle_error = lambda request, client_address: failed.append(traceback.format_exc())  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = int(server.server_address[1])
        try:
            for _ in range(BLOWS):
                said = _ask_viewer(rng, port)
                if "Traceback" in said:
                    raise Finding(f"the viewer answers with a traceback: {said[:500]}")
            status, answer = _get(port, "/catalogue", {})
            if status != 200 or b"bballs/train" not in answer:
                raise Finding(f"after odd requests the viewer answers {status} {answer[:200]!r}")
        finally:
            server.shutdown()
    if failed:
        raise Finding(f"a request makes the viewer fail: {failed[0]}")
    return BLOWS


def _ask_viewer(rng: random.Random, port: int) -> str:
    if rng.random() < 0.3:
        head = rng.choice(
            [
                b"",
                b"GET ",
                b"GET / HTTP/1.1\r\nHost: ",
                b"GET http://[%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % rng.randbytes(3).hex().encode(),
                b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
            ]
        )
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
            wire.sendall(head + rng.randbytes(rng.randint(0, 100_000)))
        return ""
    route = rng.choice(["episode", "catalogue", "", "viewer.js", "../x", "%2e%2e/x", word(rng)])
    keys = rng.sample(
        ["group", "number", "index", "run", "start", "dropped", *"abcdef"], rng.choice([0, 2, 3, 4, 6, 12])
    )
    values = ["bballs/train", "sc2/2s3z/val", "0", "-1", "999999999999", "1e9", "nan", "../..", "", word(rng)]
    query = "&".join(f"{key}={quote(rng.choice(values), safe='')}" for key in keys)
    headers = {"Host": rng.choice(["127.0.0.1", "localhost", "evil.example", "x" * 1000])} if rng.random() < 0.2 else {}
    status, answer = _get(port, f"/{quote(route, safe='/%.')}?{query}", headers)
    if status not in (200, 400, 403, 404, 405, 414, 431):
        raise Finding(f"the viewer answers {status} to /{route}?{query}: {answer[:300]!r}")
    return "" if status == 200 else answer.decode(errors="replace")


def _get(port: int, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@functools.cache
def _s3() -> str:
    """The address of a server of buckets, which ends with this process."""
    from buckets import ENVIRONMENT, s3_server

    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    address = stack.enter_context(s3_server())
    os.environ.update({**ENVIRONMENT, "AWS_ENDPOINT_URL": address})
    return address


def bucket(rng: random.Random, workspace: Workspace) -> int:
    """Objects of a store in a bucket are damaged: verify and a reader notice. Returns the damages."""
    from buckets import make_bucket

    from s2rm_data.store import Store
    from s2rm_data.store.place import place_of

    address = _s3()
    name = f"torture-{rng.getrandbits(60):x}"
    make_bucket(address, name)
    url = f"s3://{name}/toy.zarr"
    place = place_of(url)
    sound = {path.relative_to(workspace.toy).as_posix(): path for path in workspace.toy.rglob("*") if path.is_file()}
    for key, path in sound.items():
        place.write_whole(key, [path.read_bytes()], replace=True)
    done = 0
    for _ in range(4):
        key = rng.choice(sorted(sound))
        data = bytearray(sound[key].read_bytes())
        kind = rng.choice(["flip", "cut", "grow", "swap", "gone"])
        if kind == "flip":
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            del data[rng.randrange(len(data)) :]
        elif kind == "grow":
            data += rng.randbytes(10)
        elif kind == "swap":
            data = bytearray(rng.choice(list(sound.values())).read_bytes())
        if kind == "gone":
            place.remove([key])
        else:
            place.write_whole(key, [bytes(data)], replace=True)
        if kind == "gone" or bytes(data) != sound[key].read_bytes():
            with bounded():
                if not verify(url).problems:
                    raise Finding(f"{kind} of {key} in a bucket goes unnoticed by verify")
                with contextlib.suppress(S2RMError):
                    store = Store(url)
                    for group in store.manifest.groups:
                        for array in store[group].arrays.values():
                            array[:]
                    raise Finding(f"{kind} of {key} in a bucket goes unnoticed by a reader")
            done += 1
        place.write_whole(key, [sound[key].read_bytes()], replace=True)
    return done


def wrong_actions(rng: random.Random, workspace: Workspace) -> int:
    """Environments are given actions of odd kinds, shapes and values: a message, and the battle goes on as before."""
    from s2rm_data.starcraft.envs import StarCraft2Env, vector_env

    def odd(agents: int) -> Any:
        values = [0, 1, -1, 8, 9, 2**31, 2**63, -(2**63), 1.5, float("nan"), "x", None, True, [1], np.int8(3)]
        kind = rng.randrange(5)
        if kind == 0:
            return [rng.choice(values) for _ in range(rng.choice([0, agents - 1, agents, agents + 1]))]
        if kind == 1:
            return np.full(rng.choice([(agents,), (agents, 1), (2, agents), (), (0,)]), rng.choice([0, 9, -1, 10**6]))
        if kind == 2:
            return np.full((2, agents), rng.choice([0.5, np.nan, np.inf, 1e30]))
        return rng.choice([None, "actions", {}, {0: 1}, 7, b"x"]) if kind == 3 else [[1] * agents, [2] * (agents + 1)]

    with bounded():
        single, many = StarCraft2Env("3m", seed=rng.getrandbits(20)), vector_env("3m", 2)
        single.reset()
        many.reset(seed=rng.getrandbits(20))
        for _ in range(BLOWS):
            for env, state in ((single, single.get_state), (many, lambda: many.observe(slice(None)))):
                _step_oddly(env, state, odd(3))
            single.reset()
    return 2 * BLOWS


def _step_oddly(env: Any, state: Any, actions: Any) -> None:
    before = str(state())
    try:
        env.step(actions)
    except S2RMError:
        if str(state()) != before:
            raise Finding(f"a step that was refused changed the battle: {actions!r}") from None
    except Exception as error:
        raise Finding(f"{type(error).__name__}: {error!s:.200} from step({actions!r:.200})") from error
