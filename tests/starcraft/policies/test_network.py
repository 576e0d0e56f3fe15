"""Trained policies in files: the network's own arithmetic, files that can be trusted, and stores that name them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save
from torch import nn

from s2rm_data.core.errors import UsageError
from s2rm_data.generators.sc2.making.battle_source import plan, split_from_settings
from s2rm_data.making.run import generate
from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.envs import load_policy, save_policy, vector_env
from s2rm_data.starcraft.policies._network import load_network
from s2rm_data.store import Store, verify

INPUTS, ACTIONS = 30 + 3, 9  # of 3m


def actor(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(INPUTS, 16), nn.ReLU(), nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, ACTIONS))


def layers(network: nn.Sequential) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        (part.weight.detach().numpy(), part.bias.detach().numpy()) for part in network if isinstance(part, nn.Linear)
    ]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    save_policy(tmp_path / "own.safetensors", layers(actor()), "3m")
    return tmp_path / "own.safetensors"


def test_it_chooses_what_the_network_scores_highest_among_what_is_available(policy: Path) -> None:
    envs, network, own = vector_env("3m", 32), load_network(policy), actor()
    observation, info = envs.reset(seed=0)
    numbers = np.broadcast_to(np.eye(3, dtype=np.float32), (32, 3, 3))
    for _ in range(60):
        available = info["available"]
        chosen = network.choose(np.ones(32, dtype=np.bool_), observation, available)
        with torch.no_grad():
            scores = own(torch.from_numpy(np.concatenate([observation, numbers], axis=-1))).numpy()
        best = np.where(available, scores, -np.inf).argmax(axis=-1)
        assert np.array_equal(chosen, np.where(available[..., Action.NO_OP], Action.NO_OP, best))
        observation, *_, info = envs.step(chosen)


def test_it_plays_in_environments(policy: Path) -> None:
    envs, agents = vector_env("3m", 4), load_policy(policy)
    observation, info = envs.reset(seed=0)
    for _ in range(20):
        observation, *_, info = envs.step(agents(observation, info["available"]))
    with pytest.raises(UsageError, match="trained on '3m', with 33 inputs and 9 actions; 'this environment' has 88"):
        other, info = vector_env("8m", 1).reset()
        agents(other, info["available"])


def test_a_policy_that_does_not_fit_or_is_not_whole_leaves_the_file_that_was_there(
    policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = policy.read_bytes()
    with pytest.raises(UsageError, match="with 33 inputs and 9 actions; '8m' has"):
        save_policy(policy, layers(actor(1)), "8m")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, "replace", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        save_policy(policy, layers(actor(1)), "3m")
    assert policy.read_bytes() == before
    assert list(policy.parent.iterdir()) == [policy]


def splits(policy: Path, **options: Any) -> list[Any]:
    return plan(scenario=["3m"], train=24, val=0, steps=30, policy=str(policy), radial=4, angular=8, **options)


def content(path: Path) -> bytes:
    group = Store(path)["sc2/3m/train"]
    names = ("action", "unit_position", "reward", "categories")
    return b"".join(np.ascontiguousarray(group[name][:]).tobytes() for name in names)


def test_a_store_does_not_depend_on_workers_or_shards_and_names_the_file_s_digest(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(splits(policy), tmp_path / "one.zarr", workers=1, shard_size=24)
    generate(splits(policy), tmp_path / "two.zarr", workers=2, shard_size=5)
    assert content(tmp_path / "one.zarr") == content(tmp_path / "two.zarr")
    assert verify(tmp_path / "one.zarr").problems == []
    settings = dict(Store(tmp_path / "one.zarr")["sc2/3m/train"].settings)
    assert settings["policy_sha256"] == hashlib.sha256(policy.read_bytes()).hexdigest()
    assert settings["policies"] == [settings["config"]["policy"]] == ["own.safetensors"]
    with pytest.raises(UsageError, match=r"the policy file own\.safetensors .* not in this folder"):
        split_from_settings(settings, 24)
    monkeypatch.chdir(tmp_path)
    assert split_from_settings(settings, 24).settings == settings


def test_another_policy_under_the_same_name_is_not_mixed_in(policy: Path, tmp_path: Path) -> None:
    generate(splits(policy), tmp_path / "data.zarr", workers=1)
    save_policy(policy, layers(actor(1)), "3m")
    with pytest.raises(Exception, match="policy_sha256"):
        generate(splits(policy), tmp_path / "data.zarr", workers=1)


def test_epsilon_mixes_random_actions_in(policy: Path) -> None:
    greedy, mixed = (splits(policy, epsilon=share)[0].produce(0, 24) for share in (0.0, 1.0))
    assert not np.array_equal(greedy["action"], mixed["action"])
    alive = mixed["agent_alive"]
    assert mixed["available"][alive][np.arange(alive.sum()), mixed["action"][alive]].all()
    assert len(set(mixed["action"][alive].tolist())) >= 6


def broken(**changes: Any) -> bytes:
    tensors = {
        f"{n}.{part}": array
        for n, pair in enumerate(layers(actor()))
        for part, array in zip(("weight", "bias"), pair, strict=True)
    }
    metadata = {"format": changes.pop("format", "s2rm-data policy 1"), "scenario": "3m"}
    tensors |= {name.replace("_", "."): array for name, array in changes.items()}
    return save({name: array for name, array in tensors.items() if array is not None}, metadata=metadata)


def without_metadata() -> bytes:
    """`null` in place of the metadata, which the safetensors format allows."""
    content = broken()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size]) | {"__metadata__": None}
    odd = json.dumps(header).encode()
    return len(odd).to_bytes(8, "little") + odd + content[8 + size :]


def test_a_pipe_is_no_policy_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.safetensors")
    with pytest.raises(UsageError, match="cannot be read: it is not a regular file"):
        splits(tmp_path / "pipe.safetensors")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not in the safetensors format"),
        (b"PK\x03\x04 a pickle of torch", "not in the safetensors format"),
        (broken(format="something"), "has the format 'something'; it must be 's2rm-data policy 1'"),
        (without_metadata(), "has the format None; it must be 's2rm-data policy 1'"),
        (broken(**{"1_bias": None}), "it must have 0.weight, 0.bias"),
        (broken(**{"1_weight": np.zeros((24, 7), np.float32)}), "layer 1 has weight"),
        (broken(**{"0_bias": np.full(16, np.nan, np.float32)}), "layer 0 has numbers that are not finite"),
        (broken(**{"2_bias": np.zeros(9, np.float64)}), "layer 2 has weight"),
    ],
)
def test_files_that_are_not_policies_are_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        splits(path)


def test_sizes_and_names_have_to_fit(policy: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="trained on '3m', with 33 inputs and 9 actions; '8m' has 88 and 14"):
        plan(scenario=["8m"], train=1, val=0, policy=str(policy))
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        splits(tmp_path / "none.safetensors")
    with pytest.raises(UsageError, match=r"must end with \.safetensors"):
        save_policy(tmp_path / "own.pt", layers(actor()), "3m")
    with pytest.raises(UsageError, match="layer 0 is not a pair of arrays of numbers"):
        save_policy(tmp_path / "other.safetensors", [("a", "b")], "3m")
    with pytest.raises(UsageError, match="trained on '8m'"):
        save_policy(tmp_path / "other.safetensors", layers(actor()), "8m")
    assert not (tmp_path / "other.safetensors").exists()
