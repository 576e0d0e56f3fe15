"""The Relational Memory Core against its published definition (Santoro et al. 2018), in loops."""

from __future__ import annotations

import pytest
import torch

from s2rm_data.models import build
from s2rm_data.models.modules import PLAIN, RelationalMemory


def linear(layer, module, x):
    return x @ layer.weight[module] + layer.bias[module, 0]


def layer_norm(layer, module, x):
    """Over the features of one row."""
    centred = x - x.mean()
    return centred / (x.var(unbiased=False) + 1e-5).sqrt() * layer.gain[module, 0] + layer.bias[module, 0]


def literal_memory(core, module, u, memory, *rows):
    """One sequence and module: u (D,), memory (S, F), further rows (F,) -> memory at t + 1."""
    x = linear(core.input, module, u)
    rows = [*memory, x, *rows]
    sizes = [core.key_size, core.key_size, core.head_size]
    qkv = [layer_norm(core.qkv_norm, module, linear(core.qkv, module, row)).view(core.heads, -1) for row in rows]
    new = []
    for mine, row in zip(qkv, rows, strict=True):
        heads = []
        for k in range(core.heads):
            q = mine[k].split(sizes)[0] * core.key_size**-0.5
            weights = torch.softmax(torch.stack([q @ other[k].split(sizes)[1] for other in qkv]), 0)
            heads.append(sum(w * other[k].split(sizes)[2] for w, other in zip(weights, qkv, strict=True)))
        y = layer_norm(core.attention_norm, module, row + torch.cat(heads))
        mlp = linear(core.mlp2, module, torch.relu(linear(core.mlp1, module, y)))
        new.append(layer_norm(core.mlp_norm, module, y + mlp))
    after = []
    for slot, attended in zip(memory, new, strict=False):
        gates = linear(core.gate_input, module, x) + linear(core.gate_memory, module, torch.tanh(slot))
        i, f = gates.sigmoid().chunk(2)
        after.append(i * torch.tanh(attended) + f * slot)
    return torch.stack(after)


@pytest.mark.parametrize(("modules", "slots", "key_size"), [(1, 1, 4), (1, 3, 2), (4, 3, 4)])
def test_a_step_agrees_with_the_published_definition(modules, slots, key_size):
    core = RelationalMemory(modules, input_size=5, slots=slots, heads=2, head_size=4, key_size=key_size).double()
    for parameter in core.parameters():
        torch.nn.init.normal_(parameter)
    u = torch.randn(modules, 3, 5, dtype=torch.float64)
    memory = torch.randn(modules, 3, slots, 8, dtype=torch.float64)
    extra = torch.randn(modules, 3, 8, dtype=torch.float64)
    x, gates = core.project(u)
    plain = core(x.unsqueeze(2), gates, memory)
    with_extra = core(torch.stack([x, extra], 2), gates, memory)
    for m in range(modules):
        for n in range(3):
            torch.testing.assert_close(plain[m, n], literal_memory(core, m, u[m, n], memory[m, n]))
            literal = literal_memory(core, m, u[m, n], memory[m, n], extra[m, n])
            torch.testing.assert_close(with_extra[m, n], literal)


def test_the_memory_starts_as_a_padded_identity():
    core = RelationalMemory(2, input_size=5, slots=3, heads=2, head_size=4, key_size=4)
    memory = core.initial_memory(2)
    assert memory.shape == (2, 2, 3, 8)
    assert torch.equal(memory[1, 1], torch.eye(3, 8))


def test_the_forget_gate_starts_open_and_the_input_gate_undecided():
    core = RelationalMemory(1, input_size=5, slots=1, heads=4, head_size=128, key_size=16)
    input_bias, forget_bias = core.gate_input.bias.flatten().chunk(2)
    assert input_bias.mean().abs() < 0.05
    assert (forget_bias.mean() - 1).abs() < 0.05


def test_the_two_mlp_layers_have_their_own_weights():
    core = RelationalMemory(1, input_size=5, slots=1, heads=2, head_size=4, key_size=4)
    assert core.mlp1 is not core.mlp2 and not torch.equal(core.mlp1.weight, core.mlp2.weight)


def test_s2rmc_attends_over_memory_input_and_aggregated_message(small):
    model = build("s2rmc", task="bballs", **small("s2rmc", "bballs")).double()
    modules = model.config.modules
    u, h_bar = torch.randn(2, modules, 1, 24, dtype=torch.float64).unbind(0)
    state = model.initial_state(1)
    after = model.cell(u, h_bar, state, PLAIN)
    for m in range(modules):
        row = linear(model.h_bar_row, m, h_bar[m, 0])
        memory = literal_memory(model.memory, m, u[m, 0], state.memory[0, m], row)
        torch.testing.assert_close(after.memory[0, m], memory)
        torch.testing.assert_close(after.h[0, m], linear(model.message, m, memory.flatten()))
