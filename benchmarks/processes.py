"""Gradients of several processes: this package's own average against DistributedDataParallel.

    torchrun --standalone --nproc-per-node 2 benchmarks/processes.py --steps 20 --rounds 5

Both take the same steps on the same batches, in turns. Their processor time and time by the clock per step are those of
all processes together; the last line is the ratio of the medians. Losses must be equal up to rounding.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from s2rm_data.learning import TrainingBatches
from s2rm_data.making.run import generate
from s2rm_data.store import Store
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.data import RunData
from s2rm_data.training.processes import Processes
from s2rm_data.training.resolve import Overrides, resolve
from s2rm_data.training.stepper import Stepper, make_optimiser


class Loss(nn.Module):
    """What DistributedDataParallel wraps: it averages the gradients of a forward pass."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Any) -> Tensor:
        return self.model.batch_loss(batch)


class ParallelStepper(Stepper):
    """The same step through DistributedDataParallel, which sends gradients in buckets while others are computed."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.parallel = nn.parallel.DistributedDataParallel(
            Loss(self.model), gradient_as_bucket_view=True, static_graph=True
        )

    def __call__(self, batch: Any, lr: float) -> Tensor:
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        share = self._share(batch)
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.parallel(batch)
        (loss * share).backward()
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.config.clip_norm or float("inf"))
        self.optimiser.step()
        whole = self.processes.total(loss.detach() * share) / self.processes.count
        return torch.stack([whole, norm.detach()])


def prepared(options: argparse.Namespace, processes: Processes) -> tuple[TrainConfig, RunData]:
    path = Path(options.work or tempfile.mkdtemp()) / "data.zarr"
    if processes.is_first:
        from s2rm_data.generators.bballs.making.ball_source import plan

        generate(plan(balls=[3], train=400, val=20, test=0), path)
    paths = [str(path)]
    dist.broadcast_object_list(paths)
    store = Store(paths[0])
    overrides = Overrides(task="bballs", model=options.model, preset=options.preset, fields={"threads": 1})
    config = resolve(store, overrides, lambda text: None)
    return config, RunData(store, config)


def measure(kind: type[Stepper], config: TrainConfig, data: RunData, processes: Processes) -> Any:
    torch.manual_seed(0)
    model = data.build_model()
    stepper = kind(model, make_optimiser(model, config), config, processes)
    batches = TrainingBatches(data.train, batch_size=config.batch_size, seed=0, share=processes.share)
    made = {}

    def steps(first: int, count: int) -> dict[str, Any]:
        keys = [divmod(step, batches.steps_per_epoch) for step in range(first, first + count)]
        made.update({key: batches.batch(*key) for key in keys if key not in made})
        processes.wait()
        wall, cpu = time.perf_counter(), time.process_time()
        losses = torch.stack([stepper(made[key], 1e-3) for key in keys])[:, 0]
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        spent = processes.total(torch.tensor([wall / processes.count, cpu])) / count
        return {"losses": losses, "wall": float(spent[0]), "cpu": float(spent[1])}

    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="s2gru")
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path, help="folder that keeps the store  [default: a temporary one]")
    options = parser.parse_args()
    processes = Processes()
    processes.connect(torch.device("cpu"))
    torch.set_num_threads(1)
    config, data = prepared(options, processes)
    kinds = {"own average": Stepper, "DistributedDataParallel": ParallelStepper}
    runs = {name: measure(kind, config, data, processes) for name, kind in kinds.items()}
    found: dict[str, list[dict[str, Any]]] = {name: [runs[name](0, 2)] for name in kinds}  # the first steps apart
    for round_ in range(options.rounds):
        for name in kinds:
            found[name].append(runs[name](2 + round_ * options.steps, options.steps))
    own, theirs = (torch.cat([run["losses"] for run in found[name]]) for name in kinds)
    difference = float(((own - theirs).abs() / own.abs()).max())
    if processes.is_first:
        middle = {n: {k: statistics.median(r[k] for r in f[1:]) for k in ("wall", "cpu")} for n, f in found.items()}
        for name, spent in middle.items():
            print(f"{name:<26}{1e3 * spent['cpu']:>8.1f} ms CPU{1e3 * spent['wall']:>8.1f} ms per step")
        cpu, wall = (middle["DistributedDataParallel"][k] / middle["own average"][k] for k in ("cpu", "wall"))
        print(f"DistributedDataParallel takes {cpu:.3f} of the own average's processor time, {wall:.3f} of the clock's")
        print(f"largest difference of losses, relative: {difference:.1e}")
    processes.disconnect()


if __name__ == "__main__":
    main()
