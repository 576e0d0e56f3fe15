"""Attacks through files that a user hands over, or that lie about: config files, policies, plug-ins, replays, sweeps,
parts of a run, and the folder of a cache."""

from __future__ import annotations

import contextlib
import functools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hostile_stores import spelled
from toy import ToySplit

from s2rm_data.core.errors import S2RMError
from s2rm_data.store import Store, verify
from torture.cases import Finding, Workspace, bounded
from torture.inputs import word
from torture.stores import damage_file, mutate, read_everything

BLOWS = 10  # per case


def refused_or_done(work: Callable[[], Any], what: str) -> Any:
    """What the work gives; None if one of our errors says why it cannot be done."""
    with bounded():
        try:
            return work()
        except S2RMError:
            return None
        except Finding:
            raise
        except Exception as error:
            raise Finding(f"{type(error).__name__}: {error!s:.300} from {what:.500}") from error


def config_file(rng: random.Random, workspace: Workspace) -> int:
    """Config files of training with odd lines, values and sweeps: a message, or runs that are resolved."""
    from s2rm_data.training.config import settable_names
    from s2rm_data.training.config_file import read_command
    from s2rm_data.training.resolve import Overrides, resolve
    from s2rm_data.training.sweep import Sweep

    own, of_model = settable_names("s2gru", "bballs")
    names = [*own, *of_model, "store", "task", "model", "preset", "out", "runs", "log", "x"]

    def value() -> str:
        odd = [
            "1",
            "0",
            "-1",
            "1e-3",
            "nan",
            "inf",
            "true",
            '""',
            '"null"',
            '"../x"',
            "[]",
            "{}",
            "1979-05-27",
            "9" * 30,
        ]
        return rng.choice([*odd, f"[{rng.choice(odd)}, {rng.choice(odd)}]", "[" * 200 + "]" * 200, "9" * 30, word(rng)])

    for _ in range(BLOWS):
        lines = [f"{rng.choice(names)} = {value()}" for _ in range(rng.randint(0, 4))]
        if rng.random() < 0.5:
            lines += ["[sweep]", *(f"{rng.choice(names)} = [{value()}, {value()}]" for _ in range(rng.randint(0, 2)))]
        text = "\n".join(lines)
        with workspace.fresh() as folder:
            file = folder / "run.toml"
            file.write_text(text)
            if rng.random() < 0.2 and damage_file(rng, file, [file]) == "pipe":
                continue  # as in --config <(program): whoever names a pipe wants to wait for it
            command = refused_or_done(functools.partial(read_command, file), text)
            if command is None:
                continue
            points = refused_or_done(lambda: Sweep(command.sweep).points, text) or [{}]  # noqa: B023 - called at once
            for point in points[:2]:
                fields = command.fields | point
                overrides = Overrides(task="bballs", model="s2gru", preset="smoke", device="cpu", fields=fields)
                refused_or_done(functools.partial(resolve, workspace.opened, overrides, lambda text: None), text)
    return BLOWS


def policy(rng: random.Random, workspace: Workspace) -> int:
    """Policy files with damage, odd headers and odd sizes: refused, or played without touching foreign memory."""
    from s2rm_data.starcraft.envs import load_policy
    from s2rm_data.starcraft.policies._network import save_network

    def make(path: Path) -> None:
        noise = np.random.default_rng(0)
        path.mkdir()
        save_network(path / "one.safetensors", [(noise.normal(size=(9, 33)), noise.normal(size=9))], "3m")

    for _ in range(BLOWS):
        with workspace.borrowed(workspace.made("policies", make)) as copy:
            file = copy.files[0]
            if rng.random() < 0.5:
                damage_file(rng, file, [workspace.toy / "zarr.json"])
            else:
                data = file.read_bytes()
                size = int.from_bytes(data[:8], "little")
                header = json.loads(data[8 : 8 + size])
                mutate(rng, header)
                odd = json.dumps(header).encode()
                file.write_bytes(len(odd).to_bytes(8, "little") + odd + data[8 + size :])
            play = refused_or_done(functools.partial(load_policy, file), "a policy file")
            if play is not None:
                seen, available = np.zeros((1, 3, 30), np.float32), np.ones((1, 3, 9), np.bool_)
                refused_or_done(functools.partial(play, seen, available), "playing a policy file")
    return BLOWS


def plugin(rng: random.Random, workspace: Workspace) -> int:
    """Plug-in files that export odd things or fail in odd ways: a message that names the plug-in."""
    from s2rm_data.core import registry

    values = ["1", "None", "{}", "[]", "'x'", "{'a': 1}", "{1: 2}", "[1, 2]", "object()", "lambda: 1", "type"]
    ends = ["", "raise SystemExit(3)", "raise RuntimeError('x')", "1 / 0", "import nowhere", "def f(:", "\x00"]
    for _ in range(BLOWS):
        names = [rng.choice(["MODEL", "MODELS", "POLICY", "POLICIES", "WORLD", "WORLDS", "x"]) for _ in range(2)]
        text = "\n".join([*(f"{name} = {rng.choice(values)}" for name in names), rng.choice(ends)])
        with workspace.fresh() as folder:
            file = folder / f"odd_{rng.getrandbits(60)}.py"
            file.write_text(text)
            if rng.random() < 0.2:
                damage_file(rng, file, [workspace.toy / "zarr.json"])
            try:
                refused_or_done(functools.partial(registry.load_plugin, str(file)), text)
                for found in (registry.MODELS, registry.WORLDS):
                    refused_or_done(found.names, text)
            finally:
                registry._loaded.clear()
    return BLOWS


def replay_file(rng: random.Random, workspace: Workspace) -> int:
    """Saved battles that say odd things: refused, or played."""
    from s2rm_data.starcraft.api.server.saved import play_again, read_replay

    def make(path: Path) -> None:
        from s2rm_data.starcraft.envs import StarCraft2Env

        path.mkdir()
        env = StarCraft2Env("3m", seed=0, replay_dir=str(path), replay_prefix="one")
        env.reset()
        for _ in range(6):
            env.step([int(np.flatnonzero(env.get_avail_agent_actions(i))[-1]) for i in range(3)])
        env.save_replay()

    for _ in range(BLOWS):
        with workspace.borrowed(workspace.made("replays", make)) as copy:
            file = copy.files[0]
            if rng.random() < 0.3:
                damage_file(rng, file, [workspace.toy / "zarr.json"])
            else:
                document = json.loads(file.read_bytes())
                for _ in range(rng.randint(1, 3)):
                    mutate(rng, document)
                file.write_text(json.dumps(document))
            saved = refused_or_done(functools.partial(read_replay, file), "a replay")
            if saved is not None:
                refused_or_done(functools.partial(play_again, saved), f"playing {file.read_bytes()[:400]!r}")
    return BLOWS


def sweep(rng: random.Random, workspace: Workspace) -> int:
    """The document of a sweep is damaged: the sweep is refused, or continued with the points that are its own."""
    from s2rm_data.training.sweep import DOCUMENT, Sweep, run_sweep

    axes = {"lr": [1e-3, 3e-3], "seed": [0, 1]}

    def make(path: Path) -> None:
        path.mkdir()
        run_sweep(Sweep(axes), path, lambda point, out: {}, resume=False)

    for _ in range(BLOWS):
        with workspace.borrowed(workspace.made("sweep", make)) as copy:
            file = copy.path / DOCUMENT
            if rng.random() < 0.5:
                damage_file(rng, file, [workspace.toy / "zarr.json"])
            else:
                document = json.loads(file.read_bytes())
                mutate(rng, document)
                file.write_text(json.dumps(document))
            again = functools.partial(run_sweep, Sweep(axes), copy.path, lambda point, out: {}, resume=True)
            found = refused_or_done(again, "resuming a sweep")
            if found is not None and len(found) != 4:
                raise Finding(f"a damaged sweep has {len(found)} of 4 runs")
    return BLOWS


def parts(rng: random.Random, workspace: Workspace) -> int:
    """Parts that wait for their merge are damaged, or sealed lies: the merge refuses, or the store is sound."""
    from s2rm_data.making.parts import generate_part, merge
    from s2rm_data.store.parts import Part

    splits = [ToySplit(), ToySplit(group="toy/val", count=5)]

    def make(path: Path) -> None:
        for number in (1, 2):
            generate_part(splits, path, Part(number, 2), shard_size=4)

    for _ in range(BLOWS):
        with workspace.borrowed(workspace.made("toy_parts.zarr", make)) as copy:
            target = rng.choice(copy.files)
            if target.suffix == ".json" and rng.random() < 0.5:
                _reseal_part(rng, target)
            else:
                damage_file(rng, target, copy.files)
            refused_or_done(lambda: merge(copy.path), f"merging, with {target.name} changed")
            if (copy.path / "zarr.json").is_file():
                with bounded(), contextlib.suppress(S2RMError):
                    if not verify(copy.path).problems and read_everything(copy.path) != read_everything(workspace.toy):
                        raise Finding(f"a merge with {target.name} changed gives other data")
    return BLOWS


def _reseal_part(rng: random.Random, file: Path) -> None:
    import hashlib

    document = json.loads(file.read_bytes())
    document.pop("sha256", None)
    mutate(rng, document)
    document["sha256"] = hashlib.sha256(spelled(document)).hexdigest()
    file.write_bytes(spelled(document))


def cache_folder(rng: random.Random, workspace: Workspace) -> int:
    """Files of a cache are damaged: what is read through it is what is stored."""
    from s2rm_data.store.cache import ShardCache

    def content(folder: Path) -> Any:
        store = Store(workspace.toy, cache=ShardCache(folder, 1 << 20))
        groups = {name: store[name].arrays for name in store.manifest.groups}
        return {f"{group}/{name}": array[:].tobytes() for group in groups for name, array in groups[group].items()}

    sound = read_everything(workspace.toy)
    for _ in range(BLOWS):
        with workspace.borrowed(workspace.made("cache", content)) as copy:
            target = rng.choice(copy.files)
            kind = damage_file(rng, target, copy.files)
            found = refused_or_done(functools.partial(content, copy.path), f"{kind} of a file in a cache")
            if found is not None and found != sound:
                raise Finding(f"{kind} of a file in a cache: other data are read")
    return BLOWS
