"""RIMs: against a block-by-block transcription of Goyal et al. (2019), and what inactive blocks may not do."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from s2rm_data.models import build


@pytest.fixture(params=[False, True], ids=["reads kept states", "reads updated states"])
def model(small, request):
    fields = small("rims", "bballs", active_blocks=2, read_updated=request.param)
    return build("rims", task="bballs", **fields).double()


def random_state(model, batch_size):
    state = model.initial_state(batch_size)
    return type(state)(*(torch.randn_like(part).tanh() for part in state))


def literal_step(model, r, h, c):
    """One step of one sequence: r (E,), h and c (N, H); returns h', c' and the set of active blocks."""
    config, lstm = model.rims_config, model.lstm
    blocks = range(config.blocks)
    inputs = torch.stack([torch.zeros_like(r), r])  # null first
    keys, values = inputs @ model.input_key, inputs @ model.input_value
    attention = torch.stack([(h[n] @ model.input_query[n]) @ keys.T for n in blocks]) / config.input_key_size**0.5
    attention = attention.softmax(-1)
    active = set(sorted(blocks, key=lambda n: attention[n, 0].item())[: config.active_blocks])
    updated_h, updated_c = h.clone(), c.clone()
    for n in blocks:
        gates = (attention[n] @ values) @ lstm.weight_input[n] + h[n] @ lstm.weight_hidden[n] + lstm.bias[n, 0]
        i, f, o, g = gates.chunk(4)
        updated_c[n] = f.sigmoid() * c[n] + i.sigmoid() * g.tanh()
        updated_h[n] = o.sigmoid() * updated_c[n].tanh()
    new_h = torch.stack([updated_h[n] if n in active else h[n] for n in blocks])
    new_c = torch.stack([updated_c[n] if n in active else c[n] for n in blocks])
    seen = updated_h if config.read_updated else new_h
    keys = config.comm_heads * config.comm_key_size
    projected = [(seen[n] @ model.comm[n]).split([keys, keys, config.comm_heads * h.shape[1]]) for n in blocks]
    q, k, v = (torch.stack([p[i].view(config.comm_heads, -1) for p in projected]) for i in range(3))
    read = new_h.clone()
    for n in active:
        for head in range(config.comm_heads):
            weight = torch.softmax(k[:, head] @ q[n, head] / config.comm_key_size**0.5, 0)
            read[n] = read[n] + weight @ v[:, head]
    return read, new_c, active


def test_a_step_agrees_with_its_definition_block_by_block(model):
    state = random_state(model, 3)
    r = torch.randn(1, 3, model.config.encoding_size, dtype=torch.float64)
    (encoded,) = model.project(r)
    after = model.step(encoded, state)
    for n in range(3):
        h, c, _ = literal_step(model, r[0, n], state.h[n], state.c[n])
        torch.testing.assert_close(after.h[n], h, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(after.c[n], c, rtol=1e-9, atol=1e-9)


def test_what_is_read_of_inactive_blocks_matters_to_active_ones_alone(model):
    config = dataclasses.replace(model.rims_config, read_updated=not model.rims_config.read_updated)
    other = type(model)(config).double()
    other.load_state_dict(model.state_dict())
    state = random_state(model, 3)
    r = torch.randn(1, 3, model.config.encoding_size, dtype=torch.float64)
    mine, theirs = (m.step(m.project(r)[0], state) for m in (model, other))
    for n in range(3):
        _, _, active = literal_step(model, r[0, n], state.h[n], state.c[n])
        differ = {b for b in range(6) if not torch.equal(mine.h[n, b], theirs.h[n, b])}
        assert differ == active
    assert torch.equal(mine.c, theirs.c)


def test_inactive_blocks_keep_their_state(model):
    state = random_state(model, 2)
    r = torch.randn(1, 2, model.config.encoding_size, dtype=torch.float64)
    after = model.step(model.project(r)[0], state)
    for n in range(2):
        _, _, active = literal_step(model, r[0, n], state.h[n], state.c[n])
        kept = {b for b in range(6) if torch.equal(after.h[n, b], state.h[n, b])}
        assert kept == set(range(6)) - active
        assert kept == {b for b in range(6) if torch.equal(after.c[n, b], state.c[n, b])}


def test_weights_of_inactive_blocks_get_no_gradient(model):
    state = random_state(model, 1)
    r = torch.randn(1, 1, model.config.encoding_size, dtype=torch.float64)
    _, _, active = literal_step(model, r[0, 0], state.h[0], state.c[0])
    model.step(model.project(r)[0], state).h.square().sum().backward()
    of_blocks = [model.lstm.weight_input, model.lstm.weight_hidden, model.lstm.bias, model.input_query, model.comm]
    for block in range(6):
        touched = [bool((weight.grad[block] != 0).any()) for weight in of_blocks]
        assert touched == [block in active] * len(of_blocks)


def test_the_blocks_with_most_attention_on_the_input_are_active(model):
    attention = torch.rand(6, 5, 1)
    active = model.active(attention)
    for n in range(5):
        assert set(active[:, n, 0].nonzero().flatten().tolist()) == set(attention[:, n, 0].topk(2).indices.tolist())


def test_blocks_start_with_different_weights_and_a_zero_state(model):
    assert not torch.equal(model.lstm.weight_input[0], model.lstm.weight_input[1])
    assert all((part == 0).all() for part in model.initial_state(2))
