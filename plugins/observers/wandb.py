"""Weights & Biases. By default it writes to disk only; ``wandb sync`` uploads what you choose, ``mode: online`` all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from framework.hookspecs import NamedObserver, RunInfo, hookimpl


@dataclass(frozen=True)
class Config:
    """Settings of the W&B observer."""

    project: str = "heed"
    """Project to file runs under."""
    entity: str | None = None
    """User or team; null: the one that is logged in."""
    mode: Literal["offline", "online"] = "offline"
    """offline: into the run's folder; nothing leaves the machine. online: uploaded as it goes (``wandb login``)."""


class WeightsAndBiases(NamedObserver):
    """Sends every metric and all settings of a run to Weights & Biases (or to disk, for later)."""

    name = "wandb"
    Config = Config
    requires = {"wandb": "wandb"}

    def __init__(self, config: Config, run: RunInfo) -> None:
        super().__init__(config, run)
        import wandb

        self._run: Any = wandb.init(
            project=config.project,
            entity=config.entity,
            mode=config.mode,
            dir=str(run.folder),
            id=_short(run),
            name=f"{run.labels[0] if run.labels else run.id} seed {run.config['seed']}",
            config=dict(run.config),
            resume="allow" if config.mode == "online" and run.step else None,
        )

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        finite = {f"learning/{name}": value for name, value in metrics.items() if math.isfinite(value)}
        self._run.log(finite, step=step)

    def evaluate(self, stage: str, metrics: Mapping[str, float]) -> None:
        self._run.summary.update({f"{stage}/{name}": value for name, value in metrics.items() if math.isfinite(value)})

    def end(self, error: str | None) -> None:
        self._run.finish(exit_code=0 if error is None else 1)


def _short(run: RunInfo) -> str:
    """Of a run or of one of its evaluations; the service takes 64 characters at the most."""
    own = run.id.rsplit("-", 1)[-1]
    return own if run.folder.name == run.id else f"{own}-{run.folder.name}"


@hookimpl
def heed_observers() -> list[type[NamedObserver]]:
    return [WeightsAndBiases]
