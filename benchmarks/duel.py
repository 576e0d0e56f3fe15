"""The same training steps by two checkouts, in turns: processor time of a step, their ratio, and how the losses differ.

python benchmarks/duel.py ../other                          # S2GRU of the laptop preset, both worlds
python benchmarks/duel.py ../other --model s2rmc --task sc2 --set image_size=[8,24]

The other checkout needs an environment in its .venv. Both get the same weights and batches; both take turns of a few
steps, so that a busy machine favours none. Losses drift apart once two roundings have gone through many steps of Adam:
the difference is given for the first step and for the tenth.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

PER_TURN, BATCHES = 4, 10


def prepare(task: str, model: str, assignments: list[str], folder: Path) -> Path:
    """Weights and batches, as files that any version can read."""
    from s2rm_data.core.check import to_json
    from s2rm_data.learning import TrainingBatches
    from s2rm_data.making.run import generate
    from s2rm_data.store import Store
    from s2rm_data.training.config import parse_assignments
    from s2rm_data.training.data import RunData
    from s2rm_data.training.resolve import Overrides, resolve

    path = folder / f"{task}.zarr"
    if task == "sc2":
        from s2rm_data.generators.sc2.making.battle_source import plan as plan_battles

        generate(plan_battles(scenario=["3s5z", "2s3z"], train=40, val=4), path)
    else:
        from s2rm_data.generators.bballs.making.ball_source import plan

        generate(plan(balls=[3], train=400, val=20, test=0), path)
    fields = parse_assignments(tuple(assignments))
    config = resolve(Store(path), Overrides(task=task, model=model, preset="laptop", fields=fields), lambda text: None)
    data = RunData(Store(path), config)
    torch.manual_seed(0)
    built = data.build_model()
    batches = TrainingBatches(data.train, batch_size=config.batch_size, seed=0)
    made = [batches.batch(*key) for key in itertools.islice(batches.keys_from(0, 0), BATCHES)]
    plain = [
        {f.name: getattr(b, f.name) for f in dataclasses.fields(b)} | {"targets": b.targets._asdict()} for b in made
    ]
    saved = {"model": model, "task": task, "fields": to_json(built.config), "clip": config.clip_norm}
    torch.save(saved | {"weights": built.state_dict(), "batches": plain}, folder / f"{task}.pt")
    return folder / f"{task}.pt"


def serve(path: str) -> None:
    """Runs in either checkout: as many steps as each line asks for."""
    from s2rm_data.models import Batch, build
    from s2rm_data.training import machine
    from s2rm_data.training.config import TrainConfig
    from s2rm_data.training.processes import Processes
    from s2rm_data.training.stepper import Stepper, make_optimiser

    saved = torch.load(path, weights_only=False)
    fields = {
        name: value for name, value in saved["fields"].items() if name != "task" and (name, value) != ("skip", False)
    }
    machine.set_up(torch.device("cpu"), 1)
    model = build(saved["model"], saved["task"], **fields)
    model.load_state_dict(saved["weights"])
    common = {"task": saved["task"], "model": saved["model"], "preset": "laptop", "model_fields": fields}
    config = TrainConfig(**common, clip_norm=saved["clip"])
    stepper = Stepper(model, make_optimiser(model, config), config, Processes())
    known = {field.name for field in dataclasses.fields(Batch)}
    batches = []
    for values in saved["batches"]:
        targets = collections.namedtuple("Targets", values["targets"])(**values["targets"])
        batches.append(Batch(**{name: value for name, value in values.items() if name in known} | {"targets": targets}))
    rounds = itertools.cycle(batches)
    print("ready", flush=True)
    for line in sys.stdin:
        begun = time.process_time()
        losses = [float(stepper(next(rounds), 1e-3)[0]) for _ in range(int(line))]
        print(1e3 * (time.process_time() - begun) / len(losses), *losses, flush=True)


class Side:
    def __init__(self, checkout: Path, path: Path) -> None:
        python = checkout / ".venv" / "bin" / "python"
        command = [str(python), str(Path(__file__).resolve()), "--serve", str(path)]
        self.process: Any = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.milliseconds: list[float] = []
        self.losses: list[float] = []

    def turn(self) -> None:
        self.process.stdin.write(f"{PER_TURN}\n")
        self.process.stdin.flush()
        milliseconds, *losses = (float(word) for word in self.process.stdout.readline().split())
        self.milliseconds.append(milliseconds)
        self.losses += losses


def duel(options: argparse.Namespace, task: str, folder: Path) -> None:
    path = prepare(task, options.model, options.set if task == options.task else [], folder)
    sides = [Side(checkout, path) for checkout in (options.other, Path(__file__).resolve().parents[1])]
    for _ in range(options.turns + 1):  # the first warms up
        for side in sides:
            side.turn()
    other, own = (sorted(side.milliseconds[1:]) for side in sides)
    middle = len(own) // 2
    apart = [abs(a - b) / abs(b) for a, b in zip(*(side.losses for side in sides), strict=True)]
    print(
        f"{task} {options.model}: {other[0]:.1f} -> {own[0]:.1f} ms of processor time (least), ratio "
        f"{other[0] / own[0]:.2f}; of the middle ones {other[middle] / own[middle]:.2f}; losses differ by "
        f"{apart[0]:.0e} at the first step, {apart[9]:.0e} at the tenth"
    )
    for side in sides:
        side.process.stdin.close()
        side.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--task", choices=("bballs", "sc2"))
    parser.add_argument("--model", default="s2gru")
    parser.add_argument("--set", action="append", default=[], help="as of s2rm-train; needs --task")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        for task in [options.task] if options.task else ["bballs", "sc2"]:
            duel(options, task, Path(folder))


if __name__ == "__main__":
    main()
