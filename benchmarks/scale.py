"""A store of many sequences, made in parts and trained on through a small cache: time, commits, objects, memory.

    python benchmarks/scale.py                          # a small one, in a temporary folder: a minute or two
    python benchmarks/scale.py --sequences 1000000 --parts 20 --work scale --steps make,merge,verify,load,train
    python benchmarks/scale.py --steps ratios           # memory, cache and an S3 stand-in on this machine (moto)

A million ball sequences take about 7 GB. Every step is a process of its own, whose largest memory is measured, and a
step that was stopped is resumed by the same command. On a busy machine compare ratios and processor times, not seconds.
A commit is every write of a store's or a part's manifest; its share is of the time by the clock of the whole command.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BATCH = 32


def measured(*words: str) -> dict[str, Any]:
    """Run a command; its wall and processor time, and the largest memory it took (of the system's own count)."""
    wall = time.perf_counter()
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    out = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(words)} failed with {os.waitstatus_to_exitcode(status)}")
    said = {k: v for line in out.splitlines() if line.startswith("{") for k, v in json.loads(line).items()}
    return {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
        **{name: value for name, value in said.items() if name != "seconds"},
    }


def show(what: str, found: dict[str, Any], more: str = "") -> None:
    print(
        f"{what:<34}{found['seconds']:>8.1f} s{found['cpu_seconds']:>9.1f} s CPU{found['peak_mb']:>8.0f} MB  {more}",
        flush=True,
    )


def timed(*words: str) -> dict[str, Any]:
    """Run `s2rm-data` with these words, and measure its commits, too."""
    return measured(__file__, "--inner", "command", "--words", json.dumps(words))


def commit_share(found: dict[str, Any]) -> str:
    return f"{found['commits']} commits, {100 * found['commit_seconds'] / found['seconds']:.2f}% of the time"


def generation(given: argparse.Namespace, store: Path, *more: str) -> dict[str, Any]:
    counts = ["--train", str(given.sequences), "--val", "1000", "--test", "0", "--balls", "3"]
    return timed("bballs", *counts, "-j", str(given.workers), "-q", "--json", "-o", str(store), *more)


def made(found: dict[str, Any]) -> str:
    return f"{found['made']:,} made, {found['made'] / found['cpu_seconds']:,.0f} per CPU second, {commit_share(found)}"


def make(given: argparse.Namespace, store: Path) -> None:
    if (store / "zarr.json").exists():
        print("make: the store is there already")
        return
    every = []
    for number in given.only or range(1, given.parts + 1):
        part = f"{number}/{given.parts}"
        every.append(generation(given, store, "--part", part))
        show(f"part {part}", every[-1], made(every[-1]))
    whole = {
        k: sum(found[k] for found in every) for k in ("seconds", "cpu_seconds", "made", "commits", "commit_seconds")
    }
    show("all of these parts", {**whole, "peak_mb": max(found["peak_mb"] for found in every)}, made(whole))


def merge(given: argparse.Namespace, store: Path) -> None:
    found = timed("merge", str(store), "-q", "--json")
    show("merge", found, f"{found['objects']:,} objects, {found['bytes'] / 1e9:.2f} GB, {commit_share(found)}")


def verify(given: argparse.Namespace, store: Path) -> None:
    show("verify", measured("-m", "s2rm_data", "verify", str(store), "-q"))


def commits(given: argparse.Namespace, store: Path) -> None:
    """One process that makes 2,000 shards, which are 10,000 objects: three times as many as it makes by default."""
    path = store.parent / "commits.zarr"
    shutil.rmtree(path, ignore_errors=True)
    found = generation(given, path, "--shard-size", str(-(-given.sequences // 2000)))
    shutil.rmtree(path)
    show("one process, 2,000 shards", found, made(found))


def load(given: argparse.Namespace, store: Path) -> None:
    """Sequences per second to training through a cache that is smaller than the store."""
    batches(given, "small cache", str(store), store.parent / "cache", given.cache_size, "--shuffle-shards", "3")


def batches(given: argparse.Namespace, what: str, source: str, *words: Any) -> dict[str, Any]:
    cache = ["--cache", str(words[0]), "--cache-size", str(words[1]), *words[2:]] if words else []
    found = measured(__file__, "--inner", "batches", "--from", source, "--batches", str(given.batches), *cache)
    show(f"batches, {what}", found, f"{found['rate']:,.0f} sequences per second, {found['cpu_rate']:,.0f} per CPU s")
    return found


def train(given: argparse.Namespace, store: Path) -> None:
    out, cache = store.parent / "run", store.parent / "cache"
    words = [
        "--store",
        str(store),
        "--preset",
        "smoke",
        "--steps",
        str(given.batches),
        "--batch-size",
        str(BATCH),
        "-q",
    ]
    words += ["--cache", str(cache), "--cache-size", given.cache_size, "--out", str(out), "--overwrite", "-q"]
    found = measured("-m", "s2rm_data.cli.train", *words, "--json")
    held = sum(path.stat().st_size for path in cache.iterdir()) / 1e9
    show("training through the cache", found, f"{given.batches} steps, {held:.2f} GB in the cache")


def ratios(given: argparse.Namespace, store: Path) -> None:
    """The same batches from memory, through caches that are full or empty, from a folder and from an S3 stand-in; in
    turns, three times, and the median of each beside that of memory.
    """
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
    from buckets import ENVIRONMENT, make_bucket, s3_server

    small = ["bballs", "--train", "8000", "--val", "100", "--test", "0", "--balls", "3", "-j", "1", "-q", "--json"]
    folder, bucket, cache = str(store.parent / "small.zarr"), "s3://scale/small.zarr", store.parent / "cache-ratios"
    with s3_server() as address:
        os.environ.update(ENVIRONMENT, AWS_ENDPOINT_URL=address)
        make_bucket(address, "scale")
        for where in (folder, bucket):
            show(f"8,000 sequences to {where.split(':')[0][-10:]}", measured("-m", "s2rm_data", *small, "-o", where))
        found: dict[str, list[dict[str, Any]]] = {}
        for _ in range(3):
            for what, where in (("memory", folder), ("memory from S3", bucket)):
                found.setdefault(what, []).append(batches(given, what, where))
            for kind, where in (("folder", folder), ("S3", bucket)):
                shutil.rmtree(cache, ignore_errors=True)
                for state in ("empty", "full"):
                    what = f"{state} cache, {kind}"
                    found.setdefault(what, []).append(batches(given, what, where, cache, "1TB"))
    middle = {w: {k: sorted(run[k] for run in runs)[1] for k in ("rate", "cpu_rate")} for w, runs in found.items()}
    for what, rates in middle.items():
        wall, cpu = (rates[k] / middle["memory"][k] for k in ("rate", "cpu_rate"))
        print(f"{what:<34}{wall:>8.3f} of memory's speed by the clock,{cpu:>7.3f} by processor time", flush=True)


def inner_command(given: argparse.Namespace) -> None:
    """`s2rm-data` itself, with a clock around the two functions that commit."""
    from s2rm_data.cli import data
    from s2rm_data.store.manifest import Manifest
    from s2rm_data.store.parts import PartManifest

    seconds: list[float] = []

    def clocked(save: Callable[..., None]) -> Callable[..., None]:
        def clocked_save(*arguments: Any) -> None:
            begun = time.perf_counter()
            save(*arguments)
            seconds.append(time.perf_counter() - begun)

        return clocked_save

    for kind in (Manifest, PartManifest):
        kind.save = clocked(kind.save)  # type: ignore[method-assign]
    sys.argv = ["s2rm-data", *json.loads(given.words)]
    try:
        data.main()
    finally:
        print(json.dumps({"commits": len(seconds), "commit_seconds": sum(seconds)}), flush=True)


def inner_batches(given: argparse.Namespace) -> None:
    from s2rm_data.core.amounts import size_nbytes
    from s2rm_data.learning import Prefetcher, TrainingBatches, open_source
    from s2rm_data.store import ShardCache, Store

    cache = ShardCache(Path(given.cache), size_nbytes(given.cache_size)) if given.cache else None
    source = open_source(Store(given.source, cache=cache), "bballs", "train", steps=20)
    batches = TrainingBatches(source, batch_size=BATCH, seed=0, shuffle_shards=given.shuffle_shards)
    keys = [key for key, _ in zip(batches.keys_from(0, 0), range(given.batches), strict=False)]
    wall, cpu = time.perf_counter(), time.process_time()
    with Prefetcher(source, keys, lambda key: batches.request(*key)) as prefetcher:
        for _ in prefetcher:
            pass
    done = BATCH * len(keys)
    print(json.dumps({"rate": done / (time.perf_counter() - wall), "cpu_rate": done / (time.process_time() - cpu)}))


STEPS = {
    "make": make, "merge": merge, "verify": verify, "load": load, "train": train, "commits": commits,
    "ratios": ratios,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=20_000)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--only", type=int, nargs="*", help="only these parts")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--cache-size", default="2GB")
    parser.add_argument("--work", type=Path, help="folder that keeps the store  [default: a temporary one]")
    parser.add_argument("--steps", default="make,merge,verify,load,train,commits")
    for hidden in ("--inner", "--words", "--cache"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--shuffle-shards", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--from", dest="source", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inner:
        {"command": inner_command, "batches": inner_batches}[given.inner](given)
        return
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        work.mkdir(exist_ok=True)
        for step in given.steps.split(","):
            STEPS[step](given, work / "data.zarr")


if __name__ == "__main__":
    main()
