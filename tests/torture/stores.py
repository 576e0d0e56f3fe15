"""Attacks on stored bytes: damage of every kind, and documents that are sealed and lie."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

from hostile_stores import replace_object, reseal, spelled
from toy import ToySplit, tree

from s2rm_data.errors import S2RMError
from s2rm_data.making import generate
from s2rm_data.sealing import read_run
from s2rm_data.store import Store, verify
from torture.cases import Finding, Workspace, bounded

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


def read_everything(path: Path) -> dict[str, bytes]:
    store = Store(path)
    return {
        f"{group}/{name}": array[:].tobytes()
        for group in store.manifest.groups
        for name, array in store[group].arrays.items()
    }


def _restored(workspace: Workspace, folder: Path) -> Path:
    shutil.copytree(workspace.toy, folder / "toy.zarr")
    return folder / "toy.zarr"


BLOWS = 8  # to one copy of a store, each put right before the next


def damage(rng: random.Random, workspace: Workspace) -> int:
    """Objects of a store are damaged, one after the other: verify and a reader notice. Returns the damages."""
    with workspace.fresh() as folder:
        path = _restored(workspace, folder)
        files = sorted(p for p in path.rglob("*") if p.is_file())
        done = 0
        for _ in range(BLOWS):
            target = rng.choice(files)
            sound = target.read_bytes()
            kind = damage_file(rng, target, files)
            if not _holds(target, sound):
                _is_noticed(path, f"{kind} of {target.relative_to(path)}")
                done += 1
            _put_back(target, sound)
        return done


def _holds(path: Path, sound: bytes) -> bool:
    """Whether nothing has changed, as after a swap with itself."""
    plain = path.is_file() and not path.is_symlink() and path.stat().st_size == len(sound)
    return plain and path.read_bytes() == sound


def _put_back(path: Path, sound: bytes) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.write_bytes(sound)


def _is_noticed(path: Path, what: str) -> None:
    with bounded():
        if not verify(path).problems:
            raise Finding(f"{what} goes unnoticed by verify")
        try:
            read_everything(path)
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
        value: Any = rng.choice(ODD)
        for _ in range(rng.randint(1, 300)):
            value = [value] if rng.random() < 0.5 else {"a": value}
        node[key] = value
    else:
        node[key] = rng.choice(ODD)


def hostile(rng: random.Random, workspace: Workspace) -> None:
    """A sealed document says something odd: reading refuses, or what it reads is what was stored."""
    with workspace.fresh() as folder:
        path = _restored(workspace, folder)
        sound = read_everything(path)
        name = rng.choice(sorted(n for n in tree(path) if n.endswith("zarr.json")))
        count = rng.randint(1, 3)
        if name == "zarr.json":
            reseal(path, lambda document: [mutate(rng, document) for _ in range(count)] and None)
        else:
            document = json.loads((path / name).read_bytes())
            for _ in range(count):
                mutate(rng, document)
            replace_object(path, name, spelled(document))
        with bounded():
            _only_our_errors(lambda: verify(path))
            found = _only_our_errors(lambda: read_everything(path))
            if found is not None and any(found.get(key, value) != value for key, value in sound.items()):
                raise Finding(f"a sealed change of {name} makes other data")
            _only_our_errors(lambda: generate([ToySplit(group="toy/new")], path, shard_size=4))


def _only_our_errors(work: Any) -> Any:
    try:
        return work()
    except S2RMError:
        return None


def damage_run(rng: random.Random, workspace: Workspace) -> None:
    """A file of a run folder is damaged: reading it raises one of our errors, or gives what was saved."""
    from s2rm_data.models.weights import load_model
    from s2rm_data.training.checkpoint import load_state
    from s2rm_data.training.folder import RunFolder, read_log

    with workspace.fresh() as folder:
        path = folder / "run"
        shutil.copytree(workspace.run, path)
        files = [path / n for n in ("config.json", "run.json", "log.jsonl", "best.safetensors", "state.safetensors")]
        target = rng.choice(files)
        kind = rng.choice(["flip", "json"]) if target.suffix == ".json" else "flip"
        if kind == "json":
            document = json.loads(target.read_bytes())
            mutate(rng, document)
            target.write_text(json.dumps(document))
        else:
            damage_file(rng, target, [f for f in files if f != target])
        with bounded():
            for read in (
                lambda: read_run(path),
                lambda: load_model(path / "best.safetensors"),
                lambda: load_state(path / "state.safetensors"),
                lambda: read_log(path / "log.jsonl") if (path / "log.jsonl").is_file() and kind == "json" else None,
                lambda: RunFolder(path).open(resume=True, overwrite=False),
            ):
                _only_our_errors(read)
