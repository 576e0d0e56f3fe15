"""What every model promises on both tasks: order, number and absence of views, the state, learning, compiling."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
import torch

from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import MODELS
from s2rm_data.models import build
from s2rm_data.models.modules import PLAIN
from s2rm_data.models.world_model import own_of

EVERY = [(name, task) for name in MODELS.names() for task in ("bballs", "sc2")]
every_model = pytest.mark.parametrize(("name", "task"), EVERY)
RECURRENT = [name for name in MODELS.names() if name not in ("tto", "no_memory")]


@pytest.fixture
def model(name, task, small):
    return build(name, task=task, **small(name, task))


def views_of(batch, index):
    """The batch with its views (and next views) indexed along V."""
    parts = ("views", "view_position", "view_mask", "next_views", "next_view_position", "next_view_mask")
    return dataclasses.replace(batch, **{part: getattr(batch, part)[:, :, index] for part in parts})


def assert_same(first, second, **tolerance):
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a, b, **({"rtol": 1e-4, "atol": 1e-5} | tolerance))


@every_model
def test_predictions_have_the_shape_of_the_targets(model, make_batch, task):
    batch = make_batch(task, B=2, T=3, V=4, Q=5)
    prediction = model(batch)
    if task == "bballs":
        assert prediction.crop.shape == batch.targets.crop.shape
        assert ((prediction.probability() > 0) & (prediction.probability() < 1)).all()
    else:
        assert prediction.friendly.shape == batch.targets.friendly.shape
        assert prediction.unit_type.shape == (2, 3, 5, 10, 8, 12)
        assert prediction.hecs.shape == batch.targets.hecs.shape


@every_model
def test_the_order_of_views_changes_nothing(model, make_batch, task):
    batch = make_batch(task, V=5)
    assert_same(model(batch), model(views_of(batch, torch.randperm(5))))


@every_model
def test_dropped_views_equal_absent_views(model, make_batch, task):
    batch = make_batch(task, V=5)
    absent = views_of(batch, torch.tensor([0, 2]))
    mask = torch.zeros_like(batch.view_mask)
    mask[:, :, [0, 2]] = True
    garbage = torch.where(mask[..., None, None, None], batch.views, 1e3)
    dropped = dataclasses.replace(
        batch,
        view_mask=mask,
        next_view_mask=mask,
        views=garbage,
        next_views=torch.where(garbage == 1e3, 1e3, batch.next_views),
    )
    assert_same(model(absent), model(dropped))


@every_model
@pytest.mark.parametrize("views", [1, 30])
def test_any_number_of_views_and_queries_is_taken(model, make_batch, task, views):
    batch = make_batch(task, B=1, T=2, V=views, Q=views)
    loss = model.loss(model(batch), batch)
    loss.backward()
    assert loss.isfinite()


@every_model
def test_a_step_without_any_view_is_finite_and_so_are_its_gradients(model, make_batch, task):
    batch = make_batch(task)
    mask = batch.view_mask.clone()
    mask[0, 1] = False
    mask[1, 0] = False
    batch = dataclasses.replace(batch, view_mask=mask, next_view_mask=mask)
    model.loss(model(batch), batch).backward()
    for parameter in model.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()
    empty = views_of(batch, torch.tensor([], dtype=torch.long))
    assert all(part.isfinite().all() for part in model(empty))


@every_model
def test_stepping_with_an_explicit_state_equals_the_whole_window(model, make_batch, task):
    batch = make_batch(task, T=4)
    whole = model(batch)
    source = "next_view" if model.needs_next_views else "view"
    views, position, mask = (getattr(batch, source + part) for part in ("s", "_position", "_mask"))
    state = model.initial_state(len(views))
    for t in range(4):
        (encoded,) = model.encode(views[:, t : t + 1], position[:, t : t + 1], mask[:, t : t + 1])
        state = model.step(encoded, state)
        stepped = model.decode(state, batch.query_position[:, t])
        assert_same(stepped, (part[:, t] for part in whole))


@every_model
@pytest.mark.parametrize("codec", ["conv", "waves"])
def test_what_is_absent_is_not_computed_and_changes_neither_loss_nor_gradients(name, task, codec, small, make_batch):
    """Against the slow way: everything encoded and decoded, and masked afterwards."""
    model = build(name, task=task, **small(name, task, codec=codec)).double()
    batch = make_batch(task, V=4, Q=4, dtype=torch.float64)
    masks = {part: torch.rand(2, 3, 4) < 0.5 for part in ("view_mask", "next_view_mask", "query_mask")}
    batch = dataclasses.replace(batch, **masks)
    encoded, decoded = [], []
    model.encoder.register_forward_hook(lambda _, inputs, output: encoded.append(len(output)))
    model.decoder.register_forward_hook(lambda _, inputs, output: decoded.append(len(output)))
    fast = gradients(model, model.batch_loss(batch))
    predicted = model.loss(model(batch), batch)
    model.fixed_shapes = True
    slow = gradients(model, model.loss(model(batch), batch))
    counted = dataclasses.replace(batch, **{f"{part[:-5]}_count": int(mask.sum()) for part, mask in masks.items()})
    rounded = gradients(model, model.batch_loss(counted))
    views = masks["next_view_mask" if model.needs_next_views else "view_mask"]
    assert encoded == [int(views.sum())] * 2 + [24, -(-int(views.sum()) // 3) * 3]
    assert decoded == [int(masks["query_mask"].sum())] * 2 + [24, -(-int(masks["query_mask"].sum()) // 3) * 3]
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(rounded, slow, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(predicted, slow[0], rtol=1e-9, atol=1e-12)


def gradients(model, loss):
    return [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))]


@every_model
def test_every_parameter_takes_part(model, make_batch, task):
    batch = make_batch(task, T=3)
    model.loss(model(batch), batch).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not (p.grad != 0).any()] == []


@pytest.mark.parametrize("name", RECURRENT)
def test_the_past_matters_and_the_future_does_not(small, make_batch, name):
    model = build(name, task="bballs", **small(name, "bballs"))
    batch = make_batch("bballs", T=4)
    changed = dataclasses.replace(batch, views=batch.views.clone())
    changed.views[:, 1] = 1 - changed.views[:, 1]
    before, after = model(batch).crop, model(changed).crop
    torch.testing.assert_close(before[:, 0], after[:, 0])
    assert all(not torch.equal(before[:, t], after[:, t]) for t in (1, 2, 3))


def test_the_oracle_reads_the_next_views_only(small, make_batch):
    model = build("tto", task="bballs", **small("tto", "bballs"))
    batch = make_batch("bballs")
    assert_same(model(batch), model(dataclasses.replace(batch, views=1 - batch.views)))
    with pytest.raises(UsageError, match="views of the next frame"):
        model(dataclasses.replace(batch, next_views=None))


def train(model, batch, steps, lr):
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        loss = model.loss(model(batch), batch)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    return losses


@pytest.mark.sample(1, each="name")
@every_model
def test_every_model_overfits_one_small_batch(name, task, small, make_batch):
    model = build(name, task=task, **small(name, task, width=16))
    losses = train(model, make_batch(task, B=2, T=3, V=3, Q=2), 150, 4e-3)
    # Noise of the size of a cell can be learned by heart only by weights of that cell's own.
    assert losses[-1] < (0.25 if name == "conv_gru" else 0.03) * losses[0]


@pytest.mark.sample(2)
@pytest.mark.parametrize("task", ["bballs", "sc2"])
@pytest.mark.parametrize(("name", "codec"), [("s2gru", "conv"), ("lstm", "conv"), ("s2gru", "waves")])
def test_the_other_codecs_overfit_one_small_batch(name, codec, task, small, make_batch):
    model = build(name, task=task, **small(name, task, codec=codec, width=16))
    losses = train(model, make_batch(task, B=2, T=2, V=3, Q=2), 250, 4e-3)
    assert losses[-1] < 0.1 * losses[0]


def largest_hidden(model, batch, steps):
    """|h| over many steps with the batch's views shown again and again, and the last third with none."""
    with torch.no_grad():
        encoded = model.encode_batch(batch)
        blind = model.encode_batch(dataclasses.replace(batch, view_mask=torch.zeros_like(batch.view_mask)))
        state, largest = model.initial_state(len(batch.views)), []
        for t in range(steps):
            source = encoded if t < 2 * steps // 3 else blind
            state = model.step(source[t % len(source)], state)
            largest.append(model.hidden(state).abs().max().item())
    return largest


@pytest.mark.sample(1, each="name")
@pytest.mark.parametrize("task", ["bballs", "sc2"])
@pytest.mark.parametrize("name", RECURRENT)
def test_hidden_states_stay_bounded_over_100_steps(name, task, small, make_batch):
    model = build(name, task=task, **small(name, task))
    batch = make_batch(task, T=5)
    at_start = largest_hidden(model, batch, 100)
    assert max(at_start) < 10
    train(model, batch, 30, 3e-3)
    trained = largest_hidden(model, batch, 100)
    assert max(trained[66:]) <= 1.5 * max(trained[:66])  # it does not grow where nothing is seen
    if name in ("s2gru", "lstm", "rims"):
        assert max(trained) <= 10
    else:
        # A relational memory is an integrator by its definition, M' = i tanh(.) + f M with i, f < 1: |M| <= 1 + t.
        # The message of an S2RMC is linear in it.
        gain = model.message.weight.abs().sum(1).max().item() if name == "s2rmc" else 1.0
        assert all(value <= gain * (1 + t) + 1 for t, value in enumerate(trained, start=1))


def test_without_the_clamp_the_papers_local_sum_lets_states_explode(small, make_batch):
    model = build("s2gru", task="bballs", **small("s2gru", "bballs", hidden_limit=1e30))
    batch = make_batch("bballs", T=5)
    train(model, batch, 30, 3e-3)
    assert max(largest_hidden(model, batch, 60)) > 1e3


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["s2gru", "s2rmc"])
def test_hidden_states_stay_bounded_with_the_papers_sizes(name, make_batch):
    model = build(name, task="bballs", codec="mlp", width=8)
    assert max(largest_hidden(model, make_batch("bballs", T=5), 100)) < 10


@pytest.mark.parametrize("name", MODELS.names())
def test_bfloat16_autocast_is_finite_and_near_full_precision(small, make_batch, name):
    model = build(name, task="bballs", **small(name, "bballs"))
    batch = make_batch("bballs")
    mask = batch.view_mask.clone()
    mask[0, 1] = False
    batch = dataclasses.replace(batch, view_mask=mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model.loss(model(batch), batch)
        state = model.step(model.encode_batch(batch)[0], model.initial_state(2))
    assert model.hidden(own_of(state)).dtype == torch.float32  # the state keeps its digits
    loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    torch.testing.assert_close(loss, model.loss(model(batch), batch), rtol=0.02, atol=0.02)


@pytest.mark.sample(2)  # test_stepper.py has each
@pytest.mark.parametrize("name", MODELS.names())
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_model_compiles_without_a_graph_break(small, make_batch, name):
    task, codec = {"s2gru": ("bballs", "conv"), "lstm": ("bballs", "conv"), "rmc": ("bballs", "mlp")}.get(
        name, ("sc2", "waves")
    )
    model = build(name, task=task, **small(name, task, codec=codec))
    batch = make_batch(task, T=2)

    def loss(batch):
        return model.loss(model(batch), batch)

    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="eager", fullgraph=True)(batch)
    torch.testing.assert_close(compiled, loss(batch))


def slow_skip(model, batch):
    """The predictions of a model with a skip, query by query: a softmax over views, written out, beside its state."""
    size, extent = model.skip_size, batch.views.shape[4] * model.config.cell_size
    source = "next_view" if model.needs_next_views else "view"
    views, position, masks = (getattr(batch, source + part) for part in ("s", "_position", "_mask"))
    state, rows = model.initial_state(len(views)), []
    for t in range(views.shape[1]):
        s = model.embedding(position[:, t])
        at = (position[:, t] if model.takes_position else s).flatten(0, 1)
        both = model.encoder(views[:, t].flatten(0, 1), at).unflatten(0, views.shape[:3:2])
        (encoded,) = model.prepare(both[:, None, :, :-size], s[:, None], masks[:, t, None])
        state = model.advance(encoded, state, PLAIN)
        for b, q in itertools.product(range(len(views)), range(batch.query_position.shape[2])):
            place, near = batch.query_position[b, t, q], torch.zeros(size, dtype=both.dtype)
            there = masks[b, t].nonzero().flatten().tolist()
            apart = [float(((place - position[b, t, a]) / extent).square().sum()) for a in there]
            shares = [math.exp(-math.exp(float(model.log_nearness)) * (d - min(apart))) for d in apart]
            for a, share in zip(there, shares, strict=True):
                near = near + share / sum(shares) * both[b, a, -size:]
            own, s_q = model.attend(model.hidden(state)[b, None, None], model.embedding(place[None, None, None]))
            at_q = place[None, None] if model.takes_position else s_q
            rows.append(model.decoder(torch.cat([own, near[None]], 1), at_q)[0])
    return torch.stack(rows).unflatten(0, (views.shape[1], len(views), -1)).transpose(0, 1)


@pytest.mark.parametrize(("name", "task"), [pair for pair in EVERY if pair[0] != "conv_gru"])
@pytest.mark.parametrize("codec", ["mlp", "waves", "conv"])
@pytest.mark.sample(1, each="name")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_skip_is_what_a_slow_transcription_of_it_says(name, task, codec, small, make_batch):
    """For a window, step by step, and compiled; with views dropped, at one step all of them."""
    model = build(name, task=task, **small(name, task, codec=codec, skip=True)).double()
    batch = make_batch(task, B=2, T=3, V=4, Q=3, dtype=torch.float64)
    masks = {part: torch.rand(2, 3, 4) < 0.6 for part in ("view_mask", "next_view_mask")}
    for mask in masks.values():
        mask[0, 1] = False
    batch = dataclasses.replace(batch, **masks)
    with torch.no_grad():
        slow = model.learning.prediction(slow_skip(model, batch))
        assert_same(model(batch), slow, rtol=1e-9, atol=1e-12)
        source = "next_view" if model.needs_next_views else "view"
        views, position, mask = (getattr(batch, source + part) for part in ("s", "_position", "_mask"))
        state = model.initial_state(2)
        assert all(part.isfinite().all() for part in model.decode(state, batch.query_position[:, 0]))
        for t in range(3):
            (encoded,) = model.encode(views[:, t : t + 1], position[:, t : t + 1], mask[:, t : t + 1])
            state = model.step(encoded, state)
            stepped = model.decode(state, batch.query_position[:, t])
            assert_same(stepped, (part[:, t] for part in slow), rtol=1e-9, atol=1e-12)
        torch._dynamo.reset()
        compiled = torch.compile(model, backend="eager", fullgraph=True)(batch)
        assert_same(compiled, slow, rtol=1e-9, atol=1e-12)


def test_what_skips_is_the_views_of_one_step_and_memory_is_all_else(small, make_batch):
    batch = make_batch("bballs", T=4)
    changed = dataclasses.replace(batch, views=batch.views.clone())
    changed.views[:, 1] = 1 - changed.views[:, 1]
    for name, remembers in ("no_memory", False), ("s2gru", True):
        model = build(name, task="bballs", **small(name, "bballs", skip=True))
        differs = [
            not torch.equal(a, b) for a, b in zip(*(model(x).crop.unbind(1) for x in (batch, changed)), strict=True)
        ]
        assert differs == [False, True, remembers, remembers], name
    with pytest.raises(UsageError, match="skip is False; it must be true"):
        build("no_memory", task="bballs", skip=False)
