"""One step of training: compiled as eager, with and without a compiler that works, and without a device's numbers."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd

from s2rm_data.core.errors import S2RMWarning
from s2rm_data.core.registry import MODELS
from s2rm_data.learning import TrainingBatches, open_source
from s2rm_data.models import build
from s2rm_data.store import Store
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.data import RunData
from s2rm_data.training.processes import Processes
from s2rm_data.training.stepper import Stepper, make_optimiser

Backend = str | Callable[..., Any]


def stepper_of(store: Store, config: TrainConfig) -> tuple[Stepper, TrainingBatches]:
    torch.manual_seed(0)
    source = open_source(store, config.task, "train", steps=4, next_views=config.model == "tto")
    model = build(config.model, config.task, image_size=source.image_size, **config.model_fields)
    stepper = Stepper(model, make_optimiser(model, config), config, Processes())
    return stepper, TrainingBatches(source, batch_size=4, seed=0)


def losses(
    store: Store, config: TrainConfig, backend: Backend | None = None, precision: str = "float32", steps: int = 3
) -> torch.Tensor:
    stepper, batches = stepper_of(store, dataclasses.replace(config, precision=precision))
    if backend:
        stepper.compile(backend)
    found = torch.stack([stepper(batches.batch(0, step), 1e-3) for step in range(steps)])
    assert stepper.compiled is None or stepper.compiled.active
    return found


@pytest.fixture
def fresh_compiler() -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


# Backward passes are traced and taken apart as for a GPU; only the code generator is missing, which is slow and has the
# next test. benchmarks/compile.py has it for both worlds.
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore")  # of the compiler, about its own parts
@pytest.mark.parametrize("model", MODELS.names())
def test_parts_compile_without_breaks_and_give_the_same_losses(store: Store, tiny, model: str) -> None:
    config = tiny("bballs", model)
    torch.testing.assert_close(losses(store, config, "aot_eager"), losses(store, config))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 5  # step without and with gradient, codec


@pytest.fixture
def compiler_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this run of tests alone, and shared by its processes: models have most of their generated code in common."""
    mine = tmp_path_factory.getbasetemp()
    common = mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(common / "inductor"))


# A quarter of an hour of the processor's time for all six, most of it in a compiler of C++.
@pytest.mark.usefixtures("fresh_compiler", "compiler_cache")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.costs(100)
@pytest.mark.parametrize(
    "model", [pytest.param(name, marks=[pytest.mark.whole] * (name != "lstm")) for name in MODELS.names()]
)
def test_generated_code_gives_the_same_losses(store: Store, tiny, model: str) -> None:
    config = tiny("sc2", model)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=S2RMWarning)  # says why the compiler was given up
        compiled = losses(store, config, "inductor", steps=2)
    torch.testing.assert_close(compiled, losses(store, config, steps=2), rtol=1e-4, atol=1e-5)


def refuses(graph: Any, inputs: Any) -> Any:
    raise RuntimeError("no kernel image\nfor this device")


def fails_when_run(graph: Any, inputs: Any) -> Any:
    def run(*arguments: Any) -> Any:
        raise RuntimeError("no kernel image\nfor this device")

    return run


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(refuses, id="compiling"),
        pytest.param(fails_when_run, id="running"),
        pytest.param(aot_autograd(fw_compiler=lambda graph, inputs: graph, bw_compiler=refuses), id="backward"),
    ],
)
def test_a_compiler_that_fails_is_left_out_with_one_warning(store: Store, tiny, backend: Backend) -> None:
    config = tiny("bballs", "lstm")
    stepper, batches = stepper_of(store, config)
    stepper.compile(backend)
    with pytest.warns(S2RMWarning) as said:
        found = torch.stack([stepper(batches.batch(0, step), 1e-3) for step in range(3)])
    ours = [str(w.message) for w in said if issubclass(w.category, S2RMWarning)]
    assert len(ours) == 1
    assert "no kernel image" in ours[0]
    assert stepper.compiled is not None and not stepper.compiled.active
    torch.testing.assert_close(found, losses(store, config))


def test_an_error_that_is_not_the_compilers_is_raised(store: Store, tiny) -> None:
    stepper, batches = stepper_of(store, tiny("bballs", "lstm"))
    stepper.compile("eager")
    broken = dataclasses.replace(batches.batch(0, 0), targets=())
    with pytest.warns(S2RMWarning, match="torch.compile failed"), pytest.raises((AttributeError, TypeError)):
        stepper(broken, 1e-3)


def test_every_forward_pass_is_one_iteration_of_cuda_graphs(
    store: Store, tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of validation and of pictures, which would otherwise record graphs without end."""
    marks: list[int] = []
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: marks.append(1))
    stepper, batches = stepper_of(store, tiny("bballs", "lstm"))
    stepper.compile("eager")
    assert stepper.compiled is not None
    stepper.compiled._graphs = True  # as on a GPU
    batch = batches.batch(0, 0)
    stepper(batch, 1e-3)
    trained = len(marks)
    assert trained > 0
    with torch.no_grad():
        stepper.model(batch)
    assert len(marks) == trained + 1


def test_mixed_precision_is_close_to_full(store: Store, tiny) -> None:
    full, mixed = (losses(store, tiny(), precision=p) for p in ("float32", "mixed"))
    torch.testing.assert_close(mixed[:, 0], full[:, 0], rtol=0.02, atol=0)
    assert not torch.equal(mixed, full)


@pytest.mark.sample(1, each="model")
@pytest.mark.parametrize("task", ["bballs", "sc2"])
@pytest.mark.parametrize("model", MODELS.names())
def test_no_step_waits_for_the_devices_numbers(
    store: Store, tiny, monkeypatch: pytest.MonkeyPatch, model: str, task: str
) -> None:
    """On the meta device there are none: whatever looks at one fails, and nothing may be left on the CPU."""
    autocast = torch.autocast  # which does not know the meta device
    monkeypatch.setattr(torch, "autocast", lambda device, **fields: autocast(device.replace("meta", "cpu"), **fields))
    config = dataclasses.replace(tiny(task, model), device="meta")
    data = RunData(store, config)
    with torch.device("meta"):
        built = data.build_model()
    optimiser = torch.optim.Adam(built.parameters(), lr=1e-3, foreach=False)  # no fused one for this device
    stepper = Stepper(built, optimiser, config, Processes())
    batches = TrainingBatches(data.train, batch_size=config.batch_size, seed=0)
    for step in range(2):
        assert stepper(batches.batch(0, step), 1e-3).device.type == "meta"
    assert all(p.grad is not None and p.grad.device.type == "meta" for p in built.parameters())
    with torch.no_grad():
        batch = batches.batch(0, 0)
        counts = data.learning.count(data.train, built(batch), batch)
    assert {tensor.device.type for tensor in tensors_in(counts)} == {"meta"}


def tensors_in(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for part in value for tensor in tensors_in(part)] if isinstance(value, tuple) else []
