"""Parts as tasks of a Dask cluster: the same parts, the same merge, the same bytes. A task makes one part where it runs
and writes it to the store, which all workers must reach. Dask runs the task of a worker that died again, elsewhere."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

from s2rm_data.core.addresses import store_path
from s2rm_data.core.errors import ConflictError, DiskError, S2RMError, UsageError
from s2rm_data.core.optional import needed
from s2rm_data.core.progress import Progress
from s2rm_data.core.registry import WORLDS, load_plugin
from s2rm_data.core.signals import SAME_COMMAND, Interrupt
from s2rm_data.making.parts import generate_part, merge
from s2rm_data.making.run import Outcome, ShardSize, split_specs
from s2rm_data.store.existing import has_parts
from s2rm_data.store.parts import Part, PartPlan
from s2rm_data.store.place import place_of

MOST_TASKS = 1000
RETRIES = 2  # of a task that failed; those of dead workers come on top
CONNECT_SECONDS = 20


@dataclass(frozen=True)
class Job:
    """What every worker is told: plain values, that travel."""

    world: str
    options: Mapping[str, Any]  # of the world, and `seed`
    path: str
    shard_size: ShardSize
    plugins: Sequence[str] = ()

    def run(self, part: str) -> tuple[int, int]:
        """On a worker: make a part; returns how many sequences were made and found."""
        for name in self.plugins:
            load_plugin(name)
        making = WORLDS.load(self.world).prepare(dict(self.options))
        with making.open() as splits:
            done = generate_part(splits, store_path(self.path), Part.parse(part), shard_size=self.shard_size)
        return done.made, done.found


def generate_on_dask(job: Job, address: str, *, workers: int, progress: Progress | None = None) -> Outcome:
    """Make a store on the Dask cluster at `address`; `local` starts one of `workers` processes on this machine."""
    progress = progress or Progress()
    making = WORLDS.load(job.world).prepare(dict(job.options))
    specs = split_specs(making.splits, job.shard_size)
    count = min(sum(spec.shards for spec in specs), MOST_TASKS)
    place = place_of(job.path)
    place.check_free()
    if has_parts(place):  # they must be of the same run, which is then continued
        PartPlan.of(specs, count).check_same(PartPlan.read(place), place)
    shards = [spec.sequences_in(index) for spec in specs for index in range(spec.shards)]
    parts = (Part(number, count) for number in range(1, count + 1))
    sizes = {str(part): sum(shards[i] for i in part.of(len(shards))) for part in parts}
    with _client(address, workers) as client:
        progress.start(sum(sizes.values()), 0)
        made, found = _run(client, job, sizes, progress)
    merged = merge(place.path)
    return Outcome(made=made, found=found, nbytes=merged.nbytes, groups=merged.groups)


def _run(client: Any, job: Job, sizes: Mapping[str, int], progress: Progress) -> tuple[int, int]:
    from distributed import as_completed

    futures = {client.submit(job.run, part, pure=False, retries=RETRIES): part for part in sizes}
    made = found = 0
    try:
        with Interrupt(SAME_COMMAND) as interrupt:
            for future in as_completed(list(futures)):
                done = _result(future, futures[future])
                made, found = made + done[0], found + done[1]
                progress.advance(sizes[futures[future]])
                if interrupt.asked:
                    break
    except BaseException:
        with contextlib.suppress(Exception):
            client.cancel(list(futures))
        raise
    return made, found


def _result(future: Any, part: str) -> tuple[int, int]:
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    again = "then run the same command again: what other parts have made is kept"
    try:
        made, found = future.result()
    except S2RMError:
        raise
    except KilledWorker:
        died = f"the Dask workers that made part {part} died again and again; look at their logs (memory?)"
        raise ConflictError(f"{died}, {again}") from None
    except (CancelledError, CommClosedError):
        lost = f"the connection to the Dask scheduler was lost before part {part} was made"
        raise DiskError(f"{lost}; start the scheduler and its workers, {again}") from None
    except Exception as error:
        raise S2RMError(f"part {part} failed on a Dask worker: {type(error).__name__}: {error}") from error
    return made, found


@contextlib.contextmanager
def _client(address: str, workers: int) -> Iterator[Any]:
    dask = needed("distributed", "cluster", "--dask")
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # it shows tracebacks of errors that we catch
    with contextlib.ExitStack() as stack:
        if address == "local":
            cluster = dask.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
            yield stack.enter_context(dask.Client(stack.enter_context(cluster)))
            return
        try:
            client = dask.Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError, TypeError) as error:
            advice = "give the address that `dask scheduler` prints, such as tcp://10.0.0.1:8786, or `local`"
            raise UsageError(f"no Dask scheduler answers at {address!r} ({type(error).__name__}); {advice}") from None
        yield stack.enter_context(client)
