from __future__ import annotations

import pytest
import torch

from s2rm_data.loading import TrainingBatches, open_source
from s2rm_data.models import build, names
from s2rm_data.store import Store
from s2rm_data.training.processes import Processes
from s2rm_data.training.stepper import Stepper, compile_parts, make_optimiser


def losses(store: Store, config, *, compiled: bool, precision: str = "float32") -> torch.Tensor:
    import dataclasses

    config = dataclasses.replace(config, precision=precision)
    torch.manual_seed(0)
    source = open_source(store, config.task, "train", steps=4, next_views=config.model == "tto")
    batches = TrainingBatches(source, batch_size=4, seed=0)
    model = build(config.model, config.task, image_size=source.image_size, **config.model_fields)
    if compiled:
        compile_parts(model, torch.device("cpu"), backend="eager")
    stepper = Stepper(model, make_optimiser(model, config), config, Processes())
    return torch.stack([stepper(batches.batch(0, step), 1e-3) for step in range(3)])


@pytest.mark.filterwarnings("ignore")  # of the compiler, about its own parts
@pytest.mark.parametrize("model", names())
def test_parts_compile_without_breaks_and_give_the_same_losses(store: Store, tiny, model: str) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    config = tiny("bballs", model)
    torch.testing.assert_close(losses(store, config, compiled=True), losses(store, config, compiled=False))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 5  # step without and with gradient, codec


def test_mixed_precision_is_close_to_full(store: Store, tiny) -> None:
    full, mixed = (losses(store, tiny(), compiled=False, precision=p) for p in ("float32", "mixed"))
    torch.testing.assert_close(mixed[:, 0], full[:, 0], rtol=0.02, atol=0)
    assert not torch.equal(mixed, full)
