"""One seed, one result: every use of randomness has a stream of its own, derived from the run's seed and a name."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor


def derive(seed: int, *names: str) -> int:
    """A seed for one purpose. Streams do not overlap, and adding one does not shift the others."""
    digest = hashlib.sha256("/".join([str(seed), *names]).encode()).digest()
    return int.from_bytes(digest[:8], "little") % (2**63)


def generator(seed: int, *names: str) -> torch.Generator:
    """A torch generator of its own for one purpose."""
    return torch.Generator().manual_seed(derive(seed, *names))


def seed_everything(seed: int) -> None:
    """The global streams, for plugins that use them (weight initialisation does)."""
    random.seed(derive(seed, "python"))
    np.random.seed(derive(seed, "numpy") % (2**32))
    # Not torch.manual_seed: that notes every call, with its stack, for GPUs that may come to life later.
    torch.default_generator.manual_seed(derive(seed, "torch"))


def global_streams() -> dict[str, Tensor]:
    """Where the global streams are, as tensors, for a save. ``set_global_streams`` is its undo."""
    _, keys, place, has_gauss, gauss = np.random.get_state(legacy=True)
    _, words, spare = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "numpy": torch.tensor([*map(int, keys), place, has_gauss]),
        "numpy_gauss": torch.tensor(gauss, dtype=torch.float64),
        "python": torch.tensor(words),
        "python_gauss": torch.tensor([] if spare is None else [spare], dtype=torch.float64),
    }


def set_global_streams(saved: Mapping[str, Tensor]) -> None:
    """Saves of older versions have torch's alone."""
    torch.set_rng_state(saved["torch"])
    if "numpy" in saved:
        *keys, place, has_gauss = saved["numpy"].tolist()
        np.random.set_state(("MT19937", np.array(keys, np.uint32), place, has_gauss, float(saved["numpy_gauss"])))
        spare = saved["python_gauss"].tolist()
        random.setstate((3, tuple(saved["python"].tolist()), spare[0] if spare else None))
