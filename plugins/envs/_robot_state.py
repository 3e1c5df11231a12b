"""Arrays of a robot's worlds as tensors of a checkpoint, which holds no unsigned 64-bit numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def pack(arrays: Mapping[str, NDArray]) -> dict[str, Tensor]:
    plain = {name: a.view(np.int64) if a.dtype == np.uint64 else a for name, a in arrays.items()}
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in plain.items()}


def unpack(tensors: Mapping[str, Tensor], like: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Undo of ``pack``; ``like`` has the same names and the true types."""
    return {name: tensor.numpy(force=True).view(like[name].dtype) for name, tensor in tensors.items()}
