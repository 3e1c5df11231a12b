"""State of a torch optimizer as flat tensors: what checkpoints can hold (no pickle)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def adam_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """``{"adam.<parameter>.<moment>": tensor}``; empty before the first step."""
    states = optimizer.state_dict()["state"].items()
    return {f"adam.{i}.{name}": value for i, state in states for name, value in state.items()}


def load_adam_tensors(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Undo of ``adam_tensors``; other names in ``tensors`` are left alone."""
    whole = optimizer.state_dict()
    whole["state"] = {}
    for key, value in tensors.items():
        if key.startswith("adam."):
            _, i, name = key.split(".")
            whole["state"].setdefault(int(i), {})[name] = value.clone()
    optimizer.load_state_dict(whole)
