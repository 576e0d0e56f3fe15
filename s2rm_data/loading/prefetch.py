"""Batches made ahead of time by threads, handed out in order; the threads' work releases the interpreter lock."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from s2rm_data.batch import Batch
from s2rm_data.learning import Source

K = TypeVar("K")


class Prefetcher(Generic[K]):
    """Iterates over (key, batch); `waited_seconds` is how long the consumer had to wait for data in all.

    `request` makes a request of a key, in a thread. At most `depth` batches are ahead. What comes out does not depend
    on the number of threads. Use it as a context manager, or close it.
    """

    def __init__(
        self, source: Source, keys: Iterable[K], request: Callable[[K], Any], *, threads: int = 1, depth: int = 2
    ) -> None:
        self._source, self._keys, self._request = source, iter(keys), request
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="loading")
        self._ahead: deque[tuple[K, Future[Any]]] = deque()
        self.waited_seconds = 0.0
        for _ in range(max(depth, threads)):
            self._submit()

    def _submit(self) -> None:
        for key in self._keys:
            self._ahead.append((key, self._pool.submit(self._prepare, key)))
            return

    def _prepare(self, key: K) -> Any:
        return self._source.prepare(self._request(key))

    def __iter__(self) -> Iterator[tuple[K, Batch]]:
        return self

    def __next__(self) -> tuple[K, Batch]:
        if not self._ahead:
            self.close()
            raise StopIteration
        begun = time.perf_counter()
        key, future = self._ahead.popleft()
        prepared = future.result()
        self.waited_seconds += time.perf_counter() - begun
        self._submit()
        return key, self._source.finish(prepared)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._ahead.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
