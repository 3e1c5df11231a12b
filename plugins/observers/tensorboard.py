"""TensorBoard: learning curves live in the browser, ``tensorboard --logdir runs/cells``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.hookspecs import NamedObserver, RunInfo, hookimpl


class TensorBoard(NamedObserver):
    """Writes every metric to the run's folder ``tensorboard``."""

    name = "tensorboard"
    requires = {"tensorboard": "tensorboard"}

    def __init__(self, config: object, run: RunInfo) -> None:
        super().__init__(config, run)
        from torch.utils.tensorboard import SummaryWriter

        # What a killed run had written past its last save is hidden once the run goes on.
        purge = run.step + 1 if run.step else None
        self._writer: Any = SummaryWriter(str(run.folder / "tensorboard"), purge_step=purge)  # type: ignore[no-untyped-call]
        self._writer.add_text("system", ", ".join(run.labels) or run.id)
        self._step = run.step

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        self._step = step
        for name, value in metrics.items():
            self._writer.add_scalar(f"learning/{name}", value, step)
        self._writer.flush()

    def evaluate(self, stage: str, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(f"{stage}/{name}", value, self._step)

    def end(self, error: str | None) -> None:
        if error is not None:
            self._writer.add_text("error", error)
        self._writer.close()


@hookimpl
def heed_observers() -> list[type[NamedObserver]]:
    return [TensorBoard]
