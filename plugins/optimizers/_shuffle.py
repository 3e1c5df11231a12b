"""The order in which samples are taken, for optimizers that shuffle."""

from __future__ import annotations

import torch

from framework.seeding import derive


def shuffler(purpose: str) -> torch.Generator:
    """A stream that differs from run to run: torch's seed was set from the run's before the optimizer was built.

    Nothing is drawn from torch's own stream, so two optimizers that are built after the same seeding stay twins.
    """
    return torch.Generator().manual_seed(derive(torch.initial_seed(), purpose))
