"""One process or several: `torchrun` starts them, each takes its share of every batch, gradients are averaged.

Every model here is small (1 to 9 million weights), so gradients go in one message after the backward pass."""

import contextlib
import datetime
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn

from s2rm_data.core.errors import S2RMError, UsageError
from s2rm_data.learning.windows import Share

# For one message. The default of half an hour would keep the others waiting when a process is lost. The longest that
# processes are apart is a compiler at work in one of them, or the first one's checkpoint.
PATIENCE_SECONDS = 600.0


class Processes:
    """This process among `count`; without torchrun, or `alone`, it is the only one and nothing is sent."""

    def __init__(self, *, alone: bool = False) -> None:
        given = {} if alone else os.environ
        self.rank, self.count = int(given.get("RANK", "0")), int(given.get("WORLD_SIZE", "1"))
        self.local_rank, self.local_count = int(given.get("LOCAL_RANK", "0")), int(given.get("LOCAL_WORLD_SIZE", "1"))
        self.is_first, self.share = self.rank == 0, Share(rank=self.rank, count=self.count)

    def connect(self, device: torch.device) -> None:
        if self.count > 1 and not dist.is_initialized():
            if not dist.is_available():
                raise UsageError("this torch is built without torch.distributed; run without torchrun")
            backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
            timeout = datetime.timedelta(seconds=PATIENCE_SECONDS)
            with _peers():
                try:
                    store: dist.Store = next(dist.rendezvous("env://", timeout=timeout))[0]
                except ValueError as error:
                    raise UsageError(f"several processes are started by torchrun ({error})") from None
                store.set_timeout(timeout)
                store = _own_part(store, self.rank, self.count)
                dist.init_process_group(backend, timeout=timeout, store=store, rank=self.rank, world_size=self.count)

    def disconnect(self) -> None:
        if self.count > 1 and dist.is_initialized():
            dist.destroy_process_group()

    def total(self, value: Tensor) -> Tensor:
        """The sum over all processes, in all of them; `value` itself where there is one."""
        if self.count > 1:
            value = value.clone()
            with _peers():
                dist.all_reduce(value)
        return value

    def wait(self) -> None:
        if self.count > 1:
            with _peers():
                dist.barrier()

    def agree(self, model: nn.Module) -> None:
        """Everybody takes the first process's weights."""
        if self.count > 1:
            with _peers():
                for tensor in (*model.parameters(), *model.buffers()):
                    dist.broadcast(tensor.detach(), 0)

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        if self.count == 1:
            return
        with_gradient = [p for p in parameters if p.requires_grad]
        flat = torch.cat([torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in with_gradient])
        with _peers():
            dist.all_reduce(flat)
        flat /= self.count
        for parameter, piece in zip(with_gradient, flat.split([p.numel() for p in with_gradient]), strict=True):
            parameter.grad = piece.view_as(parameter)


@contextlib.contextmanager
def _peers() -> Iterator[None]:
    """Say what it means when processes lose each other."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TimeoutError) as error:
        reason = " ".join(str(error).split())[:300]
        raise S2RMError(
            f"another process of this run was lost, or could not be reached ({reason}). torchrun --max-restarts N with "
            "--resume starts all of them again; otherwise resume the run with the same command and --resume"
        ) from None


def _own_part(store: dist.Store, rank: int, count: int) -> dist.Store:
    """The part of the rendezvous store that belongs to the processes that are there now.
    The agent of torchrun keeps its store when it starts processes again, and with it the addresses of those that are
    gone (so in torch 2.13, whose comment in `_create_c10d_store` says otherwise). The number of restarts does not tell
    them apart: each machine counts its own. So the first process makes up a name and tells it to those that greet it,
    until each of them has repeated it."""
    if rank == 0:
        name = secrets.token_hex(8)
        for other in range(1, count):
            _tell(store, name, other)
    else:
        greeting = secrets.token_hex(8)
        store.set(f"greeting/{rank}", greeting)
        _wait_until(lambda: store.check([f"name/{greeting}"]), "the first process")
        name = store.get(f"name/{greeting}").decode()
        store.set(f"heard/{name}/{rank}", "")
    return dist.PrefixStore(f"run/{name}", store)


def _tell(store: dist.Store, name: str, other: int) -> None:
    """Answer all that process number `other` has said; the first of it may be of one that is gone."""

    def heard() -> bool:
        if store.check([f"greeting/{other}"]):
            store.set(f"name/{store.get(f'greeting/{other}').decode()}", name)
        return store.check([f"heard/{name}/{other}"])

    _wait_until(heard, f"process {other}")


def _wait_until(done: Callable[[], bool], who: str) -> None:
    """In short sleeps, during which signals are seen."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{who} did not come within {PATIENCE_SECONDS:.0f} s")
        time.sleep(0.02)
