"""Attacks on the served API: garbage, half frames, floods and odd requests, beside a client that must not notice."""

from __future__ import annotations

import contextlib
import random
import socket
from typing import Any

from torture.cases import Finding, Workspace, bounded


def clients(rng: random.Random, workspace: Workspace) -> None:
    import websocket
    from s2clientprotocol import sc2api_pb2 as api
    from sc2_clients import Talker, serving

    def connect(port: int) -> tuple[Any, Any]:
        wire = websocket.create_connection(f"ws://127.0.0.1:{port}/sc2api", timeout=30)

        def send(frame: bytes) -> bytes:
            wire.send_binary(frame)
            return wire.recv()

        return Talker(send), wire

    with bounded(), serving() as port:
        good, wire = connect(port)
        good.play("3m")
        for _ in range(rng.randint(1, 20)):
            _attack(rng, port, connect, api)
            response = good.ask(ping=api.RequestPing())
            if response.error or not response.ping.game_version:
                raise Finding(f"another client's attack changed the answer: {response}")
        if len(good.units()) != 6:
            raise Finding("another client's attack changed the game")
        wire.close()


def _attack(rng: random.Random, port: int, connect: Any, api: Any) -> None:
    kind = rng.choice(["garbage", "bytes", "half", "header", "request", "flood"])
    if kind in ("garbage", "header"):
        head = b"GET /sc2api HTTP/1.1\r\n" if kind == "header" else b""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as wire:
            wire.sendall(head + rng.randbytes(rng.randint(0, 5000)))
        return
    talker, wire = connect(port)
    with contextlib.suppress(Exception):
        if kind == "half":
            wire.sock.sendall(b"\x82\xff" + rng.randint(0, 2**63 - 1).to_bytes(8, "big") + b"\0\0\0\0" + b"x" * 1000)
        elif kind == "bytes":
            wire.send_binary(rng.randbytes(rng.randint(0, 10_000)))
            wire.recv()
        elif kind == "flood":
            for _ in range(50):
                wire.send_binary(api.Request(ping=api.RequestPing()).SerializeToString())
        else:
            talker.play(rng.choice(["3m", "2s3z"]))
            frame = bytearray(api.Request(step=api.RequestStep(count=rng.choice([0, 1, 100_000]))).SerializeToString())
            frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
            wire.send_binary(bytes(frame))
    wire.close()
