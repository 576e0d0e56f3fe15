"""How long a run will take, from a few real steps; nothing is written."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from s2rm_data.loading import FixedBatches
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.data import RunData
from s2rm_data.training.machine import set_up
from s2rm_data.training.memory import check_memory
from s2rm_data.training.processes import Processes
from s2rm_data.training.scores import validate
from s2rm_data.training.stages import Stage, stages_of
from s2rm_data.training.stepper import Stepper, make_optimiser

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
    device = torch.device(config.device)
    set_up(device, config.threads)
    processes = Processes(alone=True)
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
    return Estimate(
        parameters=model.parameter_count(),
        steps=total,
        steps_per_epoch=per_epoch,
        seconds_per_step=training / total,
        seconds=training + validations * per_validation,
    )


def _seconds_per_step(stepper: Stepper, stage: Stage, lr: float) -> float:
    batches, device = stage.batches, stepper.device
    stepper(batches.batch(0, 0), lr)  # the first one allocates
    _finish(device)
    begun = time.monotonic()
    for step in range(TIMED_STEPS):
        stepper(batches.batch(*divmod(step + 1, batches.steps_per_epoch)), lr)
    _finish(device)
    return (time.monotonic() - begun) / TIMED_STEPS


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
