"""A store of many sequences, made in parts and trained on through a small cache: time, commits, objects, memory.

    python benchmarks/scale.py                          # a small one, in a temporary folder: a minute or two
    python benchmarks/scale.py --sequences 1000000 --parts 20 --work scale --steps make,merge,verify,load,train
    python benchmarks/scale.py --steps s3               # from an S3 stand-in on this machine (moto)

A million ball sequences take about 7 GB. Every step is a process of its own, whose largest memory is measured, and a
step that was stopped is resumed by the same command. On a busy machine compare ratios and processor times, not seconds.
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
    lines = out.strip().splitlines()
    said = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
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


def generation(given: argparse.Namespace) -> list[str]:
    counts = ["--train", str(given.sequences), "--val", "1000", "--test", "0", "--balls", "3"]
    return ["bballs", *counts, "-j", str(given.workers), "-q", "--json"]


def make(given: argparse.Namespace, store: Path) -> None:
    if (store / "zarr.json").exists():
        print("make: the store is there already")
        return
    for number in given.only or range(1, given.parts + 1):
        part = f"{number}/{given.parts}"
        found = measured("-m", "s2rm_data", *generation(given), "-o", str(store), "--part", part)
        speed = found["made"] / found["cpu_seconds"]
        show(f"part {part}", found, f"{found['made']:,} made, {speed:,.0f} per CPU second")


def merge(given: argparse.Namespace, store: Path) -> None:
    found = measured("-m", "s2rm_data", "merge", str(store), "-q", "--json")
    show("merge", found, f"{found['objects']:,} objects, {found['bytes'] / 1e9:.2f} GB")


def verify(given: argparse.Namespace, store: Path) -> None:
    show("verify", measured("-m", "s2rm_data", "verify", str(store), "-q"))


def commits(given: argparse.Namespace, store: Path) -> None:
    """What commits of one process take, as a share of its time, with 2,000 shards."""
    found = measured(__file__, "--inner", "commits", "--sequences", str(given.sequences), "--work", str(store.parent))
    show("one process, 2,000 shards", found, f"{found['commits']} commits, {100 * found['share']:.1f}% of the time")


def load(given: argparse.Namespace, store: Path) -> None:
    """Sequences per second to training: from memory, through a cache that holds everything, through a small one."""
    for kind in ("memory", "cache", "small cache"):
        if kind != "small cache" and given.sequences > 100_000:
            continue  # 28 GB
        words = ["--inner", kind, "--work", str(store.parent), "--cache-size", given.cache_size]
        found = measured(__file__, *words, "--batches", str(given.batches))
        show(
            f"batches, {kind}", found, f"{found['rate']:,.0f} sequences per second, {found['cpu_rate']:,.0f} per CPU s"
        )


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


def s3(given: argparse.Namespace, store: Path) -> None:
    """The same batches from a folder and from an S3 stand-in, both through an empty cache."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from buckets import ENVIRONMENT, make_bucket, s3_server

    with s3_server() as address:
        os.environ.update(ENVIRONMENT, AWS_ENDPOINT_URL=address)
        make_bucket(address, "scale")
        small = ["bballs", "--train", "8000", "--val", "100", "--test", "0", "--balls", "3", "-j", "1", "-q", "--json"]
        for kind, where in (("folder", str(store.parent / "small.zarr")), ("S3", "s3://scale/small.zarr")):
            show(f"8,000 sequences to {kind}", measured("-m", "s2rm_data", *small, "-o", where))
            shutil.rmtree(store.parent / "cache-s3", ignore_errors=True)
            words = ["--inner", "from", "--work", str(store.parent), "--from", where, "--batches", "250"]
            found = measured(__file__, *words)
            show(f"batches from {kind}, empty cache", found, f"{found['rate']:,.0f} sequences per second")


def inner(kind: str, given: argparse.Namespace) -> dict[str, Any]:
    if kind == "commits":
        return inner_commits(given)
    from s2rm_data.cli.sizes import size_nbytes
    from s2rm_data.loading import Prefetcher, TrainingBatches, open_source
    from s2rm_data.store import ShardCache, Store

    size = size_nbytes(given.cache_size) if kind == "small cache" else 10**12
    folder = given.work / {"small cache": "cache", "from": "cache-s3"}.get(kind, "cache-whole")
    cache = None if kind == "memory" else ShardCache(folder, size)
    store = Store(given.source or given.work / "data.zarr", cache=cache)
    source = open_source(store, "bballs", "train", steps=20)
    shards = 3 if kind == "small cache" else None
    batches = TrainingBatches(source, batch_size=BATCH, seed=0, shuffle_shards=shards)
    keys = [key for key, _ in zip(batches.keys_from(0, 0), range(given.batches), strict=False)]
    batches.batch(0, 0)
    wall, cpu = time.perf_counter(), time.process_time()
    with Prefetcher(source, keys, lambda key: batches.request(*key)) as prefetcher:
        for _ in prefetcher:
            pass
    done = BATCH * len(keys)
    return {"rate": done / (time.perf_counter() - wall), "cpu_rate": done / (time.process_time() - cpu)}


def inner_commits(given: argparse.Namespace) -> dict[str, Any]:
    """One process that makes 2,000 shards, which are 10,000 objects: as many as a million sequences once had."""
    from s2rm_data.generators.bballs.source import plan
    from s2rm_data.making import run
    from s2rm_data.store.writer import Pacer

    pacers: list[Pacer] = []

    class Kept(run.StoreWriter):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            pacers.append(self.pacer)

    run.StoreWriter = Kept  # type: ignore[misc]
    path = given.work / "commits.zarr"
    shutil.rmtree(path, ignore_errors=True)
    begun = time.perf_counter()
    run.generate(plan(balls=(3,), train=given.sequences, val=0, test=0), path, shard_size=-(-given.sequences // 2000))
    seconds = time.perf_counter() - begun
    shutil.rmtree(path)
    return {"commits": pacers[0].count, "share": pacers[0].seconds / seconds}


STEPS = {
    "make": make, "merge": merge, "verify": verify, "load": load, "train": train, "commits": commits, "s3": s3,
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
    parser.add_argument("--inner", help=argparse.SUPPRESS)
    parser.add_argument("--from", dest="source", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inner:
        print(json.dumps(inner(given.inner, given)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        work.mkdir(exist_ok=True)
        for step in given.steps.split(","):
            STEPS[step](given, work / "data.zarr")


if __name__ == "__main__":
    main()
