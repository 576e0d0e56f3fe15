"""All models and worlds through torch.compile with generated code (inductor), against eager training.

python benchmarks/compile.py                        # six models, both worlds; minutes on a CPU
python benchmarks/compile.py --task sc2 --model s2gru --device cuda

Prints the largest relative difference of losses and gradient norms over three steps, and how long compiling took; the
exit status is 1 if a difference exceeds 1e-3 or a compiler failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import torch

from s2rm_data.core.registry import MODELS
from s2rm_data.generators.bballs.making.ball_source import plan as plan_balls
from s2rm_data.generators.sc2.making.battle_source import plan as plan_battles
from s2rm_data.making.run import generate
from s2rm_data.store import Store
from s2rm_data.training.self_test import COMPILED_RTOL, bench_for


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=("bballs", "sc2"), action="append")
    parser.add_argument("--model", choices=MODELS.names(), action="append")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        battles = plan_battles(scenario=["2s3z"], train=8, val=2, radial=8, angular=16)
        generate([*plan_balls(balls=[3], train=8, val=2, test=0), *battles], folder / "data.zarr")
        for task in options.task or ("bballs", "sc2"):
            for model in options.model or MODELS.names():
                bench = bench_for(Store(folder / "data.zarr"), folder, task, model, options.device)
                torch.compiler.reset()
                eager, begun = bench.losses(), time.perf_counter()
                try:
                    apart = float(((bench.losses(compiled=True) - eager) / eager).abs().max())
                except Exception as error:  # noqa: BLE001 - whatever a compiler raises is the result
                    print(f"{task:<8}{model:<8}failed: {str(error).splitlines()[0]}", flush=True)
                    failed += 1
                    continue
                failed += not apart <= COMPILED_RTOL
                print(f"{task:<8}{model:<8}{apart:8.1g}  {time.perf_counter() - begun:6.1f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
