"""Which parts of the constraint a policy sees: the switches of the paper's ablations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Uses:
    """What the policy may see of the constraint; switch off for ablations."""

    mask: bool = True
    """M_C, the forbidden cells."""
    budget: bool = True
    """M_B, what is spent or left of the budget."""
    threshold: bool = True
    """h_C."""
