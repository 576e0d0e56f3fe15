"""Trained policies: a small network in a file, rolled out like a scripted policy.

A file is in the safetensors format: tensors `0.weight` (outputs, inputs) and `0.bias` (outputs,) of the first layer,
`1.weight` ... of the next, float32; ReLU between layers; and in its metadata `format` and `scenario`. The inputs are an
agent's observation, SMAC's features with default options, and the agent's number, one-hot; the outputs are scores of
the actions, of which the agent takes the highest available one.

Sums are made in a fixed order in compiled code, without any library: the actions do not depend on how many battles are
played at once, nor on the machine."""

# B battles, N agents, A actions, O size of an observation

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.compiled import compiled
from s2rm_data.core.errors import UsageError, missing_component
from s2rm_data.core.read import read_regular
from s2rm_data.core.write import write_whole
from s2rm_data.starcraft.codes import Action

SUFFIX = ".safetensors"
FORMAT = "s2rm-data policy 1"
MOST_BYTES = 1 << 28
Layer = tuple[NDArray[np.float32], NDArray[np.float32]]  # weight (outputs, inputs), bias (outputs,)


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """`digest` is the SHA-256 of the file's bytes."""

    layers: tuple[Layer, ...]
    scenario: str  # it was trained on
    digest: str

    @property
    def inputs(self) -> int:
        return self.layers[0][0].shape[1]

    @property
    def actions(self) -> int:
        return len(self.layers[-1][1])

    def require(self, scenario: str, observation_size: int, agents: int, actions: int) -> None:
        """A `UsageError` unless the network fits a scenario of these sizes."""
        if (self.inputs, self.actions) != (observation_size + agents, actions):
            raise UsageError(
                f"the policy was trained on {self.scenario!r}, with {self.inputs} inputs and {self.actions} actions; "
                f"{scenario!r} has {observation_size + agents} and {actions}; play it on a scenario of its own size"
            )

    def choose(
        self, asked: NDArray[np.bool_], observation: NDArray[np.float32], available: NDArray[np.bool_]
    ) -> NDArray[np.int16]:
        """(B, N) actions for observation (B, N, O) and available (B, N, A) in the battles `asked` (B,)."""
        packed = np.concatenate([np.concatenate([w.T.ravel(), b]) for w, b in self.layers]).astype(np.float32)
        sizes = np.array([self.inputs, *(len(bias) for _, bias in self.layers)], dtype=np.int64)
        actions = np.zeros(available.shape[:2], dtype=np.int16)
        _choose(asked, observation, available, packed, sizes, actions)
        return actions


@compiled()
def _forward(values, next_values, packed, sizes):  # type: ignore[no-untyped-def]
    """Scores of the actions into the first numbers of one of the two rows, which is returned."""
    start = 0
    for layer in range(sizes.shape[0] - 1):
        inputs, outputs = sizes[layer], sizes[layer + 1]
        biases = start + inputs * outputs
        for j in range(outputs):
            next_values[j] = packed[biases + j]
        for k in range(inputs):
            x = values[k]
            if x != 0.0:
                weights = packed[start + k * outputs : start + (k + 1) * outputs]
                for j in range(outputs):
                    next_values[j] += x * weights[j]
        if layer < sizes.shape[0] - 2:
            for j in range(outputs):
                next_values[j] = max(next_values[j], np.float32(0.0))
        values, next_values = next_values, values
        start = biases + outputs
    return values


@compiled()
def _choose(asked, observation, available, packed, sizes, actions):  # type: ignore[no-untyped-def]
    agents, inputs = observation.shape[1], observation.shape[2]
    first, second = np.empty(sizes.max(), dtype=np.float32), np.empty(sizes.max(), dtype=np.float32)
    for b in range(asked.shape[0]):
        if not asked[b]:
            continue
        for i in range(agents):
            if available[b, i, Action.NO_OP]:
                continue  # dead
            first[:inputs] = observation[b, i]
            first[inputs : inputs + agents] = 0.0
            first[inputs + i] = 1.0
            scores = _forward(first, second, packed, sizes)
            best = -1
            for action in range(available.shape[2]):
                if available[b, i, action] and (best < 0 or scores[action] > scores[best]):
                    best = action
            actions[b, i] = best


def save_network(
    path: Path,
    layers: Sequence[tuple[Any, Any]],
    scenario: str,
    check: Callable[[Network], None] = lambda network: None,
) -> None:
    """Write a policy file; layers are (weight (outputs, inputs), bias (outputs,)), as arrays or tensors.

    What cannot be read again, or is refused by `check`, is not written."""
    tensors = {}
    for number, (weight, bias) in enumerate(layers):
        try:
            tensors[f"{number}.weight"] = np.ascontiguousarray(np.asarray(weight), dtype=np.float32)
            tensors[f"{number}.bias"] = np.ascontiguousarray(np.asarray(bias), dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise UsageError(f"layer {number} is not a pair of arrays of numbers on the CPU: {error}") from None
    content = _safetensors().save(tensors, metadata={"format": FORMAT, "scenario": scenario})
    check(_parse(content, str(path)))
    write_whole(Path(path), [content])


def load_network(path: Path) -> Network:
    """The policy in a file; anything else is a `UsageError`. A file that has not changed is read once."""
    try:
        state = path.stat()
        return _load(path.absolute(), state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise UsageError(f"the policy file {path} cannot be read: {error.strerror}") from None


@lru_cache(maxsize=8)
def _load(path: Path, modified: int, size: int) -> Network:
    return _parse(read_regular(path, MOST_BYTES), str(path))


def _parse(content: bytes, where: str) -> Network:
    try:
        tensors = _safetensors().load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    except Exception as error:  # noqa: BLE001 (the library has errors of its own)
        raise UsageError(
            f"the policy file {where} is not in the safetensors format ({type(error).__name__}); "
            "save_policy of s2rm_data.envs writes such files"
        ) from None
    metadata = header.get("__metadata__") or {}  # null is allowed
    if metadata.get("format") != FORMAT:
        raise UsageError(
            f"the policy file {where} has the format {metadata.get('format')!r}; it must be {FORMAT!r}, "
            "as save_policy of s2rm_data.envs writes it"
        )
    layers = _layers(tensors, where)
    return Network(
        layers=layers, scenario=str(metadata.get("scenario", "")), digest=hashlib.sha256(content).hexdigest()
    )


def _layers(tensors: Mapping[str, NDArray[Any]], where: str) -> tuple[Layer, ...]:
    count = len(tensors) // 2
    names = [f"{number}.{part}" for number in range(count) for part in ("weight", "bias")]
    if not tensors or sorted(tensors) != sorted(names):
        raise UsageError(
            f"the policy file {where} has the tensors {sorted(tensors)}; it must have 0.weight, 0.bias, ..."
        )
    layers = tuple((tensors[f"{number}.weight"], tensors[f"{number}.bias"]) for number in range(count))
    width = layers[0][0].shape[-1] if layers[0][0].ndim == 2 else 0
    for number, (weight, bias) in enumerate(layers):
        fits = weight.ndim == 2 and weight.shape[1] == width and bias.shape == weight.shape[:1] and bias.size > 0
        if not fits or weight.dtype != np.float32 or bias.dtype != np.float32 or width == 0:
            raise UsageError(
                f"the policy file {where}: layer {number} has weight {weight.shape} {weight.dtype} and bias "
                f"{bias.shape} {bias.dtype}; with {width} inputs they must be (outputs, {width}) and (outputs,) float32"
            )
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise UsageError(f"the policy file {where}: layer {number} has numbers that are not finite")
        width = len(bias)
    return layers


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise missing_component("safetensors", "envs", "a policy file") from None
    return safetensors.numpy


def save_policy(path: str | Path, layers: Sequence[tuple[Any, Any]], map_name: str) -> None:
    """Save a network of fully connected layers with ReLU between them.

    `layers`: (weight (outputs, inputs), bias (outputs,)) each, arrays or tensors on the CPU. The first takes an agent's
    observation with SMAC's default options and its number, one-hot; the last gives a score for each action."""
    from s2rm_data.starcraft.envs.battles import BattleBatch, EnvOptions  # which generation does without

    path = Path(path)
    if path.suffix != SUFFIX:
        raise UsageError(f"the policy file is called {path.name!r}; its name must end with {SUFFIX}")
    battles = BattleBatch(EnvOptions(map_name=map_name), 1)
    sizes = battles.features.observation_size, battles.agents, battles.actions
    save_network(path, layers, map_name, lambda network: network.require(map_name, *sizes))


def load_policy(path: str | Path) -> Callable[[NDArray[np.float32], NDArray[np.bool_]], NDArray[np.int64]]:
    """The agents of a policy file: a function of observation (n, N, O) and available (n, N, A) to actions (n, N)."""
    network = load_network(Path(path))

    def act(observation: NDArray[np.float32], available: NDArray[np.bool_]) -> NDArray[np.int64]:
        network.require("this environment", observation.shape[2], observation.shape[1], available.shape[2])
        everywhere = np.ones(len(observation), dtype=np.bool_)
        return network.choose(everywhere, observation, available).astype(np.int64)

    return act
