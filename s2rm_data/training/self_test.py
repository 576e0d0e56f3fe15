"""Does training work on this machine? Compiling, CUDA graphs, precision, resuming and two processes, each checked by a
few real steps against something that must give the same.

Nothing here is measured against a clock. What the machine cannot do is skipped, with the reason."""

import contextlib
import copy
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from s2rm_data.core.errors import S2RMError, S2RMWarning
from s2rm_data.core.machine import child_environment
from s2rm_data.core.registry import MODELS
from s2rm_data.learning import FixedBatches, TrainingBatches
from s2rm_data.models.embedding import spherical_kernel
from s2rm_data.store import Store
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.data import RunData
from s2rm_data.training.folder import read_log
from s2rm_data.training.listener import Listener, Validated
from s2rm_data.training.machine import environment, set_up
from s2rm_data.training.processes import Processes
from s2rm_data.training.protocol import RunOptions, Session
from s2rm_data.training.resolve import Overrides, resolve
from s2rm_data.training.scores import validate
from s2rm_data.training.stepper import Stepper, make_optimiser

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
STEPS = 3
COMPILED_RTOL, PROCESSES_RTOL, MIXED_RTOL = 1e-3, 1e-4, 0.02
KERNEL_ERROR = 1e-5  # TF32 would give 1e-3
TIMEOUT_SECONDS = 600.0  # for one command that the test starts


@dataclass(frozen=True, kw_only=True)
class Check:
    name: str
    verdict: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A small run of `model` on a store, in a folder that may be filled."""

    store: Store
    config: TrainConfig
    folder: Path

    @property
    def device(self) -> torch.device:
        return torch.device(self.config.device)

    def stepper(self, **fields: Any) -> tuple[Stepper, RunData]:
        config = replace(self.config, **fields)
        data = RunData(self.store, config)
        torch.manual_seed(0)
        model = data.build_model().to(self.device)
        return Stepper(model, make_optimiser(model, config), config, Processes(alone=True)), data

    def losses(self, *, compiled: bool = False, **fields: Any) -> Tensor:
        """(STEPS, 2) losses and norms; a compiler that fails raises here."""
        stepper, data = self.stepper(**fields)
        if compiled:
            stepper.compile()
        batches = TrainingBatches(data.train, batch_size=self.config.batch_size, seed=0)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)
            warnings.filterwarnings("error", category=S2RMWarning)
            per_epoch = batches.steps_per_epoch
            return torch.stack([stepper(batches.batch(*divmod(n, per_epoch)), 1e-3) for n in range(STEPS)]).cpu()


def bench_for(store: Store, folder: Path, task: str | None, model: str | None, device: str | None) -> Bench:
    fields = {"steps": 6, "validate_every": 3, "held_out_sequences": 2, "window": 4, "precision": "float32"}
    overrides = Overrides(task=task, model=model, preset="smoke", device=device, fields={**fields, "compile": False})
    return Bench(store=store, config=resolve(store, overrides, lambda text: None), folder=folder)


def self_test(bench: Bench) -> Iterator[Check]:
    """One check after the other, each as soon as it is done."""
    set_up(bench.device, bench.config.threads)
    checks: dict[str, Any] = {"device": _device, "training": _training, "compile": _compile, "CUDA graphs": _graphs}
    checks |= {"kernel precision": _kernel, "mixed precision": _mixed}
    checks |= {"resume": _resume, "two processes": _two_processes}
    for name, check in checks.items():
        try:
            verdict, detail = check(bench)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the test is to find
            verdict, detail = FAILED, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]}"
        yield Check(name=name, verdict=verdict, detail=detail)


def _device(bench: Bench) -> tuple[str, str]:
    found = environment(bench.device)
    if bench.device.type == "cpu":
        return OK, f"{found['processor'] or 'processor'}, {found['cores']} cores, torch {torch.__version__}"
    major, minor = torch.cuda.get_device_capability(bench.device)
    made_for = torch.cuda.get_arch_list()
    detail = f"{found['device']}, compute capability {major}.{minor}, torch {torch.__version__}, CUDA {found['cuda']}"
    numbers = [int(digits) for name in made_for if (digits := name.removeprefix("sm_").rstrip("af")).isdecimal()]
    if numbers and 10 * major + minor < min(numbers):
        return FAILED, f"{detail}; this torch is made for {', '.join(made_for)}: install one for older cards"
    return OK, detail


def _training(bench: Bench) -> tuple[str, str]:
    found = bench.losses()
    finite = bool(torch.isfinite(found).all())
    return (OK if finite else FAILED), f"losses {', '.join(f'{loss:.4f}' for loss in found[:, 0].tolist())}"


def _compile(bench: Bench) -> tuple[str, str]:
    """All models on a GPU; on a CPU, where nobody trains like that and compiling is slow, the one asked for."""
    models = [bench.config.model] if bench.device.type == "cpu" else MODELS.names()
    worst = 0.0
    for model in models:
        overrides = Overrides(task=bench.config.task, model=model, preset="smoke", device=bench.config.device)
        fields = resolve(bench.store, overrides, lambda text: None).model_fields
        own = replace(bench, config=replace(bench.config, model=model, model_fields=fields))
        torch.compiler.reset()
        worst = max(worst, _apart(own.losses(compiled=True), own.losses()))
    verdict = OK if worst <= COMPILED_RTOL else FAILED
    return verdict, f"{', '.join(models)}: losses differ from eager by {worst:.1g} (at most {COMPILED_RTOL:g})"


def _graphs(bench: Bench) -> tuple[str, str]:
    """Once every shape has been seen, validating again must record nothing more."""
    if bench.device.type != "cuda":
        return SKIPPED, "there is no GPU"
    stepper, data = bench.stepper()
    stepper.compile()
    batches = FixedBatches(data.validation, batch_size=bench.config.validation_batch_size)
    recorded = []
    for _ in range(4):  # the first warms up, the second records
        validate(stepper.model, data.learning, batches, stepper.processes)
        recorded.append(_recorded_graphs(bench.device))
    if None in recorded:
        return SKIPPED, "this torch does not tell how many graphs it has recorded"
    return (OK if recorded[-1] == recorded[-2] else FAILED), f"graphs recorded after each validation: {recorded}"


def _recorded_graphs(device: torch.device) -> int | None:
    try:
        from torch._inductor.cudagraph_trees import get_manager

        manager = get_manager(device.index or 0, create_if_none_exists=False)
        return 0 if manager is None else int(next(copy.copy(manager.graph_counter)))
    except (ImportError, AttributeError, TypeError):
        return None


def _kernel(bench: Bench) -> tuple[str, str]:
    """Z against double precision, while the process allows less in other products."""
    torch.manual_seed(0)
    p, s = (torch.nn.functional.normalize(torch.randn(200, 16, dtype=torch.float64), dim=-1) for _ in range(2))
    sizes = {"bandwidth": 1.0, "truncation": -1.0}
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        found = spherical_kernel(p.float().to(bench.device), s.float().to(bench.device), **sizes)
    finally:
        torch.set_float32_matmul_precision(before)
    error = float((found.double().cpu() - spherical_kernel(p, s, **sizes)).abs().max())
    return (OK if error <= KERNEL_ERROR else FAILED), f"largest error {error:.1g} (at most {KERNEL_ERROR:g})"


def _mixed(bench: Bench) -> tuple[str, str]:
    if bench.device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return SKIPPED, "the card has no bfloat16 (from Ampere on, compute capability 8.0); runs use float32"
    apart = _apart(bench.losses(precision="mixed")[:, 0], bench.losses()[:, 0])
    verdict = OK if apart <= MIXED_RTOL else FAILED
    return verdict, f"losses differ from float32 by {apart:.1g} (at most {MIXED_RTOL:g})"


class _Stopped(BaseException):
    """Stands for a kill."""


class _StopAtTheEnd(Listener):
    """In the last validation, before its checkpoint."""

    def __init__(self, steps: int | None) -> None:
        self.steps = steps

    def validated(self, result: Validated) -> None:
        if result.step == self.steps:
            raise _Stopped


def _resume(bench: Bench) -> tuple[str, str]:
    """A run that is stopped within a step, and resumed, has the log of one that is not."""
    whole, stopped = (bench.folder / name for name in ("whole", "stopped"))
    Session().train(bench.config, bench.store, RunOptions(out=whole))
    with contextlib.suppress(_Stopped):
        Session(_StopAtTheEnd(bench.config.steps)).train(bench.config, bench.store, RunOptions(out=stopped))
    Session().train(bench.config, bench.store, RunOptions(out=stopped, resume=True))
    logs = [_logged(folder) for folder in (whole, stopped)]
    if len(logs[0]) != len(logs[1]):
        return FAILED, f"{len(logs[0])} records without and {len(logs[1])} with an interruption"
    apart = _apart(*(torch.tensor(log) for log in logs))
    exact = bench.device.type == "cpu"
    verdict = OK if apart <= (0 if exact else COMPILED_RTOL) else FAILED
    return verdict, "the same log, number for number" if apart == 0 else f"losses differ by {apart:.1g}"


def _two_processes(bench: Bench) -> tuple[str, str]:
    """Losses of two processes against those of one."""
    if not torch.distributed.is_available():
        return SKIPPED, "this torch is built without torch.distributed"
    device = "cuda" if bench.device.type == "cuda" and torch.cuda.device_count() > 1 else "cpu"
    words = ["--store", str(bench.store.path), "--task", bench.config.task, "--model", bench.config.model]
    words += ["--preset", "smoke", "--device", device, "--steps", "4", "-q", "--overwrite"]
    fields = {"compile": "false", "precision": "float32", "threads": "1", "held_out_sequences": "2"}
    words += [word for name, value in fields.items() for word in ("--set", f"{name}={value}")]
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    logs = []
    for name, before in (("one", []), ("two", torchrun)):
        out = bench.folder / name
        _run(["-m", *before, "s2rm_data.cli.train", *words, "--out", str(out)])
        logs.append(torch.tensor(_logged(out)))
    apart = _apart(logs[1], logs[0])
    where = "two GPUs" if device == "cuda" else "two processes on the CPU"
    note = "" if device == bench.device.type else "; two GPUs are not here"
    return (OK if apart <= PROCESSES_RTOL else FAILED), f"{where}: losses differ from one by {apart:.1g}{note}"


def _run(words: list[str]) -> None:
    options = {"capture_output": True, "text": True, "timeout": TIMEOUT_SECONDS, "env": child_environment()}
    done = subprocess.run([sys.executable, *words], check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise S2RMError(f"the command ended with status {done.returncode}: {lines[-1] if lines else 'no message'}")


def _logged(folder: Path) -> list[float]:
    return [record["loss"] for record in read_log(folder / "log.jsonl") if "loss" in record]


def _apart(a: Tensor, b: Tensor) -> float:
    """The largest relative difference; not a number is infinitely far from anything."""
    apart = ((a.double() - b.double()).abs() / b.double().abs().clamp(min=1e-12)).max()
    return float(apart) if torch.isfinite(apart) else float("inf")
