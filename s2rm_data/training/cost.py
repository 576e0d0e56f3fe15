"""What a run costs, before it starts: the memory it needs at least, and from a few real steps how long it will take."""

# B sequences, T steps, V views, Q queries, C channels, H x W an image

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from s2rm_data.core.errors import UsageError
from s2rm_data.core.machine import memory_nbytes as machine_memory
from s2rm_data.learning import FixedBatches, TrainingBatches
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.data import RunData
from s2rm_data.training.machine import set_up
from s2rm_data.training.processes import Processes
from s2rm_data.training.schedule import Stage, stages_of
from s2rm_data.training.scores import validate
from s2rm_data.training.stepper import Stepper, make_optimiser

WORTH_MEASURING = 64  # activations are measured if everything else takes more than this part of the memory


def memory_nbytes(device: torch.device) -> int:
    """What a run may take: a GPU's memory, or the machine's."""
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else machine_memory()


def check_memory(config: TrainConfig, data: RunData, processes: Processes | None = None) -> None:
    """Refuse a run whose model and share of a batch cannot fit into memory.
    A GPU is one process's own; a machine's memory is shared by the processes there."""
    device, processes = torch.device(config.device), processes or Processes(alone=True)
    limit = memory_nbytes(device)
    with torch.device("meta"):
        parameters = data.build_model().parameter_count()
    sharing = 1 if device.type == "cuda" else processes.local_count
    weights = sharing * 16 * parameters  # float32: weights, gradients, two moments
    sequences = sharing * min(config.batch_size, len(data.train)) // processes.count
    batch = sequences * _sequence_nbytes(config, data)
    if limit >= weights + batch > limit // WORTH_MEASURING:
        batch += sequences * _kept_nbytes(config, data)
    if weights + batch > limit:
        raise UsageError(
            f"the run needs at least {_gigabytes(weights + batch)} of memory ({_gigabytes(weights)} for {parameters:,} "
            f"parameters, {_gigabytes(batch)} for batches of {sequences:,} sequences), and there are "
            f"{_gigabytes(limit)}; use a smaller model, --batch-size or window"
        )


def _gigabytes(nbytes: int) -> str:
    return f"{nbytes / 1e9:,.1f} GB"


def _sequence_nbytes(config: TrainConfig, data: RunData) -> int:
    """Of the images of one sequence as float32, at the least."""
    learning, (height, width) = data.learning, data.train.image_size
    views, queries = (getattr(config, n) if n in learning.source_fields else 1 for n in ("views", "queries"))
    channels = views * learning.view_channels + queries * learning.output_channels
    return 4 * data.train.steps * channels * height * width


def _kept_nbytes(config: TrainConfig, data: RunData) -> int:
    """What the forward pass of one sequence keeps for the backward pass."""
    model = data.build_model()
    known = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    batch = TrainingBatches(data.train, batch_size=1, seed=config.seed).batch(0, 0).to("cpu")
    mixed = torch.autocast("cpu", dtype=torch.bfloat16, enabled=config.precision == "mixed")
    with mixed, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.loss(model(batch), batch)
    return sum(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in known)


TIMED_STEPS = 3


@dataclass(frozen=True, kw_only=True)
class Estimate:
    parameters: int
    steps: int
    steps_per_epoch: int
    seconds_per_step: float
    seconds: float  # of all steps and validations


def estimate(config: TrainConfig, data: RunData) -> Estimate:
    check_memory(config, data)
    device, processes = torch.device(config.device), Processes(alone=True)
    set_up(device, config.threads)
    torch.manual_seed(config.seed)
    model = data.build_model().to(device)
    stepper = Stepper(model, make_optimiser(model, config), config, processes)
    if config.compile:
        stepper.compile()
    stages = stages_of(config, data)
    per_epoch, total = stages[0].batches.steps_per_epoch, stages[-1].end
    training = sum((stage.end - stage.begin) * _seconds_per_step(stepper, stage, config.lr) for stage in stages)
    validations = total // (config.validate_every or per_epoch)
    begun = time.monotonic()
    few = FixedBatches(data.validation, batch_size=config.validation_batch_size)
    few._sequences = few._sequences[: config.validation_batch_size]
    validate(model, data.learning, few, processes, autocast=stepper.autocast)
    per_validation = (time.monotonic() - begun) * -(-len(data.validation) // config.validation_batch_size)
    seconds = {"seconds_per_step": training / total, "seconds": training + validations * per_validation}
    return Estimate(parameters=model.parameter_count(), steps=total, steps_per_epoch=per_epoch, **seconds)


def _seconds_per_step(stepper: Stepper, stage: Stage, lr: float) -> float:
    moments = []
    for step in range(1 + TIMED_STEPS):  # the first one allocates
        stepper(stage.batches.batch(*divmod(step, stage.batches.steps_per_epoch)), lr)
        if stepper.device.type == "cuda" and step in (0, TIMED_STEPS):
            torch.cuda.synchronize(stepper.device)
        moments.append(time.monotonic())
    return (moments[-1] - moments[0]) / TIMED_STEPS
