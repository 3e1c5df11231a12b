"""Leaves the policy as it is: for baselines that do not learn, and for studies of interpreters alone."""

from __future__ import annotations

from framework.hookspecs import hookimpl
from framework.interfaces import Metrics, Rollout, SafeOptimizer


class Fixed(SafeOptimizer):
    """No learning."""

    name = "fixed"
    needs = frozenset()
    learns = False

    def update(self, rollout: Rollout) -> Metrics:
        return {}


@hookimpl
def heed_components() -> list[type[SafeOptimizer]]:
    return [Fixed]
