"""When two run folders hold the same run: log and summary byte for byte, weights and state value for value."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import safe_open


def content(path: Path) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    """Header and tensors of a safetensors file, whose header has no fixed order."""
    with safe_open(path, framework="pt") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def assert_same_run(a: Path, b: Path) -> None:
    for name in ("log.jsonl", "summary.json"):
        assert (a / name).read_bytes() == (b / name).read_bytes(), name
    for name in ("last.safetensors", "best.safetensors", "state.safetensors"):
        (header_a, tensors_a), (header_b, tensors_b) = content(a / name), content(b / name)
        assert header_a == header_b, name
        assert tensors_a.keys() == tensors_b.keys(), name
        for key, tensor in tensors_a.items():
            assert torch.equal(tensor, tensors_b[key]), f"{name}: {key}"
