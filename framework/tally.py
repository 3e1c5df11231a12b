"""Counts reward, cost and length of running episodes, and hands out those that finished."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from framework.interfaces import Episodes, Timestep


@dataclass
class Tally:
    """Running sums of N rows; finished episodes of the present batch in ``_finished``."""

    reward: Tensor  # [N]
    length: Tensor  # [N]
    cost: Tensor  # [N, K] true
    predicted: Tensor  # [N, K]
    excess: Tensor  # [N, K] predicted cost past the predicted budget
    threshold: Tensor  # [N, K] true
    predicted_threshold: Tensor  # [N, K]

    def __post_init__(self) -> None:
        self.start_batch()

    @classmethod
    def empty(cls, rows: int, constraints: int) -> Tally:
        wide = ("cost", "predicted", "excess", "threshold", "predicted_threshold")
        return cls(torch.zeros(rows), torch.zeros(rows), **{name: torch.zeros(rows, constraints) for name in wide})

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def start_batch(self) -> None:
        self._finished: list[dict[str, Tensor]] = []
        self._excess, self._steps = 0.0, 0  # of all steps of this batch, whether or not their episodes have finished

    def add(
        self,
        now: Timestep,
        predicted: Tensor,
        excess: Tensor,
        predicted_threshold: Tensor,
        valid: Tensor,
    ) -> None:
        """Book one step. ``valid`` is False for the step that merely starts a new episode."""
        self.reward = self.reward + now.reward * valid
        self.length = self.length + valid
        self.cost = self.cost + now.cost * valid[:, None]
        self.predicted = self.predicted + predicted * valid[:, None]
        self.excess = self.excess + excess * valid[:, None]
        self.threshold = torch.where(valid[:, None], now.threshold, self.threshold)
        self.predicted_threshold = torch.where(valid[:, None], predicted_threshold, self.predicted_threshold)
        self._excess += float((excess * valid[:, None]).sum())
        self._steps += int(valid.sum())
        rows = now.done
        if bool(rows.any()):
            self._finished.append({name: value[rows] for name, value in self.tensors().items()})
            for name, value in self.tensors().items():
                setattr(self, name, value * ~rows.view(-1, *[1] * (value.dim() - 1)))

    def episodes(self) -> Episodes:
        """The episodes that finished in this batch."""
        get = self._column
        return Episodes(
            get("reward"),
            get("cost"),
            get("predicted"),
            get("threshold"),
            get("predicted_threshold"),
            get("length"),
        )

    def violation(self, form: str) -> tuple[float, float, float]:
        """c = J_C - d per episode in the given constraint form, its standard error, and the mean episode length.

        From this batch's finished episodes. If none finished, from the running ones so far: a lower bound of both,
        which errs on the quiet side but is never NaN. Excess has no budget to be set against at an episode's end, so
        its mean is taken over all steps of the batch: rows that start together also end together, and then a batch of
        10,000 steps may hold one finished episode, and that a lucky one.
        """
        excess, length = self._column("excess"), self._column("length")
        predicted, budget = self._column("predicted"), self._column("predicted_threshold")
        if not len(length):
            excess, length = self.excess, self.length
            predicted, budget = self.predicted, self.predicted_threshold
        per_episode = (excess if form == "excess" else predicted - budget).sum(-1)
        error = float(per_episode.std()) / len(per_episode) ** 0.5 if len(per_episode) > 1 else 0.0
        steps = max(1.0, float(length.mean()))
        mean = self._excess / max(1, self._steps) * steps if form == "excess" else float(per_episode.mean())
        return mean, error, steps

    def _column(self, name: str) -> Tensor:
        empty = getattr(self, name)[:0]
        return torch.cat([f[name] for f in self._finished]) if self._finished else empty
