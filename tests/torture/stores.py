"""Attacks on stored bytes: damage of every kind, and documents that are sealed and lie."""

from __future__ import annotations

import functools
import json
import os
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

from hostile_stores import replace_object, reseal, spelled
from toy import ToySplit

from s2rm_data.core.errors import S2RMError
from s2rm_data.making.run import generate
from s2rm_data.store import Store, verify
from s2rm_data.training.folder import read_run
from torture.cases import Borrowed, Finding, Workspace, bounded

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2, 10**9, 10**18, 2**64, 10**30, 1.5, 1e300, "", "x", "..", "../x", "/etc/passwd",
    "c.0", "zarr.json", "\x1b[2J", "\u0000", "é" * 50, "a" * 10_000, [], [1], [[1]], [10**9, 10**9], {}, {"a": 1},
]  # fmt: skip


def damage_file(rng: random.Random, path: Path, others: list[Path]) -> str:
    """Do something to a file; says what."""
    data = path.read_bytes()
    kind = rng.choice(["flip", "flip", "flip", "cut", "grow", "zero", "hole", "swap", "gone", "link", "pipe", "folder"])
    if kind == "flip" and data:
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
    elif kind == "cut":
        path.write_bytes(data[: rng.randrange(max(len(data), 1))])
    elif kind == "grow":
        path.write_bytes(data + rng.randbytes(rng.randint(1, 100)))
    elif kind == "zero":
        path.write_bytes(bytes(len(data)))
    elif kind == "hole":
        os.truncate(path, len(data) + (rng.randint(1, 40) << 30))
    elif kind == "swap":
        path.write_bytes(rng.choice(others).read_bytes())
    else:
        path.unlink()
        if kind == "link":
            path.symlink_to(rng.choice(["/dev/zero", "/etc/passwd", "nowhere", str(others[0])]))
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
    return kind


def read_everything(path: Path, within: str = "") -> dict[str, bytes]:
    """Every array; of one group if `within` names one."""
    store = Store(path)
    return {
        f"{group}/{name}": array[:].tobytes()
        for group in store.manifest.groups
        if within not in store.manifest.groups or group == within
        for name, array in store[group].arrays.items()
    }


BLOWS = 20  # per case, each put right before the next


def damage(rng: random.Random, workspace: Workspace) -> int:
    """Objects of a store are damaged, one after the other: verify and a reader notice. Returns the damages."""
    done = 0
    for _ in range(BLOWS):
        with workspace.borrowed(workspace.toy) as copy:
            target = rng.choice(copy.files)
            kind = damage_file(rng, target, copy.files)
            if not copy.is_sound(target):
                _is_noticed(copy.path, target, f"{kind} of {target.relative_to(copy.path)}")
                done += 1
    return done


def _is_noticed(path: Path, target: Path, what: str) -> None:
    with bounded():
        if not verify(path).problems:
            raise Finding(f"{what} goes unnoticed by verify")
        try:
            read_everything(path, within="/".join(target.relative_to(path).parts[:2]))
        except S2RMError:
            return
    raise Finding(f"{what} goes unnoticed by a reader")


def mutate(rng: random.Random, document: Any) -> None:
    """Change one place of a JSON document to something odd."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key, value in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
            places.append((node, key))
            if isinstance(value, dict | list):
                walk(value)

    walk(document)
    if not places:
        return
    node, key = rng.choice(places)
    deed = rng.choice(["put", "put", "put", "drop", "rename", "deep"])
    if deed == "drop":
        del node[key]
    elif deed == "rename" and isinstance(node, dict):
        node[str(rng.choice(ODD))[:200]] = node.pop(key)
    elif deed == "deep":
        value: Any = deepcopy(rng.choice(ODD))
        for _ in range(rng.randint(1, 300)):
            value = [value] if rng.random() < 0.5 else {"a": value}
        node[key] = value
    else:
        node[key] = deepcopy(rng.choice(ODD))  # a later change must not reach the list itself


@functools.cache
def _content(path: Path) -> dict[str, bytes]:
    return read_everything(path)


def hostile(rng: random.Random, workspace: Workspace) -> int:
    """Sealed documents say something odd: reading refuses, or what it reads is what was stored. Returns the lies."""
    sound = _content(workspace.toy)
    for _ in range(BLOWS):
        with workspace.borrowed(workspace.toy) as copy:
            name = _lie(rng, copy)
            with bounded():
                _only_our_errors(lambda: verify(copy.path))
                found = _only_our_errors(lambda: read_everything(copy.path))
                if found is not None and any(found.get(key, value) != value for key, value in sound.items()):
                    raise Finding(f"a sealed change of {name} makes other data")
                if rng.random() < 0.2:
                    _only_our_errors(lambda: generate([ToySplit(group="toy/new")], copy.path, shard_size=4))
    return BLOWS


def _lie(rng: random.Random, copy: Borrowed) -> str:
    """Change a document of a store in one to three places, and seal it; its name."""
    documents = [path for path in copy.files if path.name == "zarr.json"]
    name = rng.choice(documents).relative_to(copy.path).as_posix()
    count = rng.randint(1, 3)
    if name == "zarr.json":
        reseal(copy.path, lambda document: [mutate(rng, document) for _ in range(count)] and None)
    else:
        document = json.loads((copy.path / name).read_bytes())
        for _ in range(count):
            mutate(rng, document)
        replace_object(copy.path, name, spelled(document))
    return name


def _only_our_errors(work: Any) -> Any:
    try:
        return work()
    except S2RMError:
        return None


def damage_run(rng: random.Random, workspace: Workspace) -> int:
    """Files of a run folder are damaged: reading it raises one of our errors, or gives what was saved."""
    from s2rm_data.models.weights import load_model
    from s2rm_data.training.checkpoint import load_state
    from s2rm_data.training.folder import RunFolder, read_log

    names = ("config.json", "run.json", "log.jsonl", "best.safetensors", "state.safetensors")
    for _ in range(BLOWS):
        with workspace.borrowed(workspace.run) as copy:
            path, files = copy.path, [copy.path / name for name in names]
            target = rng.choice(files)
            if target.suffix == ".json" and rng.random() < 0.5:
                document = json.loads(target.read_bytes())
                mutate(rng, document)
                target.write_text(json.dumps(document))
            else:
                damage_file(rng, target, [f for f in files if f != target])
            with bounded():
                for read, of in (
                    (read_run, path),
                    (load_model, path / "best.safetensors"),
                    (load_state, path / "state.safetensors"),
                    (read_log, path / "log.jsonl"),
                    (_open_and_close, RunFolder(path)),
                ):
                    _only_our_errors(functools.partial(read, of))
    return BLOWS


def _open_and_close(folder: Any) -> None:
    try:
        folder.open(resume=True, overwrite=False)
    finally:
        folder.close()
