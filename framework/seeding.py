"""One seed, one result: every use of randomness has a stream of its own, derived from the run's seed and a name."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import torch


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
