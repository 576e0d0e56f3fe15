"""Time and kernels of a training step of every model on every world, against a plain reference.

    python benchmarks/models.py [--quick] [--threads 1] [--model s2gru] [--task bballs]

The plain reference is written as the paper reads: step by step it encodes the views, then module by module attends,
with one einsum per equation, and runs its cell (tests/support/reference_s2gru.py), then decodes the queries; positions
are concatenated to feature maps, images grow by transposed convolutions. What modules share is computed once per step.
It shares the model's parameters, and its loss and all gradients are asserted equal to the model's, in double precision,
before anything is timed. LSTM, RMC, RIMs and TTO have no loop over modules to compare with: their reference is the
model's own cell, fed step by step.

Both run under the allocator settings that `s2rm-train` applies: without them glibc maps large buffers anew every step.

- step: forward, loss and backward of one batch, least CPU time of several (ms).
- encoder, recurrence, decoder: the same, of that part alone, as shares of their sum.
- x step, x recurrence: the plain reference's time over the model's.
- kernels: operators that compute (views, allocations and wrappers left out) per time step, forward and backward,
  counted by the profiler as the slope between windows of 4 and 12 steps. On a GPU each is at least one launch.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from s2rm_data.core.registry import MODELS
from s2rm_data.generators.bballs.learning.ball_crops import BallTargets
from s2rm_data.generators.sc2.learning.battle_scores import PolarTargets, polar_views
from s2rm_data.models import Batch, WorldModel, build
from s2rm_data.models.codecs.conv import Conv, ConvDecoder, ConvEncoder, Grow, PositionMap
from s2rm_data.training.machine import tune_allocator

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
import reference_s2gru
from reference_s2gru import cell_attention, input_attention, output_attention

# --- batches: B sequences, T steps, V views, Q queries -----------------------------------------------------------


def bballs_batch(B: int, T: int, V: int) -> Batch:
    views = (torch.rand(B, T, V, 1, 11, 11) < 0.1).float()
    positions = torch.randint(0, 48, (2, B, T, V, 2)).float()
    return _batch(views, positions, BallTargets((torch.rand(B, T, V, 1, 11, 11) < 0.1).float()))


def sc2_batch(B: int, T: int, V: int, size: tuple[int, int] = (16, 48)) -> Batch:
    unit = torch.randint(0, 10, (2, B, T, V, *size)) * (torch.rand(2, B, T, V, *size) < 0.05)
    hecs = torch.rand(2, B, T, V, 4, *size) * (unit > 0).unsqueeze(-3)
    views = polar_views(unit[0] > 3, unit[0], hecs[0], torch.rand(unit[0].shape), unit[0] % 9)
    return _batch(views, torch.rand(2, B, T, V, 2) * 32, PolarTargets(unit[1] > 3, unit[1], hecs[1]))


def _batch(views: Tensor, positions: Tensor, targets: Any) -> Batch:
    mask = torch.rand(views.shape[:3]) < 0.9
    return Batch(
        views=views,
        view_position=positions[0],
        view_mask=mask,
        query_position=positions[1],
        query_mask=torch.ones_like(mask),
        targets=targets,
        next_views=views,
        next_view_position=positions[0],
        next_view_mask=mask,
    )


# --- the plain reference -----------------------------------------------------------------------------------------


def plain_conv(layer: Conv, x: Tensor, position: PositionMap | None = None, s: Tensor | None = None) -> Tensor:
    weight = layer.weight
    if position is not None and s is not None:
        x = torch.cat([x, (s * s.shape[-1] ** 0.5)[:, :, None, None].expand(-1, -1, *x.shape[2:])], 1)
        weight = torch.cat([weight, position.weight], 1)
    if layer.polar:
        return F.conv2d(F.pad(x, (1, 1, 0, 0), mode="circular"), weight, layer.bias, layer.stride, (1, 0))
    return F.conv2d(x, weight, layer.bias, layer.stride, 1)


def plain_grow(layer: Grow, x: Tensor) -> Tensor:
    (fh, fw), channels = layer.factors, layer.channels_out
    weight = layer.weight.view(fh, fw, channels, -1).permute(3, 2, 0, 1)
    return F.conv_transpose2d(x, weight, layer.bias, stride=(fh, fw))


def plain_encoder(encoder: ConvEncoder, x: Tensor, s: Tensor) -> Tensor:
    x = plain_conv(encoder.conv2, plain_conv(encoder.conv1, x).relu()).relu()
    y = plain_conv(encoder.conv3, x, encoder.position, s).relu()
    x = (x + plain_conv(encoder.conv4, y)).relu()
    x = plain_conv(encoder.conv5, x).relu()
    x = (x + plain_conv(encoder.conv6, x)).relu()
    return encoder.linear(x.permute(0, 2, 3, 1).flatten(1))


def plain_decoder(decoder: ConvDecoder, hidden: Tensor, s: Tensor) -> Tensor:
    x = decoder.linear1(hidden).relu().view(-1, *decoder.base, decoder.width).permute(0, 3, 1, 2)
    x = plain_conv(decoder.conv2, x, decoder.position, s).relu()
    x = (x + plain_conv(decoder.conv4, plain_conv(decoder.conv3, x).relu())).relu()
    x = plain_grow(decoder.grow5, x).relu()
    x = (x + plain_conv(decoder.conv6, x)).relu()
    return plain_grow(decoder.grow7, x)[..., : decoder.image_size[0], : decoder.image_size[1]]


def plain_s2rmc(model: Any, modules: Any, e: Tensor, s: Tensor, mask: Tensor, state: Any) -> Any:
    memories, messages = [], []
    inputs = zip(input_attention(model, e, s, mask, state.h), cell_attention(model, state.h), strict=True)
    for m, (u, h_bar) in enumerate(inputs):
        layers = modules[m]
        row = affine(h_bar, *layers["h_bar_row"])
        memories.append(plain_rmc(model.memory, layers, u, state.memory[:, m], row))
        messages.append(affine(memories[-1].flatten(1), *layers["message"]))
    return type(state)(torch.stack(memories, 1), torch.stack(messages, 1))


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x @ weight + bias[0]


def plain_rmc(core: Any, layers: dict[str, Any], u: Tensor, memory: Tensor, *rows: Tensor) -> Tensor:
    x = affine(u, *layers["memory.input"])
    all_rows = torch.cat([memory, *(row[:, None] for row in (x, *rows))], 1)

    def norm(name: str, y: Tensor) -> Tensor:
        gain, bias = layers[name]
        return F.layer_norm(y, y.shape[-1:], gain[0], bias[0])

    qkv = norm("memory.qkv_norm", affine(all_rows, *layers["memory.qkv"])).unflatten(-1, (core.heads, -1))
    q, k, v = qkv.split([core.key_size, core.key_size, core.head_size], -1)
    attention = (torch.einsum("bxhd,byhd->bhxy", q, k) * core.key_size**-0.5).softmax(-1)
    y = norm("memory.attention_norm", all_rows + torch.einsum("bhxy,byhd->bxhd", attention, v).flatten(2))
    mlp = affine(affine(y, *layers["memory.mlp1"]).relu(), *layers["memory.mlp2"])
    y = norm("memory.mlp_norm", y + mlp)[:, : memory.shape[1]]
    gates = affine(x, *layers["memory.gate_input"])[:, None] + affine(memory.tanh(), *layers["memory.gate_memory"])
    i, f = gates.sigmoid().chunk(2, -1)
    return i * y.tanh() + f * memory


def split_modules(model: Any) -> Any:
    """Each module's weights, as a list of cells would keep them; split once per window."""
    if type(model).__name__ == "S2GRU":
        return reference_s2gru.cells(model)
    if type(model).__name__ == "S2RMC":
        named = {name: layer for name, layer in model.named_modules() if type(layer).__name__.startswith("Module")}
        split = {name: [p.unbind(0) for p in layer.parameters()] for name, layer in named.items()}
        count = model.config.modules
        return [{name: [p[m] for p in parts] for name, parts in split.items()} for m in range(count)]
    return None


def plain_step(model: Any, modules: Any, e: Tensor, s: Tensor, mask: Tensor, state: Any) -> Any:
    """One step from (B, V, ...): a Python loop over modules where there are any, else the model's own cell."""
    name = type(model).__name__
    if name == "S2GRU":
        return reference_s2gru.step(model, modules, e, s, mask, state, model.hidden_limit)
    if name == "S2RMC":
        return plain_s2rmc(model, modules, e, s, mask, state)
    (encoded,) = model.prepare(e[:, None], s[:, None], mask[:, None])
    return model.step(encoded, state)


def plain_forward(model: Any, batch: Batch) -> Any:
    views = (batch.views, batch.view_position, batch.view_mask)
    if model.needs_next_views:
        views = (batch.next_views, batch.next_view_position, batch.next_view_mask)
    state, modules = model.initial_state(len(batch.views)), split_modules(model)
    images = []
    for t in range(batch.views.shape[1]):
        view, position, mask = (x[:, t] for x in views)
        s = model.embedding(position)
        e = plain_encoder(model.encoder, view.flatten(0, 1), s.flatten(0, 1)).unflatten(0, view.shape[:2])
        state = plain_step(model, modules, torch.where(mask[..., None], e, 0.0), s, mask, state)
        images.append(plain_decode(model, model.hidden(state), batch.query_position[:, t]))
    return torch.stack(images, 1)


def plain_decode(model: Any, hidden: Tensor, position: Tensor) -> Tensor:
    s = model.embedding(position)
    if hasattr(model, "module_embedding"):
        d = output_attention(model, s, hidden)
    else:
        d = hidden[:, None].expand(-1, s.shape[1], -1)
    return plain_decoder(model.decoder, d.flatten(0, 1), s.flatten(0, 1)).unflatten(0, s.shape[:2])


def plain_loss(model: Any, batch: Batch) -> Tensor:
    image = plain_forward(model, batch)
    if model.config.task == "bballs":
        return F.binary_cross_entropy_with_logits(image, batch.targets.crop)
    targets = batch.targets
    friendly = F.binary_cross_entropy_with_logits(image[:, :, :, 0], targets.friendly.to(image.dtype))
    unit_type = F.cross_entropy(image[:, :, :, 1:11].flatten(0, 2), targets.unit_type.flatten(0, 2))
    return friendly + unit_type + F.mse_loss(image[:, :, :, 11:], targets.hecs)


# --- measuring ---------------------------------------------------------------------------------------------------


def gradients(model: WorldModel, loss: Callable[[], Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    model.zero_grad()
    value = loss()
    value.backward()
    return value.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def doubled(batch: Batch) -> Batch:
    values = {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}
    wide = {name: x.double() for name, x in values.items() if isinstance(x, Tensor) and x.is_floating_point()}
    targets = type(batch.targets)(*(x.double() if x.is_floating_point() else x for x in batch.targets))
    return dataclasses.replace(batch, **wide, targets=targets)


def assert_equal(model: WorldModel, batch: Batch) -> float:
    """Loss and every gradient of model and reference; returns the largest gradient difference over its scale.

    In double precision: in single, a rounding that moves one unit across the kink of a ReLU shows in the gradients.
    """
    model, batch = copy.deepcopy(model).double(), doubled(batch)
    fast, plain = (
        gradients(model, lambda: model.loss(model(batch), batch)),
        gradients(model, lambda: plain_loss(model, batch)),
    )
    torch.testing.assert_close(fast[0], plain[0], rtol=1e-9, atol=1e-9)
    assert fast[1].keys() == plain[1].keys()
    worst = 0.0
    for name, gradient in plain[1].items():
        scale = gradient.abs().max().clamp(min=1e-12)
        difference = float((fast[1][name] - gradient).abs().max() / scale)
        assert difference < 1e-7, f"gradients of {name} differ by {difference:.1e} of their scale"
        worst = max(worst, difference)
    return worst


def best_ms(repeats: int, **functions: Callable[[], Any]) -> dict[str, float]:
    """Least CPU time of each, taking turns so that a busy machine favours none; the first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats + 1):
        for name, function in functions.items():
            start = time.process_time()
            function()
            times[name].append(time.process_time() - start)
    return {name: 1e3 * min(taken[1:]) for name, taken in times.items()}


def train(loss: Callable[[], Tensor]) -> Callable[[], None]:
    return lambda: loss().backward()


def parts(model: Any, batch: Batch, repeats: int) -> dict[str, float]:
    """Milliseconds of encoder, recurrence and decoder, and of the reference's recurrence, forward and backward."""
    s = model.embedding(batch.view_position)
    e = model.encode_views(batch.views, s, batch.view_position).detach().requires_grad_()

    def recur() -> Tensor:
        return model.unroll(model.prepare(e, s, batch.view_mask), model.initial_state(len(s)))[0]

    def plain_recur() -> Tensor:
        states, state, modules = [], model.initial_state(len(s)), split_modules(model)
        for t in range(s.shape[1]):
            present = torch.where(batch.view_mask[:, t, :, None], e[:, t], 0.0)
            state = plain_step(model, modules, present, s[:, t], batch.view_mask[:, t], state)
            states.append(model.hidden(state))
        return torch.stack(states, 1)

    hidden = recur().detach().requires_grad_()
    torch.testing.assert_close(plain_recur(), hidden, rtol=1e-4, atol=1e-5)
    return best_ms(
        repeats,
        encoder=train(lambda: model.encode_views(batch.views, s, batch.view_position).sum()),
        decoder=train(lambda: model.loss(model.decode_hidden(hidden, batch.query_position), batch)),
        recurrence=train(lambda: recur().sum()),
        plain_recurrence=train(lambda: plain_recur().sum()),
    )


# Operators that launch nothing, and those that only call others that are counted themselves.
FREE_NAMES = """
    view reshape _unsafe_view _reshape_alias transpose t permute expand expand_as unsqueeze squeeze select slice split
    split_with_sizes chunk unbind narrow detach detach_ as_strided alias unflatten flatten movedim empty empty_like
    empty_strided resize_ result_type lift_fresh
    matmul linear clone contiguous to _to_copy softmax einsum zeros zeros_like ones new_zeros new_ones new_empty
    repeat_interleave stack pad conv2d convolution layer_norm scaled_dot_product_attention
    _scaled_dot_product_attention_math concat
"""
FREE = frozenset(FREE_NAMES.split())


def kernels(model: WorldModel, batch: Batch) -> int:
    """Operators of one training step that compute something."""
    with profile(activities=[ProfilerActivity.CPU]) as trace:
        model.loss(model(batch), batch).backward()
    return sum(_kernels_under(event) for event in trace.events() if event.cpu_parent is None)


def _kernels_under(event: Any) -> int:
    if event.name.startswith("aten::") and event.name.removeprefix("aten::") not in FREE:
        return 1
    return sum(_kernels_under(child) for child in event.cpu_children)


def kernels_per_step(name: str, task: str) -> float:
    model = build(name, task, codec="mlp")  # as for the other codec, whose chunks would count as steps
    short, long = (make_batch(task, {"bballs": 32, "sc2": 8}[task], steps, 4) for steps in (4, 12))
    model.loss(model(short), short).backward()  # gradients exist from here on, as in the steps after the first
    return (kernels(model, long) - kernels(model, short)) / 8


def make_batch(task: str, B: int, T: int, V: int) -> Batch:
    return bballs_batch(B, T, V) if task == "bballs" else sc2_batch(B, T, V)


def measure(name: str, task: str, *, quick: bool) -> dict[str, Any]:
    torch.manual_seed(0)
    model = build(name, task)
    B, T, V = {"bballs": (32, 20, 10), "sc2": (8, 20, 9)}[task]  # the paper's batch sizes and views; 20-step windows
    batch = make_batch(task, B, 5 if quick else T, V)
    difference = assert_equal(model, make_batch(task, 2, 3, V))
    repeats = 1 if quick else 3
    row: dict[str, Any] = {"model": name, "task": task, "parameters": model.parameter_count()}
    row |= best_ms(
        repeats,
        step=train(lambda: model.loss(model(batch), batch)),
        plain=train(lambda: plain_loss(model, batch)),
    )
    row |= parts(model, batch, repeats)
    return row | {"kernels": kernels_per_step(name, task), "difference": difference}


HEADER = "model  task    parameters   step ms  encoder recurrence decoder  x step  x recurrence  kernels/t  |d grad|"


def line(row: dict[str, Any]) -> str:
    total = sum(row[part] for part in ("encoder", "recurrence", "decoder"))
    share = {part: 100 * row[part] / total for part in ("encoder", "recurrence", "decoder")}
    ratio = row["plain_recurrence"] / row["recurrence"]
    return (
        f"{row['model']:6} {row['task']:7} {row['parameters']:>10,} {row['step']:>9.0f} {share['encoder']:>7.0f}% "
        f"{share['recurrence']:>9.0f}% {share['decoder']:>6.0f}% {row['plain'] / row['step']:>7.2f} {ratio:>13.2f} "
        f"{row['kernels']:>10.0f} {row['difference']:>9.0e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5-step windows, one repeat")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", choices=MODELS.names())
    parser.add_argument("--task", choices=("bballs", "sc2"))
    arguments = parser.parse_args()
    tune_allocator()
    torch.set_num_threads(arguments.threads)
    print(HEADER)
    for name in [arguments.model] if arguments.model else MODELS.names():
        for task in [arguments.task] if arguments.task else ("bballs", "sc2"):
            print(line(measure(name, task, quick=arguments.quick)), flush=True)


if __name__ == "__main__":
    main()
