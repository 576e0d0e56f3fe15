"""Speed of training: steps per second, the share of each part, time waiting for data, peak memory.

python benchmarks/train.py                          # laptop preset on a small store made for it
python benchmarks/train.py --store data.zarr --task sc2 --model lstm --steps 50 --threads 2
python benchmarks/train.py --allocator              # also without the allocator's settings, in a second process
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from s2rm_data.learning import Prefetcher, TrainingBatches
from s2rm_data.making.run import generate
from s2rm_data.store import Store
from s2rm_data.training import machine
from s2rm_data.training.data import RunData
from s2rm_data.training.processes import Processes
from s2rm_data.training.resolve import Overrides, resolve
from s2rm_data.training.stepper import Stepper, make_optimiser


class Parts:
    """Seconds by name; on a CPU everything is done when a call returns."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def wrap(self, name: str, function):
        def timed(*arguments, **keywords):
            begun = time.perf_counter()
            result = function(*arguments, **keywords)
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun
            return result

        return timed


def store_of(options: argparse.Namespace, folder: str) -> Store:
    if options.store:
        return Store(options.store)
    path = Path(folder) / "data.zarr"
    if options.task == "sc2":
        from s2rm_data.generators.sc2.making.battle_source import plan as plan_battles

        generate(plan_battles(scenario=["3s5z", "2s3z"], train=40, val=4), path)
    else:
        from s2rm_data.generators.bballs.making.ball_source import plan

        generate(plan(balls=[3], train=1000, val=50, test=0), path)
    return Store(path)


def measure(options: argparse.Namespace, store: Store) -> None:
    fields = {"threads": options.threads} if options.threads else {}
    overrides = Overrides(task=options.task, model=options.model, preset=options.preset, fields=fields)
    config = resolve(store, overrides, lambda text: None)
    torch.set_num_threads(config.threads)
    if not options.untuned:
        machine.tune_allocator()
    data = RunData(store, config)
    torch.manual_seed(0)
    model = data.build_model()
    stepper = Stepper(model, make_optimiser(model, config), config, Processes())
    batches = TrainingBatches(data.train, batch_size=config.batch_size, seed=0)
    stepper(batches.batch(0, 0), 1e-3)
    parts = Parts()
    model.encoder.forward = parts.wrap("encoder, forward", model.encoder.forward)
    model.unroll = parts.wrap("recurrence, forward", model.unroll)
    model.decoder.forward = parts.wrap("decoder, forward", model.decoder.forward)
    stepper.optimiser.step = parts.wrap("Adam", stepper.optimiser.step)
    backward = torch.Tensor.backward
    torch.Tensor.backward = parts.wrap("backward", backward)
    keys = list(itertools.islice(batches.keys_from(0, 0), options.steps))
    wall, cpu = time.perf_counter(), time.process_time()
    with Prefetcher(data.train, keys, lambda key: batches.request(*key)) as prefetcher:
        for _, batch in prefetcher:
            stepper(batch, 1e-3)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    torch.Tensor.backward = backward
    tuned = "as the system has it" if options.untuned else "tuned"
    print(
        f"{config.model} on {config.task}, preset {config.preset}, batch {config.batch_size} x {data.train.steps} "
        f"steps, {model.parameter_count():,} parameters, {config.threads} threads, allocator {tuned}"
    )
    print(
        f"  {options.steps / wall:.2f} steps/s ({1e3 * wall / options.steps:.0f} ms per step, "
        f"{1e3 * cpu / options.steps:.0f} ms of processor time)"
    )
    for name, seconds in parts.seconds.items():
        print(f"  {name:<22}{100 * seconds / wall:5.1f}%")
    print(f"  {'the rest':<22}{100 * (1 - sum(parts.seconds.values()) / wall):5.1f}%")
    print(f"  waiting for data {100 * prefetcher.waited_seconds / wall:.2f}% (target: below 5%)")
    print(f"  peak memory {machine.peak_memory_nbytes(torch.device('cpu')) / 1e6:,.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--task", choices=("bballs", "sc2"), default="bballs")
    parser.add_argument("--model", default="s2gru")
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--allocator", action="store_true")
    parser.add_argument("--untuned", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(options, store_of(options, folder))
    if options.allocator and not options.untuned:
        arguments = [argument for argument in sys.argv[1:] if argument != "--allocator"]
        subprocess.run([sys.executable, __file__, *arguments, "--untuned"], check=True)


if __name__ == "__main__":
    main()
